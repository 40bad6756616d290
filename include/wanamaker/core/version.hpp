// Version numbers, the ABI namespace and the few macros every layer uses.
// Documented in docs/configuration.md.
#pragma once

#define WANAMAKER_VERSION_MAJOR 0
#define WANAMAKER_VERSION_MINOR 1
#define WANAMAKER_VERSION_PATCH 0

// Every public name lives in `wanamaker::inline WANAMAKER_ABI`, so that two incompatible versions
// linked into one program fail to link instead of silently mixing.
#define WANAMAKER_ABI v0

#if defined(__CUDACC__)
#define WANAMAKER_HOST_DEVICE __host__ __device__
#else
#define WANAMAKER_HOST_DEVICE
#endif

// A kernel's instruction set is chosen where it is launched; whatever the kernel calls must be
// inlined into that launch to be compiled for it.
#if defined(__CUDACC__)
#define WANAMAKER_KERNEL WANAMAKER_HOST_DEVICE inline
#elif defined(__GNUC__)
#define WANAMAKER_KERNEL inline __attribute__((always_inline))
#else
#define WANAMAKER_KERNEL inline
#endif

#if !defined(__cpp_exceptions) && !defined(_CPPUNWIND) && !defined(__CUDA_ARCH__)
#error "wanamaker reports bad input by exceptions: compile without -fno-exceptions."
#endif

namespace wanamaker::inline WANAMAKER_ABI {

/// The library's version, for example to write into a result file.
struct Version {
  int major = WANAMAKER_VERSION_MAJOR;
  int minor = WANAMAKER_VERSION_MINOR;
  int patch = WANAMAKER_VERSION_PATCH;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
