// The element types that tensor files hold, and the shapes of tensors.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/half.hpp"
#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

static_assert(std::endian::native == std::endian::little,
              "tensor files are little-endian and are read without swapping bytes");

/// Type of a tensor's elements in a file; larger elements first, in the order in which safetensors
/// files are written.
enum class DType : std::uint8_t {
  uint64,
  int64,
  float64,
  float32,
  uint32,
  int32,
  bfloat16,
  float16,
  uint16,
  int16,
  int8,
  uint8,
  boolean,
};

/// Sizes of a tensor's dimensions; empty for a scalar.
using Shape = std::vector<Index>;

namespace detail {

enum class DTypeKind : std::uint8_t { floating, integer };

struct DTypeEntry {
  DType dtype;
  DTypeKind kind;
  std::uint8_t bytes;
  std::string_view safetensors;
  std::string_view npy;  ///< empty where .npy has no such type
};

inline constexpr std::array<DTypeEntry, 13> dtype_table{{
    {DType::uint64, DTypeKind::integer, 8, "U64", "<u8"},
    {DType::int64, DTypeKind::integer, 8, "I64", "<i8"},
    {DType::float64, DTypeKind::floating, 8, "F64", "<f8"},
    {DType::float32, DTypeKind::floating, 4, "F32", "<f4"},
    {DType::uint32, DTypeKind::integer, 4, "U32", "<u4"},
    {DType::int32, DTypeKind::integer, 4, "I32", "<i4"},
    {DType::bfloat16, DTypeKind::floating, 2, "BF16", ""},
    {DType::float16, DTypeKind::floating, 2, "F16", "<f2"},
    {DType::uint16, DTypeKind::integer, 2, "U16", "<u2"},
    {DType::int16, DTypeKind::integer, 2, "I16", "<i2"},
    {DType::int8, DTypeKind::integer, 1, "I8", "|i1"},
    {DType::uint8, DTypeKind::integer, 1, "U8", "|u1"},
    {DType::boolean, DTypeKind::integer, 1, "BOOL", "|b1"},
}};

constexpr const DTypeEntry& dtype_entry(DType dtype) {
  return dtype_table[static_cast<std::size_t>(dtype)];
}

template <class T>
struct DTypeOf;
template <DType dtype>
struct DTypeConstant {
  static constexpr DType value = dtype;
};
template <>
struct DTypeOf<double> : DTypeConstant<DType::float64> {};
template <>
struct DTypeOf<float> : DTypeConstant<DType::float32> {};
template <>
struct DTypeOf<half> : DTypeConstant<DType::float16> {};
template <>
struct DTypeOf<bfloat16> : DTypeConstant<DType::bfloat16> {};
template <>
struct DTypeOf<std::int64_t> : DTypeConstant<DType::int64> {};
template <>
struct DTypeOf<std::int32_t> : DTypeConstant<DType::int32> {};
template <>
struct DTypeOf<std::int16_t> : DTypeConstant<DType::int16> {};
template <>
struct DTypeOf<std::int8_t> : DTypeConstant<DType::int8> {};
template <>
struct DTypeOf<std::uint64_t> : DTypeConstant<DType::uint64> {};
template <>
struct DTypeOf<std::uint32_t> : DTypeConstant<DType::uint32> {};
template <>
struct DTypeOf<std::uint16_t> : DTypeConstant<DType::uint16> {};
template <>
struct DTypeOf<std::uint8_t> : DTypeConstant<DType::uint8> {};
template <>
struct DTypeOf<bool> : DTypeConstant<DType::boolean> {};

}  // namespace detail

/// A C++ type that a tensor file can hold as it is.
template <class T>
concept TensorElement = requires {
  detail::DTypeOf<T>::value;
};

/// Floating elements: double, float, half, bfloat16.
template <class T>
concept FloatElement = std::same_as<T, double> || std::same_as<T, float> || std::same_as<T, half> ||
    std::same_as<T, bfloat16>;

/// The file type of a C++ type.
template <TensorElement T>
inline constexpr DType dtype_of = detail::DTypeOf<T>::value;

/// Size of one element in bytes.
constexpr std::size_t size_in_bytes(DType dtype) {
  return detail::dtype_entry(dtype).bytes;
}

constexpr bool is_floating(DType dtype) {
  return detail::dtype_entry(dtype).kind == detail::DTypeKind::floating;
}

/// The name that safetensors files use, for example "BF16".
constexpr std::string_view dtype_name(DType dtype) {
  return detail::dtype_entry(dtype).safetensors;
}

/// Number of elements of a shape; nothing where a dimension is negative, or where the product of
/// the dimensions is beyond Index. Zeros are left out of that product: [0, 2⁴⁰, 2⁴⁰] is refused
/// too.
inline std::optional<Index> element_count(const Shape& shape) {
  std::uint64_t product = 1;
  bool is_empty = false;
  for (const Index dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (dimension == 0) {
      is_empty = true;
      continue;
    }
    const auto next = checked_multiply(product, static_cast<std::uint64_t>(dimension));
    if (!next || *next > static_cast<std::uint64_t>(std::numeric_limits<Index>::max())) {
      return std::nullopt;
    }
    product = *next;
  }
  return is_empty ? 0 : static_cast<Index>(product);
}

/// "[2, 3]"
inline std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const Index dimension : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dimension);
  }
  return text + "]";
}

namespace detail {

[[noreturn]] inline void throw_wrong_count(const std::string& where, std::size_t expected,
                                           const Shape& found) {
  throw FormatError({.id = "tensor/shape",
                     .where = where,
                     .what = "wrong number of elements",
                     .expected = std::to_string(expected),
                     .found = shape_text(found),
                     .mend = "check that the file belongs to this model"});
}

}  // namespace detail

}  // namespace wanamaker::inline WANAMAKER_ABI
