// Backward operations that every backend has, from what it supplies for the forward ones: products
// and launches by rows. Sums over rows are products with a row of ones, so that their order does
// not depend on threads.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/backend/attention_backward.hpp"
#include "wanamaker/backend/backward_kernels.hpp"
#include "wanamaker/backend/generic.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace ops {

/// y ← y + x, both [T × d].
template <Backend B>
void add_to(B& backend, const_matrix_view_t<B> x, matrix_view_t<B> y) {
  check_shape(x, y.rows, y.cols, "add_to: x");
  backend.for_each_row(y.rows, kernels::AddToRow<scalar_t<B>>{x, y});
}

/// Of y = x·op(W): dx ← dy·op(W)ᵀ; dy [T × h], op(W) [d × h], dx [T × d].
template <Backend B, class W>
void linear_input_gradient(B& backend, const_matrix_view_t<B> dy, Operand<W> weight,
                           matrix_view_t<B> dx, bool adds = false) {
  using T = scalar_t<B>;
  const Operand<W> flipped{weight.matrix, !weight.is_transposed};
  check_gemm_shapes(plain(dy), flipped, dx, "linear_input_gradient");
  backend.gemm(plain(dy), flipped, T(1), adds ? T(1) : T(0), dx);
}

/// Of y = x·op(W): dW ← dW + xᵀ·dy, or its transpose where op transposes.
template <Backend B>
void add_weight_gradient(B& backend, const_matrix_view_t<B> x, const_matrix_view_t<B> dy,
                         bool is_transposed, matrix_view_t<B> d_weight) {
  using T = scalar_t<B>;
  const const_matrix_view_t<B> left = is_transposed ? dy : x;
  const const_matrix_view_t<B> right = is_transposed ? x : dy;
  check_gemm_shapes(transposed(left), plain(right), d_weight, "add_weight_gradient");
  backend.gemm(transposed(left), plain(right), T(1), T(1), d_weight);
}

/// sums ← sums + Σ_i x[i]; x [T × h], sums [1 × h].
template <Backend B>
void add_column_sums(B& backend, const_matrix_view_t<B> x, matrix_view_t<B> sums,
                     Workspace<B>& workspace) {
  using T = scalar_t<B>;
  check_shape(sums, 1, x.cols, "add_column_sums: sums");
  const typename Workspace<B>::Frame frame(workspace);
  const matrix_view_t<B> ones = workspace.matrix(1, x.rows);
  backend.for_each_row(1, kernels::FillRow<T>{T(1), ones});
  backend.gemm(plain(ones), plain(x), T(1), T(1), sums);
}

/// Of y = LayerNorm(x): adds to dx, and turns dy into dy∘x̂, whose column sums are the gradient of
/// the gain (that of the bias are those of dy before). All [T × d].
template <Backend B>
void layer_norm_backward(B& backend, const_matrix_view_t<B> x, ConstVectorView<scalar_t<B>> gain,
                         double epsilon, matrix_view_t<B> dy, matrix_view_t<B> dx) {
  check_shape(dy, x.rows, x.cols, "layer_norm_backward: dy");
  check_shape(dx, x.rows, x.cols, "layer_norm_backward: dx");
  check_size(gain, x.cols, "layer_norm_backward: gain");
  backend.for_each_row(x.rows,
                       kernels::LayerNormBackwardRow<scalar_t<B>>{x, gain, epsilon, dy, dx});
}

/// The same for y = RMSNorm(x).
template <Backend B>
void rms_norm_backward(B& backend, const_matrix_view_t<B> x, ConstVectorView<scalar_t<B>> gain,
                       double epsilon, matrix_view_t<B> dy, matrix_view_t<B> dx) {
  check_shape(dy, x.rows, x.cols, "rms_norm_backward: dy");
  check_shape(dx, x.rows, x.cols, "rms_norm_backward: dx");
  check_size(gain, x.cols, "rms_norm_backward: gain");
  backend.for_each_row(x.rows, kernels::RmsNormBackwardRow<scalar_t<B>>{x, gain, epsilon, dy, dx});
}

/// h ← activation(u), both [T × h].
template <Backend B, class Activation>
void activate(B& backend, const_matrix_view_t<B> u, Activation activation, matrix_view_t<B> h) {
  check_shape(u, h.rows, h.cols, "activate: u");
  backend.for_each_row(h.rows, kernels::ActivationRow<scalar_t<B>, Activation>{u, activation, h});
}

/// Of h = activation(u): dh becomes the gradient of u, and u becomes h. Both [T × h].
template <Backend B, class Activation>
void activation_backward(B& backend, Activation activation, matrix_view_t<B> u,
                         matrix_view_t<B> dh) {
  static_assert(
      requires { activation.derivative(scalar_t<B>(0)); },
      "wanamaker: an activation needs derivative(u) const to be trained through");
  check_shape(dh, u.rows, u.cols, "activation_backward: dh");
  backend.for_each_row(u.rows,
                       kernels::ActivationBackwardRow<scalar_t<B>, Activation>{activation, u, dh});
}

/// Of p = activation(gate)∘up: gate and up become their gradients, dp becomes p. All [T × h].
template <Backend B, class Activation>
void gated_product_backward(B& backend, Activation activation, matrix_view_t<B> gate,
                            matrix_view_t<B> up, matrix_view_t<B> dp) {
  static_assert(
      requires { activation.derivative(scalar_t<B>(0)); },
      "wanamaker: an activation needs derivative(u) const to be trained through");
  check_shape(up, gate.rows, gate.cols, "gated_product_backward: up");
  check_shape(dp, gate.rows, gate.cols, "gated_product_backward: dp");
  backend.for_each_row(gate.rows, kernels::GatedProductBackwardRow<scalar_t<B>, Activation>{
                                      activation, gate, up, dp});
}

/// Of rotate_positions: dx [T × heads·head_width] turns back, in place.
template <Backend B>
void rotate_positions_backward(B& backend, const_matrix_view_t<B> cosines,
                               const_matrix_view_t<B> sines, ConstVectorView<TokenId> positions,
                               Index heads, matrix_view_t<B> dx) {
  check_size(positions, dx.rows, "rotate_positions_backward: positions");
  check_shape(sines, cosines.rows, cosines.cols, "rotate_positions_backward: sines");
  const Index head_width = heads > 0 ? dx.cols / heads : 0;
  check_shape(dx, dx.rows, heads * head_width, "rotate_positions_backward: dx");
  backend.for_each_row(dx.rows, kernels::RotaryBackwardRow<scalar_t<B>>{cosines, sines, positions,
                                                                        heads, head_width, dx});
}

/// Of out = causal_attention(q, k, v): see causal_attention_backward_generic; dq, dk and dv are
/// overwritten. A backend's own finds 0 there, and may decline shapes by returning false.
template <Backend B>
void causal_attention_backward(B& backend, const_matrix_view_t<B> q, const_matrix_view_t<B> k,
                               const_matrix_view_t<B> v, std::span<const AttentionSpan> spans,
                               const AttentionShape& shape, const AttentionGradients<B>& gradients,
                               Workspace<B>& workspace) {
  check_attention(spans, shape, q.rows, k.rows);
  check_shape(gradients.dout, q.rows, q.cols, "causal_attention_backward: dout");
  check_shape(gradients.dq, q.rows, q.cols, "causal_attention_backward: dq");
  check_shape(gradients.dk, k.rows, k.cols, "causal_attention_backward: dk");
  check_shape(gradients.dv, v.rows, v.cols, "causal_attention_backward: dv");
  const matrix_view_t<B> sums[] = {gradients.dq, gradients.dk, gradients.dv};
  for (const matrix_view_t<B>& d : sums) {
    backend.for_each_row(d.rows, kernels::FillRow<scalar_t<B>>{scalar_t<B>(0), d});
  }
  if constexpr (requires {
                  backend.causal_attention_backward(q, k, v, spans, shape, gradients, workspace);
                }) {
    if (backend.causal_attention_backward(q, k, v, spans, shape, gradients, workspace)) return;
  }
  causal_attention_backward_generic(backend, q, k, v, spans, shape, gradients, workspace);
}

/// Of y[i] = table[index[i]]: d_table[index[i]] += dy[i], for each row of the table in the order of
/// i. `index` [T] on the host, within the table (checked by the caller).
template <Backend B>
void scatter_add_rows(B& backend, const_matrix_view_t<B> dy, std::span<const TokenId> index,
                      matrix_view_t<B> d_table, Workspace<B>& workspace) {
  const typename Workspace<B>::Frame frame(workspace);
  check_shape(dy, static_cast<Index>(index.size()), d_table.cols, "scatter_add_rows: dy");
  std::vector<TokenId> order(index.size());
  std::iota(order.begin(), order.end(), TokenId{0});
  const auto wanted = [&](TokenId row) { return index[static_cast<std::size_t>(row)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](TokenId a, TokenId b) { return wanted(a) < wanted(b); });
  std::vector<TokenId> first;
  std::vector<TokenId> target;
  for (std::size_t r = 0; r < order.size(); ++r) {
    if (r > 0 && wanted(order[r]) == target.back()) continue;
    first.push_back(static_cast<TokenId>(r));
    target.push_back(wanted(order[r]));
  }
  first.push_back(static_cast<TokenId>(order.size()));
  const auto upload = [&](const std::vector<TokenId>& values) {
    const auto memory = workspace.template vector<TokenId>(static_cast<Index>(values.size()));
    backend.copy_from_host(values.data(), memory.size, memory.data);
    return memory;
  };
  backend.for_each_row(static_cast<Index>(target.size()),
                       kernels::ScatterAddGroup<scalar_t<B>>{dy, upload(order), upload(first),
                                                             upload(target), d_table});
  backend.synchronize();  // host vectors end here
}

/// nll as token_loss, and logits become weight times their gradient, softmax(logits) − onehot.
template <Backend B>
void token_loss_backward(B& backend, matrix_view_t<B> logits, ConstVectorView<TokenId> targets,
                         Index vocabulary, double weight, VectorView<double> nll) {
  check_size(targets, logits.rows, "token_loss_backward: targets");
  check_size(nll, logits.rows, "token_loss_backward: nll");
  detail::check_vocabulary(vocabulary, logits.cols, "token_loss_backward");
  backend.for_each_row(logits.rows, kernels::TokenLossBackwardRow<scalar_t<B>>{
                                        logits, targets, vocabulary, weight, nll});
}

/// How much of a loss is the divergence from a teacher's distribution, and how flat both are made.
struct DistillationMix {
  double share = 0.5;      ///< of the divergence; 1 − share: cross-entropy
  double temperature = 1;  ///< logits are divided by it
};

/// (1 − share)·nll + share·divergence of a student's logits, with divergence = τ²·KL(teacher ‖
/// student) at temperature τ, in nats; logits become weight times the gradient. Hinton et al. 2015.
/// Both [T × ≥ vocabulary].
template <Backend B>
void distillation_backward(B& backend, matrix_view_t<B> logits, const_matrix_view_t<B> teacher,
                           ConstVectorView<TokenId> targets, Index vocabulary, double weight,
                           const DistillationMix& mix, VectorView<double> nll,
                           VectorView<double> divergence) {
  check_size(targets, logits.rows, "distillation_backward: targets");
  check_size(nll, logits.rows, "distillation_backward: nll");
  check_size(divergence, logits.rows, "distillation_backward: divergence");
  check_shape(teacher, logits.rows, teacher.cols, "distillation_backward: teacher");
  detail::check_vocabulary(vocabulary, std::min(logits.cols, teacher.cols),
                           "distillation_backward");
  backend.for_each_row(logits.rows, kernels::DistillationRow<scalar_t<B>>{
                                        logits, teacher, targets, vocabulary, weight, mix.share,
                                        mix.temperature, nll, divergence});
}

}  // namespace ops
}  // namespace wanamaker::inline WANAMAKER_ABI
