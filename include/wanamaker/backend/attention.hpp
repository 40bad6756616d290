// Causal attention over ragged sequences, from gemm_batched and a softmax by rows.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/backend/kernels.hpp"
#include "wanamaker/backend/workspace.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// One sequence of a ragged batch: queries are rows [query_begin, query_begin + queries) of Q, keys
/// and values rows [key_begin, key_begin + keys) of K and V. The last query sees the last key:
/// query i sees keys 0 … i + keys − queries.
struct AttentionSpan {
  Index query_begin = 0;
  Index queries = 0;
  Index key_begin = 0;
  Index keys = 0;
};

/// Heads of Q [T × heads·head_width] and K, V [S × key_heads·head_width]; query head h uses key
/// head h / (heads / key_heads). Scores are multiplied by `scale`; `window` limits how many keys a
/// query sees, itself included (0: no limit).
struct AttentionShape {
  Index heads = 1;
  Index key_heads = 1;
  Index head_width = 1;
  double scale = 1;
  Index window = 0;
};

namespace detail {

// Rows [first, first + count) of a span's queries, one head: all views a block of attention needs.
template <class T>
struct AttentionBlock {
  ConstMatrixView<T> q;  // [count × head_width]
  ConstMatrixView<T> k;  // [visible × head_width]
  ConstMatrixView<T> v;
  MatrixView<T> out;
};

template <class T>
AttentionBlock<T> attention_block(ConstMatrixView<T> q, ConstMatrixView<T> k, ConstMatrixView<T> v,
                                  MatrixView<T> out, const AttentionSpan& span,
                                  const AttentionShape& shape, Index head, Index first,
                                  Index count) {
  const Index w = shape.head_width;
  const Index key_head = head / (shape.heads / shape.key_heads);
  const Index visible = first + count + span.keys - span.queries;
  const auto queries_of = [&](auto m) {
    return m.middle_rows(span.query_begin + first, count).middle_cols(head * w, w);
  };
  const auto keys_of = [&](auto m) {
    return m.middle_rows(span.key_begin, visible).middle_cols(key_head * w, w);
  };
  return {queries_of(q), keys_of(k), keys_of(v), queries_of(out)};
}

inline constexpr Index attention_block_rows = 64;

// Scores of the largest block, all heads: taken once, so that blocks of growing size share it.
inline Index largest_score_block(std::span<const AttentionSpan> spans, Index heads) {
  Index largest = 0;
  for (const AttentionSpan& span : spans) {
    largest = std::max(largest, heads * std::min(attention_block_rows, span.queries) * span.keys);
  }
  return largest;
}

}  // namespace detail

/// Throws ShapeError unless key heads divide the heads, every span lies within `queries` rows of Q
/// and `keys` rows of K, and no span has more queries than keys.
inline void check_attention(std::span<const AttentionSpan> spans, const AttentionShape& shape,
                            Index queries, Index keys) {
  const bool grouped = shape.heads > 0 && shape.key_heads > 0 && shape.head_width > 0 &&
                       shape.heads % shape.key_heads == 0 && shape.window >= 0;
  const bool inside = std::all_of(spans.begin(), spans.end(), [&](const AttentionSpan& s) {
    return s.query_begin >= 0 && s.queries >= 0 && s.query_begin + s.queries <= queries &&
           s.key_begin >= 0 && s.queries <= s.keys && s.key_begin + s.keys <= keys;
  });
  if (grouped && inside) return;
  throw ShapeError({.id = "shape/attention",
                    .where = "causal_attention",
                    .what = grouped ? "a span is not within the matrices" : "heads do not fit",
                    .expected = grouped ? "spans within " + std::to_string(queries) +
                                              " queries and " + std::to_string(keys) +
                                              " keys, with no more queries than keys"
                                        : "a number of heads that the key heads divide",
                    .found = grouped ? "one outside"
                                     : std::to_string(shape.heads) + " heads, " +
                                           std::to_string(shape.key_heads) + " key heads",
                    .mend = "make spans and head counts from the batch and the model"});
}

/// out[i, head] = Σ_j softmax_j(scale·q_i·k_j) v_j over the keys that query i sees. Blocks of 64
/// queries at a time: no [T × T] matrix exists, and keys after a block's last query cost nothing.
template <class B>
void causal_attention_generic(B& backend, const_matrix_view_t<B> q, const_matrix_view_t<B> k,
                              const_matrix_view_t<B> v, std::span<const AttentionSpan> spans,
                              const AttentionShape& shape, matrix_view_t<B> out,
                              Workspace<B>& workspace) {
  using T = scalar_t<B>;
  const typename Workspace<B>::Frame frame(workspace);
  const VectorView<T> memory =
      workspace.template vector<T>(detail::largest_score_block(spans, shape.heads));
  for (const AttentionSpan& span : spans) {
    for (Index first = 0; first < span.queries; first += detail::attention_block_rows) {
      const Index count = std::min(detail::attention_block_rows, span.queries - first);
      const Index visible = first + count + span.keys - span.queries;
      const MatrixView<T> scores(memory.data, shape.heads * count, visible);
      std::vector<GemmItem<T>> products;
      std::vector<GemmItem<T>> mixtures;
      for (Index head = 0; head < shape.heads; ++head) {
        const auto block =
            detail::attention_block<T>(q, k, v, out, span, shape, head, first, count);
        const MatrixView<T> own = scores.middle_rows(head * count, count);
        products.push_back({plain(block.q), transposed(block.k), own});
        mixtures.push_back({plain(own), plain(block.v), block.out});
      }
      backend.gemm_batched(std::span<const GemmItem<T>>(products), static_cast<T>(shape.scale),
                           T(0));
      backend.for_each_row(
          scores.rows, kernels::CausalSoftmaxRow<T>{scores, count, first, span.keys - span.queries,
                                                    shape.window});
      backend.gemm_batched(std::span<const GemmItem<T>>(mixtures), T(1), T(0));
    }
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
