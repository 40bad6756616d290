// IEEE 754 binary16 and bfloat16 as storage formats. Arithmetic is done in float; conversions
// round to nearest even and keep NaN and infinities.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "wanamaker/core/version.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Binary16 bits to float: exact for every value, subnormals and NaN included.
WANAMAKER_KERNEL constexpr float float_from_half_bits(std::uint16_t bits) {
  // Masks in place of branches, so that compilers vectorise loops over this; and no operand is a
  // subnormal float, which processors are slow with.
  constexpr std::uint32_t rebias = (127 - 15) << 23;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
  const std::uint32_t exponent = bits & 0x7c00u;
  // Exponents of all ones stay all ones: 31 + 112 + 112 = 255.
  const std::uint32_t normal = magnitude + rebias + (exponent == 0x7c00u ? rebias : 0);
  // 2^-14 · (1 + m/2^10) − 2^-14 = m · 2^-24.
  const std::uint32_t one_and_fraction = ((bits & 0x03ffu) << 13) | 0x38800000u;
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(one_and_fraction) - 0x1p-14f);
  const std::uint32_t is_subnormal = 0u - static_cast<std::uint32_t>(exponent == 0);
  return std::bit_cast<float>((subnormal & is_subnormal) | (normal & ~is_subnormal) | sign);
}

/// Float to binary16 bits, round to nearest even; overflow gives infinity, NaN stays (quiet) NaN.
WANAMAKER_HOST_DEVICE constexpr std::uint16_t half_bits_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65520
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal, unit 2^-24; the addition rounds
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000u));
  }
  const std::uint32_t round = 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + round) >> 13));
}

/// bfloat16 bits to float: exact.
WANAMAKER_KERNEL constexpr float float_from_bfloat16_bits(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Float to bfloat16 bits, round to nearest even; NaN stays (quiet) NaN.
WANAMAKER_HOST_DEVICE constexpr std::uint16_t bfloat16_bits_from_float(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// IEEE 754 binary16 storage.
struct half {
  std::uint16_t bits = 0;

  half() = default;
  WANAMAKER_HOST_DEVICE constexpr explicit half(float value) : bits(half_bits_from_float(value)) {}
  WANAMAKER_KERNEL constexpr operator float() const { return float_from_half_bits(bits); }
};

/// bfloat16 storage: the upper half of a float.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  WANAMAKER_HOST_DEVICE constexpr explicit bfloat16(float value)
      : bits(bfloat16_bits_from_float(value)) {}
  WANAMAKER_KERNEL constexpr operator float() const { return float_from_bfloat16_bits(bits); }
};

/// By way of which any number becomes a T: float for the 16-bit types, which have no other.
template <class T>
using ConversionStep =
    std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, float, T>;

static_assert(sizeof(half) == 2 && std::is_trivially_copyable_v<half>);
static_assert(sizeof(bfloat16) == 2 && std::is_trivially_copyable_v<bfloat16>);

}  // namespace wanamaker::inline WANAMAKER_ABI
