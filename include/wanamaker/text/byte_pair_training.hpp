// Training of a byte-level BPE tokenizer: from the 256 bytes on, the most frequent pair of
// neighbours becomes a token, again and again (Sennrich et al. 2016; on bytes, Radford et al.
// 2019).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/core/progress.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/text/byte_level.hpp"
#include "wanamaker/text/byte_level_words.hpp"
#include "wanamaker/text/tokenizer_definition.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// How often each word (a match of GPT-2's pattern) occurs in the texts that a tokenizer is trained
/// on. Needs memory for the distinct words only.
class WordCounts {
 public:
  /// Adds one text; words never join over two. Throws DataError for invalid UTF-8; `where` names
  /// the text in the message.
  void add(std::string_view text, const std::string& where = "text") {
    check_utf8(text, where);
    for_each_byte_level_word(text, [this](std::string_view word) {
      scratch_.assign(word);
      ++counts_[scratch_];
    });
  }

  /// Distinct words.
  Index size() const { return static_cast<Index>(counts_.size()); }

  /// The words and their counts in order of their bytes, so that nothing depends on hashing.
  std::vector<std::pair<std::string_view, Index>> sorted() const {
    std::vector<std::pair<std::string_view, Index>> words(counts_.begin(), counts_.end());
    std::sort(words.begin(), words.end());
    return words;
  }

 private:
  std::unordered_map<std::string, Index> counts_;
  std::string scratch_;
};

/// Size and special tokens of a vocabulary that is trained.
struct BytePairTrainingOptions {
  Index vocabulary_size = 4096;  ///< at most: special tokens, the 256 bytes and merged tokens
  Index least_count = 2;         ///< a pair that occurs less often is not merged
  std::vector<std::string> special_tokens{"<|endoftext|>"};  ///< get the first ids, in this order
};

namespace detail {

/// The state of a training: words as tokens, pairs of neighbours with their counts and places, and
/// a queue of pairs by count. A merge changes the counts of the pairs beside it only.
class BytePairTraining {
 public:
  BytePairTraining(const WordCounts& words, const BytePairTrainingOptions& options)
      : options_(options) {
    for (const std::string& token : options.special_tokens) add_token(token);
    std::array<char32_t, 256> characters = byte_level_characters();
    std::sort(characters.begin(), characters.end());
    for (const char32_t character : characters) {
      std::string spelling;
      append_utf8(character, spelling);
      add_token(spelling);
    }
    for (const auto& [word, count] : words.sorted()) add_word(word, count);
    for (const auto& [key, pair] : pairs_) queue_.push({pair.count, key});
  }

  void run(const Progress& progress) {
    while (size() < options_.vocabulary_size) {
      const std::optional<Key> best = take_best();
      if (!best) break;
      merge(*best);
      if (merges_.size() % 64 == 0) progress("merges", size(), options_.vocabulary_size);
    }
    progress("merges", size(), size());
  }

  std::vector<VocabularyEntry> take_vocabulary() { return std::move(vocabulary_); }
  std::vector<Merge> take_merges() { return std::move(merges_); }

 private:
  /// Left token in the upper half, right one in the lower.
  using Key = std::uint64_t;
  struct Word {
    std::vector<TokenId> tokens;
    Index count = 0;
  };
  struct Pair {
    Index count = 0;
    std::vector<std::size_t> words{};  // where it occurs, or did once; ascending within one merge
  };
  struct Candidate {
    Index count = 0;
    Key key = 0;
    /// Below: less frequent; of equals the one with the larger tokens.
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  static Key key_of(TokenId left, TokenId right) {
    return (Key{static_cast<std::uint32_t>(left)} << 32) | static_cast<std::uint32_t>(right);
  }
  Index size() const { return static_cast<Index>(vocabulary_.size()); }

  /// The id of a spelling, a new one where it has none: two merges may give the same token.
  TokenId add_token(const std::string& spelling) {
    const auto [place, is_new] = ids_.try_emplace(spelling, static_cast<TokenId>(size()));
    if (is_new) vocabulary_.push_back({spelling, place->second});
    return place->second;
  }

  void add_word(std::string_view word, Index count) {
    Word& added = words_.emplace_back();
    added.count = count;
    for (const char byte : word) added.tokens.push_back(ids_.at(byte_level_spelling({&byte, 1})));
    for (std::size_t i = 0; i + 1 < added.tokens.size(); ++i) {
      change(key_of(added.tokens[i], added.tokens[i + 1]), count, words_.size() - 1);
    }
  }

  void change(Key key, Index by, std::size_t word) {
    Pair& pair = pairs_[key];
    pair.count += by;
    if (by > 0 && (pair.words.empty() || pair.words.back() != word)) pair.words.push_back(word);
  }

  /// The most frequent pair. The queue's counts may be out of date; such entries go back into it.
  std::optional<Key> take_best() {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const Index count = pairs_.at(best.key).count;
      if (count == best.count) {
        if (count < std::max<Index>(options_.least_count, 1)) return std::nullopt;
        return best.key;
      }
      if (count > 0 && count < best.count) queue_.push({count, best.key});
    }
    return std::nullopt;
  }

  void merge(Key key) {
    const auto left = static_cast<TokenId>(key >> 32);
    const auto right = static_cast<TokenId>(key & 0xffffffffu);
    const std::string spelling = spelling_of(left) + spelling_of(right);
    const Merge merge{left, right, add_token(spelling)};
    merges_.push_back(merge);
    const Pair merged = std::exchange(pairs_[key], {});
    raised_.clear();
    for (const std::size_t word : merged.words) merge_in(word, merge);
    pairs_[key].count = 0;
    std::sort(raised_.begin(), raised_.end());
    raised_.erase(std::unique(raised_.begin(), raised_.end()), raised_.end());
    for (const Key pair : raised_) queue_.push({pairs_[pair].count, pair});
  }

  const std::string& spelling_of(TokenId id) const {
    return vocabulary_[static_cast<std::size_t>(id)].spelling;
  }

  void merge_in(std::size_t number, const Merge& merge) {
    Word& word = words_[number];
    std::vector<TokenId>& tokens = word.tokens;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (tokens[i] != merge.left || tokens[i + 1] != merge.right) continue;
      tokens[i] = merge.merged;
      tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      if (i > 0) {
        replace_pair(key_of(tokens[i - 1], merge.left), key_of(tokens[i - 1], merge.merged),
                     number);
      }
      if (i + 1 < tokens.size()) {
        replace_pair(key_of(merge.right, tokens[i + 1]), key_of(merge.merged, tokens[i + 1]),
                     number);
      }
    }
  }

  void replace_pair(Key gone, Key come, std::size_t word) {
    change(gone, -words_[word].count, word);
    change(come, words_[word].count, word);
    raised_.push_back(come);
  }

  const BytePairTrainingOptions& options_;
  std::vector<VocabularyEntry> vocabulary_;
  std::unordered_map<std::string, TokenId> ids_;
  std::vector<Merge> merges_;
  std::vector<Word> words_;
  std::unordered_map<Key, Pair> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<Key> raised_;  // pairs that the current merge made more frequent
};

inline void check_training_options(const BytePairTrainingOptions& options) {
  const Index least = 256 + static_cast<Index>(options.special_tokens.size());
  if (options.vocabulary_size < least || options.vocabulary_size > INT32_MAX) {
    throw DataError({.id = "tokenizer/vocabulary-size",
                     .where = "train_byte_level_tokenizer",
                     .what = "impossible vocabulary size",
                     .expected = "at least " + std::to_string(least) +
                                 " (256 bytes and the special tokens) and at most 2147483647",
                     .found = std::to_string(options.vocabulary_size),
                     .mend = "ask for a larger vocabulary"});
  }
  std::vector<std::string> tokens = options.special_tokens;
  std::sort(tokens.begin(), tokens.end());
  const auto is_unusable = [](const std::string& token) {
    return token.size() < 3 || token.size() > AddedTokenMatcher::longest_content ||
           first_invalid_utf8(token);
  };
  auto fault = std::find_if(tokens.begin(), tokens.end(), is_unusable);
  if (fault == tokens.end()) fault = std::adjacent_find(tokens.begin(), tokens.end());
  if (fault == tokens.end()) return;
  throw DataError({.id = "tokenizer/special-token",
                   .where = "train_byte_level_tokenizer",
                   .what = "unusable special token",
                   .expected = "different texts of 3 to 256 bytes in UTF-8",
                   .found = in_quotes(*fault),
                   .mend = "name special tokens as <|endoftext|> is"});
}

}  // namespace detail

/// Trains a tokenizer: GPT-2's split into words, and merges until the vocabulary is full or no pair
/// occurs `least_count` times. Of equally frequent pairs the one with the smaller left id is first,
/// then that with the smaller right id, so that the words' counts alone determine the result. Ids
/// and merges are those of `BpeTrainer` of the package `tokenizers` with ByteLevel's alphabet.
/// Special tokens are not looked for in the texts: leave them out. The first special token begins
/// and ends texts. Stage of the progress: "merges", in tokens. Throws DataError for impossible
/// options, Cancelled.
inline TokenizerDefinition train_byte_level_tokenizer(const WordCounts& words,
                                                      const BytePairTrainingOptions& options = {},
                                                      const Progress& progress = {}) {
  detail::check_training_options(options);
  detail::BytePairTraining training(words, options);
  training.run(progress);
  TokenizerDefinition definition{.where = "trained tokenizer"};
  definition.pre_tokenizer = PreTokenizer({ByteLevelSplit{}});
  definition.vocabulary = training.take_vocabulary();
  definition.merges = training.take_merges();
  TokenId id = 0;
  for (const std::string& token : options.special_tokens) {
    definition.added_tokens.push_back({.id = id++, .content = token, .special = true});
  }
  if (!options.special_tokens.empty()) {
    definition.bos = definition.eos = options.special_tokens.front();
  }
  return definition;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
