// Elements of a file, at any alignment, into numbers to compute with; and the search for values
// that are not finite.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "wanamaker/core/half.hpp"
#include "wanamaker/io/dtype.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// Elements per step: a constant, so that compilers vectorise the loop; in first-level cache.
inline constexpr std::size_t conversion_block = 1024;

/// Calls f(std::type_identity<T>{}) with the C++ type of a dtype. Booleans are taken as bytes: a
/// C++ bool must not hold what an untrusted file may.
template <class F>
auto visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float64:
      return f(std::type_identity<double>{});
    case DType::float32:
      return f(std::type_identity<float>{});
    case DType::float16:
      return f(std::type_identity<half>{});
    case DType::bfloat16:
      return f(std::type_identity<bfloat16>{});
    case DType::int64:
      return f(std::type_identity<std::int64_t>{});
    case DType::int32:
      return f(std::type_identity<std::int32_t>{});
    case DType::int16:
      return f(std::type_identity<std::int16_t>{});
    case DType::int8:
      return f(std::type_identity<std::int8_t>{});
    case DType::uint64:
      return f(std::type_identity<std::uint64_t>{});
    case DType::uint32:
      return f(std::type_identity<std::uint32_t>{});
    case DType::uint16:
      return f(std::type_identity<std::uint16_t>{});
    case DType::uint8:
    case DType::boolean:
      break;
  }
  return f(std::type_identity<std::uint8_t>{});
}

template <class From, class To>
void convert_block(const std::byte* from, std::size_t count, To* to) {
  std::array<From, conversion_block> loaded;
  std::memcpy(loaded.data(), from, count * sizeof(From));
  if (count == conversion_block) {
    for (std::size_t i = 0; i < conversion_block; ++i) to[i] = static_cast<To>(loaded[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<To>(loaded[i]);
  }
}

template <class From, class To>
void convert(const std::byte* from, std::size_t count, To* to) {
  if constexpr (std::same_as<From, To>) {
    if (count > 0) std::memcpy(to, from, count * sizeof(To));
  } else {
    for (std::size_t i = 0; i < count; i += conversion_block) {
      convert_block<From>(from + i * sizeof(From), std::min(conversion_block, count - i), to + i);
    }
  }
}

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;

/// The bits of +infinity: all ones in the exponent.
template <FloatElement T>
inline constexpr BitsOf<T> exponent_mask = [] {
  if constexpr (std::same_as<T, double>) return std::uint64_t{0x7ff0000000000000u};
  if constexpr (std::same_as<T, float>) return std::uint32_t{0x7f800000u};
  if constexpr (std::same_as<T, half>) return std::uint16_t{0x7c00u};
  if constexpr (std::same_as<T, bfloat16>) return std::uint16_t{0x7f80u};
}();

/// The sign bit of the result is set iff the value is NaN or infinite: adding the exponent's lowest
/// bit carries out of an exponent of all ones. And, add, or: any vector unit has them.
template <FloatElement T>
BitsOf<T> non_finite_carry(T value) {
  using Bits = BitsOf<T>;
  constexpr Bits mask = exponent_mask<T>;
  constexpr Bits lowest = static_cast<Bits>(mask & static_cast<Bits>(~mask + 1));
  return static_cast<Bits>((std::bit_cast<Bits>(value) & mask) + lowest);
}

template <FloatElement T>
bool carries(BitsOf<T> bits) {
  return (bits >> (8 * sizeof(T) - 1)) != 0;
}

template <FloatElement T>
bool all_finite(const T* values) {
  BitsOf<T> carry = 0;
  for (std::size_t i = 0; i < conversion_block; ++i) {
    carry = static_cast<BitsOf<T>>(carry | non_finite_carry(values[i]));
  }
  return !carries<T>(carry);
}

}  // namespace detail

/// Whether numbers of this file type can be read as T: float and double from every floating type
/// (rounding to nearest), half and bfloat16 from their own type only, so that nothing is rounded
/// twice.
template <FloatElement T>
constexpr bool converts_to(DType dtype) {
  if constexpr (std::same_as<T, half> || std::same_as<T, bfloat16>) return dtype == dtype_of<T>;
  return is_floating(dtype);
}

/// Converts `count` elements of a floating type, at any alignment, to T. Requires
/// converts_to<T>(dtype). A double beyond the range of float becomes an infinity.
template <FloatElement T>
void convert_floats(DType dtype, const std::byte* from, std::size_t count, T* to) {
  detail::visit_dtype(dtype, [&](auto type) {
    using From = typename decltype(type)::type;
    if constexpr (std::same_as<From, T> || (std::floating_point<T> && FloatElement<From>)) {
      detail::convert<From>(from, count, to);
    }
  });
}

/// Converts `count` elements of an integer type or of booleans (0 and 1), at any alignment.
/// Requires !is_floating(dtype). Returns the position of the first value that is beyond int64, or
/// that is no boolean where booleans are, if any.
inline std::optional<std::size_t> convert_integers(DType dtype, const std::byte* from,
                                                   std::size_t count, std::int64_t* to) {
  detail::visit_dtype(dtype, [&](auto type) {
    using From = typename decltype(type)::type;
    if constexpr (std::integral<From>) detail::convert<From>(from, count, to);
  });
  const auto is_wrong = [dtype](std::int64_t x) {
    return (dtype == DType::uint64 && x < 0) || (dtype == DType::boolean && x > 1);
  };
  const std::int64_t* const wrong = std::find_if(to, to + count, is_wrong);
  if (wrong == to + count) return std::nullopt;
  return static_cast<std::size_t>(wrong - to);
}

/// Position of the first NaN or infinity.
template <FloatElement T>
std::optional<std::size_t> first_non_finite(std::span<const T> values) {
  std::size_t i = 0;
  constexpr std::size_t block = detail::conversion_block;
  while (i + block <= values.size() && detail::all_finite(values.data() + i)) i += block;
  for (; i < values.size(); ++i) {
    if (detail::carries<T>(detail::non_finite_carry(values[i]))) return i;
  }
  return std::nullopt;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
