// A gated layer small enough to compute by hand, and its two paths in double, loop by loop.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/embed.hpp"

namespace wanamaker_test {

using namespace wanamaker;
using EmbedBackend = EigenBackend<float>;
using Numbers = std::vector<double>;

/// Random numbers that bfloat16, and so every type of element, holds exactly.
inline Numbers short_numbers(std::uint64_t seed, Index count) {
  RandomStream random(seed);
  Numbers values;
  for (Index i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(bfloat16(static_cast<float>(random.normal()))));
  }
  return values;
}

/// w·x > 0: x·W + b; else max(x·U, 0)·V. All of width d, V [2d × d].
struct PlainLayer {
  explicit PlainLayer(Index d)
      : width(d),
        gate(short_numbers(1, d)),
        map(short_numbers(2, d * d)),
        bias(short_numbers(3, d)),
        up(short_numbers(4, d * 2 * d)),
        down(short_numbers(5, 2 * d * d)) {}

  double score(const double* x) const {
    double sum = 0;
    for (Index j = 0; j < width; ++j) sum += x[j] * gate[static_cast<std::size_t>(j)];
    return sum;
  }
  /// y [d] of one row.
  Numbers linear(const double* x) const { return product(x, map, width, bias); }
  Numbers mlp(const double* x) const {
    Numbers hidden = product(x, up, 2 * width, Numbers(static_cast<std::size_t>(2 * width), 0));
    for (double& h : hidden) h = h > 0 ? h : 0;
    return product(hidden.data(), down, width, Numbers(static_cast<std::size_t>(width), 0));
  }
  Numbers operator()(const double* x) const { return score(x) > 0 ? linear(x) : mlp(x); }

  Index width;
  Numbers gate, map, bias, up, down;

 private:
  static Numbers product(const double* x, const Numbers& weight, Index outputs, Numbers y) {
    const Index inputs = static_cast<Index>(weight.size()) / outputs;
    for (Index i = 0; i < inputs; ++i) {
      for (Index j = 0; j < outputs; ++j) {
        y[static_cast<std::size_t>(j)] += x[i] * weight[static_cast<std::size_t>(i * outputs + j)];
      }
    }
    return y;
  }
};

/// The same as policies of the library.
inline Linear<EmbedBackend> linear_of(EmbedBackend& backend, const Numbers& weight, Index outputs,
                                      const Numbers& bias = {}) {
  const std::vector<float> w(weight.begin(), weight.end()), b(bias.begin(), bias.end());
  const Index inputs = static_cast<Index>(w.size()) / outputs;
  auto matrix = matrix_from_host<float>(backend, w.data(), inputs, outputs);
  if (b.empty()) return {std::move(matrix), WeightLayout::in_out};
  return {std::move(matrix), WeightLayout::in_out,
          matrix_from_host<float>(backend, b.data(), 1, outputs)};
}
inline AffineMlp<EmbedBackend> affine_of(EmbedBackend& backend, const PlainLayer& plain) {
  return AffineMlp<EmbedBackend>(linear_of(backend, plain.map, plain.width, plain.bias));
}
inline DenseMlp<EmbedBackend, Relu> dense_of(EmbedBackend& backend, const PlainLayer& plain) {
  return {linear_of(backend, plain.up, 2 * plain.width),
          linear_of(backend, plain.down, plain.width)};
}
inline DeltaRegressionGate<EmbedBackend> gate_of(EmbedBackend& backend, const PlainLayer& plain) {
  return {backend, LinearScore{plain.gate, 0}};
}

/// Rounding of products in float, some d terms of about 1, and of a result in T.
template <class T>
double embed_tolerance(Index d) {
  const double unit = std::is_same_v<T, bfloat16> ? 0x1p-8 : std::is_same_v<T, half> ? 0x1p-11 : 0;
  return unit + 8 * 0x1p-24 * static_cast<double>(d);
}

/// A host program's buffer: rows of `width` numbers, `stride` apart, behind an offset, all else -7.
template <class T>
struct HostRows {
  HostRows(Index rows, Index width, Index stride, Index offset)
      : memory(static_cast<std::size_t>(offset + rows * stride + 3), T(-7.0f)),
        view(memory.data() + offset, rows, width, stride) {}
  HostRows(const HostRows&) = delete;
  HostRows& operator=(const HostRows&) = delete;

  void fill(const Numbers& values) {
    for (Index i = 0; i < view.size(); ++i) {
      view(i / view.cols, i % view.cols) =
          T(static_cast<float>(values[static_cast<std::size_t>(i)]));
    }
  }
  Numbers row(Index i) const {
    Numbers values;
    for (Index j = 0; j < view.cols; ++j) values.push_back(static_cast<double>(view(i, j)));
    return values;
  }
  /// How many elements of the memory are not -7.
  Index touched() const {
    Index count = 0;
    for (const T& value : memory) count += static_cast<double>(value) == -7 ? 0 : 1;
    return count;
  }

  std::vector<T> memory;
  MatrixView<T> view;
};

}  // namespace wanamaker_test
