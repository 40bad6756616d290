// Unicode normalisation forms and lower case, as tokenizers use them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/text/third_party/utf8proc.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

struct CodePointRange {
  char32_t first, last;
};

/// Starters that NFC leaves alone whatever stands beside them, unless a mark or a Hangul jamo does,
/// and those are in none of the ranges. Unicode's stability policy keeps this true for all
/// versions; the tests compare each code point with utf8proc. Not complete: what is missing only
/// takes the slower way.
inline constexpr std::array<CodePointRange, 10> nfc_inert{{{0x0000, 0x02ff},
                                                           {0x0400, 0x0482},
                                                           {0x048a, 0x052f},
                                                           {0x2010, 0x2027},
                                                           {0x2030, 0x205e},
                                                           {0x20a0, 0x20bf},
                                                           {0x3001, 0x3029},
                                                           {0x3041, 0x3096},
                                                           {0x30a1, 0x30fa},
                                                           {0x3400, 0x4db5}}};

inline bool is_nfc_inert(char32_t c) {
  if (c >= 0x4e00 && c <= 0x9fa5) return true;  // CJK unified ideographs
  if (c >= 0xac00 && c <= 0xd7a3) return true;  // Hangul syllables
  for (const CodePointRange& range : nfc_inert) {
    if (c <= range.last) return c >= range.first;
  }
  return false;
}

inline constexpr utf8proc_option_t canonical = UTF8PROC_DECOMPOSE;
inline constexpr utf8proc_option_t compatible =
    static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);

inline void append_decomposition(char32_t c, utf8proc_option_t form,
                                 std::vector<utf8proc_int32_t>& characters) {
  std::array<utf8proc_int32_t, 32> parts{};  // the longest decompositions have 4 and 18
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                              static_cast<utf8proc_ssize_t>(parts.size()), form, nullptr);
  if (count < 0 || count > static_cast<utf8proc_ssize_t>(parts.size())) {
    throw DataError({.id = "text/normalisation",
                     .where = form == canonical ? "NFC" : "NFKC",
                     .what = "utf8proc cannot decompose a character",
                     .found = "U+" + std::to_string(static_cast<unsigned long>(c)),
                     .mend = "use a newer utf8proc"});
  }
  characters.insert(characters.end(), parts.begin(), parts.begin() + count);
}

/// Canonical ordering: each run of marks sorted by class, equal ones left in order. Not by
/// utf8proc, whose exchange sort takes quadratic time for long runs.
inline void order_marks(std::vector<utf8proc_int32_t>& characters) {
  const auto mark_class = [](utf8proc_int32_t c) {
    return utf8proc_get_property(c)->combining_class;
  };
  const auto is_starter = [&](utf8proc_int32_t c) { return mark_class(c) == 0; };
  for (auto run = characters.begin(); run != characters.end();) {
    const auto end = std::find_if(run, characters.end(), is_starter);
    std::stable_sort(run, end, [&](auto a, auto b) { return mark_class(a) < mark_class(b); });
    run = std::find_if_not(end, characters.end(), is_starter);
  }
}

inline void append_composed(std::string_view text, utf8proc_option_t form, std::string& result) {
  std::vector<utf8proc_int32_t> characters;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    append_decomposition(c.value, form, characters);
    at += c.length;
  }
  order_marks(characters);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(characters.data(), static_cast<utf8proc_ssize_t>(characters.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    append_utf8(static_cast<char32_t>(characters[static_cast<std::size_t>(i)]), result);
  }
}

/// First byte at or after `at` of a character that NFC may change, or the end of the text.
inline std::size_t next_nfc_suspect(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0xcc) {  // below U+0300, or within a sequence
      ++at;
      continue;
    }
    const CodePoint c = decode_utf8(text, at);
    if (!is_nfc_inert(c.value)) return at;
    at += c.length;
  }
  return at;
}

/// First byte at or after `at` that is not ASCII, or the end of the text.
inline std::size_t next_beyond_ascii(std::string_view text, std::size_t at) {
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

inline std::size_t next_ascii(std::string_view text, std::size_t at) {
  while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80) ++at;
  return at;
}

/// Only runs around characters that may change are looked at closely; they begin and end at ASCII,
/// which never combines with what precedes it.
template <class NextSuspect>
std::string composed(std::string_view text, utf8proc_option_t form, NextSuspect next_suspect) {
  std::string result;
  std::size_t done = 0;
  while (done < text.size()) {
    const std::size_t suspect = next_suspect(text, done);
    if (suspect == text.size()) break;
    std::size_t begin = suspect;
    while (begin > done && static_cast<unsigned char>(text[begin]) >= 0x80) --begin;
    const std::size_t end = next_ascii(text, suspect);
    result += text.substr(done, begin - done);
    append_composed(text.substr(begin, end - begin), form, result);
    done = end;
  }
  result += text.substr(done);
  return result;
}

}  // namespace detail

/// Unicode normalisation form C of a valid UTF-8 text.
inline std::string nfc(std::string_view text) {
  return detail::composed(text, detail::canonical, detail::next_nfc_suspect);
}

/// True where form C changes nothing, by a look at each character. False says nothing.
inline bool is_surely_nfc(std::string_view text) {
  return detail::next_nfc_suspect(text, 0) == text.size();
}

/// Unicode normalisation form KC of a valid UTF-8 text.
inline std::string nfkc(std::string_view text) {
  return detail::composed(text, detail::compatible, detail::next_beyond_ascii);
}

/// Each character's lower case, whatever stands beside it.
inline std::string lower_case(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    at += c.length;
    const auto lower = utf8proc_tolower(static_cast<utf8proc_int32_t>(c.value));
    append_utf8(c.value == 0x130 ? U'i' : static_cast<char32_t>(lower), result);
    if (c.value == 0x130) append_utf8(0x307, result);  // the one that becomes two
  }
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
