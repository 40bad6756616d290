// Results side by side: figures are matched by what they are, other protocols are refused, and the
// published files are read with their failures.
#include <filesystem>
#include <string>
#include <vector>

#include "planted_results.hpp"
#include "testing.hpp"
#include "wanamaker/report/result_comparison.hpp"

namespace {

using namespace wanamaker;
using wanamaker_test::planted_model;

ComparedModel planted_side(const std::string& source) {
  return compared_model(planted_model(3), source);
}

const FigurePair* pair_of(const ModelComparison& comparison, const std::string& place,
                          const std::string& name) {
  for (const FigurePair& pair : comparison.pairs) {
    if (pair.place == place && pair.name == name) return &pair;
  }
  return nullptr;
}

std::string id_of_comparing(const ComparedModel& a, const ComparedModel& b, bool anyway) {
  try {
    compare_results({a}, {b}, anyway);
  } catch (const Error& error) {
    return error.id();
  }
  return "nothing";
}

// A published file as its authors write it: one layer failed, one has nulls.
Json planted_bootstrap() {
  return parse_json(R"({"model": "planted", "n_layers": 3, "hidden_dim": 192, "n_bootstrap": 10000,
      "baseline": {"ppl": 230.5}, "layers": {
      "10": {"all_linear": {"delta_pct": null}, "best_gate": null},
      "2": {"all_linear": {"delta_pct": 3.5, "delta_ci_lo": 2.5, "delta_ci_hi": 4.5},
            "best_gate": {"delta_pct": 0.25, "delta_ci_lo": -0.5, "delta_ci_hi": 1}},
      "0": {"all_linear": {"delta_pct": 22779.86}, "best_gate": {"skipped": true,
            "reason": "all-linear 22780%"}}}})",
                    "planted");
}

ComparedModel by_published_procedure() {
  ModelResults model = planted_model(3);
  for (auto& [command, json] : model.results) json["protocol"]["name"] = "paper-rows";
  return compared_model(model, "ours");
}

}  // namespace

TEST_CASE("equal results differ by nothing in every figure") {
  const auto comparisons = compare_results({planted_side("a")}, {planted_side("b")}, false);
  REQUIRE(comparisons.size() == 1);
  const ModelComparison& c = comparisons.front();
  CHECK(c.pairs.size() > 20);
  CHECK(c.only_a == 0);
  CHECK(c.only_b == 0);
  for (const FigurePair& pair : c.pairs) {
    CHECK(pair.difference() == 0);
    CHECK(!pair.apart().value_or(false));
  }
}

TEST_CASE("differences are B less A, and intervals apart are seen") {
  ModelResults changed = planted_model(3);
  changed.results["sweep"]["layers"][1] =
      wanamaker_test::planted_layer(1, {.ridge = {3.5, 3, 4}, .gate = {0.25, 0.2, 0.5}});
  const auto c = compare_results({planted_side("a")}, {compared_model(changed, "b")}, false);
  const FigurePair* ridge = pair_of(c.front(), "layer 1", "linear map, %");
  REQUIRE(ridge != nullptr);
  CHECK(ridge->difference() == 2.5);
  CHECK(ridge->apart() == true);
  const FigurePair* gate = pair_of(c.front(), "layer 1", "gate linear, %");
  REQUIRE(gate != nullptr);
  CHECK(gate->apart() == false);
  const OrderedJson json = json_of(c);
  CHECK(json["models"][0]["comparable"] == true);
  CHECK(json["models"][0]["figures"].size() == c.front().pairs.size());
  CHECK(comparison_table(c.front()).aligned().find("+2.50") != std::string::npos);
}

TEST_CASE("other protocols are refused unless asked for, and what differs is said") {
  ModelResults other = planted_model(3);
  other.results["compound"]["protocol"]["window"] = 128;
  const ComparedModel b = compared_model(other, "b");
  CHECK(id_of_comparing(planted_side("a"), b, false) == "compare/protocols-differ");
  const auto c = compare_results({planted_side("a")}, {b}, true);
  REQUIRE(c.front().differences.size() == 1);
  CHECK(c.front().differences.front() == "compound: window 256 against 128");
  CHECK(json_of(c)["models"][0]["comparable"] == false);
}

TEST_CASE("results with nothing in common are refused") {
  ComparedModel empty{.name = "planted", .source = "b"};
  CHECK(id_of_comparing(planted_side("a"), empty, true) == "compare/nothing-in-common");
}

TEST_CASE("a published file is read with its failed layers and nulls") {
  const ComparedModel published = published_model(planted_bootstrap(), "theirs");
  std::vector<std::string> figures;
  for (const ComparedFigure& f : published.figures) figures.push_back(f.place + " " + f.name);
  CHECK(figures == std::vector<std::string>{"whole model perplexity", "layer 0 linear map, %",
                                            "layer 2 linear map, %", "layer 2 best gate, %"});
  CHECK(id_of_comparing(planted_side("a"), published, false) == "compare/protocols-differ");
  CHECK(id_of_comparing(by_published_procedure(), published, false) == "nothing");
  const auto c = compare_results({by_published_procedure()}, {published}, false);
  const FigurePair* ridge = pair_of(c.front(), "layer 2", "linear map, %");
  REQUIRE(ridge != nullptr);
  CHECK(ridge->difference() == 2.5);
  ComparedModel larger = published;
  larger.width = 1024;
  CHECK(id_of_comparing(by_published_procedure(), larger, false) == "compare/protocols-differ");
}

TEST_CASE("the published procedure's own figures stand in the place of ours") {
  ModelResults model = planted_model(1);
  model.results["sweep"]["layers"][0]["paper"] = parse_json(
      R"({"all_linear_ppl": 240, "all_linear_delta_pct": 2.75, "gates": [
          {"name": "linear", "delta_pct": 0.5, "pct_linear": 40},
          {"name": "b=1", "delta_pct": 0.25, "pct_linear": 30},
          {"name": "skipped", "delta_pct": 0.0, "pct_linear": 0}]})",
      "planted");
  const ComparedModel side = compared_model(model, "ours");
  const auto c = compare_models(side, side);
  REQUIRE(pair_of(c, "layer 0", "best gate, %") != nullptr);
  CHECK(*pair_of(c, "layer 0", "best gate, %")->a.value == 0.25);
  CHECK(*pair_of(c, "layer 0", "linear map, %")->a.value == 2.75);
  CHECK(pair_of(c, "layer 0", "gate skipped, %") == nullptr);
}

TEST_CASE("files whose keys nobody knows are refused") {
  CHECK_THROWS_AS(published_model(parse_json("{}", "x"), "x"), FormatError);
  CHECK_THROWS_AS(published_model(parse_json("[1]", "x"), "x"), FormatError);
  CHECK_THROWS_AS(published_model(parse_json(R"({"baseline_ppl": "low"})", "x"), "x"), FormatError);
}

TEST_CASE("all published files but one are read") {
  const auto shared = wanamaker_test::shared_data();
  if (!shared) return;
  const std::filesystem::path folder = *shared / "published";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    CAPTURE(entry.path().string());
    if (entry.path().filename() == "residual_clusters_gpt2-medium.json") continue;
    CHECK(!read_compared(entry.path()).front().figures.empty());
  }
  const auto medium = read_compared(folder / "bootstrap_ci_gpt2_medium.json");
  CHECK(*medium.front().figures.at(1).value.value == 22779.86);
}
