#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "device.hpp"

using cuda_emulation::Device;

namespace {

// Everything runs under the device's lock, and may be made to fail by its name.
template <class F>
cudaError_t call(const char* name, F&& f) {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  const int status = device.injected(name);
  return status != 0 ? static_cast<cudaError_t>(status) : f(device);
}

bool never() {
  return false;
}

std::map<const char*, std::size_t>& pinned() {
  static std::map<const char*, std::size_t> memory;
  return memory;
}

bool is_pinned(const void* address) {
  const char* p = static_cast<const char*>(address);
  auto at = pinned().upper_bound(p);
  if (at == pinned().begin()) return false;
  --at;
  return p < at->first + at->second;
}

}  // namespace

namespace cuda_emulation {

cudaError_t enqueue_launch(const cudaLaunchConfig_t& shape, std::function<void()> thread) {
  return call("cudaLaunchKernelEx", [&](Device& device) {
    const dim3 grid = shape.gridDim;
    const unsigned threads = std::min(shape.blockDim.x, threads_per_block());
    if (grid.x == 0 || shape.blockDim.x == 0 || shape.blockDim.x > 1024) {
      return cudaErrorInvalidValue;
    }
    device.stream_of(shape.stream).work.push_back([grid, threads, thread = std::move(thread)] {
      gridDim = grid;
      blockDim = dim3(threads);
      for (unsigned b = 0; b < grid.x; ++b) {
        blockIdx = {b, 0, 0};
        threadIdx = {0, 0, 0};
        if (threads == 1) {
          thread();
        } else {
          run_block(threads, thread);
        }
      }
    });
    return cudaSuccess;
  });
}

}  // namespace cuda_emulation

cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) {
  return call("cudaMallocAsync", [&](Device& device) {
    *memory = device.allocate(bytes);
    return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
  });
}

cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return call("cudaFreeAsync", [&](Device& device) {
    device.stream_of(stream).work.push_back([&device, memory] {
      if (!device.free(memory)) device.fault("memory was freed that is not allocated");
    });
    return cudaSuccess;
  });
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return call("cudaMallocHost", [&](Device&) {
    *memory = std::malloc(bytes);
    pinned()[static_cast<const char*>(*memory)] = bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* memory) {
  return call("cudaFreeHost", [&](Device&) {
    pinned().erase(static_cast<const char*>(memory));
    std::free(memory);
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* destination, const void* source, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&](Device& device) {
    const void* there = kind == cudaMemcpyHostToDevice ? destination : source;
    if (!device.contains(there) ||
        device.contains(kind == cudaMemcpyHostToDevice ? source : destination)) {
      return cudaErrorInvalidValue;
    }
    std::shared_ptr<std::string> taken;
    if (kind == cudaMemcpyHostToDevice && !is_pinned(source)) {
      taken = std::make_shared<std::string>(static_cast<const char*>(source), bytes);
    }
    device.stream_of(stream).work.push_back([=, &device] {
      if (!device.is_within_allocation(there, bytes)) {
        return device.fault("a copy of " + std::to_string(bytes) + " bytes leaves its allocation");
      }
      std::memcpy(destination, taken ? taken->data() : source, bytes);
    });
    return cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&](Device& device) {
    device.stream_of(stream).work.push_back([=, &device] {
      if (!device.is_within_allocation(memory, bytes)) {
        return device.fault("a fill of " + std::to_string(bytes) + " bytes leaves its allocation");
      }
      std::memset(memory, value, bytes);
    });
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return call("cudaStreamCreateWithFlags", [&](Device&) {
    *stream = new CUstream_st;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", [&](Device& device) {
    const cudaError_t status = device.run(*stream, never);
    delete stream;
    return status;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize",
              [&](Device& device) { return device.run(device.stream_of(stream), never); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return call("cudaEventCreateWithFlags", [&](Device&) {
    *event = new CUevent_st;
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy", [&](Device& device) {
    if (event->is_pending) device.run(*event->stream, [event] { return !event->is_pending; });
    delete event;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", [&](Device& device) {
    event->stream = &device.stream_of(stream);
    event->is_pending = true;
    event->stream->work.push_back([event] { event->is_pending = false; });
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", [&](Device& device) {
    if (!event->is_pending) return cudaSuccess;
    return device.run(*event->stream, [event] { return !event->is_pending; });
  });
}

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t status) {
  switch (status) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t status) {
  return status == cudaSuccess ? "no error" : "an emulated error";
}
