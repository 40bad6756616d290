// Examples to JSON and stored layers back, as tables and as CSV.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/report/position_json.hpp"
#include "wanamaker/report/routing_reading.hpp"
#include "wanamaker/report/routing_tables.hpp"
#include "wanamaker/study/forensics_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

inline OrderedJson json_of(const TypeScore& t) {
  return {{"id", t.type}, {"count", t.count}, {"logit", t.logit}, {"mean_delta", t.delta}};
}

inline OrderedJson json_of(const Passage& p) {
  return {{"document", p.document}, {"tokens", p.tokens}, {"targets", p.targets}};
}

inline OrderedJson json_of(const ForensicsLayer& l) {
  return {{"layer", l.layer},
          {"r2", l.r2},
          {"lambda", l.lambda},
          {"lambda_trials", json_of(l.lambda_trials)},
          {"fraction_linear", l.fraction_linear},
          {"auc", detail::json_or_null(l.auc)},
          {"direction", l.direction},
          {"bias", l.bias},
          {"types", l.types},
          {"type_spearman", detail::json_or_null(l.type_spearman)},
          {"function_words", detail::json_or_null(l.function_words)},
          {"logit_deviation", detail::json_or_null(l.logit_deviation)},
          {"top", detail::json_list(l.top)},
          {"bottom", detail::json_list(l.bottom)},
          {"delta", l.delta},
          {"probability", l.probability}};
}

/// forensics.json.
inline OrderedJson json_of(const ForensicsResult& r) {
  OrderedJson json = detail::header_json(r, "forensics");
  json["passages"] = detail::json_list(r.passages);
  json["layers"] = detail::json_list(r.layers);
  return json;
}

namespace detail {

inline TypeScore type_score_at(const Json& json, const std::string& where) {
  return {value_at<TokenId>(json, "id", where), value_at<Index>(json, "count", where),
          value_at<double>(json, "logit", where), value_at<double>(json, "mean_delta", where)};
}

}  // namespace detail

/// A layer of forensics.json. Throws FormatError for missing or mistyped keys.
inline ForensicsLayer forensics_layer_from_json(const Json& json, const std::string& where) {
  using Numbers = std::vector<double>;
  auto layer = detail::fitted_layer_at<ForensicsLayer>(json, where);
  layer.fraction_linear = detail::value_at<double>(json, "fraction_linear", where);
  layer.auc = detail::optional_at(json, "auc", where);
  layer.direction = detail::value_at<Numbers>(json, "direction", where);
  layer.bias = detail::value_at<double>(json, "bias", where);
  layer.types = detail::value_at<Index>(json, "types", where);
  layer.type_spearman = detail::optional_at(json, "type_spearman", where);
  layer.function_words = detail::optional_at(json, "function_words", where);
  layer.logit_deviation = detail::optional_at(json, "logit_deviation", where);
  layer.top = detail::list_at(json, "top", where, detail::type_score_at);
  layer.bottom = detail::list_at(json, "bottom", where, detail::type_score_at);
  layer.delta = detail::value_at<Numbers>(json, "delta", where);
  layer.probability = detail::value_at<Numbers>(json, "probability", where);
  return layer;
}

namespace detail {

inline std::string labels_of(const std::vector<TypeScore>& types,
                             std::span<const std::string> spellings, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < std::min(count, types.size()); ++i) {
    text += (i > 0 ? " " : "") + token_label(types[i].type, spellings);
  }
  return text;
}

}  // namespace detail

/// One line for each layer: the gate, and the tokens at the ends of the direction that it reads.
inline TextTable forensics_table(const ForensicsResult& result,
                                 std::span<const std::string> spellings) {
  TextTable table(
      {"layer", "routed", "AUC", "ρ of types", "function words", "to the map", "to the MLP"});
  constexpr std::size_t shown = 4;
  for (const ForensicsLayer& l : result.layers) {
    std::string gap = "–";
    if (l.function_words && l.logit_deviation && *l.logit_deviation > 0) {
      gap = signed_text(*l.function_words / *l.logit_deviation, 2) + " σ";
    }
    table.add({std::to_string(l.layer), detail::percent_text(l.fraction_linear),
               detail::fixed_or_dash(l.auc, 3), detail::signed_or_dash(l.type_spearman, 2), gap,
               detail::labels_of(l.top, spellings, shown),
               detail::labels_of(l.bottom, spellings, shown)});
  }
  return table;
}

/// visit(layer, passage, number in it, number among all) for every shown position.
template <class Visit>
void for_each_position(const ForensicsResult& result, const Visit& visit) {
  for (const ForensicsLayer& layer : result.layers) {
    std::size_t at = 0;
    for (const Passage& passage : result.passages) {
      for (std::size_t i = 0; i < passage.tokens.size(); ++i) visit(layer, passage, i, at++);
    }
  }
}

/// Every shown position of every layer.
inline TextTable forensics_csv(const ForensicsResult& result,
                               std::span<const std::string> spellings) {
  TextTable table({"layer", "document", "position", "token", "text", "target", "target_text",
                   "delta", "probability", "routed"});
  for_each_position(result, [&](const ForensicsLayer& layer, const Passage& passage, std::size_t i,
                                std::size_t at) {
    table.add({std::to_string(layer.layer), std::to_string(passage.document), std::to_string(i),
               std::to_string(passage.tokens[i]), token_label(passage.tokens[i], spellings),
               std::to_string(passage.targets[i]), token_label(passage.targets[i], spellings),
               exact_text(layer.delta[at]), exact_text(layer.probability[at]),
               layer.probability[at] > 0.5 ? "1" : "0"});
  });
  return table;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
