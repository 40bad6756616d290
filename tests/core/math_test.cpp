// Elementary functions against the standard library in double, whose own error (about one unit in
// the last place of a double) is far below what is measured here.
#include "wanamaker/core/math.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "testing.hpp"

namespace {

using namespace wanamaker;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// |a − b| in units of the last place of b as a float.
double ulps(float a, double b) {
  int exponent = 0;
  std::frexp(b, &exponent);
  return std::abs(static_cast<double>(a) - b) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

/// Floats of both signs with magnitude up to `largest`: every `step`-th pattern.
template <class F>
void for_floats_up_to(float largest, std::uint32_t step, F&& f) {
  for (std::uint32_t bits = 0; bits <= std::bit_cast<std::uint32_t>(largest); bits += step) {
    f(std::bit_cast<float>(bits));
    f(std::bit_cast<float>(bits | 0x80000000u));
  }
}

}  // namespace

TEST_CASE("exponential in float is within 2 ulp") {
  double worst = 0;
  for_floats_up_to(87.0f, 997, [&](float x) {
    worst = std::max(worst, ulps(exponential(x), std::exp(static_cast<double>(x))));
  });
  for (float x = 87.0f; x <= 88.0f; x = std::nextafter(x, infinity)) {
    worst = std::max(worst, ulps(exponential(x), std::exp(static_cast<double>(x))));
  }
  CHECK(worst < 2.0);
}

TEST_CASE("exponential of what is not positive is within 2 ulp, and NaN stays NaN") {
  double worst = 0;
  for_floats_up_to(87.0f, 997, [&](float x) {
    const float y = -std::abs(x);
    worst = std::max(worst, ulps(exponential_of_nonpositive(y), std::exp(static_cast<double>(y))));
  });
  CHECK(worst < 2.0);
  CHECK(exponential_of_nonpositive(0.0f) == 1.0f);
  CHECK(exponential_of_nonpositive(-0.0f) == 1.0f);
  CHECK(exponential_of_nonpositive(-87.33f) > 0.0f);
  for (const float x : {-87.34f, -1e4f, std::numeric_limits<float>::lowest(), -infinity}) {
    CHECK(exponential_of_nonpositive(x) == 0.0f);
    CHECK(!std::signbit(exponential_of_nonpositive(x)));
  }
  CHECK(std::isnan(exponential_of_nonpositive(not_a_number)));
  CHECK(std::isnan(exponential_of_nonpositive(-not_a_number)));
}

TEST_CASE("exponential in float at its borders") {
  CHECK(exponential(0.0f) == 1.0f);
  CHECK(exponential(-0.0f) == 1.0f);
  CHECK(exponential(std::numeric_limits<float>::denorm_min()) == 1.0f);
  CHECK(exponential(infinity) == infinity);
  CHECK(exponential(-infinity) == 0.0f);
  CHECK(exponential(std::numeric_limits<float>::max()) == infinity);
  CHECK(exponential(std::numeric_limits<float>::lowest()) == 0.0f);
  CHECK(std::isnan(exponential(not_a_number)));
  CHECK(std::isnan(exponential(-not_a_number)));
  CHECK(exponential(88.73f) == infinity);
  CHECK(exponential(-87.34f) == 0.0f);
  CHECK(!std::signbit(exponential(-87.34f)));
  // Largest finite result; the last few arguments below the border may round either way.
  CHECK(std::isfinite(exponential(88.72f)));
  CHECK(ulps(exponential(88.72f), std::exp(static_cast<double>(88.72f))) < 4.0);
  CHECK(exponential(-87.33f) > 0.0f);
}

TEST_CASE("exponential in float never falls from one argument to a clearly larger one") {
  // Two neighbours may swap within their 2 ulp; 8 ulp apart they may not.
  float before = 0;
  bool grows = true;
  for (float x = -87.3f; x < 88.7f; x += 1e-3f * std::max(1.0f, std::abs(x) / 16)) {
    grows = grows && exponential(x) > before;
    before = exponential(x);
  }
  CHECK(grows);
}

TEST_CASE("exponential in double is the standard library's") {
  for (const double x : {-800.0, -1.5, 0.0, 1.0, 700.0}) CHECK(exponential(x) == std::exp(x));
}

TEST_CASE("erfc in float is within 5e-7 for positive arguments") {
  double worst = 0;
  for_floats_up_to(30.0f, 1009, [&](float x) {
    const float z = std::abs(x);
    worst = std::max(worst, std::abs(static_cast<double>(complementary_error_function_positive(z)) -
                                     std::erfc(static_cast<double>(z))));
  });
  CHECK(worst < 5e-7);
  CHECK(complementary_error_function_positive(infinity) == 0.0f);
  CHECK(std::isnan(complementary_error_function_positive(not_a_number)));
}

TEST_CASE("the normal distribution function in float is within 3e-7") {
  double worst = 0;
  bool inside = true;
  for_floats_up_to(40.0f, 1013, [&](float x) {
    const double exact = 0.5 * std::erfc(-static_cast<double>(x) * std::sqrt(0.5));
    const float value = normal_distribution(x);
    inside = inside && value >= 0.0f && value <= 1.0f;
    worst = std::max(worst, std::abs(static_cast<double>(value) - exact));
  });
  CHECK(worst < 3e-7);
  CHECK(inside);
  CHECK(normal_distribution(infinity) == 1.0f);
  CHECK(normal_distribution(-infinity) == 0.0f);
  CHECK(std::isnan(normal_distribution(not_a_number)));
  CHECK(normal_distribution(0.0) == 0.5);
  CHECK(normal_distribution(-HUGE_VAL) == 0.0);
  CHECK(normal_distribution(HUGE_VAL) == 1.0);
  CHECK(std::isnan(normal_distribution(std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("the logistic function does not overflow") {
  // e^-x is within 2 ulp = 4u (u: half an ulp of 1), the sum and the quotient add u each.
  double worst = 0;
  for_floats_up_to(87.0f, 1019, [&](float x) {
    const double exact = 1.0 / (1.0 + std::exp(-static_cast<double>(x)));
    worst = std::max(worst, std::abs(static_cast<double>(logistic(x)) - exact) / exact);
  });
  CHECK(worst <= 6 * 0x1p-24);
  CHECK(logistic(infinity) == 1.0f);
  CHECK(logistic(-infinity) == 0.0f);
  CHECK(logistic(-1e30f) == 0.0f);
  CHECK(logistic(0.0f) == 0.5f);
  CHECK(std::isnan(logistic(not_a_number)));
  CHECK(logistic(-800.0) == 0.0);
  CHECK(logistic(800.0) == 1.0);
  CHECK(std::isnan(logistic(std::numeric_limits<double>::quiet_NaN())));
}
