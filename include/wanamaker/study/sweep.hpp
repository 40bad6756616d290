// The sweep: for every layer, what replacing its MLP by a surrogate costs, against the full model
// on the same tokens, paired by document.
#pragma once

#include <optional>
#include <vector>

#include "wanamaker/stats/multiple_comparisons.hpp"
#include "wanamaker/study/layer_study.hpp"
#include "wanamaker/study/layer_sweep.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// Holm and Benjamini–Hochberg over the layers, one family for each variant.
inline void adjust_p_values(std::vector<LayerResult>& layers) {
  if (layers.empty()) return;
  for (std::size_t v = 0; v < layers.front().variants.size(); ++v) {
    std::vector<std::optional<double>> p;
    for (const LayerResult& layer : layers) p.push_back(layer.variants[v].comparison.p_value);
    const auto holm = holm_adjusted(p);
    const auto bh = benjamini_hochberg_adjusted(p);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      layers[l].variants[v].p_holm = holm[l];
      layers[l].variants[v].p_bh = bh[l];
    }
  }
}

}  // namespace detail

/// Fits surrogates on the fit split and gates on the gate split, chooses λ and thresholds on the
/// select split, reports on the report split. Every variant of a layer shares the prefix; layer ℓ's
/// variants run only what follows its MLP. Throws what its parts throw; non-finite losses are a
/// NumericalError.
template <class B>
SweepResult run_sweep(const StudyInput<B>& input, const SweepCheckpoint& checkpoint = {}) {
  const bool has_gates = input.options.ladder != Ladder::surrogates;
  LayerStudy<B> study(input,
                      {.gate = has_gates, .select = has_gates || input.options.rhos.size() > 1});
  SweepResult result{study.header(), {}};
  const SweepContext<B> context = study.context();
  result.layers = study.template for_each_layer<LayerResult>("sweep", checkpoint, [&](Index layer) {
    return LayerSweep<B>(context, layer, study.moments(layer)).run();
  });
  detail::adjust_p_values(result.layers);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
