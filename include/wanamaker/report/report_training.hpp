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

inline FigureBlock training_figure(const ResultView& run, const std::string& point) {
  std::vector<ForestRow> rows;
  std::vector<ResultView> comparisons;
  for (const ResultView& c : run.items("comparisons")) {
    if (c.text("treated") != point) continue;
    comparisons.push_back(c);
    if (c.text("text") != "unseen") continue;
    const auto seeds = c.range("seed_interval_percent");
    Estimate over_seeds = estimate_of(c);
    over_seeds.low = seeds ? std::optional<double>(seeds->low) : std::nullopt;
    over_seeds.high = seeds ? std::optional<double>(seeds->high) : std::nullopt;
    rows.push_back({c.text("kind"), {estimate_of(c), over_seeds}});
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

}  // namespace detail

inline void add_training(ReportDocument& document, const std::vector<ModelResults>& models) {
  document.heading(2, "Training against controls");
  bool measured = false;
  for (const ModelResults& model : models) {
    bool has_heading = false;
    for (const char* command : {"progressive", "two-phase", "control"}) {
      const ResultView run = model.result(command);
      if (!run) continue;
      if (!has_heading) detail::add_model_heading(document, models, model);
      has_heading = measured = true;
      detail::add_training_run(document, command, run);
    }
  }
  if (measured) return;
  document.text(
      "Not measured. study progressive, two-phase and control tune linearised models "
      "beside controls of equal tokens and equal FLOPs.",
      TextRole::note);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
