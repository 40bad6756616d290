// The Backend concept: what a backend must supply, and readable messages for what is missing.
// docs/policies/backend.md has the laws and the smallest example.
#pragma once

#include <concepts>
#include <span>
#include <type_traits>
#include <utility>

#include "wanamaker/backend/matrix.hpp"
#include "wanamaker/backend/row_team.hpp"
#include "wanamaker/core/matrix_view.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Types that belong to a backend: Scalar (compute), Storage (weights), Accumulator (sums),
/// Buffer<T> (owning array), Matrix (owning [rows × cols] of Scalar), WeightMatrix (of Storage),
/// IndexVector (owning, of TokenId). Specialise it for your backend, for a host backend by
/// inheriting HostBackendTraits.
template <class B>
struct backend_traits;

template <class B>
using scalar_t = typename backend_traits<B>::Scalar;
template <class B>
using storage_t = typename backend_traits<B>::Storage;
template <class B>
using accumulator_t = typename backend_traits<B>::Accumulator;
template <class B, class T>
using buffer_t = typename backend_traits<B>::template Buffer<T>;
template <class B>
using matrix_t = typename backend_traits<B>::Matrix;
template <class B>
using weight_matrix_t = typename backend_traits<B>::WeightMatrix;
template <class B>
using index_vector_t = typename backend_traits<B>::IndexVector;
template <class B>
using matrix_view_t = MatrixView<scalar_t<B>>;
template <class B>
using const_matrix_view_t = ConstMatrixView<scalar_t<B>>;

/// A factor of a matrix product: op(A) = A or Aᵀ.
template <class T>
struct Operand {
  ConstMatrixView<T> matrix;
  bool is_transposed = false;

  WANAMAKER_HOST_DEVICE constexpr Index rows() const {
    return is_transposed ? matrix.cols : matrix.rows;
  }
  WANAMAKER_HOST_DEVICE constexpr Index cols() const {
    return is_transposed ? matrix.rows : matrix.cols;
  }
  /// Element (i, j) of op(A).
  WANAMAKER_HOST_DEVICE constexpr const T& operator()(Index i, Index j) const {
    return is_transposed ? matrix(j, i) : matrix(i, j);
  }
};

/// op(A) = A.
template <class T>
Operand<std::remove_const_t<T>> plain(MatrixView<T> a) {
  return {a, false};
}
/// op(A) = Aᵀ.
template <class T>
Operand<std::remove_const_t<T>> transposed(MatrixView<T> a) {
  return {a, true};
}

/// One product of a batch: C ← α·op(A)·op(B) + β·C, shapes may differ from item to item.
template <class T>
struct GemmItem {
  Operand<T> a;
  Operand<T> b;
  MatrixView<T> c;
};

/// Throws ShapeError unless op(A)·op(B) is defined and has C's shape.
template <class A, class B, class C>
void check_gemm_shapes(const Operand<A>& a, const Operand<B>& b, const MatrixView<C>& c,
                       const char* where) {
  if (a.cols() == b.rows() && c.rows == a.rows() && c.cols == b.cols()) return;
  throw ShapeError({.id = "shape/product",
                    .where = where,
                    .what = "factors do not fit",
                    .expected = "[m × k]·[k × n] into [m × n]",
                    .found = shape_text(a.rows(), a.cols()) + "·" + shape_text(b.rows(), b.cols()) +
                             " into " + shape_text(c),
                    .mend = "check the order of the factors and which of them is transposed"});
}

/// How Gram matrices are accumulated. `blocked`: products of blocks of up to 256 rows in Scalar,
/// summed in double; `exact`: every product in double.
enum class GramPrecision { blocked, exact };

namespace detail {

// What a backend must be able to launch, for the concept check.
struct ProbeElement {
  WANAMAKER_KERNEL void operator()(Index) const {}
};
struct ProbeRow {
  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index, const RowTeam&) const {}
};

template <class B>
concept HasTraits = requires {
  typename backend_traits<B>::Scalar;
  typename backend_traits<B>::Storage;
  typename backend_traits<B>::Accumulator;
  typename backend_traits<B>::Matrix;
  typename backend_traits<B>::WeightMatrix;
  typename backend_traits<B>::IndexVector;
  std::declval<buffer_t<B, float>&>().data();
};
template <class B>
concept HasAllocate = requires(B& b, Index n) {
  { b.template allocate<float>(n) } -> std::same_as<buffer_t<B, float>>;
  { b.template allocate<TokenId>(n) } -> std::same_as<buffer_t<B, TokenId>>;
};
template <class B>
concept HasCopies = requires(B& b, const float* source, float* destination, Index n) {
  b.copy_from_host(source, n, destination);
  b.copy_to_host(source, n, destination);
};
template <class B>
concept HasGemm = requires(B& b, Operand<scalar_t<B>> a, Operand<storage_t<B>> w, scalar_t<B> s,
                           matrix_view_t<B> c) {
  b.gemm(a, a, s, s, c);
  b.gemm(a, w, s, s, c);
};
template <class B>
concept HasGemmBatched = requires(B& b, std::span<const GemmItem<scalar_t<B>>> items,
                                  scalar_t<B> s) {
  b.gemm_batched(items, s, s);
};
template <class B>
concept HasGram = requires(B& b, const_matrix_view_t<B> x, MatrixView<double> c) {
  b.gram(x, x, c, GramPrecision::exact);
};
template <class B>
concept HasForEach = requires(B& b, Index n) {
  b.for_each(n, ProbeElement{});
};
template <class B>
concept HasForEachRow = requires(B& b, Index n) {
  b.for_each_row(n, ProbeRow{});
};
template <class B>
concept HasSynchronize = requires(B& b) {
  b.synchronize();
};

}  // namespace detail

/// A backend: an object that computes on matrices in its own memory. One object serves one thread
/// at a time; several objects may work at once.
template <class B>
concept Backend = detail::HasTraits<B> && detail::HasAllocate<B> && detail::HasCopies<B> &&
    detail::HasGemm<B> && detail::HasGemmBatched<B> && detail::HasGram<B> &&
    detail::HasForEach<B> && detail::HasForEachRow<B> && detail::HasSynchronize<B>;

/// True for a backend; for anything else a static_assert names the first thing that is missing.
template <class B>
consteval bool check_backend() {
  static_assert(detail::HasTraits<B>,
                "wanamaker: backend_traits<B> is missing or incomplete: specialise it, for a host "
                "backend by inheriting HostBackendTraits (docs/policies/backend.md)");
  if constexpr (detail::HasTraits<B>) {
    static_assert(
        detail::HasAllocate<B>,
        "wanamaker: a backend needs allocate<T>(n) returning backend_traits<B>::Buffer<T> "
        "(docs/policies/backend.md)");
    static_assert(detail::HasCopies<B>,
                  "wanamaker: a backend needs copy_from_host(source, n, destination) and "
                  "copy_to_host(source, n, destination) (docs/policies/backend.md)");
    static_assert(
        detail::HasGemm<B>,
        "wanamaker: a backend needs gemm(a, b, alpha, beta, c) for operands of Scalar, and "
        "for b of Storage (docs/policies/backend.md)");
    static_assert(detail::HasGemmBatched<B>,
                  "wanamaker: a backend needs gemm_batched(items, alpha, beta) "
                  "(docs/policies/backend.md)");
    static_assert(detail::HasGram<B>,
                  "wanamaker: a backend needs gram(x, y, c, precision), adding XᵀY to a double "
                  "matrix (docs/policies/backend.md)");
    static_assert(detail::HasForEach<B>,
                  "wanamaker: a backend needs for_each(n, f), calling f(i) "
                  "(docs/policies/backend.md)");
    static_assert(detail::HasForEachRow<B>,
                  "wanamaker: a backend needs for_each_row(rows, f), calling f(row, team) "
                  "(docs/policies/backend.md)");
    static_assert(detail::HasSynchronize<B>,
                  "wanamaker: a backend needs synchronize() (docs/policies/backend.md)");
  }
  return true;
}

/// A zeroed matrix in the backend's memory.
template <Backend B>
matrix_t<B> make_matrix(B& backend, Index rows, Index cols) {
  return matrix_t<B>(backend.template allocate<scalar_t<B>>(rows * cols), rows, cols);
}

/// A copy of host values [rows × cols] in the backend's memory.
template <class T, Backend B>
auto matrix_from_host(B& backend, const T* values, Index rows, Index cols) {
  OwningMatrix<T, buffer_t<B, T>> matrix(backend.template allocate<T>(rows * cols), rows, cols);
  backend.copy_from_host(values, rows * cols, matrix.data());
  return matrix;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
