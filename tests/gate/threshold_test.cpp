// Thresholds against brute force, the FLOP model against counts by hand.
#include "wanamaker/gate/threshold.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gate/gate_testing.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/gate/gated_mlp.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

double routed_share(const std::vector<double>& scores, double threshold) {
  return threshold_at(scores, threshold).fraction;
}

/// Every share that some threshold reaches.
std::vector<double> reachable_shares(const std::vector<double>& scores) {
  std::vector<double> shares{1.0};
  for (const double score : scores) shares.push_back(routed_share(scores, score));
  return shares;
}

GatedCost example_cost() {
  return {{.flops = 2, .weight_bytes = 8},
          {.flops = 20, .weight_bytes = 40},
          {.flops = 100, .weight_bytes = 400}};
}

ModelConfig small_model() {
  ModelConfig config;
  config.vocabulary = 11;
  config.width = 8;
  config.layers = 2;
  config.heads = 2;
  config.key_heads = 1;
  config.head_width = 3;
  return config;
}

}  // namespace

TEST_CASE("no threshold comes nearer to the target, ties or none") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream stream(seed);
    std::vector<double> scores;
    const double steps = seed % 2 == 0 ? 4 : 1e6;  // many ties, or none
    for (int i = 0; i < 53; ++i) scores.push_back(std::floor(steps * stream.uniform()) / steps);
    for (const double target : {0.0, 0.01, 0.24, 0.25, 0.5, 0.777, 0.99, 1.0}) {
      const GateThreshold chosen = threshold_for_fraction(scores, target);
      CHECK(chosen.fraction == routed_share(scores, chosen.threshold));
      for (const double share : reachable_shares(scores)) {
        CHECK(std::abs(chosen.fraction - target) <= std::abs(share - target) + 1e-12);
      }
      if (seed % 2 == 1) CHECK(std::abs(chosen.fraction - target) <= 0.5 / 53 + 1e-12);
    }
  }
}

TEST_CASE("the ends route nothing, or everything, of other scores too") {
  const std::vector<double> scores{0.2, 0.4, 0.9};
  const std::vector<double> others{-5.0, 0.5, 1e300 * 1e-200};
  CHECK(routed_share(others, threshold_for_fraction(scores, 0).threshold) == 0);
  CHECK(routed_share(others, threshold_for_fraction(scores, 1).threshold) == 1);
  CHECK(std::isfinite(threshold_for_fraction(scores, 1).threshold));
  // Equal scores go together, here nowhere: of two as near, the one that routes fewer.
  CHECK(threshold_for_fraction(std::vector<double>(4, 0.5), 0.5).fraction == 0);
  CHECK(threshold_for_fraction(std::vector<double>(4, 0.5), 0.6).fraction == 1);
}

TEST_CASE("a given threshold is strict") {
  CHECK(threshold_at(std::vector{0.5, 0.5, 0.6, 0.1}, 0.5).fraction == 0.25);
  CHECK(error_id([] { threshold_at(std::vector<double>{}, 0.5); }) == "stats/empty");
  CHECK(error_id([] { threshold_at(std::vector{std::nan("")}, 0.5); }) == "stats/non-finite");
  CHECK(error_id([] { threshold_for_fraction(std::vector{0.5}, 1.5); }) == "stats/probability");
}

TEST_CASE("a FLOP budget routes as few rows as it can") {
  // 2 + 20 f + 100 (1 − f) = 62 at f = 0.5.
  const GatedCost cost = example_cost();
  CHECK(cost.fraction_for_flops(0.62) == 0.5);
  CHECK(cost.fraction_for_flops(1.02) == 0);
  CHECK(cost.fraction_for_flops(5) == 0);
  CHECK(cost.fraction_for_flops(0.22) == 1);
  CHECK(error_id([&] { cost.fraction_for_flops(0.2); }) == "gate/flop-budget");
  std::vector<double> scores;
  for (int i = 0; i < 10; ++i) scores.push_back(0.1 * i);
  CHECK(threshold_for_flops(scores, cost, 0.62).fraction == 0.5);
  CHECK(threshold_for_flops(scores, cost, 0.61).fraction == 0.6);
  CHECK(threshold_for_flops(scores, cost, 2).fraction == 0);
  const std::vector<double> tied{1, 1, 1, 1, 1, 1, 0, 0, 0, 0};
  CHECK(threshold_for_flops(tied, cost, 0.9).fraction == 0.6);
  CHECK(threshold_for_flops(tied, cost, 0.3).fraction == 1);
}

TEST_CASE("bytes of weights per decoded token follow the batch") {
  const GatedCost cost = example_cost();
  CHECK(cost.weight_bytes_per_token(0, 1) == 408);
  CHECK(cost.weight_bytes_per_token(1, 1) == 48);
  CHECK(cost.weight_bytes_per_token(0.25, 1) == 8 + 0.75 * 400 + 0.25 * 40);
  // A batch of two avoids the MLP with probability 1/16, the surrogate with 9/16.
  CHECK(cost.weight_bytes_per_token(0.25, 2) == (8 + 400 * 15.0 / 16 + 40 * 7.0 / 16) / 2);
  CHECK(cost.weight_bytes_per_token(0.5, 64) > 448 / 64.0 - 1e-12);
}

TEST_CASE("FLOPs of a model, counted by hand") {
  const ModelConfig config = small_model();
  const std::vector<Index> lengths{4, 2};
  const ModelFlops flops = model_flops(config, lengths, 1000, 6);
  // q 8→6, k and v 8→3 each, output 6→8, for 6 tokens.
  CHECK(flops.attention_projections == 2 * 6 * 2.0 * (8 * 6 + 8 * 3 + 8 * 3 + 6 * 8));
  // 10 + 3 pairs, 2 heads, 3 products for the score and 3 for the mixture.
  CHECK(flops.attention_scores == 2 * 13 * 2.0 * (3 + 3) * 2);
  CHECK(flops.mlp == 1000);
  CHECK(flops.head == 2.0 * 8 * 11 * 6);
  CHECK(flops.total() ==
        flops.attention_projections + flops.attention_scores + flops.mlp + flops.head);
}

TEST_CASE("a window limits the pairs that attention scores") {
  ModelConfig config;
  config.layers = config.heads = config.key_heads = config.head_width = 1;
  config.sliding_window = 3;
  const std::vector<Index> lengths{5, 2};
  // 1 + 2 + 3 + 3 + 3, and 1 + 2.
  CHECK(model_flops(config, lengths, 0, 0).attention_scores == 4 * (12 + 3));
  config.sliding_window = 5;
  CHECK(model_flops(config, lengths, 0, 0).attention_scores == 4 * (15 + 3));
}

TEST_CASE("what a variant saves of MLPs and of everything are two figures") {
  const ModelFlops dense{.attention_projections = 40, .attention_scores = 16, .mlp = 64, .head = 8};
  ModelFlops variant = dense;
  variant.mlp = 48;
  CHECK(flops_saved(dense, variant).of_mlp == 0.25);
  CHECK(flops_saved(dense, variant).of_total == 0.125);
  variant.mlp = 70;
  CHECK(flops_saved(dense, variant).of_mlp < 0);
}

TEST_CASE("weights that every decoded token needs, by hand") {
  const ModelConfig config = small_model();
  const double weights = 2 * (8 * 6 + 8 * 3 + 8 * 3 + 6 * 8) + 8 * 11;
  CHECK(shared_weight_bytes_per_token(config, 2, 1) == 2 * weights);
  CHECK(shared_weight_bytes_per_token(config, 4, 8) == 4 * weights / 8);
}

TEST_CASE("a gated layer's cost is that of its parts") {
  using Gated = GatedMlp<ColumnGate, ProbeMlp, ProbeMlp>;
  const Gated hard = Gated::hard({}, ProbeMlp{.factor = 1}, ProbeMlp{.factor = 8}, 0.5);
  CHECK(hard.cost(3).flops == 3 + 3 * 80);
  CHECK(hard.cost(3).weight_bytes == 4 + 7 + 7);
  CHECK(hard.cost(3).parameters == 1 + 3 + 3);
  CHECK(hard.cost_per_token().flops(0) == 81);
  CHECK(hard.cost_per_token().flops(1) == 11);
  CHECK(hard.cost_per_token().flops(0.5) == 46);
  const Gated soft = Gated::soft({}, ProbeMlp{.factor = 1}, ProbeMlp{.factor = 8});
  CHECK(soft.cost(3).flops == 3 + 3 * 80 + 3 * 10);
}
