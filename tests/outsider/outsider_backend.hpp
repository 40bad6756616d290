// A backend as an outsider would write it: from docs/policies/backend.md alone, loops and all. A
// test holds this file to 70 lines.
#pragma once

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/backend/host_memory.hpp"
#include "wanamaker/core/half.hpp"

namespace outsider {

using namespace wanamaker;

struct LoopBackend : HostMemory {
  template <class A, class W>
  void gemm(Operand<A> a, Operand<W> b, float alpha, float beta, MatrixView<float> c) {
    check_gemm_shapes(a, b, c, "LoopBackend::gemm");
    for (Index i = 0; i < c.rows; ++i) {
      for (Index j = 0; j < c.cols; ++j) {
        float sum = 0;
        for (Index k = 0; k < a.cols(); ++k) sum += a(i, k) * b(k, j);
        c(i, j) = alpha * sum + (beta == 0 ? 0 : beta * c(i, j));
      }
    }
  }

  void gemm_batched(std::span<const GemmItem<float>> items, float alpha, float beta) {
    for (const GemmItem<float>& item : items) gemm(item.a, item.b, alpha, beta, item.c);
  }

  void gram(ConstMatrixView<float> x, ConstMatrixView<float> y, MatrixView<double> c,
            GramPrecision) {
    check_gemm_shapes(transposed(x), plain(y), c, "LoopBackend::gram");
    for (Index t = 0; t < x.rows; ++t) {
      for (Index i = 0; i < c.rows; ++i) {
        for (Index j = 0; j < c.cols; ++j) c(i, j) += double(x(t, i)) * double(y(t, j));
      }
    }
  }

  template <class F>
  void for_each(Index n, F f) {
    for (Index i = 0; i < n; ++i) f(i);
  }

  template <class F>
  void for_each_row(Index rows, F f) {
    for (Index row = 0; row < rows; ++row) f(row, SerialRowTeam{});
  }
};

}  // namespace outsider

template <>
struct wanamaker::backend_traits<outsider::LoopBackend>
    : wanamaker::HostBackendTraits<float, wanamaker::half> {};
