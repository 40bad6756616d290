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
  WANAMAKER_KERNEL static void run(const T* a, const T* b, Index depth, double* c, Index stride) {
    run_unrolled(a, b, depth, c, stride, std::make_index_sequence<rows * vectors>());
  }

 private:
  // Unrolled by hand, so that `sum` stays in registers at any level of optimisation.
  template <std::size_t... I>
  WANAMAKER_KERNEL static void run_unrolled(const T* a, const T* b, Index depth, double* c,
                                            Index stride, std::index_sequence<I...>) {
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
  WANAMAKER_KERNEL static void load(Vector* to, const T* from, std::index_sequence<I...>) {
    (std::memcpy(to + I, from + Index{I} * lanes, sizeof(Vector)), ...);
  }
};

// `width` values, converted. The copy cannot overlap `packed`, so that the loop is vectorised.
template <class T, Index width, class S>
WANAMAKER_KERNEL void pack_row(const S* row, T* packed) {
  S values[static_cast<std::size_t>(width)];
  std::memcpy(values, row, sizeof(values));
  for (Index j = 0; j < width; ++j) packed[j] = static_cast<T>(values[j]);
}

// Rows of x side by side in panels of `width` columns, the last panel padded with zeros:
// packed[panel][row][width].
template <class T, Index width, class S>
WANAMAKER_KERNEL void pack_panels(ConstMatrixView<S> x, T* packed) {
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
// Bytes of one packed column: blocks of 128 rows in double, 256 in float.
inline constexpr Index gram_depth_bytes = 1024;

// One tile of XᵀY in memory of its own, [gram_tile × gram_tile].
template <class T, class S>
struct GramTile {
  ConstMatrixView<S> x;
  ConstMatrixView<S> y;
  T* packed_x;
  T* packed_y;
  double* tile;

  template <int Bytes>
  WANAMAKER_KERNEL void operator()(std::integral_constant<int, Bytes>) const {
    using Block = GramBlock<T, Bytes>;
    constexpr Index depth = gram_depth_bytes / Index{sizeof(T)};
    for (Index first = 0; first < x.rows; first += depth) {
      const Index count = std::min(depth, x.rows - first);
      pack_panels<T, Block::m>(x.middle_rows(first, count), packed_x);
      pack_panels<T, Block::n>(y.middle_rows(first, count), packed_y);
      for (Index j = 0; j < y.cols; j += Block::n) {
        for (Index i = 0; i < x.cols; i += Block::m) {
          Block::run(packed_x + i * count, packed_y + j * count, count, tile + i * gram_tile + j,
                     gram_tile);
        }
      }
    }
  }
};

template <class T, class S>
class GramProduct {
 public:
  GramProduct(ConstMatrixView<S> x, ConstMatrixView<S> y, double scale, MatrixView<double> c)
      : x_(x), y_(y), scale_(scale), c_(c) {
    is_symmetric_ = x.data == y.data && x.cols == y.cols && x.stride == y.stride;
  }

  // Tiles below the diagonal are the transposes of those above it where Y is X.
  void run(const ExecutorRef& executor) const {
    const Index down = blocks_of(c_.rows, gram_tile);
    const Index across = blocks_of(c_.cols, gram_tile);
    executor.run(down * across, [&](Index t) {
      const Index i = t % down;
      const Index j = t / down;
      if (!is_symmetric_ || i <= j) add_tile(i * gram_tile, j * gram_tile);
    });
  }

 private:
  void add_tile(Index i, Index j) const {
    constexpr Index panel = gram_tile * gram_depth_bytes / Index{sizeof(T)};
    const Index rows = std::min(gram_tile, c_.rows - i);
    const Index cols = std::min(gram_tile, c_.cols - j);
    HostBuffer<double> tile(gram_tile * gram_tile);
    HostBuffer<T> packed(2 * panel);
    run_widest(GramTile<T, S>{x_.middle_cols(i, rows), y_.middle_cols(j, cols), packed.data(),
                              packed.data() + panel, tile.data()});
    const ConstMatrixView<double> product(tile.data(), rows, cols, gram_tile);
    add(product, i, j);
    if (is_symmetric_ && i != j) add_transposed(product, j, i);
  }

  void add(ConstMatrixView<double> product, Index i, Index j) const {
    for (Index row = 0; row < product.rows; ++row) {
      double* out = c_.row(i + row) + j;
      for (Index col = 0; col < product.cols; ++col) out[col] += scale_ * product(row, col);
    }
  }
  void add_transposed(ConstMatrixView<double> product, Index i, Index j) const {
    for (Index row = 0; row < product.cols; ++row) {
      double* out = c_.row(i + row) + j;
      for (Index col = 0; col < product.rows; ++col) out[col] += scale_ * product(col, row);
    }
  }

  ConstMatrixView<S> x_;
  ConstMatrixView<S> y_;
  double scale_;
  MatrixView<double> c_;
  bool is_symmetric_ = false;
};

/// C ← C + scale·XᵀY; products of blocks of rows in T, sums of blocks in double. Where Y is X half
/// of the work is saved. Tiles depend on the shapes alone, so results do not depend on threads.
template <class T, class S>
void add_gram(const ExecutorRef& executor, ConstMatrixView<S> x, ConstMatrixView<S> y, double scale,
              MatrixView<double> c) {
  GramProduct<T, S>(x, y, scale, c).run(executor);
}

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
