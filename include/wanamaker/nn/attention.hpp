// Causal self-attention with fused projections; grouped queries are the case of fewer key heads.
#pragma once

#include <string>
#include <utility>

#include "wanamaker/nn/batch.hpp"
#include "wanamaker/nn/linear.hpp"
#include "wanamaker/nn/observer.hpp"
#include "wanamaker/nn/positions.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// y = output(attention(q, k, v)) with [q | k | v] = x·W + b: q has heads·head_width columns, k and
/// v key_heads·head_width each. Vaswani et al. 2017; grouped queries: Ainslie et al. 2023.
template <class B, class Positions>
class CausalSelfAttention {
 public:
  CausalSelfAttention() = default;
  /// Throws ShapeError where the projections do not fit the shape.
  CausalSelfAttention(Linear<B> qkv, Linear<B> output, AttentionShape shape, Positions positions)
      : qkv_(std::move(qkv)),
        output_(std::move(output)),
        shape_(shape),
        positions_(std::move(positions)) {
    check_projections();
  }

  /// x [T × d] normalised input of block `layer`, y [T × d]. With a cache the queries see its keys
  /// and values too, to which the batch's are added.
  template <class Observer = NoObserver>
  void forward(B& backend, Index layer, const_matrix_view_t<B> x, const PackedBatch<B>& batch,
               matrix_view_t<B> y, Workspace<B>& workspace, Observer&& observer = {}) const {
    const typename Workspace<B>::Frame frame(workspace);
    const matrix_view_t<B> projected = workspace.matrix(x.rows, qkv_.outputs());
    const auto [q, k, v] = project(backend, x, batch, projected);
    const auto [keys, values] = batch.memory(backend, layer, k, v);
    const matrix_view_t<B> mixed = workspace.matrix(x.rows, q.cols);
    ops::causal_attention(backend, q, keys, values, batch.spans(), shape_, mixed, workspace);
    detail::notify_attention_heads(observer, layer, const_matrix_view_t<B>(mixed));
    output_.forward(backend, mixed, y);
  }

  /// Queries, keys and values, columns of one matrix.
  struct Projection {
    matrix_view_t<B> q;  ///< [T × heads·head_width]
    matrix_view_t<B> k;  ///< [T × key_heads·head_width]
    matrix_view_t<B> v;  ///< [T × key_heads·head_width]
  };
  /// The three parts of a matrix [T × (heads + 2·key_heads)·head_width].
  Projection parts_of(matrix_view_t<B> projected) const {
    const Index query_width = shape_.heads * shape_.head_width;
    const Index key_width = shape_.key_heads * shape_.head_width;
    return {projected.middle_cols(0, query_width), projected.middle_cols(query_width, key_width),
            projected.middle_cols(query_width + key_width, key_width)};
  }
  /// projected ← x·W + b, with positions applied to q and k.
  Projection project(B& backend, const_matrix_view_t<B> x, const PackedBatch<B>& batch,
                     matrix_view_t<B> projected) const {
    qkv_.forward(backend, x, projected);
    const Projection parts = parts_of(projected);
    positions_.apply(backend, batch.positions(), shape_.heads, parts.q);
    positions_.apply(backend, batch.positions(), shape_.key_heads, parts.k);
    return parts;
  }

  const Linear<B>& qkv() const { return qkv_; }
  Linear<B>& qkv() { return qkv_; }
  const Linear<B>& output() const { return output_; }
  Linear<B>& output() { return output_; }
  const AttentionShape& shape() const { return shape_; }
  const Positions& positions() const { return positions_; }
  Index parameters() const { return qkv_.parameters() + output_.parameters(); }

 private:
  void check_projections() const {
    const Index query_width = shape_.heads * shape_.head_width;
    const Index fused = query_width + 2 * shape_.key_heads * shape_.head_width;
    const bool grouped = shape_.key_heads > 0 && shape_.heads % shape_.key_heads == 0;
    if (grouped && qkv_.outputs() == fused && output_.inputs() == query_width) return;
    throw ShapeError({.id = "shape/attention",
                      .where = "CausalSelfAttention",
                      .what = "projections do not fit the heads",
                      .expected = std::to_string(fused) + " columns of q, k and v together",
                      .found = std::to_string(qkv_.outputs()) + " with " +
                               std::to_string(shape_.heads) + " heads and " +
                               std::to_string(shape_.key_heads) + " key heads",
                      .mend = "check heads, key heads and head width"});
  }

  Linear<B> qkv_{};
  Linear<B> output_{};
  AttentionShape shape_{};
  Positions positions_{};
};

/// Rotary attention whose key and value heads are shared by groups of query heads.
template <class B>
using GroupedQueryAttention = CausalSelfAttention<B, RotaryPositions<B>>;

}  // namespace wanamaker::inline WANAMAKER_ABI
