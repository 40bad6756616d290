// The paired comparison: known answers, peers, determinism, and bad input.
#include "wanamaker/stats/paired_bootstrap.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "stats/reference_values.hpp"
#include "stats/simulated_documents.hpp"
#include "testing.hpp"
#include "wanamaker/core/thread_pool.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

PairedSums reference_documents() {
  return {.tokens = recorded_as<Index>("paired", "tokens"),
          .difference_nats = recorded("paired", "difference_nats")};
}

bool has(const PairedComparison& result, PairedWarning warning) {
  return std::count(result.warnings.begin(), result.warnings.end(), warning) == 1;
}

bool same(const std::optional<Interval>& a, const std::optional<Interval>& b) {
  if (!a || !b) return !a && !b;
  return a->low == b->low && a->high == b->high;
}

bool same(const PairedComparison& a, const PairedComparison& b) {
  return a.delta_nats == b.delta_nats && a.ci_low_percent == b.ci_low_percent &&
         a.ci_high_percent == b.ci_high_percent && a.p_value == b.p_value &&
         same(a.bca_percent, b.bca_percent) && same(a.percentile_percent, b.percentile_percent) &&
         a.warnings == b.warnings;
}

std::vector<double> nats(const Interval& percent) {
  return {nats_of_percent(percent.low), nats_of_percent(percent.high)};
}

}  // namespace

TEST_CASE("two documents by hand") {
  // Δ = (1 + 3) / 2 = 2, residuals ∓1, se² = 2/1 · 2 / 2² = 1.
  const PairedComparison result =
      compare_paired({.tokens = {1, 1}, .difference_nats = {1, 3}, .baseline_nats = {2, 4}});
  CHECK(result.documents == 2);
  CHECK(result.tokens == 2);
  CHECK(result.delta_nats == 2);
  CHECK(result.delta_percent == 100 * std::expm1(2.0));
  CHECK(*result.baseline_perplexity == std::exp(3.0));
  CHECK(*result.standard_error_nats == 1);
  CHECK(result.method == IntervalMethod::cluster_t);
  const double t = 12.706204736174704;  // tables: 12.706
  CHECK(all_close(std::vector{*result.ci_low_percent, *result.ci_high_percent},
                  std::vector{percent_of_nats(2 - t), percent_of_nats(2 + t)}, 1e-11, 0));
  // t = 2 with one degree of freedom: P(|T| > 2) = 1 − 2 atan(2) / π.
  CHECK(all_close(std::vector{*result.p_value},
                  std::vector{1 - 2 * std::atan(2.0) / 3.141592653589793}, 1e-12, 0));
  CHECK(!result.bca_percent);
  CHECK(!result.naive_paired_percent);
  CHECK(has(result, PairedWarning::few_documents));
  CHECK(result.sign_test.worse == 2);
  CHECK(result.sign_test.p_value == 0.5);
}

TEST_CASE("the cluster-t interval agrees with statsmodels' cluster-robust regression") {
  const PairedComparison result =
      compare_paired(reference_documents(), {.method = IntervalMethod::cluster_t});
  // The peer sums 10,000 tokens where we sum 60 documents.
  const double rounding = 1e4 * epsilon;
  CHECK(all_close(std::vector{result.delta_nats, *result.standard_error_nats, *result.p_value},
                  std::vector{recorded_number("paired", "delta_nats"),
                              recorded_number("paired", "cluster_standard_error"),
                              recorded_number("paired", "cluster_t_p_value")},
                  10 * rounding, 0));
  CHECK(all_close(nats(*result.cluster_t_percent), recorded("paired", "cluster_t"), 10 * rounding,
                  0));
  CHECK(result.method == IntervalMethod::cluster_t);
  CHECK(!result.percentile_percent);
}

TEST_CASE("percentile and BCa intervals agree with scipy.stats.bootstrap") {
  const PairedSums sums = reference_documents();
  constexpr int runs = 16;
  constexpr Index resamples = 10000;
  std::vector<RunningMoments> ends(4);
  for (int run = 0; run < runs; ++run) {
    const PairedComparison result = compare_paired(
        sums, {.resamples = resamples, .seed = static_cast<std::uint64_t>(run), .expand = false});
    const std::vector<double> bca = nats(*result.bca_percent);
    const std::vector<double> percentile = nats(*result.percentile_percent);
    ends[0].add(bca[0]);
    ends[1].add(bca[1]);
    ends[2].add(percentile[0]);
    ends[3].add(percentile[1]);
  }
  const std::vector<double> bca = recorded("paired", "bca");
  const std::vector<double> percentile = recorded("paired", "percentile");
  const std::vector<double> expected{bca[0], bca[1], percentile[0], percentile[1]};
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    // Monte-Carlo error of both: s at 10,000 resamples, falling as 1/√resamples; four times it.
    const double s = *ends[i].standard_deviation();
    const double peer_share =
        static_cast<double>(resamples) / recorded_number("paired", "resamples");
    const double tolerance = 4 * s * std::sqrt(1.0 / runs + peer_share);
    CHECK(std::abs(*ends[i].mean() - expected[i]) < tolerance);
    // The check can tell BCa from percentile.
    CHECK(tolerance < 0.25 * std::abs(bca[i % 2] - percentile[i % 2]));
  }
}

TEST_CASE("the bootstrap is what its definition says, draw by draw") {
  const PairedSums sums = reference_documents();
  const PairedOptions options{.level = 0.9, .resamples = 150, .seed = 9, .expand = false};
  std::vector<double> ratios;
  for (Index b = 0; b < options.resamples; ++b) {
    Resample draw(options.seed, b, 60);
    double d = 0;
    double n = 0;
    for (int k = 0; k < 60; ++k) {
      const std::size_t document = static_cast<std::size_t>(draw());
      d += sums.difference_nats[document];
      n += static_cast<double>(sums.tokens[document]);
    }
    ratios.push_back(d / n);
  }
  const std::vector<double> ends = quantiles(ratios, std::vector{0.05, 0.95});
  const PairedComparison result = compare_paired(sums, options);
  CHECK(result.method == IntervalMethod::percentile);
  CHECK(all_close(nats(*result.percentile_percent), ends, 1e-13, 0));
  const auto below = std::count_if(ratios.begin(), ratios.end(), [](double r) { return r <= 0; });
  const double p = (1 + static_cast<double>(below)) / 151;
  CHECK(all_close(std::vector{*result.p_value_greater}, std::vector{p}, 1e-13, 0));
}

TEST_CASE("expansion widens as Hesterberg's formula says") {
  // Replicates that are exact normal quantiles: the ends are then ∓√(m/(m−1)) t.
  std::vector<double> replicates;
  for (int i = 1; i < 40000; ++i) replicates.push_back(normal_quantile(i / 40000.0));
  const Interval plain = bootstrap_interval(replicates, {}, 0.95);
  const Interval expanded = bootstrap_interval(replicates, {.degrees = 49}, 0.95);
  const double reach = std::sqrt(50.0 / 49) * 2.009575237129235;
  // Neighbours are 1 / (40000 · φ(2.03)) = 5e-4 apart; ends are interpolated between them.
  CHECK(all_close(std::vector{plain.low, plain.high}, std::vector{-1.959963985, 1.959963985}, 0,
                  1e-3));
  CHECK(all_close(std::vector{expanded.low, expanded.high}, std::vector{-reach, reach}, 0, 1e-3));
}

TEST_CASE("p-values invert the interval, whatever the correction") {
  std::vector<double> replicates;
  RandomStream random(51);
  for (int i = 0; i < 5000; ++i) replicates.push_back(random.normal() + 0.5 * random.uniform());
  std::sort(replicates.begin(), replicates.end());
  const std::vector<BootstrapCorrection> corrections{
      {},
      {.degrees = 30},
      {.bias = 0.1, .acceleration = 0.05},
      {.bias = -0.2, .acceleration = -0.08, .degrees = 20}};
  for (const BootstrapCorrection& correction : corrections) {
    for (const std::size_t rank : {40u, 200u, 1500u, 3700u, 4900u, 4960u}) {
      const double null = 0.5 * (replicates[rank - 1] + replicates[rank]);
      const OneSidedPValues p = bootstrap_p_values(replicates, correction, null);
      CAPTURE(rank);
      CAPTURE(correction.bias);
      CHECK(p.greater + p.less == doctest::Approx(1).epsilon(2e-3));
      // At the level that p names, the end is at null: rank for rank within the +1 correction.
      const bool lower = p.greater < p.less;
      const double level = 1 - two_sided(p);
      const Interval interval = bootstrap_interval(replicates, correction, level);
      const double end = lower ? interval.low : interval.high;
      CHECK(end >= replicates[rank - 3]);
      CHECK(end <= replicates[rank + 2]);
    }
  }
}

TEST_CASE("p-values are never below what the resamples can show, never above 1") {
  const std::vector<double> replicates{1, 2, 3, 4};
  const OneSidedPValues above = bootstrap_p_values(replicates, {.bias = 2}, 0);
  CHECK(above.greater == 0.2);
  CHECK(above.less == 1);
  CHECK(two_sided(above) == 0.4);
  const OneSidedPValues below = bootstrap_p_values(replicates, {.bias = -2}, 5);
  CHECK(below.less == 0.2);
  CHECK(below.greater == 1);
  CHECK(two_sided(bootstrap_p_values(std::vector(4, 0.0), {}, 0)) == 1);
}

TEST_CASE("corrections beyond their range end at the extreme replicates") {
  const std::vector<double> replicates{1, 2, 3, 4};
  const Interval interval = bootstrap_interval(replicates, {.acceleration = 1}, 0.95);
  CHECK(interval.high == 4);
  const Interval mirrored = bootstrap_interval(replicates, {.acceleration = -1}, 0.95);
  CHECK(mirrored.low == 1);
  const OneSidedPValues p = bootstrap_p_values(replicates, {.acceleration = 5}, 0);
  CHECK(p.greater == 0.2);
}

TEST_CASE("the acceleration agrees with the jackknife by hand") {
  // n = 1 each, d = 0, 0, 3: leaving one out gives 1.5, 1.5, 0, mean 1, u = −½, −½, 1.
  const std::vector<double> d{0, 0, 3};
  const std::vector<double> n{1, 1, 1};
  const double a = jackknife_acceleration(estimate_ratio(d, n), d, n).value();
  CHECK(all_close(std::vector{a}, std::vector{0.75 / (6 * std::pow(1.5, 1.5))}, 1e-14, 0));
  const std::vector<double> equal{2, 2, 2};
  CHECK(!jackknife_acceleration(estimate_ratio(equal, n), equal, n));
  CHECK(!bca_correction(std::vector{1.0, 2.0}, 5, 0));
  CHECK(bca_correction(std::vector{1.0, 2.0, 2.0, 3.0}, 2, 0)->bias == 0);
}

TEST_CASE("results do not depend on threads, nor on which variants are compared together") {
  RandomStream random(52);
  std::vector<PairedSums> variants;
  for (int v = 0; v < 35; ++v) {  // more than one group
    PairedSums sums = simulated_documents(random, 45, 0.001 * v);
    if (v > 0) sums.tokens = variants.front().tokens;
    variants.push_back(sums);
  }
  const PairedOptions options{.resamples = 500, .seed = 3};
  ThreadPool pool(3);
  const std::vector<PairedComparison> together = compare_paired(variants, options);
  const std::vector<PairedComparison> parallel = compare_paired(variants, options, pool);
  REQUIRE(together.size() == 35);
  for (std::size_t v = 0; v < variants.size(); ++v) {
    CHECK(same(together[v], parallel[v]));
    CHECK(same(together[v], compare_paired(variants[v], options)));
  }
  CHECK(!same(together[0], compare_paired(variants[0], {.resamples = 500, .seed = 4})));
  CHECK(compare_paired(std::span<const PairedSums>{}).empty());
}

TEST_CASE("the default method follows the number of documents") {
  RandomStream random(53);
  const auto method = [&](Index documents, PairedOptions options = {}) {
    options.resamples = 200;
    return compare_paired(simulated_documents(random, documents, 0.1), options);
  };
  CHECK(method(39).method == IntervalMethod::cluster_t);
  CHECK(method(40).method == IntervalMethod::percentile);
  CHECK(method(40).bca_percent);
  CHECK(method(40, {.method = IntervalMethod::bca}).method == IntervalMethod::bca);
  CHECK(method(40).warnings.empty());
  CHECK(
      has(method(39, {.method = IntervalMethod::bca}), PairedWarning::bootstrap_of_few_documents));
  CHECK(has(method(9), PairedWarning::few_documents));
  CHECK(!has(method(10), PairedWarning::few_documents));
}

TEST_CASE("token-level intervals by hand, and missing without tokens") {
  const std::vector<double> baseline{1, 2, 3, 6};
  const std::vector<double> variant{2, 2, 4, 8};
  const PairedSums sums = sum_by_document(baseline, variant, std::vector<Index>{0, 3, 4});
  CHECK(sums.tokens == std::vector<Index>{3, 1});
  CHECK(sums.difference_nats == std::vector{2.0, 2.0});
  CHECK(sums.baseline_nats == std::vector{6.0, 6.0});
  const PairedComparison result = compare_paired(sums);
  CHECK(result.delta_nats == 1);
  // Differences 1, 0, 1, 2: variance 2/3. Baseline variance 14/3, variant variance 24/3.
  const double z = 1.959963984540054;
  const double paired = z * std::sqrt(2.0 / 3 / 4);
  const double unpaired = z * std::sqrt((14.0 + 24.0) / 3 / 4);
  CHECK(
      all_close(nats(*result.naive_paired_percent), std::vector{1 - paired, 1 + paired}, 1e-13, 0));
  CHECK(all_close(nats(*result.naive_unpaired_percent), std::vector{1 - unpaired, 1 + unpaired},
                  1e-13, 0));
}

TEST_CASE("one document, and none that differ") {
  const PairedComparison one = compare_paired({.tokens = {10}, .difference_nats = {1}});
  CHECK(one.delta_nats == 0.1);
  CHECK(!one.method);
  CHECK(!one.ci_low_percent);
  CHECK(!one.ci_high_percent);
  CHECK(!one.p_value);
  CHECK(!one.standard_error_nats);
  CHECK(has(one, PairedWarning::one_document));

  std::vector<Index> tokens(50, 10);
  const PairedComparison identical =
      compare_paired({.tokens = tokens, .difference_nats = std::vector(50, 0.0)});
  CHECK(identical.method == IntervalMethod::identical);
  CHECK(identical.ci_low_percent == 0.0);
  CHECK(identical.ci_high_percent == 0.0);
  CHECK(identical.p_value == 1.0);
  CHECK(identical.warnings.empty());

  const PairedComparison equal =
      compare_paired({.tokens = tokens, .difference_nats = std::vector(50, 0.7)});
  CHECK(equal.delta_nats == doctest::Approx(0.07).epsilon(1e-14));
  CHECK(!equal.method);
  CHECK(!equal.ci_low_percent);
  CHECK(!equal.p_value);
  CHECK(has(equal, PairedWarning::no_variation));
}

TEST_CASE("documents without tokens are left out, and said to be") {
  RandomStream random(54);
  const PairedSums plain = simulated_documents(random, 45, 0.1);
  PairedSums padded = plain;
  padded.tokens.insert(padded.tokens.begin() + 7, 0);
  padded.difference_nats.insert(padded.difference_nats.begin() + 7, 0.0);
  PairedComparison result = compare_paired(padded, {.resamples = 200});
  CHECK(has(result, PairedWarning::documents_without_tokens));
  result.warnings.clear();
  CHECK(same(result, compare_paired(plain, {.resamples = 200})));
}

TEST_CASE("a document that dominates is named, and its interval stays finite") {
  RandomStream random(55);
  PairedSums sums = simulated_documents(random, 45, 0.1);
  sums.difference_nats[4] += 1e6;
  const PairedComparison result = compare_paired(sums, {.method = IntervalMethod::bca});
  CHECK(has(result, PairedWarning::dominant_document));
  CHECK(std::isfinite(*result.ci_low_percent));
  CHECK(std::isfinite(*result.ci_high_percent));
  CHECK(*result.ci_low_percent <= *result.ci_high_percent);
}

TEST_CASE("no input gives NaN or infinity") {
  RandomStream random(56);
  for (const double scale : {1e-300, 1e-160, 1e-20, 1.0, 1e20, 1e97}) {
    for (const Index documents : {Index{2}, Index{3}, Index{41}}) {
      PairedSums sums = simulated_documents(random, documents, 0.1);
      for (double& difference : sums.difference_nats) difference *= scale;
      const PairedComparison result = compare_paired(sums, {.resamples = 100});
      CAPTURE(scale);
      CAPTURE(documents);
      CHECK(std::isfinite(result.delta_percent));
      for (const std::optional<double>& value :
           {result.ci_low_percent, result.ci_high_percent, result.p_value, result.p_value_less,
            result.p_value_greater, result.standard_error_nats}) {
        if (value) CHECK(std::isfinite(*value));
      }
      if (scale == 1e97) CHECK(has(result, PairedWarning::percent_saturated));
    }
  }
}

TEST_CASE("a negated difference gives the mirrored result") {
  const PairedSums sums = reference_documents();
  PairedSums negated = sums;
  for (double& difference : negated.difference_nats) difference = -difference;
  const PairedComparison result = compare_paired(sums);
  const PairedComparison mirrored = compare_paired(negated);
  CHECK(mirrored.delta_nats == -result.delta_nats);
  CHECK(mirrored.p_value == result.p_value);
  CHECK(mirrored.p_value_less == result.p_value_greater);
  const std::vector<double> a = nats(*result.bca_percent);
  const std::vector<double> b = nats(*mirrored.bca_percent);
  CHECK(all_close(std::vector{-b[1], -b[0]}, a, 1e-10, 0));
}

TEST_CASE("bad input is refused with its place") {
  const auto id = [](PairedSums sums, PairedOptions options = {}) {
    return error_id([&] { compare_paired(sums, options); });
  };
  CHECK(id({.tokens = {}, .difference_nats = {}}) == "stats/no-tokens");
  CHECK(id({.tokens = {0, 0}, .difference_nats = {0, 0}}) == "stats/no-tokens");
  CHECK(id({.tokens = {0, 5}, .difference_nats = {1, 2}}) == "stats/token-count");
  CHECK(id({.tokens = {3, -5}, .difference_nats = {1, 2}}) == "stats/token-count");
  CHECK(id({.tokens = {std::numeric_limits<Index>::max(), 1}, .difference_nats = {1, 2}}) ==
        "stats/token-count");
  CHECK(id({.tokens = {1, 2}, .difference_nats = {1}}) == "stats/length-mismatch");
  CHECK(id({.tokens = {1}, .difference_nats = {1}, .baseline_nats = {1, 2}}) ==
        "stats/length-mismatch");
  CHECK(id({.tokens = {1}, .difference_nats = {1}, .token_level = TokenMoments{}}) ==
        "stats/length-mismatch");
  CHECK(id({.tokens = {1, 2}, .difference_nats = {1, not_a_number}}) == "stats/non-finite");
  CHECK(id({.tokens = {1, 2}, .difference_nats = {1, HUGE_VAL}}) == "stats/non-finite");
  CHECK(id({.tokens = {1}, .difference_nats = {1}, .baseline_nats = {not_a_number}}) ==
        "stats/non-finite");
  const PairedSums good{.tokens = {1, 2}, .difference_nats = {1, 1}};
  CHECK(id(good, {.level = 95}) == "stats/probability");
  CHECK(id(good, {.resamples = 1}) == "stats/resamples");
  CHECK(id(good, {.null_nats = not_a_number}) == "stats/non-finite");
  CHECK(id(good, {.method = IntervalMethod::identical}) == "stats/interval-method");
  const std::vector<PairedSums> others{good, {.tokens = {2, 1}, .difference_nats = {1, 1}}};
  CHECK(error_id([&] { compare_paired(others); }) == "stats/other-documents");
  CHECK_THROWS_WITH_AS(compare_paired({.tokens = {1, 2}, .difference_nats = {1, not_a_number}}),
                       doctest::Contains("element 1"), DataError);
}

TEST_CASE("losses that cannot be summed are refused with their place") {
  const std::vector<double> two{1, 2};
  const auto id = [&](const std::vector<double>& variant, const std::vector<Index>& offsets) {
    return error_id([&] { sum_by_document(two, variant, offsets); });
  };
  CHECK(id({1}, {0, 2}) == "stats/length-mismatch");
  CHECK(id({1, not_a_number}, {0, 2}) == "stats/non-finite");
  CHECK(id(two, {}) == "stats/offsets");
  CHECK(id(two, {1, 2}) == "stats/offsets");
  CHECK(id(two, {0, 1}) == "stats/offsets");
  CHECK(id(two, {0, 2, 1, 2}) == "stats/offsets");
  CHECK(id(two, {0, 0, 2, 2}) == "");
  CHECK(error_id([] { sum_by_document({}, {}, std::vector<Index>{0}); }) == "");
}

TEST_CASE("every method and warning has words") {
  for (const auto method : {IntervalMethod::identical, IntervalMethod::cluster_t,
                            IntervalMethod::percentile, IntervalMethod::bca}) {
    CHECK(!name_of(method).empty());
  }
  for (const auto warning :
       {PairedWarning::one_document, PairedWarning::few_documents,
        PairedWarning::bootstrap_of_few_documents, PairedWarning::documents_without_tokens,
        PairedWarning::no_variation, PairedWarning::dominant_document,
        PairedWarning::bca_unavailable, PairedWarning::percent_saturated}) {
    CHECK(!describe(warning).empty());
  }
}
