// Byte-pair encoding whose symbols are characters, as SentencePiece's models have it: characters
// without a token fall back to bytes or to the unknown token.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wanamaker/core/index.hpp"
#include "wanamaker/text/byte_pair_encoding.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What becomes of characters that are no token.
struct CharacterFallback {
  /// The token of each byte ("<0x0A>"); nothing where there are none.
  std::optional<std::array<TokenId, 256>> bytes{};
  std::optional<TokenId> unknown{};
  bool fuse_unknown = false;  ///< one unknown token for several characters in a row
};

/// Encodes words. Immutable, so that any number of threads may use one object.
class CharacterPairEncoding {
 public:
  CharacterPairEncoding() = default;

  /// `tokens`: spellings by id, valid UTF-8, empty where an id is no mergeable token. `ranks` of
  /// the merges, least first, of equal ones the leftmost first; empty: their places in the list.
  /// `mark`: what stands for a space, empty where nothing does. Every id must be one of `tokens`.
  CharacterPairEncoding(std::span<const std::string_view> tokens, std::span<const Merge> merges,
                        std::span<const std::int32_t> ranks, bool ignore_merges, std::string mark,
                        CharacterFallback fallback)
      : characters_(count_of(tokens, is_one_character)),
        merges_(merges, ranks),
        words_(count_of(tokens, is_short)),
        mark_(std::move(mark)),
        fallback_(fallback) {
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      if (!is_one_character(tokens[id])) continue;
      if (characters_.find(tokens[id]) >= 0) continue;
      characters_.insert(tokens[id], static_cast<TokenId>(id));
    }
    cuts_at_marks_ = !ignore_merges && may_cut(tokens);
    std::vector<TokenId> scratch;
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      add_word(tokens[id], static_cast<TokenId>(id), ignore_merges, scratch);
    }
  }

  /// Adds the tokens of a non-empty valid UTF-8 word, all of which is covered.
  void append(std::string_view word, std::vector<TokenId>& ids) const {
    while (cuts_at_marks_) {
      const std::size_t end = next_cut(word);
      if (end == word.size()) break;
      append_part(word.substr(0, end), ids);
      word.remove_prefix(end);
    }
    append_part(word, ids);
  }

  /// True where a word's parts, each from a mark that follows another character to the next, merge
  /// on their own.
  bool cuts_at_marks() const { return cuts_at_marks_; }

  /// True where every text has tokens.
  bool covers_all_text() const { return fallback_.bytes || fallback_.unknown; }

  /// Place of the first character without a token and without a fallback, or the text's size.
  std::size_t first_uncovered(std::string_view text) const {
    if (covers_all_text()) return text.size();
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t length = decode_utf8(text, at).length;
      if (characters_.find(text.substr(at, length)) < 0) break;
      at += length;
    }
    return at;
  }

 private:
  static bool is_one_character(std::string_view token) {
    return !token.empty() && decode_utf8(token, 0).length == token.size();
  }
  static bool is_short(std::string_view token) {
    return !token.empty() && token.size() <= detail::WordTable::longest;
  }
  static std::size_t count_of(std::span<const std::string_view> tokens,
                              bool (*is_counted)(std::string_view)) {
    std::size_t count = 0;
    for (const std::string_view token : tokens) count += std::size_t{is_counted(token)};
    return count;
  }

  /// Where no token has a mark behind another character, no merge reaches across such a place, and
  /// a text may be cut there: its words then merge on their own, with the same result.
  bool may_cut(std::span<const std::string_view> tokens) const {
    if (mark_.empty() || characters_.find(mark_) < 0) return false;
    for (const std::string_view token : tokens) {
      if (next_cut(token) < token.size()) return false;
    }
    return true;
  }

  /// Begin of the first mark that follows another character, or the word's size.
  std::size_t next_cut(std::string_view word) const {
    std::size_t at = 0;
    while (word.substr(at).starts_with(mark_)) at += mark_.size();
    return std::min(word.find(mark_, at), word.size());
  }

  void add_word(std::string_view word, TokenId id, bool ignore_merges,
                std::vector<TokenId>& scratch) {
    if (word.empty()) return;
    if (!is_short(word)) {
      if (ignore_merges) long_words_.emplace(word, id);
      return;
    }
    if (words_.find(word) >= 0) return;
    scratch.clear();
    if (!ignore_merges) append_merged(word, scratch);
    if (ignore_merges || (scratch.size() == 1 && scratch[0] == id)) words_.insert(word, id);
  }

  void append_part(std::string_view word, std::vector<TokenId>& ids) const {
    TokenId id = -1;
    if (word.size() <= detail::WordTable::longest) {
      id = words_.find(word);
    } else if (!long_words_.empty()) {
      const auto found = long_words_.find(std::string(word));
      if (found != long_words_.end()) id = found->second;
    }
    if (id < 0) return append_merged(word, ids);
    ids.push_back(id);
  }

  void append_merged(std::string_view word, std::vector<TokenId>& ids) const {
    const std::size_t begin = ids.size();
    append_symbols(word, ids);
    const std::span<TokenId> symbols = std::span(ids).subspan(begin);
    const std::size_t count = symbols.size() <= detail::ShortMerger::longest
                                  ? detail::ShortMerger(merges_, symbols).run()
                                  : detail::LongMerger(merges_, symbols).run();
    ids.resize(begin + count);
  }

  void append_symbols(std::string_view word, std::vector<TokenId>& ids) const {
    bool after_unknown = false;
    for (std::size_t at = 0, length; at < word.size(); at += length) {
      length = decode_utf8(word, at).length;
      const std::string_view character = word.substr(at, length);
      const TokenId id = characters_.find(character);
      const bool is_unknown = id < 0 && !fallback_.bytes;
      if (id >= 0) {
        ids.push_back(id);
      } else if (fallback_.bytes) {
        for (const char byte : character) {
          ids.push_back((*fallback_.bytes)[static_cast<unsigned char>(byte)]);
        }
      } else if (fallback_.unknown && !(after_unknown && fallback_.fuse_unknown)) {
        ids.push_back(*fallback_.unknown);
      }
      after_unknown = is_unknown;
    }
  }

  detail::WordTable characters_;
  detail::MergeTable merges_;
  detail::WordTable words_;
  std::unordered_map<std::string, TokenId> long_words_;
  std::string mark_;
  bool cuts_at_marks_ = false;
  CharacterFallback fallback_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
