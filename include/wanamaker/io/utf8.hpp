// Is a text valid UTF-8, and if not, where does it stop being so?
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "wanamaker/core/version.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline bool is_utf8_continuation(unsigned char c) {
  return (c & 0xc0u) == 0x80u;
}

/// Length of the well-formed sequence that begins at text[i], or 0 (Unicode 15, table 3-7).
inline std::size_t utf8_sequence_length(std::string_view text, std::size_t i) {
  const auto at = [text](std::size_t j) { return static_cast<unsigned char>(text[j]); };
  const std::size_t left = text.size() - i;
  const unsigned char lead = at(i);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (left < length) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if (!is_utf8_continuation(at(i + k))) return 0;
  }
  const unsigned char second = at(i + 1);
  if (lead == 0xe0 && second < 0xa0) return 0;  // overlong
  if (lead == 0xed && second > 0x9f) return 0;  // surrogates
  if (lead == 0xf0 && second < 0x90) return 0;  // overlong
  if (lead == 0xf4 && second > 0x8f) return 0;  // beyond U+10FFFF
  return length;
}

inline bool eight_ascii_bytes(const char* text) {
  std::uint64_t word;
  std::memcpy(&word, text, sizeof word);
  return (word & 0x8080808080808080u) == 0;
}

}  // namespace detail

/// Byte offset of the first sequence that is not well-formed UTF-8; nothing if all of it is.
inline std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (text.size() - i >= 8 && detail::eight_ascii_bytes(text.data() + i)) {
      i += 8;
      continue;
    }
    const std::size_t length = detail::utf8_sequence_length(text, i);
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
