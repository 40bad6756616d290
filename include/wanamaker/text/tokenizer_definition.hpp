// What tokenizer files declare, independent of the form of the files.
#pragma once

#include <cstddef>
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
#include "wanamaker/text/normalizer.hpp"
#include "wanamaker/text/pre_tokenizer.hpp"
#include "wanamaker/text/vocabulary.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The parts of a byte-level BPE tokenizer.
struct TokenizerDefinition {
  std::string where{};  ///< the file, for messages
  Normalization normalization = Normalization::none;
  PreTokenizer pre_tokenizer{};
  std::vector<VocabularyEntry> vocabulary{};
  std::vector<Merge> merges{};
  bool ignore_merges = false;
  std::optional<std::string> unknown_token{};  ///< what stands for a byte without a token
  std::vector<AddedToken> added_tokens{};
  std::optional<std::string> bos{};  ///< spelling of the token that begins a text
  std::optional<std::string> eos{};  ///< spelling of the token that ends one
  bool adds_bos = false;             ///< `add_bos_token` of tokenizer_config.json
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
