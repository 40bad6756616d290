// k-means, silhouette, purity and variance components against scikit-learn and statsmodels, by
// hand, and on data with a known answer.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "stats/reference_values.hpp"
#include "testing.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/stats/cluster_quality.hpp"
#include "wanamaker/stats/k_means.hpp"
#include "wanamaker/stats/variance_components.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

std::vector<Index> structure_indices(const std::string& group, const std::string& key) {
  std::vector<Index> values;
  for (const double v : recorded_structure(group, key)) values.push_back(static_cast<Index>(v));
  return values;
}

double structure_number(const std::string& group, const std::string& key) {
  return recorded_structure(group, key).at(0);
}

bool near(double actual, double expected, double rtol, double atol = 0) {
  return all_close(std::vector{actual}, std::vector{expected}, rtol, atol);
}

/// n rows of d standard normals.
std::vector<double> normal_rows(std::uint64_t seed, Index n, Index d) {
  RandomStream random(seed);
  std::vector<double> x(static_cast<std::size_t>(n * d));
  for (double& v : x) v = random.normal();
  return x;
}

}  // namespace

TEST_CASE("k-means from given centres ends where scikit-learn's does") {
  const std::vector<double> values = recorded_structure("clusters", "x");
  const ConstMatrixView<double> x(values.data(), 90, 3);
  const KMeans result = k_means_from(x, x.middle_rows(0, 4));
  CHECK(result.converged);
  CHECK(result.assignment == structure_indices("clusters", "labels"));
  // Means of at most 90 values of order 1.
  CHECK(all_close(result.centres, recorded_structure("clusters", "centres"), 0, 90 * epsilon * 6));
  CHECK(near(result.inertia, structure_number("clusters", "inertia"), 1e-13));
  CHECK(std::accumulate(result.sizes.begin(), result.sizes.end(), Index{0}) == 90);
}

TEST_CASE("k-means++ with restarts finds the clouds that scikit-learn finds") {
  const std::vector<double> values = recorded_structure("clusters", "clouds");
  const ConstMatrixView<double> x(values.data(), 150, 2);
  for (const std::uint64_t seed : {0u, 1u, 2u}) {
    const KMeans result = k_means(x, {.clusters = 5, .seed = seed});
    CHECK(result.converged);
    CHECK(near(result.inertia, structure_number("clusters", "clouds_inertia"), 1e-13));
    CHECK(near(silhouette(x, result.assignment).mean,
               structure_number("clusters", "clouds_silhouette"), 1e-13));
  }
}

TEST_CASE("more restarts never make it worse, and every row is nearest to its own centre") {
  const std::vector<double> values = normal_rows(3, 700, 4);
  const ConstMatrixView<double> x(values.data(), 700, 4);
  double before = 1e300;
  for (const Index restarts : {1, 3, 8}) {
    const KMeans result = k_means(x, {.clusters = 9, .restarts = restarts, .seed = 5});
    CHECK(result.inertia <= before);
    before = result.inertia;
    double inertia = 0;
    bool all_nearest = true;
    for (Index i = 0; i < x.rows; ++i) {
      std::vector<double> distances;
      for (Index c = 0; c < 9; ++c) {
        distances.push_back(detail::squared_distance(x.row(i), result.centres.data() + c * 4, 4));
      }
      const auto nearest = std::min_element(distances.begin(), distances.end());
      all_nearest = all_nearest &&
                    nearest - distances.begin() == result.assignment[static_cast<std::size_t>(i)];
      inertia += *nearest;
    }
    CHECK(all_nearest);
    CHECK(near(result.inertia, inertia, 1e-12));
  }
}

TEST_CASE("k-means is the same for any number of threads, and another for another seed") {
  const std::vector<double> values = normal_rows(4, 1500, 3);
  const ConstMatrixView<double> x(values.data(), 1500, 3);
  const KMeansOptions options{.clusters = 12, .restarts = 2, .iterations = 40, .seed = 7};
  const KMeans serial = k_means(x, options);
  for (const Index threads : {2, 3}) {
    ThreadPool pool(threads);
    const KMeans parallel = k_means(x, options, pool);
    CHECK(parallel.centres == serial.centres);
    CHECK(parallel.assignment == serial.assignment);
    CHECK(parallel.inertia == serial.inertia);
  }
  KMeansOptions other = options;
  other.seed = 8;
  CHECK(k_means(x, other).centres != serial.centres);
}

TEST_CASE("a cluster that loses its rows takes the farthest one") {
  // The third centre is nearest to nothing; 100 is farthest from its centre.
  const std::vector<double> values{0, 1, 2, 60, 61, 100};
  const std::vector<double> centres{1, 60, 1e6};
  const KMeans result = k_means_from({values.data(), 6, 1}, {centres.data(), 3, 1});
  CHECK(result.converged);
  CHECK(result.assignment == std::vector<Index>{0, 0, 0, 1, 1, 2});
  CHECK(result.sizes == std::vector<Index>{3, 2, 1});
  CHECK(result.inertia == 2.5);
}

TEST_CASE("as many clusters as different rows, and runs that are cut short") {
  const std::vector<double> values{5, 1, 5, 3, 1};
  const KMeans result = k_means({values.data(), 5, 1}, {.clusters = 3});
  CHECK(result.inertia == 0);
  CHECK(result.assignment[0] == result.assignment[2]);
  CHECK(result.assignment[1] == result.assignment[4]);
  const std::vector<double> many = normal_rows(9, 400, 2);
  const KMeans cut =
      k_means({many.data(), 400, 2}, {.clusters = 8, .restarts = 1, .iterations = 1});
  CHECK(!cut.converged);
  CHECK(cut.iterations == 1);
}

TEST_CASE("what cannot be clustered is refused") {
  const std::vector<double> same(12, 0.25);
  const std::vector<double> bad{1, not_a_number, 2};
  const auto id = [](const std::vector<double>& x, Index rows, Index clusters) {
    return error_id([&] {
      k_means({x.data(), rows, static_cast<Index>(x.size()) / rows}, {.clusters = clusters});
    });
  };
  CHECK(id(same, 6, 2) == "stats/clusters");
  CHECK(id(same, 12, 13) == "stats/clusters");
  CHECK(id(same, 12, 1) == "stats/clusters");
  CHECK(id(bad, 3, 2) == "stats/non-finite");
  CHECK(error_id([&] { k_means({nullptr, 0, 3}, {.clusters = 2}); }) == "stats/clusters");
  CHECK(error_id([&] {
          k_means_from({same.data(), 6, 2}, {same.data(), 2, 3});
        }) == "shape/matrix");
  const ConstMatrixView<double> x(same.data(), 12, 1);
  CHECK(error_id([&] { silhouette(x, std::vector<Index>(12)); }) == "stats/clusters");
  CHECK(error_id([&] { silhouette(x, std::vector<Index>(11)); }) == "stats/length-mismatch");
  CHECK(error_id([&] { silhouette(x, std::vector<Index>(12, -1)); }) == "stats/group");
  CHECK(error_id([&] { purity({}, {}); }) == "stats/empty");
}

TEST_CASE("silhouette, purity and explained variance agree with scikit-learn and statsmodels") {
  const std::vector<double> values = recorded_structure("clusters", "x");
  const ConstMatrixView<double> x(values.data(), 90, 3);
  const std::vector<Index> labels = structure_indices("clusters", "labels");
  const Silhouette exact = silhouette(x, labels);
  CHECK(exact.is_exact);
  CHECK(near(exact.mean, structure_number("clusters", "silhouette"), 1e-12));
  CHECK(purity(labels, structure_indices("clusters", "other_labels")) ==
        structure_number("clusters", "purity"));
  const auto explained = explained_variance(labels, recorded_structure("clusters", "y"));
  CHECK(near(explained->share, structure_number("clusters", "r2"), 1e-12));
  CHECK(near(*explained->adjusted, structure_number("clusters", "r2_adjusted"), 1e-11));
  CHECK(explained->groups == 4);
}

TEST_CASE("silhouettes by hand, and of a sample") {
  // 0 and 2 against 5, 9: rows 0: a 2, b 7; 1: a 2, b 5; 2: a 4, b 4; 3: a 4, b 8.
  const std::vector<double> values{0, 2, 5, 9};
  const std::vector<Index> pairs{0, 0, 1, 1};
  const ConstMatrixView<double> x(values.data(), 4, 1);
  CHECK(near(silhouette(x, pairs).mean, (5.0 / 7 + 3.0 / 5 + 0.0 / 4 + 4.0 / 8) / 4, 1e-15));
  // A row alone counts 0: row 0: a 2, b 9 → 7/9; row 1: b 7 → 5/7; row 2: a, with 5 in cluster 0…
  CHECK(near(silhouette(x, std::vector<Index>{0, 0, 0, 1}).mean,
             ((9 - 3.5) / 9 + (7 - 2.5) / 7 + 0.0 / 4 + 0) / 4, 1e-15));
  const std::vector<double> many = normal_rows(21, 300, 2);
  const ConstMatrixView<double> rows(many.data(), 300, 2);
  const KMeans clusters = k_means(rows, {.clusters = 3, .restarts = 2});
  const double exact = silhouette(rows, clusters.assignment).mean;
  double mean = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Silhouette sampled = silhouette(rows, clusters.assignment, 40, seed);
    CHECK(!sampled.is_exact);
    CHECK(sampled.rows == 40);
    mean += sampled.mean / 60;
  }
  // Silhouettes spread by less than 0.5: the mean of 60 samples of 40 is off by 0.5/√2400 = 0.01;
  // five times that.
  CHECK(std::abs(mean - exact) < 0.05);
  CHECK(silhouette(rows, clusters.assignment, 300).is_exact);
}

TEST_CASE("purity and explained variance by hand") {
  const std::vector<Index> groups{0, 0, 0, 1, 1};
  CHECK(purity(groups, std::vector<Index>{7, 7, 8, 8, 8}) == 0.8);
  CHECK(purity(groups, std::vector<Index>{1, 1, 1, 2, 2}) == 1);
  // Means 1 and 6, mean 3: between 3·4 + 2·9 = 30, within 2 + 2 = 4.
  const auto explained = explained_variance(groups, std::vector{0.0, 1.0, 2.0, 5.0, 7.0});
  CHECK(near(explained->share, 30.0 / 34, 1e-15));
  CHECK(near(*explained->adjusted, 1 - (4.0 / 3) / (34.0 / 4), 1e-15));
  CHECK(!explained_variance(groups, std::vector(5, 0.1)));
  CHECK(!explained_variance(std::vector<Index>{0}, std::vector{1.0}));
  CHECK(!explained_variance(std::vector<Index>{0, 1}, std::vector{1.0, 2.0})->adjusted);
}

TEST_CASE("random partitions explain nothing on average") {
  RandomStream random(31);
  double sum = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Index> groups;
    std::vector<double> values;
    for (int i = 0; i < 100; ++i) {
      groups.push_back(static_cast<Index>(random.below(10)));
      values.push_back(random.normal());
    }
    sum += explained_variance(groups, values)->adjusted.value();
  }
  // One R² has deviation √(2·9)/100 or so, the mean of 200 of them 0.003; five times that.
  CHECK(std::abs(sum / 200) < 0.015);
}

TEST_CASE("variance components agree with statsmodels") {
  const auto unequal = variance_components(structure_indices("components", "types"),
                                           recorded_structure("components", "y"));
  REQUIRE(unequal);
  CHECK(near(unequal->within, structure_number("components", "mean_square_within"), 1e-12));
  CHECK(near(*unequal->f, structure_number("components", "f"), 1e-11));
  CHECK(near(unequal->p_value, structure_number("components", "p_value"), 1e-9));
  const auto equal = variance_components(structure_indices("components", "equal_types"),
                                         recorded_structure("components", "equal_y"));
  // The peer maximises numerically, to about √eps of a flat optimum.
  CHECK(near(equal->within, structure_number("components", "reml_within"), 1e-5));
  CHECK(near(equal->between, structure_number("components", "reml_between"), 1e-4));
  CHECK(equal->types == 12);
  CHECK(equal->mean_inverse_count == doctest::Approx(0.2).epsilon(1e-14));
}

TEST_CASE("tails of the F distribution agree with SciPy") {
  const std::vector<double> f = recorded_structure("components", "tail_f");
  const std::vector<double> d1 = recorded_structure("components", "tail_d1");
  const std::vector<double> d2 = recorded_structure("components", "tail_d2");
  std::vector<double> tails;
  for (std::size_t i = 0; i < f.size(); ++i) tails.push_back(f_upper_tail(f[i], d1[i], d2[i]));
  CHECK(all_close(tails, recorded_structure("components", "tail"), 1e-11, 1e-300));
  CHECK(f_upper_tail(0, 1, 1) == 1);
  CHECK(error_id([] { f_upper_tail(1, 0, 1); }) == "stats/degrees-of-freedom");
}

TEST_CASE("variance components by hand") {
  // Types {1, 3}, {6}, {8, 8, 8}: n 6, g 3, mean 34/6; n₀ = (6 − (4 + 1 + 9)/6)/2 = 11/6.
  const std::vector<Index> types{0, 0, 1, 2, 2, 2};
  const auto c = variance_components(types, std::vector{1.0, 3.0, 6.0, 8.0, 8.0, 8.0});
  const double mean = 34.0 / 6;
  const double between =
      2 * (2 - mean) * (2 - mean) + (6 - mean) * (6 - mean) + 3 * (8 - mean) * (8 - mean);
  CHECK(near(c->within, 2.0 / 3, 1e-14));
  CHECK(near(c->between, (between / 2 - 2.0 / 3) * 6 / 11, 1e-13));
  CHECK(near(c->mean_inverse_count, (0.5 + 1 + 1.0 / 3) / 3, 1e-15));
  CHECK(near(c->reliability(2), c->between / (c->between + c->within / 2), 1e-15));
  CHECK(c->intraclass() == c->reliability(1));
  CHECK(c->list_reliability() > c->intraclass());
}

TEST_CASE("no variance between is reported as none, and degenerate layouts as missing") {
  // Means equal, spread within: the estimate is negative and cut.
  const auto none =
      variance_components(std::vector<Index>{0, 0, 1, 1}, std::vector{-1., 1., 2., -2.});
  CHECK(none->estimate < 0);
  CHECK(none->between == 0);
  CHECK(none->list_reliability() == 0);
  CHECK(none->p_value == 1);
  const auto pure =
      variance_components(std::vector<Index>{0, 0, 1, 1}, std::vector{1., 1., 2., 2.});
  CHECK(pure->within == 0);
  CHECK(!pure->f);
  CHECK(pure->p_value == 0);
  CHECK(pure->list_reliability() == 1);
  const std::vector<Index> types{0, 0, 1, 1};
  CHECK(!variance_components(types, std::vector(4, 0.3)));
  CHECK(!variance_components(std::vector<Index>{0, 0, 0}, std::vector{1., 2., 3.}));
  CHECK(!variance_components(std::vector<Index>{0, 1, 2}, std::vector{1., 2., 3.}));
  CHECK(!variance_components({}, {}));
  CHECK(error_id([&] { variance_components(types, std::vector{1.}); }) == "stats/length-mismatch");
  CHECK(error_id([&] {
          variance_components(types, std::vector{1., not_a_number, 2., 3.});
        }) == "stats/non-finite");
}

TEST_CASE("attenuation: two noisy copies of a list correlate as their reliability says") {
  // y = true + noise: 400 types, variance 1 between, 4 within, 6 observations: reliability 0.6.
  RandomStream random(41);
  std::vector<double> truth(400);
  for (double& t : truth) t = random.normal();
  const auto observe = [&](std::vector<Index>& types, std::vector<double>& values) {
    std::vector<double> means(400);
    for (std::size_t t = 0; t < 400; ++t) {
      for (int i = 0; i < 6; ++i) {
        types.push_back(static_cast<Index>(t));
        values.push_back(truth[t] + 2 * random.normal());
        means[t] += values.back() / 6;
      }
    }
    return means;
  };
  std::vector<Index> types_a, types_b;
  std::vector<double> values_a, values_b;
  const std::vector<double> a = observe(types_a, values_a);
  const std::vector<double> b = observe(types_b, values_b);
  const auto components_a = variance_components(types_a, values_a);
  const auto components_b = variance_components(types_b, values_b);
  // Of 400 types the reliability has deviation (1 − 0.6)·√(2·(5/6 + …)/400) < 0.035.
  CHECK(std::abs(components_a->list_reliability() - 0.6) < 0.12);
  double ab = 0, aa = 0, bb = 0, ma = 0, mb = 0;
  for (std::size_t t = 0; t < 400; ++t) {
    ma += a[t] / 400;
    mb += b[t] / 400;
  }
  for (std::size_t t = 0; t < 400; ++t) {
    ab += (a[t] - ma) * (b[t] - mb);
    aa += (a[t] - ma) * (a[t] - ma);
    bb += (b[t] - mb) * (b[t] - mb);
  }
  const Attenuation corrected = attenuation(
      ab / std::sqrt(aa * bb), components_a->list_reliability(), components_b->list_reliability());
  CHECK(std::abs(*corrected.disattenuated - 1) < 0.2);
  CHECK(attenuation(0.3, 0.25, 1).attainable == 0.5);
  CHECK(*attenuation(0.3, 0.25, 1).disattenuated == 0.6);
  CHECK(!attenuation(0.3, 0, 1).disattenuated);
  CHECK(error_id([] { attenuation(0.3, 1.5, 1); }) == "stats/probability");
}
