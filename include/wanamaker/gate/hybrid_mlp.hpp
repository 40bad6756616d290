// An affine path for every token, and a narrow MLP for what it leaves.
#pragma once

#include <utility>

#include "wanamaker/backend/generic.hpp"
#include "wanamaker/nn/mlp_policy.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// y = affine(x) + narrow(x).
template <class Affine, class Narrow>
class HybridMlp {
 public:
  HybridMlp(Affine affine, Narrow narrow)
      : affine_(std::move(affine)), narrow_(std::move(narrow)) {}

  /// x, y [T × d].
  template <Backend B>
  void forward(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows, matrix_view_t<B> y,
               Workspace<B>& workspace) const {
    const typename Workspace<B>::Frame frame(workspace);
    const matrix_view_t<B> curved = workspace.matrix(y.rows, y.cols);
    mlp_forward(narrow_, backend, x, rows, curved, workspace);
    mlp_forward(affine_, backend, x, rows, y, workspace);
    ops::add<B>(backend, y, curved, y);
  }

  MlpCost cost(Index tokens) const {
    const MlpCost a = affine_.cost(tokens);
    const MlpCost n = narrow_.cost(tokens);
    return {a.flops + n.flops, a.weight_bytes + n.weight_bytes, a.parameters + n.parameters};
  }

  const Affine& affine() const { return affine_; }
  Affine& affine() { return affine_; }
  const Narrow& narrow() const { return narrow_; }
  Narrow& narrow() { return narrow_; }

 private:
  Affine affine_;
  Narrow narrow_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
