// EigenBackend: the default host backend, products by Eigen.
#pragma once

#include "wanamaker/backend/host_backend.hpp"
#include "wanamaker/backend/third_party/eigen.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

template <class T>
using EigenRowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using EigenView = Eigen::Map<EigenRowMajor<T>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using EigenConstView = Eigen::Map<const EigenRowMajor<T>, Eigen::Unaligned, Eigen::OuterStride<>>;

/// A view as an Eigen map; no copy.
template <class T>
EigenView<T> as_eigen(MatrixView<T> m) {
  return EigenView<T>(m.data, m.rows, m.cols, Eigen::OuterStride<>(m.stride));
}
template <class T>
EigenConstView<T> as_eigen(MatrixView<const T> m) {
  return EigenConstView<T>(m.data, m.rows, m.cols, Eigen::OuterStride<>(m.stride));
}

/// Serial products by Eigen (its own threads stay unused: tiles are below a thread's worth).
struct EigenGemm {
  template <class T>
  static void multiply(Operand<T> a, Operand<T> b, T alpha, T beta, MatrixView<T> c) {
    EigenView<T> result = as_eigen(c);
    if (beta == T(0)) {
      result.setZero();
    } else if (beta != T(1)) {
      result *= beta;
    }
    if (a.cols() == 0) return;
    const EigenConstView<T> left = as_eigen(a.matrix);
    const EigenConstView<T> right = as_eigen(b.matrix);
    if (a.is_transposed && b.is_transposed) {
      result.noalias() += alpha * left.transpose() * right.transpose();
    } else if (a.is_transposed) {
      result.noalias() += alpha * left.transpose() * right;
    } else if (b.is_transposed) {
      result.noalias() += alpha * left * right.transpose();
    } else {
      result.noalias() += alpha * left * right;
    }
  }
};

template <class S = float, class W = S>
class EigenBackend;

template <class S, class W>
struct backend_traits<EigenBackend<S, W>> : HostBackendTraits<S, W> {};

/// Computes in S (float or double), stores weights as W (S, half or bfloat16).
template <class S, class W>
class EigenBackend : public HostBackend<S, W, EigenGemm> {
 public:
  using HostBackend<S, W, EigenGemm>::HostBackend;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
