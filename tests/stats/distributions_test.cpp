// Distribution functions against scipy, against each other and at their ends.
#include "wanamaker/stats/distributions.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "stats/reference_values.hpp"
#include "testing.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/stats/sign_test.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// The continued fraction loses 4e-17 · degrees, at most 1e4 degrees; the peer is as good.
constexpr double student_tolerance = 1e-12;

bool close(double actual, double expected, double rtol) {
  return all_close(std::vector{actual}, std::vector{expected}, rtol, 0);
}

}  // namespace

TEST_CASE("the normal distribution agrees with scipy") {
  const std::vector<double> z = recorded("normal", "z");
  const std::vector<double> cdf = recorded("normal", "cdf");
  for (std::size_t i = 0; i < z.size(); ++i) {
    CAPTURE(z[i]);
    // Rounding z alone moves Φ by z² eps in its lower tail.
    CHECK(close(normal_cdf(z[i]), cdf[i], 4 * epsilon * (1 + z[i] * z[i])));
  }
  const std::vector<double> p = recorded("normal", "p");
  const std::vector<double> quantile = recorded("normal", "quantile");
  for (std::size_t i = 0; i < p.size(); ++i) {
    CAPTURE(p[i]);
    // Near ½ the argument itself carries eps, and the density there is 0.4.
    CHECK(all_close(std::vector{normal_quantile(p[i])}, std::vector{quantile[i]}, 8 * epsilon,
                    3 * epsilon));
  }
}

TEST_CASE("Student's t agrees with scipy") {
  const std::vector<double> t = recorded("student_t", "t");
  const std::vector<double> degrees = recorded("student_t", "degrees");
  const std::vector<double> cdf = recorded("student_t", "cdf");
  for (std::size_t i = 0; i < t.size(); ++i) {
    CAPTURE(t[i]);
    CAPTURE(degrees[i]);
    // Beyond double's range scipy may flush what is not yet zero.
    CHECK(all_close(std::vector{student_t_cdf(t[i], degrees[i])}, std::vector{cdf[i]},
                    student_tolerance, 1e-300));
  }
  const std::vector<double> p = recorded("student_t", "p");
  const std::vector<double> p_degrees = recorded("student_t", "p_degrees");
  const std::vector<double> quantile = recorded("student_t", "quantile");
  for (std::size_t i = 0; i < p.size(); ++i) {
    CAPTURE(p[i]);
    CAPTURE(p_degrees[i]);
    CHECK(close(student_t_quantile(p[i], p_degrees[i]), quantile[i], student_tolerance));
  }
}

TEST_CASE("Student's t has its closed forms at 1, 2 and infinitely many degrees of freedom") {
  RandomStream random(11);
  for (int i = 0; i < 200; ++i) {
    const double t = 20 * random.uniform() - 10;
    CAPTURE(t);
    const double cauchy = 0.5 + std::atan(t) / 3.141592653589793;
    const double two = 0.5 + t / (2 * std::sqrt(2 + t * t));
    CHECK(all_close(std::vector{student_t_cdf(t, 1), student_t_cdf(t, 2)}, std::vector{cauchy, two},
                    1e-13, 1e-15));
    CHECK(student_t_cdf(t, infinity) == normal_cdf(t));
    // The continued fraction and the expansion meet where one takes over from the other.
    const double z = detail::normal_equivalent_of_t(std::abs(t), 1e4);
    CHECK(close(student_t_cdf(-std::abs(t), 1e4), normal_cdf(-z), student_tolerance));
  }
  CHECK(student_t_quantile(0.975, infinity) == normal_quantile(0.975));
}

TEST_CASE("quantiles invert distribution functions") {
  RandomStream random(12);
  for (int i = 0; i < 300; ++i) {
    const double p = 0.5 * std::pow(10, -8 * random.uniform());
    const double degrees = 0.5 + std::pow(10, 7 * random.uniform());
    CAPTURE(p);
    CAPTURE(degrees);
    CHECK(close(normal_cdf(normal_quantile(p)), p, 64 * epsilon));
    CHECK(close(student_t_cdf(student_t_quantile(p, degrees), degrees), p, 1e-11));
    CHECK(student_t_quantile(1 - p, degrees) == -student_t_quantile(1 - (1 - p), degrees));
  }
}

TEST_CASE("distribution functions at their ends") {
  CHECK(normal_quantile(0) == -infinity);
  CHECK(normal_quantile(1) == infinity);
  CHECK(normal_quantile(0.5) == 0);
  CHECK(normal_cdf(infinity) == 1);
  CHECK(student_t_cdf(0, 3) == 0.5);
  CHECK(student_t_cdf(1e300, 3) == 1);
  CHECK(student_t_cdf(-infinity, 3) == 0);
  CHECK(student_t_quantile(0, 3) == -infinity);
  CHECK(student_t_quantile(0.5, 3) == 0);
  CHECK(binomial_cdf(-1, 5, 0.5) == 0);
  CHECK(binomial_cdf(5, 5, 0.5) == 1);
  CHECK(binomial_cdf(0, 0, 0.5) == 1);
  CHECK(binomial_cdf(3, 5, 0) == 1);
  CHECK(binomial_cdf(3, 5, 1) == 0);
  CHECK(binomial_upper_tail(0, 5, 0.5) == 1);
  CHECK(binomial_upper_tail(6, 5, 0.5) == 0);
}

TEST_CASE("impossible arguments are refused") {
  CHECK(error_id([&] { normal_quantile(not_a_number); }) == "stats/probability");
  CHECK(error_id([&] { normal_quantile(1.5); }) == "stats/probability");
  CHECK(error_id([&] { student_t_quantile(-0.1, 3); }) == "stats/probability");
  CHECK(error_id([&] { student_t_cdf(1, 0); }) == "stats/degrees-of-freedom");
  CHECK(error_id([&] { student_t_quantile(0.5, not_a_number); }) == "stats/degrees-of-freedom");
  CHECK(error_id([&] { binomial_cdf(1, 2, not_a_number); }) == "stats/probability");
  CHECK(error_id([&] { regularized_incomplete_beta(1e200, 1e200, 0.5, 0.5); }) ==
        "stats/incomplete-beta");
}

TEST_CASE("the binomial distribution agrees with scipy and with sums of its terms") {
  const auto k = recorded_as<Index>("binomial", "k");
  const auto n = recorded_as<Index>("binomial", "n");
  const std::vector<double> p = recorded("binomial", "p");
  const std::vector<double> cdf = recorded("binomial", "cdf");
  const std::vector<double> upper_tail = recorded("binomial", "upper_tail");
  for (std::size_t i = 0; i < k.size(); ++i) {
    CAPTURE(k[i]);
    CHECK(close(binomial_cdf(k[i], n[i], p[i]), cdf[i], student_tolerance));
    CHECK(close(binomial_upper_tail(k[i], n[i], p[i]), upper_tail[i], student_tolerance));
  }
  double sum = 0;
  double choose = 1;  // of 20
  for (Index j = 0; j <= 20; ++j) {
    sum += choose / 1048576.0;
    CHECK(close(binomial_cdf(j, 20, 0.5), sum, 1e-13));
    choose = choose * static_cast<double>(20 - j) / static_cast<double>(j + 1);
  }
}

TEST_CASE("the sign test agrees with scipy") {
  const auto worse = recorded_as<Index>("sign_test", "worse");
  const auto better = recorded_as<Index>("sign_test", "better");
  const std::vector<double> p_value = recorded("sign_test", "p_value");
  for (std::size_t i = 0; i < worse.size(); ++i) {
    std::vector<double> differences(static_cast<std::size_t>(worse[i]), 0.5);
    differences.insert(differences.end(), static_cast<std::size_t>(better[i]), -2.0);
    differences.insert(differences.end(), 3, 0.0);
    const SignTest test = sign_test(differences);
    CHECK(test.worse == worse[i]);
    CHECK(test.better == better[i]);
    CHECK(test.ties == 3);
    CHECK(close(test.p_value, p_value[i], student_tolerance));
  }
  CHECK(sign_test({}).p_value == 1);
  CHECK(sign_test(std::vector{0.0, 0.0}).p_value == 1);
}
