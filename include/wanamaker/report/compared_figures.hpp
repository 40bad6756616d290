// The figures of one side of a comparison, under names that our results and published files share.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/report/layer_figures.hpp"
#include "wanamaker/report/result_files.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A figure that two sets of results may both have.
struct ComparedFigure {
  std::string place{};  ///< "layer 3", "whole model"
  std::string name{};   ///< "linear map, %": what, and its unit
  Estimate value{};
};

/// One model as one side has it.
struct ComparedModel {
  std::string name{};
  std::string source{};            ///< the file or folder
  bool is_published = false;       ///< a file of the published study
  std::optional<double> layers{};  ///< of the model
  std::optional<double> width{};
  /// Of our results: by command, the keys and values of the protocol.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>> protocols{};
  std::vector<ComparedFigure> figures{};

  void add(std::string place, std::string what, const Estimate& value) {
    if (value.value) figures.push_back({std::move(place), std::move(what), value});
  }
};

namespace detail {

inline constexpr const char* whole_model = "whole model";

/// 0.4 as 40.
inline Estimate as_percent(std::optional<double> share) {
  return {share ? std::optional<double>(100 * *share) : std::nullopt};
}
/// What is saved of a share that is left.
inline Estimate saved_percent(std::optional<double> left) {
  return {left ? std::optional<double>(100 * (1 - *left)) : std::nullopt};
}

/// The published name of a variant of a sweep, where it has one.
inline std::string shared_name(const std::string& variant) {
  if (variant == "ridge") return "linear map";
  if (variant == "gate-logistic") return "gate linear";
  if (variant == "gate-pca-2") return "gate b=1";
  if (variant == "gate-pca-6") return "gate b=3";
  if (variant == "gate-pca-12") return "gate b=6";
  return variant;
}

/// The gate that costs least, as the published study chooses it.
inline void add_best_gate(ComparedModel& side, const std::string& place) {
  const ComparedFigure* best = nullptr;
  for (const ComparedFigure& f : side.figures) {
    const bool is_gate = f.place == place && f.name.starts_with("gate ") &&
                         f.name.ends_with(", %") && f.name.find("routed") == std::string::npos;
    if (is_gate && (best == nullptr || *f.value.value < *best->value.value)) best = &f;
  }
  if (best != nullptr) side.add(place, "best gate, %", Estimate(best->value));
}

/// Where a published procedure was followed, its own figures stand in the place of ours.
inline void add_paper_layer(ComparedModel& side, const ResultView& layer,
                            const std::string& place) {
  const ResultView paper = layer["paper"];
  side.add(place, "linear map, %", {paper.number("all_linear_delta_pct")});
  for (const ResultView& gate : paper.items("gates")) {
    if (gate.text("name") == "skipped") continue;
    side.add(place, "gate " + gate.text("name") + ", %", {gate.number("delta_pct")});
    side.add(place, "gate " + gate.text("name") + " routed, %", {gate.number("pct_linear")});
  }
}

inline void add_sweep_layer(ComparedModel& side, const ResultView& layer) {
  const std::string place = "layer " + layer_label(layer);
  if (layer["paper"]) {
    add_paper_layer(side, layer, place);
  } else {
    for (const ResultView& v : layer.items("variants")) {
      const std::string name = shared_name(v.text("name"));
      side.add(place, name + ", %", estimate_of(v));
      side.add(place, name + " routed, %", as_percent(v.number("fraction_linear")));
    }
  }
  add_best_gate(side, place);
}

inline void add_compound_figures(ComparedModel& side, const ResultView& compound) {
  for (const ResultView& v : compound.items("variants")) {
    const std::string variant = v.text("name");
    const std::string name = variant == "naive-linear" ? "all layers, linear maps"
                             : variant == "naive-gate" ? "all layers, gates"
                                                       : variant;
    side.add(whole_model, name + ", %", estimate_of(v));
    if (variant.find("gate") == std::string::npos) continue;
    side.add(whole_model, name + ": routed, %", as_percent(v.number("fraction_linear")));
    side.add(whole_model, name + ": MLP FLOPs saved, %",
             saved_percent(v.number("flops_fraction_mlp")));
    side.add(whole_model, name + ": all FLOPs saved, %",
             saved_percent(v.number("flops_fraction_total")));
  }
}

inline void add_probe_figures(ComparedModel& side, const ResultView& probe) {
  const std::pair<const char*, const char*> names[] = {
      {"input", "AUC of all"}, {"token", "AUC of the token"}, {"context", "AUC of the context"}};
  for (const ResultView& layer : probe.items("layers")) {
    for (const auto& [ours, shared] : names) {
      const ResultView p = layer.item("probes", "name", ours);
      const auto range = p.range("auc_interval");
      Estimate e{p.number("auc")};
      if (range) e.low = range->low, e.high = range->high;
      side.add("layer " + layer_label(layer), shared, e);
    }
  }
}

inline void add_list_figures(ComparedModel& side, const ResultView& transfer) {
  for (const ResultView& layer : transfer.items("layers")) {
    for (const ResultView& p : layer.items("pairs")) {
      if (p.text("role") != "input" || p.text("surrogate") != "same") continue;
      const auto range = p.range("pearson_interval");
      Estimate e{p.number("pearson")};
      if (range) e.low = range->low, e.high = range->high;
      side.add("layer " + layer_label(layer), "correlation of lists with " + p.text("to"), e);
    }
  }
}

/// What ridge regression on all that is known in hindsight explains of δ in nats, held out.
inline void add_feature_figures(ComparedModel& side, const ResultView& features) {
  for (const ResultView& layer : features.items("layers")) {
    for (const ResultView& fit : layer.item("sets", "name", "hindsight").items("fits")) {
      if (fit.text("method") != "ridge" || fit.text("scale") != "raw") continue;
      const auto range = fit.range("r2_interval");
      Estimate e{fit.number("r2")};
      if (range) e.low = range->low, e.high = range->high;
      side.add("layer " + layer_label(layer), "R² of features", e);
    }
  }
}

inline void add_training_figures(ComparedModel& side, const ResultView& run,
                                 const std::string& name) {
  for (const ResultView& c : run.items("comparisons")) {
    if (c.text("kind") != "untouched" || c.text("text") == "trained") continue;
    const std::string text = c.text("text") == "unseen"  ? "own text"
                             : c.text("text") == "other" ? "other text"
                                                         : c.text("text");
    side.add(whole_model, name + ", " + text + ", %", estimate_of(c));
  }
}

inline std::vector<std::pair<std::string, std::string>> protocol_fields(const ResultView& result) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const auto& [key, value] : result.members("protocol")) {
    if (key != "hash" && key != "faults") {
      fields.emplace_back(key, result["protocol"].scalar_text(key));
    }
  }
  return fields;
}

}  // namespace detail

/// All that our results of a model can be compared by.
inline ComparedModel compared_model(const ModelResults& model, const std::string& source) {
  ComparedModel side{.name = model.name, .source = source};
  for (const auto& [command, json] : model.results) {
    const ResultView result = model.result(command);
    side.protocols.emplace_back(command, detail::protocol_fields(result));
    if (!side.layers) side.layers = result["model"].number("layers");
    if (!side.width) side.width = result["model"].number("width");
  }
  const ResultView sweep = model.result("sweep"), perplexity = model.result("perplexity");
  const ResultView baseline = sweep["baseline"] ? sweep["baseline"] : perplexity;
  side.add(detail::whole_model, "perplexity", {baseline.number("perplexity")});
  for (const ResultView& layer : sweep.items("layers")) detail::add_sweep_layer(side, layer);
  detail::add_compound_figures(side, model.result("compound"));
  detail::add_probe_figures(side, model.result("probe"));
  detail::add_list_figures(side, model.result("transfer"));
  detail::add_feature_figures(side, model.result("features"));
  detail::add_training_figures(side, model.result("progressive"), "frozen linear layers, tuned");
  detail::add_training_figures(side, model.result("two-phase"), "gated, tuned");
  return side;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
