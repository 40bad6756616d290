// A gate that knows nothing but the token: its mean δ, shrunk towards the mean of all, with folds
// by document where a table must not see what it is asked about.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/gate/gate.hpp"
#include "wanamaker/gate/gather_element.hpp"
#include "wanamaker/gate/labels.hpp"
#include "wanamaker/stats/folds.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Observed positions: token ids, δ in nats, and the document that each position belongs to.
struct TokenObservations {
  std::span<const TokenId> tokens;
  std::span<const double> delta;
  std::span<const Index> documents;
};

/// How far the table shrinks towards the mean of all tokens.
struct TokenTableOptions {
  /// Observations that the mean of all is worth in each token's mean; negative: estimated from how
  /// much means differ between tokens (variance within / variance between).
  double shrinkage = -1;
  Index folds = 5;  ///< documents are dealt into so many folds in turn, by their number
};

/// Shrunk means of δ by token id, (n·mean + κ·overall)/(n + κ); unseen tokens get the overall mean.
struct TokenTable {
  std::vector<double> expected_delta{};  ///< [V], nats
  double overall = 0;
  double shrinkage = 0;  ///< κ; infinite where tokens do not differ at all
  Index seen_tokens = 0;
};

namespace detail {

/// Number, mean and sum of squared deviations of δ by token (Welford 1962).
struct TokenSums {
  std::vector<double> count;
  std::vector<double> mean;
  std::vector<double> squares;

  explicit TokenSums(Index vocabulary)
      : count(static_cast<std::size_t>(vocabulary)),
        mean(static_cast<std::size_t>(vocabulary)),
        squares(static_cast<std::size_t>(vocabulary)) {}

  void add(TokenId token, double delta) {
    const std::size_t v = static_cast<std::size_t>(token);
    const double step = delta - mean[v];
    count[v] += 1;
    mean[v] += step / count[v];
    squares[v] += step * (delta - mean[v]);
  }
};

inline void check_observations(const TokenObservations& seen, Index vocabulary) {
  check_deltas(seen.delta, "fit_token_table(delta)");
  check_same_length(seen.delta.size(), seen.tokens.size(), "fit_token_table(tokens)");
  check_same_length(seen.delta.size(), seen.documents.size(), "fit_token_table(documents)");
  for (std::size_t i = 0; i < seen.tokens.size(); ++i) {
    if (seen.tokens[i] >= 0 && seen.tokens[i] < vocabulary) continue;
    throw DataError({.id = "data/token-outside-vocabulary",
                     .where = "fit_token_table(tokens), position " + std::to_string(i),
                     .what = "a token id is not in the vocabulary",
                     .expected = "0 to " + std::to_string(vocabulary - 1),
                     .found = std::to_string(seen.tokens[i]),
                     .mend = "use the tokenizer that belongs to the model"});
  }
}

/// Variance within tokens over variance between, by the moments of a one-way layout with groups of
/// unequal size (Searle, Casella and McCulloch 1992); infinite where between is not above 0, or
/// nothing repeats.
inline double estimated_shrinkage(const TokenSums& sums, double overall) {
  double n = 0;
  double groups = 0;
  double within = 0;
  double between = 0;
  double square_counts = 0;
  for (std::size_t v = 0; v < sums.count.size(); ++v) {
    const double count = sums.count[v];
    n += count;
    groups += count > 0 ? 1 : 0;
    within += sums.squares[v];
    between += count * (sums.mean[v] - overall) * (sums.mean[v] - overall);
    square_counts += count * count;
  }
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (groups < 2 || n <= groups) return infinite;
  const double within_mean = within / (n - groups);
  const double size = (n - square_counts / n) / (groups - 1);
  const double variance = (between / (groups - 1) - within_mean) / size;
  return variance > 0 ? within_mean / variance : infinite;
}

/// The table of all observations whose fold is not `left_out` (no folds: of all).
inline TokenTable table_without_fold(const TokenObservations& seen, Index vocabulary,
                                     const TokenTableOptions& options,
                                     std::span<const Index> folds = {}, Index left_out = 0) {
  TokenSums sums(vocabulary);
  double total = 0;
  double count = 0;
  for (std::size_t i = 0; i < seen.delta.size(); ++i) {
    if (!folds.empty() && folds[i] == left_out) continue;
    sums.add(seen.tokens[i], seen.delta[i]);
    total += seen.delta[i];
    count += 1;
  }
  TokenTable table{.overall = count > 0 ? total / count : 0};
  table.shrinkage =
      options.shrinkage >= 0 ? options.shrinkage : estimated_shrinkage(sums, table.overall);
  table.expected_delta.assign(sums.count.size(), table.overall);
  for (std::size_t v = 0; v < sums.count.size(); ++v) {
    if (sums.count[v] <= 0) continue;
    ++table.seen_tokens;
    const double trust = sums.count[v] / (sums.count[v] + table.shrinkage);
    table.expected_delta[v] += trust * (sums.mean[v] - table.overall);
  }
  return table;
}

}  // namespace detail

/// The table of all observations, for documents that are not among them. Throws DataError
/// ("gate/non-finite-delta", "gate/no-positions", "data/token-outside-vocabulary"), ShapeError
/// ("stats/length-mismatch").
inline TokenTable fit_token_table(const TokenObservations& seen, Index vocabulary,
                                  const TokenTableOptions& options = {}) {
  detail::check_observations(seen, vocabulary);
  return detail::table_without_fold(seen, vocabulary, options);
}

/// −(expected δ) of every observed position, from a table that saw no document of its fold: honest
/// scores on the documents that the table is fitted on. Throws as fit_token_table, and
/// ProtocolError ("stats/folds") where there are fewer documents than folds.
inline std::vector<double> cross_fitted_token_scores(const TokenObservations& seen,
                                                     Index vocabulary,
                                                     const TokenTableOptions& options = {}) {
  detail::check_observations(seen, vocabulary);
  const std::vector<Index> folds =
      document_folds(seen.documents, options.folds, "cross_fitted_token_scores");
  std::vector<double> scores(seen.delta.size());
  for (Index fold = 0; fold < options.folds; ++fold) {
    const TokenTable table = detail::table_without_fold(seen, vocabulary, options, folds, fold);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (folds[i] != fold) continue;
      scores[i] = -table.expected_delta[static_cast<std::size_t>(seen.tokens[i])];
    }
  }
  return scores;
}

/// score = −(expected δ of the row's token), in nats: routes where the surrogate should help.
template <class B>
class TokenTableGate {
 public:
  TokenTableGate(B& backend, const TokenTable& table)
      : scores_(detail::backend_copy(backend, negated(table.expected_delta))) {}

  /// Tokens must be in the table's vocabulary, as the model has checked.
  void score(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows,
             VectorView<double> scores, Workspace<B>&) const {
    check_size(rows.tokens, x.rows, "TokenTableGate::score: tokens");
    check_size(scores, x.rows, "TokenTableGate::score: scores");
    backend.for_each(x.rows, kernels::GatherElement<double>{
                                 {scores_.data(), scores_.size()}, rows.tokens, scores});
  }
  double natural_threshold() const { return 0; }
  MlpCost cost(Index tokens) const {
    return {0, static_cast<double>(tokens) * sizeof(double), static_cast<double>(scores_.size())};
  }

 private:
  static std::vector<double> negated(std::vector<double> values) {
    for (double& value : values) value = -value;
    return values;
  }

  buffer_t<B, double> scores_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
