// Matrices on the host for tests: inputs are made here, uploaded through a backend's documented
// copies, and results come back the same way, so that nothing here touches device memory.
#pragma once

#include <cstring>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/backend.hpp"
#include "wanamaker/core/random.hpp"

namespace wanamaker_test {

using wanamaker::ConstMatrixView;
using wanamaker::ConstVectorView;
using wanamaker::Index;
using wanamaker::MatrixView;
using wanamaker::RandomStream;
using wanamaker::TokenId;
using wanamaker::VectorView;

/// Row-major on the host; element (i, j) is values[offset + i·stride + j]. All the rest is gaps.
template <class T>
struct HostMatrix {
  Index rows = 0;
  Index cols = 0;
  Index stride = 0;
  Index offset = 0;
  std::vector<T> values;

  HostMatrix() = default;
  [[gnu::noinline]] HostMatrix(Index rows_, Index cols_, T fill = T{})
      : rows(rows_), cols(cols_), stride(cols_), values(count(rows_ * cols_), fill) {}
  /// With `padding` gaps after each row and `offset` before the first.
  [[gnu::noinline]] HostMatrix(Index rows_, Index cols_, Index padding, Index offset_, T fill)
      : rows(rows_),
        cols(cols_),
        stride(cols_ + padding),
        offset(offset_),
        values(count(offset_ + rows_ * (cols_ + padding)), fill) {}

  T& operator()(Index i, Index j) { return values[count(offset + i * stride + j)]; }
  const T& operator()(Index i, Index j) const { return values[count(offset + i * stride + j)]; }

 private:
  static std::size_t count(Index n) { return static_cast<std::size_t>(n); }
};

/// Not-a-number where T has one: reading a gap poisons the result.
template <class T>
T gap_value() {
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::max();
  } else {
    return static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  }
}

/// Another element type, each element by way of float where T is narrower; same gaps.
template <class T, class U>
[[gnu::noinline]] HostMatrix<T> converted(const HostMatrix<U>& m) {
  HostMatrix<T> result(m.rows, m.cols, m.stride - m.cols, m.offset, gap_value<T>());
  for (Index i = 0; i < m.rows; ++i) {
    for (Index j = 0; j < m.cols; ++j) {
      if constexpr (sizeof(T) < sizeof(U)) {
        result(i, j) = static_cast<T>(static_cast<float>(m(i, j)));
      } else {
        result(i, j) = static_cast<T>(m(i, j));
      }
    }
  }
  return result;
}
template <class T>
HostMatrix<double> to_double(const HostMatrix<T>& m) {
  return converted<double>(m);
}

/// f() for every element, gaps NaN; `padding` columns after each row, as many elements before.
HostMatrix<double> filled(Index rows, Index cols, Index padding, const std::function<double()>& f);

/// Uniform in [centre − spread, centre + spread], rounded to T.
template <class T>
HostMatrix<T> random_matrix(RandomStream& random, Index rows, Index cols, Index padding = 0,
                            double centre = 0, double spread = 1) {
  return converted<T>(converted<float>(
      filled(rows, cols, padding, [&] { return centre + spread * (2 * random.uniform() - 1); })));
}

/// Integers in [−3, 3]: exact in every format, and so are sums of less than 2²⁴/9 products.
template <class T>
HostMatrix<T> integer_matrix(RandomStream& random, Index rows, Index cols, Index padding = 0) {
  return converted<T>(
      filled(rows, cols, padding, [&] { return static_cast<double>(random.below(7)) - 3; }));
}

/// The transposed copy, with the same gaps.
template <class T>
[[gnu::noinline]] HostMatrix<T> transposed_copy(const HostMatrix<T>& m) {
  HostMatrix<T> t(m.cols, m.rows, m.stride - m.cols, m.offset, gap_value<T>());
  for (Index i = 0; i < m.rows; ++i) {
    for (Index j = 0; j < m.cols; ++j) t(j, i) = m(i, j);
  }
  return t;
}

/// Passes iff |actual − expected| <= tolerance for every element; equal infinities pass, NaN fails
/// unless NaN is expected. Prints the worst element.
bool within_tolerance(const HostMatrix<double>& actual, const HostMatrix<double>& expected,
                      const HostMatrix<double>& tolerance);

/// A result in double and what a computation may differ from it.
struct Expected {
  HostMatrix<double> value;
  HostMatrix<double> tolerance;

  Expected(Index rows, Index cols) : value(rows, cols), tolerance(rows, cols) {}
};

template <class T>
bool within(const HostMatrix<T>& actual, const Expected& expected) {
  return within_tolerance(to_double(actual), expected.value, expected.tolerance);
}

/// Equal element by element (0 and −0 are equal, NaN equals NaN).
template <class T>
bool equal(const HostMatrix<T>& actual, const HostMatrix<double>& expected) {
  return within_tolerance(to_double(actual), expected,
                          HostMatrix<double>(expected.rows, expected.cols));
}

/// A host matrix's copy in a backend's memory.
template <class B, class T>
class Uploaded {
 public:
  [[gnu::noinline]] Uploaded(B& backend, HostMatrix<T> host)
      : backend_(&backend),
        host_(std::move(host)),
        memory_(backend.template allocate<T>(static_cast<Index>(host_.values.size()))) {
    backend.copy_from_host(host_.values.data(), static_cast<Index>(host_.values.size()),
                           memory_.data());
  }

  MatrixView<T> view() {
    return {memory_.data() + host_.offset, host_.rows, host_.cols, host_.stride};
  }
  ConstMatrixView<T> const_view() { return view(); }
  /// The elements of a matrix without gaps.
  VectorView<T> vector() { return {memory_.data(), static_cast<Index>(host_.values.size())}; }
  ConstVectorView<T> const_vector() { return vector(); }

  /// What is there now. Fails where anything outside the view was written.
  [[gnu::noinline]] HostMatrix<T> download() {
    HostMatrix<T> now = host_;
    backend_->synchronize();
    backend_->copy_to_host(memory_.data(), static_cast<Index>(now.values.size()),
                           now.values.data());
    CHECK(gaps_are_untouched(now));
    return now;
  }
  const HostMatrix<T>& uploaded() const { return host_; }

 private:
  bool gaps_are_untouched(const HostMatrix<T>& now) const {
    HostMatrix<T> rest = now;
    for (Index i = 0; i < now.rows; ++i) {
      for (Index j = 0; j < now.cols; ++j) rest(i, j) = host_(i, j);
    }
    return rest.values.empty() || std::memcmp(rest.values.data(), host_.values.data(),
                                              rest.values.size() * sizeof(T)) == 0;
  }

  B* backend_;
  HostMatrix<T> host_;
  wanamaker::buffer_t<B, T> memory_;
};

template <class B, class T>
Uploaded<B, T> upload(B& backend, HostMatrix<T> host) {
  return {backend, std::move(host)};
}

}  // namespace wanamaker_test
