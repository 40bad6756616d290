// A gate that predicts δ itself, in nats, by ridge regression. Needs Eigen.
#pragma once

#include <utility>

#include "wanamaker/gate/gate_moments.hpp"
#include "wanamaker/gate/linear_gate.hpp"
#include "wanamaker/surrogate/ridge.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// score = −δ̂(x), and what the ridge fit says of itself.
template <class B>
struct FittedDeltaRegression {
  DeltaRegressionGate<B> gate;
  RidgeReport report{};
};

/// Ridge regression of δ on the raw inputs, from the co-moments that gate_moments gives; λ defaults
/// to a thousandth of the inputs' mean square, since δ is mostly noise. Throws as
/// RidgeSurrogate::fit.
template <Backend B>
FittedDeltaRegression<B> fit_delta_regression(B& backend, const CoMoments& moments,
                                              const RidgeOptions& options = {.lambda = 1e-3}) {
  const RidgeSurrogate ridge = RidgeSurrogate::fit(moments, options);
  LinearScore score{ridge.map().weight, -ridge.map().bias.front()};
  for (double& weight : score.weights) weight = -weight;
  return {DeltaRegressionGate<B>(backend, std::move(score)), ridge.report()};
}

}  // namespace wanamaker::inline WANAMAKER_ABI
