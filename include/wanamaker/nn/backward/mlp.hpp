// Backward passes of the MLP policies of nn.
#pragma once

#include <algorithm>

#include "wanamaker/nn/backward/layers.hpp"
#include "wanamaker/nn/mlp.hpp"
#include "wanamaker/nn/surrogate_mlp.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// f(first, count) for blocks of rows of a hidden layer, each in a Frame of its own.
template <class B, class F>
void for_each_hidden_block(BackwardPass<B>& pass, Index rows, F&& f) {
  for (Index first = 0; first < rows; first += mlp_block_rows) {
    const typename Workspace<B>::Frame frame(pass.workspace);
    f(first, std::min(mlp_block_rows, rows - first));
  }
}

}  // namespace detail

/// As DenseMlp::forward, keeping u = x·W₁ + b₁ [T × h].
template <class B, class Activation>
void forward_taped(const DenseMlp<B, Activation>& mlp, BackwardPass<B>& pass,
                   const_matrix_view_t<B> x, const RowContext<B>&, matrix_view_t<B> y) {
  const matrix_view_t<B> u = pass.workspace.matrix(x.rows, mlp.up().outputs());
  detail::for_each_hidden_block(pass, x.rows, [&](Index first, Index count) {
    const matrix_view_t<B> own = u.middle_rows(first, count);
    const matrix_view_t<B> hidden = pass.workspace.matrix(count, u.cols);
    mlp.up().forward(pass.backend, x.middle_rows(first, count), own);
    ops::activate<B>(pass.backend, own, Activation{}, hidden);
    mlp.down().forward(pass.backend, hidden, y.middle_rows(first, count));
  });
  pass.tape.keep(u);
}

/// With h = activation(u): dh = dy·W₂ᵀ, dW₂ += hᵀ·dy, du = dh∘activation'(u), dW₁ += xᵀ·du,
/// dx = du·W₁ᵀ.
template <class B, class Activation>
void backward(const DenseMlp<B, Activation>& mlp, BackwardPass<B>& pass, const_matrix_view_t<B> x,
              const RowContext<B>&, const_matrix_view_t<B> dy, matrix_view_t<B> dx) {
  const matrix_view_t<B> u = pass.tape.take();
  detail::for_each_hidden_block(pass, x.rows, [&](Index first, Index count) {
    const matrix_view_t<B> hidden = u.middle_rows(first, count);
    const matrix_view_t<B> d_hidden = pass.workspace.matrix(count, u.cols);
    const const_matrix_view_t<B> d_out = dy.middle_rows(first, count);
    ops::linear_input_gradient(pass.backend, d_out, mlp.down().factor(), d_hidden);
    ops::activation_backward<B>(pass.backend, Activation{}, hidden, d_hidden);
    add_parameter_gradients<B>(mlp.down(), pass, hidden, d_out);
    backward<B>(mlp.up(), pass, x.middle_rows(first, count), d_hidden,
                dx.middle_rows(first, count));
  });
}

template <class B, class Activation>
void collect_parameters(DenseMlp<B, Activation>& mlp, const ParameterCollector<B>& collector) {
  collector.linear(collector.names().mlp_up, mlp.up());
  collector.linear(collector.names().mlp_down, mlp.down());
}

/// As GatedLinearUnitMlp::forward, keeping a = x·W_g + b_g and u = x·W_u + b_u [T × h].
template <class B, class Activation>
void forward_taped(const GatedLinearUnitMlp<B, Activation>& mlp, BackwardPass<B>& pass,
                   const_matrix_view_t<B> x, const RowContext<B>&, matrix_view_t<B> y) {
  const matrix_view_t<B> a = pass.workspace.matrix(x.rows, mlp.gate().outputs());
  const matrix_view_t<B> u = pass.workspace.matrix(x.rows, mlp.up().outputs());
  detail::for_each_hidden_block(pass, x.rows, [&](Index first, Index count) {
    const const_matrix_view_t<B> in = x.middle_rows(first, count);
    const matrix_view_t<B> product = pass.workspace.matrix(count, u.cols);
    mlp.gate().forward(pass.backend, in, a.middle_rows(first, count));
    mlp.up().forward(pass.backend, in, u.middle_rows(first, count));
    ops::gated_product<B>(pass.backend, a.middle_rows(first, count), u.middle_rows(first, count),
                          Activation{}, product);
    mlp.down().forward(pass.backend, product, y.middle_rows(first, count));
  });
  pass.tape.keep(a);
  pass.tape.keep(u);
}

/// With p = activation(a)∘u: dp = dy·W_dᵀ, dW_d += pᵀ·dy, da = dp∘u∘activation'(a),
/// du = dp∘activation(a), dW_g += xᵀ·da, dW_u += xᵀ·du, dx = da·W_gᵀ + du·W_uᵀ.
template <class B, class Activation>
void backward(const GatedLinearUnitMlp<B, Activation>& mlp, BackwardPass<B>& pass,
              const_matrix_view_t<B> x, const RowContext<B>&, const_matrix_view_t<B> dy,
              matrix_view_t<B> dx) {
  const matrix_view_t<B> u = pass.tape.take();
  const matrix_view_t<B> a = pass.tape.take();
  detail::for_each_hidden_block(pass, x.rows, [&](Index first, Index count) {
    const const_matrix_view_t<B> in = x.middle_rows(first, count);
    const const_matrix_view_t<B> d_out = dy.middle_rows(first, count);
    const matrix_view_t<B> d_in = dx.middle_rows(first, count);
    const matrix_view_t<B> da = a.middle_rows(first, count);
    const matrix_view_t<B> du = u.middle_rows(first, count);
    const matrix_view_t<B> product = pass.workspace.matrix(count, u.cols);
    ops::linear_input_gradient(pass.backend, d_out, mlp.down().factor(), product);
    ops::gated_product_backward<B>(pass.backend, Activation{}, da, du, product);
    add_parameter_gradients<B>(mlp.down(), pass, product, d_out);
    backward<B>(mlp.gate(), pass, in, da, d_in);
    backward<B>(mlp.up(), pass, in, du, d_in, true);
  });
}

template <class B, class Activation>
void collect_parameters(GatedLinearUnitMlp<B, Activation>& mlp,
                        const ParameterCollector<B>& collector) {
  collector.linear(collector.names().mlp_gate, mlp.gate());
  collector.linear(collector.names().mlp_up, mlp.up());
  collector.linear(collector.names().mlp_down, mlp.down());
}

/// Of y = x·W + b.
template <class B>
void backward(const AffineMlp<B>& mlp, BackwardPass<B>& pass, const_matrix_view_t<B> x,
              const RowContext<B>&, const_matrix_view_t<B> dy, matrix_view_t<B> dx) {
  backward(mlp.map(), pass, x, dy, dx);
}
template <class B>
void collect_parameters(AffineMlp<B>& mlp, const ParameterCollector<B>& collector) {
  collector.linear("affine", mlp.map());
}

/// As LowRankMlp::forward, keeping x·P [T × k].
template <class B>
void forward_taped(const LowRankMlp<B>& mlp, BackwardPass<B>& pass, const_matrix_view_t<B> x,
                   const RowContext<B>&, matrix_view_t<B> y) {
  const matrix_view_t<B> inner = pass.workspace.matrix(x.rows, mlp.rank());
  mlp.down().forward(pass.backend, x, inner);
  mlp.up().forward(pass.backend, inner, y);
  pass.tape.keep(inner);
}
/// Of y = (x·P)·Q + b.
template <class B>
void backward(const LowRankMlp<B>& mlp, BackwardPass<B>& pass, const_matrix_view_t<B> x,
              const RowContext<B>&, const_matrix_view_t<B> dy, matrix_view_t<B> dx) {
  const matrix_view_t<B> inner = pass.tape.take();
  const typename Workspace<B>::Frame frame(pass.workspace);
  const matrix_view_t<B> d_inner = pass.workspace.matrix(inner.rows, inner.cols);
  backward<B>(mlp.up(), pass, inner, dy, d_inner);
  backward<B>(mlp.down(), pass, x, d_inner, dx);
}
template <class B>
void collect_parameters(LowRankMlp<B>& mlp, const ParameterCollector<B>& collector) {
  collector.linear("low_rank_down", mlp.down());
  collector.linear("low_rank_up", mlp.up());
}

/// Of y = one vector for every row: dx = 0, the vector's gradient += Σ_i dy[i].
template <class B>
void backward(const MeanMlp<B>& mlp, BackwardPass<B>& pass, const_matrix_view_t<B>,
              const RowContext<B>&, const_matrix_view_t<B> dy, matrix_view_t<B> dx) {
  pass.backend.for_each_row(dx.rows, kernels::FillRow<scalar_t<B>>{scalar_t<B>(0), dx});
  const matrix_view_t<B> d_mean = pass.gradients.of(mlp.mean());
  if (d_mean.size() > 0) ops::add_column_sums(pass.backend, dy, d_mean, pass.workspace);
}
template <class B>
void collect_parameters(MeanMlp<B>& mlp, const ParameterCollector<B>& collector) {
  collector.vector("mean", mlp.mean());
}

/// Of y = 0: dx = 0.
template <class B>
void backward(const ZeroMlp<B>&, BackwardPass<B>& pass, const_matrix_view_t<B>,
              const RowContext<B>&, const_matrix_view_t<B>, matrix_view_t<B> dx) {
  pass.backend.for_each_row(dx.rows, kernels::FillRow<scalar_t<B>>{scalar_t<B>(0), dx});
}
template <class B>
void collect_parameters(ZeroMlp<B>&, const ParameterCollector<B>&) {}

}  // namespace wanamaker::inline WANAMAKER_ABI
