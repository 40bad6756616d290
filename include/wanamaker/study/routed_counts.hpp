// How many positions gated policies route while an experiment runs them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/study/windows.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Counts the scored positions that gated policies route, layer by layer, while a batch is set; or
/// all positions that they are run on.
template <class B>
class RoutedCounts {
 public:
  RoutedCounts(B& backend, Index layers)
      : backend_(backend), routed_(static_cast<std::size_t>(layers)) {}

  /// Counting begins anew, with no batch set.
  void reset() {
    std::fill(routed_.begin(), routed_.end(), 0);
    batch_ = nullptr;
    counts_all_ = false;
  }
  /// From now on every position counts.
  void count_all() { counts_all_ = true; }
  void set_batch(const EvaluationBatch* batch) { batch_ = batch; }
  void add(Index layer, ConstVectorView<TokenId> choices) {
    if (batch_ == nullptr && !counts_all_) return;
    const std::vector<TokenId> all = detail::host_copy(backend_, choices);
    Index& routed = routed_[static_cast<std::size_t>(layer)];
    if (counts_all_) {
      for (const TokenId choice : all) routed += choice;
      return;
    }
    for (const TokenId row : batch_->scored.rows) routed += all[static_cast<std::size_t>(row)];
  }
  Index routed(Index layer) const { return routed_[static_cast<std::size_t>(layer)]; }

 private:
  B& backend_;
  std::vector<Index> routed_;
  const EvaluationBatch* batch_ = nullptr;
  bool counts_all_ = false;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
