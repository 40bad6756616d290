// Which arms the fine-tuning experiments have, and what is compared with what.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/finetune_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// "plain-N": plain fine-tuning for N steps.
inline Arm plain_arm(Index steps, double rate) {
  return {"plain-" + std::to_string(steps), plain_recipe(steps, rate)};
}

namespace detail {

inline void add_arm(FinetunePlan& plan, Arm arm) {
  const bool is_there = std::any_of(plan.arms.begin(), plan.arms.end(),
                                    [&](const Arm& other) { return other.name == arm.name; });
  if (!is_there) plan.arms.push_back(std::move(arm));
}

/// Claims are made about the point; its controls are the model as it was and plain fine-tuning.
inline void add_treated(FinetunePlan& plan, const PointName& point, Index steps, double rate) {
  const Arm plain = plain_arm(steps, rate);
  plan.treated.push_back(point);
  plan.contrasts.push_back({point, {"untouched", "untouched"}, ControlKind::untouched});
  plan.contrasts.push_back({point, {plain.name, "tuned"}, ControlKind::equal_tokens});
  add_arm(plan, plain);
}

inline void add_untouched(FinetunePlan& plan, const RecipeOptions& o) {
  add_arm(plan, {"untouched", untouched_recipe()});
  add_arm(plan, {"linear", linear_recipe(o)});
}

inline void add_progressive(FinetunePlan& plan, const RecipeOptions& o) {
  const Recipe recipe = progressive_recipe(o);
  const PointName point{"progressive", "final"};
  add_arm(plan, {"progressive", recipe});
  add_treated(plan, point, steps_of(recipe), o.rate);
  plan.contrasts.push_back({point, {"progressive", "full"}, ControlKind::full});
  plan.contrasts.push_back({point, {"linear", "linear"}, ControlKind::untuned});
}

/// A gated recipe, judged by its hard gates, with constant and random ones beside it.
inline void add_gated(FinetunePlan& plan, const std::string& name, const Recipe& recipe,
                      double rate) {
  const PointName point{name, "hard"};
  add_arm(plan, {name, recipe});
  add_treated(plan, point, steps_of(recipe), rate);
  plan.contrasts.push_back({point, {name, "full"}, ControlKind::full});
  add_arm(plan, {name + "-constant", with_constant_gates(recipe)});
  plan.contrasts.push_back({point, {name + "-constant", "constant"}, ControlKind::constant_gate});
  add_arm(plan, {name + "-random", with_random_routing(recipe), name});
  plan.contrasts.push_back({point, {name + "-random", "random"}, ControlKind::random_routing});
}

}  // namespace detail

/// Claim 10: layers become affine one after the other.
inline FinetunePlan progressive_plan(const RecipeOptions& o) {
  FinetunePlan plan{.command = "progressive"};
  detail::add_untouched(plan, o);
  detail::add_progressive(plan, o);
  return plan;
}

/// Claim 11: gates between maps and MLPs, in two phases and all at once.
inline FinetunePlan two_phase_plan(const RecipeOptions& o) {
  FinetunePlan plan{.command = "two-phase"};
  detail::add_untouched(plan, o);
  detail::add_gated(plan, "two-phase", two_phase_recipe(o), o.rate);
  detail::add_gated(plan, "joint", joint_recipe(o), o.rate);
  return plan;
}

/// All of them, on the same tokens and seeds.
inline FinetunePlan control_plan(const RecipeOptions& o) {
  FinetunePlan plan{.command = "control"};
  detail::add_untouched(plan, o);
  detail::add_progressive(plan, o);
  detail::add_gated(plan, "two-phase", two_phase_recipe(o), o.rate);
  detail::add_gated(plan, "joint", joint_recipe(o), o.rate);
  return plan;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
