// Ridge fits against closed forms, an SVD written out, and scikit-learn; and the faults that data
// can have.
#include "wanamaker/surrogate/ridge.hpp"

#include "reference_values.hpp"
#include "wanamaker/core/half.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/surrogate/mean.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

/// A solution of (A + λI)W = B is off by about condition·n·eps normwise; small single entries may
/// be off by more.
double solve_tolerance(const CoMoments& moments, const RidgeReport& report) {
  return 10.0 * static_cast<double>(moments.rows() + moments.inputs()) * eps * report.condition;
}

std::vector<double> predictions(const AffineMap& map, const Data& data) {
  std::vector<double> all;
  for (Index t = 0; t < data.n; ++t) {
    for (Index j = 0; j < data.e; ++j) {
      double sum = map.bias[static_cast<std::size_t>(j)];
      for (Index i = 0; i < data.d; ++i) sum += data.x_at(t, i) * map.weight_view()(i, j);
      all.push_back(sum);
    }
  }
  return all;
}

double squared_error(const AffineMap& map, const Data& data) {
  const std::vector<double> guess = predictions(map, data);
  double sum = 0;
  for (std::size_t i = 0; i < guess.size(); ++i) sum += std::pow(guess[i] - data.y[i], 2);
  return sum;
}

bool all_finite(const RidgeSurrogate& fit) {
  const auto is_finite = [](double v) { return std::isfinite(v); };
  const auto& weight = fit.map().weight;
  const auto& bias = fit.map().bias;
  const Explained& r = fit.report().in_sample;
  return std::all_of(weight.begin(), weight.end(), is_finite) &&
         std::all_of(bias.begin(), bias.end(), is_finite) &&
         std::all_of(r.r2_by_output.begin(), r.r2_by_output.end(), is_finite) &&
         std::isfinite(r.r2) && std::isfinite(fit.report().condition) &&
         std::isfinite(fit.report().sensitivity);
}

}  // namespace

TEST_CASE("one input: slope Sxy/(Sxx + λ), intercept unpenalised") {
  const Data data{4, 1, 1, {1, 2, 3, 6}, {2, 4, 6, 8}};  // means 3 and 5, Sxx 14, Sxy 16
  const auto fit = RidgeSurrogate::fit(moments_of(data), {2.0, LambdaScale::absolute});
  CHECK(all_close(fit.map().weight, std::vector{1.0}, 4 * eps, 0));
  CHECK(all_close(fit.map().bias, std::vector{2.0}, 8 * eps, 0));
  CHECK(fit.report().lambda == 2.0);
  CHECK(fit.parameters() == 2);
  // Residuals about ŷ = x + 2: −1, 0, 1, 0; about the mean: −3, −1, 1, 3.
  CHECK(std::abs(fit.report().in_sample.r2 - (1.0 - 2.0 / 20.0)) <= 8 * eps);
  const auto relative = RidgeSurrogate::fit(moments_of(data), {0.5, LambdaScale::relative});
  CHECK(relative.report().lambda == 7.0);
}

TEST_CASE("ridge equals scikit-learn's, plain and weighted") {
  const Data data = reference_data();
  const CoMoments moments = moments_of(data);
  for (const auto& expected : reference_values().at("ridge")) {
    const double alpha = expected.at("alpha");
    CAPTURE(alpha);
    const auto fit = RidgeSurrogate::fit(moments, {alpha, LambdaScale::absolute});
    const double tolerance = solve_tolerance(moments, fit.report());
    CHECK(near(fit.map().weight, flat(expected.at("weight")), tolerance));
    CHECK(near(fit.map().bias, expected.at("bias"), tolerance));
    // score() is the mean of the outputs' R².
    double mean_r2 = 0;
    for (const double r2 : fit.report().in_sample.r2_by_output) mean_r2 += r2 / 3.0;
    CHECK(std::abs(mean_r2 - expected.at("r2").get<double>()) <= 100 * eps);
  }
  PlainBackend<double> backend;
  const std::vector<double> weights = reference_values().at("sample_weight");
  const auto& expected = reference_values().at("weighted_ridge");
  const CoMoments weighted = moments_of(backend, data, GramPrecision::exact, weights);
  const auto fit =
      RidgeSurrogate::fit(weighted, {expected.at("alpha").get<double>(), LambdaScale::absolute});
  CHECK(
      near(fit.map().weight, flat(expected.at("weight")), solve_tolerance(weighted, fit.report())));
  CHECK(near(fit.map().bias, expected.at("bias"), solve_tolerance(weighted, fit.report())));
}

TEST_CASE("ridge equals the singular value form s/(s² + λ) of the published procedure") {
  const Data data = mixed_data(31, 300, 24, 17, 0.3);
  const CoMoments moments = moments_of(data);
  const SvdOracle svd(data, moments.mean_x());
  for (const double lambda : {0.01, 10.0, 1e4}) {
    CAPTURE(lambda);
    const auto fit = RidgeSurrogate::fit(moments, {lambda, LambdaScale::absolute});
    CHECK(near(fit.map().weight, svd.ridge(data, moments.mean_y(), lambda),
               solve_tolerance(moments, fit.report())));
    CHECK(fit.report().method == RidgeMethod::cholesky);
  }
}

TEST_CASE("the blocked solver equals the oracle across its block borders, on any threads") {
  for (const Index d : {95, 96, 97, 193, 200}) {
    CAPTURE(d);
    const Data data = mixed_data(static_cast<std::uint64_t>(d), 2 * d, d, 5);
    const CoMoments moments = moments_of(data);
    const double lambda = 1e-3 * detail::trace(moments.xx());
    const auto fit = RidgeSurrogate::fit(moments, {lambda, LambdaScale::absolute});
    // The residual of the normal equations, which needs no second solver.
    std::vector<double> left =
        detail::product(moments.xx(), fit.map().weight_view(), ExecutorRef{});
    for (std::size_t i = 0; i < left.size(); ++i) left[i] += lambda * fit.map().weight[i];
    CHECK(near(left, moments.state().xy, solve_tolerance(moments, fit.report())));
    ThreadPool pool(3);
    const auto threaded =
        RidgeSurrogate::fit(moments, {lambda, LambdaScale::absolute}, ExecutorRef(pool));
    CHECK(threaded.map().weight == fit.map().weight);
  }
}

TEST_CASE("the condition estimate is within a factor of 3 of the truth, and never above it") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Data data = mixed_data(seed, 60, 8, 2);
    const CoMoments moments = moments_of(data);
    const auto fit = RidgeSurrogate::fit(moments, {0.5, LambdaScale::absolute});
    // The inverse, column by column, from fits whose outputs make XcᵀY the identity.
    CoMomentState state = moments.state();
    state.mean_y.assign(8, 0);
    state.yy.assign(8, 1);
    state.xy.assign(64, 0);
    for (std::size_t i = 0; i < 8; ++i) state.xy[i * 9] = 1;
    const auto inverse = RidgeSurrogate::fit(CoMoments(state), {0.5, LambdaScale::absolute});
    double norm = 0, inverse_norm = 0;
    for (Index i = 0; i < 8; ++i) {
      double sum = 0.5, inverse_sum = 0;
      for (Index k = 0; k < 8; ++k) {
        sum += std::abs(moments.xx()(i, k) + (i == k ? 0.5 : 0.0)) - (i == k ? 0.5 : 0.0);
        inverse_sum += std::abs(inverse.map().weight_view()(i, k));
      }
      norm = std::max(norm, sum);
      inverse_norm = std::max(inverse_norm, inverse_sum);
    }
    CHECK(fit.report().condition <= norm * inverse_norm * (1.0 + 1e-10));
    CHECK(fit.report().condition >= norm * inverse_norm / 3.0);
  }
}

TEST_CASE("a planted affine map is recovered, whatever the offset of its inputs") {
  for (const double offset : {0.0, 1e6}) {
    CAPTURE(offset);
    Data data = mixed_data(32, 200, 6, 4, offset);
    std::vector<double> planted;
    RandomStream random(33);
    for (int i = 0; i < 24; ++i) planted.push_back(std::round(8 * random.normal()) / 8);
    for (Index t = 0; t < data.n; ++t) {
      for (Index j = 0; j < data.e; ++j) {
        data.y_at(t, j) = 0.25 * static_cast<double>(j);
        for (Index i = 0; i < data.d; ++i) {
          data.y_at(t, j) += data.x_at(t, i) * planted[static_cast<std::size_t>(i * 4 + j)];
        }
      }
    }
    const CoMoments moments = moments_of(data);
    const auto fit = RidgeSurrogate::fit(moments, {0.0, LambdaScale::absolute});
    // Outputs of size `offset` are themselves rounded: eps·offset of noise in each.
    const double noise = 8.0 * eps * std::abs(offset);
    CHECK(near(fit.map().weight, planted, solve_tolerance(moments, fit.report()) + noise));
    CHECK(1.0 - fit.report().in_sample.r2 <= 200 * eps + noise);
  }
}

TEST_CASE("rank-deficient inputs, as a LayerNorm gives them, are solved and reported") {
  Data data = mixed_data(34, 120, 10, 3);
  for (Index t = 0; t < data.n; ++t) {
    double mean = 0;
    for (Index i = 0; i < 10; ++i) mean += data.x_at(t, i) / 10.0;
    for (Index i = 0; i < 10; ++i) data.x_at(t, i) -= mean;
  }
  const CoMoments moments = moments_of(data);
  const SvdOracle svd(data, moments.mean_x());
  const auto bare = RidgeSurrogate::fit(moments, {0.0, LambdaScale::absolute});
  CHECK(all_finite(bare));
  CHECK(bare.report().method == RidgeMethod::eigen);
  CHECK(bare.report().is_beyond_cholesky);
  CHECK(bare.report().rank == 9);
  // Least squares of smallest norm, on the nine directions that there are.
  const auto expected = svd.ridge(data, moments.mean_y(), 0.0, 1e-6);
  CHECK(near(bare.map().weight, expected, solve_tolerance(moments, bare.report())));
  const auto ridge = RidgeSurrogate::fit(moments, {0.01, LambdaScale::absolute});
  CHECK(ridge.report().method == RidgeMethod::cholesky);
  CHECK(near(ridge.map().weight, svd.ridge(data, moments.mean_y(), 0.01),
             solve_tolerance(moments, ridge.report())));
}

TEST_CASE("fewer rows than inputs: reported, finite, and the data are met without a penalty") {
  const Data data = mixed_data(35, 12, 30, 3);
  const CoMoments moments = moments_of(data);
  const auto bare = RidgeSurrogate::fit(moments, {0.0, LambdaScale::absolute});
  CHECK(bare.report().is_underdetermined);
  CHECK(bare.report().rank == 11);
  CHECK(all_finite(bare));
  CHECK(near(predictions(bare.map(), data), data.y, 1e4 * eps * bare.report().condition));
  const auto ridge = RidgeSurrogate::fit(moments, {1.0, LambdaScale::absolute});
  const SvdOracle svd(data, moments.mean_x());
  CHECK(near(ridge.map().weight, svd.ridge(data, moments.mean_y(), 1.0),
             solve_tolerance(moments, ridge.report())));
  const auto single = RidgeSurrogate::fit(moments_of(data.middle(0, 1)));
  CHECK(all_finite(single));
  CHECK(near(single.map().bias, data.middle(0, 1).y, eps));
}

TEST_CASE("constant inputs get no weight, constant outputs no R²") {
  Data data = mixed_data(36, 50, 4, 3);
  for (Index t = 0; t < data.n; ++t) {
    data.x_at(t, 2) = 0.1;
    data.y_at(t, 1) = -7.3;
  }
  const CoMoments moments = moments_of(data);
  for (const double lambda : {0.0, 0.01}) {
    const auto fit = RidgeSurrogate::fit(moments, {lambda, LambdaScale::absolute});
    CHECK(all_finite(fit));
    CHECK(fit.report().constant_inputs == 1);
    CHECK(fit.report().in_sample.constant_outputs == 1);
    CHECK(fit.report().in_sample.r2_by_output[1] == 0.0);
    CHECK(fit.report().in_sample.r2 > 0.0);
    for (Index j = 0; j < 3; ++j) CHECK(fit.map().weight_view()(2, j) == 0.0);
    for (Index i = 0; i < 4; ++i) CHECK(fit.map().weight_view()(i, 1) == 0.0);
    CHECK(fit.map().bias[1] == -7.3);
  }
  Data nothing = data;
  std::fill(nothing.x.begin(), nothing.x.end(), 2.5);
  std::fill(nothing.y.begin(), nothing.y.end(), 1.5);
  const auto constant = RidgeSurrogate::fit(moments_of(nothing));
  CHECK(all_finite(constant));
  CHECK(constant.report().in_sample.r2 == 0.0);
  CHECK(constant.map().bias == std::vector<double>(3, 1.5));
}

TEST_CASE("a huge penalty leaves the mean; R² falls as the penalty grows") {
  const Data data = mixed_data(37, 100, 5, 3);
  const CoMoments moments = moments_of(data);
  double before = 2;
  for (const double lambda : {0.0, 1.0, 100.0, 1e4, 1e20}) {
    const auto fit = RidgeSurrogate::fit(moments, {lambda, LambdaScale::absolute});
    CHECK(fit.report().in_sample.r2 < before);
    before = fit.report().in_sample.r2;
  }
  CHECK(before >= 0.0);
  CHECK(before < 1e-16);
}

TEST_CASE("R² from co-moments equals R² from the data, in sample and held out") {
  const Data train = mixed_data(38, 80, 6, 4, 2.0);
  Data test = mixed_data(39, 70, 6, 4, 3.0);  // another mixture and another mean
  const CoMoments train_moments = moments_of(train);
  const CoMoments test_moments = moments_of(test);
  const auto fit = RidgeSurrogate::fit(train_moments, {1.0, LambdaScale::absolute});
  const auto r2 = [&](const Data& data, const CoMoments& moments) {
    double total = 0;
    for (const double yy : moments.yy()) total += yy;
    return 1.0 - squared_error(fit.map(), data) / total;
  };
  CHECK(std::abs(fit.report().in_sample.r2 - r2(train, train_moments)) < 1e-12);
  CHECK(std::abs(explained(fit.map(), train_moments).r2 - r2(train, train_moments)) < 1e-12);
  const double held_out = r2(test, test_moments);
  CHECK(std::abs(explained(fit.map(), test_moments).r2 - held_out) < 1e-12 * std::abs(held_out));
  const MeanSurrogate mean = MeanSurrogate::fit(train_moments);
  CHECK(mean.explained_on(train_moments).r2 == 0.0);
  CHECK(mean.explained_on(test_moments).r2 < 0.0);
  AffineMap constant{6, 4, std::vector<double>(24), mean.mean()};
  CHECK(std::abs(explained(constant, test_moments).r2 - mean.explained_on(test_moments).r2) <
        1e-12 * std::abs(mean.explained_on(test_moments).r2));
}

TEST_CASE("as MLP policies, surrogates predict what their maps say") {
  const Data data = mixed_data(40, 30, 5, 5);
  const auto fit = RidgeSurrogate::fit(moments_of(data));
  const MeanSurrogate mean = MeanSurrogate::fit(moments_of(data));
  PlainBackend<float> backend;
  Workspace<PlainBackend<float>> workspace(backend);
  const auto there = upload(backend, data);
  auto y = make_matrix(backend, data.n, data.e);
  fit.to_mlp(backend).forward(backend, there.x.view(), {}, y.view(), workspace);
  // Weights, products and sums of six terms are rounded to float.
  std::vector<float> actual(y.data(), y.data() + y.size());
  CHECK(all_close(actual, predictions(fit.map(), data), 0.0, 8.0 * 6.0 * 0x1p-24 * 10.0));
  CHECK(fit.to_mlp(backend).cost(7).parameters == static_cast<double>(fit.parameters()));
  mean.to_mlp(backend).forward(backend, there.x.view(), {}, y.view(), workspace);
  CHECK(y.view()(29, 3) == static_cast<float>(mean.mean()[3]));
  CHECK(mean.to_mlp(backend).cost(7).parameters == static_cast<double>(mean.parameters()));
}

TEST_CASE("weights that the storage type cannot hold are refused") {
  CHECK(error_id([] { detail::narrowed<half>({1.0, 70000.0}); }) == "numeric/weight-overflow");
  CHECK(error_id([] { detail::narrowed<float>({1e39}); }) == "numeric/weight-overflow");
  CHECK(detail::narrowed<wanamaker::bfloat16>({70000.0}).size() == 1);
}

TEST_CASE("bad penalties and empty data are refused") {
  const CoMoments moments = moments_of(mixed_data(41, 20, 3, 2));
  for (const double bad : {-1e-9, HUGE_VAL, std::nan("")}) {
    CHECK(error_id([&] {
            RidgeSurrogate::fit(moments, {bad, LambdaScale::absolute});
          }) == "data/bad-lambda");
  }
  CHECK(error_id([] { RidgeSurrogate::fit(CoMoments(3, 2)); }) == "data/no-rows");
  CHECK(error_id([] { MeanSurrogate::fit(CoMoments(3, 2)); }) == "data/no-rows");
}

TEST_CASE("the effect of float products on a fit is within what the report says") {
  const Data data = mixed_data(42, 800, 20, 6, 1.0);
  PlainBackend<float> backend;
  const CoMoments exact = moments_of(backend, data);
  const CoMoments blocked = moments_of(backend, data, GramPrecision::blocked);
  const auto fit = RidgeSurrogate::fit(exact, {0.01, LambdaScale::absolute});
  const auto rough = RidgeSurrogate::fit(blocked, {0.01, LambdaScale::absolute});
  CHECK(rough.report().sensitivity > 1e8 * fit.report().sensitivity);
  // Co-moments are off by up to 17·(256 + 3) roundings (co_moments_test).
  CHECK(near(rough.map().weight, fit.map().weight,
             2.0 * 20.0 * 17.0 * 259.0 * rough.report().sensitivity));
  CHECK(rough.map().weight != fit.map().weight);
}
