// What is the device backend's own: what the caller gives, how the handle is set, failing calls,
// memory, and what is left when all has ended.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/conformance_attention.hpp"
#include "backend/conformance_launches.hpp"
#include "cuda/cuda_testing.hpp"
#include "emulation.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;
using Floats = CublasBackend<float>;

std::string message_of(const auto& f) {
  try {
    f();
  } catch (const BackendError& error) {
    return error.what();
  }
  return "";
}

/// Products, launches and copies, all of them.
float some_work(Floats& backend) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const auto x = matrix_from_host<float>(backend, values.data(), 2, 3);
  auto y = make_matrix(backend, 2, 2);
  backend.gemm(plain(x.view()), transposed(x.view()), 1, 0, y.view());
  backend.for_each_row(2, kernels::ScaleRow<float>{2, y.view()});
  float found = 0;
  backend.copy_to_host(y.data() + 1, 1, &found);
  return found;
}

}  // namespace

TEST_CASE("a handle is given stream, workspace and modes") {
  cublasHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  void* workspace = nullptr;
  REQUIRE(cudaMallocAsync(&workspace, 4096, stream) == cudaSuccess);
  {
    Floats backend({.stream = stream,
                    .handle = handle,
                    .workspace = workspace,
                    .workspace_bytes = 4096,
                    .math = MathMode::tf32,
                    .deterministic = false});
    const auto state = cuda_emulation::state_of(handle);
    CHECK(backend.stream() == stream);
    CHECK(state.stream == stream);
    CHECK(state.workspace == workspace);
    CHECK(state.workspace_bytes == 4096);
    CHECK(state.pointer_mode == CUBLAS_POINTER_MODE_HOST);
    CHECK(state.math == CUBLAS_TF32_TENSOR_OP_MATH);
    CHECK(state.atomics == CUBLAS_ATOMICS_ALLOWED);
    CHECK(std::string(name_of(backend.math())) == "tf32");
    CHECK(some_work(backend) == 64);
  }
  {
    Floats backend({.handle = handle, .workspace_bytes = 8192});
    const auto state = cuda_emulation::state_of(handle);
    CHECK(state.stream == backend.stream());
    CHECK(state.workspace_bytes == 8192);
    CHECK(state.math == CUBLAS_DEFAULT_MATH);
    CHECK(state.atomics == CUBLAS_ATOMICS_NOT_ALLOWED);
    CHECK(std::string(name_of(backend.math())) == "ieee");
    CHECK(some_work(backend) == 64);
  }
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(cudaFreeAsync(workspace, stream) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("memory comes from the caller's allocator and goes back to it") {
  struct Counts {
    int taken = 0, given = 0;
  } counts;
  DeviceAllocator allocator;
  allocator.context = &counts;
  allocator.allocate = [](void* context, void** memory, std::size_t bytes, cudaStream_t stream) {
    ++static_cast<Counts*>(context)->taken;
    return cudaMallocAsync(memory, bytes, stream);
  };
  allocator.release = [](void* context, void* memory, cudaStream_t stream) {
    ++static_cast<Counts*>(context)->given;
    return cudaFreeAsync(memory, stream);
  };
  {
    DeviceBuffer<float> survivor;
    {
      Floats backend({.workspace_bytes = 4096, .allocator = allocator});
      CHECK(counts.taken == 1);
      CHECK(some_work(backend) == 64);
      survivor = backend.allocate<float>(3);
      Floats moved = std::move(backend);
      CHECK(some_work(moved) == 64);
    }
    CHECK(counts.taken == 6);
    CHECK(counts.given == 4);
    CHECK(survivor.size() == 3);
  }
  CHECK(counts.given == 6);
}

TEST_CASE("nothing is left of a backend and its buffers") {
  const std::size_t before = cuda_emulation::live_allocations();
  {
    CublasBackend<float, wanamaker::half> backend({.workspace_bytes = 4096});
    auto x = make_matrix(backend, 300, 4);
    auto c = backend.allocate<double>(16);
    for (const GramPrecision precision : {GramPrecision::blocked, GramPrecision::exact}) {
      backend.gram(x.view(), x.view(), {c.data(), 4, 4}, precision);
    }
    OwningMatrix<wanamaker::half, DeviceBuffer<wanamaker::half>> w(
        backend.allocate<wanamaker::half>(12), 4, 3);
    auto y = make_matrix(backend, 300, 3);
    backend.gemm(plain(x.view()), plain(w.view()), 1, 0, y.view());
    CHECK(cuda_emulation::live_allocations() > before);
  }
  CHECK(cuda_emulation::live_allocations() == before);
}

TEST_CASE("every failing call is told by name") {
  struct Failure {
    const char* call;
    int status;
    const char* expected;
  };
  const std::string cuda = "cudaErrorLaunchFailure";
  const int launch = cudaErrorLaunchFailure, execution = CUBLAS_STATUS_EXECUTION_FAILED;
  for (const char* call : {"cudaMallocAsync", "cudaMemsetAsync", "cudaMallocHost",
                           "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaLaunchKernelEx"}) {
    CAPTURE(call);
    Floats backend = small_backend<Floats>();
    cuda_emulation::fail(call, launch);
    const std::string message = message_of([&] { some_work(backend); });
    cuda_emulation::fail_nothing();
    const bool is_allocation = std::string(call) == "cudaMallocAsync";
    CHECK(message.find(is_allocation ? "allocation" : call) != std::string::npos);
    CHECK(message.find("found cudaErrorLaunchFailure") != std::string::npos);
    CHECK(message.find("[backend/cuda]") != std::string::npos);
    CHECK(some_work(backend) == 64);
  }
  {
    Floats backend = small_backend<Floats>();
    cuda_emulation::fail("cublasSgemm", execution);
    const std::string message = message_of([&] { some_work(backend); });
    CHECK(message.find("CublasBackend::gemm: cublasSgemm failed") == 0);
    CHECK(message.find("found CUBLAS_STATUS_EXECUTION_FAILED") != std::string::npos);
    CHECK(message.find("[backend/cublas]") != std::string::npos);
  }
  for (const char* call : {"cublasCreate", "cublasSetStream", "cublasSetWorkspace",
                           "cublasSetPointerMode", "cublasSetMathMode", "cublasSetAtomicsMode"}) {
    CAPTURE(call);
    const std::size_t before = cuda_emulation::live_allocations();
    cuda_emulation::fail(call, execution);
    CHECK(message_of([] { small_backend<Floats>(); }).find(call) != std::string::npos);
    CHECK(cuda_emulation::live_allocations() == before);
    cuda_emulation::fail_nothing();
  }
  cuda_emulation::fail("cudaStreamCreateWithFlags", launch);
  CHECK(error_id([] { small_backend<Floats>(); }) == "backend/cuda");
  cuda_emulation::fail("cublasCreate", CUBLAS_STATUS_ALLOC_FAILED);
  CHECK(error_id([] { small_backend<Floats>(); }) == "backend/out-of-memory");
  cuda_emulation::fail("cudaMallocHost", cudaErrorMemoryAllocation);
  Floats backend = small_backend<Floats>();
  CHECK(error_id([&] { some_work(backend); }) == "backend/out-of-memory");
  cuda_emulation::fail_nothing();
}

TEST_CASE("copies larger than what is pinned arrive whole, and sources may change at once") {
  Floats backend = small_backend<Floats>();
  const Index n = (Index{9} << 20) / Index{sizeof(float)} + 3;
  std::vector<float> sent(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<float>(i % 100003);
  const std::vector<float> expected = sent;
  DeviceBuffer<float> there = backend.allocate<float>(n), small = backend.allocate<float>(1);
  backend.copy_from_host(sent.data(), 1, small.data());
  backend.copy_from_host(sent.data(), n, there.data());
  std::fill(sent.begin(), sent.end(), -1.0f);
  backend.copy_to_host(there.data(), n, sent.data());
  CHECK(sent == expected);
}

TEST_CASE("heads of attention are multiplied in one call, and their groups, too") {
  Floats backend = small_backend<Floats>();
  auto q = make_matrix(backend, 3, 8), k = make_matrix(backend, 5, 4),
       s = make_matrix(backend, 12, 5);
  const auto calls_for = [&](Index group) {
    std::vector<GemmItem<float>> items;
    for (Index head = 0; head < 4; ++head) {
      items.push_back({plain(const_matrix_view_t<Floats>(q.view().middle_cols(2 * head, 2))),
                       transposed(k.view().middle_cols(head / group, 1 + 1)),
                       s.view().middle_rows(3 * head, 3)});
    }
    const auto calls = [] {
      return cuda_emulation::calls_of("cublasSgemm") +
             cuda_emulation::calls_of("cublasSgemmStridedBatched");
    };
    const std::size_t before = calls();
    backend.gemm_batched(std::span<const GemmItem<float>>(items), 1, 0);
    return calls() - before;
  };
  CHECK(calls_for(4) == 1);
  CHECK(calls_for(2) == 2);
  backend.synchronize();
}

TEST_CASE("attention's batches take the steps of items that do not follow each other") {
  detail::BatchSteps steps;
  std::vector<float> memory(100);
  const auto item = [&](Index a, Index b, Index c) -> GemmItem<float> {
    return {plain(ConstMatrixView<float>(memory.data() + a, 2, 2)),
            plain(ConstMatrixView<float>(memory.data() + b, 2, 2)),
            {memory.data() + c, 2, 2}};
  };
  const auto length = [&](std::vector<GemmItem<float>> items) {
    return detail::batch_length(std::span<const GemmItem<float>>(items), steps);
  };
  CHECK(length({item(0, 4, 8)}) == 1);
  CHECK(length({item(0, 4, 8), item(4, 4, 12), item(8, 4, 16), item(9, 4, 20)}) == 3);
  CHECK(steps == detail::BatchSteps{4, 0, 4});
  CHECK(length({item(0, 4, 8), item(4, 4, 8)}) == 1);
  CHECK(length({item(4, 4, 8), item(0, 4, 12)}) == 1);
}

TEST_CASE("kernels are right in blocks of one thread, and of as many as on a device") {
  using B = CublasBackend<double>;
  B backend = small_backend<B>();
  for (const unsigned threads : {1u, 128u}) {
    CAPTURE(threads);
    cuda_emulation::set_threads_per_block(threads);
    conformance::check_row_summary(backend, 3, 300, 0);
    for (const conformance::AttentionCase& example : conformance::attention_cases()) {
      conformance::check_attention_case(backend, example);
    }
  }
  cuda_emulation::set_threads_per_block(4);
}

TEST_CASE("NaN in a key reaches every query that sees it, tiles later, too") {
  Floats backend = small_backend<Floats>();
  const Index n = 40;
  std::vector<float> keys(static_cast<std::size_t>(n) * 2, 0.5f);
  keys[6] = std::nanf("");  // key 3
  const auto k = matrix_from_host<float>(backend, keys.data(), n, 2);
  const std::vector<float> others(keys.size(), 0.25f);
  const auto q = matrix_from_host<float>(backend, others.data(), n, 2);
  auto out = make_matrix(backend, n, 2);
  Workspace<Floats> workspace(backend);
  for (const Index window : {0, 5}) {
    const std::vector<AttentionSpan> spans{{0, n, 0, n}};
    ops::causal_attention<Floats>(backend, q.view(), k.view(), q.view(), spans,
                                  {1, 1, 2, 1.0, window}, out.view(), workspace);
    std::vector<float> found(others.size());
    backend.copy_to_host(out.data(), out.size(), found.data());
    for (Index i = 0; i < n; ++i) {
      const bool sees_it = i >= 3 && (window == 0 || i < 3 + window);
      CHECK(std::isnan(found[static_cast<std::size_t>(2 * i)]) == sees_it);
    }
  }
}
