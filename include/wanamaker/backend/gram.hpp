// XᵀY on the host with sums in double: a register-blocked product whose vectors are as wide as the
// machine's. Gram matrices are what statistics spend their time on, and few BLAS libraries multiply
// double quickly everywhere, or float into double at all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "wanamaker/backend/host_memory.hpp"
#include "wanamaker/backend/instruction_set.hpp"
#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/matrix_view.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace detail {

template <class T, int Bytes>
struct VectorOf {
#if defined(__GNUC__)
  typedef T type __attribute__((vector_size(Bytes)));
#else
  using type = T;
#endif
};

// C[m × n] += Σ_k a(k, ·)ᵀ b(k, ·) for one block of C held in registers: with 32 registers of 64
// bytes 8 × 3 vectors, with 16 narrower ones 4 × 3 or 4 × 2.
template <class T, int Bytes>
struct GramBlock {
  using Vector = typename VectorOf<T, Bytes>::type;
  static constexpr Index lanes = Index{sizeof(Vector)} / Index{sizeof(T)};
  static constexpr std::size_t vectors = Bytes >= 32 ? 3 : 2;
  static constexpr std::size_t rows = Bytes >= 64 ? 8 : 4;
  static constexpr Index m = Index{rows};
  static constexpr Index n = lanes * Index{vectors};

  // a [depth × m], b [depth × n], packed; c is a row-major block of row length `stride`.
  WANAMAKER_DETAIL_HOST_KERNEL static void run(const T* a, const T* b, Index depth, double* c,
                                               Index stride) {
    run_unrolled(a, b, depth, c, stride, std::make_index_sequence<rows * vectors>());
  }

 private:
  // Unrolled by hand, so that `sum` stays in registers at any level of optimisation.
  template <std::size_t... I>
  WANAMAKER_DETAIL_HOST_KERNEL static void run_unrolled(const T* a, const T* b, Index depth,
                                                        double* c, Index stride,
                                                        std::index_sequence<I...>) {
    Vector sum[rows * vectors] = {};
    for (Index k = 0; k < depth; ++k, a += m, b += n) {
      Vector right[vectors];
      load(right, b, std::make_index_sequence<vectors>());
      ((sum[I] += right[I % vectors] * a[I / vectors]), ...);
    }
    T values[rows * vectors * std::size_t{lanes}];
    std::memcpy(values, sum, sizeof(values));
    for (Index i = 0; i < m; ++i) {
      for (Index j = 0; j < n; ++j) c[i * stride + j] += static_cast<double>(values[i * n + j]);
    }
  }

  template <std::size_t... I>
  WANAMAKER_DETAIL_HOST_KERNEL static void load(Vector* to, const T* from,
                                                std::index_sequence<I...>) {
    (std::memcpy(to + I, from + Index{I} * lanes, sizeof(Vector)), ...);
  }
};

// `width` values, converted. The copy cannot overlap `packed`, so that the loop is vectorised.
template <class T, Index width, class S>
WANAMAKER_DETAIL_HOST_KERNEL void pack_row(const S* row, T* packed) {
  S values[static_cast<std::size_t>(width)];
  std::memcpy(values, row, sizeof(values));
  for (Index j = 0; j < width; ++j) packed[j] = static_cast<T>(values[j]);
}

// Rows of x side by side in panels of `width` columns, the last panel padded with zeros:
// packed[panel][row][width].
template <class T, Index width, class S>
WANAMAKER_DETAIL_HOST_KERNEL void pack_panels(ConstMatrixView<S> x, T* packed) {
  for (Index first = 0; first < x.cols; first += width) {
    const Index count = std::min(width, x.cols - first);
    for (Index t = 0; t < x.rows; ++t, packed += width) {
      const S* row = x.row(t) + first;
      if (count == width) {
        pack_row<T, width>(row, packed);
      } else {
        for (Index j = 0; j < width; ++j) packed[j] = j < count ? static_cast<T>(row[j]) : T(0);
      }
    }
  }
}

// Tiles of C are `gram_tile` square: a multiple of every block's sides, in second-level cache.
inline constexpr Index gram_tile = 192;
// Bytes of one packed column, blocks of 64 rows in double, 128 in float: both panels in half of a
// first-level cache.
inline constexpr Index gram_depth_bytes = 512;
// Rows that are packed at a time, for all tiles; then the tiles are computed from what is packed.
inline constexpr Index gram_rows = 512;

template <class T>
inline constexpr Index gram_depth = gram_depth_bytes / Index{sizeof(T)};

// Packs a strip of up to gram_tile columns: [blocks of gram_depth rows][panels][rows][width], as
// the left factor's panels or the right one's.
template <class T, class S, bool is_left>
struct GramStrip {
  ConstMatrixView<S> x;
  T* packed;

  template <int Bytes>
  WANAMAKER_DETAIL_HOST_KERNEL void operator()(std::integral_constant<int, Bytes>) const {
    using Block = GramBlock<T, Bytes>;
    for (Index first = 0; first < x.rows; first += gram_depth<T>) {
      const Index count = std::min(gram_depth<T>, x.rows - first);
      pack_panels<T, is_left ? Block::m : Block::n>(x.middle_rows(first, count),
                                                    packed + first * gram_tile);
    }
  }
};

// Adds the product of packed strips to one tile of XᵀY [gram_tile × gram_tile]. Of a tile on the
// diagonal of XᵀX the blocks below the diagonal are left out.
template <class T>
struct GramTile {
  const T* left;
  const T* right;
  Index rows;
  Index left_cols;
  Index right_cols;
  bool is_upper_only;
  double* tile;

  template <int Bytes>
  WANAMAKER_DETAIL_HOST_KERNEL void operator()(std::integral_constant<int, Bytes>) const {
    using Block = GramBlock<T, Bytes>;
    for (Index first = 0; first < rows; first += gram_depth<T>) {
      const Index count = std::min(gram_depth<T>, rows - first);
      const T* a = left + first * gram_tile;
      const T* b = right + first * gram_tile;
      for (Index j = 0; j < right_cols; j += Block::n) {
        const Index end = is_upper_only ? std::min(left_cols, j + Block::n) : left_cols;
        for (Index i = 0; i < end; i += Block::m) {
          Block::run(a + i * count, b + j * count, count, tile + i * gram_tile + j, gram_tile);
        }
      }
    }
  }
};

template <class T, class S>
class GramProduct {
 public:
  GramProduct(ConstMatrixView<S> x, ConstMatrixView<S> y)
      : x_(x),
        y_(y),
        down_(blocks_of(x.cols, gram_tile)),
        across_(blocks_of(y.cols, gram_tile)),
        is_symmetric_(x.data == y.data && x.cols == y.cols && x.stride == y.stride),
        tiles_(down_ * across_ * tile_size) {
    const Index rows = std::min(gram_rows, x.rows);
    left_ = HostBuffer<T>::uninitialised(rows * gram_tile * down_);
    right_ = HostBuffer<T>::uninitialised(rows * gram_tile * across_);
  }

  // Tiles of XᵀY; those below the diagonal are left out where Y is X.
  void multiply(const ExecutorRef& executor) {
    for (Index first = 0; first < x_.rows; first += gram_rows) {
      const Index count = std::min(gram_rows, x_.rows - first);
      executor.run(down_ + across_, [&](Index s) { pack(s, first, count); });
      for_each_tile(executor, [&](Index i, Index j) { multiply_tile(i, j, count); });
    }
  }

  // C ← C + scale·XᵀY.
  void add_to(MatrixView<double> c, double scale, const ExecutorRef& executor) const {
    for_each_tile(executor, [&](Index i, Index j) {
      const MatrixView<double> own = tile_of(c, i, j);
      const ConstMatrixView<double> product(tile(i, j), own.rows, own.cols, gram_tile);
      if (is_symmetric_ && i == j) {
        add_mirrored(product, scale, own);
      } else {
        add(product, scale, own);
        if (is_symmetric_) add_transposed(product, scale, tile_of(c, j, i));
      }
    });
  }

 private:
  static constexpr Index tile_size = gram_tile * gram_tile;

  template <class F>
  void for_each_tile(const ExecutorRef& executor, F f) const {
    executor.run(down_ * across_, [&](Index t) {
      const Index i = t % down_;
      const Index j = t / down_;
      if (!is_symmetric_ || i <= j) f(i, j);
    });
  }

  double* tile(Index i, Index j) { return tiles_.data() + (j * down_ + i) * tile_size; }
  const double* tile(Index i, Index j) const { return tiles_.data() + (j * down_ + i) * tile_size; }
  static MatrixView<double> tile_of(MatrixView<double> c, Index i, Index j) {
    const Index row = i * gram_tile;
    const Index col = j * gram_tile;
    return c.middle_rows(row, std::min(gram_tile, c.rows - row))
        .middle_cols(col, std::min(gram_tile, c.cols - col));
  }
  static ConstMatrixView<S> columns(ConstMatrixView<S> m, Index strip) {
    const Index first = strip * gram_tile;
    return m.middle_cols(first, std::min(gram_tile, m.cols - first));
  }

  void pack(Index strip, Index first, Index count) {
    if (strip < down_) {
      run_widest(GramStrip<T, S, true>{columns(x_, strip).middle_rows(first, count),
                                       left_.data() + strip * count * gram_tile});
    } else {
      strip -= down_;
      run_widest(GramStrip<T, S, false>{columns(y_, strip).middle_rows(first, count),
                                        right_.data() + strip * count * gram_tile});
    }
  }

  void multiply_tile(Index i, Index j, Index count) {
    run_widest(GramTile<T>{left_.data() + i * count * gram_tile,
                           right_.data() + j * count * gram_tile, count, columns(x_, i).cols,
                           columns(y_, j).cols, is_symmetric_ && i == j, tile(i, j)});
  }

  static void add(ConstMatrixView<double> product, double scale, MatrixView<double> c) {
    for (Index row = 0; row < c.rows; ++row) {
      double* out = c.row(row);
      const double* in = product.row(row);
      for (Index col = 0; col < c.cols; ++col) out[col] += scale * in[col];
    }
  }
  static void add_transposed(ConstMatrixView<double> product, double scale, MatrixView<double> c) {
    for (Index row = 0; row < c.rows; ++row) {
      for (Index col = 0; col < c.cols; ++col) c(row, col) += scale * product(col, row);
    }
  }
  static void add_mirrored(ConstMatrixView<double> product, double scale, MatrixView<double> c) {
    for (Index row = 0; row < c.rows; ++row) {
      for (Index col = 0; col < row; ++col) c(row, col) += scale * product(col, row);
      for (Index col = row; col < c.cols; ++col) c(row, col) += scale * product(row, col);
    }
  }

  ConstMatrixView<S> x_;
  ConstMatrixView<S> y_;
  Index down_;
  Index across_;
  bool is_symmetric_;
  HostBuffer<double> tiles_;
  HostBuffer<T> left_{};
  HostBuffer<T> right_{};
};

/// C ← C + scale·XᵀY; products of blocks of rows in T, sums of blocks in double. Where Y is X half
/// of the work is saved. Tiles depend on the shapes alone, so results do not depend on threads.
template <class T, class S>
void add_gram(const ExecutorRef& executor, ConstMatrixView<S> x, ConstMatrixView<S> y, double scale,
              MatrixView<double> c) {
  GramProduct<T, S> product(x, y);
  product.multiply(executor);
  product.add_to(c, scale, executor);
}

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
