// Moments, quantiles, shares, ranks and correlation.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "stats/reference_values.hpp"
#include "testing.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/stats/correlation.hpp"
#include "wanamaker/stats/distribution_summary.hpp"
#include "wanamaker/stats/quantiles.hpp"
#include "wanamaker/stats/ranks.hpp"
#include "wanamaker/stats/running_moments.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

std::vector<double> normals(std::uint64_t seed, int count, double mean = 0) {
  RandomStream random(seed);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(mean + random.normal());
  return values;
}

}  // namespace

TEST_CASE("moments by hand, and missing where undefined") {
  RunningMoments moments;
  CHECK(!moments.mean());
  CHECK(!moments.variance());
  moments.add(3);
  CHECK(moments.mean() == 3.0);
  CHECK(!moments.standard_deviation());
  CHECK(!moments.standard_error());
  moments.add(5);
  moments.add(10);
  CHECK(moments.count() == 3);
  CHECK(moments.mean() == 6.0);
  CHECK(moments.variance() == 13.0);  // (9 + 1 + 16) / 2
  CHECK(*moments.standard_error() == std::sqrt(13.0 / 3));
}

TEST_CASE("merged moments are those of the whole stream, far from zero too") {
  const std::vector<double> values = normals(31, 1000, 1e6);
  RunningMoments whole;
  for (const double value : values) whole.add(value);
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{333}, values.size()}) {
    RunningMoments first;
    RunningMoments second;
    for (std::size_t i = 0; i < values.size(); ++i) (i < cut ? first : second).add(values[i]);
    first.merge(second);
    CHECK(first.count() == whole.count());
    CHECK(all_close(std::vector{*first.mean()}, std::vector{*whole.mean()}, 8 * epsilon, 0));
    // Each of 1000 updates of the mean rounds by 1e6 eps; deviations are about 1.
    CHECK(all_close(std::vector{*first.variance()}, std::vector{*whole.variance()},
                    1e6 * 8 * epsilon, 0));
  }
  double centred = 0;
  for (const double value : values) centred += (value - 1e6) * (value - 1e6);
  const double offset = *whole.mean() - 1e6;
  CHECK(all_close(std::vector{*whole.variance()},
                  std::vector{(centred - 1000 * offset * offset) / 999}, 1e6 * 8 * epsilon, 0));
}

TEST_CASE("quantiles, moments, ranks and correlations agree with numpy and scipy") {
  const std::vector<double> x = recorded("pairs", "x");
  const std::vector<double> y = recorded("pairs", "y");
  // Interpolation rounds twice, at the size of the values.
  CHECK(all_close(quantiles(x, recorded("pairs", "p")), recorded("pairs", "quantiles_x"),
                  4 * epsilon, 4 * epsilon));
  CHECK(average_ranks(y) == recorded("pairs", "ranks_y"));
  const std::vector<double> actual{*pearson_correlation(x, y), *spearman_correlation(x, y)};
  const std::vector<double> expected{recorded_number("pairs", "pearson"),
                                     recorded_number("pairs", "spearman")};
  CHECK(all_close(actual, expected, 80 * epsilon, 0));  // 80 terms on either side
  RunningMoments moments;
  for (const double value : x) moments.add(value);
  CHECK(all_close(
      std::vector{*moments.mean(), *moments.variance()},
      std::vector{recorded_number("pairs", "mean_x"), recorded_number("pairs", "variance_x")},
      80 * epsilon, 80 * epsilon));
}

TEST_CASE("quantiles by hand") {
  const std::vector<double> ascending{1, 2, 4, 8};
  CHECK(sorted_quantile(ascending, 0) == 1);
  CHECK(sorted_quantile(ascending, 0.5) == 3);
  CHECK(sorted_quantile(ascending, 1) == 8);
  CHECK(sorted_quantile(ascending, 0.25) == 1.75);
  CHECK(sorted_quantile(std::vector{7.0}, 0.3) == 7);
  CHECK(error_id([] { sorted_quantile({}, 0.5); }) == "stats/empty");
  CHECK(error_id([&] { sorted_quantile(ascending, not_a_number); }) == "stats/probability");
  CHECK(error_id([] {
          quantiles(std::vector{1.0, not_a_number}, std::vector{0.5});
        }) == "stats/non-finite");
}

TEST_CASE("shares by hand") {
  const std::vector<double> values{-0.5, 0.04, -0.04, 0.05, 10, 0, 0, 0, 0, 0};
  CHECK(share_below(values, 0.05) == 0.7);
  CHECK(top_share(values, 0.1) == 10 / 10.09);
  CHECK(*top_share(values, 0.15) == doctest::Approx((10 + 0.5 * 0.05) / 10.09).epsilon(1e-14));
  CHECK(top_share(values, 0) == 0.0);
  CHECK(top_share(values, 1) == 1.0);
  CHECK(!top_share(std::vector{-1.0, 0.0}, 0.1));
  CHECK(error_id([] { top_share({}, 0.1); }) == "stats/empty");
  CHECK(error_id([] { share_below({}, 0.1); }) == "stats/empty");
  CHECK(error_id([&] { top_share(values, 5); }) == "stats/probability");
  CHECK(error_id([] { share_below(std::vector{HUGE_VAL}, 0.1); }) == "stats/non-finite");
}

TEST_CASE("equal values are held evenly, whatever the fraction") {
  const std::vector<double> equal(37, 2.0);
  for (const double fraction : {0.01, 0.05, 0.1, 0.5, 0.99}) {
    // Sums of 37 terms.
    CHECK(all_close(std::vector{*top_share(equal, fraction)}, std::vector{fraction}, 37 * epsilon,
                    0));
  }
}

TEST_CASE("a planted heavy tail is found by the summary") {
  std::vector<double> values = normals(32, 10000);
  for (double& value : values) value *= 1e-3;
  for (std::size_t i = 0; i < 100; ++i) values[i * 97] = 5;
  const DistributionSummary summary = summarise_distribution(values);
  CHECK(summary.count == 10000);
  CHECK(summary.quantiles.size() == 9);
  CHECK(summary.quantiles[4].at == 0.5);
  CHECK(std::abs(*summary.quantiles[4].value) < 1e-4);
  CHECK(summary.share_below[1].at == 0.05);
  CHECK(summary.share_below[1].value == 0.99);
  CHECK(summary.top_share[0].at == 0.01);
  CHECK(*summary.top_share[0].value > 0.99);
  CHECK(error_id([] { summarise_distribution({}); }) == "stats/empty");
  const DistributionSummary one = summarise_distribution(std::vector{-1.0});
  CHECK(!one.standard_deviation);
  CHECK(!one.top_share[0].value);
}

TEST_CASE("ranks by hand") {
  CHECK(average_ranks(std::vector{3.0, 1.0, 3.0, 2.0, 3.0}) ==
        std::vector{4.0, 1.0, 4.0, 2.0, 4.0});
  CHECK(average_ranks({}).empty());
  CHECK(error_id([] { average_ranks(std::vector{0.0, not_a_number}); }) == "stats/non-finite");
}

TEST_CASE("correlation of exact relations, and of constants") {
  const std::vector<double> x{1, 2, 3, 4};
  CHECK(*pearson_correlation(x, std::vector{-2.0, -4.0, -6.0, -8.0}) == -1);
  CHECK(*spearman_correlation(x, std::vector{1.0, 10.0, 100.0, 1e9}) == 1);
  CHECK(!pearson_correlation(x, std::vector(4, 0.1)));
  CHECK(!pearson_correlation({}, {}));
  CHECK(!pearson_correlation(std::vector{1.0}, std::vector{1.0}));
  CHECK(error_id([&] { pearson_correlation(x, std::vector{1.0}); }) == "stats/length-mismatch");
  CHECK(error_id([&] { spearman_correlation(x, std::vector{1.0}); }) == "stats/length-mismatch");
  CHECK(error_id([&] {
          pearson_correlation(x, std::vector{1.0, not_a_number, 1.0, 1.0});
        }) == "stats/non-finite");
}

TEST_CASE("correlation is unchanged by scale and offset, tiny and huge ones too") {
  const std::vector<double> x = normals(33, 200);
  std::vector<double> y = normals(34, 200);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += 0.5 * x[i];
  const double r = *pearson_correlation(x, y);
  CHECK(r > 0.2);
  for (const double scale : {1e-200, 1e-3, 1e90}) {
    std::vector<double> scaled = x;
    for (double& value : scaled) value *= scale;
    CHECK(
        all_close(std::vector{*pearson_correlation(scaled, y)}, std::vector{r}, 200 * epsilon, 0));
  }
  std::vector<double> shifted = x;
  for (double& value : shifted) value += 1e6;
  // The offset leaves deviations good to 1e6 eps.
  CHECK(all_close(std::vector{*pearson_correlation(shifted, y)}, std::vector{r}, 1e7 * epsilon, 0));
}
