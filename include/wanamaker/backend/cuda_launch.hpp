// Functors on a device: the team of a block's threads, and the one place where kernels are
// launched.
#pragma once

#include <algorithm>
#include <type_traits>

#include "wanamaker/backend/cuda_status.hpp"
#include "wanamaker/core/index.hpp"

// Where the threads of a block exist: in nvcc's passes for a device, and in the tests' emulation.
#if defined(__CUDA_ARCH__) || defined(WANAMAKER_CUDA_EMULATED)
#define WANAMAKER_DETAIL_DEVICE_CODE 1
#else
#define WANAMAKER_DETAIL_DEVICE_CODE 0
#endif

namespace wanamaker::inline WANAMAKER_ABI {

/// The threads of a block at work on one row, as SerialRowTeam. Member l takes the elements l,
/// l + members, …; sums are made of the members' in a tree of fixed shape, so that they repeat.
/// `each`, `sum` and `max` are called by all members; what any did before is seen by all within.
class BlockRowTeam {
 public:
  static constexpr int most_members = 128;

  template <class F>
  WANAMAKER_KERNEL void each(Index n, F f) const {
    wait_for_all();
    for (Index j = member(); j < n; j += members()) f(j);
    wait_for_all();
  }

  template <class T, class F>
  WANAMAKER_KERNEL T sum(Index n, F term) const {
    wait_for_all();
    T own = 0;
    for (Index j = member(); j < n; j += members()) own += static_cast<T>(term(j));
    return combine(own, [](T a, T b) { return a + b; });
  }

  template <class T, class F>
  WANAMAKER_KERNEL T max(Index n, T lowest, F term) const {
    wait_for_all();
    const auto larger = [](T a, T b) { return a < b ? b : a; };
    T own = lowest;
    for (Index j = member(); j < n; j += members()) own = larger(own, static_cast<T>(term(j)));
    return combine(own, larger);
  }

  WANAMAKER_KERNEL bool leader() const { return member() == 0; }

#if WANAMAKER_DETAIL_DEVICE_CODE
  WANAMAKER_KERNEL static int member() {
    return static_cast<int>(threadIdx.x);
  }
  /// A power of two, at most most_members.
  WANAMAKER_KERNEL static int members() {
    return static_cast<int>(blockDim.x);
  }
  /// `rows` values a member, in memory that all share: what is written there is seen by all within
  /// the next call of each, sum or max. The same memory for all calls of one T and `rows`, but not
  /// that of the sums and maxima.
  template <class T, int rows>
  WANAMAKER_KERNEL static T* shared() {
    __shared__ T values[std::size_t{rows} * std::size_t{most_members}];
    return values;
  }

 private:
  WANAMAKER_KERNEL static void wait_for_all() {
    __syncthreads();
  }
  template <class T>
  WANAMAKER_KERNEL static T* sums() {
    __shared__ T values[most_members];
    return values;
  }
#else
  // For the pass that compiles a functor for the host; never called.
  WANAMAKER_KERNEL static int member() {
    return 0;
  }
  WANAMAKER_KERNEL static int members() {
    return 1;
  }
  template <class T, int rows>
  WANAMAKER_KERNEL static T* shared() {
    return nullptr;
  }

 private:
  WANAMAKER_KERNEL static void wait_for_all() {}
  template <class T>
  WANAMAKER_KERNEL static T* sums() {
    return nullptr;
  }
#endif

  // The next use of the memory begins with a wait.
  template <class T, class F>
  WANAMAKER_KERNEL static T combine(T own, F two) {
    T* slots = sums<T>();
    slots[member()] = own;
    wait_for_all();
    for (int width = members() / 2; width > 0; width /= 2) {
      if (member() < width) slots[member()] = two(slots[member()], slots[member() + width]);
      wait_for_all();
    }
    return slots[0];
  }
};

namespace detail {

inline constexpr int threads_of_elements = 256;

template <class F>
__global__ void __launch_bounds__(threads_of_elements) run_elements(Index n, F f) {
  const Index step = static_cast<Index>(gridDim.x) * static_cast<Index>(blockDim.x);
  const Index first = static_cast<Index>(blockIdx.x) * static_cast<Index>(blockDim.x) + threadIdx.x;
  for (Index i = first; i < n; i += step) f(i);
}

template <class F>
__global__ void __launch_bounds__(BlockRowTeam::most_members) run_rows(Index rows, F f) {
  const BlockRowTeam team;
  const Index step = static_cast<Index>(gridDim.x);
  for (Index row = static_cast<Index>(blockIdx.x); row < rows; row += step) f(row, team);
}

// Kernels loop over what is more.
inline constexpr Index largest_grid = Index{1} << 20;

/// kernel(arguments…) on `blocks` blocks of `threads` threads, where there are any: the one launch
/// of all kernels. Throws BackendError.
template <class... P, class... A>
void launch(cudaStream_t stream, Index blocks, int threads, void (*kernel)(P...),
            const A&... arguments) {
  static_assert((std::is_trivially_copyable_v<P> && ...),
                "wanamaker: kernels are trivially copyable structs of raw views");
  if (blocks == 0) return;
  cudaLaunchConfig_t shape{};
  shape.gridDim = dim3(static_cast<unsigned>(std::min(blocks, largest_grid)));
  shape.blockDim = dim3(static_cast<unsigned>(threads));
  shape.stream = stream;
  check_cuda(cudaLaunchKernelEx(&shape, kernel, arguments...), "cudaLaunchKernelEx",
             "CublasBackend");
}

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
