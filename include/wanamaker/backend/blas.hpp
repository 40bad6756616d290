// BlasBackend: products by oneDNN (float, where present) or by any CBLAS; all else as EigenBackend.
// Target wanamaker::blas defines WANAMAKER_HAS_CBLAS and WANAMAKER_HAS_ONEDNN for what it found.
#pragma once

#include <limits>
#include <mutex>
#include <string>
#include <type_traits>

#include "wanamaker/backend/eigen.hpp"

// Absent means not found.
#if !defined(WANAMAKER_HAS_CBLAS)
#define WANAMAKER_HAS_CBLAS 0
#endif
#if !defined(WANAMAKER_HAS_ONEDNN)
#define WANAMAKER_HAS_ONEDNN 0
#endif

#if WANAMAKER_HAS_CBLAS
#include "wanamaker/backend/third_party/cblas.hpp"
#endif
#if WANAMAKER_HAS_ONEDNN
#include "wanamaker/backend/third_party/onednn.hpp"
#endif

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

template <class T>
concept OneDnnScalar = std::is_same_v<T, float> && WANAMAKER_HAS_ONEDNN != 0;
template <class T>
concept CblasScalar = (std::is_same_v<T, float> || std::is_same_v<T, double>)&&WANAMAKER_HAS_CBLAS
                      != 0;

#if WANAMAKER_HAS_ONEDNN
// oneDNN would start OpenMP threads of its own; the tiles are ours to spread. The setting belongs
// to the calling thread alone and is put back.
class OneOpenMpThread {
 public:
  OneOpenMpThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneOpenMpThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int before_;
};

inline void onednn_gemm(Operand<float> a, Operand<float> b, float alpha, float beta,
                        MatrixView<float> c) {
  const OneOpenMpThread serial;
  const dnnl_status_t status = dnnl_sgemm(
      a.is_transposed ? 'T' : 'N', b.is_transposed ? 'T' : 'N', c.rows, c.cols, a.cols(), alpha,
      a.matrix.data, a.matrix.stride, b.matrix.data, b.matrix.stride, beta, c.data, c.stride);
  if (status == dnnl_success) return;
  if (status == dnnl_out_of_memory) {
    throw BackendError({.id = "backend/out-of-memory",
                        .where = "BlasBackend::gemm",
                        .what = "oneDNN has no memory for a product of " + std::to_string(c.rows) +
                                " × " + std::to_string(a.cols()) + " × " + std::to_string(c.cols),
                        .mend = "use fewer tokens per batch or a smaller model"});
  }
  throw BackendError({.id = "backend/onednn",
                      .where = "BlasBackend::gemm",
                      .what = "oneDNN refused a product",
                      .expected = "status 0",
                      .found = std::to_string(static_cast<int>(status)),
                      .mend = "use the Eigen backend and report the shapes"});
}
#endif

#if WANAMAKER_HAS_CBLAS
template <class Order, class Transposition, class Integer, class... Others>
constexpr int integer_bytes(void (*)(Order, Transposition, Transposition, Integer, Others...)) {
  return static_cast<int>(sizeof(Integer));
}
constexpr int cblas_integer_bytes() {
  return integer_bytes(cblas_sgemm);
}

inline int cblas_int(Index n) {
  if (n <= std::numeric_limits<int>::max()) return static_cast<int>(n);
  throw ShapeError({.id = "shape/blas-index",
                    .where = "BlasBackend::gemm",
                    .what = "a dimension exceeds BLAS's 32-bit integers",
                    .found = std::to_string(n),
                    .mend = "use the Eigen backend"});
}

// OpenBLAS's serial build gives wrong products when several threads call it at once: of 24,000
// small ones on six threads Debian's 0.3.21 had some 40 wrong. So its calls take turns, all of this
// process; other builds, and other libraries, are called freely.
inline std::unique_lock<std::mutex> cblas_turn() {
#ifdef OPENBLAS_SEQUENTIAL
  static std::mutex turn;
  if (openblas_get_parallel() == OPENBLAS_SEQUENTIAL) return std::unique_lock(turn);
#endif
  return {};
}

template <CblasScalar T>
void cblas_product(Operand<T> a, Operand<T> b, T alpha, T beta, MatrixView<T> c) {
  const auto flag = [](const Operand<T>& m) { return m.is_transposed ? CblasTrans : CblasNoTrans; };
  const auto run = [&](auto product) {
    const std::unique_lock<std::mutex> turn = cblas_turn();
    product(CblasRowMajor, flag(a), flag(b), cblas_int(c.rows), cblas_int(c.cols),
            cblas_int(a.cols()), alpha, a.matrix.data, cblas_int(a.matrix.stride), b.matrix.data,
            cblas_int(b.matrix.stride), beta, c.data, cblas_int(c.stride));
  };
  if constexpr (std::is_same_v<T, float>) {
    run(cblas_sgemm);
  } else {
    run(cblas_dgemm);
  }
}
#else
constexpr int cblas_integer_bytes() {
  return 0;
}
#endif

}  // namespace detail

/// Which libraries multiply, and of how many bytes CBLAS's integers are (0: there is none).
template <bool has_onednn, int cblas_bytes, class EigenTag>
struct BlasConfiguration {};

/// That of this translation unit.
using BlasAsConfigured =
    BlasConfiguration<WANAMAKER_HAS_ONEDNN != 0, detail::cblas_integer_bytes(), EigenAsConfigured>;

/// Serial products by the best library found at build time; Eigen where there is none. A CBLAS that
/// starts threads of its own is to be linked in its serial build (docs/configuration.md).
template <class Configuration>
struct BasicBlasGemm {
  /// As BasicEigenGemm's, where Eigen multiplies; the libraries see to theirs.
  template <class T>
  static Index packed_size(Index rows, Index cols, Index depth) {
    if constexpr (detail::OneDnnScalar<T> || detail::CblasScalar<T>) return 0;
    return EigenGemm::packed_size<T>(rows, cols, depth);
  }

  template <class T>
  static void multiply(Operand<T> a, Operand<T> b, T alpha, T beta, MatrixView<T> c,
                       [[maybe_unused]] VectorView<T> packing = {}) {
    if (c.rows == 0 || c.cols == 0) return;
    if (a.cols() == 0) return EigenGemm::multiply(a, b, alpha, beta, c);
    if constexpr (detail::OneDnnScalar<T>) {
#if WANAMAKER_HAS_ONEDNN
      detail::onednn_gemm(a, b, alpha, beta, c);
#endif
    } else if constexpr (detail::CblasScalar<T>) {
#if WANAMAKER_HAS_CBLAS
      detail::cblas_product(a, b, alpha, beta, c);
#endif
    } else {
      EigenGemm::multiply(a, b, alpha, beta, c, packing);
    }
  }

  /// Which library multiplies floats, for reports.
  static constexpr const char* library() {
    return detail::OneDnnScalar<float> ? "oneDNN" : detail::CblasScalar<float> ? "CBLAS" : "Eigen";
  }
};

/// That of this translation unit.
using BlasGemm = BasicBlasGemm<BlasAsConfigured>;

/// `Configuration`: as EigenBackend's.
template <class S = float, class W = S, class Configuration = BlasAsConfigured>
class BlasBackend;

template <class S, class W, class Configuration>
struct backend_traits<BlasBackend<S, W, Configuration>> : HostBackendTraits<S, W> {};

/// As EigenBackend, with products by BlasGemm.
template <class S, class W, class Configuration>
class BlasBackend : public HostBackend<S, W, BasicBlasGemm<Configuration>> {
 public:
  using HostBackend<S, W, BasicBlasGemm<Configuration>>::HostBackend;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
