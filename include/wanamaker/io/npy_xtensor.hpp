// .npy files to and from xtensor arrays.
#pragma once

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "wanamaker/core/third_party/xtensor.hpp"
#include "wanamaker/io/npy.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The array as xtensor, of its own shape; T is float or double for floating types, std::int64_t
/// for integers. Throws as NpyArray::read and NpyArray::read_integers.
template <class T>
requires(std::floating_point<T> ||
         std::same_as<T, std::int64_t>) xt::xarray<T> as_xtensor(const NpyArray& array) {
  std::vector<std::size_t> shape(array.shape().begin(), array.shape().end());
  xt::xarray<T> result(shape);
  if constexpr (std::floating_point<T>) {
    array.read_into(result.data());
  } else {
    const std::vector<T> values = array.read_integers();
    std::copy(values.begin(), values.end(), result.begin());
  }
  return result;
}

/// Writes any xtensor expression in its own type. Throws as write_npy.
template <class E>
void write_npy(const std::filesystem::path& path, const xt::xexpression<E>& expression) {
  using T = typename E::value_type;
  const xt::xarray<T> values = expression.derived_cast();
  Shape shape;
  for (const std::size_t size : values.shape()) shape.push_back(static_cast<Index>(size));
  write_npy<T>(path, std::span<const T>(values.data(), values.size()), shape);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
