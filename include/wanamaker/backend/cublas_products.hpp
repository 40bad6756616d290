// Products by cuBLAS of row-major matrices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/backend/cuda_status.hpp"

namespace wanamaker::inline WANAMAKER_ABI::detail {

// cuBLAS reads and writes by columns: what lies in memory as our [r × c] by rows is, to it, the
// transpose [c × r]. So of C = op(A)·op(B) it is asked for Cᵀ = op(B)ᵀ·op(A)ᵀ, with the factors
// changed round, n rows and m columns: op(B)ᵀ is B's memory as cuBLAS sees it where B is plain, and
// its transpose where B is transposed; the leading dimension is our stride. This is the one place
// where rows become columns.
template <class T>
struct ColumnMajorProduct {
  cublasOperation_t left_operation;
  cublasOperation_t right_operation;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t depth;
  ConstMatrixView<T> left;
  ConstMatrixView<T> right;
  MatrixView<T> c;

  ColumnMajorProduct(Operand<T> a, Operand<T> b, MatrixView<T> to)
      : left_operation(operation(b)),
        right_operation(operation(a)),
        rows(to.cols),
        cols(to.rows),
        depth(a.cols()),
        left(b.matrix),
        right(a.matrix),
        c(to) {}

  static cublasOperation_t operation(const Operand<T>& m) {
    return m.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  }
  // A matrix of one row may have any stride.
  template <class U>
  static std::int64_t leading_dimension(MatrixView<U> m) {
    return m.rows <= 1 ? std::max<Index>(m.cols, 1) : m.stride;
  }
};

/// One product; C is not read where β = 0. Throws BackendError.
template <class T>
void multiply(cublasHandle_t handle, const ColumnMajorProduct<T>& p, T alpha, T beta) {
  const auto call = [&](auto gemm, const char* name) {
    check_cublas(gemm(handle, p.left_operation, p.right_operation, p.rows, p.cols, p.depth, &alpha,
                      p.left.data, p.leading_dimension(p.left), p.right.data,
                      p.leading_dimension(p.right), &beta, p.c.data, p.leading_dimension(p.c)),
                 name, "CublasBackend::gemm");
  };
  if constexpr (std::is_same_v<T, float>) {
    call(cublasSgemm_64, "cublasSgemm");
  } else {
    call(cublasDgemm_64, "cublasDgemm");
  }
}

/// Elements from each item's matrix of a batch to the next one's.
struct BatchSteps {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
  bool operator==(const BatchSteps&) const = default;
};

/// `count` products of one shape, `steps` apart; C is not read where β = 0. Throws BackendError.
template <class T>
void multiply_batch(cublasHandle_t handle, const ColumnMajorProduct<T>& p, BatchSteps steps,
                    Index count, T alpha, T beta) {
  const auto call = [&](auto gemm, const char* name) {
    check_cublas(gemm(handle, p.left_operation, p.right_operation, p.rows, p.cols, p.depth, &alpha,
                      p.left.data, p.leading_dimension(p.left), steps.b, p.right.data,
                      p.leading_dimension(p.right), steps.a, &beta, p.c.data,
                      p.leading_dimension(p.c), steps.c, static_cast<std::int64_t>(count)),
                 name, "CublasBackend::gemm_batched");
  };
  if constexpr (std::is_same_v<T, float>) {
    call(cublasSgemmStridedBatched_64, "cublasSgemmStridedBatched");
  } else {
    call(cublasDgemmStridedBatched_64, "cublasDgemmStridedBatched");
  }
}

template <class T>
bool have_one_shape(const GemmItem<T>& a, const GemmItem<T>& b) {
  const auto same = [](const auto& m, const auto& n) {
    return m.rows == n.rows && m.cols == n.cols && m.stride == n.stride;
  };
  return same(a.a.matrix, b.a.matrix) && same(a.b.matrix, b.b.matrix) && same(a.c, b.c) &&
         a.a.is_transposed == b.a.is_transposed && a.b.is_transposed == b.b.is_transposed;
}

// Elements between two places, which may be of different pieces of memory; −1 where they are no
// whole number of steps forwards.
template <class T>
std::int64_t elements_between(const T* from, const T* to) {
  const auto distance = reinterpret_cast<std::intptr_t>(to) - reinterpret_cast<std::intptr_t>(from);
  return distance >= 0 && distance % std::intptr_t{sizeof(T)} == 0
             ? distance / std::intptr_t{sizeof(T)}
             : -1;
}

/// How many items, from the first on, are products of one shape at equal steps, as those of the
/// heads of attention are; 1 at least.
template <class T>
Index batch_length(std::span<const GemmItem<T>> items, BatchSteps& steps) {
  const auto between = [&](std::size_t i) -> BatchSteps {
    const GemmItem<T>& p = items[i];
    const GemmItem<T>& q = items[i + 1];
    return {elements_between(p.a.matrix.data, q.a.matrix.data),
            elements_between(p.b.matrix.data, q.b.matrix.data),
            elements_between(p.c.data, q.c.data)};
  };
  std::size_t n = 1;
  for (; n < items.size() && have_one_shape(items[0], items[n]); ++n) {
    const BatchSteps own = between(n - 1);
    if (n == 1) steps = own;
    if (own != steps || steps.a < 0 || steps.b < 0 || steps.c <= 0) break;
  }
  return static_cast<Index>(n);
}

}  // namespace wanamaker::inline WANAMAKER_ABI::detail
