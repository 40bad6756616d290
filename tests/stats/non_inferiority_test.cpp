// Verdicts on a margin stated beforehand.
#include "wanamaker/stats/non_inferiority.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "stats/simulated_documents.hpp"
#include "testing.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

NonInferiorityResult test_of(Index documents, double delta, NonInferiorityMargin margin) {
  RandomStream random(71);
  return test_non_inferiority(simulated_documents(random, documents, delta), margin,
                              {.resamples = 999});
}

}  // namespace

TEST_CASE("the verdict follows the interval and the margin") {
  // 200 documents: standard error about 0.004 nats, 0.4 %.
  const NonInferiorityResult shown = test_of(200, 0.0, {.percent = 3});
  CHECK(shown.verdict == NonInferiorityVerdict::non_inferior);
  CHECK(*shown.comparison.ci_high_percent < 3);
  CHECK(*shown.p_value < 0.05);
  CHECK(shown.comparison.level == 0.9);
  CHECK(shown.comparison.null_nats == std::log1p(0.03));

  const NonInferiorityResult refuted = test_of(200, 0.08, {.percent = 3});
  CHECK(refuted.verdict == NonInferiorityVerdict::inferior);
  CHECK(*refuted.comparison.ci_low_percent > 3);
  CHECK(*refuted.p_value > 0.95);
  CHECK(!refuted.documents_needed);

  const NonInferiorityResult open = test_of(12, 0.0, {.percent = 0.5});
  CHECK(open.verdict == NonInferiorityVerdict::undecided);
  CHECK(*open.p_value >= 0.05);
}

TEST_CASE("without an interval there is no verdict") {
  const NonInferiorityResult result =
      test_non_inferiority({.tokens = {5}, .difference_nats = {0.1}}, {.percent = 1});
  CHECK(result.verdict == NonInferiorityVerdict::no_interval);
  CHECK(!result.p_value);
  CHECK(!result.documents_needed);
}

TEST_CASE("an identical variant is non-inferior by any margin but none") {
  const PairedSums identical{.tokens = {5, 6, 7}, .difference_nats = {0, 0, 0}};
  CHECK(test_non_inferiority(identical, {.percent = 0.1}).verdict ==
        NonInferiorityVerdict::non_inferior);
  CHECK(test_non_inferiority(identical, {.percent = 0}).verdict ==
        NonInferiorityVerdict::undecided);
}

TEST_CASE("documents needed by hand") {
  // n = 1: Δ = 0, residuals ±1, se² = 4/3 · 4 / 16 = 1/3. Margin ln 2 nats.
  const PairedSums sums{.tokens = {1, 1, 1, 1}, .difference_nats = {1, -1, 1, -1}};
  const NonInferiorityResult result = test_non_inferiority(sums, {.percent = 100});
  const double z = 1.6448536269514722 + 0.8416212335729143;
  const double needed = 4 * z * z / 3 / (std::log(2.0) * std::log(2.0));
  CHECK(result.documents_needed == static_cast<Index>(std::ceil(needed)));
}

TEST_CASE("with the documents that it asks for, the test succeeds four times in five") {
  const NonInferiorityMargin margin{.percent = 1};
  constexpr double distance = 0.00995;  // ln 1.01, Δ = 0
  // Simulated documents: e has standard deviation √(0.05² + 0.3²/n) per token; take it from 4,000.
  RandomStream pilot(72);
  const NonInferiorityResult large = test_non_inferiority(
      simulated_documents(pilot, 4000, 0), margin, {.method = IntervalMethod::cluster_t});
  const double se = *large.comparison.standard_error_nats * std::sqrt(4000.0);
  const double z = 1.6448536269514722 + 0.8416212335729143;
  const Index needed = static_cast<Index>(std::ceil(std::pow(z * se / distance, 2)));
  int successes = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    RandomStream random(73, static_cast<std::uint64_t>(trial));
    successes += test_non_inferiority(simulated_documents(random, needed, 0), margin,
                                      {.method = IntervalMethod::cluster_t})
                     .verdict == NonInferiorityVerdict::non_inferior;
  }
  // Four standard errors of a share of 80 % in 1,000 trials.
  CHECK(std::abs(successes / 1000.0 - 0.8) < 0.05);
}

TEST_CASE("impossible margins are refused") {
  const PairedSums sums{.tokens = {1, 1}, .difference_nats = {1, 2}};
  const double undefined = std::numeric_limits<double>::quiet_NaN();
  const auto id = [&](NonInferiorityMargin margin) {
    return error_id([&] { test_non_inferiority(sums, margin); });
  };
  CHECK(id({.percent = -1}) == "stats/margin");
  CHECK(id({.percent = undefined}) == "stats/margin");
  CHECK(id({.percent = HUGE_VAL}) == "stats/margin");
  CHECK(id({.alpha = 0.5}) == "stats/probability");
  CHECK(id({.alpha = 0}) == "stats/probability");
  CHECK(id({.alpha = undefined}) == "stats/probability");
  CHECK(id({}) == "");
}

TEST_CASE("every verdict has a name") {
  for (const auto verdict :
       {NonInferiorityVerdict::non_inferior, NonInferiorityVerdict::inferior,
        NonInferiorityVerdict::undecided, NonInferiorityVerdict::no_interval}) {
    CHECK(!name_of(verdict).empty());
  }
}
