// Stored layers back from JSON, so that an interrupted sweep goes on where it was.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "wanamaker/io/json.hpp"
#include "wanamaker/study/compound_result.hpp"
#include "wanamaker/study/gate_curve_result.hpp"
#include "wanamaker/study/sweep_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// False for numbers that are no integers of this type: nlohmann would cast them, which beyond the
/// type's range is undefined.
template <class T>
bool holds_integer(const Json& value) {
  if (value.is_number_unsigned()) return std::in_range<T>(value.get<std::uint64_t>());
  return value.is_number_integer() && std::in_range<T>(value.get<std::int64_t>());
}

template <class T>
bool holds_type(const Json& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value.is_boolean();
  } else if constexpr (std::is_integral_v<T>) {
    return holds_integer<T>(value);
  } else if constexpr (std::is_same_v<T, std::vector<Index>>) {
    return std::all_of(value.begin(), value.end(), holds_integer<Index>);
  } else {
    return true;  // get() throws
  }
}

// One value under a key. Throws FormatError where it is missing or of another type.
template <class T>
T value_at(const Json& json, const char* key, const std::string& where) {
  try {
    const Json& value = json.at(key);
    if (holds_type<T>(value)) return value.get<T>();
  } catch (const Json::exception&) {  // as where the type is another
  }
  throw FormatError({.id = "result/bad-value",
                     .where = where,
                     .what = std::string("key ") + key + " is missing or of another type",
                     .mend = "delete the file and run again without --resume"});
}

inline std::optional<double> optional_at(const Json& json, const char* key,
                                         const std::string& where) {
  const auto item = json.find(key);
  if (item == json.end() || item->is_null()) return std::nullopt;
  return value_at<double>(json, key, where);
}

/// Empty where there is no text under the key.
inline std::string text_or_empty_at(const Json& json, const char* key) {
  const auto item = json.find(key);
  return item != json.end() && item->is_string() ? item->get<std::string>() : std::string();
}

inline std::optional<Index> optional_count_at(const Json& json, const char* key,
                                              const std::string& where) {
  if (!optional_at(json, key, where)) return std::nullopt;
  return value_at<Index>(json, key, where);
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
  v.calibration_error = optional_at(json, "calibration_error", where);
  v.brier_score = optional_at(json, "brier_score", where);
  v.fraction_linear = optional_at(json, "fraction_linear", where);
  v.threshold = optional_at(json, "threshold", where);
  v.flops_fraction_mlp = optional_at(json, "flops_fraction_mlp", where);
  v.flops_fraction_total = optional_at(json, "flops_fraction_total", where);
  v.note = text_or_empty_at(json, "note");
  return v;
}

inline std::vector<LambdaTrial> lambda_trials_at(const Json& json, const std::string& where) {
  std::vector<LambdaTrial> trials;
  for (const Json& t : value_at<Json>(json, "lambda_trials", where)) {
    trials.push_back({value_at<double>(t, "rho", where), value_at<double>(t, "nll_sum", where)});
  }
  return trials;
}

}  // namespace detail

/// Where the map's error comes from, of a layer of sweep.json.
inline MapError map_error_from_json(const Json& json, const std::string& where) {
  const auto number = [&](const char* key) { return detail::value_at<double>(json, key, where); };
  return {number("r2"), number("top_share"), number("first_share"), number("r2_without_top"),
          number("r2_without_first")};
}

/// A layer of sweep.json. p-values adjusted over layers are left out: they are made anew from all
/// layers. Throws FormatError for missing or mistyped keys.
inline PaperLayer paper_layer_from_json(const Json& json, const std::string& where) {
  PaperLayer paper{
      .all_linear_ppl = detail::value_at<double>(json, "all_linear_ppl", where),
      .all_linear_delta_pct = detail::value_at<double>(json, "all_linear_delta_pct", where)};
  for (const Json& g : detail::value_at<Json>(json, "gates", where)) {
    paper.gates.push_back({.name = detail::value_at<std::string>(g, "name", where),
                           .params = detail::value_at<double>(g, "params", where),
                           .ppl = detail::value_at<double>(g, "ppl", where),
                           .delta_pct = detail::value_at<double>(g, "delta_pct", where),
                           .pct_linear = detail::value_at<double>(g, "pct_linear", where)});
  }
  return paper;
}

inline LayerResult layer_result_from_json(const Json& json, const std::string& where) {
  LayerResult layer{.layer = detail::value_at<Index>(json, "layer", where),
                    .r2 = detail::value_at<double>(json, "r2", where),
                    .condition = detail::value_at<double>(json, "condition", where),
                    .lambda = detail::value_at<double>(json, "lambda", where)};
  layer.lambda_trials = detail::lambda_trials_at(json, where);
  const auto error = detail::value_at<Json>(json, "map_error", where);
  if (!error.is_null()) layer.map_error = map_error_from_json(error, where);
  layer.delta = detail::distribution_at(detail::value_at<Json>(json, "delta", where), where);
  for (const Json& v : detail::value_at<Json>(json, "variants", where)) {
    layer.variants.push_back(detail::variant_at(v, where));
  }
  if (json.contains("paper")) layer.paper = paper_layer_from_json(json["paper"], where);
  return layer;
}

namespace detail {

inline GateCurve curve_at(const Json& json, const std::string& where) {
  GateCurve curve{.gate = value_at<std::string>(json, "gate", where),
                  .area_nats = value_at<double>(json, "area_nats", where),
                  .area_below_random = value_at<double>(json, "area_below_random", where),
                  .share_of_oracle = optional_at(json, "share_of_oracle", where)};
  for (const Json& p : value_at<Json>(json, "points", where)) {
    curve.points.push_back({.target = value_at<double>(p, "target", where),
                            .select_delta_percent = optional_at(p, "select_delta_percent", where),
                            .result = variant_at(p, where)});
  }
  curve.operating_point = optional_count_at(json, "operating_point", where);
  return curve;
}

}  // namespace detail

/// A layer of gate-curve.json. Throws FormatError for missing or mistyped keys.
inline CurveLayer curve_layer_from_json(const Json& json, const std::string& where) {
  CurveLayer layer{.layer = detail::value_at<Index>(json, "layer", where),
                   .r2 = detail::value_at<double>(json, "r2", where),
                   .lambda = detail::value_at<double>(json, "lambda", where),
                   .lambda_trials = detail::lambda_trials_at(json, where)};
  for (const Json& c : detail::value_at<Json>(json, "curves", where)) {
    layer.curves.push_back(detail::curve_at(c, where));
  }
  return layer;
}

namespace detail {

inline NonInferiorityVerdict verdict_at(const Json& json, const std::string& where) {
  const auto name = value_at<std::string>(json, "verdict", where);
  for (const auto verdict : {NonInferiorityVerdict::non_inferior, NonInferiorityVerdict::inferior,
                             NonInferiorityVerdict::undecided}) {
    if (name == name_of(verdict)) return verdict;
  }
  return NonInferiorityVerdict::no_interval;
}

}  // namespace detail

/// A variant of compound.json, `on_frontier` left out: that depends on the others. Throws
/// FormatError for missing or mistyped keys.
inline CompoundVariant compound_variant_from_json(const Json& json, const std::string& where) {
  const auto number = [&](const char* key) { return detail::value_at<double>(json, key, where); };
  return {.name = detail::value_at<std::string>(json, "name", where),
          .layers = detail::value_at<std::vector<Index>>(json, "layers", where),
          .select_nll_sum = number("select_nll_sum"),
          .select_delta_percent = number("select_delta_percent"),
          .nll_sum = number("nll_sum"),
          .perplexity = number("perplexity"),
          .comparison = detail::comparison_at(json, where),
          .verdict = detail::verdict_at(json, where),
          .documents_needed = detail::optional_count_at(json, "documents_needed", where),
          .fraction_linear = number("fraction_linear"),
          .flops_fraction_mlp = number("flops_fraction_mlp"),
          .flops_fraction_total = number("flops_fraction_total")};
}

}  // namespace wanamaker::inline WANAMAKER_ABI
