// Borrowed policies and gates: a gated layer may use the model's own MLP without owning it.
#pragma once

#include <optional>

#include "wanamaker/gate/gate.hpp"
#include "wanamaker/gate/routing.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A policy that lives elsewhere and must outlive this.
template <class Policy>
class MlpReference {
 public:
  explicit MlpReference(const Policy& policy) : policy_(&policy) {}

  template <Backend B>
  void forward(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows, matrix_view_t<B> y,
               Workspace<B>& workspace) const {
    mlp_forward(*policy_, backend, x, rows, y, workspace);
  }
  MlpCost cost(Index tokens) const { return policy_->cost(tokens); }
  const Policy& policy() const { return *policy_; }

 private:
  const Policy* policy_;
};

template <class Policy>
inline constexpr bool needs_row_context<MlpReference<Policy>> = needs_row_context<Policy>;

/// A gate that lives elsewhere and must outlive this.
template <class G>
class GateReference {
 public:
  explicit GateReference(const G& gate) : gate_(&gate) {}

  template <Backend B>
  void score(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows,
             VectorView<double> scores, Workspace<B>& workspace) const {
    gate_->score(backend, x, rows, scores, workspace);
  }
  MlpCost cost(Index tokens) const { return gate_->cost(tokens); }
  bool scores_are_probabilities() const { return wanamaker::scores_are_probabilities(*gate_); }
  std::optional<double> natural_threshold() const { return wanamaker::natural_threshold(*gate_); }
  const G& gate() const { return *gate_; }

 private:
  const G* gate_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
