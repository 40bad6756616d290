// What a backend on a device works with: stream, cuBLAS handle, workspace and allocator, the
// caller's or its own.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

#include "wanamaker/backend/cuda_status.hpp"
#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Where device memory comes from: two functions of the caller's, ordered with a stream's work. By
/// default the device's stream-ordered pool.
struct DeviceAllocator {
  void* context = nullptr;  ///< handed to both
  cudaError_t (*allocate)(void* context, void** memory, std::size_t bytes, cudaStream_t stream) =
      [](void*, void** memory, std::size_t bytes, cudaStream_t stream) {
        return cudaMallocAsync(memory, bytes, stream);
      };
  cudaError_t (*release)(void* context, void* memory, cudaStream_t stream) =
      [](void*, void* memory, cudaStream_t stream) { return cudaFreeAsync(memory, stream); };
};

/// How products of floats are computed. `ieee`: in float; `tf32`: factors rounded to 10 bits of
/// mantissa on the way into tensor cores, sums in float.
enum class MathMode { ieee, tf32 };

/// As protocols record it.
constexpr const char* name_of(MathMode mode) {
  return mode == MathMode::ieee ? "ieee" : "tf32";
}

/// What a CublasBackend is given; what is left out it makes, on the current device. All that is
/// given must outlive the backend and its buffers.
struct CublasOptions {
  cudaStream_t stream = nullptr;    ///< null: one of its own; cudaStreamLegacy is the default one
  cublasHandle_t handle = nullptr;  ///< configured anew: stream, workspace and modes are set
  void* workspace = nullptr;        ///< cuBLAS's, aligned to 256 bytes
  std::size_t workspace_bytes = std::size_t{32} << 20;  ///< of it; without one, of one that is made
  DeviceAllocator allocator{};
  MathMode math = MathMode::ieee;
  /// Products are the same from run to run: cuBLAS may use no atomic additions. Kernels of ours
  /// never do.
  bool deterministic = true;
};

namespace detail {

struct StreamDestroyer {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct HandleDestroyer {
  void operator()(cublasHandle_t handle) const { cublasDestroy(handle); }
};
struct EventDestroyer {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using OwnedStream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, StreamDestroyer>;
using OwnedHandle = std::unique_ptr<std::remove_pointer_t<cublasHandle_t>, HandleDestroyer>;
using OwnedEvent = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, EventDestroyer>;

/// Shared by a backend and its buffers, so that memory can be given back whichever ends first.
class CudaSession {
 public:
  explicit CudaSession(const CublasOptions& options) : options_(options) {
    if (options_.stream == nullptr) make_stream();
    if (options_.handle == nullptr) make_handle();
    if (options_.workspace == nullptr && options_.workspace_bytes > 0) {
      own_workspace_ = allocate(options_.workspace_bytes, "CublasBackend");
      options_.workspace = own_workspace_;
    }
    try {
      configure();
    } catch (...) {
      release(own_workspace_);
      throw;
    }
  }
  ~CudaSession() { release(own_workspace_); }
  CudaSession(const CudaSession&) = delete;
  CudaSession& operator=(const CudaSession&) = delete;

  cudaStream_t stream() const { return options_.stream; }
  cublasHandle_t handle() const { return options_.handle; }
  MathMode math() const { return options_.math; }

  /// Throws BackendError.
  void* allocate(std::size_t bytes, const char* where) const {
    const DeviceAllocator& from = options_.allocator;
    void* memory = nullptr;
    const cudaError_t status = from.allocate(from.context, &memory, bytes, stream());
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw_no_device_memory(where, "cannot allocate " + std::to_string(bytes) + " bytes");
    }
    check_cuda(status, "allocation", where);
    return memory;
  }
  /// A failure has no one to hear of it: the next call on the stream fails, too.
  void release(void* memory) const noexcept {
    if (memory == nullptr) return;
    options_.allocator.release(options_.allocator.context, memory, stream());
  }

 private:
  void make_stream() {
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags", "CublasBackend");
    own_stream_.reset(stream);
    options_.stream = stream;
  }

  void make_handle() {
    cublasHandle_t handle = nullptr;
    check_cublas(cublasCreate(&handle), "cublasCreate", "CublasBackend");
    own_handle_.reset(handle);
    options_.handle = handle;
  }

  // The stream first: setting it takes a handle's workspace away.
  void configure() {
    const auto check = [](cublasStatus_t status, const char* call) {
      check_cublas(status, call, "CublasBackend");
    };
    check(cublasSetStream(handle(), stream()), "cublasSetStream");
    if (options_.workspace != nullptr) {
      check(cublasSetWorkspace(handle(), options_.workspace, options_.workspace_bytes),
            "cublasSetWorkspace");
    }
    check(cublasSetPointerMode(handle(), CUBLAS_POINTER_MODE_HOST), "cublasSetPointerMode");
    check(cublasSetMathMode(handle(), options_.math == MathMode::tf32 ? CUBLAS_TF32_TENSOR_OP_MATH
                                                                      : CUBLAS_DEFAULT_MATH),
          "cublasSetMathMode");
    check(cublasSetAtomicsMode(handle(), options_.deterministic ? CUBLAS_ATOMICS_NOT_ALLOWED
                                                                : CUBLAS_ATOMICS_ALLOWED),
          "cublasSetAtomicsMode");
  }

  CublasOptions options_;
  OwnedStream own_stream_{};
  OwnedHandle own_handle_{};
  void* own_workspace_ = nullptr;
};

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
