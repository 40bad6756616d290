// A host program's own MLP, in whatever form it has one, as the full path beside our surrogate.
#pragma once

#include <functional>
#include <utility>

#include "wanamaker/gate/routing.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// An MLP policy that calls `mlp(x, y)`, x and y views [n × d] in the backend's scalar: it writes
/// every element of y and is called only with rows that come to it. What it throws reaches the
/// caller of forward.
template <class F>
class ForeignMlp {
 public:
  /// `per_token`: what cost() says, where anyone asks.
  explicit ForeignMlp(F mlp, MlpCost per_token = {})
      : mlp_(std::move(mlp)), per_token_(per_token) {}

  template <class T>
  void forward(ConstMatrixView<T> x, MatrixView<T> y) const {
    std::invoke(mlp_, x, y);
  }
  MlpCost cost(Index tokens) const {
    return {per_token_.flops * static_cast<double>(tokens), per_token_.weight_bytes,
            per_token_.parameters};
  }

 private:
  F mlp_;
  MlpCost per_token_;
};

template <class F>
inline constexpr bool needs_row_context<ForeignMlp<F>> = false;

}  // namespace wanamaker::inline WANAMAKER_ABI
