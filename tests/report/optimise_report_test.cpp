// What is said of a search for a cheaper model, on results chosen by hand; tables of costs survive
// JSON.
#include "wanamaker/report/optimise_report.hpp"

#include <string>

#include "report/json_schema.hpp"
#include "testing.hpp"
#include "wanamaker/report/optimise_json.hpp"

namespace {

using namespace wanamaker;

// One step of one path, chosen.
OptimiseResult planted_search(NonInferiorityVerdict verdict) {
  OptimiseResult result;
  result.model = {"tiny", "gpt2", 4, 12, 1000};
  result.baseline = {10, 100, 300, 20};
  result.options = {.cost = CostKind::prefill, .batch = 2, .max_loss_percent = 1};
  result.cost = 8;
  result.weight_bytes = 4000;
  OptimisePoint point{.move = "layer 1: affine", .changes = {{1, "affine", {}}, {3, "affine", {}}}};
  point.changes.push_back({2, "gate-0.5", 0.4});
  point.cost = 6;
  point.cost_fraction = 0.75;
  point.parameters = 900;
  point.weight_bytes = 3600;
  point.select_delta_percent = 0.4;
  point.within = true;
  point.perplexity = 20.1;
  point.comparison = {.documents = 10, .tokens = 100, .delta_percent = 0.5};
  point.comparison.ci_low_percent = 0.25;
  point.comparison.ci_high_percent = 0.75;
  point.verdict = verdict;
  result.paths = {{"policies", {point}, 0, {}}, {"drop-blocks", {}, {}, {}}};
  result.speeds = {{"original", 100}, {"policies", 125}};
  return result;
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK_MESSAGE(found, part);
  return found;
}

}  // namespace

TEST_CASE("the first line of a search is its verdict") {
  using enum NonInferiorityVerdict;
  const std::string begin =
      "tiny, prefill, batch 2: 75.0 % of the cost with 3 of 4 layers changed, +0.50 % perplexity "
      "[+0.25, +0.75]; ";
  has(optimise_headline(planted_search(non_inferior)), begin + "shown to lose less than 1.00 %");
  has(optimise_headline(planted_search(inferior)), begin + "shown to lose more than 1.00 %");
  has(optimise_headline(planted_search(undecided)), begin + "not shown to lose less than 1.00 %");
  OptimiseResult none = planted_search(undecided);
  none.paths.front().chosen.reset();
  has(optimise_headline(none), "nothing pays at a loss of 1.00 %");
}

TEST_CASE("tables of a search have before and after, and every step") {
  const OptimiseResult result = planted_search(NonInferiorityVerdict::undecided);
  const std::string table = optimise_table(result).aligned();
  has(table, "1 3: affine; 2: gate-0.5");
  has(table, "125");
  has(table, "undecided");
  has(table, "nothing");
  const std::string steps = frontier_table(result).aligned();
  has(steps, "layer 1: affine");
  has(steps, "*");
  has(optimise_svg(result), "cost (prefill, batch 2)");
  CHECK(healing_text(result).empty());
}

TEST_CASE("a search is written as the schema has it, and no time of this run is in it") {
  OptimiseResult result = planted_search(NonInferiorityVerdict::undecided);
  result.protocol.name = "rigorous";
  const Json json = parse_json(json_of(result).dump(), "optimise.json");
  const wanamaker_test::JsonSchema schema(
      parse_json_file(std::string(WANAMAKER_SOURCE_DIR) + "/docs/results.schema.json"));
  CHECK(schema.fault(json) == "");
  CHECK_FALSE(json.contains("speeds"));
  CHECK_FALSE(json.contains("costs"));
  CHECK(times_json_of(result).at("speeds").size() == 2);
}

TEST_CASE("a table of costs is read as it was written, and a spoiled one refused") {
  CostTable table{.kind = CostKind::prefill, .batch = 3, .layers = 4, .width = 12, .tokens = 512};
  table.repetitions = 9;
  table.parts = {{"mlp", 0.25}, {"affine", 1e-7}};
  Json json = parse_json(json_of(table).dump(), "costs");
  const CostTable read = cost_table_from_json(json, "costs");
  CHECK(read.kind == table.kind);
  CHECK(read.batch == 3);
  CHECK(read.layers == 4);
  CHECK(read.tokens == 512);
  CHECK(read.parts == table.parts);
  json["parts"]["mlp"] = "much";
  CHECK_THROWS_AS(cost_table_from_json(json, "costs"), FormatError);
  json.erase("parts");
  CHECK_THROWS_AS(cost_table_from_json(json, "costs"), FormatError);
}
