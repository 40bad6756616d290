// Losses of a model on an evaluation set.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/core/progress.hpp"
#include "wanamaker/nn/any_transformer.hpp"
#include "wanamaker/study/mlp_overrides.hpp"
#include "wanamaker/study/windows.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Throws NumericalError where a loss is not finite, naming the place in the set.
inline void check_finite_losses(std::span<const double> losses, const std::string& variant) {
  const auto bad =
      std::find_if(losses.begin(), losses.end(), [](double x) { return !std::isfinite(x); });
  if (bad == losses.end()) return;
  throw NumericalError({.id = "numeric/non-finite-loss",
                        .where = variant + ", scored token " + std::to_string(bad - losses.begin()),
                        .what = "a loss is not finite",
                        .expected = "finite negative log-likelihoods",
                        .found = std::to_string(*bad),
                        .mend = "check the weights, or compute with --backend reference (double)"});
}

namespace detail {

/// Runs the batches of a set; `score(batch, residual)` sees the final stream of each.
template <class B, class Changes, class Before, class Score>
void run_batches(B& backend, const AnyTransformer<B>& model, const Changes& changes,
                 const EvaluationSet& set, Workspace<B>& workspace, const Progress& progress,
                 const std::string& stage, Before&& before, Score&& score) {
  const Index batches = static_cast<Index>(set.batches.size());
  for (Index b = 0; b < batches; ++b) {
    progress(stage, b, batches);
    const EvaluationBatch& batch = set.batches[static_cast<std::size_t>(b)];
    const typename Workspace<B>::Frame frame(workspace);
    const PackedBatch<B> packed(backend, batch.tokens, batch.offsets);
    const matrix_view_t<B> residual = workspace.matrix(packed.rows(), model.config().width);
    before(batch);
    model.embed(backend, packed, residual);
    forward_blocks(backend, model, changes, 0, model.layers(), packed, residual, workspace);
    score(batch, residual);
  }
  progress(stage, batches, batches);
}

}  // namespace detail

/// NLL in nats of every scored token of the set, in its order, of the model with `changes`:
/// MlpOverrides or BlockEdits; `before(batch)` is called before each batch. Throws NumericalError,
/// Cancelled, and what Transformer::embed throws.
template <class B, class Changes, class Before>
std::vector<double> run_losses_with(B& backend, const AnyTransformer<B>& model,
                                    const Changes& changes, const EvaluationSet& set,
                                    Workspace<B>& workspace, const Progress& progress,
                                    const std::string& stage, Before&& before) {
  std::vector<double> losses(static_cast<std::size_t>(set.scored()));
  detail::run_batches(backend, model, changes, set, workspace, progress, stage, before,
                      [&](const EvaluationBatch& batch, const_matrix_view_t<B> residual) {
                        const std::vector<double> own =
                            model.token_losses(backend, residual, batch.scored, workspace);
                        std::copy(own.begin(), own.end(), losses.begin() + batch.first_loss);
                      });
  check_finite_losses(losses, stage);
  return losses;
}

/// The same of the model as it is.
template <class B>
std::vector<double> run_losses(B& backend, const AnyTransformer<B>& model, const EvaluationSet& set,
                               Workspace<B>& workspace, const Progress& progress = {},
                               const std::string& stage = "losses") {
  return run_losses_with(backend, model, MlpOverrides<B>{}, set, workspace, progress, stage,
                         [](const EvaluationBatch&) {});
}

/// The same, with the ranks of the scored tokens among the model's choices.
template <class B>
TokenScores run_token_scores(B& backend, const AnyTransformer<B>& model, const EvaluationSet& set,
                             Workspace<B>& workspace, const Progress& progress = {},
                             const std::string& stage = "losses") {
  const std::size_t scored = static_cast<std::size_t>(set.scored());
  TokenScores scores{std::vector<double>(scored), std::vector<double>(scored)};
  detail::run_batches(
      backend, model, MlpOverrides<B>{}, set, workspace, progress, stage,
      [](const EvaluationBatch&) {},
      [&](const EvaluationBatch& batch, const_matrix_view_t<B> residual) {
        const TokenScores own = model.token_scores(backend, residual, batch.scored, workspace);
        std::copy(own.losses.begin(), own.losses.end(), scores.losses.begin() + batch.first_loss);
        std::copy(own.ranks.begin(), own.ranks.end(), scores.ranks.begin() + batch.first_loss);
      });
  check_finite_losses(scores.losses, stage);
  return scores;
}

/// Sum in order; the one way in which sums of losses are made.
inline double sum_of(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
