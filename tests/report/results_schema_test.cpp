// docs/results.schema.json takes what commands write and refuses what is spoiled.
#include <functional>
#include <string>

#include "json_schema.hpp"
#include "planted_results.hpp"
#include "testing.hpp"
#include "wanamaker/report/result_comparison.hpp"

namespace {

wanamaker_test::JsonSchema results_schema() {
  return wanamaker_test::JsonSchema(
      wanamaker::parse_json_file(std::string(WANAMAKER_SOURCE_DIR) + "/docs/results.schema.json"));
}

// With every key that a sweep has.
wanamaker::Json whole_sweep() {
  wanamaker::Json sweep = wanamaker_test::planted_sweep({{}, {}});
  for (const char* key : {"detokenisation", "first_token_rule", "arithmetic", "tokenizer_hash"}) {
    sweep["protocol"][key] = "";
  }
  sweep["protocol"]["truncation"] = 0;
  for (wanamaker::Json& layer : sweep["layers"]) {
    layer["lambda_trials"] = wanamaker::Json::array();
    layer["delta"]["std"] = nullptr;
    layer["delta"]["quantiles"] = {{{"p", 0.5}, {"value", 0.01}}};
    for (wanamaker::Json& variant : layer["variants"]) variant["p_bh"] = nullptr;
  }
  return sweep;
}

}  // namespace

TEST_CASE("the schema takes a sweep with every key and refuses spoiled ones") {
  const auto schema = results_schema();
  CHECK(schema.fault(whole_sweep()) == "");
  const auto fault = [&](const std::function<void(wanamaker::Json&)>& spoil) {
    wanamaker::Json sweep = whole_sweep();
    spoil(sweep);
    return schema.fault(sweep);
  };
  using wanamaker::Json;
  CHECK(fault([](Json& s) { s["schema"] = "wanamaker/2"; }) == "/schema: const");
  CHECK(fault([](Json& s) { s.erase("protocol"); }) == "/protocol: missing");
  CHECK(fault([](Json& s) { s["protocol"]["name"] = "other"; }) == "/protocol/name: enum");
  CHECK(fault([](Json& s) { s["layers"][1]["layer"] = -1; }) == "/layers/1/layer: minimum");
  CHECK(fault([](Json& s) { s["layers"][0]["r2"] = nullptr; }) == "/layers/0/r2: type");
  CHECK(fault([](Json& s) { s["layers"][0]["variants"][2].erase("p_holm"); }) ==
        "/layers/0/variants/2/p_holm: missing");
  CHECK(fault([](Json& s) { s["layers"][0]["variants"][2]["auc"] = "high"; }) ==
        "/layers/0/variants/2/auc: type");
}

TEST_CASE("the schema takes what a comparison writes") {
  const auto side = wanamaker::compared_model(wanamaker_test::planted_model(2), "a");
  const auto comparisons = wanamaker::compare_results({side}, {side}, false);
  const std::string text = wanamaker::json_of(comparisons).dump();
  CHECK(results_schema().fault(wanamaker::parse_json(text, "compare.json")) == "");
}
