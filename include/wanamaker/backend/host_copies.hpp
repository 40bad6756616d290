// Vectors between the host and a backend's memory.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include "wanamaker/backend/backend.hpp"

namespace wanamaker::inline WANAMAKER_ABI::detail {

/// Host values in the backend's memory.
template <class T, Backend B>
buffer_t<B, T> backend_copy(B& backend, const std::vector<T>& values) {
  const Index n = static_cast<Index>(values.size());
  buffer_t<B, T> memory = backend.template allocate<T>(n);
  backend.copy_from_host(values.data(), n, memory.data());
  return memory;
}

/// Values of the backend's memory on the host, once they are computed.
template <class T, Backend B>
std::vector<std::remove_const_t<T>> host_copy(B& backend, VectorView<T> values) {
  std::vector<std::remove_const_t<T>> copy(static_cast<std::size_t>(values.size));
  backend.synchronize();
  backend.copy_to_host(values.data, values.size, copy.data());
  return copy;
}

/// Rows of a matrix one behind the other.
template <Backend B, class T>
std::vector<std::remove_const_t<T>> host_copy(B& backend, MatrixView<T> m) {
  std::vector<std::remove_const_t<T>> copy(static_cast<std::size_t>(m.size()));
  backend.synchronize();
  for (Index i = 0; i < m.rows; ++i) {
    backend.copy_to_host(m.row(i), m.cols, copy.data() + i * m.cols);
  }
  return copy;
}

}  // namespace wanamaker::inline WANAMAKER_ABI::detail
