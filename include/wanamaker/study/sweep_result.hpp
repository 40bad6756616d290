// What a sweep asks and what it finds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/stats/distribution_summary.hpp"
#include "wanamaker/stats/paired_bootstrap.hpp"
#include "wanamaker/study/perplexity.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Loss of the full model on the report split.
struct SweepBaseline {
  Index documents = 0;
  Index tokens = 0;
  double nll_sum = 0;
  double perplexity = 0;
};

/// One stand-in for one layer's MLP, compared with the full model. Shares of FLOPs are of the whole
/// model with this one layer changed.
struct VariantResult {
  std::string name{};     ///< zero, mean, ridge, gate-logistic, …
  double parameters = 0;  ///< of the stand-in
  double nll_sum = 0;     ///< nats, on the report split
  double perplexity = 0;
  PairedComparison comparison{};
  std::optional<double> p_holm{};  ///< over the layers of this variant
  std::optional<double> p_bh{};
  std::optional<double> auc{};  ///< of the gate's scores for δ <= 0, on the report split
  /// Of the gate's probabilities for δ <= 0, on the report split; missing where it gives none.
  std::optional<double> calibration_error{};
  std::optional<double> brier_score{};
  std::optional<double> fraction_linear{};  ///< of scored positions, routed to the surrogate
  std::optional<double> threshold{};
  std::optional<double> flops_fraction_mlp{};
  std::optional<double> flops_fraction_total{};
  std::string note{};  ///< how a fit ended, where it did not converge
};

/// Losses on the select split for one λ.
struct LambdaTrial {
  double rho = 0;
  double nll_sum = 0;
};

/// A gate as the published files describe it; percentages, not fractions.
struct PaperGate {
  std::string name{};  ///< linear, b=1, b=3, b=6
  double params = 0;   ///< as published, with the parameters of the projection
  double ppl = 0;
  double delta_pct = 0;
  double pct_linear = 0;  ///< of all positions, the last of each row included
};

/// A layer as the published files describe it.
struct PaperLayer {
  double all_linear_ppl = 0;
  double all_linear_delta_pct = 0;
  std::vector<PaperGate> gates{};
};

/// Where the ridge map's squared error on the report split comes from.
struct MapError {
  double r2 = 0;              ///< about the mean output of the fit split
  double top_share = 0;       ///< of the error, held by the 1 % of positions with most of it
  double first_share = 0;     ///< of the error, held by first positions of sequences
  double r2_without_top = 0;  ///< as if those positions were not there
  double r2_without_first = 0;
};

/// One layer: its map, its δ, and every stand-in.
struct LayerResult {
  Index layer = 0;
  double r2 = 0;         ///< of the ridge map on the fit split, all outputs together
  double condition = 0;  ///< of the regularised normal matrix
  double lambda = 0;
  std::vector<LambdaTrial> lambda_trials{};
  std::optional<MapError> map_error{};  ///< missing with a published protocol
  DistributionSummary delta{};  ///< joint δ in nats of the ridge variant on the report split
  std::vector<VariantResult> variants{};
  std::optional<PaperLayer> paper{};  ///< with a published protocol
};

/// What every result about layers begins with: what was measured, on what, fitted on how much.
struct StudyHeader {
  Protocol protocol{};
  ModelSummary model{};
  Index fit_documents = 0;
  Index fit_tokens = 0;
  Index gate_documents = 0;
  Index gate_tokens = 0;
  SweepBaseline baseline{};
};

/// What run_sweep found.
struct SweepResult : StudyHeader {
  std::vector<LayerResult> layers{};
};

/// Which rungs of the ladder are run.
enum class Ladder {
  surrogates,  ///< zero, mean, ridge
  quick,       ///< and one rank, random, rules, token table, three logistic gates, oracle
  full         ///< everything
};

/// Settings of run_sweep, and of all that fit maps and gates layer by layer.
struct SweepOptions {
  std::vector<Index> layers{};  ///< ascending; empty: all
  /// λ = ρ·tr(XcᵀXc)/d; of several the one with the lowest loss on the select split.
  std::vector<double> rhos{1e-6};
  Ladder ladder = Ladder::surrogates;
  std::vector<Index> ranks{};  ///< empty: d/16 and d/4
  /// Gates route this share, by thresholds from the select split; missing: where each gate itself
  /// would (probability 0.5, expected δ 0).
  std::optional<double> gate_fraction{};
  /// Or as many that gate, surrogate and MLP together take at most this share of the MLP's FLOPs.
  std::optional<double> gate_flops{};
  GramPrecision precision = GramPrecision::exact;
  PairedOptions intervals{};
  std::uint64_t seed = 0;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
