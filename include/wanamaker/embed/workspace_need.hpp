// How much workspace a policy takes, so that a host program can have it before the first batch.
#pragma once

#include <algorithm>
#include <cstddef>

#include "wanamaker/backend/kernels.hpp"
#include "wanamaker/embed/foreign_buffers.hpp"
#include "wanamaker/gate/gated_mlp.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline void check_batch(Index rows, Index width) {
  constexpr Index most = Index{1} << 48;
  if (rows >= 0 && width >= 0 && (width == 0 || rows <= most / width)) return;
  throw_foreign("embed/shape", "workspace_bytes", "no shape of a batch",
                "rows and columns of 0 or more", shape_text(rows, width));
}

/// What `work(x, y, workspace)` takes on zeros, x and y [rows × width] included.
template <Backend B, class Work>
std::size_t bytes_taken(B& backend, Index rows, Index width, Work work) {
  check_batch(rows, width);
  Workspace<B> trial(backend);
  const matrix_view_t<B> x = trial.matrix(rows, width);
  const matrix_view_t<B> y = trial.matrix(rows, width);
  backend.for_each_row(rows, kernels::FillRow<scalar_t<B>>{scalar_t<B>(0), x});
  work(const_matrix_view_t<B>(x), y, trial);
  return trial.capacity_bytes();
}

}  // namespace detail

/// Bytes of workspace that run_foreign takes at most for up to `rows` rows of `width` numbers of
/// any type. It runs the policy on zeros, with an empty RowContext.
template <Backend B, class Policy>
std::size_t workspace_bytes(B& backend, const Policy& policy, Index rows, Index width) {
  return detail::bytes_taken(backend, rows, width, [&](auto x, auto y, Workspace<B>& workspace) {
    mlp_forward(policy, backend, x, RowContext<B>{}, y, workspace);
  });
}

/// The same whatever share is routed: the gate, and the dearer path on rows that were gathered.
template <Backend B, class G, class Surrogate, class Mlp>
std::size_t workspace_bytes(B& backend, const GatedMlp<G, Surrogate, Mlp>& gated, Index rows,
                            Index width) {
  const std::size_t gate =
      detail::bytes_taken(backend, rows, width, [&](auto x, auto, Workspace<B>& workspace) {
        const VectorView<double> scores = workspace.template vector<double>(rows);
        workspace.template vector<TokenId>(rows);  // choices
        workspace.template vector<TokenId>(rows);  // their order
        gated.gate().score(backend, x, RowContext<B>{}, scores, workspace);
      });
  return gate + std::max(workspace_bytes(backend, gated.surrogate(), rows, width),
                         workspace_bytes(backend, gated.mlp(), rows, width));
}

/// Lets workspace and backend grow now to what workspace_bytes says: batches of up to `rows` rows
/// then allocate nothing. Nothing of the workspace may be in use.
template <Backend B, class Policy>
void reserve_workspace(B& backend, const Policy& policy, Index rows, Index width,
                       Workspace<B>& workspace) {
  workspace.reserve(workspace_bytes(backend, policy, rows, width));
}

}  // namespace wanamaker::inline WANAMAKER_ABI
