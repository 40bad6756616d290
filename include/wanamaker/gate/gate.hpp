// What may decide, row by row, whether a surrogate suffices in an MLP's place.
// docs/policies/gate.md has the laws and the smallest example.
#pragma once

#include <concepts>
#include <optional>

#include "wanamaker/nn/mlp_policy.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {
template <class G, class B>
concept HasScore = requires(const G& gate, B& backend, const_matrix_view_t<B> x,
                            const RowContext<B>& rows, VectorView<double> scores,
                            Workspace<B>& workspace) {
  gate.score(backend, x, rows, scores, workspace);
};
}  // namespace detail

/// score(backend, x, rows, scores, workspace) writes one number per row of the normalised MLP input
/// x [T × d] into scores [T], in the backend's memory: the larger, the more surely the surrogate
/// suffices. Rows are independent: permuting x permutes the scores. cost(tokens) says what that
/// takes. Optional members: `scores_are_probabilities()`, and `natural_threshold()`, the score
/// above which the gate itself would route a row to the surrogate.
template <class G, class B>
concept Gate = Backend<B> && detail::HasScore<G, B> && detail::HasCost<G>;

/// True for a gate; for anything else a static_assert names what is missing.
template <class G, class B>
consteval bool check_gate() {
  static_assert(detail::HasScore<G, B>,
                "wanamaker: a gate needs score(backend, x, rows, scores, workspace) const, writing "
                "one double per row (docs/policies/gate.md)");
  static_assert(detail::HasCost<G>,
                "wanamaker: a gate needs cost(tokens) const returning MlpCost "
                "(docs/policies/gate.md)");
  return true;
}

/// Are the gate's scores g = P(the surrogate suffices), in [0, 1]? Soft gating needs that.
template <class G>
bool scores_are_probabilities(const G& gate) {
  if constexpr (requires { gate.scores_are_probabilities(); }) {
    return gate.scores_are_probabilities();
  } else {
    return false;
  }
}

/// The score above which the gate itself would choose the surrogate (0.5 for probabilities);
/// missing for rules that have no such point.
template <class G>
std::optional<double> natural_threshold(const G& gate) {
  if constexpr (requires { gate.natural_threshold(); }) {
    return gate.natural_threshold();
  } else {
    return std::nullopt;
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
