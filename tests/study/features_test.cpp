// Features of positions: forms and frequencies by hand, figures of predictions against plain loops,
// planted effects that are found and noise that is called what it is.
#include "wanamaker/study/features.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "planted_model.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/report/position_json.hpp"
#include "wanamaker/study/sweep.hpp"

namespace {

using namespace wanamaker_test;

TEST_CASE("forms of tokens") {
  CHECK(form_of(" the").category == TokenCategory::word);
  CHECK(form_of(" the").length == 3);
  CHECK(form_of(" the").is_function_word);
  CHECK(form_of("The").is_function_word);
  CHECK(!form_of(" keeper").is_function_word);
  CHECK(form_of("ing").category == TokenCategory::word_part);
  CHECK(form_of("\xE2\x96\x81"
                "of")
            .category == TokenCategory::word);
  CHECK(form_of("\xE2\x96\x81"
                "of")
            .is_function_word);
  CHECK(form_of(" 1984").category == TokenCategory::number);
  CHECK(form_of(".\"").category == TokenCategory::punctuation);
  CHECK(form_of("\n").category == TokenCategory::space);
  CHECK(form_of(" ").category == TokenCategory::space);
  CHECK(form_of("a1").category == TokenCategory::other);
  CHECK(form_of("").category == TokenCategory::other);
  for (const auto word : detail::function_words) CHECK(is_function_word(word));
}

TEST_CASE("frequencies of types") {
  EvaluationSet set;
  set.batches.emplace_back();
  set.batches[0].tokens = {1, 1, 2, 1, 3, 2};
  const TokenFrequencies frequencies(set, 5);
  CHECK(frequencies.log_frequency(1) == doctest::Approx(std::log(4.0 / 11)).epsilon(1e-14));
  CHECK(frequencies.log_frequency(4) == doctest::Approx(std::log(1.0 / 11)).epsilon(1e-14));
  CHECK(frequencies.log_rank(1) == 0);
  CHECK(frequencies.log_rank(3) == doctest::Approx(std::log(3.0)).epsilon(1e-14));
  CHECK(frequencies.log_rank(0) == frequencies.log_rank(4));  // ranks 4 and 5
  CHECK(frequencies.log_rank(0) == doctest::Approx(std::log(4.5)).epsilon(1e-14));
}

TEST_CASE("figures of predictions against plain loops") {
  B backend;
  PlantedModel planted(backend);
  const AnyTransformer<B> model = planted.make(dense_mlps(planted, 1));
  Workspace<B> workspace(backend);
  matrix_t<B> full = planted.random(5, 12, 1.0);
  matrix_t<B> changed = planted.random(5, 12, 1.0);
  std::copy(full.data(), full.data() + 12, changed.data());  // row 0 is the same in both
  const ScoredPositions scored{{0, 2, 4}, {7, 0, 39}};
  const auto found =
      compare_predictions<B>(backend, model, full.view(), changed.view(), scored, workspace);
  const auto probabilities = [&](matrix_t<B>& stream, Index row) {
    matrix_t<B> logits = make_matrix(backend, 5, model.logit_columns());
    model.logits(backend, stream.view(), logits.view(), workspace);
    std::vector<double> p;
    double sum = 0;
    for (Index v = 0; v < PlantedModel::vocabulary; ++v) {
      p.push_back(std::exp(logits.view()(row, v)));
      sum += p.back();
    }
    for (double& value : p) value /= sum;
    return p;
  };
  REQUIRE(found.size() == 3);
  for (std::size_t s = 0; s < 3; ++s) {
    const std::vector<double> p = probabilities(full, scored.rows[s]);
    const std::vector<double> q = probabilities(changed, scored.rows[s]);
    const std::size_t target = static_cast<std::size_t>(scored.targets[s]);
    PredictionFigures expected{.full_loss = -std::log(p[target]),
                               .changed_loss = -std::log(q[target])};
    for (std::size_t v = 0; v < p.size(); ++v) {
      expected.full_entropy -= p[v] * std::log(p[v]);
      expected.changed_entropy -= q[v] * std::log(q[v]);
      expected.divergence += p[v] * std::log(p[v] / q[v]);
    }
    const auto top = [](const std::vector<double>& all) {
      return std::max_element(all.begin(), all.end()) - all.begin();
    };
    CHECK(all_close(
        std::vector<double>{found[s].full_loss, found[s].changed_loss, found[s].full_entropy,
                            found[s].changed_entropy, found[s].divergence},
        std::vector<double>{expected.full_loss, expected.changed_loss, expected.full_entropy,
                            expected.changed_entropy, expected.divergence},
        1e-12, 1e-12));
    CHECK(found[s].same_top == (top(p) == top(q) ? 1.0 : 0.0));
  }
  CHECK(found[0].same_top == 1);
}

// Positions of some documents with two groups of features; δ is made of them by value(a, b, noise).
template <class Value>
std::vector<FeatureSet> planted_effect(Index documents, Index positions, Value&& value) {
  RandomStream random(9);
  std::vector<double> a, b, other, delta;
  std::vector<Index> document_of;
  for (Index d = 0; d < documents; ++d) {
    for (Index i = 0; i < positions; ++i) {
      a.push_back(random.normal());
      b.push_back(random.normal());
      other.push_back(random.normal());
      delta.push_back(value(a.back(), b.back(), random.normal()));
      document_of.push_back(d);
    }
  }
  FeatureTable table;
  table.add("one", "a", a);
  table.add("one", "b", b);
  table.add("two", "other", other);
  const std::vector<FeatureSetChoice> choices{{"one", {"one"}}, {"two", {"two"}}, {"all", {}}};
  return explain_delta(table, choices, delta, document_of,
                       {.trees = {.rounds = 60}, .bootstrap = {.resamples = 200}});
}

const FeatureFit& fit_of(const FeatureSet& set, const std::string& method,
                         const std::string& scale) {
  for (const FeatureFit& fit : set.fits) {
    if (fit.method == method && fit.scale == scale) return fit;
  }
  FAIL("no fit " << method << " " << scale);
  return set.fits.front();
}

TEST_CASE("a linear effect of known features is found in their set, with its size") {
  const auto sets = planted_effect(
      40, 60, [](double a, double b, double noise) { return 0.5 * a - 0.5 * b + noise; });
  // R² = 0.5/1.5 = 1/3; its standard error with 2400 positions is about 2·√(R²/n)(1 − R²) ≈ 0.016.
  CHECK(std::abs(*fit_of(sets[0], "ridge", "raw").r2 - 1.0 / 3) < 5 * 0.016);
  for (const FeatureFit& fit : sets[0].fits) CHECK(fit.verdict == FeatureVerdict::explains);
  for (const FeatureFit& fit : sets[1].fits) CHECK(fit.verdict != FeatureVerdict::explains);
  CHECK(sets[2].features == std::vector<std::string>{"a", "b", "other"});
  CHECK(fit_of(sets[2], "ridge", "raw").verdict == FeatureVerdict::explains);
}

TEST_CASE("trees see what a line does not, ranks what outliers hide") {
  const auto bent = planted_effect(
      40, 60, [](double a, double, double noise) { return std::abs(a) + 0.2 * noise; });
  CHECK(fit_of(bent[0], "ridge", "raw").verdict != FeatureVerdict::explains);
  CHECK(*fit_of(bent[0], "boosted-trees", "raw").r2 > 0.7);
  const auto steep =
      planted_effect(40, 60, [](double a, double, double) { return std::exp(4 * a); });
  CHECK(*fit_of(steep[0], "ridge", "raw").r2 < 0.5);
  CHECK(*fit_of(steep[0], "ridge", "rank").r2 > 0.85);
}

TEST_CASE("noise is no power on few positions and less than the smallest effect on many") {
  const auto noise = [](double, double, double value) { return value; };
  const FeatureFit few = fit_of(planted_effect(6, 15, noise)[0], "ridge", "raw");
  CHECK(few.verdict == FeatureVerdict::no_power);
  CHECK(*few.detectable > 0.01);
  const FeatureFit many = fit_of(planted_effect(60, 100, noise)[0], "ridge", "raw");
  CHECK(many.verdict == FeatureVerdict::less_than);
  CHECK(*many.detectable < 0.01);
  const auto constant = planted_effect(6, 15, [](double, double, double) { return 1.0; });
  CHECK(constant[0].fits[0].verdict == FeatureVerdict::not_measurable);
  CHECK(!constant[0].fits[0].r2);
}

FeaturesResult features_of_planted(ExecutorRef executor = {}) {
  B backend(executor);
  PlantedModel planted(backend);
  const AnyTransformer<B> model = planted.make(dense_mlps(planted, 2));
  const TokenizedCorpus corpus = random_corpus(40, 30, PlantedModel::vocabulary);
  const Splits splits = some_splits(40);
  Workspace<B> workspace(backend);
  const StudyInput<B> input = planted_study(backend, model, corpus, splits, workspace, 20);
  FeaturesOptions options{.folds = 3, .trees = {.rounds = 5}, .bootstrap = {.resamples = 100}};
  for (Index v = 0; v < PlantedModel::vocabulary; ++v) {
    options.spellings.push_back(v % 3 == 0 ? " the" : v % 3 == 1 ? "ing" : ".");
  }
  FeaturesResult result = run_features(input, options);
  const SweepResult sweep = run_sweep(input);
  for (std::size_t l = 0; l < 2; ++l) {
    CHECK(std::abs(result.layers[l].mean_delta - sweep.layers[l].delta.mean) < 1e-12);
  }
  return result;
}

TEST_CASE("features of a model's positions: δ is the sweep's, threads do not matter") {
  const FeaturesResult result = features_of_planted();
  const std::string json = json_of(result).dump();
  CHECK(json.find("nan") == std::string::npos);
  CHECK(json.find("\"command\":\"features\"") != std::string::npos);
  CHECK(result.layers[0].sets.size() == feature_set_choices().size());
  CHECK(result.layers[0].sets.back().features.size() == 2 * 9 + 1 + 2 + 1 + 1 + 3);
  CHECK(result.layers[0].features.size() == 26);
  ThreadPool pool(2);
  CHECK(json_of(features_of_planted(pool)).dump() == json);
}

}  // namespace
