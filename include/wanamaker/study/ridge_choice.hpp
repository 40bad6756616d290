// λ of a layer's linear map, chosen by what the whole model loses on the select split.
#pragma once

#include <cstddef>
#include <vector>

#include "wanamaker/study/walked_split.hpp"
#include "wanamaker/surrogate/ridge.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A map, and the ρ (λ in units of the inputs' mean square) that it was fitted with.
struct ChosenRidge {
  RidgeSurrogate fit;
  double rho = 0;
};

/// The map of the layer at which the select split's pass stands. Of several ρ the one with the
/// lowest loss on the select split, whose losses go to `trials`; ties go to the later. The pass
/// stays.
template <class B>
ChosenRidge choose_ridge(const SweepContext<B>& c, const CoMoments& moments,
                         std::vector<LambdaTrial>& trials) {
  const std::vector<double>& rhos = c.options.rhos;
  const auto fit = [&](double rho) {
    return ChosenRidge{RidgeSurrogate::fit(moments, {.lambda = rho}, c.executor), rho};
  };
  if (rhos.size() == 1) return fit(rhos.front());
  std::vector<AnyMlp<B>> policies;
  for (const double rho : rhos) policies.emplace_back(fit(rho).fit.to_mlp(c.backend));
  std::vector<std::vector<double>> losses(rhos.size(),
                                          std::vector<double>(c.select->baseline.size()));
  c.select->pass->visit([&](const MlpSite<B>& site) {
    for (std::size_t i = 0; i < policies.size(); ++i) {
      measure_policy(c, policies[i], site, *c.select->pass, losses[i]);
    }
  });
  std::size_t best = 0;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    trials.push_back({rhos[i], sum_of(losses[i])});
    if (trials[i].nll_sum <= trials[best].nll_sum) best = i;
  }
  return fit(rhos[best]);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
