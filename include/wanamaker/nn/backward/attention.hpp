// Backward pass of causal self-attention.
#pragma once

#include "wanamaker/nn/attention.hpp"
#include "wanamaker/nn/backward/layers.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The gradient dx [T × heads·head_width] before positions were applied, in place.
template <class B>
void backward(const LearnedPositions&, BackwardPass<B>&, ConstVectorView<TokenId>, Index,
              matrix_view_t<B>) {}
template <class B>
void backward(const RotaryPositions<B>& rotary, BackwardPass<B>& pass,
              ConstVectorView<TokenId> positions, Index heads, matrix_view_t<B> dx) {
  ops::rotate_positions_backward(pass.backend, rotary.cosines(), rotary.sines(), positions, heads,
                                 dx);
}
template <class B>
void backward(const AnyPositions<B>& any, BackwardPass<B>& pass, ConstVectorView<TokenId> positions,
              Index heads, matrix_view_t<B> dx) {
  if (any.rotary()) backward(*any.rotary(), pass, positions, heads, dx);
}

/// As CausalSelfAttention::forward, keeping q, k, v and the mixed values; never by way of a cache.
template <class B, class Positions>
void forward_taped(const CausalSelfAttention<B, Positions>& attention, BackwardPass<B>& pass,
                   const_matrix_view_t<B> x, const PackedBatch<B>& batch, matrix_view_t<B> y) {
  const matrix_view_t<B> projected = pass.workspace.matrix(x.rows, attention.qkv().outputs());
  const auto [q, k, v] = attention.project(pass.backend, x, batch, projected);
  const matrix_view_t<B> mixed = pass.workspace.matrix(x.rows, q.cols);
  ops::causal_attention<B>(pass.backend, q, k, v, batch.spans(), attention.shape(), mixed,
                           pass.workspace);
  attention.output().forward(pass.backend, mixed, y);
  pass.tape.keep(projected);
  pass.tape.keep(mixed);
}

/// dx ← the gradient of x; x, dy, dx [T × d].
template <class B, class Positions>
void backward(const CausalSelfAttention<B, Positions>& attention, BackwardPass<B>& pass,
              const_matrix_view_t<B> x, const PackedBatch<B>& batch, const_matrix_view_t<B> dy,
              matrix_view_t<B> dx) {
  const matrix_view_t<B> mixed = pass.tape.take();
  const matrix_view_t<B> projected = pass.tape.take();
  const typename Workspace<B>::Frame frame(pass.workspace);
  const matrix_view_t<B> d_mixed = pass.workspace.matrix(mixed.rows, mixed.cols);
  const matrix_view_t<B> d_projected = pass.workspace.matrix(projected.rows, projected.cols);
  backward(attention.output(), pass, const_matrix_view_t<B>(mixed), dy, d_mixed);
  const auto [q, k, v] = attention.parts_of(projected);
  const auto [dq, dk, dv] = attention.parts_of(d_projected);
  ops::causal_attention_backward<B>(pass.backend, q, k, v, batch.spans(), attention.shape(),
                                    {d_mixed, dq, dk, dv}, pass.workspace);
  backward(attention.positions(), pass, batch.positions(), attention.shape().heads, dq);
  backward(attention.positions(), pass, batch.positions(), attention.shape().key_heads, dk);
  backward(attention.qkv(), pass, x, const_matrix_view_t<B>(d_projected), dx);
}

template <class B, class Positions>
void collect_parameters(CausalSelfAttention<B, Positions>& attention,
                        const ParameterCollector<B>& collector) {
  collector.linear(collector.names().qkv, attention.qkv());
  collector.linear(collector.names().attention_output, attention.output());
}

}  // namespace wanamaker::inline WANAMAKER_ABI
