// UTF-8 decoding, character classes, GPT-2's spelling of bytes.
#include "wanamaker/text/unicode.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "text_testing.hpp"
#include "wanamaker/text/byte_level.hpp"
#include "wanamaker/text/utf8.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

TEST_CASE("every scalar value goes to UTF-8 and back, and back from its end") {
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c == 0xd800) c = 0xe000;
    std::string text = "x";
    append_utf8(c, text);
    const CodePoint decoded = decode_utf8(text, 1);
    const bool same = decoded.value == c && decoded.length == text.size() - 1 &&
                      previous_code_point(text, text.size()) == 1 && !first_invalid_utf8(text);
    if (!same) FAIL("U+" << static_cast<unsigned long>(c));
  }
}

TEST_CASE("invalid UTF-8 is refused with the place of its first byte") {
  const auto message = [](const std::string& text, std::size_t offset) -> std::string {
    try {
      check_utf8(text, "some.txt", offset);
    } catch (const DataError& error) {
      CHECK(error.id() == "text/invalid-utf8");
      return error.what();
    }
    return "";
  };
  CHECK(message("good \u00e9\u4e16\U0001f600", 0) == "");
  CHECK(message("abc\xff", 0).find("some.txt, byte 3: ") == 0);
  CHECK(message("abc\xff", 0).find("0xff") != std::string::npos);
  CHECK(message("0123456789\xc3(", 100).find("byte 110") != std::string::npos);
  CHECK(message("\u00e9\xed\xa0\x80", 0).find("byte 2") != std::string::npos);  // a surrogate
  CHECK(message("ab\xe4\xb8", 0).find("byte 2") != std::string::npos);          // cut off
}

TEST_CASE("white space is the property's 25 characters") {
  std::set<char32_t> expected = {0x20, 0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
  for (char32_t c = 0x09; c <= 0x0d; ++c) expected.insert(c);
  for (char32_t c = 0x2000; c <= 0x200a; ++c) expected.insert(c);
  REQUIRE(expected.size() == 25);
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (is_white_space(c) != (expected.count(c) == 1)) FAIL("U+" << static_cast<unsigned long>(c));
  }
}

TEST_CASE("classes of known characters") {
  for (const char32_t c : {U'a', U'Z', U'é', U'ж', U'世', U'ˈ', U'ª'}) CHECK(is_letter(c));
  for (const char32_t c : {U'7', U'²', U'½', U'Ⅷ', U'٣'}) CHECK(is_number(c));
  for (const char32_t c : {U'_', U'-', U' ', U'\u0301', U'€', U'\ue000', U'\U000e0001'}) {
    CHECK(!is_letter(c));
    CHECK(!is_number(c));
  }
  for (const char32_t c : {U'a', U'_', U'7', U'\u0301', U'Ⅷ', U'ⓐ', U'\u200d', U'\u203f'}) {
    CHECK(is_word_character(c));
  }
  for (const char32_t c : {U' ', U'-', U'½', U'€', U'\u200b', U'😀'}) CHECK(!is_word_character(c));
}

TEST_CASE("each byte has a character of its own") {
  std::map<std::string, int> bytes;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    const std::string spelling = byte_level_spelling(one);
    CHECK(bytes.emplace(spelling, byte).second);
    REQUIRE(bytes_of_spelling(spelling).has_value());
    CHECK(*bytes_of_spelling(spelling) == one);
  }
  // From GPT-2's vocabulary.
  CHECK(byte_level_spelling(" the\n") == "ĠtheĊ");
  CHECK(byte_level_spelling("\u00e9") == "Ã©");
  CHECK(byte_level_spelling("\xad") == "Ń");
  CHECK(byte_level_spelling("\x7f") == "ġ");
  CHECK(byte_level_spelling(std::string(1, '\0')) == "Ā");
}

TEST_CASE("a character that stands for no byte makes a spelling literal") {
  for (const char* spelling : {"a b", "世", "\u0144", "\u00ad", "\n"}) {
    CHECK(!bytes_of_spelling(spelling));
  }
}
