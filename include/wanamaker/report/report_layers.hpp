// Sections about single layers: the map and the forest plot of paired intervals.
#pragma once

#include <string>
#include <vector>

#include "wanamaker/report/layer_figures.hpp"
#include "wanamaker/report/layer_map_svg.hpp"
#include "wanamaker/report/report_blocks.hpp"
#include "wanamaker/report/result_files.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// Says what is missing and how to have it.
inline void add_missing(ReportDocument& document, const std::string& command) {
  document.text("Not measured. study " + command + " writes " + command + ".json.", TextRole::note);
}

/// A heading for each model, where there are several.
inline void add_model_heading(ReportDocument& document, const std::vector<ModelResults>& models,
                              const ModelResults& model) {
  if (models.size() > 1) document.heading(3, model.name);
}

/// A figure of every model's result of `command`, or that there is none: it has nothing in its
/// list `items`. figure_of(model, result) is a FigureBlock.
template <class FigureOf>
void add_figures(ReportDocument& document, const std::vector<ModelResults>& models,
                 const std::string& title, const std::string& command, const char* items,
                 FigureOf figure_of) {
  document.heading(2, title);
  for (const ModelResults& model : models) {
    add_model_heading(document, models, model);
    const ResultView result = model.result(command);
    if (result.items(items).empty()) {
      add_missing(document, command);
    } else {
      document.figure(figure_of(model, result));
    }
  }
}

inline FigureBlock layer_map(const ModelResults& model, const std::vector<LayerFigures>& layers) {
  std::vector<LayerMapRow> rows;
  ReportTable table{
      {"layer", "R²", "nothing", "mean", "linear map", "random", "gate", "routed", "AUC"}, {}};
  for (const LayerFigures& l : layers) {
    rows.push_back(
        {l.label, {l.zero.value, l.mean.value, l.ridge.value, l.random.value, l.gate.value}});
    table.rows.push_back({l.label, figure_text(l.r2, 3), change_text(l.zero.value),
                          change_text(l.mean.value), change_text(l.ridge.value),
                          change_text(l.random.value), change_text(l.gate.value),
                          share_text(l.routed), figure_text(l.auc, 3)});
  }
  const std::string title = model.name + ": change of perplexity with one MLP replaced, per cent";
  return {title,
          "",
          {layer_map_svg({"nothing", "mean", "linear map", "random", "gate"}, rows, title)},
          "In the place of one layer's MLP: nothing, its mean output, the linear map; the linear "
          "map at the positions that the logistic gate chooses and the MLP elsewhere (gate), and "
          "at as many positions drawn at random (random). Orange: perplexity lost; blue: gained. "
          "Colours by logarithm, full from 100 % on.",
          table};
}

inline FigureBlock layer_forest(const ModelResults& model,
                                const std::vector<LayerFigures>& layers) {
  const std::vector<ForestSeries> series{{"linear map everywhere", 1},
                                         {"linear map where the gate says so", 0},
                                         {"at as many random positions", 3}};
  std::vector<ForestRow> rows;
  ReportTable table{{"layer", "linear map", "95 % interval", "p (Holm)", "gate", "95 % interval",
                     "random", "95 % interval"},
                    {}};
  for (const LayerFigures& l : layers) {
    rows.push_back({l.label, {l.ridge, l.gate, l.random}});
    table.rows.push_back({l.label, change_text(l.ridge.value),
                          range_text(l.ridge.low, l.ridge.high), figure_text(l.ridge_p_holm, 4),
                          change_text(l.gate.value), range_text(l.gate.low, l.gate.high),
                          change_text(l.random.value), range_text(l.random.low, l.random.high)});
  }
  const std::string title = model.name + ": cost of one layer with 95 % intervals";
  return {title,
          "",
          {forest_svg(series, rows, title, "change of perplexity, per cent")},
          "Rows are layers. Paired by document against the full model on the same token ids; an "
          "interval that holds 0 shows no change.",
          table};
}

}  // namespace detail

inline void add_layer_map(ReportDocument& document, const std::vector<ModelResults>& models) {
  detail::add_figures(document, models, "Layer map", "sweep", "layers",
                      [](const ModelResults& model, const ResultView& sweep) {
                        return detail::layer_map(model, layer_figures(sweep));
                      });
}

inline void add_layer_forest(ReportDocument& document, const std::vector<ModelResults>& models) {
  detail::add_figures(document, models, "Single layers, with intervals", "sweep", "layers",
                      [](const ModelResults& model, const ResultView& sweep) {
                        return detail::layer_forest(model, layer_figures(sweep));
                      });
}

}  // namespace wanamaker::inline WANAMAKER_ABI
