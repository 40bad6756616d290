// UTF-8 texts: refusal with the place of the first fault, decoding, encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A Unicode scalar value and the number of bytes that spell it.
struct CodePoint {
  char32_t value = 0;
  std::size_t length = 0;
};

/// Throws DataError with the byte offset of the first fault; `where` names the text, and `offset`
/// is the place of its first byte there.
inline void check_utf8(std::string_view text, const std::string& where, std::size_t offset = 0) {
  const std::optional<std::size_t> fault = first_invalid_utf8(text);
  if (!fault) return;
  constexpr const char* digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(text[*fault]);
  throw DataError(
      {.id = "text/invalid-utf8",
       .where = where + ", byte " + std::to_string(offset + *fault),
       .what = "not valid UTF-8",
       .expected = "a well-formed sequence",
       .found = std::string("a faulty one at byte 0x") + digits[byte >> 4] + digits[byte & 15u],
       .mend = "convert the text to UTF-8"});
}

/// The code point at `at`. The text must be valid and `at` the first byte of a sequence.
inline CodePoint decode_utf8(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return std::uint32_t{static_cast<unsigned char>(text[at + i])};
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {static_cast<char32_t>(lead), 1};
  if (lead < 0xe0) return {static_cast<char32_t>(((lead & 0x1fu) << 6) | (byte(1) & 0x3fu)), 2};
  if (lead < 0xf0) {
    return {static_cast<char32_t>(((lead & 0x0fu) << 12) | ((byte(1) & 0x3fu) << 6) |
                                  (byte(2) & 0x3fu)),
            3};
  }
  return {static_cast<char32_t>(((lead & 0x07u) << 18) | ((byte(1) & 0x3fu) << 12) |
                                ((byte(2) & 0x3fu) << 6) | (byte(3) & 0x3fu)),
          4};
}

/// First byte of the code point that ends before `at` (> 0) in a valid text.
inline std::size_t previous_code_point(std::string_view text, std::size_t at) {
  do --at;
  while (at > 0 && detail::is_utf8_continuation(static_cast<unsigned char>(text[at])));
  return at;
}

/// Adds the UTF-8 form of a scalar value (≤ U+10FFFF, no surrogate).
inline void append_utf8(char32_t value, std::string& text) {
  const auto add = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
  const auto v = static_cast<std::uint32_t>(value);
  if (v < 0x80) return add(v);
  if (v < 0x800) {
    add(0xc0u | (v >> 6));
  } else if (v < 0x10000) {
    add(0xe0u | (v >> 12));
    add(0x80u | ((v >> 6) & 0x3fu));
  } else {
    add(0xf0u | (v >> 18));
    add(0x80u | ((v >> 12) & 0x3fu));
    add(0x80u | ((v >> 6) & 0x3fu));
  }
  add(0x80u | (v & 0x3fu));
}

}  // namespace wanamaker::inline WANAMAKER_ABI
