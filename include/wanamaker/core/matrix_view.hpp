// Non-owning row-major matrices: pointer, rows, columns, stride. Any foreign buffer can be viewed.
#pragma once

#include <string>
#include <type_traits>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Row-major view [rows × cols]; element (i, j) is data[i * stride + j]. Trivially copyable, usable
/// in device code. A view does not own: the memory must outlive it.
template <class T>
struct MatrixView {
  using value_type = std::remove_const_t<T>;

  T* data = nullptr;
  Index rows = 0;
  Index cols = 0;
  Index stride = 0;

  constexpr MatrixView() = default;
  WANAMAKER_HOST_DEVICE constexpr MatrixView(T* data_, Index rows_, Index cols_)
      : data(data_), rows(rows_), cols(cols_), stride(cols_) {}
  WANAMAKER_HOST_DEVICE constexpr MatrixView(T* data_, Index rows_, Index cols_, Index stride_)
      : data(data_), rows(rows_), cols(cols_), stride(stride_) {}
  /// A writable view is also a read-only one.
  template <class U>
  requires std::is_same_v<const U, T> WANAMAKER_HOST_DEVICE constexpr MatrixView(
      MatrixView<U> other)
      : data(other.data), rows(other.rows), cols(other.cols), stride(other.stride) {}

  WANAMAKER_KERNEL constexpr T& operator()(Index i, Index j) const { return data[i * stride + j]; }
  WANAMAKER_KERNEL constexpr T* row(Index i) const { return data + i * stride; }
  WANAMAKER_HOST_DEVICE constexpr Index size() const { return rows * cols; }
  WANAMAKER_HOST_DEVICE constexpr bool contiguous() const { return stride == cols || rows <= 1; }

  /// Rows [first, first + count).
  WANAMAKER_HOST_DEVICE constexpr MatrixView middle_rows(Index first, Index count) const {
    return {place(first * stride), count, cols, stride};
  }
  /// Columns [first, first + count).
  WANAMAKER_HOST_DEVICE constexpr MatrixView middle_cols(Index first, Index count) const {
    return {place(first), rows, count, stride};
  }

 private:
  // An empty matrix may have no memory, and nothing may be added to a null pointer.
  WANAMAKER_HOST_DEVICE constexpr T* place(Index offset) const {
    return data == nullptr ? data : data + offset;
  }
};

template <class T>
using ConstMatrixView = MatrixView<const T>;

/// A non-owning vector, for device code too.
template <class T>
struct VectorView {
  using value_type = std::remove_const_t<T>;

  T* data = nullptr;
  Index size = 0;

  constexpr VectorView() = default;
  WANAMAKER_HOST_DEVICE constexpr VectorView(T* data_, Index size_) : data(data_), size(size_) {}
  template <class U>
  requires std::is_same_v<const U, T> WANAMAKER_HOST_DEVICE constexpr VectorView(
      VectorView<U> other)
      : data(other.data), size(other.size) {}

  WANAMAKER_KERNEL constexpr T& operator[](Index i) const { return data[i]; }
  WANAMAKER_HOST_DEVICE constexpr bool empty() const { return size == 0; }
  WANAMAKER_HOST_DEVICE constexpr VectorView middle(Index first, Index count) const {
    return {data + first, count};
  }
};

template <class T>
using ConstVectorView = VectorView<const T>;

/// "[rows × cols]".
inline std::string shape_text(Index rows, Index cols) {
  std::string text = "[";
  text.append(std::to_string(rows)).append(" × ").append(std::to_string(cols)).append("]");
  return text;
}
template <class T>
std::string shape_text(const MatrixView<T>& m) {
  return shape_text(m.rows, m.cols);
}

/// Throws ShapeError unless `m` is [rows × cols]; `where` names the function and the argument.
template <class T>
void check_shape(const MatrixView<T>& m, Index rows, Index cols, const char* where) {
  if (m.rows == rows && m.cols == cols) return;
  throw ShapeError({.id = "shape/matrix",
                    .where = where,
                    .what = "wrong shape",
                    .expected = shape_text(rows, cols),
                    .found = shape_text(m),
                    .mend = "pass a matrix of the expected shape"});
}

/// Throws ShapeError unless `v` has `size` elements.
template <class T>
void check_size(const VectorView<T>& v, Index size, const char* where) {
  if (v.size == size) return;
  throw ShapeError({.id = "shape/vector",
                    .where = where,
                    .what = "wrong length",
                    .expected = std::to_string(size) + " elements",
                    .found = std::to_string(v.size),
                    .mend = "pass a vector of the expected length"});
}

}  // namespace wanamaker::inline WANAMAKER_ABI
