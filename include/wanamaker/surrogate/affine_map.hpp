// y = xW + b on the host in double: what every fit results in, and how well it explains data whose
// co-moments are known.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "wanamaker/nn/surrogate_mlp.hpp"
#include "wanamaker/surrogate/co_moments.hpp"

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
  using Step = std::conditional_t<std::is_floating_point_v<T>, T, float>;
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
}  // namespace wanamaker::inline WANAMAKER_ABI
