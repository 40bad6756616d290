// What the MLPs of a plan take, and the size at which they take as much as a budget allows.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "wanamaker/core/error.hpp"
#include "wanamaker/gate/cost_model.hpp"
#include "wanamaker/nn/config.hpp"
#include "wanamaker/train/layer_mlp.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What two models have as much of.
enum class BudgetKind { parameters, flops };

constexpr std::string_view name_of(BudgetKind kind) {
  return kind == BudgetKind::parameters ? "parameters" : "flops";
}

/// Of the MLPs of one layer or of all.
struct PlannedCost {
  double parameters = 0;
  double flops = 0;  ///< of one token, forward

  double of(BudgetKind kind) const { return kind == BudgetKind::parameters ? parameters : flops; }
  PlannedCost& operator+=(const PlannedCost& other) {
    parameters += other.parameters;
    flops += other.flops;
    return *this;
  }
};

namespace detail {

/// y = x·W + b from n to m numbers; FLOPs as the cost model counts them, biases left out.
inline PlannedCost linear_cost(Index n, Index m, bool has_bias = true) {
  const double weights = static_cast<double>(n) * static_cast<double>(m);
  return {weights + (has_bias ? static_cast<double>(m) : 0.0), 2 * weights};
}

/// The family's MLP with h hidden units.
inline PlannedCost family_mlp_cost(const ModelConfig& c, Index h) {
  const bool is_glu = c.family == Family::llama;
  const bool has_bias = !is_glu || c.mlp_bias;
  PlannedCost cost = linear_cost(c.width, h, has_bias);
  if (is_glu) cost += linear_cost(c.width, h, has_bias);
  return cost += linear_cost(h, c.width, has_bias);
}

/// Of a gated layer where `routed` of the tokens skip the MLP.
inline PlannedCost gated_cost(const ModelConfig& c, Index h, double routed) {
  const PlannedCost mlp = family_mlp_cost(c, h), map = linear_cost(c.width, c.width),
                    gate = linear_cost(c.width, 1);
  const GatedCost cost{{.flops = gate.flops}, {.flops = map.flops}, {.flops = mlp.flops}};
  return {mlp.parameters + map.parameters + gate.parameters, cost.flops(routed)};
}

}  // namespace detail

/// Of one layer; `routed`: the share of tokens that a hard gate sends to the map.
inline PlannedCost planned_cost(const ModelConfig& c, const LayerMlp& mlp, double routed) {
  PlannedCost cost;
  switch (mlp.kind) {
    case MlpKind::dense:
      return detail::family_mlp_cost(c, mlp.size);
    case MlpKind::affine:
      return detail::linear_cost(c.width, c.width);
    case MlpKind::low_rank:
      cost = detail::linear_cost(c.width, mlp.size, false);
      return cost += detail::linear_cost(mlp.size, c.width);
    case MlpKind::hybrid:
      cost = detail::linear_cost(c.width, c.width);
      return cost += detail::family_mlp_cost(c, mlp.size);
    case MlpKind::gated:
      return detail::gated_cost(c, mlp.size, routed);
    case MlpKind::zero:
      break;
  }
  return cost;
}

/// Of all layers, every gate routing the same share.
inline PlannedCost planned_cost(const ModelConfig& c, const MlpPlan& plan, double routed) {
  PlannedCost sum;
  for (const LayerMlp& mlp : plan) sum += planned_cost(c, mlp, routed);
  return sum;
}

/// The plan with one size in the place of every "?".
inline MlpPlan with_size(MlpPlan plan, Index size) {
  for (LayerMlp& mlp : plan) {
    if (mlp.size == size_to_solve) mlp.size = size;
  }
  return plan;
}

/// The plan with the one size in the place of every "?" with which all MLPs together come nearest
/// to `target` parameters or FLOPs a token; costs are linear in the size. A plan without "?" stays.
/// Throws DataError ("training/mlp-budget") where the rest of the plan leaves less than one unit,
/// or the size takes nothing since all tokens are routed past it.
inline MlpPlan solve_plan(const ModelConfig& c, const MlpPlan& plan, BudgetKind kind, double target,
                          double routed) {
  if (!is_to_solve(plan)) return plan;
  const double fixed = planned_cost(c, with_size(plan, 0), routed).of(kind);
  const double unit = planned_cost(c, with_size(plan, 1), routed).of(kind) - fixed;
  const double size = std::round((target - fixed) / unit);
  constexpr double largest = 1 << 24;
  if (size >= 1 && size <= largest) return with_size(plan, static_cast<Index>(size));
  throw DataError({.id = "training/mlp-budget",
                   .where = "plan " + text_of(plan),
                   .what = "no size spends what the other layers leave",
                   .expected = "at most " + detail::number_text(target - unit) + " " +
                               std::string(name_of(kind)) + " of MLPs without it",
                   .found = detail::number_text(fixed),
                   .mend = "give the other layers fewer units, or let gates route fewer tokens"});
}

}  // namespace wanamaker::inline WANAMAKER_ABI
