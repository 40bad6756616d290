// The search for a cheaper model to JSON, and tables of costs back.
#pragma once

#include <cmath>
#include <string>

#include "wanamaker/report/result_json.hpp"
#include "wanamaker/report/result_reading.hpp"
#include "wanamaker/study/optimise_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

inline OrderedJson json_of(const CostTable& t) {
  OrderedJson parts = OrderedJson::object();
  for (const auto& [part, cost] : t.parts) parts[part] = cost;
  return {{"for", std::string(name_of(t.kind))},
          {"batch", t.batch},
          {"layers", t.layers},
          {"width", t.width},
          {"tokens", t.tokens},
          {"repetitions", t.repetitions},
          {"parts", parts}};
}

/// "costs" of an optimise.times.json. Throws FormatError ("result/bad-value") for missing or
/// mistyped keys, and for costs that are not finite.
inline CostTable cost_table_from_json(const Json& json, const std::string& where) {
  const auto count = [&](const char* key) { return detail::value_at<Index>(json, key, where); };
  const auto kind = cost_kind_named(detail::value_at<std::string>(json, "for", where));
  CostTable table{.kind = kind.value_or(CostKind::decode),
                  .batch = count("batch"),
                  .layers = count("layers"),
                  .width = count("width"),
                  .tokens = count("tokens"),
                  .repetitions = count("repetitions")};
  const Json parts = detail::value_at<Json>(json, "parts", where);
  bool fits = kind.has_value() && parts.is_object();
  for (auto part = parts.begin(); fits && part != parts.end(); ++part) {
    fits = part->is_number() && std::isfinite(part->get<double>());
    if (fits) table.parts[part.key()] = part->get<double>();
  }
  if (fits) return table;
  throw FormatError({.id = "result/bad-value",
                     .where = where,
                     .what = "not a table of costs",
                     .expected = "\"for\": prefill, decode or parameters; \"parts\" with a number "
                                 "for each",
                     .mend = "give the optimise.times.json of a run, or leave --costs out"});
}

inline OrderedJson json_of(const BlockChange& c) {
  return {{"layer", c.layer}, {"now", c.now}, {"routed", detail::json_or_null(c.routed)}};
}

inline OrderedJson json_of(const OptimisePoint& p) {
  OrderedJson changes = OrderedJson::array();
  for (const BlockChange& c : p.changes) changes.push_back(json_of(c));
  OrderedJson json{{"move", p.move},
                   {"changes", changes},
                   {"cost", p.cost},
                   {"cost_fraction", p.cost_fraction},
                   {"parameters", p.parameters},
                   {"weight_bytes", p.weight_bytes},
                   {"select_nll_sum", p.select_nll_sum},
                   {"select_delta_percent", p.select_delta_percent},
                   {"within", p.within},
                   {"perplexity", p.perplexity},
                   {"nll_sum", p.nll_sum}};
  json.update(json_of(p.comparison));
  json["verdict"] = std::string(name_of(p.verdict));
  return json;
}

inline OrderedJson json_of(const OtherText& t) {
  OrderedJson json{{"documents", t.documents},
                   {"tokens", t.tokens},
                   {"baseline_perplexity", t.baseline_perplexity},
                   {"perplexity", t.perplexity}};
  json.update(json_of(t.comparison));
  return json;
}

namespace detail {

inline OrderedJson json_of(const std::optional<OtherText>& t) {
  return t ? wanamaker::json_of(*t) : OrderedJson(nullptr);
}

inline OrderedJson json_of(const OptimiseOptions& o) {
  return {{"for", std::string(name_of(o.cost))},    {"batch", o.batch},
          {"max_loss_percent", o.max_loss_percent}, {"shares", o.shares},
          {"steps_beyond", o.steps_beyond},         {"heal_tokens", o.heal.tokens}};
}

}  // namespace detail

inline OrderedJson json_of(const OptimisePath& p) {
  OrderedJson points = OrderedJson::array();
  for (const OptimisePoint& point : p.points) points.push_back(json_of(point));
  return {{"name", p.name},
          {"chosen", detail::json_or_null(p.chosen)},
          {"other_text", detail::json_of(p.other)},
          {"points", points}};
}

inline OrderedJson json_of(const HealedModel& h) {
  OrderedJson json{{"steps", h.steps},
                   {"tokens", h.tokens},
                   {"first_loss", h.first_loss},
                   {"last_loss", h.last_loss},
                   {"select_delta_percent", h.select_delta_percent},
                   {"perplexity", h.perplexity}};
  json.update(json_of(h.comparison));
  json["verdict"] = std::string(name_of(h.verdict));
  json["other_text"] = detail::json_of(h.other);
  return json;
}

inline OrderedJson json_of(const ExportedModel& e) {
  return {{"has_gates", e.has_gates}, {"largest_difference", e.largest_difference}};
}

/// optimise.json: nothing that was timed in this run but through the table of costs.
inline OrderedJson json_of(const OptimiseResult& r) {
  OrderedJson paths = OrderedJson::array();
  for (const OptimisePath& p : r.paths) paths.push_back(json_of(p));
  OrderedJson json = detail::header_json(r, "optimise");
  json["options"] = detail::json_of(r.options);
  json["cost"] = r.cost;
  json["weight_bytes"] = r.weight_bytes;
  json["paths"] = paths;
  json["healed"] = r.healed ? json_of(*r.healed) : OrderedJson(nullptr);
  json["exported"] = r.exported ? json_of(*r.exported) : OrderedJson(nullptr);
  return json;
}

/// What optimise.times.json has beside seconds and threads.
inline OrderedJson times_json_of(const OptimiseResult& r) {
  OrderedJson speeds = OrderedJson::array();
  for (const MeasuredSpeed& s : r.speeds) {
    speeds.push_back({{"name", s.name}, {"tokens_per_second", s.tokens_per_second}});
  }
  return {{"costs", json_of(r.costs)}, {"speeds", speeds}};
}

}  // namespace wanamaker::inline WANAMAKER_ABI
