// Owning row-major matrices over whatever memory a backend allocates.
#pragma once

#include <utility>

#include "wanamaker/core/matrix_view.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Owns a backend's buffer of T and its shape [rows × cols]; row-major, contiguous. Move-only, as
/// buffers are. `Buffer` has data() and size().
template <class T, class Buffer>
class OwningMatrix {
 public:
  using value_type = T;

  OwningMatrix() = default;
  /// Takes a buffer of exactly rows · cols elements; throws ShapeError otherwise.
  OwningMatrix(Buffer buffer, Index rows, Index cols)
      : buffer_(std::move(buffer)), rows_(rows), cols_(cols) {
    check_size(VectorView<T>(buffer_.data(), buffer_.size()), rows * cols, "OwningMatrix");
  }

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Index size() const { return rows_ * cols_; }
  bool empty() const { return size() == 0; }
  T* data() { return buffer_.data(); }
  const T* data() const { return buffer_.data(); }

  MatrixView<T> view() { return {data(), rows_, cols_}; }
  ConstMatrixView<T> view() const { return {data(), rows_, cols_}; }
  /// All elements as one vector, for biases and gains.
  VectorView<T> vector() { return {data(), size()}; }
  ConstVectorView<T> vector() const { return {data(), size()}; }

  operator MatrixView<T>() { return view(); }
  operator ConstMatrixView<T>() const { return view(); }

 private:
  Buffer buffer_{};
  Index rows_ = 0;
  Index cols_ = 0;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
