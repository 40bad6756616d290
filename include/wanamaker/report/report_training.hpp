// Section: what tuning a linearised or gated model gains, against its controls.
#pragma once

#include <string>
#include <vector>

#include "wanamaker/report/report_layers.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline ReportTable comparison_table(const std::vector<ResultView>& comparisons) {
  ReportTable table{{"treated", "control", "kind", "text", "perplexity, %", "95 % interval",
                     "over seeds", "tokens", "FLOPs", "verdict"},
                    {}};
  for (const ResultView& c : comparisons) {
    const Estimate e = estimate_of(c);
    const auto seeds = c.range("seed_interval_percent");
    table.rows.push_back({c.text("treated"), c.text("control"), c.text("kind"), c.text("text"),
                          change_text(e.value), range_text(e.low, e.high),
                          seeds ? range_text(seeds->low, seeds->high) : "–",
                          figure_text(c.number("token_ratio")),
                          figure_text(c.number("flops_ratio")), text_or_dash(c.text("verdict"))});
  }
  return table;
}

/// A difference with its interval over documents, and with that over seeds.
inline std::vector<Estimate> estimates_of_training(const ResultView& comparison) {
  const auto seeds = comparison.range("seed_interval_percent");
  Estimate over_seeds = estimate_of(comparison);
  over_seeds.low = seeds ? std::optional<double>(seeds->low) : std::nullopt;
  over_seeds.high = seeds ? std::optional<double>(seeds->high) : std::nullopt;
  return {estimate_of(comparison), over_seeds};
}

inline FigureBlock training_figure(const ResultView& run, const std::string& point) {
  std::vector<ForestRow> rows;
  std::vector<ResultView> comparisons;
  for (const ResultView& c : run.items("comparisons")) {
    if (c.text("treated") != point) continue;
    comparisons.push_back(c);
    if (c.text("text") == "unseen") rows.push_back({c.text("kind"), estimates_of_training(c)});
  }
  const std::string title = point + " against its controls, on unseen text";
  return {title,
          "",
          {forest_svg({{"95 % over documents", 0}, {"95 % over seeds", 1}}, rows, title,
                      "perplexity, per cent; below 0: better", 96)},
          "equal-tokens, equal-flops: plain fine-tuning. full: the MLPs put back after the same "
          "training. tokens, FLOPs: of training, treated over control.",
          comparison_table(comparisons)};
}

inline ReportTable verdict_table(const ResultView& run) {
  ReportTable table{{"point", "better than its controls", "baseline kept", "perplexity, %",
                     "90 % interval", "documents needed"},
                    {}};
  for (const ResultView& v : run.items("verdicts")) {
    table.rows.push_back(
        {text_or_dash(v.text("point")), text_or_dash(v.text("gains")), text_or_dash(v.text("kept")),
         change_text(v.number("kept_delta_percent")),
         range_text(v.number("kept_ci_low_percent"), v.number("kept_ci_high_percent")),
         count_text(v.number("kept_documents_needed"))});
  }
  return table;
}

inline void add_training_run(ReportDocument& document, const std::string& command,
                             const ResultView& run) {
  document.heading(4, "study " + command);
  const ReportTable verdicts = verdict_table(run);
  if (!verdicts.rows.empty()) document.table(verdicts);
  std::vector<std::string> points;
  for (const ResultView& c : run.items("comparisons")) {
    const std::string point = c.text("treated");
    if (std::find(points.begin(), points.end(), point) == points.end()) points.push_back(point);
  }
  for (const std::string& point : points) document.figure(training_figure(run, point));
}

inline ReportTable budget_arms_table(const ResultView& run) {
  ReportTable table{
      {"model", "MLPs", "residual", "parameters", "MLPs' parameters, % off", "MLPs' FLOPs, % off"},
      {}};
  for (const ResultView& a : run.items("arms")) {
    table.rows.push_back({text_or_dash(a.text("name")), text_or_dash(a.text("mlps")),
                          a.flag("parallel_residual").value_or(false) ? "parallel" : "sequential",
                          count_text(a.number("parameters")),
                          change_text(a.number("parameters_deviation_percent")),
                          change_text(a.number("flops_deviation_percent"))});
  }
  return table;
}

/// What linearising costs the models with either topology, seed by seed.
inline ReportTable topology_table(const ResultView& topology) {
  const std::string treated = topology.text("treated"), control = topology.text("control");
  ReportTable table{{"seed", treated + ", %", control + ", %", "difference, points"}, {}};
  const auto own = topology.items("treated_percent"), other = topology.items("control_percent"),
             difference = topology.items("difference_percent");
  for (std::size_t s = 0; s < difference.size() && s < own.size() && s < other.size(); ++s) {
    table.rows.push_back({std::to_string(s + 1), change_text(own[s].as_number()),
                          change_text(other[s].as_number()),
                          change_text(difference[s].as_number())});
  }
  return table;
}

/// Models from nothing against the first of them, all in one picture; there is a comparison.
inline FigureBlock budgets_figure(const ResultView& run) {
  std::vector<ForestRow> rows;
  std::vector<ResultView> comparisons;
  for (const ResultView& c : run.items("comparisons")) {
    comparisons.push_back(c);
    const std::string label = c.text("treated");
    const bool is_again = !rows.empty() && rows.back().label == label;  // for another budget
    if (!is_again) rows.push_back({label, estimates_of_training(c)});
  }
  const std::string title =
      "models from nothing against " + comparisons.front().text("control") + ", on unseen text";
  return {title,
          "",
          {forest_svg({{"95 % over documents", 0}, {"95 % over seeds", 1}}, rows, title,
                      "perplexity, %; below 0: better", 176)},
          "equal-parameters, equal-flops: the MLPs take as much as the uniform model's. full: a "
          "layer's fitted map against the same model with its MLP.",
          comparison_table(comparisons)};
}

inline void add_budgets(ReportDocument& document, const std::string& command,
                        const ResultView& run) {
  document.heading(4, "study " + command);
  document.table(budget_arms_table(run));
  const ReportTable verdicts = verdict_table(run);
  if (!verdicts.rows.empty()) document.table(verdicts);
  for (const ResultView& topology : run.items("topology")) {
    document.text("Median over layers of what linearising one costs, per cent of perplexity: " +
                  text_or_dash(topology.text("treated")) + " against " +
                  text_or_dash(topology.text("control")) + ", " +
                  text_or_dash(topology.text("verdict")) + ".");
    document.table(topology_table(topology));
  }
  if (!run.items("comparisons").empty()) document.figure(budgets_figure(run));
}

}  // namespace detail

inline void add_training(ReportDocument& document, const std::vector<ModelResults>& models) {
  document.heading(2, "Training against controls");
  bool measured = false;
  for (const ModelResults& model : models) {
    bool has_heading = false;
    for (const char* command : {"progressive", "two-phase", "control", "budgets", "twins"}) {
      const ResultView run = model.result(command);
      if (!run) continue;
      if (!has_heading) detail::add_model_heading(document, models, model);
      has_heading = measured = true;
      if (run["arms"]) {
        detail::add_budgets(document, command, run);
      } else {
        detail::add_training_run(document, command, run);
      }
    }
  }
  if (measured) return;
  document.text(
      "Not measured. study progressive, two-phase and control tune linearised models "
      "beside controls of equal tokens and equal FLOPs; study budgets and twins train models from "
      "nothing.",
      TextRole::note);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
