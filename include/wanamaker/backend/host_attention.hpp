// Causal attention on the host: one head of one block of queries is one piece of work, whose scores
// stay in cache between the product that makes them and the one that uses them.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "wanamaker/backend/attention.hpp"
#include "wanamaker/backend/gram.hpp"
#include "wanamaker/backend/instruction_set.hpp"
#include "wanamaker/backend/kernels.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace kernels {

/// CausalSoftmaxRow without a window, for rows whose memory goes on to a multiple of 16 entries:
/// those past the keys that are seen become −∞ before and 0 after, so that no loop has a rest.
template <class T>
struct PaddedCausalSoftmaxRow {
  MatrixView<T> scores;  // its stride is a multiple of 16
  Index first_query;
  Index past;

  WANAMAKER_KERNEL void operator()(Index i) const {
    constexpr Index lanes = 16;
    const SerialRowTeam team;
    const Index seen = first_query + i + past + 1;
    const Index n = (seen + lanes - 1) / lanes * lanes;
    T* row = scores.row(i);
    for (Index j = seen; j < n; ++j) row[j] = -std::numeric_limits<T>::infinity();
    const T top = team.template max<T>(n, row[0], [=](Index j) { return row[j]; });
    team.each(n, [=](Index j) { row[j] = exponential_of_nonpositive(row[j] - top); });
    const T scale = T(1) / team.template sum<T>(n, [=](Index j) { return row[j]; });
    team.each(n, [=](Index j) { row[j] *= scale; });
    for (Index j = n; j < scores.cols; ++j) row[j] = T(0);
  }
};

}  // namespace kernels

namespace detail {

// Queries [first, first + count) of a span, and the keys that the last of them sees.
struct QueryBlock {
  const AttentionSpan* span;
  Index first;
  Index count;
  Index visible;

  Index stride() const { return (visible + 15) / 16 * 16; }
};

// Fewer queries than this leave most of a panel empty.
inline constexpr Index few_queries = 4;
// The most queries of a panel: two vectors of 64 bytes of float.
inline constexpr Index largest_panel = 32;

inline std::vector<QueryBlock> query_blocks(std::span<const AttentionSpan> spans) {
  std::vector<QueryBlock> blocks;
  for (const AttentionSpan& span : spans) {
    for (Index first = 0; first < span.queries; first += attention_block_rows) {
      const Index count = std::min(attention_block_rows, span.queries - first);
      blocks.push_back({&span, first, count, first + count + span.keys - span.queries});
    }
  }
  return blocks;
}

// Elements of memory that a piece needs at most.
inline Index largest_piece(const std::vector<QueryBlock>& blocks, Index head_width) {
  Index largest = 0;
  for (const QueryBlock& block : blocks) {
    const Index panels =
        block.count < few_queries ? 0 : (head_width + block.visible) * largest_panel;
    largest = std::max({largest, block.count * block.stride(), panels});
  }
  return largest;
}

template <class T>
void causal_softmax(MatrixView<T> scores, const QueryBlock& block, Index window) {
  const Index past = block.span->keys - block.span->queries;
  if (window > 0) {
    const kernels::CausalSoftmaxRow<T> row{scores, block.count, block.first, past, window};
    run_range(0, block.count, [=](Index i) { row(i, SerialRowTeam{}); });
  } else {
    run_range(0, block.count, kernels::PaddedCausalSoftmaxRow<T>{scores, block.first, past});
  }
}

// Sums of `rows` rows of two vectors each, held in registers while k runs: sum[r] += left(r,
// k)·right[k].
template <class T, int Bytes, std::size_t rows>
struct TwoVectorSums {
  using Vector = typename VectorOf<T, Bytes>::type;
  static constexpr Index lanes = Index{sizeof(Vector)} / Index{sizeof(T)};

  Vector sum[2 * rows] = {};

  // left(r, k) is left[r·row_step + k·step]; right[k] begins at right + k·right_step.
  WANAMAKER_KERNEL void add(const T* left, Index row_step, Index step, const T* right,
                            Index right_step, Index count) {
    add_unrolled(left, row_step, step, right, right_step, count,
                 std::make_index_sequence<2 * rows>());
  }

  // to + r·row_step ← factor(r)·sum of row r, for the first `count` rows.
  template <class Factor>
  WANAMAKER_KERNEL void store(T* to, Index row_step, Index count, Factor factor) const {
    for (Index r = 0; r < count; ++r) {
      const Vector first = sum[2 * r] * factor(r);
      const Vector second = sum[2 * r + 1] * factor(r);
      std::memcpy(to + r * row_step, &first, sizeof(Vector));
      std::memcpy(to + r * row_step + lanes, &second, sizeof(Vector));
    }
  }

 private:
  template <std::size_t... I>
  WANAMAKER_KERNEL void add_unrolled(const T* left, Index row_step, Index step, const T* right,
                                     Index right_step, Index count, std::index_sequence<I...>) {
    Vector own[2 * rows] = {sum[I]...};
    for (Index k = 0; k < count; ++k, left += step, right += right_step) {
      Vector first;
      Vector second;
      std::memcpy(&first, right, sizeof(Vector));
      std::memcpy(&second, right + lanes, sizeof(Vector));
      ((own[I] += (I % 2 == 0 ? first : second) * left[Index{I / 2} * row_step]), ...);
    }
    ((sum[I] = own[I]), ...);
  }
};

// One head of some queries: q, out [n × w], k, v [keys × w]. Two vectors of queries side by side
// are a panel, whose scores lie by key, so that the softmax needs no sums across a vector; keys
// that no query of a strip sees cost nothing.
template <class T>
struct AttendPanels {
  ConstMatrixView<T> q;
  ConstMatrixView<T> k;
  ConstMatrixView<T> v;
  MatrixView<T> out;
  T scale;
  Index past;  // keys before the first query's own
  T* memory;   // (w + keys) panels' rows
  bool* done;  // false where w is no multiple of what vectors hold

  template <int Bytes>
  WANAMAKER_KERNEL void operator()(std::integral_constant<int, Bytes>) const {
    constexpr Index panel = 2 * TwoVectorSums<T, Bytes, 1>::lanes;
    *done = q.cols % panel == 0;
    if (!*done) return;
    for (Index first = 0; first < q.rows; first += panel) run<Bytes, panel>(first);
  }

 private:
  // Rows of strips: as many sums as half of the registers hold, or all but a few.
  template <int Bytes>
  static constexpr std::size_t strip = Bytes >= 64 ? 8 : 4;

  template <int Bytes, Index panel>
  WANAMAKER_KERNEL void run(Index first) const {
    const Index count = std::min(panel, q.rows - first);
    const Index seen = std::min(k.rows, first + count + past);
    T* scores = memory + q.cols * panel;
    T scales[static_cast<std::size_t>(panel)];
    pack<panel>(first, count);
    multiply<Bytes, panel>(scores, seen);
    for (Index i = 0; i < count; ++i) {
      for (Index j = first + i + past + 1; j < seen; ++j) {
        scores[j * panel + i] = -std::numeric_limits<T>::infinity();
      }
    }
    softmax<panel>(scores, seen, scales);
    mix<Bytes, panel>(scores, first, count, scales);
  }

  // memory ← scaled queries by column; those past the last are 0.
  template <Index panel>
  WANAMAKER_KERNEL void pack(Index first, Index count) const {
    for (Index i = 0; i < panel; ++i) {
      for (Index c = 0; c < q.cols; ++c) {
        memory[c * panel + i] = i < count ? scale * q(first + i, c) : T(0);
      }
    }
  }

  template <int Bytes, Index panel>
  WANAMAKER_KERNEL void multiply(T* scores, Index seen) const {
    const auto one = [](Index) { return T(1); };
    constexpr Index height = Index{strip<Bytes>};
    Index j = 0;
    for (; j + height <= seen; j += height) {
      TwoVectorSums<T, Bytes, strip<Bytes>> sums;
      sums.add(k.row(j), k.stride, 1, memory, panel, q.cols);
      sums.store(scores + j * panel, panel, height, one);
    }
    for (; j < seen; ++j) {
      TwoVectorSums<T, Bytes, 1> sums;
      sums.add(k.row(j), k.stride, 1, memory, panel, q.cols);
      sums.store(scores + j * panel, panel, 1, one);
    }
  }

  // scores ← e^(score − largest) by query; scales ← 1/Σ. Sums of 64 keys are summed.
  template <Index panel>
  WANAMAKER_KERNEL static void softmax(T* scores, Index seen, T* scales) {
    T top[static_cast<std::size_t>(panel)];
    for (Index i = 0; i < panel; ++i) top[i] = scores[i];
    for (Index j = 1; j < seen; ++j) {
      const T* row = scores + j * panel;
      for (Index i = 0; i < panel; ++i) top[i] = top[i] < row[i] ? row[i] : top[i];
    }
    T total[static_cast<std::size_t>(panel)] = {};
    for (Index begin = 0; begin < seen; begin += 64) {
      T part[static_cast<std::size_t>(panel)] = {};
      for (Index j = begin; j < std::min(seen, begin + 64); ++j) {
        T* row = scores + j * panel;
        for (Index i = 0; i < panel; ++i) {
          row[i] = exponential_of_nonpositive(row[i] - top[i]);
          part[i] += row[i];
        }
      }
      for (Index i = 0; i < panel; ++i) total[i] += part[i];
    }
    for (Index i = 0; i < panel; ++i) scales[i] = T(1) / total[i];
  }

  template <int Bytes, Index panel>
  WANAMAKER_KERNEL void mix(const T* scores, Index first, Index count, const T* scales) const {
    constexpr Index height = Index{strip<Bytes>};
    for (Index i = 0; i < count; i += height) {
      const Index seen = std::min(k.rows, first + std::min(i + height, count) + past);
      for (Index c = 0; c < q.cols; c += panel) {
        TwoVectorSums<T, Bytes, strip<Bytes>> sums;
        sums.add(scores + i, 1, panel, v.row(0) + c, v.stride, seen);
        sums.store(out.row(first + i) + c, out.stride, std::min(height, count - i),
                   [=](Index r) { return scales[i + r]; });
      }
    }
  }
};

// One head of one block: scores, softmax, mixture.
template <class Gemm, class T>
void attend(ConstMatrixView<T> q, ConstMatrixView<T> k, ConstMatrixView<T> v, MatrixView<T> out,
            const AttentionShape& shape, const QueryBlock& block, Index head, T* memory) {
  const AttentionBlock<T> own =
      attention_block<T>(q, k, v, out, *block.span, shape, head, block.first, block.count);
  const T scale = static_cast<T>(shape.scale);
  if (shape.window == 0 && block.count >= few_queries) {
    bool done = false;
    run_widest(AttendPanels<T>{own.q, own.k, own.v, own.out, scale, block.visible - block.count,
                               memory, &done});
    if (done) return;
  }
  const MatrixView<T> scores(memory, block.count, block.visible, block.stride());
  Gemm::multiply(plain(own.q), transposed(own.k), scale, T(0), scores);
  causal_softmax(scores, block, shape.window);
  Gemm::multiply(plain(scores), plain(own.v), T(1), T(0), own.out);
}

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
