#include <algorithm>

#include "device.hpp"
#include "wanamaker/backend/blas.hpp"

using cuda_emulation::Device;

struct cublasContext {
  cuda_emulation::HandleState state{nullptr,
                                    nullptr,
                                    0,
                                    CUBLAS_POINTER_MODE_DEVICE,  // whoever relies on it must set it
                                    CUBLAS_TF32_TENSOR_OP_MATH,
                                    CUBLAS_ATOMICS_ALLOWED};
};

namespace {

template <class F>
cublasStatus_t call(const char* name, F&& f) {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  const int status = device.injected(name);
  return status != 0 ? static_cast<cublasStatus_t>(status) : f(device);
}

template <class F>
cublasStatus_t set(const char* name, F&& f) {
  return call(name, [&](Device&) {
    f();
    return CUBLAS_STATUS_SUCCESS;
  });
}

// A batch of products by columns; for one product the steps do not count.
template <class T>
struct Products {
  cublasOperation_t left, right;
  std::int64_t rows, cols, depth;
  T alpha;
  const T* a;
  std::int64_t lda;
  long long step_a;
  const T* b;
  std::int64_t ldb;
  long long step_b;
  T beta;
  T* c;
  std::int64_t ldc;
  long long step_c;
  std::int64_t count;

  std::int64_t rows_of_a() const { return left == CUBLAS_OP_N ? rows : depth; }
  std::int64_t rows_of_b() const { return right == CUBLAS_OP_N ? depth : cols; }
  std::int64_t cols_of_a() const { return left == CUBLAS_OP_N ? depth : rows; }
  std::int64_t cols_of_b() const { return right == CUBLAS_OP_N ? cols : depth; }

  bool is_valid() const {
    const auto leads = [](std::int64_t ld, std::int64_t n) {
      return ld >= std::max<std::int64_t>(n, 1);
    };
    return rows >= 0 && cols >= 0 && depth >= 0 && count >= 0 && leads(lda, rows_of_a()) &&
           leads(ldb, rows_of_b()) && leads(ldc, rows);
  }

  void run(Device& device) const {
    for (std::int64_t i = 0; i < count; ++i) run_one(device, i);
  }

 private:
  static bool is_inside(Device& device, const T* m, std::int64_t ld, std::int64_t m_rows,
                        std::int64_t m_cols) {
    if (m_rows == 0 || m_cols == 0) return true;
    const auto elements = static_cast<std::size_t>(ld * (m_cols - 1) + m_rows);
    return device.is_within_allocation(m, elements * sizeof(T));
  }

  void run_one(Device& device, std::int64_t i) const {
    const T* left_factor = a + i * step_a;
    const T* right_factor = b + i * step_b;
    T* product = c + i * step_c;
    if (!is_inside(device, left_factor, lda, rows_of_a(), cols_of_a()) ||
        !is_inside(device, right_factor, ldb, rows_of_b(), cols_of_b()) ||
        !is_inside(device, product, ldc, rows, cols)) {
      return device.fault("an operand of a product leaves its allocation");
    }
    if (rows > 0 && cols > 0) multiply(left_factor, right_factor, product);
  }

  void multiply(const T* left_factor, const T* right_factor, T* product) const {
#if WANAMAKER_HAS_CBLAS
    if (depth > 0) {
      const auto flag = [](cublasOperation_t o) {
        return o == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
      };
      const auto n = [](std::int64_t v) { return wanamaker::detail::cblas_int(v); };
      const auto turn = wanamaker::detail::cblas_turn();
      const auto gemm = [] {
        if constexpr (std::is_same_v<T, float>) {
          return cblas_sgemm;
        } else {
          return cblas_dgemm;
        }
      }();
      return gemm(CblasColMajor, flag(left), flag(right), n(rows), n(cols), n(depth), alpha,
                  left_factor, n(lda), right_factor, n(ldb), beta, product, n(ldc));
    }
#endif
    for (std::int64_t j = 0; j < cols; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) {
        T sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) {
          sum += (left == CUBLAS_OP_N ? left_factor[i + k * lda] : left_factor[k + i * lda]) *
                 (right == CUBLAS_OP_N ? right_factor[k + j * ldb] : right_factor[j + k * ldb]);
        }
        T& to = product[i + j * ldc];
        to = alpha * sum + (beta == T(0) ? T(0) : beta * to);
      }
    }
  }
};

template <class T>
cublasStatus_t enqueue(const char* name, cublasHandle_t handle, const T* alpha, const T* beta,
                       Products<T> products) {
  return call(name, [&](Device& device) {
    if (handle->state.pointer_mode != CUBLAS_POINTER_MODE_HOST || !products.is_valid()) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    products.alpha = *alpha;
    products.beta = *beta;
    device.stream_of(handle->state.stream).work.push_back([products, &device] {
      products.run(device);
    });
    return CUBLAS_STATUS_SUCCESS;
  });
}

}  // namespace

cuda_emulation::HandleState cuda_emulation::state_of(cublasHandle_t handle) {
  return handle->state;
}

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  return set("cublasCreate", [&] { *handle = new cublasContext; });
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  return set("cublasDestroy", [&] { delete handle; });
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  return set("cublasSetStream", [&] {
    handle->state.stream = stream;
    handle->state.workspace = nullptr;  // as the manual says
    handle->state.workspace_bytes = 0;
  });
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  return set("cublasSetWorkspace", [&] {
    handle->state.workspace = workspace;
    handle->state.workspace_bytes = bytes;
  });
}
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  return set("cublasSetPointerMode", [&] { handle->state.pointer_mode = mode; });
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return set("cublasSetMathMode", [&] { handle->state.math = mode; });
}
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  return set("cublasSetAtomicsMode", [&] { handle->state.atomics = mode; });
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
  return "CUBLAS_STATUS_UNKNOWN";
}

cublasStatus_t cublasSgemm_64(cublasHandle_t handle, cublasOperation_t left,
                              cublasOperation_t right, std::int64_t rows, std::int64_t cols,
                              std::int64_t depth, const float* alpha, const float* a,
                              std::int64_t lda, const float* b, std::int64_t ldb, const float* beta,
                              float* c, std::int64_t ldc) {
  return enqueue<float>("cublasSgemm", handle, alpha, beta,
                        {left, right, rows, cols, depth, 0, a, lda, 0, b, ldb, 0, 0, c, ldc, 0, 1});
}
cublasStatus_t cublasDgemm_64(cublasHandle_t handle, cublasOperation_t left,
                              cublasOperation_t right, std::int64_t rows, std::int64_t cols,
                              std::int64_t depth, const double* alpha, const double* a,
                              std::int64_t lda, const double* b, std::int64_t ldb,
                              const double* beta, double* c, std::int64_t ldc) {
  return enqueue<double>(
      "cublasDgemm", handle, alpha, beta,
      {left, right, rows, cols, depth, 0, a, lda, 0, b, ldb, 0, 0, c, ldc, 0, 1});
}
cublasStatus_t cublasSgemmStridedBatched_64(
    cublasHandle_t handle, cublasOperation_t left, cublasOperation_t right, std::int64_t rows,
    std::int64_t cols, std::int64_t depth, const float* alpha, const float* a, std::int64_t lda,
    long long step_a, const float* b, std::int64_t ldb, long long step_b, const float* beta,
    float* c, std::int64_t ldc, long long step_c, std::int64_t count) {
  return enqueue<float>("cublasSgemmStridedBatched", handle, alpha, beta,
                        {left, right, rows, cols, depth, 0, a, lda, step_a, b, ldb, step_b, 0, c,
                         ldc, step_c, count});
}
cublasStatus_t cublasDgemmStridedBatched_64(
    cublasHandle_t handle, cublasOperation_t left, cublasOperation_t right, std::int64_t rows,
    std::int64_t cols, std::int64_t depth, const double* alpha, const double* a, std::int64_t lda,
    long long step_a, const double* b, std::int64_t ldb, long long step_b, const double* beta,
    double* c, std::int64_t ldc, long long step_c, std::int64_t count) {
  return enqueue<double>("cublasDgemmStridedBatched", handle, alpha, beta,
                         {left, right, rows, cols, depth, 0, a, lda, step_a, b, ldb, step_b, 0, c,
                          ldc, step_c, count});
}
