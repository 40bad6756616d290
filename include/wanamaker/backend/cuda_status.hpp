// Statuses of CUDA and cuBLAS as exceptions: every call is checked, in every build.
#pragma once

#include <string>

#include "wanamaker/backend/third_party/cuda.hpp"
#include "wanamaker/core/error.hpp"

namespace wanamaker::inline WANAMAKER_ABI::detail {

[[noreturn]] inline void throw_no_device_memory(const char* where, std::string what) {
  throw BackendError({.id = "backend/out-of-memory",
                      .where = where,
                      .what = std::move(what),
                      .mend = "use fewer tokens per batch or a smaller model"});
}

[[noreturn]] inline void throw_cuda(cudaError_t status, const char* call, const char* where) {
  cudaGetLastError();  // so that no later call reports it again
  if (status == cudaErrorMemoryAllocation) {
    throw_no_device_memory(where, std::string(call) + " has no memory");
  }
  throw BackendError(
      {.id = "backend/cuda",
       .where = where,
       .what = std::string(call) + " failed",
       .expected = "cudaSuccess",
       .found = std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")",
       .mend = "check device and driver with nvidia-smi; compute-sanitizer finds "
               "wrong accesses"});
}

/// Throws BackendError unless `call`, made by `where`, succeeded.
inline void check_cuda(cudaError_t status, const char* call, const char* where) {
  if (status != cudaSuccess) throw_cuda(status, call, where);
}

[[noreturn]] inline void throw_cublas(cublasStatus_t status, const char* call, const char* where) {
  if (status == CUBLAS_STATUS_ALLOC_FAILED) {
    throw_no_device_memory(where, std::string(call) + " has no memory");
  }
  throw BackendError({.id = "backend/cublas",
                      .where = where,
                      .what = std::string(call) + " failed",
                      .expected = "CUBLAS_STATUS_SUCCESS",
                      .found = cublasGetStatusName(status),
                      .mend = "check device, driver and the version of cuBLAS; report the shapes"});
}

/// As check_cuda.
inline void check_cublas(cublasStatus_t status, const char* call, const char* where) {
  if (status != CUBLAS_STATUS_SUCCESS) throw_cublas(status, call, where);
}

}  // namespace wanamaker::inline WANAMAKER_ABI::detail
