// Random weights for benchmarks of shapes whose models are not at hand, and the memory in use.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "wanamaker/core/random.hpp"
#include "wanamaker/nn/linear.hpp"
#include "wanamaker/nn/norm.hpp"

namespace wanamaker_bench {

using namespace wanamaker;

/// Uniform in ±0.02, about as large as trained weights.
template <class T>
std::vector<T> random_values(Index count, RandomStream& random) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& v : values) v = T(static_cast<float>(0.04 * (random.uniform() - 0.5)));
  return values;
}

/// [rows × cols] in the backend's scalar.
template <class B>
matrix_t<B> random_matrix(B& backend, Index rows, Index cols, RandomStream& random) {
  const auto values = random_values<scalar_t<B>>(rows * cols, random);
  return matrix_from_host<scalar_t<B>>(backend, values.data(), rows, cols);
}

/// [rows × cols] in the backend's storage of weights.
template <class B>
weight_matrix_t<B> random_weights(B& backend, Index rows, Index cols, RandomStream& random) {
  const auto values = random_values<storage_t<B>>(rows * cols, random);
  return matrix_from_host<storage_t<B>>(backend, values.data(), rows, cols);
}

template <class B>
Linear<B> random_linear(B& backend, Index inputs, Index outputs, RandomStream& random) {
  return {random_weights(backend, inputs, outputs, random), WeightLayout::in_out,
          make_matrix(backend, 1, outputs)};
}

template <class B>
LayerNorm<B> unit_norm(B& backend, Index width) {
  const std::vector<scalar_t<B>> ones(static_cast<std::size_t>(width), scalar_t<B>(1));
  return {matrix_from_host<scalar_t<B>>(backend, ones.data(), 1, width),
          make_matrix(backend, 1, width), 1e-5};
}

/// The most memory that this program has had, in 2²⁰ bytes. Linux keeps it by program; getrusage
/// would count what started the program, too.
inline double peak_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace wanamaker_bench
