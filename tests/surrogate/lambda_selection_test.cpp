// Generalised cross-validation against hat matrices written out, and choices by any loss.
#include "wanamaker/surrogate/lambda_selection.hpp"

#include "reference_values.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

TEST_CASE("GCV scores equal those from scikit-learn's hat matrices, and so does the minimum") {
  const CoMoments moments = moments_of(reference_data());
  const GeneralisedCrossValidation gcv(moments);
  std::vector<double> candidates;
  std::vector<double> expected;
  for (const auto& entry : reference_values().at("gcv")) {
    candidates.push_back(entry.at("alpha"));
    expected.push_back(entry.at("score"));
  }
  const LambdaChoice choice = gcv.select(candidates);
  // Sums of 40 rows and 15 products, the hat matrix' trace of 40 terms.
  CHECK(all_close(choice.losses, expected, 1000 * 0x1p-53, 0.0));
  const auto best = std::min_element(expected.begin(), expected.end()) - expected.begin();
  CHECK(choice.lambda == candidates[static_cast<std::size_t>(best)]);
  CHECK_FALSE(choice.is_at_edge);
}

TEST_CASE("GCV of any data equals its definition by a fit for each penalty") {
  for (std::uint64_t seed = 51; seed <= 53; ++seed) {
    const Data data = mixed_data(seed, 60, 7, 4, 1.0, 3.0);
    const CoMoments moments = moments_of(data);
    const GeneralisedCrossValidation gcv(moments);
    CHECK(gcv.rank() == 7);
    const SvdOracle svd(data, moments.mean_x());
    for (const double lambda : logarithmic_grid(1e-3, 1e5, 9)) {
      const auto fit = RidgeSurrogate::fit(moments, {lambda, LambdaScale::absolute});
      double rss = 0;
      for (const double r : fit.report().in_sample.residual) rss += r;
      double freedom = 1;
      for (const double s : svd.singular_values) freedom += s * s / (s * s + lambda);
      const double score = 60.0 * rss / std::pow(60.0 - freedom, 2);
      CHECK(std::abs(gcv.score(lambda) - score) <= 1e-11 * score);
      CHECK(std::abs(gcv.degrees_of_freedom(lambda) - freedom) <= 1e-11 * freedom);
      CHECK(std::abs(gcv.residual(lambda) - rss) <= 1e-11 * rss);
    }
  }
}

TEST_CASE("data that an affine map fits get the largest penalty that still fits them") {
  Data data = mixed_data(54, 100, 4, 2);
  for (Index t = 0; t < data.n; ++t) {
    data.y_at(t, 0) = 2 * data.x_at(t, 0) - data.x_at(t, 3) + 1;
    data.y_at(t, 1) = data.x_at(t, 1);
  }
  const CoMoments moments = moments_of(data);
  const GeneralisedCrossValidation gcv(moments);
  const std::vector<double> grid = logarithmic_grid(1e-14, 1e2, 17);
  const LambdaChoice choice = gcv.select(grid);
  for (const double loss : choice.losses) CHECK(std::isfinite(loss));
  // A penalty of relative size r leaves a residual of about r²: round-off, n·eps, from r = 1e-7 on;
  // Σx² is about 100 here.
  CHECK(choice.lambda >= 1e-7);
  CHECK(choice.lambda <= 1e-4);
}

TEST_CASE("GCV is never NaN: fewer rows than inputs, constant data, one row") {
  const std::vector<double> grid{0.0, 1e-12, 1.0, 1e6};
  const auto scores = [&](const Data& data) {
    const GeneralisedCrossValidation gcv(moments_of(data));
    std::vector<double> all;
    for (const double lambda : grid) all.push_back(gcv.score(lambda));
    return all;
  };
  const Data wide = mixed_data(55, 8, 20, 2);
  const std::vector<double> wide_scores = scores(wide);
  CHECK(wide_scores[0] == HUGE_VAL);  // no degree of freedom left
  for (std::size_t i = 1; i < grid.size(); ++i) CHECK(std::isfinite(wide_scores[i]));
  Data constant = mixed_data(56, 10, 2, 1);
  std::fill(constant.y.begin(), constant.y.end(), 3.0);
  for (const double score : scores(constant)) CHECK(score == 0.0);
  for (const double score : scores(wide.middle(0, 1))) CHECK_FALSE(std::isnan(score));
}

TEST_CASE("select_lambda takes the smallest loss, of equal ones the largest penalty") {
  const std::vector<double> grid{0.1, 1.0, 10.0, 100.0};
  std::vector<double> tried;
  const LambdaChoice choice = select_lambda(grid, [&](double lambda) {
    tried.push_back(lambda);
    return lambda == 1.0 || lambda == 10.0 ? 2.0 : 3.0;
  });
  CHECK(tried == grid);
  CHECK(choice.lambda == 10.0);
  CHECK(choice.loss == 2.0);
  CHECK_FALSE(choice.is_at_edge);
  CHECK(select_lambda(grid, [](double lambda) { return -lambda; }).is_at_edge);
  const LambdaChoice skipped =
      select_lambda(grid, [](double lambda) { return lambda < 10 ? std::nan("") : lambda; });
  CHECK(skipped.lambda == 10.0);
}

TEST_CASE("grids and losses that cannot be used are refused") {
  const auto one = [](double) { return 1.0; };
  CHECK(error_id([&] { select_lambda(std::vector<double>{}, one); }) == "data/bad-lambda");
  CHECK(error_id([&] { select_lambda(std::vector{1.0, -1.0}, one); }) == "data/bad-lambda");
  CHECK(error_id([&] { select_lambda(std::vector{HUGE_VAL}, one); }) == "data/bad-lambda");
  CHECK(error_id([&] { select_lambda(std::vector{1.0}, [](double) { return std::nan(""); }); }) ==
        "numeric/no-finite-loss");
  CHECK(error_id([&] { GeneralisedCrossValidation(CoMoments(2, 2)); }) == "data/no-rows");
}

TEST_CASE("a logarithmic grid has its ends and equal ratios") {
  CHECK(all_close(logarithmic_grid(1e-2, 1e2, 5), std::vector{1e-2, 1e-1, 1.0, 1e1, 1e2},
                  8 * 0x1p-53, 0.0));
  CHECK(logarithmic_grid(3.0, 9.0, 1) == std::vector{3.0});
}
