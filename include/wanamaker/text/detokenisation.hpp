// Texts that came as words and marks with spaces between, put back into the form of ordinary prose.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wanamaker/core/version.hpp"
#include "wanamaker/text/unicode.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Which rules are applied to documents before they are encoded.
enum class Detokenisation : std::uint8_t { none, wikitext };

constexpr std::string_view detokenisation_name(Detokenisation d) {
  return d == Detokenisation::none ? "none" : "wikitext";
}

/// The rules with this name, or nothing.
inline std::optional<Detokenisation> detokenisation_of_name(std::string_view name) {
  for (const Detokenisation d : {Detokenisation::none, Detokenisation::wikitext}) {
    if (detokenisation_name(d) == name) return d;
  }
  return std::nullopt;
}

namespace detail {

inline std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t done = 0;
  for (std::size_t at; (at = text.find(from, done)) != text.npos; done = at + from.size()) {
    result.append(text.substr(done, at - done)).append(to);
  }
  return result.append(text.substr(done));
}

/// White space as Python's patterns have it: White_Space and the four separators U+001C to U+001F.
inline bool is_pattern_space(char32_t c) {
  return is_white_space(c) || (c >= 0x1c && c <= 0x1f);
}

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty()) {
    const CodePoint first = decode_utf8(text, 0);
    if (!is_pattern_space(first.value)) break;
    text.remove_prefix(first.length);
  }
  while (!text.empty()) {
    const std::size_t last = previous_code_point(text, text.size());
    if (!is_pattern_space(decode_utf8(text, last).value)) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

/// White space inside each pair taken away: from an `open` to the next `close` after it.
inline std::string with_tight_pairs(std::string_view text, char open, char close) {
  std::string result;
  std::size_t done = 0;
  for (std::size_t begin; (begin = text.find(open, done)) != text.npos;) {
    const std::size_t end = text.find(close, begin + 1);
    if (end == text.npos) break;
    result.append(text.substr(done, begin + 1 - done));
    result.append(trimmed(text.substr(begin + 1, end - begin - 1))) += close;
    done = end + 1;
  }
  return result.append(text.substr(done));
}

struct Replacement {
  std::string_view from, to;
};

}  // namespace detail

/// WikiText's prose as ordinary prose, by the rules that evaluations of GPT-2's time use, in their
/// order; each is applied to the whole document before the next:
///  1. "s '" → "s'"
///  2. " @-@ " → "-", " @,@ " → ",", " @.@ " → "."
///  3. " : " → ": ", and so for ; . ! ? ,
///  4. no white space inside ( ), [ ], { }, " ", ' ': from an opening mark to the next closing one
///  5. "= = = =" → "====", "= = =" → "===", "= =" → "=="
///  6. " ° " → "°", " \n" → "\n", "\n " → "\n", " N " → " 1 ", " 's" → "'s"
/// Faults that belong to the rules: apostrophes pair up as quotation marks do (rule 4), and a lone
/// N becomes a 1, a rule for another corpus (rule 6). They are kept, so that figures are
/// comparable.
inline std::string detokenise_wikitext(std::string_view text) {
  using detail::Replacement;
  static constexpr std::array<Replacement, 10> first{{{"s '", "s'"},
                                                      {" @-@ ", "-"},
                                                      {" @,@ ", ","},
                                                      {" @.@ ", "."},
                                                      {" : ", ": "},
                                                      {" ; ", "; "},
                                                      {" . ", ". "},
                                                      {" ! ", "! "},
                                                      {" ? ", "? "},
                                                      {" , ", ", "}}};
  static constexpr std::array<std::string_view, 5> pairs{"()", "[]", "{}", "\"\"", "''"};
  static constexpr std::array<Replacement, 8> last{{{"= = = =", "===="},
                                                    {"= = =", "==="},
                                                    {"= =", "=="},
                                                    {" \u00b0 ", "\u00b0"},
                                                    {" \n", "\n"},
                                                    {"\n ", "\n"},
                                                    {" N ", " 1 "},
                                                    {" 's", "'s"}}};
  std::string result(text);
  for (const Replacement& r : first) result = detail::replaced(result, r.from, r.to);
  for (const std::string_view pair : pairs) {
    result = detail::with_tight_pairs(result, pair[0], pair[1]);
  }
  for (const Replacement& r : last) result = detail::replaced(result, r.from, r.to);
  return result;
}

/// The text by the rules that are asked for.
inline std::string detokenise(std::string_view text, Detokenisation rules) {
  return rules == Detokenisation::none ? std::string(text) : detokenise_wikitext(text);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
