// Stored layers of the experiments on the routing decision back from JSON, so that an interrupted
// run goes on where it was.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/report/result_reading.hpp"
#include "wanamaker/study/clusters_result.hpp"
#include "wanamaker/study/features_result.hpp"
#include "wanamaker/study/marginal_result.hpp"
#include "wanamaker/study/probe_result.hpp"
#include "wanamaker/study/transfer_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// read(element, where) of every element of the list under a key.
template <class Read>
auto list_at(const Json& json, const char* key, const std::string& where, const Read& read) {
  std::vector<decltype(read(json, where))> list;
  for (const Json& item : value_at<Json>(json, key, where)) list.push_back(read(item, where));
  return list;
}

/// The first of `values` that name_of calls by the text under the key. Throws FormatError.
template <class Value, std::size_t N>
Value named_value_at(const Json& json, const char* key, const std::string& where,
                     const std::array<Value, N>& values) {
  const std::string name = value_at<std::string>(json, key, where);
  for (const Value value : values) {
    if (name == name_of(value)) return value;
  }
  throw FormatError({.id = "result/bad-value",
                     .where = where,
                     .what = std::string("key ") + key + " has an unknown value",
                     .expected = name_of(values.front()),
                     .found = name,
                     .mend = "delete the file and run again without --resume"});
}

/// layer, r2, lambda and lambda_trials, which every layer begins with.
template <class Layer>
Layer fitted_layer_at(const Json& json, const std::string& where) {
  Layer layer{};
  layer.layer = value_at<Index>(json, "layer", where);
  layer.r2 = value_at<double>(json, "r2", where);
  layer.lambda = value_at<double>(json, "lambda", where);
  layer.lambda_trials = lambda_trials_at(json, where);
  return layer;
}

inline ProbeScore probe_score_at(const Json& json, const std::string& where) {
  ProbeScore probe{.name = value_at<std::string>(json, "name", where),
                   .features = value_at<Index>(json, "features", where)};
  if (const auto auc = optional_at(json, "auc", where)) probe.auc = AucEstimate{.auc = *auc};
  probe.interval.interval = interval_at(json, "auc_interval", where);
  probe.above_token_table = optional_at(json, "above_token_table", where);
  probe.above_token_table_interval.interval =
      interval_at(json, "above_token_table_interval", where);
  probe.note = text_or_empty_at(json, "note");
  return probe;
}

inline PartSummary part_summary_at(const Json& json, const std::string& where) {
  return {value_at<std::string>(json, "name", where), optional_at(json, "mean_norm", where),
          optional_at(json, "length_share", where), optional_at(json, "gate_share", where)};
}

inline GateOfDelta gate_of_delta_at(const Json& json, const char* key, const std::string& where) {
  const Json own = value_at<Json>(json, key, where);
  GateOfDelta gate{.positive_share = value_at<double>(own, "positive_share", where),
                   .fraction_linear = value_at<double>(own, "fraction_linear", where)};
  gate.comparison = comparison_at(value_at<Json>(own, "comparison", where), where);
  gate.note = text_or_empty_at(own, "note");
  return gate;
}

inline AgainstRandom against_random_at(const Json& json, const std::string& where) {
  return {value_at<double>(json, "value", where), value_at<double>(json, "random_mean", where),
          value_at<double>(json, "random_p95", where)};
}

inline TokenCount token_count_at(const Json& json, const std::string& where) {
  return {value_at<TokenId>(json, "id", where), value_at<Index>(json, "count", where)};
}

inline ClusterSummary cluster_summary_at(const Json& json, const std::string& where) {
  ClusterSummary cluster{.cluster = value_at<Index>(json, "cluster", where),
                         .positions = value_at<Index>(json, "positions", where)};
  cluster.mean_delta = optional_at(json, "mean_delta", where);
  cluster.delta_p10 = optional_at(json, "delta_p10", where);
  cluster.delta_p90 = optional_at(json, "delta_p90", where);
  cluster.share_linear = optional_at(json, "share_linear", where);
  cluster.top_tokens = list_at(json, "top_tokens", where, token_count_at);
  return cluster;
}

inline TypeMean type_mean_at(const Json& json, const std::string& where) {
  return {value_at<TokenId>(json, "id", where), value_at<Index>(json, "count", where),
          value_at<double>(json, "mean_delta", where)};
}

inline TokenRole token_role_at(const Json& json, const std::string& where) {
  return named_value_at(json, "role", where, std::array{TokenRole::input, TokenRole::target});
}

inline RoleVariance role_variance_at(const Json& json, const std::string& where) {
  RoleVariance variance{.role = token_role_at(json, where),
                        .types = value_at<Index>(json, "types", where),
                        .positions = value_at<Index>(json, "positions", where)};
  variance.intraclass = optional_at(json, "intraclass", where);
  variance.p_value = optional_at(json, "p_value", where);
  variance.list_reliability = optional_at(json, "list_reliability", where);
  variance.largest = list_at(json, "largest", where, type_mean_at);
  return variance;
}

inline ListComparison list_comparison_at(const Json& json, const std::string& where) {
  ListComparison c{.types = value_at<Index>(json, "types", where),
                   .reliability_from = value_at<double>(json, "reliability_from", where),
                   .reliability_to = value_at<double>(json, "reliability_to", where)};
  c.pearson = optional_at(json, "pearson", where);
  c.spearman = optional_at(json, "spearman", where);
  c.pearson_interval = interval_at(json, "pearson_interval", where);
  c.attainable = value_at<double>(json, "attainable", where);
  c.disattenuated = optional_at(json, "disattenuated", where);
  c.power = value_at<double>(json, "power", where);
  c.listed = value_at<Index>(json, "listed", where);
  c.listed_positive = optional_at(json, "listed_positive", where);
  c.base_positive = optional_at(json, "base_positive", where);
  c.listed_flips = optional_at(json, "listed_flips", where);
  c.base_flips = optional_at(json, "base_flips", where);
  c.flips_by_chance = value_at<double>(json, "flips_by_chance", where);
  c.verdict =
      named_value_at(json, "verdict", where,
                     std::array{TransferVerdict::transfers, TransferVerdict::partly,
                                TransferVerdict::reverses, TransferVerdict::does_not,
                                TransferVerdict::no_power, TransferVerdict::not_comparable});
  return c;
}

inline ListPair list_pair_at(const Json& json, const std::string& where) {
  return {token_role_at(json, where), value_at<std::string>(json, "from", where),
          value_at<std::string>(json, "to", where), value_at<std::string>(json, "surrogate", where),
          list_comparison_at(json, where)};
}

inline SingleFeature single_feature_at(const Json& json, const std::string& where) {
  return {value_at<std::string>(json, "name", where), optional_at(json, "spearman", where),
          interval_at(json, "interval", where)};
}

inline FeatureFit feature_fit_at(const Json& json, const std::string& where) {
  FeatureFit fit{.method = value_at<std::string>(json, "method", where),
                 .scale = value_at<std::string>(json, "scale", where)};
  fit.r2 = optional_at(json, "r2", where);
  fit.r2_interval = interval_at(json, "r2_interval", where);
  fit.detectable = optional_at(json, "detectable", where);
  fit.spearman = optional_at(json, "spearman", where);
  fit.verdict =
      named_value_at(json, "verdict", where,
                     std::array{FeatureVerdict::explains, FeatureVerdict::less_than,
                                FeatureVerdict::no_power, FeatureVerdict::not_measurable});
  return fit;
}

inline FeatureSet feature_set_at(const Json& json, const std::string& where) {
  return {value_at<std::string>(json, "name", where),
          value_at<std::vector<std::string>>(json, "features", where),
          list_at(json, "fits", where, feature_fit_at)};
}

}  // namespace detail

/// Gates of a layer of marginal.json. Throws FormatError for missing or mistyped keys, as all here.
inline GatesOfDelta gates_of_delta_from_json(const Json& json, const std::string& where) {
  GatesOfDelta gates{.layer = detail::value_at<Index>(json, "layer", where),
                     .positions = detail::value_at<Index>(json, "positions", where)};
  gates.spearman = detail::optional_at(json, "spearman", where);
  gates.same_sign = detail::optional_at(json, "same_sign", where);
  gates.joint = detail::gate_of_delta_at(json, "joint", where);
  gates.marginal = detail::gate_of_delta_at(json, "marginal", where);
  gates.difference =
      detail::comparison_at(detail::value_at<Json>(json, "difference", where), where);
  return gates;
}

/// A layer of probe.json.
inline ProbeLayer probe_layer_from_json(const Json& json, const std::string& where) {
  auto layer = detail::fitted_layer_at<ProbeLayer>(json, where);
  layer.positive_share = detail::value_at<double>(json, "positive_share", where);
  layer.probes = detail::list_at(json, "probes", where, detail::probe_score_at);
  layer.parts = detail::list_at(json, "parts", where, detail::part_summary_at);
  layer.token_context_cosine = detail::optional_at(json, "token_context_cosine", where);
  return layer;
}

/// A layer of clusters.json.
inline ClusterLayer cluster_layer_from_json(const Json& json, const std::string& where) {
  const auto number = [&](const char* key) { return detail::value_at<double>(json, key, where); };
  const auto count = [&](const char* key) { return detail::value_at<Index>(json, key, where); };
  const auto part = [&](const char* key) { return detail::value_at<Json>(json, key, where); };
  auto layer = detail::fitted_layer_at<ClusterLayer>(json, where);
  layer.components = count("components");
  layer.variance_kept = number("variance_kept");
  layer.fit_positions = count("fit_positions");
  layer.inputs_explained = number("inputs_explained");
  layer.converged = detail::value_at<bool>(json, "converged", where);
  layer.silhouette = number("silhouette");
  layer.silhouette_positions = count("silhouette_positions");
  if (const Json explained = part("delta_explained"); !explained.is_null()) {
    layer.delta_explained = detail::against_random_at(explained, where);
  }
  layer.delta_explained_adjusted = detail::optional_at(json, "delta_explained_adjusted", where);
  layer.delta_held_out_r2 = detail::optional_at(json, "delta_held_out_r2", where);
  layer.decision_purity = detail::against_random_at(part("decision_purity"), where);
  layer.token_purity = detail::against_random_at(part("token_purity"), where);
  layer.clusters = detail::list_at(json, "clusters", where, detail::cluster_summary_at);
  return layer;
}

/// A layer of transfer.json.
inline TransferLayer transfer_layer_from_json(const Json& json, const std::string& where) {
  auto layer = detail::fitted_layer_at<TransferLayer>(json, where);
  layer.variances = detail::list_at(json, "variances", where, detail::role_variance_at);
  layer.pairs = detail::list_at(json, "pairs", where, detail::list_pair_at);
  return layer;
}

/// A layer of features.json.
inline FeaturesLayer features_layer_from_json(const Json& json, const std::string& where) {
  auto layer = detail::fitted_layer_at<FeaturesLayer>(json, where);
  layer.mean_delta = detail::value_at<double>(json, "mean_delta", where);
  layer.features = detail::list_at(json, "features", where, detail::single_feature_at);
  layer.sets = detail::list_at(json, "sets", where, detail::feature_set_at);
  return layer;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
