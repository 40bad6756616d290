// EigenBackend: the default host backend, products by Eigen.
#pragma once

#include "wanamaker/backend/eigen_configuration.hpp"
#include "wanamaker/backend/host_backend.hpp"
#include "wanamaker/backend/vector_product.hpp"

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
template <class Configuration>
struct BasicEigenGemm {
  /// Elements of memory that a product [rows × depth]·[depth × cols] packs its factors into.
  template <class T>
  static Index packed_size(Index rows, Index cols, Index depth) {
    if (rows <= 1 || cols == 0 || depth == 0) return 0;
    const Blocking<T> blocking(rows, cols, depth, {});
    return blocking.size_of_a() + blocking.size_of_b();
  }

  /// `packing`: packed_size elements at 64 bytes; fewer, or none, and the product allocates them.
  template <class T>
  static void multiply(Operand<T> a, Operand<T> b, T alpha, T beta, MatrixView<T> c,
                       VectorView<T> packing = {}) {
    scale(c, beta);
    const bool is_vector = !a.is_transposed || a.matrix.stride == 1;
    if (c.rows == 1 && is_vector) return add_vector_product(a.matrix.data, b, alpha, c.data);
    if (c.rows == 0 || c.cols == 0 || a.cols() == 0) return;
    if (a.is_transposed && b.is_transposed) {
      add_product<Eigen::ColMajor, Eigen::ColMajor>(a, b, alpha, c, packing);
    } else if (a.is_transposed) {
      add_product<Eigen::ColMajor, Eigen::RowMajor>(a, b, alpha, c, packing);
    } else if (b.is_transposed) {
      add_product<Eigen::RowMajor, Eigen::ColMajor>(a, b, alpha, c, packing);
    } else {
      add_product<Eigen::RowMajor, Eigen::RowMajor>(a, b, alpha, c, packing);
    }
  }

 private:
  template <class T>
  static void scale(MatrixView<T> c, T beta) {
    if (beta == T(1)) return;
    for (Index i = 0; i < c.rows; ++i) {
      for (Index j = 0; j < c.cols; ++j) c(i, j) = beta == T(0) ? T(0) : beta * c(i, j);
    }
  }

  // Eigen's sizes of blocks, with memory for them that it does not own, where that suffices.
  template <class T>
  class Blocking
      : public Eigen::internal::gemm_blocking_space<Eigen::RowMajor, T, T, Eigen::Dynamic,
                                                    Eigen::Dynamic, Eigen::Dynamic> {
   public:
    Blocking(Index rows, Index cols, Index depth, VectorView<T> packing)
        : Blocking::gemm_blocking_space(rows, cols, depth, 1, true) {
      if (packing.size < size_of_a() + size_of_b()) return;
      this->m_blockA = packing.data;
      this->m_blockB = packing.data + size_of_a();
    }
    ~Blocking() { this->m_blockA = this->m_blockB = nullptr; }  // which the base would free
    Blocking(const Blocking&) = delete;
    Blocking& operator=(const Blocking&) = delete;

    // Rounded up, so that the second block is aligned as the first.
    Index size_of_a() const { return (this->mc() * this->kc() + 63) / 64 * 64; }
    Index size_of_b() const { return this->kc() * this->nc(); }
  };

  // Eigen's blocked product without the expression around it (which would compile for seconds, for
  // vectors and tiny matrices of every layout).
  template <int LeftOrder, int RightOrder, class T>
  static void add_product(Operand<T> a, Operand<T> b, T alpha, MatrixView<T> c,
                          VectorView<T> packing) {
    using Product =
        Eigen::internal::general_matrix_matrix_product<Index, T, LeftOrder, false, T, RightOrder,
                                                       false, Eigen::RowMajor, 1>;
    Blocking<T> blocking(c.rows, c.cols, a.cols(), packing);
    Product::run(c.rows, c.cols, a.cols(), a.matrix.data, a.matrix.stride, b.matrix.data,
                 b.matrix.stride, c.data, 1, c.stride, alpha, blocking, nullptr);
  }
};

/// That of this translation unit.
using EigenGemm = BasicEigenGemm<EigenAsConfigured>;

/// `Configuration` is not to be given: it tells translation units apart whose Eigen differs
/// (docs/configuration.md).
template <class S = float, class W = S, class Configuration = EigenAsConfigured>
class EigenBackend;

template <class S, class W, class Configuration>
struct backend_traits<EigenBackend<S, W, Configuration>> : HostBackendTraits<S, W> {};

/// Computes in S (float or double), stores weights as W (S, half or bfloat16).
template <class S, class W, class Configuration>
class EigenBackend : public HostBackend<S, W, BasicEigenGemm<Configuration>> {
 public:
  using HostBackend<S, W, BasicEigenGemm<Configuration>>::HostBackend;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
