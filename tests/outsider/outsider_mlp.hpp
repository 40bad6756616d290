// An MLP policy as an outsider would write it: from docs/policies/mlp.md alone, in the form of two
// arguments, on host memory. A test holds this file to 70 lines.
#pragma once

#include <utility>
#include <vector>

#include "wanamaker/nn/backward/pass.hpp"

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

  // For training: dW += xᵀ·e and dx = e·Wᵀ, where e is dy at the outputs above 0.
  template <class B>
  void backward(wanamaker::BackwardPass<B>& pass, wanamaker::ConstMatrixView<float> x,
                const wanamaker::RowContext<B>&, wanamaker::ConstMatrixView<float> dy,
                wanamaker::MatrixView<float> dx) const {
    std::vector<float> y(static_cast<std::size_t>(x.size()));
    forward(x, {y.data(), x.rows, x.cols});
    const wanamaker::MatrixView<float> dw = pass.gradients.of(weight_.data());
    for (wanamaker::Index i = 0; i < x.rows; ++i) {
      for (wanamaker::Index k = 0; k < width_; ++k) dx(i, k) = 0;
      for (wanamaker::Index j = 0; j < width_; ++j) {
        const float e = y[static_cast<std::size_t>(i * width_ + j)] > 0 ? dy(i, j) : 0;
        for (wanamaker::Index k = 0; k < width_; ++k) {
          dx(i, k) += e * weight_[static_cast<std::size_t>(k * width_ + j)];
          if (dw.size() > 0) dw(k, j) += x(i, k) * e;
        }
      }
    }
  }
  template <class B>
  void parameters(const wanamaker::ParameterCollector<B>& collector) {
    collector.matrix("one_layer", {weight_.data(), width_, width_});
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
