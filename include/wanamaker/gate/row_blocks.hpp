// Sums over rows in blocks that depend on the number of rows alone, merged in order: the same bits
// for any number of threads.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "wanamaker/backend/instruction_set.hpp"
#include "wanamaker/core/executor.hpp"

namespace wanamaker::inline WANAMAKER_ABI::detail {

/// sums[k] ← Σ over rows i of what add(i, partial) adds to partial[k]; `add` is a small trivially
/// copyable functor, compiled for the widest instructions here.
template <class Add>
void sum_over_rows(Index rows, const ExecutorRef& executor, const Add& add,
                   std::span<double> sums) {
  constexpr Index most_blocks = 128;
  const Index block = std::max<Index>(256, blocks_of(rows, most_blocks));
  const Index blocks = blocks_of(rows, block);
  std::vector<double> partials(sums.size() * static_cast<std::size_t>(blocks));
  executor.run(blocks, [&](Index b) {
    double* partial = partials.data() + static_cast<std::size_t>(b) * sums.size();
    run_range(b * block, std::min(rows, (b + 1) * block),
              [add, partial](Index i) { add(i, partial); });
  });
  std::fill(sums.begin(), sums.end(), 0.0);
  for (std::size_t k = 0; k < partials.size(); ++k) sums[k % sums.size()] += partials[k];
}

}  // namespace wanamaker::inline WANAMAKER_ABI::detail
