// Routing at one site of a pass, where the surrogate's and the MLP's outputs are both at hand: a
// routing selects rows, and the loss is that of the gated model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/gate/gated_mlp.hpp"
#include "wanamaker/study/walked_split.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Scores 1 and 0 [T] for a routing given per scored token of the set; rows that predict nothing
/// stay with the MLP. Threshold 0.5 makes it the routing.
template <class B>
VectorView<double> routing_scores(B& backend, const MlpSite<B>& site,
                                  std::span<const std::uint8_t> routed, Workspace<B>& workspace) {
  const VectorView<double> scores = workspace.template vector<double>(site.mlp_input.rows);
  std::vector<double> all(static_cast<std::size_t>(scores.size), 0.0);
  for (std::size_t i = 0; i < site.tokens.scored.rows.size(); ++i) {
    const std::size_t loss = static_cast<std::size_t>(site.tokens.first_loss) + i;
    all[static_cast<std::size_t>(site.tokens.scored.rows[i])] = routed[loss];
  }
  backend.copy_from_host(all.data(), scores.size, scores.data);
  return scores;
}

/// Scores of all rows of one site in host memory, reduced to those that predict a scored token.
template <class B>
std::vector<double> scored_rows_of(B& backend, const MlpSite<B>& site, VectorView<double> scores) {
  const std::vector<double> all = detail::host_copy(backend, scores);
  std::vector<double> chosen;
  chosen.reserve(site.tokens.scored.rows.size());
  for (const TokenId row : site.tokens.scored.rows) {
    chosen.push_back(all[static_cast<std::size_t>(row)]);
  }
  return chosen;
}

/// Losses of the set's tokens when every row has the surrogate's output: what a routing chooses
/// from, together with the full model's.
using LinearLosses = std::span<const double>;

namespace detail {

// After the last MLP nothing mixes rows: a routed token has the loss that it has where all are
// routed, any other that of the full model.
template <class B>
void choose_losses(B& backend, const MlpSite<B>& site, VectorView<double> scores, double threshold,
                   std::span<const double> full, LinearLosses linear, std::span<double> losses) {
  const std::vector<double> own = scored_rows_of(backend, site, scores);
  std::size_t at = static_cast<std::size_t>(site.tokens.first_loss);
  for (const double score : own) {
    losses[at] = score > threshold ? linear[at] : full[at];
    ++at;
  }
}

}  // namespace detail

/// Losses where rows with score > threshold have `linear` [T × d] for the MLP's output. At the last
/// layer they are chosen from those of the full model and `linear_losses`, which are the same to
/// the last bit; before it the rest of the model is run.
template <class B>
void measure_selected(const SweepContext<B>& c, const MlpSite<B>& site, WalkedSplit<B>& split,
                      VectorView<double> scores, double threshold, const_matrix_view_t<B> linear,
                      LinearLosses linear_losses, std::span<double> losses) {
  if (site.layer + 1 == c.model.layers()) {
    return detail::choose_losses(c.backend, site, scores, threshold, split.baseline, linear_losses,
                                 losses);
  }
  const typename Workspace<B>::Frame frame(c.workspace);
  const matrix_view_t<B> output = c.workspace.matrix(linear.rows, linear.cols);
  ops::select_outputs<B>(c.backend, scores, threshold, linear, site.mlp_output, output);
  split.pass->losses_with(site, output, losses);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
