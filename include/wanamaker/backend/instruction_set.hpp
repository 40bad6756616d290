// Launching host kernels with the widest vector instructions this machine has, chosen at run time,
// so that an ordinary build is quick everywhere.
#pragma once

#include <type_traits>

#include "wanamaker/core/index.hpp"
#include "wanamaker/core/sanitizers.hpp"

// Without optimisation no instruction set helps, and one variant compiles much sooner.
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__CUDACC__) && !defined(__AVX512F__) && \
    defined(__OPTIMIZE__)
#define WANAMAKER_DETAIL_DISPATCH 1
#else
#define WANAMAKER_DETAIL_DISPATCH 0
#endif

// flatten: whatever a kernel calls must be inlined into its launch to be compiled for the
// instruction set. g++ below -O3 leaves most loops as they are, which clang does not.
#if defined(__clang__) || defined(__CUDACC__) || !defined(__OPTIMIZE__)
#define WANAMAKER_DETAIL_LAUNCH flatten
#else
#define WANAMAKER_DETAIL_LAUNCH flatten, optimize("O3")
#endif

// A kernel that devices have another one for: as WANAMAKER_KERNEL, and on the host alone.
#if defined(__GNUC__)
#define WANAMAKER_DETAIL_HOST_KERNEL inline __attribute__((always_inline))
#else
#define WANAMAKER_DETAIL_HOST_KERNEL inline
#endif

namespace wanamaker::inline WANAMAKER_ABI {
namespace detail {

template <class F>
#if defined(__GNUC__)
__attribute__((WANAMAKER_DETAIL_LAUNCH))
#endif
void run_range_baseline(Index begin, Index end, const F& f) {
  for (Index i = begin; i < end; ++i) f(i);
}

#if WANAMAKER_DETAIL_DISPATCH
template <class F>
__attribute__((WANAMAKER_DETAIL_LAUNCH, target("avx2,fma,f16c,bmi,bmi2"))) void run_range_avx2(
    Index begin, Index end, const F& f) {
  for (Index i = begin; i < end; ++i) f(i);
}
template <class F>
__attribute__((WANAMAKER_DETAIL_LAUNCH,
               target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2"))) void
run_range_avx512(Index begin, Index end, const F& f) {
  for (Index i = begin; i < end; ++i) f(i);
}

template <class F>
__attribute__((WANAMAKER_DETAIL_LAUNCH, target("avx2,fma,f16c,bmi,bmi2"))) void run_widest_avx2(
    const F& f) {
  f(std::integral_constant<int, 32>{});
}
template <class F>
__attribute__((WANAMAKER_DETAIL_LAUNCH,
               target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2"))) void
run_widest_avx512(const F& f) {
  f(std::integral_constant<int, 64>{});
}
#endif

// Bytes of the vectors that the whole translation unit is compiled for.
#if defined(__AVX512F__)
inline constexpr int baseline_vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int baseline_vector_bytes = 32;
#else
inline constexpr int baseline_vector_bytes = 16;
#endif

template <class F>
#if defined(__GNUC__)
__attribute__((WANAMAKER_DETAIL_LAUNCH))
#endif
void run_widest_baseline(const F& f) {
  f(std::integral_constant<int, baseline_vector_bytes>{});
}

}  // namespace detail

/// f(i) for begin <= i < end, on the calling thread, compiled for the widest instructions here.
template <class F>
void run_range(Index begin, Index end, const F& f) {
// Sanitizers look for wrong accesses, the same for every width: one variant compiles much sooner.
#if WANAMAKER_DETAIL_DISPATCH && !WANAMAKER_SANITIZED
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return detail::run_range_avx512(begin, end, f);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return detail::run_range_avx2(begin, end, f);
  }
#endif
  detail::run_range_baseline(begin, end, f);
}

/// f(integral_constant<int, bytes>), compiled for the widest instructions here, whose vectors have
/// that many bytes: for kernels whose shape depends on the width.
template <class F>
void run_widest(const F& f) {
#if WANAMAKER_DETAIL_DISPATCH
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return detail::run_widest_avx512(f);
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return detail::run_widest_avx2(f);
  }
#endif
  detail::run_widest_baseline(f);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
