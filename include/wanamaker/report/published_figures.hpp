// Result files of the published study (pbalogh/half-the-nonlinearity), by their own keys.
#pragma once

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/report/compared_figures.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// Layers by number; the files have them as keys, which sort as texts.
inline std::vector<std::pair<std::string, ResultView>> published_layers(const ResultView& file) {
  auto layers = file.members("layers");
  const auto number = [](const std::string& text) {
    int value = -1;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  std::stable_sort(layers.begin(), layers.end(),
                   [&](const auto& a, const auto& b) { return number(a.first) < number(b.first); });
  return layers;
}

/// `delta_pct` with its interval, where the file has one.
inline Estimate published_estimate(const ResultView& figures) {
  return {figures.number("delta_pct"), figures.number("delta_ci_lo"),
          figures.number("delta_ci_hi")};
}

// scale_test_*.json: every gate of every layer.
inline void add_scale_test(ComparedModel& side, const ResultView& file) {
  side.add(whole_model, "perplexity", {file.number("baseline_ppl")});
  for (const auto& [number, layer] : published_layers(file)) {
    const std::string place = "layer " + number;
    side.add(place, "linear map, %", {layer.number("all_linear_delta_pct")});
    for (const ResultView& gate : layer.items("gates")) {
      if (gate.text("name") == "skipped") continue;
      side.add(place, "gate " + gate.text("name") + ", %", {gate.number("delta_pct")});
      side.add(place, "gate " + gate.text("name") + " routed, %", {gate.number("pct_linear")});
    }
    add_best_gate(side, place);
  }
}

// bootstrap_ci_*.json: the best gate of every layer, with intervals. A layer that failed has
// `skipped` and `reason` in the gate's place.
inline void add_bootstrap(ComparedModel& side, const ResultView& file) {
  side.add(whole_model, "perplexity", {file["baseline"].number("ppl")});
  for (const auto& [number, layer] : published_layers(file)) {
    side.add("layer " + number, "linear map, %", published_estimate(layer["all_linear"]));
    side.add("layer " + number, "best gate, %", published_estimate(layer["best_gate"]));
  }
}

// compound_ci_*.json: all layers at once.
inline void add_published_compound(ComparedModel& side, const ResultView& file) {
  const ResultView gated = file["compound_gated"];
  side.add(whole_model, "perplexity", {file["baseline"].number("ppl")});
  side.add(whole_model, "all layers, linear maps, %",
           published_estimate(file["all_linear_compound"]));
  side.add(whole_model, "all layers, gates, %", published_estimate(gated));
  side.add(whole_model, "all layers, gates: routed, %", {gated.number("avg_linear_pct")});
  side.add(whole_model, "all layers, gates: MLP FLOPs saved, %",
           {gated.number("flops_saved_mlp_pct")});
  side.add(whole_model, "all layers, gates: all FLOPs saved, %",
           {gated.number("flops_saved_total_pct")});
}

// context_vs_token_*.json: AUC of gates that see parts of the input.
inline void add_context(ComparedModel& side, const ResultView& file) {
  for (const ResultView& layer : file.items("per_layer")) {
    const std::string place = "layer " + layer_label(layer);
    const ResultView gates = layer["gates_median"];
    side.add(place, "AUC of all", {gates["full"].number("auc")});
    side.add(place, "AUC of the token", {gates["token_only"].number("auc")});
    side.add(place, "AUC of the context", {gates["context_only"].number("auc")});
  }
}

// forensics_*.json: R² of features, in-sample.
inline void add_forensics(ComparedModel& side, const ResultView& file) {
  for (const ResultView& layer : file.items("per_layer")) {
    side.add("layer " + layer_label(layer), "R² of features",
             {layer["regression"].number("r_squared")});
  }
}

// nofly_cross_corpus_*.json: correlations of lists of tokens, under L0, L1, …
inline void add_lists(ComparedModel& side, const ResultView& file) {
  for (int l = 0; l < 200; ++l) {
    const ResultView layer = file["L" + std::to_string(l)];
    for (const auto& [corpus, list] : layer.members("cross_corpus")) {
      side.add("layer " + std::to_string(l), "correlation of lists with " + corpus,
               {list.number("correlation")});
    }
  }
}

// benchmark_*.json: FLOPs of hard gates.
inline void add_benchmark(ComparedModel& side, const ResultView& file) {
  const ResultView gated = file["flops"]["hard_gate"];
  side.add(whole_model, "gated, tuned, own text, %", {file["quality"].number("wiki_delta_pct")});
  side.add(whole_model, "gated, tuned: MLP FLOPs saved, %", {gated.number("mlp_savings_pct")});
  side.add(whole_model, "gated, tuned: all FLOPs saved, %", {gated.number("total_savings_pct")});
}

// control_finetune_*.json, beefy_lin_*.json, phase2_gated_*.json: models after tuning.
inline void add_published_training(ComparedModel& side, const ResultView& file) {
  const std::string name = file["method"]                        ? "gated, tuned"
                           : file.items("linear_layers").empty() ? "plain fine-tuning"
                                                                 : "frozen linear layers, tuned";
  side.add(whole_model, "perplexity", {file["baseline"].number("wiki")});
  side.add(whole_model, name + ", own text, %", {file.number("wiki_delta_pct")});
  side.add(whole_model, name + ", other text, %", {file.number("lambada_delta_pct")});
}

}  // namespace detail

/// The figures of a published file. Throws FormatError where it is none whose keys are known.
inline ComparedModel published_model(const Json& json, const std::string& source) {
  const ResultView file(json, source);
  ComparedModel side{.name = file.text("model"), .source = source, .is_published = true};
  side.layers = file.number("n_layers");
  side.width = file.number("hidden_dim");
  if (file["baseline_ppl"]) {
    detail::add_scale_test(side, file);
  } else if (file["n_bootstrap"] && file["layers"]) {
    detail::add_bootstrap(side, file);
  } else if (file["compound_gated"]) {
    detail::add_published_compound(side, file);
  } else if (file["cross_layer_summary"]) {
    detail::add_forensics(side, file);
  } else if (file["per_layer"]) {
    detail::add_context(side, file);
  } else if (file["flops"]) {
    detail::add_benchmark(side, file);
  } else if (file["wiki_delta_pct"]) {
    detail::add_published_training(side, file);
  } else {
    detail::add_lists(side, file);
  }
  if (!side.figures.empty()) return side;
  throw FormatError({.id = "compare/unknown-file",
                     .where = source,
                     .what = "no file whose figures can be compared",
                     .expected = "a result file of study, or a published scale_test, bootstrap_ci, "
                                 "compound_ci, context_vs_token or fine-tuning file",
                     .found = "none of their keys",
                     .mend = "see docs/report.md for what is compared"});
}

}  // namespace wanamaker::inline WANAMAKER_ABI
