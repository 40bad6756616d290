// ReferenceBackend: naive loops, one per operation. The copy to read, and the oracle of the tests.
#pragma once

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/backend/host_memory.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

template <class S = double, class W = S>
class ReferenceBackend;

template <class S, class W>
struct backend_traits<ReferenceBackend<S, W>> : HostBackendTraits<S, W> {};

/// Computes in S (sums in double), on the calling thread.
template <class S, class W>
class ReferenceBackend : public HostMemory {
 public:
  /// C ← α·op(A)·op(B) + β·C; C is not read where β = 0. Throws ShapeError.
  template <class T, class U>
  void gemm(Operand<T> a, Operand<U> b, S alpha, S beta, MatrixView<S> c) const {
    check_gemm_shapes(a, b, c, "ReferenceBackend::gemm");
    for (Index i = 0; i < c.rows; ++i) {
      for (Index j = 0; j < c.cols; ++j) {
        double sum = 0;
        for (Index k = 0; k < a.cols(); ++k) {
          sum += static_cast<double>(a(i, k)) * static_cast<double>(b(k, j));
        }
        c(i, j) = static_cast<S>(static_cast<double>(alpha) * sum +
                                 (beta == S(0) ? 0.0 : static_cast<double>(beta * c(i, j))));
      }
    }
  }

  /// One gemm after the other.
  void gemm_batched(std::span<const GemmItem<S>> items, S alpha, S beta) const {
    for (const GemmItem<S>& item : items) gemm(item.a, item.b, alpha, beta, item.c);
  }

  /// C ← C + XᵀY in double; X [n × d], Y [n × e], C [d × e].
  void gram(ConstMatrixView<S> x, ConstMatrixView<S> y, MatrixView<double> c, GramPrecision) const {
    check_gemm_shapes(transposed(x), plain(y), c, "ReferenceBackend::gram");
    for (Index i = 0; i < c.rows; ++i) {
      for (Index j = 0; j < c.cols; ++j) {
        double sum = 0;
        for (Index t = 0; t < x.rows; ++t) {
          sum += static_cast<double>(x(t, i)) * static_cast<double>(y(t, j));
        }
        c(i, j) += sum;
      }
    }
  }

  template <class F>
  void for_each(Index n, F f) const {
    for (Index i = 0; i < n; ++i) f(i);
  }

  template <class F>
  void for_each_row(Index rows, F f) const {
    for (Index row = 0; row < rows; ++row) f(row, SerialRowTeam{});
  }
};

}  // namespace wanamaker::inline WANAMAKER_ABI
