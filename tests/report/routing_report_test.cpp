// Tables, sentences, pictures and stored layers of the experiments on the routing decision.
#include <string>
#include <vector>

#include "testing.hpp"
#include "wanamaker/report/position_json.hpp"
#include "wanamaker/report/result_json.hpp"
#include "wanamaker/report/routing_findings.hpp"
#include "wanamaker/report/routing_pictures.hpp"
#include "wanamaker/report/routing_reading.hpp"

namespace {

using namespace wanamaker;

ProbeLayer made_probe_layer() {
  ProbeLayer layer{.layer = 3, .r2 = 0.75, .lambda = 0.5, .lambda_trials = {{1e-3, 12.5}}};
  layer.positive_share = 0.4;
  ProbeScore input{.name = "input", .features = 8, .auc = AucEstimate{.auc = 0.625}};
  input.interval.interval = Interval{0.6, 0.65};
  input.above_token_table = 0.05;
  input.above_token_table_interval.interval = Interval{0.01, 0.09};
  ProbeScore context{.name = "context", .features = 8, .auc = AucEstimate{.auc = 0.55}};
  context.above_token_table = -0.025;
  context.above_token_table_interval.interval = Interval{-0.06, 0.01};
  context.note = "1000 iterations";
  layer.probes = {input, context, {.name = "token-label-table", .features = 4}};
  layer.parts = {{"token", 1.5, 0.25, std::nullopt}};
  layer.token_context_cosine = -0.125;
  return layer;
}

ClusterLayer made_cluster_layer() {
  ClusterLayer layer{.layer = 2, .r2 = 0.5, .lambda = 0.25, .components = 7, .converged = true};
  layer.variance_kept = 0.9;
  layer.fit_positions = 400;
  layer.inputs_explained = 0.375;
  layer.silhouette = 0.0625;
  layer.silhouette_positions = 100;
  layer.delta_explained = AgainstRandom{0.03, 0.01, 0.02};
  layer.delta_explained_adjusted = 0.02;
  layer.delta_held_out_r2 = -0.01;
  layer.decision_purity = {0.6, 0.5, 0.55};
  layer.token_purity = {0.2, 0.1, 0.15};
  layer.clusters = {{.cluster = 0, .positions = 0},
                    {.cluster = 1,
                     .positions = 5,
                     .mean_delta = 0.5,
                     .delta_p10 = -1.0,
                     .delta_p90 = 2.0,
                     .share_linear = 0.4,
                     .top_tokens = {{0, 3}, {7, 2}}}};
  return layer;
}

ListComparison made_comparison(TransferVerdict verdict) {
  ListComparison c{.types = 30, .reliability_from = 0.5, .reliability_to = 0.25};
  c.pearson = 0.125;
  c.pearson_interval = Interval{-0.25, 0.5};
  c.attainable = 0.35;
  c.disattenuated = 0.36;
  c.power = 0.45;
  c.listed = 3;
  c.listed_flips = 0.5;
  c.base_flips = 0.375;
  c.flips_by_chance = 0.5;
  c.verdict = verdict;
  return c;
}

TransferLayer made_transfer_layer(TransferVerdict verdict) {
  TransferLayer layer{.layer = 1, .r2 = 0.5, .lambda = 1};
  layer.variances = {{.role = TokenRole::target,
                      .types = 30,
                      .positions = 300,
                      .intraclass = 0.1,
                      .largest = {{5, 12, 0.75}}}};
  layer.pairs = {{TokenRole::target, "half 0", "half 1", "same", made_comparison(verdict)}};
  return layer;
}

FeaturesLayer made_features_layer(FeatureVerdict verdict) {
  FeaturesLayer layer{.layer = 0, .r2 = 0.5, .lambda = 1};
  layer.mean_delta = 0.125;
  layer.features = {{"input/log-rank", 0.25, Interval{0.1, 0.4}}, {"input/number", std::nullopt}};
  FeatureFit fit{.method = "boosted-trees", .scale = "rank", .r2 = 0.004};
  fit.r2_interval = Interval{-0.1, 0.1};
  fit.detectable = 0.125;
  fit.verdict = verdict;
  layer.sets = {{"before", {"input/log-rank", "input/number"}, {fit}}};
  return layer;
}

StudyHeader made_header() {
  StudyHeader header;
  header.model.name = "made";
  header.baseline = {.documents = 4, .tokens = 500};
  return header;
}

template <class Result, class Layer>
Result result_of(std::vector<Layer> layers) {
  Result result;
  static_cast<StudyHeader&>(result) = made_header();
  result.layers = std::move(layers);
  return result;
}

/// What is read from a layer's JSON has the same JSON.
template <class Layer, class FromJson>
void check_read_back(const Layer& layer, const FromJson& from_json) {
  const OrderedJson written = json_of(layer);
  CHECK(json_of(from_json(Json(written), "test")).dump() == written.dump());
  for (const auto& [key, value] : written.items()) {
    Json broken = Json(written);
    broken[key] = Json::object({{"other", 1}});
    if (key == "note" || value.is_null()) continue;
    const std::string name = key;
    INFO(name);
    CHECK(wanamaker_test::error_id([&] { from_json(broken, "test"); }) == "result/bad-value");
  }
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("layers read back from JSON are the layers that were written") {
  check_read_back(made_probe_layer(), probe_layer_from_json);
  check_read_back(made_cluster_layer(), cluster_layer_from_json);
  check_read_back(made_transfer_layer(TransferVerdict::partly), transfer_layer_from_json);
  check_read_back(made_features_layer(FeatureVerdict::no_power), features_layer_from_json);
  // Numbers that no layer can have; casting 1e300 was undefined.
  for (const Json& number : {Json(1e300), Json(1.5), Json(std::uint64_t{1} << 63)}) {
    Json broken = Json(json_of(made_probe_layer()));
    broken["layer"] = number;
    CHECK(wanamaker_test::error_id([&] { probe_layer_from_json(broken, "test"); }) ==
          "result/bad-value");
  }
  Json unknown = Json(json_of(made_features_layer(FeatureVerdict::explains)));
  unknown["sets"][0]["fits"][0]["verdict"] = "perhaps";
  CHECK(wanamaker_test::error_id([&] { features_layer_from_json(unknown, "test"); }) ==
        "result/bad-value");
}

TEST_CASE("a token's label is its spelling made safe for a terminal, or its number") {
  const std::vector<std::string> spellings{" the", "a\"b", "\x1b[2J", "\xe4\xb8", "\n"};
  CHECK(token_label(0, spellings) == "\" the\"");
  CHECK(token_label(2, spellings) == "\"\xef\xbf\xbd[2J\"");
  CHECK(token_label(3, spellings) == "\"\xef\xbf\xbd\"");
  CHECK(token_label(4, spellings) == "\"\\n\"");
  CHECK(token_label(5, spellings) == "#5");
  CHECK(token_label(-1, spellings) == "#-1");
}

TEST_CASE("a probe's sentence says where it beats the table and what would have been seen") {
  const auto result = result_of<ProbeResult>(std::vector<ProbeLayer>{made_probe_layer()});
  const std::string text = probe_finding(result);
  CHECK(says(text,
             "The whole input ranks positions better than the table by token in 1 of 1 layer, "
             "worse in 0; the median difference of AUC is +0.050 (one of about 0.040"));
  CHECK(says(text,
             "The context (all but the token's embedding) ranks positions better than the "
             "table by token in 0 of 1 layer"));
  CHECK(says(probe_csv(result).csv(), "3,input,8,0.625,0.6"));
  CHECK(says(probe_table(result).aligned(), "[+0.010, +0.090]"));
}

TEST_CASE("no power and no effect are different sentences") {
  const auto features = [](FeatureVerdict verdict) {
    return features_finding(
        result_of<FeaturesResult>(std::vector<FeaturesLayer>{made_features_layer(verdict)}));
  };
  CHECK(says(features(FeatureVerdict::no_power), "explains ranks of δ in 0 of 1 layer"));
  CHECK(says(features(FeatureVerdict::no_power), "in 1 these positions cannot tell"));
  CHECK(says(features(FeatureVerdict::less_than), "in 1 it is less than"));
  CHECK(says(features(FeatureVerdict::explains), "explains ranks of δ in 1 of 1 layer"));
  const auto transfer = [](TransferVerdict verdict) {
    return transfer_finding(
        result_of<TransferResult>(std::vector<TransferLayer>{made_transfer_layer(verdict)}));
  };
  CHECK(says(transfer(TransferVerdict::no_power), "Of 1 comparisons 0 decide anything; in 0"));
  CHECK(says(transfer(TransferVerdict::does_not), "Of 1 comparisons 1 decide anything; in 0"));
  CHECK(says(transfer(TransferVerdict::partly), "Of 1 comparisons 1 decide anything; in 1"));
}

TEST_CASE("layers that write large activations: what is said follows the verdict") {
  MarginalResult result;
  static_cast<StudyHeader&>(result) = made_header();
  result.writers = {.layers = 4, .catastrophic = 1, .writers = 1, .both = 1};
  result.writers.least_p_value = 0.25;
  CHECK(says(marginal_finding(result),
             "cannot be decided here: with 4 layers even the fullest "
             "overlap would give p 0.250"));
  result.writers.verdict = WriterVerdict::holds;
  result.writers.p_value = 0.02;
  CHECK(says(marginal_finding(result), "1 are both; that they are the same holds (p 0.020)"));
  result.layers = {{.layer = 5, .statement = "First order is wrong."}};
  CHECK(says(marginal_finding(result), "layer 5: First order is wrong."));
}

TEST_CASE("pictures leave out what was not measured and keep gaps") {
  ProbeLayer gap = made_probe_layer();
  gap.layer = 4;
  gap.probes[0].auc.reset();
  const std::string svg =
      probe_svg(result_of<ProbeResult>(std::vector<ProbeLayer>{made_probe_layer(), gap}));
  CHECK(says(svg, "whole input"));
  CHECK(says(svg, "context"));
  CHECK_FALSE(says(svg, "earlier MLPs"));
  CHECK_FALSE(says(svg, "nan"));
  CHECK(says(clusters_svg(result_of<ClustersResult>(std::vector<ClusterLayer>{})), "</svg>"));
}
