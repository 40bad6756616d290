// Backward pass of a transformer block in either topology.
#pragma once

#include "wanamaker/nn/backward/attention.hpp"
#include "wanamaker/nn/block.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// out ← the stream after the block, as TransformerBlock::forward, keeping what its backward pass
/// needs; residual, out [T × d] do not overlap.
template <class B, class Norm, class Attention, class Mlp, class Topology,
          class Observer = NoObserver>
void forward_taped(const TransformerBlock<B, Norm, Attention, Mlp, Topology>& block,
                   BackwardPass<B>& pass, Index layer, const PackedBatch<B>& batch,
                   const_matrix_view_t<B> residual, matrix_view_t<B> out,
                   Observer&& observer = {}) {
  const auto matrix = [&] { return pass.workspace.matrix(residual.rows, residual.cols); };
  const matrix_view_t<B> attention_input = matrix();
  const matrix_view_t<B> carry = matrix();
  const matrix_view_t<B> mlp_input = matrix();
  block.attention_norm().forward(pass.backend, residual, attention_input);
  forward_taped(block.attention(), pass, const_matrix_view_t<B>(attention_input), batch, carry);
  detail::notify_attention_output(observer, layer, const_matrix_view_t<B>(carry));
  ops::add<B>(pass.backend, residual, carry, carry);
  const RowContext<B> rows = block.row_context(layer, batch, residual, carry);
  block.mlp_norm().forward(pass.backend, rows.residual, mlp_input);
  detail::notify_mlp_input(observer, layer, const_matrix_view_t<B>(mlp_input));
  mlp_forward_taped<Mlp, B>(block.mlp(), pass, mlp_input, rows, out);
  detail::notify_mlp_output(observer, layer, const_matrix_view_t<B>(out));
  ops::add<B>(pass.backend, carry, out, out);
  const matrix_view_t<B> all[] = {attention_input, carry, mlp_input};
  for (const matrix_view_t<B>& kept : all) pass.tape.keep(kept);
}

/// d_stream [T × d]: the gradient of the stream after the block becomes that of `residual`, the
/// stream before it. In both topologies dr = d_carry + norm₁'(attention'(d_carry)) with
/// d_carry = d_out, to which the MLP's path norm₂'(mlp'(d_out)) is added where the second norm
/// reads the carry, and to dr where it reads r.
template <class B, class Norm, class Attention, class Mlp, class Topology>
void backward(const TransformerBlock<B, Norm, Attention, Mlp, Topology>& block,
              BackwardPass<B>& pass, Index layer, const PackedBatch<B>& batch,
              const_matrix_view_t<B> residual, matrix_view_t<B> d_stream) {
  const matrix_view_t<B> mlp_input = pass.tape.take();
  const matrix_view_t<B> carry = pass.tape.take();
  const matrix_view_t<B> attention_input = pass.tape.take();
  const typename Workspace<B>::Frame frame(pass.workspace);
  const matrix_view_t<B> d_mlp = pass.workspace.matrix(residual.rows, residual.cols);
  const matrix_view_t<B> d_attention = pass.workspace.matrix(residual.rows, residual.cols);
  const RowContext<B> rows = block.row_context(layer, batch, residual, carry);
  const bool reads_carry = block.topology().reads_carry();
  mlp_backward<Mlp, B>(block.mlp(), pass, mlp_input, rows, d_stream, d_mlp);
  if (reads_carry) backward(block.mlp_norm(), pass, rows.residual, d_mlp, d_stream);
  backward(block.attention(), pass, const_matrix_view_t<B>(attention_input), batch,
           const_matrix_view_t<B>(d_stream), d_attention);
  if (!reads_carry) backward(block.mlp_norm(), pass, rows.residual, d_mlp, d_stream);
  backward(block.attention_norm(), pass, residual, d_attention, d_stream);
}

template <class B, class Norm, class Attention, class Mlp, class Topology>
void collect_parameters(TransformerBlock<B, Norm, Attention, Mlp, Topology>& block,
                        const ParameterCollector<B>& collector) {
  detail::collect(block.attention_norm(), collector.within(collector.names().attention_norm));
  detail::collect(block.attention(), collector);
  detail::collect(block.mlp_norm(), collector.within(collector.names().mlp_norm));
  detail::collect(block.mlp(), collector.within("mlp"));
}

}  // namespace wanamaker::inline WANAMAKER_ABI
