// Which models from scratch are compared: ways to spend the uniform model's budget, and twins that
// differ in their residual topology alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/budget_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The ways that have names. What a middle with less nonlinearity spares, the ends get; a middle
/// that learns its routing keeps its own.
inline std::vector<NamedPlan> usual_budget_plans(const ModelConfig& config) {
  const auto part = [&config](Index share) {
    return std::to_string(std::max<Index>(1, config.hidden / share));
  };
  return {{"thin-middle", "ends:dense:?,middle:dense:" + part(2)},
          {"affine-middle", "ends:dense:?,middle:affine"},
          {"hybrid-middle", "ends:dense:?,middle:hybrid:" + part(4)},
          {"routed-middle", "middle:gated:?"}};
}

namespace detail {

/// How far `cost` is from `target`, in per cent of it.
inline double deviation_percent(double cost, double target) {
  return target > 0 ? 100 * (cost - target) / target : 0.0;
}

/// Adds the arms of named plans.
class BudgetPlanner {
 public:
  BudgetPlanner(const ModelConfig& config, const BudgetOptions& options)
      : config_(config),
        options_(options),
        target_(planned_cost(config, dense_plan(config), options.routed)) {}

  void add(const NamedPlan& named, BudgetPlan& plan) const {
    const MlpPlan open = parse_mlp_plan(named.plan, config_);
    const MlpPlan first = solved(open, BudgetKind::parameters);
    const std::vector<BudgetKind> met = met_by(first);
    if (!is_to_solve(open) || met.size() == 2) return add_arm(plan, named.name, first, met);
    add_arm(plan, named.name + "-parameters", first, {BudgetKind::parameters});
    add_arm(plan, named.name + "-flops", solved(open, BudgetKind::flops), {BudgetKind::flops});
  }

 private:
  void add_arm(BudgetPlan& plan, std::string name, MlpPlan mlps,
               std::vector<BudgetKind> budgets) const {
    plan.arms.push_back(
        {std::move(name), std::move(mlps), config_.parallel_residual, std::move(budgets)});
  }
  MlpPlan solved(const MlpPlan& open, BudgetKind kind) const {
    return solve_plan(config_, open, kind, target_.of(kind), options_.routed);
  }
  /// Budgets that the plan meets within the tolerance.
  std::vector<BudgetKind> met_by(const MlpPlan& plan) const {
    const PlannedCost cost = planned_cost(config_, plan, options_.routed);
    std::vector<BudgetKind> met;
    for (const BudgetKind kind : {BudgetKind::parameters, BudgetKind::flops}) {
      const double off = std::abs(deviation_percent(cost.of(kind), target_.of(kind)));
      if (off <= options_.tolerance_percent) met.push_back(kind);
    }
    return met;
  }

  const ModelConfig& config_;
  const BudgetOptions& options_;
  PlannedCost target_;
};

[[noreturn]] inline void refuse_budget_arm(const std::string& name, std::string what,
                                           std::string mend) {
  throw DataError({.id = "training/budget-arm",
                   .where = "models to compare",
                   .what = std::move(what),
                   .expected = "names of letters, digits and hyphens, each once",
                   .found = "'" + name + "'",
                   .mend = std::move(mend)});
}

/// Names are those of folders and of points.
inline void check_arm_names(const std::vector<BudgetArm>& arms) {
  for (auto arm = arms.begin(); arm != arms.end(); ++arm) {
    const bool is_plain =
        !arm->name.empty() && arm->name.find_first_not_of(
                                  "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == arm->name.npos;
    if (!is_plain) refuse_budget_arm(arm->name, "no usable name", "choose another name");
    const bool repeats = std::any_of(
        arms.begin(), arm, [arm](const BudgetArm& other) { return other.name == arm->name; });
    if (repeats) refuse_budget_arm(arm->name, "a name given twice", "leave one out or rename it");
  }
}

}  // namespace detail

/// The uniform model, and every named plan solved for as many parameters and as many FLOPs as its
/// MLPs take: one arm where one size serves both within the tolerance, else NAME-parameters and
/// NAME-flops. Throws what parse_mlp_plan and solve_plan throw, DataError ("training/budget-arm").
inline BudgetPlan budgets_plan(const ModelConfig& config, const std::vector<NamedPlan>& named,
                               const BudgetOptions& options) {
  BudgetPlan plan{.command = "budgets"};
  plan.arms.push_back({"uniform", dense_plan(config), config.parallel_residual, {}});
  const detail::BudgetPlanner planner(config, options);
  for (const NamedPlan& one : named) planner.add(one, plan);
  detail::check_arm_names(plan.arms);
  return plan;
}

/// Claim 9: the same model with both topologies, and what linearising its layers costs. Throws
/// ProtocolError ("training/no-twin") for a family that has one topology alone.
inline BudgetPlan twins_plan(const ModelConfig& config) {
  if (config.family != Family::gpt_neox) {
    throw ProtocolError({.id = "training/no-twin",
                         .where = "twins_plan",
                         .what = "the family has one residual topology alone",
                         .expected = family_name(Family::gpt_neox),
                         .found = family_name(config.family),
                         .mend = "use --family gpt-neox"});
  }
  const std::vector<BudgetKind> both{BudgetKind::parameters, BudgetKind::flops};
  return {.command = "twins",
          .arms = {{"parallel", dense_plan(config), true, {}},
                   {"sequential", dense_plan(config), false, both}},
          .linearises = true};
}

}  // namespace wanamaker::inline WANAMAKER_ABI
