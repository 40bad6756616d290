// Results about single positions to JSON: marginal δ and features.
#pragma once

#include <string>
#include <vector>

#include "wanamaker/report/result_json.hpp"
#include "wanamaker/study/features_result.hpp"
#include "wanamaker/study/marginal_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

inline OrderedJson json_of(const MarginalGroup& g) {
  return {{"name", g.name},
          {"positions", g.positions},
          {"delta_sum", g.delta_sum},
          {"mean", detail::json_or_null(g.mean)},
          {"std", detail::json_or_null(g.standard_deviation)},
          {"share_of_magnitude", detail::json_or_null(g.share_of_magnitude)},
          {"share_linear", detail::json_or_null(g.share_linear)},
          {"output_norm", detail::json_or_null(g.output_norm)},
          {"change_norm", detail::json_or_null(g.change_norm)},
          {"stream_norm", detail::json_or_null(g.stream_norm)}};
}

inline OrderedJson json_of(const MarginalAgreement& a) {
  return {{"positions", a.positions},
          {"spearman", detail::json_or_null(a.spearman)},
          {"pearson", detail::json_or_null(a.pearson)},
          {"same_sign", detail::json_or_null(a.same_sign)},
          {"large", a.large},
          {"large_same_sign", detail::json_or_null(a.large_same_sign)},
          {"slope", detail::json_or_null(a.slope)}};
}

inline OrderedJson json_of(const MarginalDisagreement& d) {
  return {{"large", d.large},
          {"wrong", d.wrong},
          {"wrong_first", d.wrong_first},
          {"wrong_sinks", d.wrong_sinks},
          {"relative_change", detail::json_or_null(d.relative_change)},
          {"wrong_change", detail::json_or_null(d.wrong_change)},
          {"right_after_path", detail::json_or_null(d.right_after_path)}};
}

inline OrderedJson json_of(const WriterFigures& w) {
  return {{"first_norm_ratio", w.first_norm_ratio},
          {"is_writer", w.is_writer},
          {"is_catastrophic", w.is_catastrophic},
          {"linear_percent", w.linear_percent},
          {"first_position_percent", w.first_position_percent},
          {"norm_rule_percent", w.norm_rule_percent},
          {"logistic_percent", w.logistic_percent}};
}

inline OrderedJson json_of(const PatchedPosition& p) {
  return {{"position", p.position},
          {"place", p.place},
          {"token", p.token},
          {"group", p.group},
          {"first_order", p.first_order},
          {"exact", p.exact},
          {"integrated", detail::json_or_null(p.integrated)},
          {"relative_change", p.relative_change}};
}

inline OrderedJson json_of(const GateOfDelta& g) {
  return {{"positive_share", g.positive_share},
          {"fraction_linear", g.fraction_linear},
          {"comparison", json_of(g.comparison)},
          {"note", detail::text_or_null(g.note)}};
}

inline OrderedJson json_of(const GatesOfDelta& g) {
  return {{"layer", g.layer},
          {"positions", g.positions},
          {"spearman", detail::json_or_null(g.spearman)},
          {"same_sign", detail::json_or_null(g.same_sign)},
          {"joint", json_of(g.joint)},
          {"marginal", json_of(g.marginal)},
          {"difference", json_of(g.difference)}};
}

inline OrderedJson json_of(const MarginalLayer& l) {
  OrderedJson tokens = OrderedJson::array();
  for (const TypeMean& t : l.tokens) {
    tokens.push_back({{"id", t.type}, {"count", t.count}, {"mean_delta", t.mean}});
  }
  return {{"layer", l.layer},
          {"r2", l.r2},
          {"lambda", l.lambda},
          {"lambda_trials", json_of(l.lambda_trials)},
          {"groups", detail::json_list(l.groups)},
          {"first_order_sum", l.first_order_sum},
          {"joint_sum", l.joint_sum},
          {"integrated_sum", detail::json_or_null(l.integrated_sum)},
          {"agreement", json_of(l.agreement)},
          {"agreement_elsewhere", json_of(l.agreement_elsewhere)},
          {"integrated_agreement",
           l.integrated_agreement ? json_of(*l.integrated_agreement) : OrderedJson(nullptr)},
          {"disagreement", json_of(l.disagreement)},
          {"statement", l.statement},
          {"writer", json_of(l.writer)},
          {"gates", json_of(l.gates)},
          {"tokens", tokens},
          {"patches", detail::json_list(l.patches)},
          {"map", l.map}};
}

inline OrderedJson json_of(const WriterTest& t) {
  return {{"layers", t.layers},
          {"catastrophic", t.catastrophic},
          {"writers", t.writers},
          {"both", t.both},
          {"p_value", t.p_value},
          {"least_p_value", t.least_p_value},
          {"spearman", detail::json_or_null(t.spearman)},
          {"norm_rule_better", t.norm_rule_better},
          {"saved_by_first", t.saved_by_first},
          {"verdict", name_of(t.verdict)}};
}

inline OrderedJson json_of(const PatchCost& c) {
  return {{"patches", c.patches},
          {"passes", c.passes},
          {"block_rows_per_patch", c.block_rows_per_patch},
          {"scored_rows_per_patch", c.scored_rows_per_patch},
          {"naive_block_rows_per_patch", c.naive_block_rows_per_patch},
          {"naive_scored_rows_per_patch", c.naive_scored_rows_per_patch}};
}

/// marginal.json.
inline OrderedJson json_of(const MarginalResult& r) {
  OrderedJson positions = OrderedJson::array();
  for (const MapPosition& p : r.map_positions) {
    positions.push_back({{"document", p.document}, {"place", p.place}, {"token", p.token}});
  }
  OrderedJson json = detail::header_json(r, "marginal");
  json["options"] = {{"exact_positions", r.options.exact_positions},
                     {"integrated_steps", r.options.integrated_steps},
                     {"sink_ratio", r.options.sink_ratio},
                     {"catastrophic_percent", r.options.catastrophic_percent}};
  json["map_positions"] = positions;
  json["patch_cost"] = json_of(r.patch_cost);
  json["writers"] = json_of(r.writers);
  json["layers"] = detail::json_list(r.layers);
  return json;
}

inline OrderedJson json_of(const SingleFeature& f) {
  return {{"name", f.name},
          {"spearman", detail::json_or_null(f.spearman)},
          {"interval", detail::json_of(f.interval)}};
}

inline OrderedJson json_of(const FeatureFit& f) {
  return {{"method", f.method},
          {"scale", f.scale},
          {"r2", detail::json_or_null(f.r2)},
          {"r2_interval", detail::json_of(f.r2_interval)},
          {"detectable", detail::json_or_null(f.detectable)},
          {"spearman", detail::json_or_null(f.spearman)},
          {"verdict", name_of(f.verdict)}};
}

inline OrderedJson json_of(const FeatureSet& s) {
  return {{"name", s.name}, {"features", s.features}, {"fits", detail::json_list(s.fits)}};
}

inline OrderedJson json_of(const FeaturesLayer& l) {
  return {{"layer", l.layer},
          {"r2", l.r2},
          {"lambda", l.lambda},
          {"lambda_trials", json_of(l.lambda_trials)},
          {"mean_delta", l.mean_delta},
          {"features", detail::json_list(l.features)},
          {"sets", detail::json_list(l.sets)}};
}

/// features.json.
inline OrderedJson json_of(const FeaturesResult& r) {
  OrderedJson json = detail::header_json(r, "features");
  json["folds"] = r.folds;
  json["smallest_effect"] = r.smallest_effect;
  json["layers"] = detail::json_list(r.layers);
  return json;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
