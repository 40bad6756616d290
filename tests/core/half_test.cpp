// Conversions of 16-bit formats against the definition of the formats: a value is
// (−1)^s · 2^(e − bias) · (1 + m/2^bits), rounding goes to the nearest value, ties to the even one.
#include "wanamaker/core/half.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "testing.hpp"
#include "wanamaker/core/random.hpp"

namespace {

using namespace wanamaker;

struct Binary16 {
  static constexpr int mantissa_bits = 10;
  static constexpr int exponent_bits = 5;
  static float decode(std::uint16_t bits) { return float_from_half_bits(bits); }
  static std::uint16_t encode(float value) { return half_bits_from_float(value); }
};

struct Bfloat16 {
  static constexpr int mantissa_bits = 7;
  static constexpr int exponent_bits = 8;
  static float decode(std::uint16_t bits) { return float_from_bfloat16_bits(bits); }
  static std::uint16_t encode(float value) { return bfloat16_bits_from_float(value); }
};

/// The format by its definition.
template <class Format>
struct Definition {
  static constexpr int bias = (1 << (Format::exponent_bits - 1)) - 1;
  static constexpr std::uint16_t infinity =
      static_cast<std::uint16_t>(((1 << Format::exponent_bits) - 1) << Format::mantissa_bits);

  /// The value of a finite, non-negative pattern; the pattern of infinity gives the value that it
  /// would have if the exponents went on, which is what rounding compares with.
  static double value(std::uint16_t pattern) {
    const int mantissa = pattern & ((1 << Format::mantissa_bits) - 1);
    const int exponent = pattern >> Format::mantissa_bits;
    const double fraction = std::ldexp(mantissa, -Format::mantissa_bits);
    return exponent == 0 ? std::ldexp(fraction, 1 - bias)
                         : std::ldexp(1.0 + fraction, exponent - bias);
  }

  static std::vector<double> table() {
    std::vector<double> values;
    for (std::uint32_t p = 0; p <= infinity; ++p) {
      values.push_back(value(static_cast<std::uint16_t>(p)));
    }
    return values;
  }

  /// Nearest pattern by searching the table; ties to the even pattern.
  static std::uint16_t nearest(const std::vector<double>& values, float x) {
    const double magnitude = std::abs(static_cast<double>(x));
    const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
    std::size_t pattern = values.size() - 1;
    if (above != values.end()) {
      pattern = static_cast<std::size_t>(above - values.begin());
      if (pattern > 0) {
        const double up = values[pattern] - magnitude;
        const double down = magnitude - values[pattern - 1];
        if (down < up || (down == up && pattern % 2 == 1)) --pattern;
      }
    }
    return static_cast<std::uint16_t>(pattern | (std::signbit(x) ? 0x8000u : 0u));
  }
};

template <class Format>
bool is_nan_pattern(std::uint16_t bits) {
  return (bits & 0x7fffu) > Definition<Format>::infinity;
}

}  // namespace

TEST_CASE_TEMPLATE("every 16-bit pattern has the value of its definition", Format, Binary16,
                   Bfloat16) {
  Index wrong = 0;
  for (std::uint32_t p = 0; p < 0x10000u; ++p) {
    const std::uint16_t bits = static_cast<std::uint16_t>(p);
    const std::uint16_t magnitude = bits & 0x7fffu;
    const float value = Format::decode(bits);
    if (is_nan_pattern<Format>(bits)) {
      wrong += !std::isnan(value);
      continue;
    }
    const double expected = magnitude == Definition<Format>::infinity
                                ? std::numeric_limits<double>::infinity()
                                : Definition<Format>::value(magnitude);
    wrong += std::abs(static_cast<double>(value)) != expected;
    wrong += std::signbit(value) != ((bits & 0x8000u) != 0);
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("every 16-bit pattern survives the way to float and back", Format, Binary16,
                   Bfloat16) {
  Index wrong = 0;
  for (std::uint32_t p = 0; p < 0x10000u; ++p) {
    const std::uint16_t bits = static_cast<std::uint16_t>(p);
    const std::uint16_t back = Format::encode(Format::decode(bits));
    if (is_nan_pattern<Format>(bits)) {
      wrong += !is_nan_pattern<Format>(back) || (back & 0x8000u) != (bits & 0x8000u);
    } else {
      wrong += back != bits;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("ties go to the even pattern and their neighbours to the nearer one", Format,
                   Binary16, Bfloat16) {
  const std::vector<double> values = Definition<Format>::table();
  Index wrong = 0;
  for (std::size_t p = 0; p + 1 < values.size(); ++p) {
    // Two neighbours' midpoint needs one bit more than they have: exact in float.
    const float middle = static_cast<float>((values[p] + values[p + 1]) / 2);
    REQUIRE(static_cast<double>(middle) * 2 == values[p] + values[p + 1]);
    const std::uint16_t even = static_cast<std::uint16_t>(p + p % 2);
    wrong += Format::encode(middle) != even;
    wrong += Format::encode(-middle) != (even | 0x8000u);
    wrong += Format::encode(std::nextafter(middle, 0.0f)) != p;
    wrong += Format::encode(std::nextafter(middle, HUGE_VALF)) != p + 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("any float goes to the nearest pattern", Format, Binary16, Bfloat16) {
  const std::vector<double> values = Definition<Format>::table();
  RandomStream random(17);
  Index wrong = 0;
  for (int i = 0; i < 300000; ++i) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(x)) {
      wrong += !is_nan_pattern<Format>(Format::encode(x));
    } else {
      wrong += Format::encode(x) != Definition<Format>::nearest(values, x);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("every exponent of a float is rounded rightly to half") {
  // Random patterns are rarely within half's range: all exponents, with random mantissas.
  const std::vector<double> values = Definition<Binary16>::table();
  RandomStream random(18);
  Index wrong = 0;
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (int i = 0; i < 500; ++i) {
      const std::uint32_t rest = static_cast<std::uint32_t>(random()) & 0x807fffffu;
      const float x = std::bit_cast<float>((exponent << 23) | rest);
      wrong += half_bits_from_float(x) != Definition<Binary16>::nearest(values, x);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("the limits of half") {
  CHECK(static_cast<float>(half(65504.0f)) == 65504.0f);
  CHECK(static_cast<float>(half(65519.99f)) == 65504.0f);
  CHECK(std::isinf(static_cast<float>(half(65520.0f))));
  CHECK(static_cast<float>(half(0x1p-24f)) == 0x1p-24f);
  CHECK(half(0x1p-25f).bits == 0);
  CHECK(half(0x1.000002p-25f).bits == 1);
  CHECK(half(-0.0f).bits == 0x8000u);
  static_assert(half(1.0f).bits == 0x3c00u && bfloat16(1.0f).bits == 0x3f80u, "constexpr");
}

TEST_CASE("a NaN whose payload would vanish stays NaN") {
  const float quiet_after_cut = std::bit_cast<float>(0x7f800001u);
  CHECK(std::isnan(static_cast<float>(half(quiet_after_cut))));
  CHECK(std::isnan(static_cast<float>(bfloat16(quiet_after_cut))));
  CHECK(bfloat16_bits_from_float(std::bit_cast<float>(0xffffffffu)) == 0xffffu);
}
