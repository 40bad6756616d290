// What the library calls of cuBLAS, on the host: products by columns through a CBLAS, or by loops
// where there is none.
#pragma once

#include <cstdint>

#include "cuda_runtime.h"

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_EXECUTION_FAILED = 13
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum cublasAtomicsMode_t { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 };
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_TF32_TENSOR_OP_MATH = 3 };

struct cublasContext;
using cublasHandle_t = cublasContext*;

cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
const char* cublasGetStatusName(cublasStatus_t status);

cublasStatus_t cublasSgemm_64(cublasHandle_t handle, cublasOperation_t left,
                              cublasOperation_t right, std::int64_t rows, std::int64_t cols,
                              std::int64_t depth, const float* alpha, const float* a,
                              std::int64_t lda, const float* b, std::int64_t ldb, const float* beta,
                              float* c, std::int64_t ldc);
cublasStatus_t cublasDgemm_64(cublasHandle_t handle, cublasOperation_t left,
                              cublasOperation_t right, std::int64_t rows, std::int64_t cols,
                              std::int64_t depth, const double* alpha, const double* a,
                              std::int64_t lda, const double* b, std::int64_t ldb,
                              const double* beta, double* c, std::int64_t ldc);
cublasStatus_t cublasSgemmStridedBatched_64(cublasHandle_t handle, cublasOperation_t left,
                                            cublasOperation_t right, std::int64_t rows,
                                            std::int64_t cols, std::int64_t depth,
                                            const float* alpha, const float* a, std::int64_t lda,
                                            long long step_a, const float* b, std::int64_t ldb,
                                            long long step_b, const float* beta, float* c,
                                            std::int64_t ldc, long long step_c, std::int64_t count);
cublasStatus_t cublasDgemmStridedBatched_64(cublasHandle_t handle, cublasOperation_t left,
                                            cublasOperation_t right, std::int64_t rows,
                                            std::int64_t cols, std::int64_t depth,
                                            const double* alpha, const double* a, std::int64_t lda,
                                            long long step_a, const double* b, std::int64_t ldb,
                                            long long step_b, const double* beta, double* c,
                                            std::int64_t ldc, long long step_c, std::int64_t count);
