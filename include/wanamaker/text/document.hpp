// A document: the unit that splits, intervals and results are by.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "wanamaker/core/index.hpp"
#include "wanamaker/text/unicode.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Words of a valid UTF-8 text: runs without white space.
inline Index count_words(std::string_view text) {
  Index words = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    const bool is_word = !is_white_space(c.value);
    if (is_word && !inside) ++words;
    inside = is_word;
    at += c.length;
  }
  return words;
}

/// True where a valid UTF-8 text has nothing but white space.
inline bool is_blank(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    if (!is_white_space(c.value)) return false;
    at += c.length;
  }
  return true;
}

/// Bytes and words of a text.
struct TextSize {
  Index bytes = 0;
  Index words = 0;
};

/// One document of a corpus: a text, or token ids that someone else made.
struct Document {
  std::string name{};    ///< title, file name, or what the record calls itself
  Index index = 0;       ///< place in its corpus, from 0
  std::string source{};  ///< file and line (or element) where it begins
  std::variant<std::string, std::vector<TokenId>> content{};
  std::optional<TextSize> given{};  ///< the text as it was given, where it was changed since

  bool has_text() const { return std::holds_alternative<std::string>(content); }
  /// The text, valid UTF-8; has_text() must hold.
  const std::string& text() const { return std::get<std::string>(content); }
  /// Ready token ids, none negative; has_text() must not hold.
  const std::vector<TokenId>& ids() const { return std::get<std::vector<TokenId>>(content); }

  /// Bytes of the text as it was given; 0 for ready ids, whose text is not known.
  Index byte_count() const {
    if (given) return given->bytes;
    return has_text() ? static_cast<Index>(text().size()) : 0;
  }
  /// Words of the text as it was given; 0 for ready ids.
  Index word_count() const {
    if (given) return given->words;
    return has_text() ? count_words(text()) : 0;
  }
  /// True where there is nothing to encode: white space only, or no ids.
  bool is_empty() const { return has_text() ? is_blank(text()) : ids().empty(); }
};

}  // namespace wanamaker::inline WANAMAKER_ABI
