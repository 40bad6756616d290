// NFC: by hand, against utf8proc's own way, and the exactness of the short cut.
#include "wanamaker/text/normalizer.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "text_testing.hpp"
#include "wanamaker/text/normalizer_steps.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

/// The whole text through utf8proc at once.
std::string utf8proc_nfc(const std::string& text) {
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &result,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  REQUIRE(size >= 0);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, std::free);
  return {reinterpret_cast<const char*>(result), static_cast<std::size_t>(size)};
}

}  // namespace

TEST_CASE("NFC by hand") {
  CHECK(nfc("") == "");
  CHECK(nfc("plain") == "plain");
  CHECK(nfc("cafe\u0301 au lait") == "caf\u00e9 au lait");
  CHECK(nfc("\u00e9") == "\u00e9");
  CHECK(nfc("\u212b") == "\u00c5");               // the sign of the Ångström
  CHECK(nfc("e\u0301\u0323") == "\u1eb9\u0301");  // marks are put in order first
  CHECK(nfc("\u1100\u1161\u11a8") == "\uac01");   // Hangul
  CHECK(nfc("\uac00\u11a8") == "\uac01");
  CHECK(nfc("\u0958") == "\u0915\u093c");            // excluded from composition
  CHECK(nfc("=\u0338 <\u0338") == "\u2260 \u226e");  // ASCII takes part where a mark follows
  CHECK(nfc("\u304b\u3099") == "\u304c");
}

TEST_CASE("NFC equals utf8proc's, and again gives the same") {
  RandomStream random(11);
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text;
    for (std::uint64_t i = random.below(12); i-- > 0;) {
      const std::uint64_t kind = random.below(4);
      if (kind == 0) append_utf8(static_cast<char32_t>(0x300 + random.below(0x70)), text);
      if (kind == 1) append_utf8(static_cast<char32_t>(0x1100 + random.below(0x100)), text);
      if (kind == 2) append_utf8(static_cast<char32_t>(0x41 + random.below(0x200)), text);
      if (kind == 3) append_utf8(random_character(random), text);
    }
    CAPTURE(text);
    CHECK(nfc(text) == utf8proc_nfc(text));
    CHECK(nfc(nfc(text)) == nfc(text));
  }
}

TEST_CASE("characters taken for inert are starters that no other changes") {
  std::set<char32_t> second;  // characters that some composition ends with
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c == 0xd800) c = 0xe000;
    std::vector<utf8proc_int32_t> parts;
    detail::append_decomposition(c, detail::canonical, parts);
    if (parts.size() > 1) second.insert(static_cast<char32_t>(parts.back()));
  }
  int inert = 0;
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (!detail::is_nfc_inert(c)) continue;
    ++inert;
    std::string text;
    append_utf8(c, text);
    const bool starter =
        utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class == 0;
    if (!starter || utf8proc_nfc(text) != text || second.count(c) != 0) {
      FAIL("U+" << static_cast<unsigned long>(c));
    }
  }
  CHECK(inert > 39000);
}

TEST_CASE("a long run of marks in the wrong order is sorted") {
  std::string text = "a", expected = "\u1ea1";
  const int count = 20000;
  for (int i = 0; i < count; ++i) text += "\u0301\u0323";
  for (int i = 1; i < count; ++i) expected += "\u0323";
  for (int i = 0; i < count; ++i) expected += "\u0301";
  CHECK(nfc(text) == expected);
}

TEST_CASE("text that needs nothing is not copied") {
  std::string storage;
  const std::string text = "na\u00efve \u2013 \u4e16\u754c";
  CHECK(Normalizer({NfcStep{}}).apply(text, storage).data() == text.data());
  const std::string marked = "e\u0301";
  CHECK(Normalizer().apply(marked, storage).data() == marked.data());
  CHECK(Normalizer({NfcStep{}}).apply(marked, storage) == "\u00e9");
}

TEST_CASE("compatibility forms and lower case, character by character") {
  CHECK(nfkc("plain") == "plain");
  CHECK(nfkc("\ufb01\u2460\u00b2") == "fi12");
  CHECK(nfkc("e\u0301 \uff76\uff9e") == "\u00e9 \u30ac");
  CHECK(lower_case("\u0391\u03a3 \u00c5B") == "\u03b1\u03c3 \u00e5b");  // no final sigma
  CHECK(lower_case("\u0130") == "i\u0307");
}

TEST_CASE("replacements make a text longer up to a bound") {
  // Four steps of a hostile file made 4 GiB of one letter.
  std::string storage;
  const std::string longest(256, 'a');
  const ReplaceTextStep text{"a", longest};
  const ReplaceStep pattern{Regex("a?", "test"), longest};
  CHECK(Normalizer({text}).apply("a", storage) == longest);
  CHECK(Normalizer({text, text}).apply("a", storage).size() == 256 * 256);
  for (const Normalizer& normalizer :
       {Normalizer({text, text, text, text}), Normalizer({pattern, pattern, pattern, pattern})}) {
    CHECK(error_id([&] { normalizer.apply("a", storage); }) == "text/normalised-length");
  }
  const std::string spaces(100'000, ' ');
  CHECK(Normalizer({ReplaceTextStep{" ", "\u2581"}}).apply(spaces, storage).size() == 300'000);
}

TEST_CASE("steps are applied in order") {
  std::string storage;
  const Normalizer normalizer({PrependStep{"_"}, ReplaceTextStep{" ", "_"}, LowercaseStep{}});
  CHECK(normalizer.apply("A B", storage) == "_a_b");
  CHECK(normalizer.apply("", storage).empty());
  CHECK(Normalizer({ReplaceStep{Regex("a+", "test"), "<>"}}).apply("caab", storage) == "c<>b");
}
