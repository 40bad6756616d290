// What a backward pass carries along, and what a trainable MLP policy is.
#pragma once

#include <vector>

#include "wanamaker/backend/backward.hpp"
#include "wanamaker/nn/gradients.hpp"
#include "wanamaker/nn/mlp_policy.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What a forward pass keeps for the backward pass: a stack. A component keeps its own values after
/// those of its parts were kept, and takes them in reverse order, before its parts take theirs.
template <class B>
class Tape {
 public:
  /// The view must live until it is taken: of workspace memory that no Frame within gives back.
  void keep(matrix_view_t<B> values) { kept_.push_back(values); }

  /// What was kept last. Throws ProtocolError where nothing is left.
  matrix_view_t<B> take() {
    if (kept_.empty()) throw_unbalanced("less was kept than is taken");
    const matrix_view_t<B> values = kept_.back();
    kept_.pop_back();
    return values;
  }

  std::size_t size() const { return kept_.size(); }
  /// Forgets what was kept after there were `size` entries.
  void truncate(std::size_t size) { kept_.resize(size); }
  /// Throws ProtocolError unless all was taken.
  void check_taken() const {
    if (!kept_.empty()) throw_unbalanced("more was kept than is taken");
  }

 private:
  [[noreturn]] static void throw_unbalanced(const char* what) {
    throw ProtocolError({.id = "training/tape",
                         .where = "Tape",
                         .what = what,
                         .expected = "backward takes what forward_taped kept, in reverse order",
                         .mend = "check the two members of each policy (docs/policies/mlp.md)"});
  }

  std::vector<matrix_view_t<B>> kept_;
};

/// One backward pass: what computes, what is kept, and where gradients are added.
template <class B>
struct BackwardPass {
  B& backend;
  Workspace<B>& workspace;
  const Gradients<B>& gradients;
  double weight = 1;  ///< gradients are those of weight · loss: for penalties that are added to it
  bool is_repetition = false;  ///< a block's forward pass is run again: not to be counted
  Tape<B> tape{};
};

namespace detail {

template <class P, class B>
concept HasBackwardMember = requires(const P& policy, BackwardPass<B>& pass,
                                     const_matrix_view_t<B> x, const RowContext<B>& rows,
                                     const_matrix_view_t<B> dy, matrix_view_t<B> dx) {
  policy.backward(pass, x, rows, dy, dx);
};
template <class P, class B>
concept HasBackwardFunction = requires(const P& policy, BackwardPass<B>& pass,
                                       const_matrix_view_t<B> x, const RowContext<B>& rows,
                                       const_matrix_view_t<B> dy, matrix_view_t<B> dx) {
  backward(policy, pass, x, rows, dy, dx);
};

}  // namespace detail

/// An MLP policy with gradients: backward(pass, x, rows, dy, dx) writes dx [T × d] from dy [T × d]
/// and adds to pass.gradients; parameters(collector) names what it learns. With
/// forward_taped(pass, x, rows, y), which runs in forward's place, it may keep values on pass.tape.
/// The library's own policies have functions beside them instead of members.
template <class P, class B>
concept TrainableMlp = detail::HasBackwardMember<P, B> || detail::HasBackwardFunction<P, B>;

/// y ← policy(x), keeping what the policy's backward pass needs besides x.
template <class P, class B>
void mlp_forward_taped(const P& policy, BackwardPass<B>& pass, const_matrix_view_t<B> x,
                       const RowContext<B>& rows, matrix_view_t<B> y) {
  if constexpr (requires { policy.forward_taped(pass, x, rows, y); }) {
    policy.forward_taped(pass, x, rows, y);
  } else if constexpr (requires { forward_taped(policy, pass, x, rows, y); }) {
    forward_taped(policy, pass, x, rows, y);
  } else {
    mlp_forward(policy, pass.backend, x, rows, y, pass.workspace);
  }
}

/// dx ← the gradient of x, from that of y; adds to the gradients of the policy's parameters. All
/// [T × d]; dx is neither x nor dy.
template <class P, class B>
void mlp_backward(const P& policy, BackwardPass<B>& pass, const_matrix_view_t<B> x,
                  const RowContext<B>& rows, const_matrix_view_t<B> dy, matrix_view_t<B> dx) {
  static_assert(TrainableMlp<P, B>,
                "wanamaker: training needs backward(pass, x, rows, dy, dx) const of an MLP policy "
                "(docs/policies/mlp.md), and for the library's own its header nn/backward/ or "
                "gate/backward.hpp");
  if constexpr (detail::HasBackwardMember<P, B>) {
    policy.backward(pass, x, rows, dy, dx);
  } else {
    backward(policy, pass, x, rows, dy, dx);
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
