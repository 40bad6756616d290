// The QR route against Cholesky where both work, and beyond where only it does.
#include "wanamaker/surrogate/qr_accumulator.hpp"

#include "surrogate_data.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

QrAccumulator accumulate(const Data& data, Index batch = 1000000,
                         std::span<const double> weights = {}) {
  PlainBackend<double> backend;
  Workspace<PlainBackend<double>> workspace(backend);
  QrAccumulator qr(data.d, data.e);
  for (Index first = 0; first < data.n; first += batch) {
    const Index count = std::min(batch, data.n - first);
    const auto rows = upload(backend, data.middle(first, count));
    const auto own = weights.empty() ? weights
                                     : weights.subspan(static_cast<std::size_t>(first),
                                                       static_cast<std::size_t>(count));
    qr.add(backend, rows.x.view(), rows.y.view(), workspace, own);
  }
  return qr;
}

bool same_fit(const RidgeSurrogate& a, const RidgeSurrogate& b, double relative) {
  return near(a.map().weight, b.map().weight, relative) &&
         near(a.map().bias, b.map().bias, relative) &&
         std::abs(a.report().in_sample.r2 - b.report().in_sample.r2) <= relative;
}

/// Inputs with singular values from 1 down to 1/condition, in a mixed basis; outputs from a planted
/// map. Columns of the orthogonal factors are Householder reflections of unit vectors.
Data ill_conditioned(double condition, std::vector<double>& planted) {
  Data data = mixed_data(101, 400, 8, 3);
  const CoMoments moments = moments_of(data);
  const SvdOracle svd(data, moments.mean_x());
  for (Index t = 0; t < data.n; ++t) {
    std::vector<double> row(8);
    for (std::size_t k = 0; k < 8; ++k) {
      const double scale = std::pow(condition, -static_cast<double>(k) / 7.0) /
                           svd.singular_values[k] * std::sqrt(400.0);
      for (std::size_t i = 0; i < 8; ++i) {
        row[i] += scale * svd.xv[k][static_cast<std::size_t>(t)] * svd.v[k][i];
      }
    }
    for (Index i = 0; i < 8; ++i) data.x_at(t, i) = row[static_cast<std::size_t>(i)];
  }
  RandomStream random(102);
  planted.clear();
  for (int i = 0; i < 24; ++i) planted.push_back(random.normal());
  for (Index t = 0; t < data.n; ++t) {
    for (Index j = 0; j < 3; ++j) {
      data.y_at(t, j) = 1.0;
      for (Index i = 0; i < 8; ++i) {
        data.y_at(t, j) += data.x_at(t, i) * planted[static_cast<std::size_t>(i * 3 + j)];
      }
    }
  }
  return data;
}

const RidgeOptions unpenalised{0.0, LambdaScale::absolute};

}  // namespace

TEST_CASE("QR and Cholesky agree where both work") {
  for (const double offset : {0.0, 1e5}) {
    const Data data = mixed_data(103, 900, 12, 5, offset);
    const CoMoments moments = moments_of(data);
    const QrAccumulator qr = accumulate(data, 137);
    CHECK(qr.rows() == 900);
    for (const RidgeOptions options :
         {unpenalised, RidgeOptions{3.0, LambdaScale::absolute}, RidgeOptions{}}) {
      const auto by_cholesky = RidgeSurrogate::fit(moments, options);
      const auto by_qr = qr.fit_ridge(options);
      CHECK(by_qr.report().method == RidgeMethod::qr);
      CHECK(by_qr.report().rank == 12);
      CHECK(std::abs(by_qr.report().lambda - by_cholesky.report().lambda) <=
            1e-12 * by_cholesky.report().lambda);
      CHECK(same_fit(by_qr, by_cholesky, 1e4 * eps * by_cholesky.report().condition));
    }
  }
}

TEST_CASE("condition 1e12: QR recovers what the Gram matrix has lost, which the report says") {
  std::vector<double> planted;
  const Data data = ill_conditioned(1e12, planted);
  const auto by_qr = accumulate(data).fit_ridge(unpenalised);
  // Error of backward stable least squares with a vanishing residual: condition of X times eps.
  CHECK(near(by_qr.map().weight, planted, 1e3 * eps * 1e12));
  CHECK(by_qr.report().rank == 8);
  CHECK(by_qr.report().sensitivity >= 0.1 * eps * 1e12);
  CHECK(by_qr.report().sensitivity <= 10.0 * eps * 1e12);
  const auto by_gram = RidgeSurrogate::fit(moments_of(data), unpenalised);
  CHECK(by_gram.report().is_beyond_cholesky);
  CHECK(by_gram.report().method == RidgeMethod::eigen);
  CHECK(by_gram.report().rank < 8);
  CHECK_FALSE(near(by_gram.map().weight, planted, 1e3 * eps * 1e12));
  // Its predictions are right all the same: what it has lost has no size.
  CHECK(by_gram.report().in_sample.r2 > 1.0 - 1e-12);
}

TEST_CASE("batches do not change a bit; merged parts equal the whole") {
  const Data data = mixed_data(104, 1500, 6, 4, 20.0);
  const auto whole = accumulate(data).fit_ridge();
  CHECK(accumulate(data, 61).fit_ridge().map().weight == whole.map().weight);
  QrAccumulator merged(6, 4);
  merged.merge(QrAccumulator(6, 4));
  for (const auto& [first, count] :
       std::vector<std::pair<Index, Index>>{{700, 500}, {0, 3}, {1200, 300}, {3, 697}}) {
    merged.merge(accumulate(data.middle(first, count)));
  }
  CHECK(merged.rows() == 1500);
  CHECK(same_fit(merged.fit_ridge(), whole, 1e5 * eps));
}

TEST_CASE("weights equal those of co-moments") {
  const Data data = mixed_data(105, 200, 5, 3);
  RandomStream random(106);
  std::vector<double> weights;
  for (int t = 0; t < 200; ++t) weights.push_back(t % 7 == 0 ? 0.0 : random.uniform());
  PlainBackend<double> backend;
  const auto by_cholesky =
      RidgeSurrogate::fit(moments_of(backend, data, GramPrecision::exact, weights));
  const auto by_qr = accumulate(data, 33, weights).fit_ridge();
  CHECK(by_qr.report().rows == by_cholesky.report().rows);
  CHECK(same_fit(by_qr, by_cholesky, 1e5 * eps));
}

TEST_CASE("few rows, constant and dependent inputs are reported and finite") {
  Data data = mixed_data(107, 6, 9, 2);
  for (Index t = 0; t < 6; ++t) {
    data.x_at(t, 4) = 1e6 + 0.1;
    data.x_at(t, 5) = data.x_at(t, 6);
  }
  const auto fit = accumulate(data).fit_ridge(unpenalised);
  CHECK(fit.report().is_underdetermined);
  CHECK(fit.report().constant_inputs == 1);
  CHECK(fit.report().rank == 5);
  CHECK(std::isfinite(fit.report().condition));
  CHECK(fit.report().in_sample.r2 > 1.0 - 1e-12);
  CHECK(fit.map().weight_view()(4, 0) == 0.0);
  CHECK(std::abs(fit.map().weight_view()(5, 1) - fit.map().weight_view()(6, 1)) < 1e-12);
  const auto single = accumulate(data.middle(0, 1)).fit_ridge();
  CHECK(single.report().rank == 0);
  CHECK(near(single.map().bias, data.middle(0, 1).y, 8 * eps));
}

TEST_CASE("faults are refused") {
  CHECK(error_id([] { QrAccumulator(3, 2).fit_ridge(); }) == "data/no-rows");
  QrAccumulator narrow(2, 2);
  CHECK(error_id([&] { narrow.merge(QrAccumulator(3, 2)); }) == "shape/co-moments");
  Data data = mixed_data(108, 10, 2, 2);
  CHECK(error_id([&] { accumulate(data).fit_ridge({-1.0}); }) == "data/bad-lambda");
  const std::vector<double> negative(10, -1.0);
  CHECK(error_id([&] { accumulate(data, 100, negative); }) == "data/bad-weight");
  const std::vector<double> few(9, 1.0);
  PlainBackend<double> backend;
  Workspace<PlainBackend<double>> workspace(backend);
  const auto rows = upload(backend, data);
  CHECK(error_id([&] { narrow.add(backend, rows.x.view(), rows.y.view(), workspace, few); }) ==
        "shape/vector");
  data.x_at(3, 1) = HUGE_VAL;
  CHECK(error_id([&] { accumulate(data); }) == "data/non-finite-activation");
}
