// The emulated device itself: each mistake that it is there to find, made on purpose.
#include "emulation.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "cuda/cuda_testing.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;
using Device = CublasBackend<float>;

/// Faults since the last time, each in a line, after a wait that has to fail for them.
std::string faults_of(Device& backend) {
  const std::string id = error_id([&] { backend.synchronize(); });
  std::string all;
  for (const std::string& fault : cuda_emulation::take_faults()) all += fault + "\n";
  CHECK((id == "backend/cuda") == !all.empty());
  return all;
}

struct WriteAt {
  VectorView<float> to;
  Index at;
  WANAMAKER_KERNEL void operator()(Index) const { to[at] = 1; }
};

/// Reverses a row in place by way of its neighbour's values: right only with a barrier between.
struct ReverseRow {
  VectorView<float> values;
  bool waits;
  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index, const RowTeam& team) const {
    float* v = values.data;
    const Index last = values.size - 1;
    float* copy = v + values.size;
    const Index n = values.size;
    if (waits) {
      team.each(n, [=](Index j) { copy[j] = v[j]; });
      team.each(n, [=](Index j) { v[j] = copy[last - j]; });
    } else {
      team.each(n, [=](Index j) {
        copy[j] = v[j];
        v[j] = copy[last - j];
      });
    }
  }
};

/// The leader alone asks for a sum of all.
struct LonelySum {
  VectorView<float> to;
  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index, const RowTeam& team) const {
    if (!team.leader()) return;
    to[0] = team.template sum<float>(3, [](Index) { return 1.0f; });
  }
};

/// Every member adds, where one should.
struct AddWithoutLeader {
  VectorView<float> to;
  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index, const RowTeam&) const {
    to[0] += 1;
  }
};

}  // namespace

TEST_CASE("device memory cannot be read on the host") {
  Device backend = small_backend<Device>();
  const std::vector<float> host{1, 2, 3};
  DeviceBuffer<float> there = backend.allocate<float>(3);
  backend.copy_from_host(host.data(), 3, there.data());
  CHECK(cuda_emulation::is_readable(host.data()));
  CHECK(!cuda_emulation::is_readable(there.data()));
  backend.synchronize();
  CHECK(!cuda_emulation::is_readable(there.data()));
}

TEST_CASE("what is launched or copied happens when the host waits, in the order of the calls") {
  Device backend = small_backend<Device>();
  DeviceBuffer<float> there = backend.allocate<float>(4);
  std::vector<float> host(4, 7.0f);
  cudaMemcpyAsync(host.data(), there.data(), 4 * sizeof(float), cudaMemcpyDeviceToHost,
                  backend.stream());
  CHECK(host == std::vector<float>(4, 7.0f));
  backend.for_each(1, WriteAt{{there.data(), 4}, 2});
  backend.synchronize();
  CHECK(host == std::vector<float>(4, 0.0f));
  backend.copy_to_host(there.data(), 4, host.data());
  CHECK(host == std::vector<float>{0, 0, 1, 0});
}

TEST_CASE("new memory holds no numbers") {
  Device backend = small_backend<Device>();
  void* there = nullptr;
  cudaMallocAsync(&there, 4, backend.stream());
  float host = 0;
  backend.copy_to_host(static_cast<const float*>(there), 1, &host);
  CHECK(std::isnan(host));
  cudaFreeAsync(there, backend.stream());
}

TEST_CASE("what is written or read beside an allocation is found") {
  Device backend = small_backend<Device>();
  DeviceBuffer<float> there = backend.allocate<float>(5);
  for (const Index at : {-1, 5, 60}) {
    backend.for_each(1, WriteAt{{there.data(), 5}, at});
    CHECK(faults_of(backend) == "something was written beside an allocation of 20 bytes\n");
  }
  float host[6];
  CHECK(error_id([&] { backend.copy_to_host(there.data(), 6, host); }) == "backend/cuda");
  CHECK(cuda_emulation::take_faults().size() == 1);
  const ConstMatrixView<float> outside(there.data(), 2, 3);
  DeviceBuffer<float> product = backend.allocate<float>(4);
  backend.gemm(plain(outside), transposed(outside), 1, 0, {product.data(), 2, 2});
  CHECK(faults_of(backend) == "an operand of a product leaves its allocation\n");
}

TEST_CASE("kernels are handed no memory of the host, and free nothing twice") {
  Device backend = small_backend<Device>();
#if defined(__GNUC__) && !defined(__clang__)
  std::vector<float> host(5);
  backend.for_each(1, WriteAt{{host.data(), 5}, 0});
  CHECK(faults_of(backend) == "a kernel was handed a pointer to memory of the host\n");
#endif
  void* there = nullptr;
  cudaMallocAsync(&there, 4, backend.stream());
  cudaFreeAsync(there, backend.stream());
  CHECK(faults_of(backend) == "");
  cudaFreeAsync(there, backend.stream());
  CHECK(faults_of(backend) == "memory was freed that is not allocated\n");
}

TEST_CASE("mistakes between the threads of a block show") {
#if defined(__SANITIZE_THREAD__)
  return;  // no fibers there
#endif
  Device backend = small_backend<Device>();
  const std::vector<float> values{1, 2, 3, 4, 5, 6, 7};
  for (const bool waits : {true, false}) {
    DeviceBuffer<float> there = backend.allocate<float>(14);
    backend.copy_from_host(values.data(), 7, there.data());
    backend.for_each_row(1, ReverseRow{{there.data(), 7}, waits});
    std::vector<float> found(7);
    backend.copy_to_host(there.data(), 7, found.data());
    CHECK((found == std::vector<float>{7, 6, 5, 4, 3, 2, 1}) == waits);
  }
  DeviceBuffer<float> sum = backend.allocate<float>(1);
  backend.for_each_row(1, LonelySum{{sum.data(), 1}});
  CHECK(faults_of(backend) ==
        "threads of a block wait at different barriers, or not all of them do\n");
  backend.for_each_row(1, AddWithoutLeader{{sum.data(), 1}});
  float found = 0;
  backend.copy_to_host(sum.data(), 1, &found);
  CHECK(found > 1);
}
