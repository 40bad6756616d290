// Causal attention on the host: one head of one block of queries is one piece of work, whose scores
// stay in cache between the product that makes them and the one that uses them.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "wanamaker/backend/attention.hpp"
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

inline Index largest_scores(const std::vector<QueryBlock>& blocks) {
  Index largest = 0;
  for (const QueryBlock& block : blocks) {
    largest = std::max(largest, block.count * block.stride());
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

// One head of one block: scores, softmax, mixture.
template <class Gemm, class T>
void attend(ConstMatrixView<T> q, ConstMatrixView<T> k, ConstMatrixView<T> v, MatrixView<T> out,
            const AttentionShape& shape, const QueryBlock& block, Index head, T* memory) {
  const AttentionBlock<T> own =
      attention_block<T>(q, k, v, out, *block.span, shape, head, block.first, block.count);
  const MatrixView<T> scores(memory, block.count, block.visible, block.stride());
  Gemm::multiply(plain(own.q), transposed(own.k), static_cast<T>(shape.scale), T(0), scores);
  causal_softmax(scores, block, shape.window);
  Gemm::multiply(plain(scores), plain(own.v), T(1), T(0), own.out);
}

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
