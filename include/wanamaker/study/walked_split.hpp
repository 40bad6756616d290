// A split on its way through the model, and what the measurement of a layer has at hand.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/layer_pass.hpp"
#include "wanamaker/study/sweep_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// One split on its way through the model: its tokens, the full model's losses, the pass.
template <class B>
struct WalkedSplit {
  EvaluationSet set;
  std::vector<double> baseline;
  std::unique_ptr<LayerPass<B>> pass;

  /// Moves on to the layer, without looking at those between.
  void walk_to(Index layer) {
    while (pass->layer() < layer) pass->advance();
  }
};

/// The full model's losses on the documents, and a pass at layer 0.
template <class B>
std::unique_ptr<WalkedSplit<B>> walk_split(B& backend, const AnyTransformer<B>& model,
                                           EvaluationSet set, Workspace<B>& workspace,
                                           const Progress& progress, const std::string& stage) {
  auto split = std::make_unique<WalkedSplit<B>>();
  split->set = std::move(set);
  split->baseline = run_losses(backend, model, split->set, workspace, progress, stage);
  split->pass = std::make_unique<LayerPass<B>>(backend, model, split->set, workspace,
                                               MlpOverrides<B>{}, progress);
  return split;
}

/// Everything that one layer's measurement needs; splits that it does not use may be null.
template <class B>
struct SweepContext {
  B& backend;
  const AnyTransformer<B>& model;
  const SweepOptions& options;
  const ExecutorRef& executor;
  Workspace<B>& workspace;
  WalkedSplit<B>* gate = nullptr;
  WalkedSplit<B>* select = nullptr;
  WalkedSplit<B>* report = nullptr;
};

/// Losses with `policy` in the MLP's place at the pass's layer, written to `losses`.
template <class B>
void measure_policy(const SweepContext<B>& c, const AnyMlp<B>& policy, const MlpSite<B>& site,
                    LayerPass<B>& pass, std::span<double> losses) {
  const typename Workspace<B>::Frame frame(c.workspace);
  const matrix_view_t<B> output = c.workspace.matrix(site.mlp_input.rows, site.mlp_input.cols);
  policy.forward(c.backend, site.mlp_input, site.rows, output, c.workspace);
  pass.losses_with(site, output, losses);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
