// Reduced-rank regression against its definition, scikit-learn and planted maps.
#include "wanamaker/surrogate/low_rank.hpp"

#include "reference_values.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

/// Spectral gaps of the reference data are above 1e-2 of the largest value.
constexpr double reference_tolerance = 1e4 * eps;

double weighted_error(const AffineMap& map, const Data& data, const std::vector<double>& metric) {
  const Index e = data.e;
  double sum = 0;
  for (Index t = 0; t < data.n; ++t) {
    std::vector<double> error;
    for (Index j = 0; j < e; ++j) {
      double value = data.y_at(t, j) - map.bias[static_cast<std::size_t>(j)];
      for (Index i = 0; i < data.d; ++i) value -= data.x_at(t, i) * map.weight_view()(i, j);
      error.push_back(value);
    }
    for (std::size_t j = 0; j < error.size(); ++j) {
      for (std::size_t k = 0; k < error.size(); ++k) {
        sum += error[j] * metric[j * error.size() + k] * error[k];
      }
    }
  }
  return sum;
}

std::vector<double> identity(Index e) {
  std::vector<double> matrix(static_cast<std::size_t>(e * e));
  for (Index j = 0; j < e; ++j) matrix[static_cast<std::size_t>(j * (e + 1))] = 1.0;
  return matrix;
}

const RidgeOptions least_squares{0.0, LambdaScale::absolute};

}  // namespace

TEST_CASE("reduced rank equals the projected least squares of the reference, in either metric") {
  const CoMoments moments = moments_of(reference_data());
  const auto full = RidgeSurrogate::fit(moments, least_squares);
  const ReducedRankRegression plain(moments, full);
  for (const auto& expected : reference_values().at("reduced_rank")) {
    const LowRankSurrogate low = plain.of_rank(expected.at("rank").get<Index>());
    CHECK(low.rank() == expected.at("rank").get<Index>());
    CHECK(all_close(low.map().weight, flat(expected.at("weight")), 0.0, reference_tolerance));
  }
  const std::vector<double> metric = flat(reference_values().at("metric"));
  const ReducedRankRegression measured(moments, full, {metric.data(), 3, 3});
  for (const auto& expected : reference_values().at("reduced_rank_metric")) {
    const LowRankSurrogate low = measured.of_rank(expected.at("rank").get<Index>());
    CHECK(all_close(low.map().weight, flat(expected.at("weight")), 0.0, reference_tolerance));
  }
}

TEST_CASE("no map of the same rank nearby does better, in the metric given") {
  const Data data = mixed_data(61, 80, 6, 5, 1.0);
  const CoMoments moments = moments_of(data);
  const auto full = RidgeSurrogate::fit(moments, least_squares);
  std::vector<double> metric = identity(5);
  for (std::size_t j = 0; j < 5; ++j) metric[j * 6] = 1.0 + static_cast<double>(j);
  metric[1] = metric[5] = 0.5;
  RandomStream random(62);
  for (const auto& m : {identity(5), metric}) {
    const ReducedRankRegression regression(moments, full, {m.data(), 5, 5});
    const LowRankSurrogate low = regression.of_rank(2);
    const double best = weighted_error(low.map(), data, m);
    for (int trial = 0; trial < 30; ++trial) {
      std::vector<double> down(low.down().data, low.down().data + 12);
      std::vector<double> up(low.up().data, low.up().data + 10);
      for (double& v : down) v += 0.05 * random.normal();
      for (double& v : up) v += 0.05 * random.normal();
      AffineMap other = LowRankSurrogate(6, 5, down, up, {}).map();
      other.bias = detail::intercept(moments.mean_x(), moments.mean_y(), other.weight_view());
      CHECK(weighted_error(other, data, m) > best);
    }
  }
}

TEST_CASE("a planted map of rank 2 is recovered and its spectrum ends there") {
  Data data = mixed_data(63, 150, 7, 6, -2.0);
  std::vector<double> down, up;
  RandomStream random(64);
  for (int i = 0; i < 14; ++i) down.push_back(random.normal());
  for (int i = 0; i < 12; ++i) up.push_back(random.normal());
  const AffineMap planted = LowRankSurrogate(7, 6, down, up, {1, 2, 3, 4, 5, 6}).map();
  for (Index t = 0; t < data.n; ++t) {
    for (Index j = 0; j < 6; ++j) {
      data.y_at(t, j) = planted.bias[static_cast<std::size_t>(j)];
      for (Index i = 0; i < 7; ++i) {
        data.y_at(t, j) += data.x_at(t, i) * planted.weight_view()(i, j);
      }
    }
  }
  const CoMoments moments = moments_of(data);
  const auto full = RidgeSurrogate::fit(moments, least_squares);
  const ReducedRankRegression regression(moments, full);
  const double tolerance = 1e4 * eps * full.report().condition;
  CHECK(regression.spectrum()[2] <= tolerance * regression.spectrum()[0]);
  CHECK(regression.spectrum()[1] >= 1e-3 * regression.spectrum()[0]);
  const LowRankSurrogate low = regression.of_rank(2);
  CHECK(all_close(low.map().weight, planted.weight, 0.0, tolerance));
  CHECK(all_close(low.map().bias, planted.bias, 0.0, 10 * tolerance));
  CHECK(low.parameters() == 2 * 13 + 6);
}

TEST_CASE("full rank is the ridge fit itself, fewer ranks explain less and as the spectrum says") {
  const Data data = mixed_data(65, 90, 5, 8);
  const CoMoments moments = moments_of(data);
  const auto full = RidgeSurrogate::fit(moments, {2.0, LambdaScale::absolute});
  const ReducedRankRegression regression(moments, full);
  CHECK(regression.largest_rank() == 5);
  CHECK(all_close(regression.of_rank(5).map().weight, full.map().weight, 0.0, 1e-12));
  CHECK(all_close(regression.of_rank(5).map().bias, full.map().bias, 0.0, 1e-12));
  const auto bare = RidgeSurrogate::fit(moments, least_squares);
  const ReducedRankRegression unpenalised(moments, bare);
  double residual = 0;
  for (const double r : bare.report().in_sample.residual) residual += r;
  for (Index rank = 5; rank >= 1; --rank) {
    double actual = 0;
    for (const double r : explained(unpenalised.of_rank(rank).map(), moments).residual) actual += r;
    CHECK(std::abs(actual - residual) <= 1e-12 * residual);
    residual += unpenalised.spectrum()[static_cast<std::size_t>(rank - 1)];
  }
}

TEST_CASE("as an MLP policy a low-rank surrogate predicts what its map says") {
  const Data data = mixed_data(66, 20, 6, 6);
  const CoMoments moments = moments_of(data);
  const LowRankSurrogate low =
      ReducedRankRegression(moments, RidgeSurrogate::fit(moments)).of_rank(3);
  PlainBackend<double> backend;
  Workspace<PlainBackend<double>> workspace(backend);
  const auto there = upload(backend, data);
  auto y = make_matrix(backend, data.n, data.e);
  low.to_mlp(backend).forward(backend, there.x.view(), {}, y.view(), workspace);
  CHECK(low.to_mlp(backend).rank() == 3);
  CHECK(low.to_mlp(backend).cost(1).parameters == static_cast<double>(low.parameters()));
  const AffineMap map = low.map();
  for (Index t = 0; t < data.n; ++t) {
    for (Index j = 0; j < data.e; ++j) {
      double expected = map.bias[static_cast<std::size_t>(j)];
      for (Index i = 0; i < 6; ++i) expected += data.x_at(t, i) * map.weight_view()(i, j);
      CHECK(std::abs(y.view()(t, j) - expected) <= 1e-13 * (1.0 + std::abs(expected)));
    }
  }
}

TEST_CASE("ranks and metrics that cannot be are refused") {
  const CoMoments moments = moments_of(mixed_data(67, 20, 4, 3));
  const auto full = RidgeSurrogate::fit(moments);
  const ReducedRankRegression regression(moments, full);
  for (const Index rank : {-1, 0, 4}) {
    CHECK(error_id([&] { regression.of_rank(rank); }) == "shape/rank");
  }
  const std::vector<double> indefinite{1, 0, 0, 0, -1, 0, 0, 0, 1};
  CHECK(error_id([&] {
          ReducedRankRegression(moments, full, {indefinite.data(), 3, 3});
        }) == "numeric/metric-not-positive");
  CHECK(error_id([&] {
          ReducedRankRegression(moments, full, {indefinite.data(), 1, 1});
        }) == "shape/matrix");
}
