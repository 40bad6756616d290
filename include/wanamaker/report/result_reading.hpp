// Stored layers back from JSON, so that an interrupted sweep goes on where it was.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "wanamaker/io/json.hpp"
#include "wanamaker/study/sweep_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

// One value under a key. Throws FormatError where it is missing or of another type.
template <class T>
T value_at(const Json& json, const char* key, const std::string& where) {
  try {
    return json.at(key).get<T>();
  } catch (const Json::exception&) {
    throw FormatError({.id = "result/bad-value",
                       .where = where,
                       .what = std::string("key ") + key + " is missing or of another type",
                       .mend = "delete the file and run again without --resume"});
  }
}

inline std::optional<double> optional_at(const Json& json, const char* key,
                                         const std::string& where) {
  const auto item = json.find(key);
  if (item == json.end() || item->is_null()) return std::nullopt;
  return value_at<double>(json, key, where);
}

inline std::optional<Interval> interval_at(const Json& json, const char* key,
                                           const std::string& where) {
  const auto item = json.find(key);
  if (item == json.end() || item->is_null()) return std::nullopt;
  const auto ends = value_at<std::array<double, 2>>(json, key, where);
  return Interval{ends[0], ends[1]};
}

inline std::optional<IntervalMethod> method_named(const Json& json) {
  const auto item = json.find("ci_method");
  if (item == json.end() || !item->is_string()) return std::nullopt;
  for (const IntervalMethod method : {IntervalMethod::identical, IntervalMethod::cluster_t,
                                      IntervalMethod::percentile, IntervalMethod::bca}) {
    if (item->get<std::string>() == name_of(method)) return method;
  }
  return std::nullopt;
}

inline std::vector<PairedWarning> warnings_at(const Json& json) {
  std::vector<PairedWarning> warnings;
  for (const Json& text : json.value("warnings", Json::array())) {
    for (int w = 0; w <= static_cast<int>(PairedWarning::percent_saturated); ++w) {
      const PairedWarning warning = static_cast<PairedWarning>(w);
      if (text == std::string(describe(warning))) warnings.push_back(warning);
    }
  }
  return warnings;
}

inline std::vector<SummaryValue> summary_values_at(const Json& json, const char* key,
                                                   const char* at, const std::string& where) {
  std::vector<SummaryValue> values;
  for (const Json& item : value_at<Json>(json, key, where)) {
    values.push_back({value_at<double>(item, at, where), optional_at(item, "value", where)});
  }
  return values;
}

inline DistributionSummary distribution_at(const Json& json, const std::string& where) {
  return {.mean = value_at<double>(json, "mean", where),
          .standard_deviation = optional_at(json, "std", where),
          .quantiles = summary_values_at(json, "quantiles", "p", where),
          .share_below = summary_values_at(json, "share_below", "epsilon", where),
          .top_share = summary_values_at(json, "top_share", "fraction", where)};
}

inline PairedComparison comparison_at(const Json& json, const std::string& where) {
  PairedComparison c;
  c.delta_nats = value_at<double>(json, "delta_nats", where);
  c.delta_percent = value_at<double>(json, "delta_percent", where);
  c.ci_low_percent = optional_at(json, "ci_low_percent", where);
  c.ci_high_percent = optional_at(json, "ci_high_percent", where);
  c.method = method_named(json);
  c.p_value = optional_at(json, "p_value", where);
  c.sign_test.p_value = value_at<double>(json, "sign_test_p", where);
  c.naive_paired_percent = interval_at(json, "naive_paired_percent", where);
  c.naive_unpaired_percent = interval_at(json, "naive_unpaired_percent", where);
  c.warnings = warnings_at(json);
  return c;
}

inline VariantResult variant_at(const Json& json, const std::string& where) {
  VariantResult v{.name = value_at<std::string>(json, "name", where),
                  .parameters = value_at<double>(json, "parameters", where),
                  .nll_sum = value_at<double>(json, "nll_sum", where),
                  .perplexity = value_at<double>(json, "perplexity", where),
                  .comparison = comparison_at(json, where)};
  v.auc = optional_at(json, "auc", where);
  v.fraction_linear = optional_at(json, "fraction_linear", where);
  v.threshold = optional_at(json, "threshold", where);
  v.flops_fraction_mlp = optional_at(json, "flops_fraction_mlp", where);
  v.flops_fraction_total = optional_at(json, "flops_fraction_total", where);
  if (json.contains("note") && json["note"].is_string()) v.note = json["note"];
  return v;
}

}  // namespace detail

/// A layer of sweep.json. p-values adjusted over layers are left out: they are made anew from all
/// layers. Throws FormatError for missing or mistyped keys.
inline LayerResult layer_result_from_json(const Json& json, const std::string& where) {
  LayerResult layer{.layer = detail::value_at<Index>(json, "layer", where),
                    .r2 = detail::value_at<double>(json, "r2", where),
                    .condition = detail::value_at<double>(json, "condition", where),
                    .lambda = detail::value_at<double>(json, "lambda", where)};
  for (const Json& t : detail::value_at<Json>(json, "lambda_trials", where)) {
    layer.lambda_trials.push_back(
        {detail::value_at<double>(t, "rho", where), detail::value_at<double>(t, "nll_sum", where)});
  }
  layer.delta = detail::distribution_at(detail::value_at<Json>(json, "delta", where), where);
  for (const Json& v : detail::value_at<Json>(json, "variants", where)) {
    layer.variants.push_back(detail::variant_at(v, where));
  }
  return layer;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
