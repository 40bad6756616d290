// δ of one layer's linear map on a split, with what stands at each position: what experiments on
// the routing decision begin with.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/gate_ladder.hpp"
#include "wanamaker/study/ridge_choice.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The token that each scored loss is about, in the order of the losses.
inline std::vector<TokenId> targets_of_losses(const EvaluationSet& set) {
  std::vector<TokenId> targets;
  targets.reserve(static_cast<std::size_t>(set.scored()));
  for (const EvaluationBatch& batch : set.batches) {
    targets.insert(targets.end(), batch.scored.targets.begin(), batch.scored.targets.end());
  }
  return targets;
}

/// The token at the position that predicts, in the order of the losses.
inline std::vector<TokenId> inputs_of_losses(const EvaluationSet& set) {
  std::vector<TokenId> inputs;
  inputs.reserve(static_cast<std::size_t>(set.scored()));
  for (const EvaluationBatch& batch : set.batches) {
    for (const TokenId row : batch.scored.rows) {
      inputs.push_back(batch.tokens[static_cast<std::size_t>(row)]);
    }
  }
  return inputs;
}

/// Numbers 0 … n − 1, or `most` of them, evenly spread.
inline std::vector<Index> evenly_spread(Index n, Index most) {
  const Index count = std::min(n, most);
  std::vector<Index> chosen;
  chosen.reserve(static_cast<std::size_t>(count));
  for (Index p = 0; p < count; ++p) chosen.push_back(p * n / count);
  return chosen;
}

namespace detail {

/// The values with these numbers.
template <class T>
std::vector<T> chosen_of(const std::vector<T>& values, const std::vector<Index>& chosen) {
  std::vector<T> result;
  result.reserve(chosen.size());
  for (const Index i : chosen) result.push_back(values[static_cast<std::size_t>(i)]);
  return result;
}

}  // namespace detail

/// Joint δ = L_linear − L_full in nats of every scored token of the split whose pass stands at the
/// layer, `surrogate` in the MLP's place; the pass stays. Throws NumericalError where a loss is not
/// finite.
template <class B>
std::vector<double> measure_delta(const SweepContext<B>& c, const AnyMlp<B>& surrogate,
                                  WalkedSplit<B>& split, const std::string& what) {
  std::vector<double> losses(split.baseline.size());
  split.pass->visit(
      [&](const MlpSite<B>& site) { measure_policy(c, surrogate, site, *split.pass, losses); });
  check_finite_losses(losses, what);
  return detail::differences(losses, split.baseline);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
