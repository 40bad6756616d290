// Section: perplexity against the share of positions that a gate routes, beside random routing and
// sorting by the true cost.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "wanamaker/report/line_plot_svg.hpp"
#include "wanamaker/report/report_layers.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline SeriesStyle style_of_gate(const std::string& gate) {
  if (gate == "gate-logistic") return 0;
  if (gate == "oracle") return 2;
  if (gate == "random") return 3;
  return gate == "token-table" ? 4 : 5;
}

inline std::string title_of_gate(const std::string& gate) {
  if (gate == "gate-logistic") return "logistic gate";
  if (gate == "oracle") return "sorted by true δ (oracle)";
  if (gate == "random") return "random positions";
  if (gate == "token-table") return "table of token types";
  return gate;
}

/// Random, oracle, the logistic gate and the token table; other gates are in the table.
inline bool is_drawn(const std::string& gate) {
  return style_of_gate(gate) != 5;
}

inline PlotSeries curve_series(const ResultView& curve) {
  PlotSeries series;
  series.name = title_of_gate(curve.text("gate"));
  series.style = style_of_gate(curve.text("gate"));
  series.x = {0};
  series.y = {0};
  for (const ResultView& point : curve.items("points")) {
    const auto share = point.number("fraction_linear"), cost = point.number("delta_percent");
    if (!share || !cost) continue;
    series.x.push_back(100 * *share);
    series.y.push_back(*cost);
  }
  return series;
}

inline std::vector<PlotSeries> layer_series(const ResultView& layer) {
  std::vector<PlotSeries> series;
  for (const ResultView& curve : layer.items("curves")) {
    if (is_drawn(curve.text("gate"))) series.push_back(curve_series(curve));
  }
  return series;
}

/// The largest cost of what a gate can do: the oracle, which gains far more, must not flatten it.
inline double gates_reach(const std::vector<PlotSeries>& series) {
  double reach = 0.01;
  for (const PlotSeries& s : series) {
    if (s.style == style_of_gate("oracle")) continue;
    for (const double y : s.y) reach = std::max(reach, std::abs(y));
  }
  return reach;
}

inline void add_curve_rows(ReportTable& table, const ResultView& layer) {
  for (const ResultView& curve : layer.items("curves")) {
    const std::vector<ResultView> points = curve.items("points");
    const auto index = curve.number("operating_point");
    ResultView at;
    if (index && *index >= 0 && *index < static_cast<double>(points.size())) {
      at = points[static_cast<std::size_t>(*index)];
    }
    const Estimate e = estimate_of(at);
    const auto thousandth = [](std::optional<double> nats) {
      return change_text(nats ? std::optional<double>(1000 * *nats) : std::nullopt);
    };
    table.rows.push_back({layer_label(layer), title_of_gate(curve.text("gate")),
                          share_text(at.number("fraction_linear")), change_text(e.value),
                          range_text(e.low, e.high), thousandth(curve.number("area_nats")),
                          thousandth(curve.number("area_below_random")),
                          share_text(curve.number("share_of_oracle"))});
  }
}

inline FigureBlock curve_figure(const ModelResults& model, const ResultView& curves) {
  const auto limit = curves.number("max_loss_percent");
  FigureBlock figure;
  figure.title = model.name + ": cost against the share of positions routed, layer by layer";
  figure.caption =
      "Sorting by the true δ knows what no gate can know: it is a reference, not a bound. Upright "
      "axes run evenly as far as the gates' costs go, then by logarithm. In the "
      "table: the largest share within " +
      figure_text(limit, 1) +
      " % on the select split, its cost on the report split, and the area under cost against "
      "share in thousandths of a nat per token.";
  figure.table.header = {"layer",         "gate", "routable",     "cost, %",
                         "95 % interval", "area", "below random", "share of oracle"};
  for (const ResultView& layer : curves.items("layers")) {
    const std::vector<PlotSeries> series = layer_series(layer);
    if (figure.legend.empty()) figure.legend = legend_svg(series);
    figure.pictures.push_back(line_plot_svg(series, {.title = "layer " + layer_label(layer),
                                                     .x = "positions routed, %",
                                                     .y = "perplexity, %",
                                                     .width = 240,
                                                     .height = 190,
                                                     .legend = false,
                                                     .even_to = gates_reach(series)}));
    add_curve_rows(figure.table, layer);
  }
  return figure;
}

}  // namespace detail

inline void add_gate_curves(ReportDocument& document, const std::vector<ModelResults>& models) {
  detail::add_figures(document, models, "Cost against the share routed", "gate-curve", "layers",
                      detail::curve_figure);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
