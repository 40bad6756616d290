// Operations that every backend has: built from what it must supply, or its own where it has a
// member of the same name. Shapes are checked here, once.
#pragma once

#include <string>

#include "wanamaker/backend/attention.hpp"
#include "wanamaker/backend/backend.hpp"
#include "wanamaker/backend/kernels.hpp"
#include "wanamaker/backend/workspace.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace detail {

inline void check_vocabulary(Index vocabulary, Index columns, const char* where) {
  if (vocabulary >= 1 && vocabulary <= columns) return;
  throw ShapeError({.id = "shape/vocabulary",
                    .where = where,
                    .what = "the vocabulary is not within the logits",
                    .expected = "1 to " + std::to_string(columns),
                    .found = std::to_string(vocabulary),
                    .mend = "check the head's shape against the vocabulary"});
}

}  // namespace detail
namespace ops {

/// y ← activation(x·op(W) + bias): x [T × d], op(W) [d × h], bias [h] or empty, y [T × h].
template <Backend B, class W, class Activation = Identity>
void linear(B& backend, const_matrix_view_t<B> x, Operand<W> weight,
            ConstVectorView<scalar_t<B>> bias, matrix_view_t<B> y, Activation activation = {}) {
  using T = scalar_t<B>;
  check_gemm_shapes(plain(x), weight, y, "linear");
  if (!bias.empty()) check_size(bias, y.cols, "linear: bias");
  if constexpr (requires { backend.linear(x, weight, bias, activation, y); }) {
    backend.linear(x, weight, bias, activation, y);
  } else {
    backend.gemm(plain(x), weight, T(1), T(0), y);
    if (!bias.empty() || !std::is_same_v<Activation, Identity>) {
      backend.for_each_row(y.rows, kernels::BiasActivationRow<T, Activation>{bias, activation, y});
    }
  }
}

/// y ← LayerNorm(x), Ba, Kiros & Hinton 2016; x, y [T × d], gain, bias [d].
template <Backend B>
void layer_norm(B& backend, const_matrix_view_t<B> x, ConstVectorView<scalar_t<B>> gain,
                ConstVectorView<scalar_t<B>> bias, double epsilon, matrix_view_t<B> y) {
  check_shape(y, x.rows, x.cols, "layer_norm: y");
  check_size(gain, x.cols, "layer_norm: gain");
  check_size(bias, x.cols, "layer_norm: bias");
  if constexpr (requires { backend.layer_norm(x, gain, bias, epsilon, y); }) {
    backend.layer_norm(x, gain, bias, epsilon, y);
  } else {
    backend.for_each_row(x.rows, kernels::LayerNormRow<scalar_t<B>>{x, gain, bias, epsilon, y});
  }
}

/// y ← RMSNorm(x), Zhang & Sennrich 2019; x, y [T × d], gain [d].
template <Backend B>
void rms_norm(B& backend, const_matrix_view_t<B> x, ConstVectorView<scalar_t<B>> gain,
              double epsilon, matrix_view_t<B> y) {
  check_shape(y, x.rows, x.cols, "rms_norm: y");
  check_size(gain, x.cols, "rms_norm: gain");
  if constexpr (requires { backend.rms_norm(x, gain, epsilon, y); }) {
    backend.rms_norm(x, gain, epsilon, y);
  } else {
    backend.for_each_row(x.rows, kernels::RmsNormRow<scalar_t<B>>{x, gain, epsilon, y});
  }
}

/// y ← activation(gate) ∘ up, all [T × h]; y may be gate or up.
template <Backend B, class Activation>
void gated_product(B& backend, const_matrix_view_t<B> gate, const_matrix_view_t<B> up,
                   Activation activation, matrix_view_t<B> y) {
  check_shape(gate, y.rows, y.cols, "gated_product: gate");
  check_shape(up, y.rows, y.cols, "gated_product: up");
  backend.for_each_row(y.rows,
                       kernels::GatedProductRow<scalar_t<B>, Activation>{gate, up, activation, y});
}

/// y ← combine(a, b) entry by entry, all [T × d]; y may be a or b.
template <Backend B, class Combine>
void combine(B& backend, const_matrix_view_t<B> a, const_matrix_view_t<B> b, Combine,
             matrix_view_t<B> y) {
  check_shape(a, y.rows, y.cols, "combine: a");
  check_shape(b, y.rows, y.cols, "combine: b");
  backend.for_each_row(y.rows, kernels::CombineRow<scalar_t<B>, Combine>{a, b, y});
}

/// y ← a + b, as combine.
template <Backend B>
void add(B& backend, const_matrix_view_t<B> a, const_matrix_view_t<B> b, matrix_view_t<B> y) {
  combine(backend, a, b, kernels::Sum{}, y);
}
/// y ← a − b, as combine.
template <Backend B>
void subtract(B& backend, const_matrix_view_t<B> a, const_matrix_view_t<B> b, matrix_view_t<B> y) {
  combine(backend, a, b, kernels::Difference{}, y);
}
/// y ← a ∘ b, as combine.
template <Backend B>
void multiply(B& backend, const_matrix_view_t<B> a, const_matrix_view_t<B> b, matrix_view_t<B> y) {
  combine(backend, a, b, kernels::Product{}, y);
}

/// y ← x, converted where the element types differ.
template <Backend B, class U, class T>
void copy(B& backend, MatrixView<U> x, MatrixView<T> y) {
  check_shape(x, y.rows, y.cols, "copy: x");
  backend.for_each_row(y.rows, kernels::CopyRow<T, std::remove_const_t<U>>{x, y});
}

/// Every row of y ← x; x [d], y [T × d].
template <Backend B>
void broadcast_rows(B& backend, ConstVectorView<scalar_t<B>> x, matrix_view_t<B> y) {
  check_size(x, y.cols, "broadcast_rows: x");
  backend.for_each_row(y.rows, kernels::BroadcastRow<scalar_t<B>>{x, y});
}

/// y[i] ← table[index[i]]; index within the table's rows (checked by the caller, once per batch).
template <Backend B, class W>
void gather_rows(B& backend, MatrixView<W> table, ConstVectorView<TokenId> index,
                 matrix_view_t<B> y) {
  check_size(index, y.rows, "gather_rows: index");
  check_shape(y, y.rows, table.cols, "gather_rows: y");
  backend.for_each_row(y.rows,
                       kernels::GatherRow<scalar_t<B>, std::remove_const_t<W>>{table, index, y});
}

/// y[i] ← y[i] + table[index[i]].
template <Backend B, class W>
void gather_add_rows(B& backend, MatrixView<W> table, ConstVectorView<TokenId> index,
                     matrix_view_t<B> y) {
  check_size(index, y.rows, "gather_add_rows: index");
  check_shape(y, y.rows, table.cols, "gather_add_rows: y");
  backend.for_each_row(y.rows,
                       kernels::GatherAddRow<scalar_t<B>, std::remove_const_t<W>>{table, index, y});
}

/// y[index[i]] ← x[i]; distinct indices within y's rows.
template <Backend B>
void scatter_rows(B& backend, const_matrix_view_t<B> x, ConstVectorView<TokenId> index,
                  matrix_view_t<B> y) {
  check_size(index, x.rows, "scatter_rows: index");
  check_shape(x, x.rows, y.cols, "scatter_rows: x");
  backend.for_each_row(x.rows, kernels::ScatterRow<scalar_t<B>>{x, index, y});
}

/// Rotary positions in place on x [T × heads·head_width]; tables [positions × r/2]. Throws
/// ShapeError where r > head_width; positions are within the tables (checked by the caller).
template <Backend B>
void rotate_positions(B& backend, const_matrix_view_t<B> cosines, const_matrix_view_t<B> sines,
                      ConstVectorView<TokenId> positions, Index heads, matrix_view_t<B> x) {
  check_size(positions, x.rows, "rotate_positions: positions");
  check_shape(sines, cosines.rows, cosines.cols, "rotate_positions: sines");
  const Index head_width = heads > 0 ? x.cols / heads : 0;
  check_shape(x, x.rows, heads * head_width, "rotate_positions: x");
  if (2 * cosines.cols > head_width) {
    throw ShapeError({.id = "shape/rotary",
                      .where = "rotate_positions",
                      .what = "more rotated entries than a head has",
                      .expected = "at most " + std::to_string(head_width),
                      .found = std::to_string(2 * cosines.cols),
                      .mend = "check rotary width, heads and head width"});
  }
  backend.for_each_row(
      x.rows, kernels::RotaryRow<scalar_t<B>>{cosines, sines, positions, heads, head_width, x});
}

/// out ← causal attention of q [T × H·w] over k, v [S × K·w], sequence by sequence.
template <Backend B>
void causal_attention(B& backend, const_matrix_view_t<B> q, const_matrix_view_t<B> k,
                      const_matrix_view_t<B> v, std::span<const AttentionSpan> spans,
                      const AttentionShape& shape, matrix_view_t<B> out, Workspace<B>& workspace) {
  check_shape(q, out.rows, shape.heads * shape.head_width, "causal_attention: q");
  check_shape(out, out.rows, shape.heads * shape.head_width, "causal_attention: out");
  check_shape(k, k.rows, shape.key_heads * shape.head_width, "causal_attention: k");
  check_shape(v, k.rows, shape.key_heads * shape.head_width, "causal_attention: v");
  check_attention(spans, shape, q.rows, k.rows);
  if constexpr (requires { backend.causal_attention(q, k, v, spans, shape, out, workspace); }) {
    backend.causal_attention(q, k, v, spans, shape, out, workspace);
  } else {
    causal_attention_generic(backend, q, k, v, spans, shape, out, workspace);
  }
}

/// nll[i] ← −log softmax(logits[i])[targets[i]] in nats, over the first `vocabulary` columns;
/// logits [T × ≥ vocabulary], targets and nll [T]; targets within the vocabulary (checked by the
/// caller, once per batch).
template <Backend B>
void token_loss(B& backend, const_matrix_view_t<B> logits, ConstVectorView<TokenId> targets,
                Index vocabulary, VectorView<double> nll) {
  check_size(targets, logits.rows, "token_loss: targets");
  check_size(nll, logits.rows, "token_loss: nll");
  detail::check_vocabulary(vocabulary, logits.cols, "token_loss");
  backend.for_each_row(logits.rows,
                       kernels::TokenLossRow<scalar_t<B>>{logits, targets, vocabulary, nll});
}

/// nll[i] ← −log softmax(x·op(W) + bias)[i, targets[i]] in nats, over the first `vocabulary`
/// columns of op(W): token_loss of linear, 128 rows of logits at a time at most. x [T × d], op(W)
/// [d × ≥ vocabulary], bias one entry a column or empty, targets and nll [T]; targets within the
/// vocabulary (checked by the caller).
template <Backend B, class W>
void linear_token_loss(B& backend, const_matrix_view_t<B> x, Operand<W> weight,
                       ConstVectorView<scalar_t<B>> bias, ConstVectorView<TokenId> targets,
                       Index vocabulary, VectorView<double> nll, Workspace<B>& workspace) {
  check_size(targets, x.rows, "linear_token_loss: targets");
  check_size(nll, x.rows, "linear_token_loss: nll");
  detail::check_vocabulary(vocabulary, weight.cols(), "linear_token_loss");
  if (!bias.empty()) check_size(bias, weight.cols(), "linear_token_loss: bias");
  if constexpr (requires {
                  backend.linear_token_loss(x, weight, bias, targets, vocabulary, nll, workspace);
                }) {
    backend.linear_token_loss(x, weight, bias, targets, vocabulary, nll, workspace);
  } else {
    constexpr Index block_rows = 128;
    for (Index first = 0; first < x.rows; first += block_rows) {
      const typename Workspace<B>::Frame frame(workspace);
      const Index count = std::min(block_rows, x.rows - first);
      const matrix_view_t<B> logits = workspace.matrix(count, weight.cols());
      linear<B>(backend, x.middle_rows(first, count), weight, bias, logits);
      token_loss<B>(backend, logits, targets.middle(first, count), vocabulary,
                    nll.middle(first, count));
    }
  }
}

/// ranks[i] ← number of the first `vocabulary` columns of logits[i] that are larger than that of
/// targets[i], or as large and before it: 0 where a greedy choice is the target. Shapes and checks
/// as for token_loss.
template <Backend B>
void target_rank(B& backend, const_matrix_view_t<B> logits, ConstVectorView<TokenId> targets,
                 Index vocabulary, VectorView<double> ranks) {
  check_size(targets, logits.rows, "target_rank: targets");
  check_size(ranks, logits.rows, "target_rank: ranks");
  detail::check_vocabulary(vocabulary, logits.cols, "target_rank");
  backend.for_each_row(logits.rows,
                       kernels::TargetRankRow<scalar_t<B>>{logits, targets, vocabulary, ranks});
}

}  // namespace ops
}  // namespace wanamaker::inline WANAMAKER_ABI
