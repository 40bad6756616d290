// What the gate tests share: recorded values, a backend whose memory is not the host's, probes that
// count rows, and random data.
#pragma once

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/nn/mlp_policy.hpp"

namespace wanamaker_test {

using namespace wanamaker;

/// The numbers at a path of tests/reference/gates.json, for example {"pca", "x"}.
std::vector<double> recorded(const std::vector<std::string>& path);

inline double recorded_number(const std::vector<std::string>& path) {
  return recorded(path).at(0);
}
template <class T>
std::vector<T> recorded_as(const std::vector<std::string>& path) {
  std::vector<T> values;
  for (const double value : recorded(path)) values.push_back(static_cast<T>(value));
  return values;
}

/// A buffer that a library cannot know to be host memory.
template <class T>
class FarBuffer {
 public:
  FarBuffer() = default;
  explicit FarBuffer(Index n) : memory_(n) {}
  T* data() { return memory_.data(); }
  const T* data() const { return memory_.data(); }
  Index size() const { return memory_.size(); }

 private:
  HostBuffer<T> memory_{};
};

/// As a device: what it holds is reached by copies only, which it counts.
template <class S>
class FarBackend : public ReferenceBackend<S> {
 public:
  template <class T>
  FarBuffer<T> allocate(Index n) const {
    return FarBuffer<T>(n);
  }
  template <class T>
  void copy_to_host(const T* source, Index n, T* destination) {
    ++copies_to_host;
    std::copy_n(source, n, destination);
  }
  Index copies_to_host = 0;
};

}  // namespace wanamaker_test

template <class S>
struct wanamaker::backend_traits<wanamaker_test::FarBackend<S>> : wanamaker::HostBackendTraits<S> {
  template <class T>
  using Buffer = wanamaker_test::FarBuffer<T>;
  using Matrix = OwningMatrix<S, Buffer<S>>;
  using WeightMatrix = OwningMatrix<S, Buffer<S>>;
  using IndexVector = Buffer<TokenId>;
};

namespace wanamaker_test {

/// y = factor·x + shift·residual + token, and how many rows and calls it saw.
struct ProbeMlp {
  double factor = 1;
  double shift = 0;
  bool adds_token = false;
  std::shared_ptr<Index> rows_seen = std::make_shared<Index>(0);
  std::shared_ptr<Index> calls = std::make_shared<Index>(0);

  template <Backend B>
  void forward(B&, const_matrix_view_t<B> x, const RowContext<B>& rows, matrix_view_t<B> y,
               Workspace<B>&) const {
    using T = scalar_t<B>;
    *rows_seen += x.rows;
    ++*calls;
    for (Index i = 0; i < x.rows; ++i) {
      for (Index j = 0; j < x.cols; ++j) {
        double value = factor * static_cast<double>(x(i, j));
        if (shift != 0) value += shift * static_cast<double>(rows.residual(i, j));
        if (adds_token) value += rows.tokens[i] + 100.0 * rows.positions[i];
        y(i, j) = static_cast<T>(value);
      }
    }
  }
  MlpCost cost(Index tokens) const { return {factor * 10.0 * static_cast<double>(tokens), 7, 3}; }
};

/// A gate that returns a column of x.
struct ColumnGate {
  Index column = 0;
  bool probabilities = true;

  template <Backend B>
  void score(B&, const_matrix_view_t<B> x, const RowContext<B>&, VectorView<double> scores,
             Workspace<B>&) const {
    for (Index i = 0; i < x.rows; ++i) scores[i] = static_cast<double>(x(i, column));
  }
  bool scores_are_probabilities() const { return probabilities; }
  MlpCost cost(Index tokens) const { return {static_cast<double>(tokens), 4, 1}; }
};

template <class T>
std::vector<T> normal_values(Index count, std::uint64_t seed) {
  RandomStream stream(seed);
  std::vector<T> values;
  for (Index i = 0; i < count; ++i) values.push_back(static_cast<T>(stream.normal()));
  return values;
}

template <class T>
ConstMatrixView<T> view_of(const std::vector<T>& values, Index cols) {
  return {values.data(), static_cast<Index>(values.size()) / cols, cols};
}

/// A gate's scores of host rows, back on the host.
template <class G, class B>
std::vector<double> scores_of(const G& gate, B& backend, const_matrix_view_t<B> x,
                              const RowContext<B>& rows = {}) {
  Workspace<B> workspace(backend);
  std::vector<double> scores(static_cast<std::size_t>(x.rows), -1.0);
  gate.score(backend, x, rows, VectorView<double>(scores.data(), x.rows), workspace);
  return scores;
}

inline double cosine(std::span<const double> a, std::span<const double> b) {
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    ab += a[k] * b[k];
    aa += a[k] * a[k];
    bb += b[k] * b[k];
  }
  return ab / std::sqrt(aa * bb);
}

}  // namespace wanamaker_test
