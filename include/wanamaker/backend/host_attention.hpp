// Causal attention on the host: one head of one block of queries is one piece of work, whose scores
// stay in cache between the product that makes them and the one that uses them.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "wanamaker/backend/attention.hpp"
#include "wanamaker/backend/host_attention_panels.hpp"
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

// One head of some queries: q, out [n × w], k, v [keys × w]. Keys that no query of a strip sees
// cost nothing.
template <class T>
struct AttendPanels {
  ConstMatrixView<T> q;
  ConstMatrixView<T> k;
  ConstMatrixView<T> v;
  MatrixView<T> out;
  T scale;
  Index past;  // keys before the first query's own
  T* memory;   // (w + keys) panels' rows

  template <int Bytes>
  WANAMAKER_KERNEL void operator()(std::integral_constant<int, Bytes>) const {
    using Panel = QueryPanel<T, Bytes>;
    for (Index first = 0; first < q.rows; first += Panel::width) run<Panel>(first);
  }

 private:
  template <class Panel>
  WANAMAKER_KERNEL void run(Index first) const {
    const Index count = std::min(Panel::width, q.rows - first);
    const Index own = first + past;
    T* scores = memory + q.cols * Panel::width;
    T scales[static_cast<std::size_t>(Panel::width)];
    Panel::weigh(q, k, first, count, own, scale, memory, scores, scales);
    Panel::mix(scores, v, own, count, out, first, [&](Index i) { return scales[i]; });
  }
};

// One head of one block: scores, softmax, mixture.
template <class Gemm, class T>
void attend(ConstMatrixView<T> q, ConstMatrixView<T> k, ConstMatrixView<T> v, MatrixView<T> out,
            const AttentionShape& shape, const QueryBlock& block, Index head, T* memory) {
  const AttentionBlock<T> own =
      attention_block<T>(q, k, v, out, *block.span, shape, head, block.first, block.count);
  const T scale = static_cast<T>(shape.scale);
  if (panels_fit<T>(shape) && block.count >= few_queries) {
    const Index past = block.visible - block.count;
    return run_widest(AttendPanels<T>{own.q, own.k, own.v, own.out, scale, past, memory});
  }
  const MatrixView<T> scores(memory, block.count, block.visible, block.stride());
  Gemm::multiply(plain(own.q), transposed(own.k), scale, T(0), scores);
  causal_softmax(scores, block, shape.window);
  Gemm::multiply(plain(scores), plain(own.v), T(1), T(0), own.out);
}

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
