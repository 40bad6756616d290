// Perplexity of one sequence: the shortest way from a model and ids to a number.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/nn/transformer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// exp(nats), the largest double where that overflows: JSON knows no infinity.
inline double perplexity_of(double mean_nats) {
  constexpr double largest = 709.0;
  return std::exp(std::min(mean_nats, largest));
}

/// exp of the mean loss of tokens 1 … n − 1 of one sequence, each given all before it. Model: a
/// Transformer or an AnyTransformer. Throws DataError for fewer than two tokens or ids outside the
/// vocabulary, ProtocolError for more tokens than the model has positions.
template <class B, class Model>
double perplexity(B& backend, const Model& model, std::span<const TokenId> ids) {
  if (ids.size() < 2) {
    throw DataError({.id = "data/nothing-to-score",
                     .where = "perplexity",
                     .what = "no token can be scored",
                     .expected = "at least two tokens",
                     .found = std::to_string(ids.size()),
                     .mend = "give a longer text"});
  }
  const PackedBatch<B> batch(backend, ids);
  Workspace<B> workspace(backend);
  const matrix_view_t<B> residual = workspace.matrix(batch.rows(), model.config().width);
  model.forward(backend, batch, residual, workspace);
  const std::vector<double> losses =
      model.token_losses(backend, residual, all_next_tokens(batch), workspace);
  return perplexity_of(std::accumulate(losses.begin(), losses.end(), 0.0) /
                       static_cast<double>(losses.size()));
}

}  // namespace wanamaker::inline WANAMAKER_ABI
