// Lists of tokens and clusters of inputs on planted data: a δ that is a function of the token, of
// something else, of noise, each found as such; and runs on planted models.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "planted_model.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/report/result_json.hpp"
#include "wanamaker/study/clusters.hpp"
#include "wanamaker/study/transfer.hpp"

namespace {

using namespace wanamaker_test;

// δ = between·(effect of the type) + within·noise; 60 types, `count` positions each.
TypeSample planted_list(std::uint64_t seed, const std::vector<double>& effects, double between,
                        double within, Index count) {
  RandomStream random(seed);
  std::vector<TokenId> types;
  std::vector<double> delta;
  for (std::size_t t = 0; t < effects.size(); ++t) {
    for (Index i = 0; i < count; ++i) {
      types.push_back(static_cast<TokenId>(t));
      delta.push_back(between * effects[t] + within * random.normal());
    }
  }
  return {types, delta};
}

std::vector<double> type_effects(std::uint64_t seed, int types = 60) {
  RandomStream random(seed);
  std::vector<double> effects;
  for (int t = 0; t < types; ++t) effects.push_back(random.normal());
  return effects;
}

TEST_CASE("a δ of the token transfers, and its disattenuated correlation is about 1") {
  const std::vector<double> effects = type_effects(1);
  // Reliability 1/(1 + 9/10) = 0.53 of each list: the correlation is about 0.53, not 1.
  const ListComparison c =
      compare_token_lists(planted_list(2, effects, 1, 3, 10), planted_list(3, effects, 1, 3, 10));
  CHECK(c.types == 60);
  CHECK(c.verdict == TransferVerdict::transfers);
  // Of 60 types: r has deviation (1 − 0.53²)/√60 < 0.1; three of them.
  CHECK(std::abs(*c.pearson - 0.53) < 0.3);
  CHECK(std::abs(c.attainable - 0.53) < 0.2);
  CHECK(std::abs(*c.disattenuated - 1) < 0.5);
  CHECK(c.listed == 6);
}

TEST_CASE("signs of listed types flip less than those of all where δ is of the token") {
  // Six listed types say little: the mean of 20 pairs of lists.
  double listed = 0, all = 0, by_chance = 0, positive = 0, base = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<double> effects = type_effects(100 + seed);
    const ListComparison c = compare_token_lists(planted_list(200 + seed, effects, 1, 3, 10),
                                                 planted_list(300 + seed, effects, 1, 3, 10),
                                                 {.intervals = {.resamples = 100}});
    listed += *c.listed_flips / 20;
    all += *c.base_flips / 20;
    by_chance += c.flips_by_chance / 20;
    positive += *c.listed_positive / 20;
    base += *c.base_positive / 20;
  }
  CHECK(listed < all);
  CHECK(all < by_chance);
  CHECK(positive > base + 0.1);
}

TEST_CASE("a δ of the context is not taken for one of the token") {
  int found = 0;
  double share = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomStream random(31, seed);
    std::vector<TokenId> types;
    std::vector<double> delta;
    for (int i = 0; i < 2000; ++i) {
      const double context = random.below(4) == 0 ? 1.0 : -0.2;
      types.push_back(static_cast<TokenId>(random.below(60)));
      delta.push_back(context + 0.05 * random.normal());
    }
    const TypeSample sample(types, delta);
    const auto components = sample.components(sample.means(5));
    found += components->p_value < 0.05 ? 1 : 0;
    share += components->intraclass() / 40;
  }
  // By chance two of 40; seven or more have probability 0.002.
  CHECK(found < 7);
  // Of 2000 positions in 60 types one share has deviation √(2·59)/2000 = 0.005.
  CHECK(share < 0.005);
}

TEST_CASE("a δ of other tokens in the other text does not transfer, or reverses") {
  const std::vector<double> effects = type_effects(4);
  const TypeSample from = planted_list(5, effects, 1, 1, 20);
  const ListComparison other =
      compare_token_lists(from, planted_list(6, type_effects(7), 1, 1, 20));
  CHECK(other.attainable > 0.8);
  CHECK(other.power > 0.99);
  CHECK(other.verdict == TransferVerdict::does_not);
  const ListComparison half = compare_token_lists(from, planted_list(
                                                            15,
                                                            [&] {
                                                              std::vector<double> mixed =
                                                                  type_effects(16);
                                                              for (std::size_t t = 0; t < 60; ++t) {
                                                                mixed[t] += effects[t];
                                                              }
                                                              return mixed;
                                                            }(),
                                                            1, 1, 20));
  CHECK(half.verdict == TransferVerdict::partly);
  const ListComparison opposite = compare_token_lists(from, planted_list(8, effects, -1, 1, 20));
  CHECK(opposite.verdict == TransferVerdict::reverses);
  CHECK(*opposite.listed_flips > 0.8);
}

TEST_CASE("noise has no power: it is not reported as no effect") {
  const std::vector<double> effects = type_effects(9);
  const ListComparison c =
      compare_token_lists(planted_list(10, effects, 0, 1, 10), planted_list(11, effects, 0, 1, 10));
  CHECK(c.attainable < 0.3);
  CHECK(c.pearson_interval->low < 0);
  CHECK(c.verdict == TransferVerdict::no_power);
  CHECK(std::string(name_of(c.verdict)) == "no power");
  // The published figures: a few types with very noisy means. Equal lists would show next to
  // nothing, so that r near 0 decides nothing.
  const ListComparison few = compare_token_lists(planted_list(12, type_effects(13, 20), 0.1, 1, 5),
                                                 planted_list(14, type_effects(13, 20), 0.1, 1, 5));
  CHECK(few.verdict == TransferVerdict::no_power);
}

TEST_CASE("lists without types in common, too rare types, and constants are not comparable") {
  const TypeSample few(std::vector<TokenId>{1, 1, 2, 2, 3, 3}, std::vector(6, 0.5));
  CHECK(compare_token_lists(few, few).types == 0);
  CHECK(compare_token_lists(few, few, {.least_count = 2}).types == 3);
  CHECK(compare_token_lists(few, few, {.least_count = 2}).verdict ==
        TransferVerdict::not_comparable);
  std::vector<TokenId> types;
  for (TokenId t = 0; t < 40; ++t) types.push_back(t / 5);
  const TypeSample constant(types, std::vector(40, 0.25));
  const ListComparison c = compare_token_lists(constant, constant);
  CHECK(c.types == 8);
  CHECK(c.verdict == TransferVerdict::not_comparable);
  CHECK(!c.pearson);
  CHECK(!c.disattenuated);
  CHECK(c.attainable == 0);
  CHECK(error_id([&] { TypeSample(types, std::vector{1.0}); }) == "stats/length-mismatch");
}

TEST_CASE("only types of both lists are compared") {
  std::vector<TokenId> a, b;
  std::vector<double> delta;
  for (TokenId t = 0; t < 10; ++t) {
    for (int i = 0; i < 5; ++i) {
      a.push_back(t);
      b.push_back(t + 4);
      delta.push_back(t + 0.1 * i);
    }
  }
  const ListComparison c = compare_token_lists({a, delta}, {b, delta});
  CHECK(c.types == 6);  // 4 … 9, and b's mean is a's less 4
  CHECK(*c.pearson == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("random partitions are the baseline of what clusters explain") {
  RandomStream random(21);
  std::vector<Index> groups;
  std::vector<double> values;
  for (int i = 0; i < 400; ++i) {
    groups.push_back(i % 8);
    values.push_back(random.normal());
  }
  const auto share = [&](const std::vector<Index>& some) {
    return explained_variance(some, values)->share;
  };
  const AgainstRandom noise = detail::against_random(groups, 200, 1, {}, share);
  // (k − 1)/(n − 1) on average; a deviation of one is √(2·7)/399 = 0.0094, of the mean 0.0007.
  CHECK(std::abs(noise.random_mean - 7.0 / 399) < 0.0035);
  CHECK(noise.value < 2 * noise.random_p95);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.5 * static_cast<double>(groups[i]);
  CHECK(detail::against_random(groups, 200, 1, {}, share).value > 0.5);
}

// A corpus, splits, and one layer whose MLP is dense.
struct ListBench {
  ListBench(double context, Index documents, ExecutorRef executor = {})
      : backend(executor),
        planted(backend, context),
        model(planted.make(dense_mlps(planted, 1))),
        corpus(random_corpus(documents, 30, PlantedModel::vocabulary)),
        splits(some_splits(documents)),
        workspace(backend) {}

  StudyInput<B> input() { return planted_study(backend, model, corpus, splits, workspace); }

  B backend;
  PlantedModel planted;
  AnyTransformer<B> model;
  TokenizedCorpus corpus;
  Splits splits;
  Workspace<B> workspace;
};

const ListPair& pair_of(const TransferLayer& layer, TokenRole role, const std::string& to,
                        const std::string& surrogate) {
  for (const ListPair& pair : layer.pairs) {
    if (pair.role == role && pair.to == to && pair.surrogate == surrogate) return pair;
  }
  FAIL("no pair to " << to);
  return layer.pairs.front();
}

TEST_CASE("a model whose streams are functions of the token: lists by input token transfer") {
  ListBench bench(0, 200);
  ListBench other(0, 120);
  for (TokenizedDocument& d : other.corpus.documents) std::reverse(d.ids.begin(), d.ids.end());
  const StudyInput<B> first = bench.input();
  StudyInput<B> second = other.input();
  const std::vector<NamedStudy<B>> others{{"reversed", &second}};
  const TransferResult result = run_transfer<B>({"forward", &first}, others);
  CHECK(result.corpora == std::vector<std::string>{"forward", "reversed"});
  REQUIRE(result.layers.size() == 1);
  const TransferLayer& layer = result.layers[0];
  CHECK(layer.pairs.size() == 6);
  CHECK(layer.variances[0].types == 40);
  CHECK(layer.variances[0].positions == 50 * 29);
  CHECK(*layer.variances[0].p_value < 1e-6);
  CHECK(layer.variances[0].largest.size() == 20);
  for (const char* to : {"half 1", "reversed"}) {
    const ListComparison& c = pair_of(layer, TokenRole::input, to, "same").comparison;
    CHECK(c.types == 40);
    CHECK(c.pearson_interval->low > 0.5);
    CHECK(std::abs(*c.disattenuated - 1) < 0.4);
  }
  CHECK(pair_of(layer, TokenRole::input, "reversed", "refitted").comparison.pearson_interval->low >
        0.5);
}

TEST_CASE("one corpus alone gives halves; threads do not matter; results are JSON without NaN") {
  const auto json_with = [](ExecutorRef executor) {
    ListBench bench(1, 48, executor);
    const StudyInput<B> input = bench.input();
    return json_of(run_transfer<B>({"text", &input}, {})).dump() +
           json_of(run_clusters(input, {.clusters = 5, .random_partitions = 20})).dump();
  };
  const std::string serial = json_with(ExecutorRef{});
  ThreadPool pool(3);
  CHECK(json_with(pool) == serial);
  CHECK(serial.find("\"command\":\"transfer\"") != std::string::npos);
  CHECK(serial.find("\"half 1\"") != std::string::npos);
  CHECK(serial.find("nan") == std::string::npos);
}

TEST_CASE("clusters of a model whose streams are functions of the token are its tokens") {
  ListBench bench(0, 200);
  const StudyInput<B> input = bench.input();
  const ClustersResult result = run_clusters(input, {.clusters = 40, .random_partitions = 50});
  REQUIRE(result.layers.size() == 1);
  const ClusterLayer& layer = result.layers[0];
  CHECK(layer.components == 12);
  CHECK(std::abs(layer.variance_kept - 1) < 1e-12);
  CHECK(layer.fit_positions == 50 * 29);
  CHECK(layer.converged);
  CHECK(layer.token_purity.value == 1);
  CHECK(layer.token_purity.random_p95 < 0.3);
  CHECK(std::abs(layer.silhouette - 1) < 1e-6);
  CHECK(layer.silhouette_positions == 500);
  CHECK(std::abs(layer.inputs_explained - 1) < 1e-12);
  REQUIRE(layer.delta_explained);
  CHECK(layer.delta_explained->value > 1.5 * layer.delta_explained->random_p95);
  CHECK(*layer.delta_held_out_r2 > 0);
  CHECK(*layer.delta_held_out_r2 < layer.delta_explained->value);
  Index positions = 0;
  for (const ClusterSummary& c : layer.clusters) {
    positions += c.positions;
    if (c.positions > 0) CHECK(c.top_tokens.size() == 1);
  }
  CHECK(positions == 50 * 29);
}

TEST_CASE("a layer that is affine has δ of round-off, and nothing in it breaks") {
  ListBench bench(1, 48);
  std::vector<AnyMlp<B>> affine;
  affine.emplace_back(AffineMlp<B>(bench.planted.linear(12, 12, 0.5)));
  bench.model = bench.planted.make(std::move(affine));
  const StudyInput<B> input = bench.input();
  const ClustersResult clusters = run_clusters(input, {.clusters = 4, .random_partitions = 10});
  for (const ClusterSummary& c : clusters.layers[0].clusters) {
    if (c.mean_delta) CHECK(std::abs(*c.mean_delta) < 1e-8);
  }
  const TransferResult lists = run_transfer<B>({"text", &input}, {});
  CHECK(lists.layers[0].pairs.size() == 2);
  CHECK(std::isfinite(lists.layers[0].pairs[0].comparison.attainable));
  ClustersOptions too_many{.clusters = 1000};
  CHECK(error_id([&] { run_clusters(input, too_many); }) == "stats/clusters");
}

}  // namespace
