// A linear function of a row's raw features: what a linear gate is once it is fitted.
#pragma once

#include <span>
#include <vector>

#include "wanamaker/gate/feature_scaling.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A linear function of raw features, w·x + bias: d + 1 numbers.
struct LinearScore {
  std::vector<double> weights{};  ///< [d]
  double bias = 0;
};

/// The same function of raw features as (coefficients, intercept) is of standardised ones.
inline LinearScore unstandardise(std::span<const double> coefficients, double intercept,
                                 const FeatureScaling& scaling) {
  LinearScore score{std::vector<double>(coefficients.begin(), coefficients.end()), intercept};
  for (std::size_t j = 0; j < coefficients.size(); ++j) {
    score.weights[j] /= scaling.scale[j];
    score.bias -= score.weights[j] * scaling.mean[j];
  }
  return score;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
