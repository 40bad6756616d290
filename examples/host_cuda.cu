// A CUDA program with raw device pointers: a backend of two kernels and a handful of members runs a
// gated MLP of ours on memory that cudaMalloc gave. Compiled by nvcc: nvcc -std=c++20 -I include
// --expt-relaxed-constexpr examples/host_cuda.cu (docs/policies/backend.md says what a backend is).
#include <cuda_runtime.h>

#include <iostream>
#include <memory>
#include <stdexcept>
#include <vector>

#include "wanamaker/embed.hpp"

using namespace wanamaker;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

/// Device memory of n elements.
template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(Index n) : size_(n) {
    T* memory = nullptr;
    check(cudaMalloc(&memory, static_cast<std::size_t>(n) * sizeof(T) + 1));
    check(cudaMemset(memory, 0, static_cast<std::size_t>(n) * sizeof(T)));
    data_.reset(memory);
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  Index size() const { return size_; }

 private:
  struct Free {
    void operator()(T* memory) const { cudaFree(memory); }
  };
  std::unique_ptr<T, Free> data_;
  Index size_ = 0;
};

/// One thread works on a row; a team of a block would share it.
template <class F>
__global__ void for_each_index(Index n, F f) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) f(i);
}
template <class F>
struct WholeRow {
  F f;
  WANAMAKER_KERNEL void operator()(Index i) const { f(i, SerialRowTeam{}); }
};

/// C ← α·op(A)·op(B) + β·C, an element a thread.
struct ProductElement {
  Operand<float> a, b;
  float alpha, beta;
  MatrixView<float> c;
  WANAMAKER_KERNEL void operator()(Index i) const {
    float sum = 0;
    for (Index k = 0; k < a.cols(); ++k) sum += a(i / c.cols, k) * b(k, i % c.cols);
    float& out = c(i / c.cols, i % c.cols);
    out = alpha * sum + (beta == 0 ? 0 : beta * out);
  }
};

struct CudaBackend {
  template <class T>
  DeviceBuffer<T> allocate(Index n) {
    return DeviceBuffer<T>(n);
  }
  template <class T>
  void copy_from_host(const T* source, Index n, T* destination) {
    check(cudaMemcpy(destination, source, static_cast<std::size_t>(n) * sizeof(T),
                     cudaMemcpyHostToDevice));
  }
  template <class T>
  void copy_to_host(const T* source, Index n, T* destination) {
    check(cudaMemcpy(destination, source, static_cast<std::size_t>(n) * sizeof(T),
                     cudaMemcpyDeviceToHost));
  }
  template <class F>
  void for_each(Index n, F f) {
    if (n > 0) for_each_index<<<static_cast<unsigned>(blocks_of(n, 128)), 128>>>(n, f);
    check(cudaGetLastError());
  }
  template <class F>
  void for_each_row(Index rows, F f) {
    for_each(rows, WholeRow<F>{f});
  }
  void gemm(Operand<float> a, Operand<float> b, float alpha, float beta, MatrixView<float> c) {
    check_gemm_shapes(a, b, c, "CudaBackend::gemm");
    for_each(c.size(), ProductElement{a, b, alpha, beta, c});
  }
  void gemm_batched(std::span<const GemmItem<float>> items, float alpha, float beta) {
    for (const GemmItem<float>& item : items) gemm(item.a, item.b, alpha, beta, item.c);
  }
  void gram(ConstMatrixView<float>, ConstMatrixView<float>, MatrixView<double>, GramPrecision) {
    throw std::logic_error("nothing is fitted here");
  }
  void synchronize() { check(cudaDeviceSynchronize()); }
};

template <>
struct wanamaker::backend_traits<CudaBackend> {
  using Scalar = float;
  using Storage = float;
  using Accumulator = double;
  template <class T>
  using Buffer = DeviceBuffer<T>;
  using Matrix = OwningMatrix<float, DeviceBuffer<float>>;
  using WeightMatrix = Matrix;
  using IndexVector = DeviceBuffer<TokenId>;
};

int main() try {
  constexpr Index rows = 300, width = 2;
  CudaBackend backend;
  Workspace<CudaBackend> workspace(backend);
  // 1 − x where x₀ > 0, nothing elsewhere.
  const std::vector<float> weight{-1, 0, 0, -1}, bias{1, 1};
  using Gate = LinearGate<CudaBackend, IdentityLink>;
  using Gated = GatedMlp<Gate, AffineMlp<CudaBackend>, ZeroMlp<CudaBackend>>;
  const Gated gated = Gated::hard(
      Gate(backend, {{1, 0}, 0}),
      AffineMlp<CudaBackend>(Linear<CudaBackend>(
          matrix_from_host<float>(backend, weight.data(), width, width), WeightLayout::in_out,
          matrix_from_host<float>(backend, bias.data(), 1, width))),
      ZeroMlp<CudaBackend>{}, 0);

  std::vector<float> x, y(rows * width);
  for (int i = 0; i < rows * width; ++i) x.push_back(static_cast<float>(i % 5 - 2));
  float *device_x = nullptr, *device_y = nullptr;  // the host program's
  check(cudaMalloc(&device_x, x.size() * sizeof(float)));
  check(cudaMalloc(&device_y, y.size() * sizeof(float)));
  backend.copy_from_host(x.data(), rows * width, device_x);
  run_foreign(backend, gated, ConstMatrixView<float>(device_x, rows, width),
              MatrixView<float>(device_y, rows, width), workspace);
  backend.copy_to_host(device_y, rows * width, y.data());
  bool right = true;
  for (std::size_t i = 0; i < y.size(); ++i) right &= y[i] == (x[i / 2 * 2] > 0 ? 1 - x[i] : 0);
  std::cout << gated.surrogate_rows() << " rows to the map on the device\n";
  return right && gated.surrogate_rows() == 120 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
