// Section: many layers at once, and the frontier of perplexity against FLOPs.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/report/line_plot_svg.hpp"
#include "wanamaker/report/report_layers.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// How its layers were chosen and fitted.
inline std::string family_of(const std::string& variant) {
  if (variant.starts_with("greedy-linear")) return "chosen greedily, linear maps";
  if (variant.starts_with("greedy-gate")) return "chosen greedily, gates";
  if (variant.starts_with("sequential")) return "all layers, fitted in sequence";
  if (variant.starts_with("naive")) return "all layers, fitted alone";
  return "all layers, mean outputs";
}

inline PlotSeries& series_named(std::vector<PlotSeries>& all, const std::string& name) {
  for (PlotSeries& series : all) {
    if (series.name == name) return series;
  }
  PlotSeries series;
  series.name = name;
  series.joined = false;
  series.style = static_cast<SeriesStyle>(all.size());
  all.push_back(std::move(series));
  return all.back();
}

/// What no other beats, joined from the fewest FLOPs to the most.
inline PlotSeries frontier_series(const ResultView& compound) {
  std::vector<std::pair<double, double>> points;
  for (const ResultView& v : compound.items("variants")) {
    const auto flops = v.number("flops_fraction_total"), cost = v.number("delta_percent");
    if (flops && cost && v.flag("on_frontier").value_or(false)) {
      points.emplace_back(100 * *flops, *cost);
    }
  }
  std::sort(points.begin(), points.end());
  PlotSeries series;
  series.name = "frontier on the select split";
  series.style = 5;
  series.marked = false;
  for (const auto& [x, y] : points) series.x.push_back(x), series.y.push_back(y);
  return series;
}

inline std::vector<PlotSeries> compound_series(const ResultView& compound) {
  std::vector<PlotSeries> all;
  for (const ResultView& v : compound.items("variants")) {
    const auto flops = v.number("flops_fraction_total"), cost = v.number("delta_percent");
    if (!flops || !cost) continue;
    PlotSeries& series = series_named(all, family_of(v.text("name")));
    series.x.push_back(100 * *flops);
    series.y.push_back(*cost);
    series.hints.push_back(v.text("name") + ": " + change_text(cost) + " %");
  }
  all.insert(all.begin(), frontier_series(compound));
  return all;
}

inline std::string layer_list(const ResultView& variant) {
  std::string text;
  for (const ResultView& layer : variant.items("layers")) {
    text += (text.empty() ? "" : " ") + count_text(layer.as_number());
  }
  return text_or_dash(text);
}

inline ReportTable compound_rows(const ResultView& compound) {
  ReportTable table{{"variant", "perplexity, %", "95 % interval", "verdict", "MLP FLOPs",
                     "all FLOPs", "routed", "layers"},
                    {}};
  for (const ResultView& v : compound.items("variants")) {
    const Estimate e = estimate_of(v);
    table.rows.push_back({text_or_dash(v.text("name")), change_text(e.value),
                          range_text(e.low, e.high), text_or_dash(v.text("verdict")),
                          share_text(v.number("flops_fraction_mlp"), 1),
                          share_text(v.number("flops_fraction_total"), 1),
                          share_text(v.number("fraction_linear")), layer_list(v)});
  }
  return table;
}

inline FigureBlock compound_figure(const ModelResults& model, const ResultView& compound) {
  const std::string title = model.name + ": perplexity against FLOPs, many layers replaced";
  const std::string chosen = compound.text("chosen");
  return {title,
          "",
          {line_plot_svg(compound_series(compound), {.title = "",
                                                     .x = "FLOPs of the whole model, % of full",
                                                     .y = "change of perplexity, %"})},
          "Verdict: is the loss shown to stay below " +
              figure_text(compound.number("max_loss_percent"), 1) +
              " % (one-sided at 5 %)? FLOPs are shares of the full model's. " +
              (chosen.empty() ? "Nothing that was tried stays within that on the select split."
                              : "Fewest FLOPs within that on the select split: " + chosen + "."),
          compound_rows(compound)};
}

}  // namespace detail

inline void add_compound(ReportDocument& document, const std::vector<ModelResults>& models) {
  detail::add_figures(document, models, "Many layers at once", "compound", "variants",
                      detail::compound_figure);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
