// What tokenizer files declare, independent of the form of the files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/text/added_tokens.hpp"
#include "wanamaker/text/byte_pair_encoding.hpp"
#include "wanamaker/text/normalizer_steps.hpp"
#include "wanamaker/text/pre_tokenizer.hpp"
#include "wanamaker/text/vocabulary.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What the symbols of a model are before anything merges.
enum class SymbolKind { bytes, characters };

/// The parts of a BPE tokenizer.
struct TokenizerDefinition {
  std::string where{};  ///< the file, for messages
  Normalizer normalizer{};
  PreTokenizer pre_tokenizer{};
  SymbolKind symbols = SymbolKind::bytes;
  std::vector<VocabularyEntry> vocabulary{};
  std::vector<Merge> merges{};
  std::vector<std::int32_t> merge_ranks{};  ///< where they are not the places in `merges`
  bool ignore_merges = false;
  std::optional<std::string> unknown_token{};  ///< what stands for a symbol without a token
  bool fuse_unknown = false;                   ///< several unknown symbols in a row are one token
  bool byte_fallback = false;       ///< characters without a token become tokens of bytes
  std::string space_mark{};         ///< decodes to a space, where symbols are characters
  bool strips_first_space = false;  ///< decoding drops a space that encoding put in front
  std::vector<AddedToken> added_tokens{};
  std::optional<std::string> bos{};       ///< spelling of the token that begins a text
  std::optional<std::string> eos{};       ///< spelling of the token that ends one
  bool adds_bos = false;                  ///< the file asks for `bos` before every text
  std::vector<TokenId> template_begin{};  ///< what `post_processor` puts before a text
  std::vector<TokenId> template_end{};    ///< what it puts after one
};

namespace detail {

/// Finds ids by spelling while a definition is read. Refers to the entries' strings.
class SpellingIndex {
 public:
  explicit SpellingIndex(const std::vector<VocabularyEntry>& entries) {
    ids_.reserve(entries.size());
    for (const VocabularyEntry& entry : entries) ids_.emplace(entry.spelling, entry.id);
  }

  std::optional<TokenId> find(std::string_view spelling) const {
    const auto found = ids_.find(spelling);
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }

  /// The merge of two tokens. Throws FormatError where one of the three is not in the vocabulary;
  /// `place` is the merge's line or index, counted from 0.
  Merge merge(std::string_view left, std::string_view right, const std::string& where,
              std::size_t place) const {
    const std::string merged = std::string(left).append(right);
    return {required(left, where, place), required(right, where, place),
            required(merged, where, place)};
  }

 private:
  TokenId required(std::string_view spelling, const std::string& where, std::size_t place) const {
    if (const std::optional<TokenId> id = find(spelling)) return *id;
    throw FormatError({.id = "tokenizer/merge-of-absent-token",
                       .where = where + ", merge " + std::to_string(place),
                       .what = "token not in the vocabulary",
                       .found = in_quotes(spelling),
                       .mend = "use vocabulary and merges of one tokenizer"});
  }

  std::unordered_map<std::string_view, TokenId> ids_;
};

/// Splits "left right". Throws FormatError unless there is exactly one space, inside.
inline std::pair<std::string_view, std::string_view> split_merge(std::string_view merge,
                                                                 const std::string& where,
                                                                 std::size_t place) {
  const std::size_t space = merge.find(' ');
  const bool fits = space != std::string_view::npos && space > 0 && space + 1 < merge.size() &&
                    merge.find(' ', space + 1) == std::string_view::npos;
  if (fits) return {merge.substr(0, space), merge.substr(space + 1)};
  throw FormatError({.id = "tokenizer/merge-form",
                     .where = where + ", merge " + std::to_string(place),
                     .what = "malformed merge",
                     .expected = "two tokens with one space between them",
                     .found = in_quotes(merge),
                     .mend = "download the tokenizer again"});
}

}  // namespace detail

}  // namespace wanamaker::inline WANAMAKER_ABI
