// Fitting logistic gates: plain, as published, and cost-sensitive. Needs Eigen.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "wanamaker/gate/labels.hpp"
#include "wanamaker/gate/linear_gate.hpp"
#include "wanamaker/gate/logistic_regression.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A gate ready to run, how its fit ended, and which features carried nothing.
template <class G>
struct FittedGate {
  G gate;
  FitReport report{};
  std::vector<Index> constant_features{};
};

/// g = P(label 1 | x) by logistic regression on standardised features, folded to d + 1 numbers.
/// Throws as fit_logistic_regression.
template <Backend B>
FittedGate<LogisticGate<B>> fit_logistic_gate(B& backend, const_matrix_view_t<B> x,
                                              std::span<const std::uint8_t> labels,
                                              std::span<const double> weights = {},
                                              const LogisticOptions& options = {}) {
  LogisticFit fit = fit_logistic_regression(backend, x, labels, weights, options);
  return {LogisticGate<B>(backend, fit.folded()), fit.report,
          std::move(fit.scaling.constant_features)};
}

/// Minimises what wrong decisions cost rather than their number: label δ ≤ 0, weight |δ|. Throws as
/// fit_logistic_regression, and DataError ("gate/non-finite-delta", "gate/no-positions").
template <Backend B>
FittedGate<LogisticGate<B>> fit_cost_sensitive_gate(B& backend, const_matrix_view_t<B> x,
                                                    std::span<const double> delta,
                                                    const LogisticOptions& options = {}) {
  const DeltaLabels labels = labels_at_most(delta, 0);
  return fit_logistic_gate(backend, x, labels.labels, cost_weights(delta), options);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
