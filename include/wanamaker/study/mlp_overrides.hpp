// A model with other policies in the places of some layers' MLPs, the model itself left as it is.
#pragma once

#include <cstddef>
#include <vector>

#include "wanamaker/nn/any_transformer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Which policy stands in for which layer's MLP. Policies live elsewhere and must outlive this.
template <class B>
class MlpOverrides {
 public:
  /// The model's own MLPs everywhere.
  MlpOverrides() = default;

  /// `policy` in the place of layer `layer`'s MLP; null: the model's own again.
  void set(Index layer, const AnyMlp<B>* policy) {
    const std::size_t at = static_cast<std::size_t>(layer);
    if (at >= policies_.size()) policies_.resize(at + 1);
    policies_[at] = policy;
  }

  /// Null where the model's own MLP stands.
  const AnyMlp<B>* at(Index layer) const {
    const std::size_t i = static_cast<std::size_t>(layer);
    return i < policies_.size() ? policies_[i] : nullptr;
  }

  /// The policy that runs at the layer.
  const AnyMlp<B>& mlp(const AnyTransformer<B>& model, Index layer) const {
    const AnyMlp<B>* policy = at(layer);
    return policy == nullptr ? model.mlp(layer) : *policy;
  }

 private:
  std::vector<const AnyMlp<B>*> policies_;
};

namespace detail {

// One block with `policy` for its MLP.
template <class B>
void forward_block_with(B& backend, const AnyTransformer<B>& model, const AnyMlp<B>& policy,
                        Index layer, const PackedBatch<B>& batch, matrix_view_t<B> residual,
                        Workspace<B>& workspace) {
  const typename Workspace<B>::Frame frame(workspace);
  const auto matrix = [&] { return workspace.matrix(residual.rows, residual.cols); };
  const matrix_view_t<B> carry = matrix();
  const matrix_view_t<B> input = matrix();
  const matrix_view_t<B> output = matrix();
  model.attend(backend, layer, batch, residual, carry, input, workspace);
  policy.forward(backend, input, model.row_context(layer, batch, residual, carry), output,
                 workspace);
  ops::add<B>(backend, carry, output, residual);
}

}  // namespace detail

/// Runs the blocks [first, end) over residual [T × d], each with the policy that overrides it.
template <class B>
void forward_blocks(B& backend, const AnyTransformer<B>& model, const MlpOverrides<B>& overrides,
                    Index first, Index end, const PackedBatch<B>& batch, matrix_view_t<B> residual,
                    Workspace<B>& workspace) {
  for (Index l = first; l < end; ++l) {
    if (const AnyMlp<B>* policy = overrides.at(l)) {
      detail::forward_block_with(backend, model, *policy, l, batch, residual, workspace);
    } else {
      model.visit(
          [&](const auto& m) { m.block(l).forward(backend, l, batch, residual, workspace); });
    }
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
