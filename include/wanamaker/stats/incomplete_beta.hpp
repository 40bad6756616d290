// The regularised incomplete beta function, on which Student's t and the binomial stand.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "wanamaker/core/error.hpp"
#include "wanamaker/stats/checks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// Stirling's correction μ(z) = ln Γ(z + 1) − (z + ½) ln z + z − ½ ln 2π, z > 0. Used instead of
/// std::lgamma, whose large values cancel and which writes a global on some systems.
inline double stirling_correction(double z) {
  double shifts = 0;
  for (; z < 16; z += 1) shifts += (z + 0.5) * std::log1p(1 / z) - 1;
  const double s = 1 / (z * z);
  const double series = 1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s / 1188)));
  return shifts + series / z;
}

/// u − ln(1 + u) for |u| ≤ ¼ without cancellation: with v = u / (2 + u) it is
/// uv − 2 (v³/3 + v⁵/5 + …), since ln(1 + u) = 2 artanh v.
inline double minus_log1p(double u) {
  const double v = u / (2 + u);
  double power = v;
  double sum = 0;
  for (int k = 3; k < 25; k += 2) {
    power *= v * v;
    sum += power / k;
  }
  return u * v - 2 * sum;
}

/// x ln(x / mean) + mean − x for x > 0, mean ≥ 0 (Loader 2000).
inline double deviance(double x, double mean) {
  const double u = (mean - x) / x;
  return std::abs(u) <= 0.25 ? x * minus_log1p(u) : x * (u - std::log(mean / x));
}

/// x^a y^b / B(a, b) with y = 1 − x, by Loader's saddle point form (Loader 2000, "Fast and accurate
/// computation of binomial probabilities"): accurate for large a and b too.
inline double beta_power_term(double a, double b, double x, double y) {
  const double n = a + b;
  const double exponent = stirling_correction(n) - stirling_correction(a) - stirling_correction(b) -
                          deviance(a, n * x) - deviance(b, n * y);
  return std::sqrt(a * (b / n) / 6.283185307179586) * std::exp(exponent);
}

/// The continued fraction of I_x(a, b) (DLMF 8.17.22) by the modified Lentz method (Thompson and
/// Barnett 1986); converges quickly for x < (a + 1) / (a + b + 2).
inline double beta_continued_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  const double most_terms = std::min(1000 + 20 * std::sqrt(a + b), 1e6);
  double value = 1;
  double c = 1;
  double d = 0;
  const auto multiply = [&](double term) {
    d = 1 + term * d;
    d = 1 / (d == 0 ? tiny : d);
    c = 1 + term / c;
    if (c == 0) c = tiny;
    value *= c * d;
    return std::abs(c * d - 1);
  };
  multiply(-(a + b) * x / (a + 1));
  for (double m = 1; m < most_terms; m += 1) {
    multiply(m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)));
    const double change = multiply(-(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)));
    if (change <= std::numeric_limits<double>::epsilon()) return 1 / value;
  }
  throw NumericalError({.id = "stats/incomplete-beta",
                        .where = "incomplete beta function",
                        .what = "the continued fraction does not converge",
                        .found = "a = " + number_text(a) + ", b = " + number_text(b),
                        .mend = "pass fewer degrees of freedom or trials"});
}

}  // namespace detail

/// I_x(a, b) = ∫₀ˣ t^(a−1) (1−t)^(b−1) dt / B(a, b) for a, b > 0, with y = 1 − x given apart, so
/// that neither end loses digits. Relative error about 4e-17 · (a + b), at least 1e-14.
/// Throws NumericalError ("stats/incomplete-beta") where a + b is too large to converge in a
/// million terms (beyond about 1e9).
inline double regularized_incomplete_beta(double a, double b, double x, double y) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double power_term = detail::beta_power_term(a, b, x, y);
  if (x * (a + b + 2) <= a + 1) return power_term * detail::beta_continued_fraction(a, b, x) / a;
  return 1 - power_term * detail::beta_continued_fraction(b, a, y) / b;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
