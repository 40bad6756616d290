// Where squared error comes from, against sorting all positions.
#include "wanamaker/surrogate/leverage.hpp"

#include "surrogate_data.hpp"
#include "wanamaker/surrogate/ridge.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using B = PlainBackend<double>;

struct Errors {
  std::vector<double> error;
  std::vector<double> total;
};

Errors errors_of(const AffineMap& map, const Data& data, std::span<const double> mean) {
  Errors all;
  for (Index t = 0; t < data.n; ++t) {
    double error = 0, total = 0;
    for (Index j = 0; j < data.e; ++j) {
      double guess = map.bias[static_cast<std::size_t>(j)];
      for (Index i = 0; i < data.d; ++i) guess += data.x_at(t, i) * map.weight_view()(i, j);
      error += std::pow(data.y_at(t, j) - guess, 2);
      total += std::pow(data.y_at(t, j) - mean[static_cast<std::size_t>(j)], 2);
    }
    all.error.push_back(error);
    all.total.push_back(total);
  }
  return all;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// Runs the pass in batches of `lengths` sequences each.
LeverageReport collect(const Data& data, const RidgeSurrogate& fit, std::span<const double> mean,
                       Index sequence, Index batch_sequences) {
  B backend;
  const AffineMlp<B> policy = fit.to_mlp(backend);
  LeverageCollector<B> collector(backend);
  collector.watch(4, policy, mean);
  for (Index first = 0; first < data.n; first += sequence * batch_sequences) {
    const Index count = std::min(sequence * batch_sequences, data.n - first);
    const std::vector<TokenId> tokens(static_cast<std::size_t>(count), 1);
    std::vector<Index> offsets;
    for (Index o = 0; o < count; o += sequence) offsets.push_back(o);
    offsets.push_back(count);
    const PackedBatch<B> batch(backend, tokens, offsets);
    const auto rows = upload(backend, data.middle(first, count));
    collector.begin_batch(batch);
    for (const Index layer : {3, 4}) {  // layer 3 is not watched
      collector.on_mlp_input(layer, rows.x.view());
      collector.on_mlp_output(layer, rows.y.view());
    }
  }
  return collector.report(4);
}

}  // namespace

TEST_CASE("planted outliers and first positions are found") {
  Data data = mixed_data(91, 1000, 4, 4);
  for (Index t = 0; t < 1000; t += 50) data.y_at(t, 1) += 30.0;     // first of each sequence
  for (Index t = 25; t < 1000; t += 125) data.y_at(t, 2) -= 200.0;  // 8 of 1,000 positions
  const CoMoments moments = moments_of(data);
  const auto fit = RidgeSurrogate::fit(moments);
  const Errors errors = errors_of(fit.map(), data, moments.mean_y());
  double first = 0;
  double first_total = 0;
  for (std::size_t t = 0; t < 1000; t += 50) {
    first += errors.error[t];
    first_total += errors.total[t];
  }
  std::vector<double> sorted = errors.error;
  std::sort(sorted.rbegin(), sorted.rend());
  const double top = std::accumulate(sorted.begin(), sorted.begin() + 10, 0.0);
  const double all = sum(errors.error);
  for (const Index batch : {1, 3, 20}) {
    const LeverageReport report = collect(data, fit, moments.mean_y(), 50, batch);
    CHECK(report.positions == 1000);
    CHECK(report.first_positions == 20);
    CHECK(std::abs(report.first_share - first / all) <= 1e-12);
    // The ninth and tenth largest are of one class of the distribution.
    CHECK(std::abs(report.top_share - top / all) <= 2.0 * sorted[9] / 64.0 / all);
    CHECK(report.top_share > 0.8);
    CHECK(std::abs(report.r2 - fit.report().in_sample.r2) <= 1e-12);
    const double r2_without_first = 1.0 - (all - first) / (sum(errors.total) - first_total);
    CHECK(std::abs(report.r2_without_first - r2_without_first) <= 1e-12);
    CHECK(report.r2_without_top > report.r2);
  }
}

TEST_CASE("the distribution's top share is exact up to one class, for any errors") {
  RandomStream random(92);
  for (int trial = 0; trial < 20; ++trial) {
    ErrorDistribution distribution;
    ErrorDistribution other_half;
    std::vector<double> errors;
    for (int i = 0; i < 700; ++i) {
      const double error = std::exp(6.0 * random.normal());
      errors.push_back(error);
      (i % 2 == 0 ? distribution : other_half).add(error, 2 * error);
    }
    distribution.merge(other_half);
    std::sort(errors.rbegin(), errors.rend());
    for (const double share : {0.01, 0.1, 0.5}) {
      const auto top = distribution.top(share);
      const auto wanted = static_cast<std::size_t>(std::round(700 * share));
      const double expected =
          std::accumulate(errors.begin(), errors.begin() + static_cast<Index>(wanted), 0.0);
      CHECK(std::abs(top.count - static_cast<double>(wanted)) <= 1e-9);
      CHECK(std::abs(top.error - expected) <= expected / 64.0);
      CHECK(std::abs(top.total - 2 * top.error) <= 1e-12 * top.total);
    }
    CHECK(std::abs(distribution.all().error - sum(errors)) <= 1e-12 * sum(errors));
  }
}

TEST_CASE("extreme and absent errors are no trouble") {
  ErrorDistribution distribution;
  CHECK(distribution.all().count == 0.0);
  for (const double error : {0.0, 5e-324, 1e-30, 1e30, 1e300}) distribution.add(error, 1.0);
  CHECK(distribution.all().count == 5.0);
  CHECK(distribution.all().error == 1e300 + 1e30);
  CHECK(distribution.top(0.4).count == 2.0);
  Data data = mixed_data(93, 40, 3, 3);
  for (double& y : data.y) y = 2.0;
  const CoMoments moments = moments_of(data);
  const LeverageReport report =
      collect(data, RidgeSurrogate::fit(moments), moments.mean_y(), 10, 2);
  CHECK(report.top_share == 0.0);
  CHECK(report.first_share == 0.0);
  CHECK(report.r2 == 0.0);
  CHECK(report.r2_without_top == 0.0);
}

TEST_CASE("a pass that was not begun, unknown layers and bad outputs are refused") {
  B backend;
  const Data data = mixed_data(94, 10, 3, 3);
  const CoMoments moments = moments_of(data);
  const AffineMlp<B> policy = RidgeSurrogate::fit(moments).to_mlp(backend);
  LeverageCollector<B> collector(backend);
  collector.watch(0, policy, moments.mean_y());
  auto rows = upload(backend, data);
  CHECK(error_id([&] { collector.on_mlp_input(0, rows.x.view()); }) == "shape/observer-order");
  CHECK(error_id([&] { (void)collector.report(1); }) == "shape/layer");
  const std::vector<TokenId> tokens(10, 1);
  const PackedBatch<B> batch(backend, tokens);
  collector.begin_batch(batch);
  collector.on_mlp_input(0, rows.x.view());
  CHECK(error_id([&] { collector.on_mlp_output(0, rows.y.view().middle_rows(0, 9)); }) ==
        "shape/observer-order");
  rows.y.view()(7, 1) = std::nan("");
  CHECK(error_id([&] { collector.on_mlp_output(0, rows.y.view()); }) ==
        "data/non-finite-activation");
}
