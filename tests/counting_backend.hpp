// A reference backend that counts allocations: for what must allocate nothing.
#pragma once

#include "wanamaker/backend/reference.hpp"

namespace wanamaker_test {

/// Counts in `count`, which must outlive it.
struct CountingBackend : wanamaker::ReferenceBackend<double> {
  int* allocations;
  explicit CountingBackend(int& count) : allocations(&count) {}
  template <class T>
  wanamaker::HostBuffer<T> allocate(wanamaker::Index n) const {
    ++*allocations;
    return wanamaker::HostBuffer<T>(n);
  }
};

}  // namespace wanamaker_test

template <>
struct wanamaker::backend_traits<wanamaker_test::CountingBackend>
    : wanamaker::HostBackendTraits<double> {};
