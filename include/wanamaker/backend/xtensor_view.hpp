// Host matrices and vectors as xtensor expressions, without a copy.
#pragma once

#include <array>
#include <cstddef>

#include "wanamaker/core/matrix_view.hpp"
#include "wanamaker/core/third_party/xtensor.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A host matrix as an xtensor expression [rows × cols]; writes go to the matrix, which must
/// outlive it. Strides other than the number of columns are kept.
template <class T>
auto as_xtensor(MatrixView<T> m) {
  const std::array<std::size_t, 2> shape{static_cast<std::size_t>(m.rows),
                                         static_cast<std::size_t>(m.stride)};
  // Not an adaptor with strides: assigning to one copies over its memory as if it were dense.
  return xt::view(xt::adapt(m.data, shape[0] * shape[1], xt::no_ownership(), shape), xt::all(),
                  xt::range(std::ptrdiff_t{0}, m.cols));
}

/// A host vector as an xtensor expression [size].
template <class T>
auto as_xtensor(VectorView<T> v) {
  const std::array<std::size_t, 1> shape{static_cast<std::size_t>(v.size)};
  return xt::adapt(v.data, shape[0], xt::no_ownership(), shape);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
