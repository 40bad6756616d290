// What a run over marginal δ asks and what it finds: where one position's nonlinearity matters, how
// far first order can be trusted, and whether layers that cannot be made linear are those that
// write the large activations of first positions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wanamaker/residual/marginal_agreement.hpp"
#include "wanamaker/study/checkpoint.hpp"
#include "wanamaker/study/sweep_result.hpp"
#include "wanamaker/study/token_lists.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Settings of run_marginal.
struct MarginalOptions {
  Index exact_positions = 200;  ///< of the report split, patched in every layer, evenly spread
  Index patch_rows = 2048;      ///< rows of patched copies that are run together
  Index integrated_steps = 0;   ///< of a path in every layer: layers × steps passes; 0: none
  Index map_positions = 0;      ///< of the report split, from its begin, whose δ is kept
  Index shown = 20;             ///< token types with the largest mean δ that are named
  Index least_count = 5;        ///< positions of a type that is named
  /// A sink: the stream after the layer is so many times as long as the median of the batch. A
  /// writer: the MLP's outputs at first positions are so many times as long as at the others.
  double sink_ratio = 10;
  double catastrophic_percent = 100;  ///< perplexity that a layer loses, all of it linear
};

/// Marginal δ to first order over some positions of the report split.
struct MarginalGroup {
  std::string name{};  ///< first, sinks, others
  Index positions = 0;
  double delta_sum = 0;  ///< nats
  std::optional<double> mean{};
  std::optional<double> standard_deviation{};
  std::optional<double> share_of_magnitude{};  ///< of Σ|δ| over all positions
  std::optional<double> share_linear{};        ///< of positions with δ ≤ 0
  std::optional<double> output_norm{};         ///< mean length of the MLP's output
  std::optional<double> change_norm{};         ///< mean length of f̂(x) − y
  std::optional<double> stream_norm{};         ///< mean length of the stream after the layer
};

/// One position that was patched.
struct PatchedPosition {
  Index position = 0;  ///< its number among the scored positions of the report split
  Index place = 0;     ///< in its window, from 0
  TokenId token = 0;
  std::string group{};
  double first_order = 0;
  double exact = 0;
  std::optional<double> integrated{};
  double relative_change = 0;  ///< ‖f̂(x) − y‖ over the length of the stream after the layer
};

/// Where first order gives a large |δ| (above the median) the wrong sign, and what is different.
struct MarginalDisagreement {
  Index large = 0;
  Index wrong = 0;
  Index wrong_first = 0;                     ///< of them at first positions
  Index wrong_sinks = 0;                     ///< of them at sinks
  std::optional<double> relative_change{};   ///< mean over those with the right sign
  std::optional<double> wrong_change{};      ///< mean over those with the wrong one
  std::optional<double> right_after_path{};  ///< share of the wrong that the path sets right
};

/// Whether a layer's linear map is a catastrophe, and what gates make of it.
struct WriterFigures {
  double first_norm_ratio = 0;  ///< output lengths at first positions over those at the others
  bool is_writer = false;
  bool is_catastrophic = false;
  double linear_percent = 0;          ///< perplexity lost with all positions linear
  double first_position_percent = 0;  ///< all but first positions linear
  double norm_rule_percent = 0;       ///< large norms kept, as many as gate-logistic keeps
  double logistic_percent = 0;
};

/// A logistic gate on the report split.
struct GateOfDelta {
  double positive_share = 0;      ///< of the gate split's positions with label δ ≤ 0
  double fraction_linear = 0;     ///< of scored positions of the report split
  PairedComparison comparison{};  ///< with the full model
  std::string note{};             ///< how the fit ended, where it did not converge
};

/// One layer's gate that learns from marginal δ beside the one that learns from joint δ: the same
/// positions of the gate split, the same logistic regression, other labels. `joint` routes where
/// its probability is above ½, `marginal` as large a share of the select split.
struct GatesOfDelta {
  Index layer = 0;
  Index positions = 0;               ///< of the gate split
  std::optional<double> spearman{};  ///< of marginal and joint δ over them
  std::optional<double> same_sign{};
  GateOfDelta joint{};
  GateOfDelta marginal{};
  PairedComparison difference{};  ///< of `marginal`, against `joint`
};

/// One layer: marginal δ by groups of positions, and how far first order may be read.
struct MarginalLayer {
  Index layer = 0;
  double r2 = 0;  ///< of the linear map
  double lambda = 0;
  std::vector<LambdaTrial> lambda_trials{};
  std::vector<MarginalGroup> groups{};
  double first_order_sum = 0;  ///< nats, over scored positions
  double joint_sum = 0;        ///< all positions replaced together
  std::optional<double> integrated_sum{};
  MarginalAgreement agreement{};            ///< of first order with exact patches
  MarginalAgreement agreement_elsewhere{};  ///< without first positions and sinks
  std::optional<MarginalAgreement> integrated_agreement{};
  MarginalDisagreement disagreement{};
  std::string statement{};  ///< whether first order may be read here, in a sentence
  WriterFigures writer{};
  GatesOfDelta gates{};
  std::vector<TypeMean> tokens{};  ///< largest mean δ of the others, by the token at the position
  std::vector<PatchedPosition> patches{};
  std::vector<double> map{};  ///< δ to first order of the map's positions
};

enum class WriterVerdict { holds, does_not_hold, cannot_be_decided };

constexpr const char* name_of(WriterVerdict verdict) {
  switch (verdict) {
    case WriterVerdict::holds:
      return "holds";
    case WriterVerdict::does_not_hold:
      return "does not hold";
    case WriterVerdict::cannot_be_decided:
      return "cannot be decided here";
  }
  return "";
}

/// Are catastrophic layers those that write first positions' large activations?
struct WriterTest {
  Index layers = 0;
  Index catastrophic = 0;
  Index writers = 0;
  Index both = 0;
  double p_value = 1;                ///< Fisher's exact, one-sided: so many in both by chance
  double least_p_value = 1;          ///< what the fullest overlap would give
  std::optional<double> spearman{};  ///< of cost and ratio over layers
  Index norm_rule_better = 0;        ///< catastrophic layers where it costs less than gate-logistic
  Index saved_by_first = 0;          ///< catastrophic layers that are not with first positions kept
  WriterVerdict verdict = WriterVerdict::cannot_be_decided;
};

/// A position of the map.
struct MapPosition {
  Index document = 0;  ///< its number among the report split's
  Index place = 0;     ///< in its window, from 0
  TokenId token = 0;
};

/// What exact patches took over all layers, against whole passes one by one.
struct PatchCost {
  Index patches = 0;
  Index passes = 0;
  double block_rows_per_patch = 0;
  double scored_rows_per_patch = 0;
  double naive_block_rows_per_patch = 0;
  double naive_scored_rows_per_patch = 0;
};

/// Where a run keeps finished layers.
struct MarginalCheckpoint {
  SweepCheckpoint costs{};
  Checkpoint<Index, GatesOfDelta> gates{};
};

/// What run_marginal found.
struct MarginalResult : StudyHeader {
  MarginalOptions options{};
  std::vector<MapPosition> map_positions{};
  PatchCost patch_cost{};
  WriterTest writers{};
  std::vector<MarginalLayer> layers{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
