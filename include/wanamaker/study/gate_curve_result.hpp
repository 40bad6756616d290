// What a gate-curve run asks and what it finds: perplexity against the share of positions routed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wanamaker/study/sweep_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Settings of run_gate_curve besides those of a sweep.
struct CurveOptions {
  /// Shares of positions to route, each in (0, 1); thresholds come from the select split.
  std::vector<double> fractions{0.1, 0.25, 0.5, 0.75, 0.9};
  /// Gates of the ladder to measure; empty: all of them. The oracle is always there.
  std::vector<std::string> gates{};
  /// The operating point may cost so many per cent of perplexity on the select split.
  double max_loss_percent = 1;
};

/// One gate at one threshold.
struct CurvePoint {
  double target = 0;  ///< share wanted
  /// Δ in per cent of perplexity on the select split; missing for the oracle, which is not chosen.
  std::optional<double> select_delta_percent{};
  VariantResult result{};  ///< on the report split
};

/// One gate's curve: ascending shares, the last point is the surrogate alone (share 1).
struct GateCurve {
  std::string gate{};
  std::vector<CurvePoint> points{};
  /// ∫₀¹ Δ(f) df in nats per token by the trapezoid rule, f the share routed; Δ(0) = 0.
  double area_nats = 0;
  /// The random curve's area less this one's: positive where the gate is better.
  double area_below_random = 0;
  /// That in units of what the δ-sorted reference reaches; missing where that reaches nothing.
  std::optional<double> share_of_oracle{};
  /// The point of the largest share within max_loss_percent on the select split; missing where
  /// there is none.
  std::optional<Index> operating_point{};
};

/// One layer's curves.
struct CurveLayer {
  Index layer = 0;
  double r2 = 0;
  double lambda = 0;
  std::vector<LambdaTrial> lambda_trials{};
  std::vector<GateCurve> curves{};
};

/// What run_gate_curve found.
struct GateCurveResult : StudyHeader {
  double max_loss_percent = 1;
  std::vector<CurveLayer> layers{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
