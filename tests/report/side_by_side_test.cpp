// Texts in columns for terminals.
#include "wanamaker/report/side_by_side.hpp"

#include <string>
#include <vector>

#include "testing.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/io/utf8.hpp"

namespace {

using namespace wanamaker;
using Lines = std::vector<std::string>;

/// Words of Latin, combining, wide and astral characters, with line feeds among them.
std::string random_text(RandomStream& random, int characters) {
  const Lines pieces{"a", "b", " ", " ", "\n", "\u00e9", "e\u0301", "\u4e2d", "\U0001f642", "-"};
  std::string text;
  for (int i = 0; i < characters; ++i) text += pieces[random.below(pieces.size())];
  return text;
}

}  // namespace

TEST_CASE("lines break at spaces, else where they are full; the text's own line breaks stay") {
  CHECK(wrapped("", 5) == Lines{""});
  CHECK(wrapped("one two three", 7) == Lines{"one two", "three"});
  CHECK(wrapped("one two three", 6) == Lines{"one", "two", "three"});
  CHECK(wrapped("one two three", 13) == Lines{"one two three"});
  CHECK(wrapped("a\n\nb\n", 5) == Lines{"a", "", "b", ""});
  CHECK(wrapped("abcdefgh", 3) == Lines{"abc", "def", "gh"});
  CHECK(wrapped(" abcdef", 3) == Lines{" ab", "cde", "f"});
  // A wide character takes two columns, a combining mark none.
  CHECK(wrapped("\u4e2d\u4e2d\u4e2d", 5) == Lines{"\u4e2d\u4e2d", "\u4e2d"});
  CHECK(wrapped("e\u0301e\u0301e\u0301", 2) == Lines{"e\u0301e\u0301", "e\u0301"});
  CHECK(wrapped("\u4e2d\u4e2d", 1) == Lines{"\u4e2d", "\u4e2d"});
}

TEST_CASE("lines fit, are whole characters, and lose nothing but the spaces they break at") {
  RandomStream random(3);
  for (std::size_t width = 2; width < 12; ++width) {
    for (int trial = 0; trial < 50; ++trial) {
      const std::string text = random_text(random, 60);
      std::string joined, expected;
      for (const std::string& line : wrapped(text, width)) {
        CHECK(!first_invalid_utf8(line).has_value());
        CHECK(detail::columns_of(line) <= width);
        joined += line;
      }
      const auto without_blanks = [](const std::string& from) {
        std::string kept;
        for (const char c : from) {
          if (c != ' ' && c != '\n') kept += c;
        }
        return kept;
      };
      CHECK(without_blanks(joined) == without_blanks(text));
    }
  }
}

TEST_CASE("two texts stand beside each other, the shorter one ends first") {
  CHECK(side_by_side({"original", "He opened the door and went in."}, {"zero", "He\nno"}, 27) ==
        "original     | zero\n"
        "------------ | ------------\n"
        "He opened    | He\n"
        "the door and | no\n"
        "went in.     |\n");
  CHECK(side_by_side({"a", "\u4e2d"}, {"b", "1\n2\n3"}, 9) ==
        "a   | b\n"
        "--- | ---\n"
        "\u4e2d  | 1\n"
        "    | 2\n"
        "    | 3\n");
}

TEST_CASE("a terminal is shown no control characters") {
  CHECK(terminal_text("a\tb\nc") == "a b\nc");
  CHECK(terminal_text("\x1b[31m\r\x07\x7f") == "\ufffd[31m\ufffd\ufffd\ufffd");
  CHECK(terminal_text("\u009b\u00a0\u20ac") == "\ufffd\u00a0\u20ac");
}
