// What several gates need of the gate split, from one pass: co-moments of the MLP's input and δ.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/gate/feature_scaling.hpp"
#include "wanamaker/gate/labels.hpp"
#include "wanamaker/surrogate/co_moments.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Co-moments of x [n × d], in the backend's memory, and of δ [n]. `blocked` is enough for gates:
/// what is asked of them is decided by the noise of δ. Throws DataError ("gate/non-finite-delta",
/// "gate/no-positions"), ShapeError ("stats/length-mismatch"), and as CoMoments.
template <Backend B>
CoMoments gate_moments(B& backend, const_matrix_view_t<B> x, std::span<const double> delta,
                       GramPrecision precision = GramPrecision::blocked) {
  detail::check_deltas(delta, "gate_moments(delta)");
  detail::check_same_length(static_cast<std::size_t>(x.rows), delta.size(), "gate_moments(delta)");
  std::vector<scalar_t<B>> outputs;
  outputs.reserve(delta.size());
  for (const double value : delta) outputs.push_back(static_cast<scalar_t<B>>(value));
  const matrix_t<B> y = matrix_from_host<scalar_t<B>>(backend, outputs.data(), x.rows, 1);
  CoMoments moments(x.cols, 1, precision);
  Workspace<B> workspace(backend);
  moments.add<B>(backend, x, y.view(), workspace);
  return moments;
}

/// Means and population standard deviations that co-moments imply; a feature that is constant gets
/// scale 1.
inline FeatureScaling feature_scaling_of(const CoMoments& moments) {
  FeatureScaling scaling{{moments.mean_x().begin(), moments.mean_x().end()}, {}, {}};
  for (Index j = 0; j < moments.inputs(); ++j) {
    const double variance = moments.xx()(j, j) / moments.weight();
    const bool constant =
        detail::is_constant(variance, scaling.mean[static_cast<std::size_t>(j)], moments.weight());
    scaling.scale.push_back(constant ? 1.0 : std::sqrt(variance));
    if (constant) scaling.constant_features.push_back(j);
  }
  return scaling;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
