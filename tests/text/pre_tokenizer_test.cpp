// The split into words: by hand, and the hand-written scanner against the pattern.
#include "wanamaker/text/pre_tokenizer.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text_testing.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Words = std::vector<std::string>;

Words scanned(std::string_view text) {
  Words words;
  for_each_byte_level_word(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

Words matched(const Regex& regex, std::string_view text) {
  Words words;
  regex.for_each_match(text, [&](std::size_t begin, std::size_t end) {
    words.emplace_back(text.substr(begin, end - begin));
  });
  return words;
}

Words words_of(std::vector<PreTokenizer::Step> steps, std::string_view text) {
  Words words;
  PreTokenizer(std::move(steps)).for_each_word(text, [&](std::string_view word) {
    words.emplace_back(word);
  });
  return words;
}

Regex pattern(std::string_view text) {
  return Regex(text, "test");
}

/// Libraries know different versions of Unicode, so that a younger character is a letter to one and
/// unassigned to the other.
class Assigned {
 public:
  bool operator()(std::string_view text) const {
    bool assigned = true;
    unassigned_.for_each_match(text, [&](std::size_t, std::size_t) { assigned = false; });
    for (std::size_t at = 0; at < text.size(); at += decode_utf8(text, at).length) {
      const auto c = static_cast<utf8proc_int32_t>(decode_utf8(text, at).value);
      assigned = assigned && utf8proc_category(c) != UTF8PROC_CATEGORY_CN;
    }
    return assigned;
  }

 private:
  Regex unassigned_{R"(\p{Cn})", "test"};
};

}  // namespace

TEST_CASE("GPT-2's words by hand") {
  CHECK(scanned("") == Words{});
  CHECK(scanned("Hello world") == Words{"Hello", " world"});
  CHECK(scanned("it's they'll 'sample don'T") ==
        Words{"it", "'s", " they", "'ll", " '", "sample", " don", "'", "T"});
  CHECK(scanned("a  b") == Words{"a", " ", " b"});
  CHECK(scanned("a\n\nb \n") == Words{"a", "\n", "\n", "b", " \n"});
  CHECK(scanned("x1y 22?! ") == Words{"x", "1", "y", " 22", "?!", " "});
  CHECK(scanned("\u00a0a") == Words{"\u00a0", "a"});
  CHECK(scanned("e\u0301") == Words{"e", "\u0301"});
  CHECK(scanned("'") == Words{"'"});
  CHECK(scanned("'r'v'l'") == Words{"'", "r", "'", "v", "'", "l", "'"});
}

TEST_CASE("the scanner finds the pattern's matches in random texts") {
  const Regex regex = pattern(byte_level_pattern);
  const Assigned is_assigned;
  RandomStream random(3);
  int compared = 0;
  for (int trial = 0; trial < 8000; ++trial) {
    const std::string text = random_text(random, 1 + random.below(24));
    if (!is_assigned(text)) continue;
    ++compared;
    CAPTURE(text);
    CHECK(scanned(text) == matched(regex, text));
  }
  CHECK(compared > 2000);
}

TEST_CASE("the scanner and the pattern agree on every character's class") {
  const Regex regex = pattern(byte_level_pattern);
  const Assigned is_assigned;
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c == 0xd800) c = 0xe000;
    std::string text = "a";
    append_utf8(c, text);
    text += "1 ";
    append_utf8(c, text);
    text += "?";
    if (scanned(text) == matched(regex, text) || !is_assigned(text)) continue;
    FAIL("U+" << static_cast<unsigned long>(c));
  }
}

TEST_CASE("the scanner finds the pattern's matches in real text") {
  const auto path = shared_data("wikitext/wiki.valid.raw");
  if (!path) return;
  const std::string text = read_bytes(*path);
  CHECK(scanned(text) == matched(pattern(byte_level_pattern), text));
}

TEST_CASE("\\s is White_Space inside and outside of classes") {
  const std::string text = "a\u0085b\u180ec\u3000d";
  CHECK(matched(pattern(R"(\S+)"), text) == Words{"a", "b\u180ec", "d"});
  CHECK(matched(pattern(R"([^\s]+)"), text) == Words{"a", "b\u180ec", "d"});
  CHECK(matched(pattern(R"(\s)"), text) == Words{"\u0085", "\u3000"});
}

TEST_CASE("what PCRE2 would read in another way is refused") {
  for (const char* construct :
       {R"(\w+)", R"(\bx)", R"(\h)", R"([a[bc]])", R"([a-z&&[^b]])", "^a", "a$", "(?m)a", "(?i)a",
        "(*UTF)a", "a{,3}", "a{1,2}+", R"([\S])", "[]a]", R"(\K)", "(?R)", "(?<n>a)"}) {
    CAPTURE(construct);
    CHECK(error_id([&] { pattern(construct); }) == "tokenizer/pattern");
  }
  for (const char* broken : {"(", "[a", "a)", "*", R"(\p{Nonsense})", "\\", R"(\x{)"}) {
    CAPTURE(broken);
    CHECK(error_id([&] { pattern(broken); }) == "tokenizer/pattern");
  }
  CHECK(matched(pattern(R"((?i:'s)|\p{L}+|\p{N}{1,3}|[\r\n]*)"), "ab'S1234") ==
        Words{"ab", "'S", "123", "4"});
}

TEST_CASE("a pattern that backtracks without end is stopped") {
  const std::string text(60, 'a');
  CHECK(error_id([&] { matched(pattern("(?:a|aa|a{3})+b|(?:a+)+c"), text); }) ==
        "text/pattern-limit");
}

TEST_CASE("a megabyte of one class is one word for both") {
  const std::string letters(1 << 20, 'x'), spaces(1 << 20, ' ');
  CHECK(scanned(letters).size() == 1);
  CHECK(matched(pattern(byte_level_pattern), letters).size() == 1);
  CHECK(scanned(spaces + "x") == matched(pattern(byte_level_pattern), spaces + "x"));
}

TEST_CASE("steps") {
  const PatternSplit digits_apart{pattern(R"(\p{N})")};
  CHECK(words_of({digits_apart}, "ab12c") == Words{"ab", "1", "2", "c"});
  CHECK(words_of({digits_apart}, "") == Words{});
  // An empty match cuts without a piece of its own.
  CHECK(words_of({PatternSplit{pattern("(?=b)")}}, "abab") == Words{"a", "ba", "b"});
  CHECK(words_of({DigitSplit{true}}, "ab12\u0663c") == Words{"ab", "1", "2", "\u0663", "c"});
  CHECK(words_of({DigitSplit{false}}, "ab12\u0663c") == Words{"ab", "12\u0663", "c"});
  CHECK(words_of({ByteLevelSplit{.add_prefix_space = true}}, "ab c") == Words{" ab", " c"});
  CHECK(words_of({ByteLevelSplit{.add_prefix_space = true}}, " ab") == Words{" ab"});
  CHECK(words_of({ByteLevelSplit{.use_regex = false}}, "ab c") == Words{"ab c"});
  CHECK(words_of({DigitSplit{true}, ByteLevelSplit{.add_prefix_space = true}}, "a 12") ==
        Words{" a", " ", " 1", " 2"});
  CHECK(words_of({}, "ab c") == Words{"ab c"});
}

TEST_CASE("what becomes of matches: by hand") {
  const auto digits = [](SplitBehavior behavior, bool invert = false) {
    return words_of({PatternSplit{pattern(R"(\p{N})"), behavior, invert}}, "a12b3");
  };
  CHECK(digits(SplitBehavior::isolated) == Words{"a", "1", "2", "b", "3"});
  CHECK(digits(SplitBehavior::removed) == Words{"a", "b"});
  CHECK(digits(SplitBehavior::removed, true) == Words{"1", "2", "3"});
  CHECK(digits(SplitBehavior::contiguous) == Words{"a", "12", "b", "3"});
  CHECK(digits(SplitBehavior::merged_with_previous) == Words{"a1", "2", "b3"});
  CHECK(digits(SplitBehavior::merged_with_next) == Words{"a", "1", "2b", "3"});
}

TEST_CASE("marks in place of spaces: by hand") {
  using Prepend = MetaspaceSplit::Prepend;
  CHECK(words_of({MetaspaceSplit{"_", Prepend::always, true}}, "a b  c") ==
        Words{"_a", "_b", "_", "_c"});
  CHECK(words_of({MetaspaceSplit{"_", Prepend::never, true}}, "a b") == Words{"a", "_b"});
  CHECK(words_of({MetaspaceSplit{"_", Prepend::always, false}}, " a b") == Words{"_a_b"});
  Words words;
  const PreTokenizer first({MetaspaceSplit{"_", Prepend::first, false}});
  for (const bool at_start : {true, false}) {
    first.for_each_word(
        "a", [&](std::string_view word) { words.emplace_back(word); }, at_start);
  }
  CHECK(words == Words{"_a", "a"});
}
