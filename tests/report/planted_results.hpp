// Results with figures that were chosen by hand, as the commands write them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "wanamaker/report/result_files.hpp"

namespace wanamaker_test {

using wanamaker::Json;

/// A cost in per cent with its interval.
struct PlantedCost {
  double value = 0, low = 0, high = 0;
};

inline Json planted_variant(const std::string& name, const PlantedCost& cost) {
  return {{"name", name},
          {"parameters", 37056.0},
          {"perplexity", 228.0},
          {"nll_sum", 43595.0},
          {"delta_nats", cost.value / 100},
          {"delta_percent", cost.value},
          {"ci_low_percent", cost.low},
          {"ci_high_percent", cost.high},
          {"ci_method", "bca"},
          {"p_value", 0.01},
          {"p_holm", 0.02},
          {"warnings", Json::array()},
          {"auc", nullptr},
          {"fraction_linear", nullptr},
          {"flops_fraction_mlp", 0.85},
          {"flops_fraction_total", 0.93}};
}

/// What a layer of a sweep is planted with.
struct PlantedLayer {
  PlantedCost ridge{1, 0.5, 1.5}, mean{20, 15, 25}, gate{0.2, 0.1, 0.3}, random{0.6, 0.5, 0.7};
  double routed = 0.4, auc = 0.56, share_below = 0.99, top_share = 0.7;
};

inline Json planted_layer(int number, const PlantedLayer& layer) {
  Json gate = planted_variant("gate-logistic", layer.gate);
  gate["fraction_linear"] = layer.routed;
  gate["auc"] = layer.auc;
  Json random = planted_variant("random", layer.random);
  random["fraction_linear"] = layer.routed;
  const Json below = {{{"epsilon", 0.01}, {"value", 0.3}},
                      {{"epsilon", 0.05}, {"value", layer.share_below}}};
  const Json top = {{{"fraction", 0.1}, {"value", layer.top_share}}};
  return {{"layer", number},
          {"r2", 0.96},
          {"condition", 1e4},
          {"lambda", 1e-3},
          {"delta", {{"mean", 0.001}, {"share_below", below}, {"top_share", top}}},
          {"variants",
           {planted_variant("zero", {600, 500, 700}), planted_variant("mean", layer.mean),
            planted_variant("ridge", layer.ridge), random, gate}}};
}

inline Json planted_protocol() {
  return {{"name", "rigorous"},
          {"join_rule", "each document on its own"},
          {"window", 256},
          {"stride", 256},
          {"bos", false},
          {"seed", 0},
          {"corpus_hash", "c0"},
          {"token_ids_hash", "f5"},
          {"faults", Json::array()},
          {"hash", "0d"}};
}

inline Json planted_header(const std::string& command, int layers) {
  return {{"schema", "wanamaker/1"},
          {"command", command},
          {"protocol", planted_protocol()},
          {"model",
           {{"name", "planted"},
            {"family", "gpt2"},
            {"layers", layers},
            {"width", 192},
            {"parameters", 3505152}}},
          {"fit", {{"documents", 24}, {"tokens", 15074}}},
          {"gate", {{"documents", 10}, {"tokens", 6029}}},
          {"baseline",
           {{"documents", 400}, {"tokens", 80290}, {"nll_sum", 435908.0}, {"perplexity", 228.0}}}};
}

inline Json planted_sweep(const std::vector<PlantedLayer>& layers) {
  Json sweep = planted_header("sweep", static_cast<int>(layers.size()));
  sweep["layers"] = Json::array();
  for (std::size_t l = 0; l < layers.size(); ++l) {
    sweep["layers"].push_back(planted_layer(static_cast<int>(l), layers[l]));
  }
  return sweep;
}

inline Json planted_curve(const std::string& gate, double slope) {
  Json points = Json::array();
  for (const double share : {0.25, 0.5, 0.75, 1.0}) {
    Json point = planted_variant(gate, {slope * share, slope * share - 0.1, slope * share + 0.1});
    point["target"] = point["fraction_linear"] = share;
    points.push_back(point);
  }
  return {{"gate", gate},
          {"points", points},
          {"area_nats", slope / 200},
          {"area_below_random", 0.001},
          {"share_of_oracle", nullptr},
          {"operating_point", 1}};
}

inline Json planted_gate_curve(int layers) {
  Json result = planted_header("gate-curve", layers);
  result["max_loss_percent"] = 1;
  result["layers"] = Json::array();
  for (int l = 0; l < layers; ++l) {
    result["layers"].push_back({{"layer", l},
                                {"curves",
                                 {planted_curve("random", 1), planted_curve("gate-logistic", 0.5),
                                  planted_curve("oracle", -4)}}});
  }
  return result;
}

inline Json planted_compound(const std::string& verdict, double flops_mlp) {
  Json result = planted_header("compound", 3);
  result["max_loss_percent"] = 1;
  result["chosen"] = "naive-gate";
  result["variants"] = Json::array();
  for (const char* name : {"mean", "naive-gate", "sequential-gate", "greedy-linear-1"}) {
    Json v = planted_variant(name, {0.93, 0.41, 1.45});
    v["layers"] = {0, 1, 2};
    v["verdict"] = verdict;
    v["documents_needed"] = verdict == "undecided" ? Json(964) : Json();
    v["flops_fraction_mlp"] = flops_mlp;
    v["flops_fraction_total"] = 1 - (1 - flops_mlp) / 2;
    v["on_frontier"] = true;
    result["variants"].push_back(v);
  }
  return result;
}

inline Json planted_json(const std::string& command, const std::string& rest) {
  Json result = planted_header(command, 3);
  result.update(wanamaker::parse_json(rest, "planted"));
  return result;
}

/// `context` above the token's table by [low, high] in AUC.
inline Json planted_probe(double low, double high) {
  Json result = planted_header("probe", 1);
  result["layers"] = wanamaker::parse_json(R"([{"layer": 0, "probes": [
      {"name": "context", "auc": 0.61, "auc_interval": [0.6, 0.62], "above_token_table": 0.02},
      {"name": "token-label-table", "auc": 0.59, "auc_interval": null}],
      "parts": [{"name": "attention", "mean_norm": 3.5, "length_share": 0.25, "gate_share": null}]
      }])",
                                           "planted");
  result["layers"][0]["probes"][0]["above_token_table_interval"] = {low, high};
  return result;
}

inline Json planted_transfer(const std::string& verdict) {
  Json result = planted_json("transfer", R"({"layers": [{"layer": 0, "pairs": [
      {"role": "input", "from": "half 0", "to": "half 1", "verdict": "transfers", "power": 1},
      {"role": "input", "from": "books", "to": "web", "surrogate": "same", "pearson": 0.1,
       "pearson_interval": [-0.1, 0.3], "attainable": 0.5, "power": 0.93, "listed_flips": 0.4,
       "base_flips": 0.5, "flips_by_chance": 0.5}]}]})");
  result["layers"][0]["pairs"][1]["verdict"] = verdict;
  return result;
}

inline Json planted_clusters() {
  return planted_json("clusters", R"({"clusters": 20, "layers": [{"layer": 0, "silhouette": 0.05,
      "delta_explained": {"value": 0.004, "random_mean": 0.003, "random_p95": 0.005},
      "delta_held_out_r2": -0.0012, "decision_purity": null}]})");
}

inline Json planted_features(const std::string& verdict) {
  Json result = planted_json("features", R"({"layers": [{"layer": 0, "sets": [{"name": "hindsight",
      "fits": [{"method": "ridge", "scale": "raw", "r2": 0.031, "r2_interval": [0.02, 0.04],
                "detectable": 0.01}]}]}]})");
  result["layers"][0]["sets"][0]["fits"][0]["verdict"] = verdict;
  return result;
}

inline Json planted_marginal() {
  return planted_json("marginal", R"({"writers": {"verdict": "holds", "p_value": 0.012},
      "layers": [{"layer": 0, "agreement": {"spearman": 0.87}, "groups": [
      {"name": "first", "positions": 40, "delta_sum": 12.5, "share_of_magnitude": 0.3,
       "share_linear": 0.25}], "gates": {"spearman": 0.41, "joint": {"fraction_linear": 0.4,
       "comparison": {"delta_percent": 0.31}}, "marginal": {"fraction_linear": 0.42,
       "comparison": {"delta_percent": 0.21, "ci_low_percent": 0.1, "ci_high_percent": 0.3}},
       "difference": {"delta_percent": -0.09}}}]})");
}

inline Json planted_forensics() {
  return planted_json("forensics", R"({"layers": [{"layer": 0, "fraction_linear": 0.5,
      "auc": 0.617, "types": 321, "type_spearman": -0.37, "function_words": 0.22}]})");
}

inline Json planted_training(const std::string& command, const std::string& point,
                             const std::string& gains) {
  Json result = planted_json(command, R"({"verdicts": [{"kept": "non-inferior",
      "kept_delta_percent": -8.5, "kept_ci_low_percent": -9, "kept_ci_high_percent": -8}],
      "comparisons": [{"kind": "equal-flops", "text": "unseen", "control": "plain/final",
      "delta_percent": 1.25, "ci_low_percent": 0.5, "ci_high_percent": 2, "verdict": "worse",
      "seed_interval_percent": [0.25, 2.25], "token_ratio": 1, "flops_ratio": 1}],
      "gaps": [{"point": "linear/linear", "trained_nats": 0.03, "unseen_nats": -0.01,
                "gap_nats": 0.04, "interval_nats": [0.01, 0.07]}]})");
  result["verdicts"][0]["point"] = point;
  result["verdicts"][0]["gains"] = gains;
  result["comparisons"][0]["treated"] = point;
  return result;
}

/// Models from nothing: of both budgets one comparison with each verdict.
inline Json planted_budgets(const std::string& by_parameters, const std::string& by_flops) {
  Json result = planted_json("budgets", R"({"arms": [{"name": "uniform", "mlps": "0-3:dense:32",
      "parallel_residual": true, "budgets": [], "parameters": 5000, "mlp_parameters": 2208,
      "mlp_flops": 4096, "parameters_deviation_percent": 0, "flops_deviation_percent": 0}],
      "verdicts": [], "topology": [], "comparisons": [
      {"treated": "affine-middle/trained", "control": "uniform/trained", "text": "unseen",
       "kind": "equal-parameters", "delta_percent": -2.5, "ci_low_percent": -3,
       "ci_high_percent": -2},
      {"treated": "routed-middle-flops/hard", "control": "uniform/trained", "text": "unseen",
       "kind": "equal-flops", "delta_percent": 1.5, "ci_low_percent": 1, "ci_high_percent": 2},
      {"treated": "own/trained", "control": "uniform/trained", "text": "unseen",
       "kind": "equal-flops", "delta_percent": 9, "ci_low_percent": 8, "ci_high_percent": 10,
       "verdict": "worse"}]})");
  result["comparisons"][0]["verdict"] = by_parameters;
  result["comparisons"][1]["verdict"] = by_flops;
  return result;
}

/// Twins whose sequential one is `verdict` to linearise.
inline Json planted_twins(const std::string& verdict) {
  Json result = planted_json("twins", R"({"arms": [{"name": "parallel"}, {"name": "sequential"}],
      "verdicts": [], "comparisons": [], "topology": [{"treated": "sequential",
      "control": "parallel", "treated_percent": [2, 3], "control_percent": [5, 5.5],
      "difference_percent": [-3, -2.5], "interval_percent": [-5.5, 0.25]}]})");
  result["topology"][0]["verdict"] = verdict;
  return result;
}

/// Everything that a report can hold, of a model with so many layers.
inline wanamaker::ModelResults planted_model(int layers) {
  wanamaker::ModelResults model;
  model.name = "planted";
  model.results = {
      {"sweep", planted_sweep(std::vector<PlantedLayer>(static_cast<std::size_t>(layers)))},
      {"gate-curve", planted_gate_curve(layers)},
      {"compound", planted_compound("undecided", 0.6)},
      {"probe", planted_probe(0.01, 0.03)},
      {"transfer", planted_transfer("does not transfer")},
      {"clusters", planted_clusters()},
      {"features", planted_features("explains")},
      {"marginal", planted_marginal()},
      {"forensics", planted_forensics()},
      {"progressive", planted_training("progressive", "progressive/final", "does not hold")},
      {"two-phase", planted_training("two-phase", "two-phase/hard", "cannot be decided here")},
      {"budgets", planted_budgets("better", "undecided")},
      {"twins", planted_twins("better")}};
  model.times = {{"sweep", {{"schema", "wanamaker/1"}, {"seconds", 81.4}, {"threads", 2}}}};
  return model;
}

}  // namespace wanamaker_test
