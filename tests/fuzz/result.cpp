// What an interrupted run left behind as JSON: whatever is accepted is written as it was read.
#include "fuzz/fuzzing.hpp"
#include "wanamaker/io/check_vectors.hpp"
#include "wanamaker/report/result_json.hpp"
#include "wanamaker/report/result_reading.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

/// One kind of stored part: reads it, writes it, and reads that.
template <class FromJson>
void read_part(const Json& json, FromJson from_json) {
  std::optional<decltype(from_json(json, ""))> part;
  try {
    part = from_json(json, "part");
  } catch (const FormatError&) {
    return;  // another kind, or none
  }
  const std::string written = json_of(*part).dump();
  must_hold(json_of(from_json(parse_json(written, "written"), "written")).dump() == written,
            "another part once written");
}

void read_parts_of_results(std::string_view input) {
  const Json json = parse_json(input, "part.json");
  read_part(json, layer_result_from_json);
  read_part(json, curve_layer_from_json);
  read_part(json, compound_variant_from_json);
  fuzz_file(check_vectors_file, input);
  const CheckVectors check = read_check_vectors(fuzz_file(check_vectors_file, input).parent_path());
  must_hold(check.ids.size() == check.nats.size() + 1, "losses that are not those of the ids");
}

std::vector<std::string> result_seeds() {
  LayerResult layer{.layer = 1, .r2 = 0.5, .condition = 10, .lambda = 0.1};
  layer.lambda_trials = {{0.1, 2.0}};
  layer.variants = {{.name = "ridge"}};
  CurveLayer curves{.layer = 1, .r2 = 0.5, .lambda = 0.1};
  curves.curves = {{.gate = "random"}};
  curves.curves[0].points = {{.target = 0.5, .result = {.name = "random"}}};
  CompoundVariant variant{.name = "naive"};
  variant.layers = {0, 2};
  return {json_of(layer).dump(), json_of(curves).dump(), json_of(variant).dump(),
          R"({"format": "wanamaker/check/1", "ids": [1, 2, 3], "nats": [0.5, 1.25]})"};
}

const FuzzRegistration result_target({.name = "result",
                                      .read = read_parts_of_results,
                                      .seeds = result_seeds,
                                      .bounds = {.memory_factor = 160}});  // several documents

}  // namespace
