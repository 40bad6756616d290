// Models from scratch at equal budgets, for files and for people: the verdict first.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "wanamaker/report/finetune_report.hpp"
#include "wanamaker/report/finetune_tables.hpp"
#include "wanamaker/stats/correlation.hpp"
#include "wanamaker/study/budget_result.hpp"
#include "wanamaker/study/finetune_comparison.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline OrderedJson json_of(const BudgetOptions& o) {
  const PretrainOptions& t = o.training;
  return {{"seeds", o.seeds},
          {"steps", t.training.steps},
          {"window", t.window},
          {"sequences", t.sequences},
          {"accumulation", t.training.accumulation},
          {"rate", t.training.schedule.peak},
          {"warm_up", t.training.schedule.warm_up},
          {"decay", t.training.optimiser.decay},
          {"sparsity", t.sparsity.weight},
          {"sparsity_warm_up", t.sparsity.warm_up},
          {"routed", o.routed},
          {"tolerance_percent", o.tolerance_percent},
          {"rho", o.rho},
          {"margin_percent", o.margin_percent}};
}

}  // namespace detail

inline OrderedJson json_of(const BudgetArmResult& a) {
  OrderedJson budgets = OrderedJson::array();
  for (const BudgetKind kind : a.arm.budgets) budgets.push_back(std::string(name_of(kind)));
  return {{"name", a.arm.name},
          {"mlps", text_of(a.arm.plan)},
          {"parallel_residual", a.arm.parallel_residual},
          {"budgets", budgets},
          {"parameters", a.parameters},
          {"mlp_parameters", a.mlps.parameters},
          {"mlp_flops", a.mlps.flops},
          {"parameters_deviation_percent", a.parameters_deviation_percent},
          {"flops_deviation_percent", a.flops_deviation_percent}};
}

inline OrderedJson json_of(const TopologyFinding& f) {
  return {{"treated", f.treated},
          {"control", f.control},
          {"verdict", std::string(name_of(f.verdict))},
          {"treated_percent", f.treated_percent},
          {"control_percent", f.control_percent},
          {"difference_percent", f.difference_percent},
          {"interval_percent", detail::json_of(f.interval)}};
}

/// budgets.json, twins.json.
inline OrderedJson json_of(const BudgetResult& r) {
  OrderedJson json = detail::training_json(r, detail::json_of(r.options));
  json["arms"] = detail::json_list(r.arms);
  json["topology"] = detail::json_list(r.topology);
  json["runs"] = detail::json_list(r.runs);
  return json;
}

namespace detail {

/// The treated point's comparisons with the control; several budgets that one model meets give the
/// same figures.
inline const FinetuneComparison& comparison_of(const BudgetResult& r, const PointName& point) {
  return *std::find_if(r.comparisons.begin(), r.comparisons.end(),
                       [&](const FinetuneComparison& c) { return c.contrast.treated == point; });
}

inline const BudgetArmResult& arm_named(const BudgetResult& r, const std::string& name) {
  return *std::find_if(r.arms.begin(), r.arms.end(),
                       [&](const BudgetArmResult& a) { return a.arm.name == name; });
}

/// "equal parameters and FLOPs".
inline std::string budgets_text(const BudgetResult& r, const PointName& point) {
  std::string text;
  for (const FinetuneComparison& c : r.comparisons) {
    if (!(c.contrast.treated == point)) continue;
    if (c.contrast.kind == ControlKind::other_budget) return "another budget";
    const bool is_parameters = c.contrast.kind == ControlKind::equal_parameters;
    text +=
        std::string(text.empty() ? "equal " : " and ") + (is_parameters ? "parameters" : "FLOPs");
  }
  return text;
}

inline std::string topology_line(const TopologyFinding& f) {
  const char* verdict = f.verdict == ContrastVerdict::better ? "cheaper to linearise"
                        : f.verdict == ContrastVerdict::worse
                            ? "dearer to linearise"
                            : "no difference in linearising shown";
  return f.treated + " against " + f.control + ": " + verdict + ", median layer " +
         signed_text(mean_of(f.treated_percent), 2) + " % perplexity against " +
         signed_text(mean_of(f.control_percent), 2) + " %, difference over seeds " +
         interval_text(f.interval) + " points.\n";
}

/// Empty for models that learn no routing.
inline std::string flops_taken_text(const BudgetResult& r, const TreatedVerdict& v) {
  if (!has_kind(arm_named(r, v.point.arm).arm.plan, MlpKind::gated)) return "";
  return "; as it routed, its MLPs took " +
         fixed_text(100 * mean_flops_fraction(r.runs, v.point, r.options.seeds), 1) +
         " % of the uniform ones' FLOPs";
}

inline std::string budget_verdict_line(const BudgetResult& r, const TreatedVerdict& v) {
  const FinetuneComparison& c = comparison_of(r, v.point);
  return v.point.arm + " at " + budgets_text(r, v.point) + ": " + std::string(name_of(c.verdict)) +
         " against " + c.contrast.control.arm + ", " + signed_text(c.documents.delta_percent, 2) +
         " % perplexity, over documents " + interval_text(c.documents) + ", over seeds " +
         interval_text(c.seeds) + "; not worse by more than " +
         fixed_text(r.options.margin_percent, 1) + " %: " + verdict_text(v.kept.verdict) +
         flops_taken_text(r, v) + ".\n";
}

}  // namespace detail

/// One line a model: is it better or worse than the control, and is it shown not to be worse by
/// more than the margin? Twins begin with what linearising costs.
inline std::string budgets_headline(const BudgetResult& r) {
  std::string text;
  for (const TopologyFinding& f : r.topology) text += detail::topology_line(f);
  for (const TreatedVerdict& v : r.verdicts) text += detail::budget_verdict_line(r, v);
  return text;
}

/// The models: their layers' MLPs, and how near they are to the budgets; FLOPs of learned routing
/// at the share that was expected.
inline TextTable budget_arms_table(const BudgetResult& r) {
  TextTable table({"model", "MLPs", "residual", "parameters", "MLPs' parameters", "off %",
                   "MLPs' FLOPs a token", "off %"});
  for (const BudgetArmResult& a : r.arms) {
    table.add({a.arm.name, text_of(a.arm.plan), a.arm.parallel_residual ? "parallel" : "sequential",
               fixed_text(a.parameters, 0), fixed_text(a.mlps.parameters, 0),
               signed_text(a.parameters_deviation_percent, 2), fixed_text(a.mlps.flops, 0),
               signed_text(a.flops_deviation_percent, 2)});
  }
  return table;
}

/// Training losses of all models.
inline std::string budgets_svg(const BudgetResult& r) {
  std::vector<std::string> arms;
  for (const BudgetArmResult& a : r.arms) arms.push_back(a.arm.name);
  return arm_losses_svg(r.runs, arms, r.options.seeds.size());
}

}  // namespace wanamaker::inline WANAMAKER_ABI
