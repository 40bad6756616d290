// Sending each row to one of k experts: rows are grouped, every expert runs once on its own rows
// and on no others, results are put back in place.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <vector>

#include "wanamaker/backend/generic.hpp"
#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/gate/gather_element.hpp"
#include "wanamaker/gate/host_rows.hpp"
#include "wanamaker/nn/mlp.hpp"
#include "wanamaker/nn/mlp_policy.hpp"
#include "wanamaker/nn/surrogate_mlp.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Rows that went to each expert since the last reset. Shared by copies of a policy; several
/// threads may add at once.
class RoutingCounts {
 public:
  explicit RoutingCounts(Index experts)
      : counts_(
            std::make_shared<std::vector<std::atomic<Index>>>(static_cast<std::size_t>(experts))) {}

  void add(std::size_t expert, Index rows) const { (*counts_)[expert] += rows; }
  void reset() const {
    for (auto& count : *counts_) count = 0;
  }
  Index rows(std::size_t expert) const { return (*counts_)[expert]; }
  Index total() const {
    Index sum = 0;
    for (const auto& count : *counts_) sum += count;
    return sum;
  }
  /// Share of all rows that went to an expert; 0 before any row was seen.
  double fraction(std::size_t expert) const {
    const Index all = total();
    return all > 0 ? static_cast<double>(rows(expert)) / static_cast<double>(all) : 0.0;
  }

 private:
  std::shared_ptr<std::vector<std::atomic<Index>>> counts_;
};

/// Called with (layer, choices [T] in the backend's memory) after every decision, for example to
/// count routed positions among the scored ones. May be empty.
using RoutingListener = std::function<void(Index layer, ConstVectorView<TokenId> choices)>;

/// Does an MLP policy look at its RowContext? Specialise it to false for one that does not: its
/// rows are then routed without copying the residual stream.
template <class Policy>
inline constexpr bool needs_row_context = true;
template <class B, class Activation>
inline constexpr bool needs_row_context<DenseMlp<B, Activation>> = false;
template <class B, class Activation>
inline constexpr bool needs_row_context<GatedLinearUnitMlp<B, Activation>> = false;
template <class B>
inline constexpr bool needs_row_context<AffineMlp<B>> = false;
template <class B>
inline constexpr bool needs_row_context<LowRankMlp<B>> = false;
template <class B>
inline constexpr bool needs_row_context<MeanMlp<B>> = false;
template <class B>
inline constexpr bool needs_row_context<ZeroMlp<B>> = false;

/// Rows sorted by expert, in their own order within each: expert e has the rows
/// order[first[e]] … order[first[e + 1] − 1].
template <std::size_t experts>
struct RowGroups {
  ConstVectorView<TokenId> order{};  ///< [T], backend memory
  std::array<Index, experts + 1> first{};

  ConstVectorView<TokenId> rows_of(std::size_t expert) const {
    return order.middle(first[expert], first[expert + 1] - first[expert]);
  }
};

namespace detail {

/// A stable counting sort of choices [T] in 0 … k − 1.
template <std::size_t experts>
std::array<Index, experts + 1> sort_by_choice(ConstVectorView<TokenId> choices,
                                              VectorView<TokenId> order) {
  std::array<Index, experts + 1> first{};
  for (Index i = 0; i < choices.size; ++i) ++first[static_cast<std::size_t>(choices[i]) + 1];
  for (std::size_t e = 0; e < experts; ++e) first[e + 1] += first[e];
  std::array<Index, experts + 1> next = first;
  for (Index i = 0; i < choices.size; ++i) {
    order[next[static_cast<std::size_t>(choices[i])]++] = static_cast<TokenId>(i);
  }
  return first;
}

/// Groups rows where the backend computes: its own `group_rows(choices, experts, order)` where it
/// has one (a device then reads back k + 1 numbers), the host's memory directly, else by way of the
/// host. On the host nothing is allocated.
template <std::size_t experts, Backend B>
RowGroups<experts> group_rows(B& backend, ConstVectorView<TokenId> choices,
                              Workspace<B>& workspace) {
  const VectorView<TokenId> order = workspace.template vector<TokenId>(choices.size);
  if constexpr (requires { backend.group_rows(choices, Index{experts}, order); }) {
    const auto first = backend.group_rows(choices, Index{experts}, order);
    RowGroups<experts> groups{order};
    std::copy_n(std::begin(first), experts + 1, groups.first.begin());
    return groups;
  } else if constexpr (is_host_backend<B>) {
    return {order, sort_by_choice<experts>(choices, order)};
  } else {
    const std::vector<TokenId> chosen = host_copy(backend, choices);
    std::vector<TokenId> sorted(chosen.size());
    const auto first =
        sort_by_choice<experts>({chosen.data(), choices.size}, {sorted.data(), choices.size});
    backend.copy_from_host(sorted.data(), order.size, order.data);
    return {order, first};
  }
}

template <Backend B>
ConstVectorView<TokenId> gather_ids(B& backend, ConstVectorView<TokenId> ids,
                                    ConstVectorView<TokenId> index, Workspace<B>& workspace) {
  if (ids.empty()) return ids;
  const VectorView<TokenId> gathered = workspace.template vector<TokenId>(index.size);
  backend.for_each(index.size, kernels::GatherElement<TokenId>{ids, index, gathered});
  return gathered;
}

template <Backend B>
const_matrix_view_t<B> gather_matrix(B& backend, const_matrix_view_t<B> rows,
                                     ConstVectorView<TokenId> index, Workspace<B>& workspace) {
  if (rows.rows == 0) return rows;
  const matrix_view_t<B> gathered = workspace.matrix(index.size, rows.cols);
  ops::gather_rows(backend, rows, index, gathered);
  return gathered;
}

/// The context of chosen rows. They are no longer sequences: offsets are left out.
template <Backend B>
RowContext<B> gather_context(B& backend, const RowContext<B>& rows, ConstVectorView<TokenId> index,
                             Workspace<B>& workspace) {
  return {rows.layer,
          gather_ids(backend, rows.tokens, index, workspace),
          gather_ids(backend, rows.positions, index, workspace),
          {},
          gather_matrix(backend, rows.residual, index, workspace)};
}

/// y[index] ← policy(x[index]); nothing at all for no rows, no copies for all of them.
template <class Policy, Backend B>
void run_on_rows(const Policy& policy, B& backend, const_matrix_view_t<B> x,
                 const RowContext<B>& rows, ConstVectorView<TokenId> index, matrix_view_t<B> y,
                 Workspace<B>& workspace) {
  if (index.empty()) return;
  if (index.size == x.rows) return mlp_forward(policy, backend, x, rows, y, workspace);
  const typename Workspace<B>::Frame frame(workspace);
  const const_matrix_view_t<B> own_x = gather_matrix(backend, x, index, workspace);
  const matrix_view_t<B> own_y = workspace.matrix(index.size, y.cols);
  RowContext<B> own_rows;
  own_rows.layer = rows.layer;
  if constexpr (needs_row_context<Policy>) {
    own_rows = gather_context(backend, rows, index, workspace);
  }
  mlp_forward(policy, backend, own_x, own_rows, own_y, workspace);
  ops::scatter_rows<B>(backend, own_y, index, y);
}

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
