// What the search for a cheaper model asks and what it finds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/non_inferiority.hpp"
#include "wanamaker/study/cost_table.hpp"
#include "wanamaker/study/sweep_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What may stand in an MLP's place.
enum class PolicyKind {
  affine,    ///< x·W + b
  low_rank,  ///< (x·P)·Q + b of rank R
  gate       ///< the affine map at a share of the positions, by a hard gate; the MLP elsewhere
};

/// One of them.
struct LayerPolicy {
  PolicyKind kind = PolicyKind::affine;
  Index rank = 0;    ///< of low_rank
  double share = 0;  ///< of gate: of the select split's positions

  friend bool operator==(const LayerPolicy&, const LayerPolicy&) = default;
};

/// "affine", "rank-R", "gate-SHARE": what tables of costs call it, too.
inline std::string name_of(const LayerPolicy& policy) {
  if (policy.kind == PolicyKind::affine) return "affine";
  if (policy.kind == PolicyKind::low_rank) return "rank-" + std::to_string(policy.rank);
  std::string share = std::to_string(policy.share);
  share.erase(share.find_last_not_of('0') + 1);
  return "gate-" + share;
}

/// Short training of the chosen model to match the original.
struct HealOptions {
  Index tokens = 0;  ///< to train on, about; 0: none
  Index window = 128;
  Index sequences = 4;     ///< a batch
  double rate = 1e-4;      ///< of AdamW, at its peak
  Index separator = 0;     ///< a token between texts
  std::uint64_t seed = 0;  ///< of the windows

  /// Of the optimiser.
  Index steps() const { return tokens / (window * sequences); }
};

/// Settings of run_optimise besides those of a sweep, whose ranks and penalties it takes.
struct OptimiseOptions {
  CostKind cost = CostKind::decode;
  Index batch = 1;                              ///< sequences at once
  double max_loss_percent = 1;                  ///< of perplexity, on the select split
  std::vector<double> shares{0.25, 0.5, 0.75};  ///< that gates may route
  Index steps_beyond = 2;                       ///< points of each path that lose more
  HealOptions heal{};
  std::optional<CostTable> costs{};  ///< measured before; missing: they are measured
};

/// What was done to one block.
struct BlockChange {
  Index layer = 0;
  std::string now{};  ///< a policy's name, "left-out" or "linear"
  /// Share of the report split's scored positions that have the map; missing where all have.
  std::optional<double> routed{};
};

/// A model on a path, from the one before it by one move.
struct OptimisePoint {
  std::string move{};                  ///< "layer 3: affine"
  std::vector<BlockChange> changes{};  ///< all so far, layers ascending
  double cost = 0;                     ///< by the table, of the whole model
  double cost_fraction = 1;            ///< of the original's
  double parameters = 0;
  double weight_bytes = 0;
  double select_nll_sum = 0;  ///< nats, by which moves are chosen
  double select_delta_percent = 0;
  bool within = false;  ///< the loss on the select split is within the budget
  double nll_sum = 0;   ///< nats, on the report split
  double perplexity = 0;
  PairedComparison comparison{};
  NonInferiorityVerdict verdict = NonInferiorityVerdict::no_interval;  ///< of the budget
};

/// A model on text of another domain.
struct OtherText {
  Index documents = 0;
  Index tokens = 0;
  double baseline_perplexity = 0;
  double perplexity = 0;
  PairedComparison comparison{};
};

/// One way of searching, step by step.
struct OptimisePath {
  std::string name{};  ///< policies, low-rank, linear-blocks, drop-blocks
  std::vector<OptimisePoint> points{};
  /// Index of the cheapest point within the budget; missing where there is none.
  std::optional<Index> chosen{};
  std::optional<OtherText> other{};  ///< of the chosen point
};

/// The chosen model after it was trained to match the original.
struct HealedModel {
  Index steps = 0;
  Index tokens = 0;
  double first_loss = 0;  ///< divergence from the original, nats a token, mean of the first steps
  double last_loss = 0;
  double select_delta_percent = 0;
  double perplexity = 0;
  PairedComparison comparison{};
  NonInferiorityVerdict verdict = NonInferiorityVerdict::no_interval;
  std::optional<OtherText> other{};
};

/// What files have of the chosen model.
struct ExportedModel {
  bool has_gates = false;         ///< in a file beside the model, for this library
  double largest_difference = 0;  ///< nats between its losses and those of what was written
};

/// Tokens a second, measured end to end. No part of the result: it is another on every run.
struct MeasuredSpeed {
  std::string name{};  ///< original, or a path, whose chosen model it is of
  double tokens_per_second = 0;
};

/// What run_optimise found. The first path is the search over policies; the others are baselines.
struct OptimiseResult : StudyHeader {
  OptimiseOptions options{};
  CostTable costs{};
  double cost = 0;  ///< of the original, by the table
  double weight_bytes = 0;
  std::vector<OptimisePath> paths{};
  std::optional<HealedModel> healed{};
  std::optional<ExportedModel> exported{};  ///< filled in by who writes it
  std::vector<MeasuredSpeed> speeds{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
