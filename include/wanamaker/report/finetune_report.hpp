// Fine-tuning experiments to JSON, and stored arms back.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "wanamaker/report/result_json.hpp"
#include "wanamaker/report/result_reading.hpp"
#include "wanamaker/study/finetune_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

inline OrderedJson json_of(const TextLosses& t) {
  return {{"text", t.text},
          {"tokens", t.token_sum()},
          {"nll_sum", t.nll_sum()},
          {"perplexity", t.perplexity()},
          {"accuracy", detail::json_or_null(t.accuracy())},
          {"document_tokens", t.tokens},
          {"document_nll", t.nll},
          {"document_hits", t.hits}};
}

inline OrderedJson json_of(const LayerState& l) {
  return {{"layer", l.layer},
          {"form", std::string(name_of(l.form))},
          {"fraction_linear", detail::json_or_null(l.fraction_linear)},
          {"select_fraction", detail::json_or_null(l.select_fraction)},
          {"constant", detail::json_or_null(l.constant)}};
}

inline OrderedJson json_of(const FinetunePoint& p) {
  OrderedJson layers = OrderedJson::array();
  for (const LayerState& l : p.layers) layers.push_back(json_of(l));
  OrderedJson texts = OrderedJson::array();
  for (const TextLosses& t : p.texts) texts.push_back(json_of(t));
  return {{"stage", p.stage},
          {"steps", p.steps},
          {"tokens", p.tokens},
          {"training_flops", p.training_flops},
          {"first_loss", detail::json_or_null(p.first_loss)},
          {"last_loss", detail::json_or_null(p.last_loss)},
          {"losses", p.losses},
          {"fraction_linear", p.fraction_linear},
          {"flops_fraction_mlp", p.flops_fraction_mlp},
          {"flops_fraction_total", p.flops_fraction_total},
          {"layers", layers},
          {"texts", texts}};
}

/// What an arm with one seed is stored as.
inline OrderedJson json_of(const ArmRun& r) {
  OrderedJson points = OrderedJson::array();
  for (const FinetunePoint& p : r.points) points.push_back(json_of(p));
  return {{"arm", r.arm}, {"seed", r.seed}, {"points", points}};
}

namespace detail {

inline OrderedJson json_of(const std::optional<AccuracyDifference>& a) {
  if (!a) return nullptr;
  return {{"treated", a->treated}, {"control", a->control}, {"interval", json_of(a->interval)}};
}

}  // namespace detail

inline OrderedJson json_of(const FinetuneComparison& c) {
  OrderedJson json{{"treated", text_of(c.contrast.treated)},
                   {"control", text_of(c.contrast.control)},
                   {"kind", std::string(name_of(c.contrast.kind))},
                   {"text", c.text},
                   {"verdict", std::string(name_of(c.verdict))}};
  json.update(json_of(c.documents));
  json.update({{"seed_delta_nats", c.delta_nats},
               {"seed_interval_percent", detail::json_of(c.seeds)},
               {"token_ratio", c.token_ratio},
               {"flops_ratio", c.flops_ratio},
               {"documents_needed", detail::json_or_null(c.documents_needed)},
               {"accuracy", detail::json_of(c.accuracy)}});
  return json;
}

inline OrderedJson json_of(const EvaluatedText& t) {
  return {{"text", t.name},
          {"documents", t.documents},
          {"tokens", t.tokens},
          {"token_ids_hash", t.token_ids_hash}};
}

inline OrderedJson json_of(const TextGap& g) {
  return {{"point", text_of(g.point)},
          {"trained_nats", g.trained_nats},
          {"unseen_nats", g.unseen_nats},
          {"gap_nats", g.gap_nats},
          {"interval_nats", detail::json_of(g.interval)},
          {"p_value", detail::json_or_null(g.p_value)}};
}

inline OrderedJson json_of(const TreatedVerdict& v) {
  return {{"point", text_of(v.point)},
          {"gains", std::string(name_of(v.gains))},
          {"kept", std::string(name_of(v.kept.verdict))},
          {"kept_delta_percent", v.kept.comparison.delta_percent},
          {"kept_ci_low_percent", detail::json_or_null(v.kept.comparison.ci_low_percent)},
          {"kept_ci_high_percent", detail::json_or_null(v.kept.comparison.ci_high_percent)},
          {"kept_p_value", detail::json_or_null(v.kept.p_value)},
          {"kept_documents_needed", detail::json_or_null(v.kept.documents_needed)}};
}

namespace detail {

inline OrderedJson json_of(const FinetuneOptions& o) {
  return {{"layers", o.recipes.layers},
          {"between_steps", o.recipes.between_steps},
          {"final_steps", o.recipes.final_steps},
          {"adapt_steps", o.recipes.adapt_steps},
          {"gate_steps", o.recipes.gate_steps},
          {"rate", o.recipes.rate},
          {"gate_rate", o.recipes.gate_rate},
          {"sparsity", o.recipes.sparsity},
          {"sparsity_warm_up", o.recipes.sparsity_warm_up},
          {"seeds", o.seeds},
          {"window", o.window},
          {"sequences", o.sequences},
          {"accumulation", o.training.accumulation},
          {"warm_up", o.warm_up},
          {"rho", o.rho},
          {"margin_percent", o.margin_percent}};
}

/// What results of models that were trained have alike; runs are left to the end of the file.
template <class Result>
OrderedJson training_json(const Result& r, const OrderedJson& options) {
  return {{"schema", "wanamaker/1"},
          {"command", r.command},
          {"protocol", json_of(r.protocol)},
          {"model", json_of(r.model)},
          {"options", options},
          {"train", {{"documents", r.train_documents}, {"tokens", r.train_tokens}}},
          {"texts", json_list(r.texts)},
          {"verdicts", json_list(r.verdicts)},
          {"comparisons", json_list(r.comparisons)}};
}

}  // namespace detail

/// progressive.json, two-phase.json, control.json.
inline OrderedJson json_of(const FinetuneResult& r) {
  OrderedJson json = detail::training_json(r, detail::json_of(r.options));
  json["gaps"] = detail::json_list(r.gaps);
  json["runs"] = detail::json_list(r.runs);
  return json;
}

namespace detail {

inline LayerForm layer_form_at(const Json& json, const std::string& where) {
  const auto name = value_at<std::string>(json, "form", where);
  for (int f = 0; f <= static_cast<int>(LayerForm::random_routing); ++f) {
    if (name == name_of(static_cast<LayerForm>(f))) return static_cast<LayerForm>(f);
  }
  throw FormatError({.id = "result/bad-value",
                     .where = where,
                     .what = "unknown form of a layer",
                     .found = name,
                     .mend = "delete the file and run again without --resume"});
}

inline LayerState layer_state_at(const Json& json, const std::string& where) {
  return {.layer = value_at<Index>(json, "layer", where),
          .form = layer_form_at(json, where),
          .fraction_linear = optional_at(json, "fraction_linear", where),
          .select_fraction = optional_at(json, "select_fraction", where),
          .constant = optional_at(json, "constant", where)};
}

inline TextLosses text_losses_at(const Json& json, const std::string& where) {
  return {.text = value_at<std::string>(json, "text", where),
          .tokens = value_at<std::vector<Index>>(json, "document_tokens", where),
          .nll = value_at<std::vector<double>>(json, "document_nll", where),
          .hits = value_at<std::vector<double>>(json, "document_hits", where)};
}

inline FinetunePoint finetune_point_at(const Json& json, const std::string& where) {
  const auto number = [&](const char* key) { return value_at<double>(json, key, where); };
  FinetunePoint point{.stage = value_at<std::string>(json, "stage", where),
                      .steps = value_at<Index>(json, "steps", where),
                      .tokens = value_at<Index>(json, "tokens", where),
                      .training_flops = number("training_flops"),
                      .first_loss = optional_at(json, "first_loss", where),
                      .last_loss = optional_at(json, "last_loss", where),
                      .losses = value_at<std::vector<double>>(json, "losses", where),
                      .layers = {},
                      .fraction_linear = number("fraction_linear"),
                      .flops_fraction_mlp = number("flops_fraction_mlp"),
                      .flops_fraction_total = number("flops_fraction_total"),
                      .texts = {}};
  for (const Json& l : value_at<Json>(json, "layers", where)) {
    point.layers.push_back(layer_state_at(l, where));
  }
  for (const Json& t : value_at<Json>(json, "texts", where)) {
    point.texts.push_back(text_losses_at(t, where));
  }
  return point;
}

}  // namespace detail

/// A stored arm. Throws FormatError for missing or mistyped keys.
inline ArmRun arm_run_from_json(const Json& json, const std::string& where) {
  ArmRun run{.arm = detail::value_at<std::string>(json, "arm", where),
             .seed = detail::value_at<std::uint64_t>(json, "seed", where),
             .points = {}};
  for (const Json& p : detail::value_at<Json>(json, "points", where)) {
    run.points.push_back(detail::finetune_point_at(p, where));
  }
  return run;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
