// Sums over rows in blocks that depend on the number of rows alone, merged in order: the same bits
// for any number of threads.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "wanamaker/backend/instruction_set.hpp"
#include "wanamaker/core/executor.hpp"

namespace wanamaker::inline WANAMAKER_ABI::detail {

/// sums[k] ← Σ over blocks of rows of what add(begin, end, partial) adds to partial[k] for the rows
/// [begin, end); `add` is a small trivially copyable functor, compiled for the widest instructions
/// here.
template <class Add>
void sum_over_rows(Index rows, const ExecutorRef& executor, const Add& add,
                   std::span<double> sums) {
  constexpr Index most_blocks = 128;
  const Index block = std::max<Index>(256, blocks_of(rows, most_blocks));
  const Index blocks = blocks_of(rows, block);
  std::vector<double> partials(sums.size() * static_cast<std::size_t>(blocks));
  executor.run(blocks, [&](Index b) {
    double* partial = partials.data() + static_cast<std::size_t>(b) * sums.size();
    const Index first = b * block;
    const Index end = std::min(rows, first + block);
    run_range(0, 1, [add, partial, first, end](Index) { add(first, end, partial); });
  });
  std::fill(sums.begin(), sums.end(), 0.0);
  for (std::size_t k = 0; k < partials.size(); ++k) sums[k % sums.size()] += partials[k];
}

}  // namespace wanamaker::inline WANAMAKER_ABI::detail
