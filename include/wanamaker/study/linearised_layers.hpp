// What a model loses where one layer alone is its fitted affine map, layer by layer.
#pragma once

#include <string>
#include <vector>

#include "wanamaker/study/layer_study.hpp"
#include "wanamaker/study/losses.hpp"
#include "wanamaker/surrogate/ridge.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What for_each_linearised is given. Referenced objects must outlive the call.
template <class B>
struct LinearisedInput {
  B& backend;
  const AnyTransformer<B>& model;
  EvaluationSet fit{};       ///< maps are fitted on
  const EvaluationSet& set;  ///< losses are of
  double rho = 1e-6;         ///< see SweepOptions::rhos
  Workspace<B>& workspace;
  ExecutorRef executor{};
  Progress progress{};
};

/// f(layer, losses of the set where this layer alone is its map), for each of `layers`. All maps
/// are fitted in one pass.
template <Backend B, class F>
void for_each_linearised(const LinearisedInput<B>& in, const std::vector<Index>& layers, F&& f) {
  CoMomentCollector<B> collector(in.backend, in.model.layers(), in.model.config().width,
                                 {.layers = layers});
  collect_set(in.backend, in.model, in.fit, collector, in.workspace, in.progress);
  for (const Index layer : layers) {
    const AnyMlp<B> map(
        RidgeSurrogate::fit(collector.moments(layer), {.lambda = in.rho}, in.executor)
            .to_mlp(in.backend));
    MlpOverrides<B> overrides;
    overrides.set(layer, &map);
    f(layer, run_losses_with(in.backend, in.model, overrides, in.set, in.workspace, in.progress,
                             "cost of a layer", [](const EvaluationBatch&) {}));
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
