// UTF-8 validity against a decoder that is written the other way round: decode, then encode again.
#include "wanamaker/io/utf8.hpp"

#include <cstdint>
#include <optional>
#include <string>

#include "testing.hpp"
#include "wanamaker/core/random.hpp"

using wanamaker::first_invalid_utf8;

namespace {

std::string encoded(std::uint32_t c) {
  const auto tail = [c](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xc0 | (c >> 6)), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xe0 | (c >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | (c >> 18)), tail(12), tail(6), tail(0)};
}

/// A text is valid at i iff it continues there with the encoding of a code point that is no
/// surrogate; of at most four bytes, the payload bits give the only candidate.
std::optional<std::size_t> first_invalid_slowly(const std::string& text) {
  std::size_t i = 0;
  while (i < text.size()) {
    std::size_t length = 0;
    for (std::size_t n = 1; n <= 4 && i + n <= text.size() && length == 0; ++n) {
      std::uint32_t c = static_cast<unsigned char>(text[i]);
      if (n > 1) c &= 0x7fu >> n;
      for (std::size_t k = 1; k < n; ++k) {
        c = (c << 6) | (static_cast<unsigned char>(text[i + k]) & 0x3fu);
      }
      const bool is_scalar = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
      if (is_scalar && encoded(c) == text.substr(i, n)) length = n;
    }
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("every code point is valid, except surrogates") {
  int wrong = 0;
  for (std::uint32_t c = 0; c <= 0x10ffff; ++c) {
    const bool is_surrogate = c >= 0xd800 && c <= 0xdfff;
    if (first_invalid_utf8(encoded(c)).has_value() != is_surrogate) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(first_invalid_utf8(encoded(0x110000)) == 0);
}

TEST_CASE("every pair of bytes is judged as by the slow decoder, at every alignment") {
  int wrong = 0;
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      std::string text(static_cast<std::size_t>((a + b) % 17), 'x');
      text += {static_cast<char>(a), static_cast<char>(b)};
      text += std::string(static_cast<std::size_t>(b % 11), 'y');
      if (first_invalid_utf8(text) != first_invalid_slowly(text)) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("random texts with damage are judged as by the slow decoder") {
  wanamaker::RandomStream random(2);
  int wrong = 0, invalid = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (std::uint64_t n = random.below(12); n > 0; --n) {
      text += encoded(
          static_cast<std::uint32_t>(random.below(std::uint64_t{1} << (7 + random.below(14)))));
    }
    if (!text.empty() && random.below(2) == 0) {
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    }
    const auto expected = first_invalid_slowly(text);
    invalid += expected.has_value() ? 1 : 0;
    if (first_invalid_utf8(text) != expected) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(invalid > 1000);
  CHECK(invalid < 19'000);
}
