// Memory on a device, and pinned memory that host values pass through on their way to it.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "wanamaker/backend/cuda_session.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// An owning array of n elements of T on the device, zeroed before what is launched next. T is
/// trivially copyable. Its memory goes back after what was launched before its end.
template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Throws BackendError where the memory cannot be had.
  DeviceBuffer(std::shared_ptr<const detail::CudaSession> session, Index n)
      : session_(std::move(session)), size_(n) {
    constexpr const char* where = "DeviceBuffer";
    if (n < 0 || n > std::numeric_limits<Index>::max() / Index{sizeof(T)}) {
      detail::throw_no_device_memory(where, "cannot allocate " + std::to_string(n) +
                                                " elements of " + std::to_string(sizeof(T)) +
                                                " bytes");
    }
    if (n == 0) return;
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
    data_ = static_cast<T*>(session_->allocate(bytes, where));
    const cudaError_t status = cudaMemsetAsync(data_, 0, bytes, session_->stream());
    if (status == cudaSuccess) return;
    session_->release(data_);
    detail::throw_cuda(status, "cudaMemsetAsync", where);
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer(std::move(other)).swap(*this);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) session_->release(data_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  Index size() const { return size_; }

 private:
  void swap(DeviceBuffer& other) noexcept {
    std::swap(session_, other.session_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  std::shared_ptr<const detail::CudaSession> session_{};
  T* data_ = nullptr;
  Index size_ = 0;
};

namespace detail {

// What is still being sent from the memory has to arrive first.
struct PinnedFree {
  std::shared_ptr<const CudaSession> session{};
  void operator()(char* memory) const {
    cudaStreamSynchronize(session->stream());
    cudaFreeHost(memory);
  }
};
using PinnedMemory = std::unique_ptr<char, PinnedFree>;

/// Pinned memory that what is sent to the device passes through, whatever memory it came from: the
/// caller may change or free it at once, and the device is not waited for but when both halves are
/// under way.
class PinnedStaging {
 public:
  explicit PinnedStaging(std::shared_ptr<const CudaSession> session)
      : session_(std::move(session)) {}

  /// Sends `bytes`, ordered with the session's stream. Throws BackendError.
  void send(const void* source, std::size_t bytes, void* destination) {
    const char* from = static_cast<const char*>(source);
    char* to = static_cast<char*>(destination);
    while (bytes > 0) {
      const std::size_t piece = std::min(bytes, half_bytes - used_);
      if (piece == 0) {
        turn();
        continue;
      }
      char* pinned = half().memory(session_) + used_;
      std::memcpy(pinned, from, piece);
      check_cuda(cudaMemcpyAsync(to, pinned, piece, cudaMemcpyHostToDevice, session_->stream()),
                 "cudaMemcpyAsync", where);
      used_ += std::min((piece + 63) / 64 * 64, half_bytes - used_);
      from += piece;
      to += piece;
      bytes -= piece;
    }
  }

 private:
  static constexpr std::size_t half_bytes = std::size_t{4} << 20;
  static constexpr const char* where = "CublasBackend::copy_from_host";

  // Made when it is first used; its event tells when all that it sent has arrived.
  class Half {
   public:
    char* memory(const std::shared_ptr<const CudaSession>& session) {
      if (memory_ == nullptr) {
        void* memory = nullptr;
        check_cuda(cudaMallocHost(&memory, half_bytes), "cudaMallocHost", where);
        memory_ = PinnedMemory(static_cast<char*>(memory), PinnedFree{session});
      }
      return memory_.get();
    }
    cudaEvent_t sent() {
      if (sent_ == nullptr) {
        cudaEvent_t event = nullptr;
        check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                   "cudaEventCreateWithFlags", where);
        sent_.reset(event);
      }
      return sent_.get();
    }

   private:
    PinnedMemory memory_{};
    OwnedEvent sent_{};
  };

  Half& half() { return halves_[current_]; }

  void turn() {
    check_cuda(cudaEventRecord(half().sent(), session_->stream()), "cudaEventRecord", where);
    current_ = 1 - current_;
    check_cuda(cudaEventSynchronize(half().sent()), "cudaEventSynchronize", where);
    used_ = 0;
  }

  std::shared_ptr<const CudaSession> session_;
  std::array<Half, 2> halves_{};
  std::size_t current_ = 0;
  std::size_t used_ = 0;
};

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
