// CublasBackend: products by cuBLAS, everything else by the kernels that all backends share, in the
// memory of a device. For sources that nvcc compiles; target wanamaker::cuda.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/backend/backward_kernels.hpp"
#include "wanamaker/backend/cublas_products.hpp"
#include "wanamaker/backend/cuda_attention.hpp"
#include "wanamaker/backend/cuda_launch.hpp"
#include "wanamaker/backend/cuda_memory.hpp"
#include "wanamaker/backend/cuda_session.hpp"
#include "wanamaker/backend/kernels.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace kernels {

/// y ← β·y per row; y is not read where β = 0.
template <class T>
struct ScaleRow {
  T beta;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    T* row = y.row(i);
    const T factor = beta;
    team.each(y.cols, [=](Index j) { row[j] = factor == T(0) ? T(0) : factor * row[j]; });
  }
};

}  // namespace kernels

template <class S = float, class W = S>
class CublasBackend;

template <class S, class W>
struct backend_traits<CublasBackend<S, W>> {
  using Scalar = S;
  using Storage = W;
  using Accumulator = double;
  template <class T>
  using Buffer = DeviceBuffer<T>;
  using Matrix = OwningMatrix<S, DeviceBuffer<S>>;
  using WeightMatrix = OwningMatrix<W, DeviceBuffer<W>>;
  using IndexVector = DeviceBuffer<TokenId>;
};

/// Computes in S (float or double) on a CUDA device, stores weights as W (S, half or bfloat16):
/// those of W ≠ S are widened in panels before they are used. Calls return before the device is
/// done, but for copy_to_host and synchronize. The device that is current when the backend is made
/// has to be current whenever it or a buffer of its own is used. Every call of CUDA and of cuBLAS
/// is checked: BackendError.
template <class S, class W>
class CublasBackend {
 public:
  /// Stream, handle and memory of its own.
  CublasBackend() : CublasBackend(CublasOptions{}) {}
  /// What the caller gives.
  explicit CublasBackend(const CublasOptions& options)
      : session_(std::make_shared<const detail::CudaSession>(options)), staging_(session_) {}

  cudaStream_t stream() const { return session_->stream(); }
  MathMode math() const { return session_->math(); }

  template <class T>
  DeviceBuffer<T> allocate(Index n) {
    return {session_, n};
  }

  /// The source may be changed or freed at once.
  template <class T>
  void copy_from_host(const T* source, Index n, T* destination) {
    staging_.send(source, bytes_of<T>(n), destination);
  }
  /// Returns when the values are there.
  template <class T>
  void copy_to_host(const T* source, Index n, T* destination) {
    constexpr const char* where = "CublasBackend::copy_to_host";
    if (n == 0) return;
    detail::check_cuda(
        cudaMemcpyAsync(destination, source, bytes_of<T>(n), cudaMemcpyDeviceToHost, stream()),
        "cudaMemcpyAsync", where);
    wait(where);
  }

  void synchronize() { wait("CublasBackend::synchronize"); }

  template <class F>
  void for_each(Index n, F f) {
    constexpr int threads = detail::threads_of_elements;
    detail::launch(stream(), blocks_of(n, threads), threads, detail::run_elements<F>, n, f);
  }

  template <class F>
  void for_each_row(Index rows, F f) {
    detail::launch(stream(), rows, BlockRowTeam::most_members, detail::run_rows<F>, rows, f);
  }

  /// C ← α·op(A)·op(B) + β·C; C is not read where β = 0. Throws ShapeError.
  void gemm(Operand<S> a, Operand<S> b, S alpha, S beta, MatrixView<S> c) {
    check_gemm_shapes(a, b, c, "CublasBackend::gemm");
    multiply(a, b, alpha, beta, c);
  }

  /// The same for weights in their storage format.
  void gemm(Operand<S> a, Operand<W> b, S alpha, S beta,
            MatrixView<S> c) requires(!std::is_same_v<S, W>) {
    check_gemm_shapes(a, b, c, "CublasBackend::gemm");
    const Index most = std::max<Index>(1, panel_elements / std::max<Index>(1, b.rows()));
    for (Index first = 0; first < c.cols; first += most) {
      const Index count = std::min(most, c.cols - first);
      multiply(a, widened(b, first, count), alpha, beta, c.middle_cols(first, count));
    }
  }

  /// Independent products: those that follow each other at equal steps in one call.
  void gemm_batched(std::span<const GemmItem<S>> items, S alpha, S beta) {
    for (const GemmItem<S>& item : items) {
      check_gemm_shapes(item.a, item.b, item.c, "CublasBackend::gemm_batched");
    }
    while (!items.empty()) {
      detail::BatchSteps steps;
      const Index count = detail::batch_length(items, steps);
      const GemmItem<S>& first = items.front();
      if (count == 1 || first.a.cols() == 0 || first.c.size() == 0) {
        for (Index i = 0; i < count; ++i)
          multiply_item(items[static_cast<std::size_t>(i)], alpha, beta);
      } else {
        detail::multiply_batch(session_->handle(),
                               detail::ColumnMajorProduct<S>(first.a, first.b, first.c), steps,
                               count, alpha, beta);
      }
      items = items.subspan(static_cast<std::size_t>(count));
    }
  }

  /// As ops::causal_attention, with one kernel for each sequence.
  template <class Memory>
  void causal_attention(ConstMatrixView<S> q, ConstMatrixView<S> k, ConstMatrixView<S> v,
                        std::span<const AttentionSpan> spans, const AttentionShape& shape,
                        MatrixView<S> out, Memory&) {
    using Tile = kernels::AttentionTileRow<S>;
    for (const AttentionSpan& span : spans) {
      for_each_row(blocks_of(span.queries, Tile::queries) * shape.heads,
                   detail::attention_tiles<S>(q, k, v, out, span, shape));
    }
  }

  /// C ← C + XᵀY in double; X [n × d], Y [n × e], C [d × e].
  void gram(ConstMatrixView<S> x, ConstMatrixView<S> y, MatrixView<double> c,
            GramPrecision precision) {
    check_gemm_shapes(transposed(x), plain(y), c, "CublasBackend::gram");
    if constexpr (std::is_same_v<S, double>) {
      add_product(transposed(x), plain(y), c);
    } else if (precision == GramPrecision::exact) {
      add_exact_gram(x, y, c);
    } else {
      add_blocked_gram(x, y, c);
    }
  }

 private:
  // Elements of a panel of widened weights, and of a block of rows in double.
  static constexpr Index panel_elements = Index{1} << 24;
  static constexpr Index gram_rows = 256;

  template <class T>
  static std::size_t bytes_of(Index n) {
    return static_cast<std::size_t>(n) * sizeof(T);
  }

  void wait(const char* where) {
    detail::check_cuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize", where);
  }

  // Empty sums are 0, which no library need say.
  void multiply(Operand<S> a, Operand<S> b, S alpha, S beta, MatrixView<S> c) {
    if (c.size() == 0) return;
    if (a.cols() == 0) return for_each_row(c.rows, kernels::ScaleRow<S>{beta, c});
    detail::multiply(session_->handle(), detail::ColumnMajorProduct<S>(a, b, c), alpha, beta);
  }
  void multiply_item(const GemmItem<S>& item, S alpha, S beta) {
    multiply(item.a, item.b, alpha, beta, item.c);
  }

  // C ← C + op(A)·op(B).
  template <class T>
  void add_product(Operand<T> a, Operand<T> b, MatrixView<T> c) {
    if (c.size() == 0 || a.cols() == 0) return;
    detail::multiply(session_->handle(), detail::ColumnMajorProduct<T>(a, b, c), T(1), T(1));
  }

  // Columns [first, first + count) of op(B), in S.
  Operand<S> widened(Operand<W> b, Index first, Index count) {
    const ConstMatrixView<W> source =
        b.is_transposed ? b.matrix.middle_rows(first, count) : b.matrix.middle_cols(first, count);
    return {converted(source, widened_), b.is_transposed};
  }

  // x in T, in memory that stays for the next call.
  template <class T, class U>
  MatrixView<T> converted(ConstMatrixView<U> x, DeviceBuffer<T>& memory) {
    if (memory.size() < x.size()) memory = allocate<T>(x.size());
    const MatrixView<T> y(memory.data(), x.rows, x.cols);
    for_each_row(x.rows, kernels::CopyRow<T, U>{x, y});
    return y;
  }

  void add_exact_gram(ConstMatrixView<S> x, ConstMatrixView<S> y, MatrixView<double> c) {
    const Index widest = std::max<Index>(1, std::max(x.cols, y.cols));
    const Index most = std::max<Index>(gram_rows, panel_elements / widest);
    const bool is_one = x.data == y.data && x.cols == y.cols && x.stride == y.stride;
    for (Index first = 0; first < x.rows; first += most) {
      const Index count = std::min(most, x.rows - first);
      const MatrixView<double> left = converted(x.middle_rows(first, count), left_);
      const MatrixView<double> right =
          is_one ? left : converted(y.middle_rows(first, count), right_);
      add_product(transposed(left), plain(right), c);
    }
  }

  void add_blocked_gram(ConstMatrixView<S> x, ConstMatrixView<S> y, MatrixView<double> c) {
    if (c.size() == 0) return;
    if (block_.size() < c.size()) block_ = allocate<S>(c.size());
    const MatrixView<S> block(block_.data(), c.rows, c.cols);
    for (Index first = 0; first < x.rows; first += gram_rows) {
      const Index count = std::min(gram_rows, x.rows - first);
      multiply(transposed(x.middle_rows(first, count)), plain(y.middle_rows(first, count)), S(1),
               S(0), block);
      for_each_row(c.rows, kernels::AddToRow<double, S>{block, c});
    }
  }

  std::shared_ptr<const detail::CudaSession> session_;
  detail::PinnedStaging staging_;
  DeviceBuffer<S> widened_{};
  DeviceBuffer<double> left_{};
  DeviceBuffer<double> right_{};
  DeviceBuffer<S> block_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
