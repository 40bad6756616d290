// Do intervals and tests keep their promise on documents whose Δ is known?
#include <cmath>
#include <vector>

#include "stats/simulated_documents.hpp"
#include "testing.hpp"
#include "wanamaker/stats/non_inferiority.hpp"
#include "wanamaker/stats/paired_bootstrap.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

bool covers(const std::optional<Interval>& percent, double delta) {
  return percent && percent->low <= percent_of_nats(delta) &&
         percent_of_nats(delta) <= percent->high;
}

struct Coverage {
  double cluster_t = 0;
  double percentile = 0;
  double bca = 0;
  double accepted = 0;  ///< share of p-values ≥ 0.05 for the true Δ
};

Coverage coverage(Index documents, int trials) {
  constexpr double delta = 0.02;
  Coverage shares;
  for (int trial = 0; trial < trials; ++trial) {
    RandomStream random(61, static_cast<std::uint64_t>(trial));
    const PairedComparison result = compare_paired(simulated_documents(random, documents, delta),
                                                   {.resamples = 499,
                                                    .seed = static_cast<std::uint64_t>(trial),
                                                    .null_nats = delta,
                                                    .method = IntervalMethod::percentile});
    shares.cluster_t += covers(result.cluster_t_percent, delta) / static_cast<double>(trials);
    shares.percentile += covers(result.percentile_percent, delta) / static_cast<double>(trials);
    shares.bca += covers(result.bca_percent, delta) / static_cast<double>(trials);
    shares.accepted += (*result.p_value >= 0.05) / static_cast<double>(trials);
  }
  return shares;
}

/// Token losses of documents that differ in level: (baseline, variant) with Δ = 0.02.
PairedSums simulated_tokens(RandomStream& random, Index documents) {
  std::vector<double> baseline;
  std::vector<double> variant;
  std::vector<Index> offsets{0};
  for (Index i = 0; i < documents; ++i) {
    const double effect = 0.05 * random.normal();
    for (int token = 0; token < 60; ++token) {
      baseline.push_back(3 + 2 * random.normal());
      variant.push_back(baseline.back() + 0.02 + effect + 0.1 * random.normal());
    }
    offsets.push_back(static_cast<Index>(baseline.size()));
  }
  return sum_by_document(baseline, variant, offsets);
}

}  // namespace

// With 3,000 trials the standard error of a share of 95 % is 0.4 points, so that a true coverage of
// 92 % or less would be found out with probability 0.98. 499 resamples instead of 10,000 cost 0.4
// points of coverage (an end is the mean of its order statistic's place, 2 · 0.95 / (B + 1) more of
// the replicates lie outside), well inside the limits.
TEST_CASE("95 % intervals over 50 documents cover between 93 and 97 %") {
  const Coverage shares = coverage(50, 3000);
  for (const double share : {shares.percentile, shares.cluster_t, shares.accepted}) {
    CHECK(share > 0.93);
    CHECK(share < 0.97);
  }
  // BCa, which is not the default, needs more documents (docs/statistics.md).
  CHECK(shares.bca > 0.92);
  CHECK(shares.bca < 0.97);
}

// Unequal lengths leave fewer documents' worth of information than Student's t is told of: below 40
// documents the interval is somewhat too narrow, which docs/statistics.md says.
TEST_CASE("95 % cluster-t intervals over 12 documents cover at least 90 %") {
  const Coverage shares = coverage(12, 1000);
  CHECK(shares.cluster_t > 0.90);
  CHECK(shares.cluster_t < 0.97);
}

TEST_CASE("token-level intervals miss: paired too narrow, unpaired many times too wide") {
  constexpr int trials = 300;
  double naive = 0;
  double clustered = 0;
  double wider = 0;
  for (int trial = 0; trial < trials; ++trial) {
    RandomStream random(62, static_cast<std::uint64_t>(trial));
    const PairedComparison result =
        compare_paired(simulated_tokens(random, 30), {.method = IntervalMethod::cluster_t});
    naive += covers(result.naive_paired_percent, 0.02) / static_cast<double>(trials);
    clustered += covers(result.cluster_t_percent, 0.02) / static_cast<double>(trials);
    wider += (result.naive_unpaired_percent->high - result.naive_unpaired_percent->low) /
             (result.cluster_t_percent->high - result.cluster_t_percent->low) / trials;
  }
  // Documents hold √(1 + 60 · 0.05² / 0.1²) = 4 times the token-level error: coverage about 38 %.
  CHECK(naive < 0.5);
  CHECK(clustered > 0.92);
  CHECK(wider > 3);
}

TEST_CASE("a variant exactly at the margin is called non-inferior about as often as alpha says") {
  constexpr int trials = 1500;
  const NonInferiorityMargin margin{.percent = 2, .alpha = 0.05};
  double called = 0;
  double by_p_value = 0;
  for (int trial = 0; trial < trials; ++trial) {
    RandomStream random(63, static_cast<std::uint64_t>(trial));
    const NonInferiorityResult result =
        test_non_inferiority(simulated_documents(random, 60, std::log(1.02)), margin,
                             {.resamples = 299, .seed = static_cast<std::uint64_t>(trial)});
    called += (result.verdict == NonInferiorityVerdict::non_inferior) / double{trials};
    by_p_value += (*result.p_value < 0.05) / double{trials};
  }
  // Four standard errors of a share of 5 % in 1,500 trials, and 0.6 points for 299 resamples.
  for (const double share : {called, by_p_value}) {
    CHECK(share > 0.025);
    CHECK(share < 0.08);
  }
}
