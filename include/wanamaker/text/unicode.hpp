// Character classes that tokenizers' patterns use: \p{L}, \p{N}, \s, \w; widths on a terminal.
#pragma once

#include <algorithm>
#include <cstddef>

#include "wanamaker/core/version.hpp"
#include "wanamaker/text/third_party/utf8proc.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

}  // namespace detail

/// `\p{L}`: general category Lu, Ll, Lt, Lm or Lo.
inline bool is_letter(char32_t c) {
  const utf8proc_category_t k = detail::category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

/// `\p{N}`: general category Nd, Nl or No.
inline bool is_number(char32_t c) {
  const utf8proc_category_t k = detail::category(c);
  return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

/// `\s` as the reference tokenizers read it: Unicode's property White_Space. (PCRE2's `\s` has
/// U+180E besides, which lost that property in Unicode 6.3.)
constexpr bool is_white_space(char32_t c) {
  if (c < 0x80) return c == 0x20 || (c >= 0x09 && c <= 0x0d);
  if (c < 0x1680) return c == 0x85 || c == 0xa0;
  return c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

/// `\w` of Unicode Technical Standard 18, annex C: alphabetic characters, marks, decimal numbers,
/// connector punctuation, and the two joiners.
inline bool is_word_character(char32_t c) {
  switch (detail::category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    case UTF8PROC_CATEGORY_SO:  // the enclosed letters, alphabetic by Other_Alphabetic
      return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
             (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
    case UTF8PROC_CATEGORY_CF:
      return c == 0x200c || c == 0x200d;
    default:
      return is_letter(c);
  }
}

/// Columns that a character takes on a terminal: 2 for wide ones, 0 for combining marks.
inline std::size_t terminal_columns(char32_t c) {
  return static_cast<std::size_t>(
      std::max(0, utf8proc_charwidth(static_cast<utf8proc_int32_t>(c))));
}

}  // namespace wanamaker::inline WANAMAKER_ABI
