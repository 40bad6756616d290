// Elementary functions that compilers can vectorise: branch-free, no library call, for float; the
// standard library's for double. Usable in device code.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "wanamaker/core/version.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {
// condition ? a : b by masks: compilers turn ?: into branches that they then do not vectorise,
// where what is chosen came from floating-point arithmetic, which might trap.
WANAMAKER_KERNEL constexpr std::int32_t select(bool condition, std::int32_t a, std::int32_t b) {
  const std::int32_t mask = -static_cast<std::int32_t>(condition);
  return (a & mask) | (b & ~mask);
}
}  // namespace detail

namespace detail {
// e^(x − n·ln 2) for n the whole number next to x/ln 2, by its Taylor series to the seventh power.
WANAMAKER_KERNEL float exponential_of_rest(float x, float n) {
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  return p * r + 1.0f;
}
}  // namespace detail

/// e^x in float, relative error below 2 ulp on [-87, 88]; below -87.33 zero, above 88.72 infinity;
/// NaN stays NaN.
WANAMAKER_KERNEL float exponential(float x) {
  const std::int32_t bits = std::bit_cast<std::int32_t>(x);
  const std::int32_t magnitude = bits & 0x7fffffff;
  const std::int32_t sign = bits & std::int32_t(0x80000000);
  constexpr std::int32_t largest = std::bit_cast<std::int32_t>(88.8f);
  const float clamped = std::bit_cast<float>((magnitude < largest ? magnitude : largest) | sign);
  const float signed_half = std::bit_cast<float>(0x3f000000 | sign);
  const std::int32_t n = static_cast<std::int32_t>(clamped * 1.44269504f + signed_half);
  const float p = detail::exponential_of_rest(clamped, static_cast<float>(n));
  // 2^n by way of the exponent: 2^128 alone is no finite float, but for p < 1 the product is.
  const std::uint32_t value =
      std::bit_cast<std::uint32_t>(p) + (static_cast<std::uint32_t>(n) << 23);
  const bool overflows = bits > std::bit_cast<std::int32_t>(88.72283f);
  const bool vanishes = static_cast<std::uint32_t>(bits) > std::bit_cast<std::uint32_t>(-87.33f);
  const std::int32_t finite = detail::select(vanishes, 0, static_cast<std::int32_t>(value));
  const std::int32_t ordered = detail::select(overflows, 0x7f800000, finite);
  return std::bit_cast<float>(detail::select(magnitude > 0x7f800000, bits, ordered));
}
WANAMAKER_KERNEL double exponential(double x) {
  return std::exp(x);
}

/// e^x for x <= 0, as exact as exponential(x) in half the steps: what a softmax needs.
WANAMAKER_KERNEL float exponential_of_nonpositive(float x) {
  // Adding 1.5·2^23 leaves the whole number next to x/ln 2 in the last bits.
  const std::uint32_t n = std::bit_cast<std::uint32_t>(x * 1.44269504f + 12582912.0f) - 0x4b400000u;
  const float p = detail::exponential_of_rest(x, static_cast<float>(static_cast<std::int32_t>(n)));
  const float value = p * std::bit_cast<float>((n << 23) + 0x3f800000u);
  return std::bit_cast<float>(detail::select(x < -87.33f, 0, std::bit_cast<std::int32_t>(value)));
}
WANAMAKER_KERNEL double exponential_of_nonpositive(double x) {
  return std::exp(x);
}

/// erfc(z) for z >= 0 in float, absolute error below 5e-7. Form t·exp(-z² + P(t)), t = 1/(1 + z/2);
/// P: Chebyshev fit of degree 9 to log(erfc(z)·exp(z²)/t) on 0 <= z <= 6
/// (tests/reference/erfc_fit.py).
WANAMAKER_KERNEL float complementary_error_function_positive(float z) {
  const float t = 1.0f / (1.0f + 0.5f * z);
  float p = 0.0827248436f;
  p = p * t - 0.32961899f;
  p = p * t + 0.295626987f;
  p = p * t + 0.504952083f;
  p = p * t - 1.12891123f;
  p = p * t + 0.594249829f;
  p = p * t - 0.182205073f;
  p = p * t + 0.435981565f;
  p = p * t + 0.992298846f;
  p = p * t - 1.26509884f;
  return t * exponential(p - z * z);
}

/// The standard normal distribution function Φ(x) = erfc(-x/√2)/2; float: absolute error < 3e-7.
WANAMAKER_KERNEL float normal_distribution(float x) {
  const std::int32_t bits = std::bit_cast<std::int32_t>(x);
  const float z = std::bit_cast<float>(bits & 0x7fffffff) * 0.70710678f;
  const float tail = 0.5f * complementary_error_function_positive(z);
  return std::bit_cast<float>(detail::select(bits < 0, std::bit_cast<std::int32_t>(tail),
                                             std::bit_cast<std::int32_t>(1.0f - tail)));
}
WANAMAKER_KERNEL double normal_distribution(double x) {
  return 0.5 * std::erfc(-x * 0.70710678118654752);
}

/// 1/(1 + e^-x), without overflow.
template <class T>
WANAMAKER_KERNEL T logistic(T x) {
  return T(1) / (T(1) + exponential(-x));
}

}  // namespace wanamaker::inline WANAMAKER_ABI
