// CUDA's runtime and cuBLAS, included in this one place. Only sources that nvcc compiles can have
// kernels; the tests bring a runtime of their own on the host, which defines
// WANAMAKER_CUDA_EMULATED.
#pragma once

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#endif
#include <cublas_v2.h>
#include <cuda_runtime.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#if !defined(__CUDACC__) && !defined(WANAMAKER_CUDA_EMULATED)
#error "wanamaker: backend/cublas.hpp has kernels: compile the source by nvcc, as a .cu file."
#endif
