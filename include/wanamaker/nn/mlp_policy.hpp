// What may stand in the place of a block's MLP. docs/policies/mlp.md has laws and examples.
#pragma once

#include <concepts>
#include <span>

#include "wanamaker/backend/workspace.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What a policy may look at besides its input: where the rows come from.
template <class B>
struct RowContext {
  Index layer = 0;
  ConstVectorView<TokenId> tokens;     ///< [T] token ids, backend memory
  ConstVectorView<TokenId> positions;  ///< [T] position in the sequence, backend memory
  std::span<const Index> offsets;      ///< sequence starts, host memory
  const_matrix_view_t<B> residual;     ///< [T × d] residual stream before the MLP's norm
};

/// What running a policy takes.
struct MlpCost {
  double flops = 0;         ///< multiplications and additions for the tokens asked about
  double weight_bytes = 0;  ///< bytes of weights read once
  double parameters = 0;
};

namespace detail {
template <class P, class B>
concept ForwardFull = requires(const P& p, B& b, const_matrix_view_t<B> x,
                               const RowContext<B>& rows, matrix_view_t<B> y, Workspace<B>& w) {
  p.forward(b, x, rows, y, w);
};
template <class P, class B>
concept ForwardShort = requires(const P& p, const_matrix_view_t<B> x, matrix_view_t<B> y) {
  p.forward(x, y);
};
template <class P>
concept HasCost = requires(const P& p, Index tokens) {
  { p.cost(tokens) } -> std::convertible_to<MlpCost>;
};
}  // namespace detail

/// forward(backend, x, rows, y, workspace), or forward(x, y) for a policy that needs nothing else,
/// maps the normalised MLP input x [T × d] to the MLP output y [T × d]; the block adds the
/// residual. cost(tokens) says what that takes. Rows are independent: permuting x permutes y.
template <class P, class B>
concept MlpPolicy = Backend<B> &&
    (detail::ForwardFull<P, B> || detail::ForwardShort<P, B>)&&detail::HasCost<P>;

/// True for an MLP policy; for anything else a static_assert names what is missing.
template <class P, class B>
consteval bool check_mlp_policy() {
  static_assert(detail::ForwardFull<P, B> || detail::ForwardShort<P, B>,
                "wanamaker: an MLP policy needs forward(backend, x, rows, y, workspace) const or "
                "forward(x, y) const (docs/policies/mlp.md)");
  static_assert(detail::HasCost<P>,
                "wanamaker: an MLP policy needs cost(tokens) const returning MlpCost "
                "(docs/policies/mlp.md)");
  return true;
}

/// Calls either form of forward.
template <class P, class B>
void mlp_forward(const P& policy, B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows,
                 matrix_view_t<B> y, Workspace<B>& workspace) {
  if constexpr (detail::ForwardFull<P, B>) {
    policy.forward(backend, x, rows, y, workspace);
  } else {
    policy.forward(x, y);
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
