// Backward passes of dense layers and norms.
#pragma once

#include "wanamaker/nn/any_parts.hpp"
#include "wanamaker/nn/backward/pass.hpp"
#include "wanamaker/nn/norm.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Of y = x·W + b: dx ← dy·Wᵀ, or dx += where it `adds`; dW += xᵀ·dy, db += Σ_i dy[i]. A frozen
/// weight costs no product.
template <class B>
void backward(const Linear<B>& layer, BackwardPass<B>& pass, const_matrix_view_t<B> x,
              const_matrix_view_t<B> dy, matrix_view_t<B> dx, bool adds = false) {
  ops::linear_input_gradient(pass.backend, dy, layer.factor(), dx, adds);
  add_parameter_gradients(layer, pass, x, dy);
}

/// dW += xᵀ·dy and db += Σ_i dy[i] alone.
template <class B>
void add_parameter_gradients(const Linear<B>& layer, BackwardPass<B>& pass,
                             const_matrix_view_t<B> x, const_matrix_view_t<B> dy) {
  const matrix_view_t<B> d_weight = pass.gradients.of(layer.weight());
  if (d_weight.size() > 0) {
    ops::add_weight_gradient(pass.backend, x, dy, layer.layout() == WeightLayout::out_in, d_weight);
  }
  const matrix_view_t<B> d_bias = pass.gradients.of(layer.bias());
  if (d_bias.size() > 0) ops::add_column_sums(pass.backend, dy, d_bias, pass.workspace);
}

/// Of y = norm(x): dx += its gradient; adds to those of gain and bias. dy [T × d] is used up.
template <class B>
void backward(const LayerNorm<B>& norm, BackwardPass<B>& pass, const_matrix_view_t<B> x,
              matrix_view_t<B> dy, matrix_view_t<B> dx) {
  const matrix_view_t<B> d_bias = pass.gradients.of(norm.bias());
  if (d_bias.size() > 0) ops::add_column_sums<B>(pass.backend, dy, d_bias, pass.workspace);
  ops::layer_norm_backward(pass.backend, x, norm.gain().vector(), norm.epsilon(), dy, dx);
  const matrix_view_t<B> d_gain = pass.gradients.of(norm.gain());
  if (d_gain.size() > 0) ops::add_column_sums<B>(pass.backend, dy, d_gain, pass.workspace);
}
template <class B>
void backward(const RmsNorm<B>& norm, BackwardPass<B>& pass, const_matrix_view_t<B> x,
              matrix_view_t<B> dy, matrix_view_t<B> dx) {
  ops::rms_norm_backward(pass.backend, x, norm.gain().vector(), norm.epsilon(), dy, dx);
  const matrix_view_t<B> d_gain = pass.gradients.of(norm.gain());
  if (d_gain.size() > 0) ops::add_column_sums<B>(pass.backend, dy, d_gain, pass.workspace);
}

template <class B>
void backward(const AnyNorm<B>& norm, BackwardPass<B>& pass, const_matrix_view_t<B> x,
              matrix_view_t<B> dy, matrix_view_t<B> dx) {
  norm.visit([&](const auto& own) { backward(own, pass, x, dy, dx); });
}

template <class B>
void collect_parameters(LayerNorm<B>& norm, const ParameterCollector<B>& collector) {
  collector.vector("weight", norm.gain());
  collector.vector("bias", norm.bias());
}
template <class B>
void collect_parameters(RmsNorm<B>& norm, const ParameterCollector<B>& collector) {
  collector.vector("weight", norm.gain());
}
template <class B>
void collect_parameters(AnyNorm<B>& norm, const ParameterCollector<B>& collector) {
  norm.visit([&](auto& own) { collect_parameters(own, collector); });
}

}  // namespace wanamaker::inline WANAMAKER_ABI
