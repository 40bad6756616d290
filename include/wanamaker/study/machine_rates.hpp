// How fast this machine is at what experiments spend their time on, measured within a second.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "wanamaker/backend/generic.hpp"
#include "wanamaker/study/model_speed.hpp"
#include "wanamaker/study/plan_work.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// The least seconds of three runs of f.
template <class F>
double least_seconds(F&& f) {
  double least = seconds_of(f);
  for (int i = 0; i < 2; ++i) least = std::min(least, seconds_of(f));
  return least;
}

/// FLOPs a second of [rows × depth]·[depth × cols], weights as layers have them.
template <class B>
double product_rate(B& backend, Index rows, Index depth, Index cols) {
  using T = scalar_t<B>;
  const std::vector<T> ones(static_cast<std::size_t>(std::max({rows * depth, depth * cols})),
                            T(0.5));
  const matrix_t<B> x = matrix_from_host<T>(backend, ones.data(), rows, depth);
  const matrix_t<B> w = matrix_from_host<T>(backend, ones.data(), cols, depth);
  matrix_t<B> y = make_matrix(backend, rows, cols);
  const double flops =
      2.0 * static_cast<double>(rows) * static_cast<double>(depth) * static_cast<double>(cols);
  const Index repeats = std::max<Index>(1, static_cast<Index>(2e9 / flops));
  const auto run = [&] {
    for (Index i = 0; i < repeats; ++i) {
      backend.gemm(plain(x.view()), transposed(w.view()), T(1), T(0), y.view());
    }
    backend.synchronize();
  };
  run();
  return static_cast<double>(repeats) * flops / least_seconds(run);
}

/// Bytes a second that the backend's elementwise kernels read and write.
template <class B>
double traffic_rate(B& backend) {
  using T = scalar_t<B>;
  constexpr Index rows = 8192, cols = 1024;
  matrix_t<B> a = make_matrix(backend, rows, cols), b = make_matrix(backend, rows, cols);
  const auto run = [&] {
    ops::add<B>(backend, a.view(), b.view(), b.view());
    backend.synchronize();
  };
  run();
  return 3.0 * static_cast<double>(rows * cols) * static_cast<double>(sizeof(T)) /
         least_seconds(run);
}

}  // namespace detail

/// Rates at the shapes of a model: products of `rows` rows with its MLP's weights by `backend`,
/// fits by `fitting`, a backend in double. `memory`: bytes that the machine has. Takes about a
/// second.
template <class B, class Fit>
MachineRates measured_rates(B& backend, Fit& fitting, const ModelConfig& config, Index rows,
                            double memory) {
  const Index width = config.width;
  return {.product_flops = detail::product_rate(backend, rows, width, config.hidden),
          .double_flops = detail::product_rate(fitting, width, width, width),
          .bytes = detail::traffic_rate(backend),
          .memory = memory,
          .count = 1};
}

}  // namespace wanamaker::inline WANAMAKER_ABI
