// Two sets of results side by side: figures that both have, and whether they may be compared at
// all.
#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/io/json.hpp"
#include "wanamaker/io/json_writing.hpp"
#include "wanamaker/report/published_figures.hpp"
#include "wanamaker/report/report_text.hpp"
#include "wanamaker/report/text_table.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A figure that both sides have.
struct FigurePair {
  std::string place{};
  std::string name{};
  Estimate a{}, b{};

  /// B − A.
  double difference() const { return *b.value - *a.value; }
  /// Whether the intervals lie apart; nothing where one has none. Apart means different; those that
  /// overlap may still be.
  std::optional<bool> apart() const {
    if (!a.low || !a.high || !b.low || !b.high) return std::nullopt;
    return *a.high < *b.low || *b.high < *a.low;
  }
};

/// One model on both sides: where the protocols differ, and the figures that both have.
struct ModelComparison {
  ComparedModel a{}, b{};
  std::vector<std::string> differences{};  ///< of the protocols; empty: comparable
  std::vector<FigurePair> pairs{};
  std::size_t only_a = 0, only_b = 0;  ///< figures that the other side lacks
};

namespace detail {

inline ModelResults single_result(const std::filesystem::path& file, Json json) {
  ModelResults model;
  model.name = ResultView(json, file.string())["model"].text("name");
  model.results.emplace(ResultView(json, file.string()).text("command"), std::move(json));
  return model;
}

using ProtocolFields = std::vector<std::pair<std::string, std::string>>;

inline std::string field_of(const ProtocolFields& fields, const std::string& key) {
  for (const auto& [name, value] : fields) {
    if (name == key) return value;
  }
  return "";
}

/// Keys that two protocols have differently, with both values.
inline void add_differences(std::vector<std::string>& differences, const std::string& command,
                            const ProtocolFields& a, const ProtocolFields& b) {
  std::vector<std::string> keys;
  for (const ProtocolFields* fields : {&a, &b}) {
    for (const auto& [key, value] : *fields) keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (const std::string& key : keys) {
    const std::string of_a = field_of(a, key), of_b = field_of(b, key);
    if (of_a == of_b) continue;
    differences.push_back(command + ": " + key + " " + text_or_dash(of_a.substr(0, 40)) +
                          " against " + text_or_dash(of_b.substr(0, 40)));
  }
}

/// Ours against a published file: the same procedure and the same shape of model.
inline void add_published_differences(std::vector<std::string>& differences,
                                      const ComparedModel& ours, const ComparedModel& published) {
  for (const auto& [command, fields] : ours.protocols) {
    const std::string name = field_of(fields, "name");
    if (command != "sweep" && ours.protocols.size() > 1) continue;
    if (name != "paper-rows" && name != "paper-stream") {
      differences.push_back(command + ": protocol " + text_or_dash(name) +
                            " against the published procedure");
    }
  }
  if (published.layers && ours.layers != published.layers) {
    differences.push_back("model: " + count_text(ours.layers) + " layers against " +
                          count_text(published.layers));
  }
  if (published.width && ours.width != published.width) {
    differences.push_back("model: width " + count_text(ours.width) + " against " +
                          count_text(published.width));
  }
}

inline std::vector<std::string> protocol_differences(const ComparedModel& a,
                                                     const ComparedModel& b) {
  std::vector<std::string> differences;
  if (a.is_published && b.is_published) {
    if (a.name != b.name) differences.push_back("model: " + a.name + " against " + b.name);
  } else if (a.is_published || b.is_published) {
    add_published_differences(differences, a.is_published ? b : a, a.is_published ? a : b);
  } else {
    for (const auto& [command, fields] : a.protocols) {
      for (const auto& [other, other_fields] : b.protocols) {
        if (command == other) add_differences(differences, command, fields, other_fields);
      }
    }
  }
  return differences;
}

}  // namespace detail

/// The models of a folder of results, of one of our result files, or of a published file. Throws
/// FormatError, DataError, FileError.
inline std::vector<ComparedModel> read_compared(const std::filesystem::path& path) {
  std::vector<ComparedModel> models;
  if (std::filesystem::is_directory(path) || !std::filesystem::exists(path)) {
    for (const ModelResults& model : read_result_folder(path)) {
      models.push_back(compared_model(model, path.string()));
    }
    return models;
  }
  Json json = parse_json_file(path);
  if (ResultView(json, path.string())["schema"]) {
    return {compared_model(detail::single_result(path, detail::read_result(path)), path.string())};
  }
  return {published_model(json, path.string())};
}

/// Figures of A that B has too, in A's order.
inline ModelComparison compare_models(ComparedModel a, ComparedModel b) {
  ModelComparison comparison{.a = std::move(a), .b = std::move(b)};
  for (const ComparedFigure& f : comparison.a.figures) {
    const auto other = std::find_if(
        comparison.b.figures.begin(), comparison.b.figures.end(),
        [&](const ComparedFigure& g) { return g.place == f.place && g.name == f.name; });
    if (other == comparison.b.figures.end()) continue;
    comparison.pairs.push_back({f.place, f.name, f.value, other->value});
  }
  comparison.only_a = comparison.a.figures.size() - comparison.pairs.size();
  comparison.only_b = comparison.b.figures.size() - comparison.pairs.size();
  comparison.differences = detail::protocol_differences(comparison.a, comparison.b);
  return comparison;
}

/// Models of the same name, or the only ones. `anyway`: also where protocols differ. Throws
/// ProtocolError where they differ and it is not set, DataError where nothing is common.
inline std::vector<ModelComparison> compare_results(const std::vector<ComparedModel>& a,
                                                    const std::vector<ComparedModel>& b,
                                                    bool anyway) {
  std::vector<ModelComparison> comparisons;
  for (const ComparedModel& one : a) {
    for (const ComparedModel& other : b) {
      if (one.name != other.name && (a.size() > 1 || b.size() > 1)) continue;
      ModelComparison comparison = compare_models(one, other);
      if (!comparison.pairs.empty()) comparisons.push_back(std::move(comparison));
    }
  }
  if (comparisons.empty()) {
    throw DataError(
        {.id = "compare/nothing-in-common",
         .where = a.front().source + " and " + b.front().source,
         .what = "no figure is in both",
         .expected = "results of the same commands, and models of the same names where "
                     "there are several",
         .mend = "compare folders of one model each, or run the command that is missing"});
  }
  for (const ModelComparison& c : comparisons) {
    if (c.differences.empty() || anyway) continue;
    throw ProtocolError(
        {.id = "compare/protocols-differ",
         .where = c.a.source + " and " + c.b.source,
         .what = "not measured in the same way",
         .expected = "equal protocols",
         .found = c.differences.front() +
                  (c.differences.size() > 1
                       ? " and " + std::to_string(c.differences.size() - 1) + " more"
                       : ""),
         .mend = "measure both alike, or add --anyway"});
  }
  return comparisons;
}

/// One line for each figure that both have.
inline TextTable comparison_table(const ModelComparison& comparison) {
  TextTable table({"where", "what", "A", "interval", "B", "interval", "B - A", "intervals"});
  for (const FigurePair& p : comparison.pairs) {
    const auto apart = p.apart();
    table.add({p.place, p.name, figure_text(p.a.value), range_text(p.a.low, p.a.high),
               figure_text(p.b.value), range_text(p.b.low, p.b.high), change_text(p.difference()),
               apart ? (*apart ? "apart" : "overlap") : nothing_text});
  }
  return table;
}

namespace detail {

inline OrderedJson json_of(const Estimate& e) {
  const auto number = [](std::optional<double> v) { return v ? OrderedJson(*v) : OrderedJson(); };
  return {{"value", number(e.value)}, {"low", number(e.low)}, {"high", number(e.high)}};
}

inline OrderedJson json_of(const ComparedModel& side) {
  return {{"source", side.source}, {"model", side.name}, {"published", side.is_published}};
}

}  // namespace detail

/// compare.json.
inline OrderedJson json_of(const std::vector<ModelComparison>& comparisons) {
  OrderedJson models = OrderedJson::array();
  for (const ModelComparison& c : comparisons) {
    OrderedJson figures = OrderedJson::array();
    for (const FigurePair& p : c.pairs) {
      const auto apart = p.apart();
      figures.push_back({{"place", p.place},
                         {"name", p.name},
                         {"a", detail::json_of(p.a)},
                         {"b", detail::json_of(p.b)},
                         {"difference", p.difference()},
                         {"intervals_apart", apart ? OrderedJson(*apart) : OrderedJson()}});
    }
    models.push_back({{"a", detail::json_of(c.a)},
                      {"b", detail::json_of(c.b)},
                      {"comparable", c.differences.empty()},
                      {"differences", c.differences},
                      {"only_a", c.only_a},
                      {"only_b", c.only_b},
                      {"figures", figures}});
  }
  return {{"schema", "wanamaker/1"}, {"command", "compare"}, {"models", models}};
}

}  // namespace wanamaker::inline WANAMAKER_ABI
