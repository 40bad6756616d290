// y = xW + b on the host in double: what every fit results in, and how well it explains data whose
// co-moments are known.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/half.hpp"
#include "wanamaker/nn/surrogate_mlp.hpp"
#include "wanamaker/surrogate/co_moments.hpp"
#include "wanamaker/surrogate/products.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// weight [d × e] row-major, bias [e].
struct AffineMap {
  Index inputs = 0;
  Index outputs = 0;
  std::vector<double> weight{};
  std::vector<double> bias{};

  ConstMatrixView<double> weight_view() const { return {weight.data(), inputs, outputs}; }
  /// d·e + e.
  Index parameters() const { return inputs * outputs + outputs; }
};

/// How much of the outputs' variance a map explains: R² = 1 − Σ w‖y − ŷ‖²/Σ w‖y − mean y‖².
/// In-sample for the co-moments that the map was fitted on, held-out for any others.
struct Explained {
  double r2 = 0;                       ///< overall; 0 where no output varies
  std::vector<double> r2_by_output{};  ///< [e]; 0 for an output that does not vary
  std::vector<double> residual{};      ///< [e] Σ w (y − ŷ)²
  std::vector<double> total{};         ///< [e] Σ w (y − mean y)²
  Index constant_outputs = 0;          ///< outputs without variance
};

namespace detail {

inline void check_has_rows(const CoMoments& moments) {
  if (moments.weight() > 0) return;
  throw DataError({.id = "data/no-rows",
                   .where = "surrogate fit",
                   .what = "no data to fit on",
                   .expected = "at least one row of positive weight",
                   .found = "none",
                   .mend = "give more text to fit on"});
}

/// R² from sums of squares; round-off below zero is cut off.
inline Explained explained_from(std::vector<double> residual, std::vector<double> total) {
  Explained result;
  double residual_sum = 0;
  double total_sum = 0;
  for (std::size_t j = 0; j < total.size(); ++j) {
    residual[j] = std::max(residual[j], 0.0);
    residual_sum += residual[j];
    total_sum += total[j];
    result.constant_outputs += total[j] > 0 ? 0 : 1;
    result.r2_by_output.push_back(total[j] > 0 ? 1.0 - residual[j] / total[j] : 0.0);
  }
  result.r2 = total_sum > 0 ? 1.0 - residual_sum / total_sum : 0.0;
  result.residual = std::move(residual);
  result.total = std::move(total);
  return result;
}

/// Doubles as T, by way of float for the 16-bit types. Throws NumericalError where T is too narrow.
template <class T>
std::vector<T> narrowed(const std::vector<double>& values) {
  using Step = ConversionStep<T>;
  std::vector<T> result;
  result.reserve(values.size());
  for (const double value : values) {
    result.push_back(T(static_cast<Step>(value)));
    if (std::isfinite(static_cast<Step>(result.back()))) continue;
    throw NumericalError({.id = "numeric/weight-overflow",
                          .where = "surrogate",
                          .what = "a weight does not fit the backend's storage type",
                          .found = std::to_string(value),
                          .mend = "use a larger lambda or a wider storage type"});
  }
  return result;
}

/// A weight [inputs × outputs] and a bias (or none) in the backend's types, in in_out layout.
template <Backend B>
Linear<B> linear_from_host(B& backend, const std::vector<double>& weight, Index inputs,
                           Index outputs, const std::vector<double>& bias) {
  using W = storage_t<B>;
  using S = scalar_t<B>;
  const std::vector<W> w = narrowed<W>(weight);
  weight_matrix_t<B> matrix = matrix_from_host<W>(backend, w.data(), inputs, outputs);
  if (bias.empty()) return {std::move(matrix), WeightLayout::in_out};
  const std::vector<S> b = narrowed<S>(bias);
  return {std::move(matrix), WeightLayout::in_out,
          matrix_from_host<S>(backend, b.data(), 1, outputs)};
}

}  // namespace detail

/// R² of any map on data of which only the co-moments are known, at 2d²e operations and without
/// another pass: Σ w(y − ŷ)² = YY − 2 W∘XY + W∘(XX·W) + n(mean error)², summed by columns.
inline Explained explained(const AffineMap& map, const CoMoments& moments,
                           const ExecutorRef& executor = {}) {
  check_shape(moments.xy(), map.inputs, map.outputs, "explained: co-moments");
  const ConstMatrixView<double> w = map.weight_view();
  const std::vector<double> product =
      detail::transposed_product(moments.xx(), w, executor);  // XX is symmetric
  const ConstMatrixView<double> xxw(product.data(), map.inputs, map.outputs);
  const ConstMatrixView<double> xy = moments.xy();
  std::vector<double> error(map.bias);
  std::vector<double> residual(moments.yy().begin(), moments.yy().end());
  for (Index i = 0; i < map.inputs; ++i) {
    const double mean = moments.mean_x()[static_cast<std::size_t>(i)];
    for (Index j = 0; j < map.outputs; ++j) {
      error[static_cast<std::size_t>(j)] += mean * w(i, j);
      residual[static_cast<std::size_t>(j)] += w(i, j) * (xxw(i, j) - 2.0 * xy(i, j));
    }
  }
  for (std::size_t j = 0; j < residual.size(); ++j) {
    const double mean_error = moments.mean_y()[j] - error[j];
    residual[j] += moments.weight() * mean_error * mean_error;
  }
  return detail::explained_from(std::move(residual), {moments.yy().begin(), moments.yy().end()});
}

}  // namespace wanamaker::inline WANAMAKER_ABI
