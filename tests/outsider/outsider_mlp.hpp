// An MLP policy as an outsider would write it: from docs/policies/mlp.md alone, in the form of two
// arguments, on host memory. A test holds this file to 70 lines.
#pragma once

#include <utility>
#include <vector>

#include "wanamaker/nn/mlp_policy.hpp"

namespace outsider {

/// y = max(x·W, 0): one layer, W [d × d].
class OneLayerMlp {
 public:
  OneLayerMlp(std::vector<float> weight, wanamaker::Index width)
      : weight_(std::move(weight)), width_(width) {}

  void forward(wanamaker::ConstMatrixView<float> x, wanamaker::MatrixView<float> y) const {
    for (wanamaker::Index i = 0; i < x.rows; ++i) {
      for (wanamaker::Index j = 0; j < width_; ++j) {
        float sum = 0;
        for (wanamaker::Index k = 0; k < width_; ++k) {
          sum += x(i, k) * weight_[static_cast<std::size_t>(k * width_ + j)];
        }
        y(i, j) = sum > 0 ? sum : 0;
      }
    }
  }

  wanamaker::MlpCost cost(wanamaker::Index tokens) const {
    const double weights = static_cast<double>(width_ * width_);
    return {2.0 * static_cast<double>(tokens) * weights, 4.0 * weights, weights};
  }

 private:
  std::vector<float> weight_;
  wanamaker::Index width_;
};

}  // namespace outsider
