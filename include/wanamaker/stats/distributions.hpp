// Distribution functions that intervals and tests need: normal, Student's t, binomial.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/checks.hpp"
#include "wanamaker/stats/incomplete_beta.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Φ(z) = P(Z ≤ z) of the standard normal distribution.
inline double normal_cdf(double z) {
  return 0.5 * std::erfc(-z * 0.70710678118654752);
}

/// φ(z), the density of the standard normal distribution.
inline double normal_density(double z) {
  return 0.39894228040143268 * std::exp(-0.5 * z * z);
}

namespace detail {

/// Φ(z) − p; near the middle by erf, where Φ itself would cancel against p.
inline double normal_cdf_minus(double z, double p) {
  if (p < 0.1) return normal_cdf(z) - p;
  return 0.5 * std::erf(z * 0.70710678118654752) + (0.5 - p);
}

/// Φ⁻¹ for 0 < p ≤ ½: Hastings' approximation (Abramowitz and Stegun 26.2.23, error 4.5e-4) and
/// two steps of Halley's method, each of which triples the digits.
inline double normal_lower_quantile(double p) {
  const double t = std::sqrt(-2 * std::log(p));
  double z = (2.515517 + t * (0.802853 + t * 0.010328)) /
                 (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
             t;
  for (int step = 0; step < 2; ++step) {
    const double newton = normal_cdf_minus(z, p) / normal_density(z);
    z -= newton / (1 + 0.5 * z * newton);
  }
  return z;
}

inline void check_degrees(double degrees, const char* where) {
  if (degrees > 0) return;
  throw DataError({.id = "stats/degrees-of-freedom",
                   .where = where,
                   .what = "impossible degrees of freedom",
                   .expected = "a positive number",
                   .found = number_text(degrees),
                   .mend = "there are too few observations for this test"});
}

/// z with P(Z > z) = P(T > t), t ≥ 0: Hill's expansion in 1 / degrees (Hill 1970, algorithm 395).
inline double normal_equivalent_of_t(double t, double degrees) {
  const double a = degrees - 0.5;
  const double b = 48 * a * a;
  const double y = a * std::log1p(t * t / degrees);
  const double second = (((-0.4 * y - 3.3) * y - 24) * y - 85.5) / (0.8 * y * y + 100 + b);
  return std::sqrt(y) * (1 + (y + 3 + second) / b);
}

/// P(T > t) for t ≥ 0. The continued fraction loses 4e-17 · degrees, so that the expansion takes
/// over beyond 1e4 degrees of freedom, where its own error is below rounding for t < 10.
inline double student_t_upper_tail(double t, double degrees) {
  if (degrees > 1e4) return normal_cdf(-normal_equivalent_of_t(t, degrees));
  const double root = t / std::sqrt(degrees);
  return 0.5 * regularized_incomplete_beta(degrees / 2, 0.5, 1 / (1 + root * root),
                                           1 / (1 + 1 / (root * root)));
}

/// The density of Student's t at t > 0, finite degrees of freedom.
inline double student_t_density(double t, double degrees) {
  const double root = t / std::sqrt(degrees);
  return beta_power_term(degrees / 2, 0.5, 1 / (1 + root * root), 1 / (1 + 1 / (root * root))) / t;
}

/// t with P(T > t) = p, 0 < p < ½: Newton's method on the logarithm of the tail, kept inside a
/// bracket. Infinite where t is beyond the largest double (fewer than one degree of freedom).
inline double student_t_upper_quantile(double p, double degrees) {
  double low = 0;
  double high = 1;
  while (std::isfinite(high) && student_t_upper_tail(high, degrees) > p) {
    low = high;
    high *= 2;
  }
  if (std::isinf(high)) return high;
  double t = low + 0.5 * (high - low);
  for (int step = 0; step < 200; ++step) {
    const double tail = student_t_upper_tail(t, degrees);
    (tail > p ? low : high) = t;
    double next = t + std::log(tail / p) * tail / student_t_density(t, degrees);
    if (!(next > low && next < high)) next = low + 0.5 * (high - low);
    const double change = std::abs(next - t);
    t = next;
    if (change <= 2 * std::numeric_limits<double>::epsilon() * t) break;
  }
  return t;
}

}  // namespace detail

/// Φ⁻¹(p); minus and plus infinity at 0 and 1. Throws DataError ("stats/probability").
inline double normal_quantile(double p) {
  detail::check_probability(p, "normal_quantile(p)");
  if (p == 0 || p == 1) return (2 * p - 1) * std::numeric_limits<double>::infinity();
  return p <= 0.5 ? detail::normal_lower_quantile(p) : -detail::normal_lower_quantile(1 - p);
}

/// P(T ≤ t) of Student's t with `degrees` > 0 degrees of freedom, which may be infinite. Throws
/// DataError ("stats/degrees-of-freedom").
inline double student_t_cdf(double t, double degrees) {
  detail::check_degrees(degrees, "student_t_cdf(degrees)");
  if (std::isinf(degrees)) return normal_cdf(t);
  return t <= 0 ? detail::student_t_upper_tail(-t, degrees)
                : 1 - detail::student_t_upper_tail(t, degrees);
}

/// t with P(T ≤ t) = p; minus and plus infinity at 0 and 1. Throws DataError
/// ("stats/probability", "stats/degrees-of-freedom").
inline double student_t_quantile(double p, double degrees) {
  detail::check_probability(p, "student_t_quantile(p)");
  detail::check_degrees(degrees, "student_t_quantile(degrees)");
  if (std::isinf(degrees)) return normal_quantile(p);
  if (p == 0.5) return 0;
  if (p == 0 || p == 1) return (2 * p - 1) * std::numeric_limits<double>::infinity();
  return p < 0.5 ? -detail::student_t_upper_quantile(p, degrees)
                 : detail::student_t_upper_quantile(1 - p, degrees);
}

/// P(X ≤ k) for X binomial(n, p), n ≥ 0; = I_{1−p}(n − k, k + 1). Throws DataError
/// ("stats/probability").
inline double binomial_cdf(Index k, Index n, double p) {
  detail::check_probability(p, "binomial_cdf(p)");
  if (k < 0) return 0;
  if (k >= n) return 1;
  return regularized_incomplete_beta(static_cast<double>(n - k), static_cast<double>(k) + 1, 1 - p,
                                     p);
}

/// P(X ≥ k) for X binomial(n, p), n ≥ 0; = I_p(k, n − k + 1). Throws DataError
/// ("stats/probability").
inline double binomial_upper_tail(Index k, Index n, double p) {
  detail::check_probability(p, "binomial_upper_tail(p)");
  if (k <= 0) return 1;
  if (k > n) return 0;
  return regularized_incomplete_beta(static_cast<double>(k), static_cast<double>(n - k) + 1, p,
                                     1 - p);
}

/// P(X ≥ f) for Snedecor's F with d₁ and d₂ degrees of freedom, by the incomplete beta function.
/// Throws DataError ("stats/degrees-of-freedom") unless both are positive.
inline double f_upper_tail(double f, double d1, double d2) {
  detail::check_degrees(d1, "f_upper_tail(d1)");
  detail::check_degrees(d2, "f_upper_tail(d2)");
  if (!(f > 0)) return 1;
  const double sum = d2 + d1 * f;
  return regularized_incomplete_beta(0.5 * d2, 0.5 * d1, d2 / sum, d1 * f / sum);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
