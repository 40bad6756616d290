// The share of the full model's FLOPs that a changed model still takes on a set of tokens.
#pragma once

#include <vector>

#include "wanamaker/gate/cost_model.hpp"
#include "wanamaker/nn/any_transformer.hpp"
#include "wanamaker/study/windows.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Shares of the full model's FLOPs: of the MLPs', and of all.
struct FlopsShares {
  double mlp = 1;
  double total = 1;
};

/// FLOPs of one token in each layer's MLP.
template <class B>
std::vector<double> mlp_flops_per_token(const AnyTransformer<B>& model) {
  std::vector<double> flops;
  for (Index l = 0; l < model.layers(); ++l) flops.push_back(model.mlp(l).cost(1).flops);
  return flops;
}

/// `full`, `changed`: FLOPs of one token in each layer's MLP place, before and after.
inline FlopsShares flops_shares(const ModelConfig& config, const EvaluationSet& set,
                                const std::vector<double>& full,
                                const std::vector<double>& changed) {
  const double tokens = static_cast<double>(set.tokens);
  std::vector<Index> lengths;
  for (const EvaluationBatch& batch : set.batches) {
    for (std::size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
      lengths.push_back(batch.offsets[s + 1] - batch.offsets[s]);
    }
  }
  const auto flops_of = [&](const std::vector<double>& per_token) {
    double sum = 0;
    for (const double f : per_token) sum += tokens * f;
    return model_flops(config, lengths, sum, set.scored());
  };
  const ModelFlops before = flops_of(full);
  const ModelFlops after = flops_of(changed);
  return {after.mlp / before.mlp, after.total() / before.total()};
}

/// The same of a model that is changed.
template <class B>
FlopsShares flops_shares(const AnyTransformer<B>& model, const EvaluationSet& set,
                         const std::vector<double>& changed) {
  return flops_shares(model.config(), set, mlp_flops_per_token(model), changed);
}

/// The same where one layer alone is changed, to `flops` of one token.
template <class B>
FlopsShares flops_shares_of_layer(const AnyTransformer<B>& model, const EvaluationSet& set,
                                  Index layer, double flops) {
  std::vector<double> changed = mlp_flops_per_token(model);
  changed[static_cast<std::size_t>(layer)] = flops;
  return flops_shares(model, set, changed);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
