// How far the predictions of two affine maps lie apart: single entries of their weights may be
// ill-determined, what they predict is not.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "wanamaker/surrogate/affine_map.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// √(Σ‖ŷ_a − ŷ_b‖²/Σ‖y − mean‖²) over the data of the co-moments. Throws ShapeError where a map
/// and the co-moments differ in shape.
inline double prediction_distance(const AffineMap& a, const AffineMap& b,
                                  const CoMoments& moments) {
  for (const AffineMap* map : {&a, &b}) {
    check_shape(moments.xy(), map->inputs, map->outputs, "prediction_distance: co-moments");
  }
  AffineMap difference = a;
  for (std::size_t i = 0; i < a.weight.size(); ++i) difference.weight[i] -= b.weight[i];
  for (std::size_t j = 0; j < a.bias.size(); ++j) difference.bias[j] -= b.bias[j];
  // Outputs of zero turn the residual into the size of the difference's predictions.
  CoMomentState state = moments.state();
  std::fill(state.mean_y.begin(), state.mean_y.end(), 0.0);
  std::fill(state.xy.begin(), state.xy.end(), 0.0);
  double total = 0;
  for (double& yy : state.yy) total += std::exchange(yy, 0.0);
  double sum = 0;
  for (const double r : explained(difference, CoMoments(state)).residual) sum += r;
  return std::sqrt(sum / total);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
