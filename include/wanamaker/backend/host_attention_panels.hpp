// Attention by panels: two vectors of queries side by side, whose scores lie by key, so that a
// softmax needs no sums across a vector. What the forward and the backward pass share.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "wanamaker/backend/attention.hpp"
#include "wanamaker/backend/gram.hpp"
#include "wanamaker/backend/instruction_set.hpp"
#include "wanamaker/core/math.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace detail {

// A vector in a register, which compilers would otherwise read from memory again at each use: with
// three loads for two multiplications, loads would be the limit.
template <class Vector>
WANAMAKER_KERNEL void keep_in_register([[maybe_unused]] Vector& vector) {
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
  __asm__("" : "+x"(vector));
#endif
}

// Sums of `rows` rows of two vectors each, held in registers while k runs: sum[r] += left(r,
// k)·right[k].
template <class T, int Bytes, std::size_t rows>
struct TwoVectorSums {
  using Vector = typename VectorOf<T, Bytes>::type;
  static constexpr Index lanes = Index{sizeof(Vector)} / Index{sizeof(T)};

  Vector sum[2 * rows] = {};

  // Sums go on from what is at from + r·row_step.
  WANAMAKER_KERNEL void load(const T* from, Index row_step) {
    load_unrolled(from, row_step, std::make_index_sequence<2 * rows>());
  }

  // left(r, k) is left[r·row_step + k·step]; right[k] begins at right + k·right_step.
  WANAMAKER_KERNEL void add(const T* left, Index row_step, Index step, const T* right,
                            Index right_step, Index count) {
    add_unrolled(left, row_step, step, right, right_step, count,
                 std::make_index_sequence<2 * rows>());
  }

  // to + r·row_step ← sum of row r.
  WANAMAKER_KERNEL void store(T* to, Index row_step) const {
    store_unrolled(to, row_step, std::make_index_sequence<2 * rows>());
  }

  // to + r·row_step ← factor(r)·sum of row r, for the first `count` rows.
  template <class Factor>
  WANAMAKER_KERNEL void store(T* to, Index row_step, Index count, Factor factor) const {
    for (Index r = 0; r < count; ++r) {
      write(to + r * row_step, sum[2 * r] * factor(r));
      write(to + r * row_step + lanes, sum[2 * r + 1] * factor(r));
    }
  }

 private:
  // By reference: how a function returns a vector depends on the instruction set.
  WANAMAKER_KERNEL static void read(const T* from, Vector& vector) {
    std::memcpy(&vector, from, sizeof(Vector));
  }
  WANAMAKER_KERNEL static void write(T* to, const Vector& vector) {
    std::memcpy(to, &vector, sizeof(Vector));
  }
  // Where vector i of the sums begins.
  WANAMAKER_KERNEL static Index offset(std::size_t i, Index row_step) {
    return Index(i / 2) * row_step + Index(i % 2) * lanes;
  }

  template <std::size_t... I>
  WANAMAKER_KERNEL void load_unrolled(const T* from, Index row_step, std::index_sequence<I...>) {
    (read(from + offset(I, row_step), sum[I]), ...);
  }
  template <std::size_t... I>
  WANAMAKER_KERNEL void store_unrolled(T* to, Index row_step, std::index_sequence<I...>) const {
    (write(to + offset(I, row_step), sum[I]), ...);
  }
  template <std::size_t... I>
  WANAMAKER_KERNEL void add_unrolled(const T* left, Index row_step, Index step, const T* right,
                                     Index right_step, Index count, std::index_sequence<I...>) {
    Vector own[2 * rows] = {sum[I]...};
    for (Index k = 0; k < count; ++k, left += step, right += right_step) {
      Vector first;
      Vector second;
      read(right, first);
      read(right + lanes, second);
      keep_in_register(first);
      keep_in_register(second);
      ((own[I] += (I % 2 == 0 ? first : second) * left[Index{I / 2} * row_step]), ...);
    }
    ((sum[I] = own[I]), ...);
  }
};

// What is done with a panel of queries of one head; [keys × width] is by key, [columns × width] by
// column of the head.
template <class T, int Bytes>
struct QueryPanel {
  static constexpr Index width = 2 * TwoVectorSums<T, Bytes, 1>::lanes;

  // packed [columns × width] ← scale·rows first … first + count − 1; those past the last are 0.
  WANAMAKER_KERNEL static void pack(ConstMatrixView<T> rows, Index first, Index count, T scale,
                                    T* packed) {
    for (Index i = 0; i < width; ++i) {
      for (Index c = 0; c < rows.cols; ++c) {
        packed[c * width + i] = i < count ? scale * rows(first + i, c) : T(0);
      }
    }
  }

  // products [seen × width] ← keys·packed.
  WANAMAKER_KERNEL static void multiply(ConstMatrixView<T> keys, Index seen, const T* packed,
                                        T* products) {
    Index j = 0;
    for (; j + height <= seen; j += height) multiply_strip<strip>(keys, j, packed, products);
    for (; j < seen; ++j) multiply_strip<1>(keys, j, packed, products);
  }

  // Scores of keys after a query's own become −∞; query i's own is key `own` + i.
  WANAMAKER_KERNEL static void hide_future(T* scores, Index count, Index own, Index seen) {
    for (Index i = 0; i < count; ++i) {
      for (Index j = own + i + 1; j < seen; ++j) {
        scores[j * width + i] = -std::numeric_limits<T>::infinity();
      }
    }
  }

  // scores ← e^(score − largest) by query; scales ← 1/Σ. Sums of 64 keys are summed.
  WANAMAKER_KERNEL static void exponentials(T* scores, Index seen, T* scales) {
    T top[static_cast<std::size_t>(width)];
    for (Index i = 0; i < width; ++i) top[i] = scores[i];
    for (Index j = 1; j < seen; ++j) {
      const T* row = scores + j * width;
      for (Index i = 0; i < width; ++i) top[i] = top[i] < row[i] ? row[i] : top[i];
    }
    T total[static_cast<std::size_t>(width)] = {};
    for (Index begin = 0; begin < seen; begin += 64) {
      T part[static_cast<std::size_t>(width)] = {};
      for (Index j = begin; j < std::min(seen, begin + 64); ++j) {
        T* row = scores + j * width;
        for (Index i = 0; i < width; ++i) {
          row[i] = exponential_of_nonpositive(row[i] - top[i]);
          part[i] += row[i];
        }
      }
      for (Index i = 0; i < width; ++i) total[i] += part[i];
    }
    for (Index i = 0; i < width; ++i) scales[i] = T(1) / total[i];
  }

  // weights ← e^(scale·q·k − largest) for the queries `first` … of one head, 0 for keys after a
  // query's own; scales ← 1/Σ. `packed` is memory.
  WANAMAKER_KERNEL static void weigh(ConstMatrixView<T> q, ConstMatrixView<T> k, Index first,
                                     Index count, Index own, T scale, T* packed, T* weights,
                                     T* scales) {
    pack(q, first, count, scale, packed);
    multiply(k, own + count, packed, weights);
    hide_future(weights, count, own, own + count);
    exponentials(weights, own + count, scales);
  }

  // to's row first + i ← factor(i)·Σ_j weights[j, i]·keys[j] over the keys that its strip sees;
  // query i's own is key `own` + i.
  template <class Factor>
  WANAMAKER_KERNEL static void mix(const T* weights, ConstMatrixView<T> keys, Index own,
                                   Index count, MatrixView<T> to, Index first, Factor factor) {
    for (Index i = 0; i < count; i += height) {
      const Index seen = std::min(keys.rows, own + std::min(i + height, count));
      for (Index c = 0; c < keys.cols; c += width) {
        TwoVectorSums<T, Bytes, strip> sums;
        sums.add(weights + i, 1, width, keys.row(0) + c, keys.stride, seen);
        sums.store(to.row(first + i) + c, to.stride, std::min(height, count - i),
                   [=](Index r) { return factor(i + r); });
      }
    }
  }

  // to's row j += Σ_i weights[j, i]·rows[first + i] for the keys j < seen.
  WANAMAKER_KERNEL static void add_by_key(const T* weights, ConstMatrixView<T> rows, Index first,
                                          Index count, Index seen, MatrixView<T> to) {
    const ConstMatrixView<T> own = rows.middle_rows(first, count);
    Index j = 0;
    for (; j + height <= seen; j += height) add_strip<strip>(weights, own, j, to);
    for (; j < seen; ++j) add_strip<1>(weights, own, j, to);
  }

 private:
  // Rows of strips: as many sums as half of the registers hold, or all but a few.
  static constexpr std::size_t strip = Bytes >= 64 ? 8 : 4;
  static constexpr Index height = Index{strip};

  template <std::size_t rows>
  WANAMAKER_KERNEL static void multiply_strip(ConstMatrixView<T> keys, Index j, const T* packed,
                                              T* products) {
    TwoVectorSums<T, Bytes, rows> sums;
    sums.add(keys.row(j), keys.stride, 1, packed, width, keys.cols);
    sums.store(products + j * width, width);
  }

  template <std::size_t n>
  WANAMAKER_KERNEL static void add_strip(const T* weights, ConstMatrixView<T> rows, Index j,
                                         MatrixView<T> to) {
    for (Index c = 0; c < to.cols; c += width) {
      TwoVectorSums<T, Bytes, n> sums;
      sums.load(to.row(j) + c, to.stride);
      sums.add(weights + j * width, width, 1, rows.row(0) + c, rows.stride, rows.rows);
      sums.store(to.row(j) + c, to.stride);
    }
  }
};

// How many queries a panel has here.
template <class T>
struct PanelWidth {
  Index* width;
  template <int Bytes>
  WANAMAKER_KERNEL void operator()(std::integral_constant<int, Bytes>) const {
    *width = QueryPanel<T, Bytes>::width;
  }
};
template <class T>
Index panel_width() {
  Index width = 0;
  run_widest(PanelWidth<T>{&width});
  return width;
}

// Panels have no windows, and heads as wide as a multiple of what their vectors hold.
template <class T>
bool panels_fit(const AttentionShape& shape) {
  return shape.window == 0 && shape.head_width % panel_width<T>() == 0;
}

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
