// Documents cut into windows, windows packed into batches: which tokens are run together and which
// of them are scored.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/nn/transformer.hpp"
#include "wanamaker/text/tokenized_corpus.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// How a document of N tokens becomes windows: they begin at 0, S, 2S, … and end with the document;
/// a token is scored in the first window that holds it, unless it is the window's first. With
/// S = W the first token of every window is context only; with S < W only the document's first is.
/// `bos` puts a token before each window, so that the document's first token is scored too.
struct WindowRule {
  Index window = 0;
  Index stride = 0;
  std::optional<TokenId> bos{};
  Index truncation = 0;  ///< tokens used of a document at most; 0: all
};

/// A document's tokens [begin, begin + length), scored from `first_scored` on (counted from begin).
struct Window {
  Index begin = 0;
  Index length = 0;
  Index first_scored = 0;

  friend bool operator==(const Window&, const Window&) = default;
};

/// The windows of a document of `tokens` tokens. Throws ProtocolError for an impossible rule.
inline std::vector<Window> windows_of(Index tokens, const WindowRule& rule) {
  const Index room = rule.window - (rule.bos ? 1 : 0);
  if (room < 1 || rule.stride < 1 || rule.stride > room || (!rule.bos && rule.window < 2)) {
    throw ProtocolError({.id = "protocol/window",
                         .where = "windows_of",
                         .what = "impossible window and stride",
                         .expected = "2 <= window, 1 <= stride <= window",
                         .found = "window " + std::to_string(rule.window) + ", stride " +
                                  std::to_string(rule.stride),
                         .mend = "choose a longer --window or a shorter --stride"});
  }
  const Index n = rule.truncation > 0 ? std::min(tokens, rule.truncation) : tokens;
  const Index context = rule.bos ? 0 : 1;
  std::vector<Window> windows;
  Index covered = 0;
  for (Index begin = 0; covered < n; begin += rule.stride) {
    const Index length = std::min(room, n - begin);
    windows.push_back({begin, length, std::max(context, covered - begin)});
    covered = begin + length;
  }
  return windows;
}

/// Some windows packed for one forward pass.
struct EvaluationBatch {
  std::vector<TokenId> tokens;
  std::vector<Index> offsets{0};
  ScoredPositions scored;
  Index first_loss = 0;  ///< where this batch's losses begin among all losses
};

/// The windows of some documents in order, and where each document's losses lie.
struct EvaluationSet {
  std::vector<Index> documents;  ///< their numbers in the corpus
  std::vector<EvaluationBatch> batches;
  std::vector<Index> document_offsets{0};  ///< losses of documents[i]: [offsets[i], offsets[i+1])
  Index tokens = 0;                        ///< that are run, context included

  /// Number of scored tokens.
  Index scored() const { return document_offsets.back(); }
};

namespace detail {

inline void append_window(EvaluationBatch& batch, std::span<const TokenId> document,
                          const Window& window, std::optional<TokenId> bos) {
  Index row = static_cast<Index>(batch.tokens.size());
  if (bos) batch.tokens.push_back(*bos);
  for (Index i = 0; i < window.length; ++i, ++row) {
    const TokenId token = document[static_cast<std::size_t>(window.begin + i)];
    // The token at i is predicted by the row before it; with BOS that is row − 1 + 1.
    if (i >= window.first_scored) {
      batch.scored.rows.push_back(static_cast<TokenId>(bos ? row : row - 1));
      batch.scored.targets.push_back(token);
    }
    batch.tokens.push_back(token);
  }
  batch.offsets.push_back(static_cast<Index>(batch.tokens.size()));
}

}  // namespace detail

/// Windows of the chosen documents, packed in order into batches of about `batch_tokens` tokens.
/// The packing depends on the documents alone. Throws DataError where nothing can be scored.
inline EvaluationSet make_evaluation_set(const TokenizedCorpus& corpus,
                                         std::span<const Index> documents, const WindowRule& rule,
                                         Index batch_tokens = 2048) {
  EvaluationSet set;
  set.documents.assign(documents.begin(), documents.end());
  Index losses = 0;
  for (const Index number : documents) {
    const std::vector<TokenId>& ids = corpus.documents[static_cast<std::size_t>(number)].ids;
    for (const Window& window : windows_of(static_cast<Index>(ids.size()), rule)) {
      const bool full =
          set.batches.empty() ||
          static_cast<Index>(set.batches.back().tokens.size()) + window.length > batch_tokens;
      if (full) {
        set.batches.emplace_back();
        set.batches.back().first_loss = losses;
      }
      detail::append_window(set.batches.back(), ids, window, rule.bos);
      losses += std::max<Index>(0, window.length - window.first_scored);
      set.tokens += window.length;
    }
    set.document_offsets.push_back(losses);
  }
  if (losses > 0) return set;
  throw DataError({.id = "data/nothing-to-score",
                   .where = "make_evaluation_set",
                   .what = "no token can be scored",
                   .expected = "a document of at least two tokens",
                   .found = std::to_string(set.tokens) + " tokens in " +
                            std::to_string(documents.size()) + " documents",
                   .mend = "give a longer text"});
}

/// SHA-256 of everything that is run: ids, window borders, scored rows.
inline std::string token_ids_hash(const EvaluationSet& set) {
  Sha256 hash;
  const auto numbers = [&hash](const auto& values) {
    hash.update_number(values.size());
    for (const auto v : values) hash.update_number(static_cast<std::uint64_t>(v));
  };
  for (const EvaluationBatch& batch : set.batches) {
    numbers(batch.tokens);
    numbers(batch.offsets);
    numbers(batch.scored.rows);
  }
  return hash.hex();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
