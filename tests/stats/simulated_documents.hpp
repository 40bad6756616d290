// Documents of unequal length whose tokens are alike within a document, with a known Δ.
#pragma once

#include <cmath>
#include <vector>

#include "wanamaker/core/random.hpp"
#include "wanamaker/stats/paired_sums.hpp"

namespace wanamaker_test {

/// How the costs of documents are distributed; each shape has mean 0 and standard deviation 1.
enum class CostShape { normal, exponential, log_normal };

inline double standard_cost(wanamaker::RandomStream& random, CostShape shape) {
  if (shape == CostShape::exponential) return -std::log(1 - random.uniform()) - 1;
  if (shape == CostShape::normal) return random.normal();
  const double e = std::exp(1.0);
  return (std::exp(random.normal()) - std::sqrt(e)) / std::sqrt(e * (e - 1));
}

/// d_i = n_i (Δ + u_i) + √n_i · noise: document effects u_i (standard deviation 0.05) do not depend
/// on the lengths n_i (log-normal, about 110 ± 70), so that Δ is the expectation of Σ d / Σ n in
/// large samples.
inline wanamaker::PairedSums simulated_documents(wanamaker::RandomStream& random,
                                                 wanamaker::Index documents, double delta,
                                                 CostShape shape = CostShape::normal) {
  wanamaker::PairedSums sums;
  for (wanamaker::Index i = 0; i < documents; ++i) {
    const double tokens = 1 + std::round(std::exp(4.5 + 0.6 * random.normal()));
    const double effect = 0.05 * standard_cost(random, shape);
    const double noise = 0.3 * random.normal();
    sums.tokens.push_back(static_cast<wanamaker::Index>(tokens));
    sums.difference_nats.push_back(tokens * (delta + effect) + std::sqrt(tokens) * noise);
  }
  return sums;
}

}  // namespace wanamaker_test
