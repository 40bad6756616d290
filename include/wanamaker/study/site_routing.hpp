// Routing at one site of a pass, where the surrogate's and the MLP's outputs are both at hand: a
// routing selects rows, and the loss is that of the gated model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

/// Losses where rows with score > threshold have `linear` [T × d] for the MLP's output.
template <class B>
void measure_selected(const SweepContext<B>& c, const MlpSite<B>& site, LayerPass<B>& pass,
                      VectorView<double> scores, double threshold, const_matrix_view_t<B> linear,
                      std::span<double> losses) {
  const typename Workspace<B>::Frame frame(c.workspace);
  const matrix_view_t<B> output = c.workspace.matrix(linear.rows, linear.cols);
  ops::select_outputs<B>(c.backend, scores, threshold, linear, site.mlp_output, output);
  pass.losses_with(site, output, losses);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
