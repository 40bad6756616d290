// Results to JSON, with the keys of docs/results.md ("schema": "wanamaker/1").
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "wanamaker/io/json_writing.hpp"
#include "wanamaker/study/clusters_result.hpp"
#include "wanamaker/study/compound_result.hpp"
#include "wanamaker/study/export_result.hpp"
#include "wanamaker/study/gate_curve_result.hpp"
#include "wanamaker/study/generate_result.hpp"
#include "wanamaker/study/perplexity.hpp"
#include "wanamaker/study/probe_result.hpp"
#include "wanamaker/study/sweep_result.hpp"
#include "wanamaker/study/transfer_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

template <class T>
OrderedJson json_or_null(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

inline OrderedJson text_or_null(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}

inline OrderedJson json_of(const std::vector<SummaryValue>& values, const char* at) {
  OrderedJson list = OrderedJson::array();
  for (const SummaryValue& v : values)
    list.push_back({{at, v.at}, {"value", json_or_null(v.value)}});
  return list;
}

inline OrderedJson json_of(const std::vector<PairedWarning>& warnings) {
  OrderedJson list = OrderedJson::array();
  for (const PairedWarning w : warnings) list.push_back(std::string(describe(w)));
  return list;
}

/// json_of of every element.
template <class T>
OrderedJson json_list(const std::vector<T>& values) {
  OrderedJson list = OrderedJson::array();
  for (const T& value : values) list.push_back(json_of(value));
  return list;
}

inline OrderedJson json_of(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return OrderedJson::array({interval->low, interval->high});
}

}  // namespace detail

inline OrderedJson json_of(const Protocol& p) {
  return {{"name", p.name},
          {"join_rule", p.join_rule},
          {"detokenisation", p.detokenisation},
          {"window", p.window},
          {"stride", p.stride},
          {"bos", p.bos},
          {"truncation", p.truncation},
          {"first_token_rule", p.first_token_rule},
          {"arithmetic", p.arithmetic},
          {"seed", p.seed},
          {"corpus_hash", p.corpus_hash},
          {"tokenizer_hash", p.tokenizer_hash},
          {"token_ids_hash", p.token_ids_hash},
          {"faults", p.faults},
          {"hash", protocol_hash(p)}};
}

inline OrderedJson json_of(const ModelSummary& m) {
  return {{"name", m.name},
          {"family", m.family},
          {"layers", m.layers},
          {"width", m.width},
          {"parameters", static_cast<std::int64_t>(m.parameters)}};
}

/// perplexity.json.
inline OrderedJson json_of(const PerplexityResult& r) {
  OrderedJson documents = OrderedJson::array();
  for (const DocumentLoss& d : r.document_losses) {
    documents.push_back({{"name", d.name}, {"tokens", d.tokens}, {"nll_sum", d.nll_sum}});
  }
  OrderedJson json = {{"schema", "wanamaker/1"},
                      {"command", "perplexity"},
                      {"protocol", json_of(r.protocol)},
                      {"model", json_of(r.model)},
                      {"documents", r.documents},
                      {"tokens", r.tokens},
                      {"context_tokens", r.context_tokens},
                      {"nll_sum", r.nll_sum},
                      {"perplexity", r.perplexity},
                      {"bits_per_byte", detail::json_or_null(r.bits_per_byte)},
                      {"word_perplexity", detail::json_or_null(r.word_perplexity)},
                      {"token_ids_hash", r.protocol.token_ids_hash},
                      {"document_losses", documents}};
  if (r.last_words) {
    json["lambada"] = {{"last_word_accuracy", r.last_words->accuracy},
                       {"last_word_perplexity", r.last_words->perplexity},
                       {"passages", r.last_words->passages}};
  }
  return json;
}

inline OrderedJson json_of(const DistributionSummary& d) {
  return {{"mean", d.mean},
          {"std", detail::json_or_null(d.standard_deviation)},
          {"quantiles", detail::json_of(d.quantiles, "p")},
          {"share_below", detail::json_of(d.share_below, "epsilon")},
          {"top_share", detail::json_of(d.top_share, "fraction")}};
}

/// What a variant costs against the full model on the same tokens.
inline OrderedJson json_of(const PairedComparison& c) {
  return {{"delta_nats", c.delta_nats},
          {"delta_percent", c.delta_percent},
          {"ci_low_percent", detail::json_or_null(c.ci_low_percent)},
          {"ci_high_percent", detail::json_or_null(c.ci_high_percent)},
          {"ci_method", c.method ? OrderedJson(std::string(name_of(*c.method))) : OrderedJson()},
          {"p_value", detail::json_or_null(c.p_value)},
          {"sign_test_p", c.sign_test.p_value},
          {"naive_paired_percent", detail::json_of(c.naive_paired_percent)},
          {"naive_unpaired_percent", detail::json_of(c.naive_unpaired_percent)},
          {"warnings", detail::json_of(c.warnings)}};
}

inline OrderedJson json_of(const VariantResult& v) {
  OrderedJson json{{"name", v.name},
                   {"parameters", v.parameters},
                   {"perplexity", v.perplexity},
                   {"nll_sum", v.nll_sum}};
  json.update(json_of(v.comparison));
  json.update({{"p_holm", detail::json_or_null(v.p_holm)},
               {"p_bh", detail::json_or_null(v.p_bh)},
               {"auc", detail::json_or_null(v.auc)},
               {"calibration_error", detail::json_or_null(v.calibration_error)},
               {"brier_score", detail::json_or_null(v.brier_score)},
               {"fraction_linear", detail::json_or_null(v.fraction_linear)},
               {"threshold", detail::json_or_null(v.threshold)},
               {"flops_fraction_mlp", detail::json_or_null(v.flops_fraction_mlp)},
               {"flops_fraction_total", detail::json_or_null(v.flops_fraction_total)},
               {"note", detail::text_or_null(v.note)}});
  return json;
}

inline OrderedJson json_of(const PaperLayer& p) {
  OrderedJson gates = OrderedJson::array();
  for (const PaperGate& g : p.gates) {
    gates.push_back({{"name", g.name},
                     {"params", g.params},
                     {"ppl", g.ppl},
                     {"delta_pct", g.delta_pct},
                     {"pct_linear", g.pct_linear}});
  }
  return {{"all_linear_ppl", p.all_linear_ppl},
          {"all_linear_delta_pct", p.all_linear_delta_pct},
          {"gates", gates}};
}

inline OrderedJson json_of(const std::vector<LambdaTrial>& trials) {
  OrderedJson list = OrderedJson::array();
  for (const LambdaTrial& t : trials) list.push_back({{"rho", t.rho}, {"nll_sum", t.nll_sum}});
  return list;
}

inline OrderedJson json_of(const MapError& e) {
  return {{"r2", e.r2},
          {"top_share", e.top_share},
          {"first_share", e.first_share},
          {"r2_without_top", e.r2_without_top},
          {"r2_without_first", e.r2_without_first}};
}

inline OrderedJson json_of(const LayerResult& l) {
  OrderedJson variants = OrderedJson::array();
  for (const VariantResult& v : l.variants) variants.push_back(json_of(v));
  OrderedJson json{{"layer", l.layer},
                   {"r2", l.r2},
                   {"condition", l.condition},
                   {"lambda", l.lambda},
                   {"lambda_trials", json_of(l.lambda_trials)},
                   {"map_error", l.map_error ? json_of(*l.map_error) : OrderedJson(nullptr)},
                   {"delta", json_of(l.delta)},
                   {"variants", variants}};
  if (l.paper) json["paper"] = json_of(*l.paper);
  return json;
}

namespace detail {

// What every file about layers begins with.
inline OrderedJson header_json(const StudyHeader& h, const char* command) {
  return {{"schema", "wanamaker/1"},
          {"command", command},
          {"protocol", json_of(h.protocol)},
          {"model", json_of(h.model)},
          {"fit", {{"documents", h.fit_documents}, {"tokens", h.fit_tokens}}},
          {"gate", {{"documents", h.gate_documents}, {"tokens", h.gate_tokens}}},
          {"baseline",
           {{"documents", h.baseline.documents},
            {"tokens", h.baseline.tokens},
            {"nll_sum", h.baseline.nll_sum},
            {"perplexity", h.baseline.perplexity}}}};
}

}  // namespace detail

/// sweep.json.
inline OrderedJson json_of(const SweepResult& r) {
  OrderedJson layers = OrderedJson::array();
  for (const LayerResult& l : r.layers) layers.push_back(json_of(l));
  OrderedJson json = detail::header_json(r, "sweep");
  json["layers"] = layers;
  return json;
}

inline OrderedJson json_of(const CurvePoint& p) {
  OrderedJson json{{"target", p.target},
                   {"select_delta_percent", detail::json_or_null(p.select_delta_percent)}};
  json.update(json_of(p.result));
  return json;
}

inline OrderedJson json_of(const GateCurve& c) {
  OrderedJson points = OrderedJson::array();
  for (const CurvePoint& p : c.points) points.push_back(json_of(p));
  return {{"gate", c.gate},
          {"area_nats", c.area_nats},
          {"area_below_random", c.area_below_random},
          {"share_of_oracle", detail::json_or_null(c.share_of_oracle)},
          {"operating_point", detail::json_or_null(c.operating_point)},
          {"points", points}};
}

inline OrderedJson json_of(const CurveLayer& l) {
  OrderedJson curves = OrderedJson::array();
  for (const GateCurve& c : l.curves) curves.push_back(json_of(c));
  return {{"layer", l.layer},
          {"r2", l.r2},
          {"lambda", l.lambda},
          {"lambda_trials", json_of(l.lambda_trials)},
          {"curves", curves}};
}

/// gate-curve.json.
inline OrderedJson json_of(const GateCurveResult& r) {
  OrderedJson layers = OrderedJson::array();
  for (const CurveLayer& l : r.layers) layers.push_back(json_of(l));
  OrderedJson json = detail::header_json(r, "gate-curve");
  json["max_loss_percent"] = r.max_loss_percent;
  json["layers"] = layers;
  return json;
}

inline OrderedJson json_of(const CompoundVariant& v) {
  OrderedJson json{
      {"name", v.name}, {"layers", v.layers}, {"perplexity", v.perplexity}, {"nll_sum", v.nll_sum}};
  json.update(json_of(v.comparison));
  json.update({{"verdict", std::string(name_of(v.verdict))},
               {"documents_needed", detail::json_or_null(v.documents_needed)},
               {"select_nll_sum", v.select_nll_sum},
               {"select_delta_percent", v.select_delta_percent},
               {"fraction_linear", v.fraction_linear},
               {"flops_fraction_mlp", v.flops_fraction_mlp},
               {"flops_fraction_total", v.flops_fraction_total},
               {"on_frontier", v.on_frontier}});
  return json;
}

namespace detail {

// Names on the frontier, from the most FLOPs to the fewest.
inline OrderedJson frontier_json(const std::vector<CompoundVariant>& variants) {
  std::vector<const CompoundVariant*> frontier;
  for (const CompoundVariant& v : variants) {
    if (v.on_frontier) frontier.push_back(&v);
  }
  std::stable_sort(frontier.begin(), frontier.end(), [](const auto* a, const auto* b) {
    return a->flops_fraction_total > b->flops_fraction_total;
  });
  OrderedJson list = OrderedJson::array();
  for (const CompoundVariant* v : frontier) {
    list.push_back({{"name", v->name},
                    {"flops_fraction_total", v->flops_fraction_total},
                    {"perplexity", v->perplexity}});
  }
  return list;
}

}  // namespace detail

/// compound.json.
inline OrderedJson json_of(const CompoundResult& r) {
  OrderedJson variants = OrderedJson::array();
  for (const CompoundVariant& v : r.variants) variants.push_back(json_of(v));
  OrderedJson json = detail::header_json(r, "compound");
  json["flop_budget"] = r.flop_budget;
  json["max_loss_percent"] = r.max_loss_percent;
  json["chosen"] = detail::json_or_null(r.chosen);
  json["variants"] = variants;
  json["frontier"] = detail::frontier_json(r.variants);
  return json;
}

inline OrderedJson json_of(const WrittenText& t) {
  OrderedJson layers = OrderedJson::array();
  for (const ReplacedLayer& l : t.replaced) {
    layers.push_back({{"layer", l.layer}, {"fraction_linear", l.fraction_linear}});
  }
  return {{"name", t.name},
          {"text", t.text},
          {"ids", t.generation.ids},
          {"stop", name_of(t.generation.stop)},
          {"nll_sum", sum_of(t.nats)},
          {"nats_per_token", mean_nats(t)},
          {"nats", t.nats},
          {"positions", t.positions},
          {"fraction_linear", t.fraction_linear},
          {"layers", layers}};
}

/// generate.json.
inline OrderedJson json_of(const GenerateResult& r) {
  const GenerationOptions& o = r.options.generation;
  OrderedJson texts = OrderedJson::array();
  for (const WrittenText& t : r.texts) texts.push_back(json_of(t));
  const bool compares = r.texts.size() == 2;
  return {
      {"schema", "wanamaker/1"},
      {"command", "generate"},
      {"protocol", json_of(r.protocol)},
      {"model", json_of(r.model)},
      {"fit", {{"documents", r.fit_documents}, {"tokens", r.fit_tokens}}},
      {"gate", {{"documents", r.gate_documents}, {"tokens", r.gate_tokens}}},
      {"options",
       {{"tokens", o.tokens},
        {"temperature", o.sampling.temperature},
        {"top_k", o.sampling.top_k},
        {"top_p", o.sampling.top_p},
        {"seed", o.sampling.seed},
        {"ends", o.ends},
        {"replace", name_of(r.options.replacement)}}},
      {"prompt", r.prompt_text},
      {"prompt_ids", r.prompt},
      {"common_tokens", compares ? OrderedJson(common_ids(r.texts[0], r.texts[1])) : OrderedJson()},
      {"texts", texts}};
}

/// export.json.
inline OrderedJson json_of(const ExportResult& r) {
  return {
      {"schema", "wanamaker/1"},
      {"command", "export"},
      {"protocol", json_of(r.protocol)},
      {"model", json_of(r.model)},
      {"fit", {{"documents", r.fit_documents}, {"tokens", r.fit_tokens}}},
      {"options",
       {{"replace", name_of(r.options.replacement)},
        {"dtype", r.options.as_float16 ? "float16" : "float32"},
        {"check_tokens", r.options.check_tokens}}},
      {"layers", r.layers},
      {"scale", r.scale},
      {"check", {{"tokens", r.check.nats.size()}, {"largest_difference", r.largest_difference}}}};
}

inline OrderedJson json_of(const AgainstRandom& a) {
  return {{"value", a.value}, {"random_mean", a.random_mean}, {"random_p95", a.random_p95}};
}

inline OrderedJson json_of(const ClusterSummary& c) {
  OrderedJson tokens = OrderedJson::array();
  for (const TokenCount& t : c.top_tokens) tokens.push_back({{"id", t.token}, {"count", t.count}});
  return {{"cluster", c.cluster},
          {"positions", c.positions},
          {"mean_delta", detail::json_or_null(c.mean_delta)},
          {"delta_p10", detail::json_or_null(c.delta_p10)},
          {"delta_p90", detail::json_or_null(c.delta_p90)},
          {"share_linear", detail::json_or_null(c.share_linear)},
          {"top_tokens", tokens}};
}

inline OrderedJson json_of(const ClusterLayer& l) {
  OrderedJson clusters = OrderedJson::array();
  for (const ClusterSummary& c : l.clusters) clusters.push_back(json_of(c));
  return {
      {"layer", l.layer},
      {"r2", l.r2},
      {"lambda", l.lambda},
      {"lambda_trials", json_of(l.lambda_trials)},
      {"components", l.components},
      {"variance_kept", l.variance_kept},
      {"fit_positions", l.fit_positions},
      {"inputs_explained", l.inputs_explained},
      {"converged", l.converged},
      {"silhouette", l.silhouette},
      {"silhouette_positions", l.silhouette_positions},
      {"delta_explained", l.delta_explained ? json_of(*l.delta_explained) : OrderedJson(nullptr)},
      {"delta_explained_adjusted", detail::json_or_null(l.delta_explained_adjusted)},
      {"delta_held_out_r2", detail::json_or_null(l.delta_held_out_r2)},
      {"decision_purity", json_of(l.decision_purity)},
      {"token_purity", json_of(l.token_purity)},
      {"clusters", clusters}};
}

/// clusters.json.
inline OrderedJson json_of(const ClustersResult& r) {
  OrderedJson layers = OrderedJson::array();
  for (const ClusterLayer& l : r.layers) layers.push_back(json_of(l));
  OrderedJson json = detail::header_json(r, "clusters");
  json["clusters"] = r.clusters;
  json["layers"] = layers;
  return json;
}

inline OrderedJson json_of(const ListComparison& c) {
  return {{"types", c.types},
          {"reliability_from", c.reliability_from},
          {"reliability_to", c.reliability_to},
          {"pearson", detail::json_or_null(c.pearson)},
          {"pearson_interval", detail::json_of(c.pearson_interval)},
          {"spearman", detail::json_or_null(c.spearman)},
          {"attainable", c.attainable},
          {"disattenuated", detail::json_or_null(c.disattenuated)},
          {"power", c.power},
          {"listed", c.listed},
          {"listed_positive", detail::json_or_null(c.listed_positive)},
          {"base_positive", detail::json_or_null(c.base_positive)},
          {"listed_flips", detail::json_or_null(c.listed_flips)},
          {"base_flips", detail::json_or_null(c.base_flips)},
          {"flips_by_chance", c.flips_by_chance},
          {"verdict", name_of(c.verdict)}};
}

inline OrderedJson json_of(const RoleVariance& v) {
  OrderedJson largest = OrderedJson::array();
  for (const TypeMean& t : v.largest) {
    largest.push_back({{"id", t.type}, {"count", t.count}, {"mean_delta", t.mean}});
  }
  return {{"role", name_of(v.role)},
          {"types", v.types},
          {"positions", v.positions},
          {"intraclass", detail::json_or_null(v.intraclass)},
          {"p_value", detail::json_or_null(v.p_value)},
          {"list_reliability", detail::json_or_null(v.list_reliability)},
          {"largest", largest}};
}

inline OrderedJson json_of(const TransferLayer& l) {
  OrderedJson variances = OrderedJson::array();
  for (const RoleVariance& v : l.variances) variances.push_back(json_of(v));
  OrderedJson pairs = OrderedJson::array();
  for (const ListPair& p : l.pairs) {
    OrderedJson pair{
        {"role", name_of(p.role)}, {"from", p.from}, {"to", p.to}, {"surrogate", p.surrogate}};
    pair.update(json_of(p.comparison));
    pairs.push_back(pair);
  }
  return {{"layer", l.layer},       {"r2", l.r2},
          {"lambda", l.lambda},     {"lambda_trials", json_of(l.lambda_trials)},
          {"variances", variances}, {"pairs", pairs}};
}

/// transfer.json.
inline OrderedJson json_of(const TransferResult& r) {
  OrderedJson layers = OrderedJson::array();
  for (const TransferLayer& l : r.layers) layers.push_back(json_of(l));
  OrderedJson json = detail::header_json(r, "transfer");
  json["corpora"] = r.corpora;
  json["layers"] = layers;
  return json;
}

inline OrderedJson json_of(const ProbeScore& p) {
  return {{"name", p.name},
          {"features", p.features},
          {"auc", p.auc ? OrderedJson(p.auc->auc) : OrderedJson(nullptr)},
          {"auc_interval", detail::json_of(p.interval.interval)},
          {"above_token_table", detail::json_or_null(p.above_token_table)},
          {"above_token_table_interval", detail::json_of(p.above_token_table_interval.interval)},
          {"note", detail::text_or_null(p.note)}};
}

inline OrderedJson json_of(const ProbeLayer& l) {
  OrderedJson probes = OrderedJson::array();
  for (const ProbeScore& p : l.probes) probes.push_back(json_of(p));
  OrderedJson parts = OrderedJson::array();
  for (const PartSummary& p : l.parts) {
    parts.push_back({{"name", p.name},
                     {"mean_norm", detail::json_or_null(p.mean_norm)},
                     {"length_share", detail::json_or_null(p.length_share)},
                     {"gate_share", detail::json_or_null(p.gate_share)}});
  }
  return {{"layer", l.layer},
          {"r2", l.r2},
          {"lambda", l.lambda},
          {"lambda_trials", json_of(l.lambda_trials)},
          {"positive_share", l.positive_share},
          {"probes", probes},
          {"parts", parts},
          {"token_context_cosine", detail::json_or_null(l.token_context_cosine)}};
}

/// probe.json.
inline OrderedJson json_of(const ProbeResult& r) {
  OrderedJson layers = OrderedJson::array();
  for (const ProbeLayer& l : r.layers) layers.push_back(json_of(l));
  OrderedJson json = detail::header_json(r, "probe");
  json["positions"] = r.positions;
  json["layers"] = layers;
  return json;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
