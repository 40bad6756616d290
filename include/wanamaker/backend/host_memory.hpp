// Memory of backends that compute on the host: aligned buffers, copies, and their traits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <string>

#include "wanamaker/backend/matrix.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// An owning array of n elements of T, aligned to 64 bytes, zeroed. T is trivially copyable.
template <class T>
class HostBuffer {
 public:
  HostBuffer() = default;
  /// Throws BackendError where the memory cannot be had.
  explicit HostBuffer(Index n) : data_(allocate(n)), size_(n) {
    std::uninitialized_value_construct_n(data_.get(), n);
  }

  /// n elements of any value, for what is written before it is read. Throws BackendError.
  static HostBuffer uninitialised(Index n) {
    HostBuffer buffer;
    buffer.data_.reset(allocate(n));
    buffer.size_ = n;
    return buffer;
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  Index size() const { return size_; }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete (p, std::align_val_t{64}); }
  };

  static T* allocate(Index n) {
    if (n >= 0 && n <= std::numeric_limits<Index>::max() / Index{sizeof(T)}) {
      void* memory = ::operator new (static_cast<std::size_t>(n) * sizeof(T), std::align_val_t{64},
                                     std::nothrow);
      if (memory != nullptr) return static_cast<T*>(memory);
    }
    throw BackendError({.id = "backend/out-of-memory",
                        .where = "HostBuffer",
                        .what = "cannot allocate " + std::to_string(n) + " elements of " +
                                std::to_string(sizeof(T)) + " bytes",
                        .mend = "use fewer tokens per batch or a smaller model"});
  }

  std::unique_ptr<T, Free> data_;
  Index size_ = 0;
};

/// Allocation and copies of a host backend; a backend inherits them.
struct HostMemory {
  template <class T>
  HostBuffer<T> allocate(Index n) const {
    return HostBuffer<T>(n);
  }
  template <class T>
  void copy_from_host(const T* source, Index n, T* destination) const {
    std::copy_n(source, n, destination);
  }
  template <class T>
  void copy_to_host(const T* source, Index n, T* destination) const {
    std::copy_n(source, n, destination);
  }
  void synchronize() const {}
};

/// Member types of backend_traits for a backend on the host, computing in S and storing weights
/// as W.
template <class S, class W = S>
struct HostBackendTraits {
  using Scalar = S;
  using Storage = W;
  using Accumulator = double;
  template <class T>
  using Buffer = HostBuffer<T>;
  using Matrix = OwningMatrix<S, HostBuffer<S>>;
  using WeightMatrix = OwningMatrix<W, HostBuffer<W>>;
  using IndexVector = HostBuffer<TokenId>;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
