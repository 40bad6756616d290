// What one step of training sees: windows of a token sequence, drawn by step number alone, so that
// a resumed run sees what it would have seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/nn/transformer.hpp"
#include "wanamaker/text/tokenized_corpus.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Sequences packed one after the other, and what they predict.
struct TrainingBatch {
  std::vector<TokenId> tokens{};
  std::vector<Index> offsets{};  ///< of the sequences, from 0 to tokens.size()
  ScoredPositions scored{};
};

/// All documents in one sequence, `separator` before each.
inline std::vector<TokenId> joined_documents(const TokenizedCorpus& corpus, TokenId separator) {
  std::vector<TokenId> tokens;
  tokens.reserve(static_cast<std::size_t>(corpus.token_count()) + corpus.documents.size());
  for (const TokenizedDocument& document : corpus.documents) {
    tokens.push_back(separator);
    tokens.insert(tokens.end(), document.ids.begin(), document.ids.end());
  }
  return tokens;
}

/// Windows of `window` tokens, each predicting its successor within the sequence: the last one the
/// token after the window. Their beginnings are drawn uniformly, with replacement.
class WindowSampler {
 public:
  /// Refers to the tokens, which must outlive it. Throws DataError where there are no `window` + 1
  /// tokens, or no window is asked for.
  WindowSampler(std::span<const TokenId> tokens, Index window, Index sequences, std::uint64_t seed)
      : tokens_(tokens), window_(window), sequences_(sequences), seed_(seed) {
    const Index count = static_cast<Index>(tokens.size());
    if (window >= 1 && sequences >= 1 && count > window) return;
    throw DataError(
        {.id = "training/too-few-tokens",
         .where = "WindowSampler",
         .what = "no window can be drawn",
         .expected = "at least one window of at least 1 token, and more tokens than " +
                     std::to_string(window),
         .found = std::to_string(sequences) + " windows, " + std::to_string(count) + " tokens",
         .mend = "give more text, or use shorter windows"});
  }

  /// Batch number 0, 1, …; a function of the number, the seed and the tokens.
  TrainingBatch operator()(Index number) const {
    TrainingBatch batch;
    batch.offsets.push_back(0);
    RandomStream random(seed_, static_cast<std::uint64_t>(number));
    for (Index s = 0; s < sequences_; ++s) {
      const auto places = tokens_.size() - static_cast<std::size_t>(window_);
      append(static_cast<std::size_t>(random.below(places)), batch);
    }
    return batch;
  }

  /// SHA-256 of all that the batches depend on: tokens, window, sequences a batch, seed.
  std::string hash() const {
    Sha256 hash;
    for (const TokenId id : tokens_) hash.update_number(static_cast<std::uint64_t>(id));
    return hash.update_number(static_cast<std::uint64_t>(window_))
        .update_number(static_cast<std::uint64_t>(sequences_))
        .update_number(seed_)
        .hex();
  }

 private:
  void append(std::size_t begin, TrainingBatch& batch) const {
    for (std::size_t i = 0; i < static_cast<std::size_t>(window_); ++i) {
      batch.scored.rows.push_back(static_cast<TokenId>(batch.tokens.size()));
      batch.scored.targets.push_back(tokens_[begin + i + 1]);
      batch.tokens.push_back(tokens_[begin + i]);
    }
    batch.offsets.push_back(static_cast<Index>(batch.tokens.size()));
  }

  std::span<const TokenId> tokens_;
  Index window_;
  Index sequences_;
  std::uint64_t seed_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
