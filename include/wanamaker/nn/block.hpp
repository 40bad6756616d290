// A transformer block with its MLP as a policy.
#pragma once

#include <utility>

#include "wanamaker/nn/attention.hpp"
#include "wanamaker/nn/mlp_policy.hpp"
#include "wanamaker/nn/observer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The MLP reads the stream after attention was added: r' = r + a(r); r'' = r' + m(r').
struct SequentialResidual {
  static constexpr bool reads_carry() { return true; }
};

/// Attention and MLP read the same stream: r' = r + a(r) + m(r). Wang & Komatsuzaki 2021.
struct ParallelResidual {
  static constexpr bool reads_carry() { return false; }
};

/// Norm, attention, norm, MLP. In both topologies the new stream is carry + mlp(mlp_input), with
/// carry = r + attention(norm₁(r)); they differ in what the second norm reads. So everything up to
/// the MLP can be computed once and shared by many policies (`attend`, then `finish`).
template <class B, class Norm, class Attention, MlpPolicy<B> Mlp,
          class Topology = SequentialResidual>
class TransformerBlock {
 public:
  using MlpType = Mlp;
  using NormType = Norm;

  TransformerBlock() = default;
  TransformerBlock(Norm attention_norm, Attention attention, Norm mlp_norm, Mlp mlp,
                   Topology topology = {})
      : attention_norm_(std::move(attention_norm)),
        attention_(std::move(attention)),
        mlp_norm_(std::move(mlp_norm)),
        mlp_(std::move(mlp)),
        topology_(topology) {}

  /// carry ← r + attention(norm₁(r)); mlp_input ← norm₂(r or carry). All [T × d].
  template <class Observer = NoObserver>
  void attend(B& backend, Index layer, const PackedBatch<B>& batch, const_matrix_view_t<B> residual,
              matrix_view_t<B> carry, matrix_view_t<B> mlp_input, Workspace<B>& workspace,
              Observer&& observer = {}) const {
    attention_norm_.forward(backend, residual, mlp_input);
    run_attention(backend, layer, batch, mlp_input, carry, workspace, observer);
    detail::notify_attention_output(observer, layer, const_matrix_view_t<B>(carry));
    ops::add<B>(backend, residual, carry, carry);
    mlp_norm_.forward(backend, mlp_source(residual, carry), mlp_input);
    detail::notify_mlp_input(observer, layer, const_matrix_view_t<B>(mlp_input));
  }

  /// out ← carry + policy(mlp_input); `residual` is the stream that entered the block, out may be
  /// it.
  template <MlpPolicy<B> Policy, class Observer = NoObserver>
  void finish(const Policy& policy, B& backend, Index layer, const PackedBatch<B>& batch,
              const_matrix_view_t<B> residual, const_matrix_view_t<B> carry,
              const_matrix_view_t<B> mlp_input, matrix_view_t<B> out, Workspace<B>& workspace,
              Observer&& observer = {}) const {
    const typename Workspace<B>::Frame frame(workspace);
    const matrix_view_t<B> y = workspace.matrix(carry.rows, carry.cols);
    mlp_forward(policy, backend, mlp_input, row_context(layer, batch, residual, carry), y,
                workspace);
    detail::notify_mlp_output(observer, layer, const_matrix_view_t<B>(y));
    ops::add<B>(backend, carry, y, out);
  }

  /// The whole block in place on the residual stream, with another policy in the MLP's place.
  template <MlpPolicy<B> Policy, class Observer = NoObserver>
  void forward_with(const Policy& policy, B& backend, Index layer, const PackedBatch<B>& batch,
                    matrix_view_t<B> residual, Workspace<B>& workspace,
                    Observer&& observer = {}) const {
    const typename Workspace<B>::Frame frame(workspace);
    const matrix_view_t<B> carry = workspace.matrix(residual.rows, residual.cols);
    const matrix_view_t<B> mlp_input = workspace.matrix(residual.rows, residual.cols);
    attend(backend, layer, batch, residual, carry, mlp_input, workspace, observer);
    finish(policy, backend, layer, batch, residual, carry, mlp_input, residual, workspace,
           observer);
  }

  /// The whole block in place on the residual stream [T × d].
  template <class Observer = NoObserver>
  void forward(B& backend, Index layer, const PackedBatch<B>& batch, matrix_view_t<B> residual,
               Workspace<B>& workspace, Observer&& observer = {}) const {
    forward_with(mlp_, backend, layer, batch, residual, workspace, observer);
  }

  /// What the MLP's norm reads: the stream that entered the block, or that with attention added.
  const_matrix_view_t<B> mlp_source(const_matrix_view_t<B> residual,
                                    const_matrix_view_t<B> carry) const {
    return topology_.reads_carry() ? carry : residual;
  }

  /// What the policy may look at besides its input.
  RowContext<B> row_context(Index layer, const PackedBatch<B>& batch,
                            const_matrix_view_t<B> residual, const_matrix_view_t<B> carry) const {
    return {layer, batch.tokens(), batch.positions(), batch.offsets(), mlp_source(residual, carry)};
  }

  const Norm& attention_norm() const { return attention_norm_; }
  Norm& attention_norm() { return attention_norm_; }
  const Attention& attention() const { return attention_; }
  Attention& attention() { return attention_; }
  const Norm& mlp_norm() const { return mlp_norm_; }
  Norm& mlp_norm() { return mlp_norm_; }
  const Mlp& mlp() const { return mlp_; }
  Mlp& mlp() { return mlp_; }
  Topology topology() const { return topology_; }

  double parameters() const {
    return static_cast<double>(attention_norm_.parameters() + attention_.parameters() +
                               mlp_norm_.parameters()) +
           mlp_.cost(0).parameters;
  }

 private:
  // An attention that shows nothing of its inside takes no observer.
  template <class Observer>
  void run_attention(B& backend, Index layer, const PackedBatch<B>& batch,
                     const_matrix_view_t<B> input, matrix_view_t<B> output, Workspace<B>& workspace,
                     Observer& observer) const {
    if constexpr (requires {
                    attention_.forward(backend, layer, input, batch, output, workspace, observer);
                  }) {
      attention_.forward(backend, layer, input, batch, output, workspace, observer);
    } else {
      attention_.forward(backend, layer, input, batch, output, workspace);
    }
  }

  Norm attention_norm_{};
  Attention attention_{};
  Norm mlp_norm_{};
  Mlp mlp_{};
  [[no_unique_address]] Topology topology_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
