// From a decomposed batch to the statistics of its parts, as an MLP sees them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/residual/decomposition.hpp"
#include "wanamaker/residual/part_statistics.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Whether parts are taken as they are in the stream, or as they reach the MLP: through its norm
/// with the scale held fixed.
enum class PartView { stream, mlp_input };

namespace detail {

inline void check_groups(std::span<const PartGroup> groups, Index parts) {
  for (const PartGroup& group : groups) {
    for (const Index number : group.parts) {
      if (number >= 0 && number < parts) continue;
      throw ShapeError({.id = "shape/residual-part",
                        .where = "group " + group.name,
                        .what = "a part that the layer's MLP does not see",
                        .expected = "a number below " + std::to_string(parts),
                        .found = std::to_string(number),
                        .mend = "make the groups from parts_before_mlp of the layer"});
    }
  }
}

/// The groups' sums on the host in double, [positions × groups × d].
template <Backend B>
std::vector<double> group_values(B& backend, const ResidualDecomposition<B>& decomposition,
                                 Index layer, std::span<const PartGroup> groups, PartView view,
                                 Workspace<B>& workspace) {
  const typename Workspace<B>::Frame frame(workspace);
  const Index rows = decomposition.rows();
  const Index width = decomposition.width();
  const matrix_view_t<B> sum = workspace.matrix(rows, width);
  const Index count = static_cast<Index>(groups.size());
  std::vector<double> values(static_cast<std::size_t>(rows * width * count));
  for (Index g = 0; g < count; ++g) {
    const std::vector<Index>& parts = groups[static_cast<std::size_t>(g)].parts;
    decomposition.sum(parts, sum);
    if (view == PartView::mlp_input) decomposition.contribution(layer, sum, sum);
    const std::vector<scalar_t<B>> host = detail::host_copy(backend, sum);
    for (Index i = 0; i < rows; ++i) {
      const scalar_t<B>* from = host.data() + i * width;
      std::copy(from, from + width, values.data() + (i * count + g) * width);
    }
  }
  return values;
}

}  // namespace detail

/// Adds the batch's positions to the statistics of the groups at one layer. `chosen` [T] names with
/// 1 the positions that count; empty: all. Throws ShapeError where groups, positions and statistics
/// do not fit together, or a group has a part that the layer's MLP does not see.
template <Backend B>
void add_to(PartStatistics& statistics, B& backend, const ResidualDecomposition<B>& decomposition,
            Index layer, std::span<const PartGroup> groups, PartView view, Workspace<B>& workspace,
            std::span<const std::uint8_t> chosen = {}) {
  const Index rows = decomposition.rows();
  const Index count = static_cast<Index>(groups.size());
  if (!chosen.empty()) {
    check_size(ConstVectorView<std::uint8_t>(chosen.data(), static_cast<Index>(chosen.size())),
               rows, "add_to(PartStatistics): chosen");
  }
  detail::check_groups(groups, decomposition.mlp_parts(layer));
  const std::vector<double> values =
      detail::group_values(backend, decomposition, layer, groups, view, workspace);
  const Index size = count * decomposition.width();
  for (Index i = 0; i < rows; ++i) {
    if (!chosen.empty() && chosen[static_cast<std::size_t>(i)] == 0) continue;
    statistics.add({values.data() + i * size, count, decomposition.width()});
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
