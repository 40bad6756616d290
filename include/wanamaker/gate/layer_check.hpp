// Check vectors of one gated layer: made where it is written, run where it is loaded.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/gate/gated_layers.hpp"
#include "wanamaker/gate/references.hpp"
#include "wanamaker/io/check_vectors.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline constexpr Index rows_to_check = 8;

/// Standard normal rows moved along w until w·x + c = ±‖w‖, the signs alternating, so that both
/// paths are checked and roundings decide nothing; not moved where that would take them 100 of
/// their own lengths away, as with gates that always or never route.
inline std::vector<double> checked_rows(const LinearScore& gate) {
  const std::size_t d = gate.weights.size();
  RandomStream random(1);
  std::vector<double> rows;
  double norm = 0;
  for (const double w : gate.weights) norm += w * w;
  const double furthest = 100 * std::sqrt(norm * static_cast<double>(d));
  for (Index i = 0; i < rows_to_check; ++i) {
    double score = gate.bias;
    for (const double w : gate.weights) score += w * rows.emplace_back(random.normal());
    const double distance = (i % 2 == 0 ? 1 : -1) * std::sqrt(norm) - score;
    const double step = norm > 0 && std::abs(distance) < furthest ? distance / norm : 0;
    double* const row = rows.data() + rows.size() - d;
    for (std::size_t j = 0; j < d; ++j)
      row[j] = static_cast<float>(row[j] + step * gate.weights[j]);
  }
  return rows;
}

/// max |a − b| / max |b| of d numbers each; of the difference itself where b is 0.
inline double relative_difference(const double* a, const double* b, std::size_t d) {
  double largest = 0;
  for (std::size_t j = 0; j < d; ++j) largest = std::max(largest, std::abs(b[j]));
  return largest_difference({a, a + d}, {b, b + d}) / (largest > 0 ? largest : 1);
}

/// What a layer's gate and the whole layer say to x [k × d]: host numbers in, host numbers out.
template <class Gated, Backend B>
LayerCheck layer_answers(B& backend, const Gated& gated, std::vector<double> input, Index rows,
                         Workspace<B>& workspace) {
  using S = scalar_t<B>;
  const typename Workspace<B>::Frame frame(workspace);
  const std::vector<S> narrow(input.begin(), input.end());
  const matrix_t<B> x =
      matrix_from_host<S>(backend, narrow.data(), rows, static_cast<Index>(input.size()) / rows);
  const matrix_view_t<B> y = workspace.matrix(x.rows(), x.cols());
  const VectorView<double> scores = workspace.template vector<double>(rows);
  gated.gate().score(backend, x.view(), RowContext<B>{}, scores, workspace);
  gated.forward(backend, x.view(), RowContext<B>{}, y, workspace);
  const std::vector<S> output = host_copy(backend, y);
  return {std::move(input), host_copy(backend, scores), {output.begin(), output.end()}};
}

}  // namespace detail

/// Eight rows that a gate and a map are told by, and what they and the MLP make of them.
template <Backend B>
LayerCheck layer_check(B& backend, const GatedLayer& own, const AnyMlp<B>& mlp,
                       Workspace<B>& workspace) {
  const StoredGatedMlp<B> gated = gated_mlp(backend, own, AnyMlp<B>(MlpReference(mlp)));
  return detail::layer_answers(backend, gated, detail::checked_rows(own.gate),
                               detail::rows_to_check, workspace);
}

/// The largest difference between what the layer computes for the rows of a check and what it must
/// compute, each relative to the largest number of its row, or of the scores; infinite for NaN, and
/// 0 for a check without rows.
template <Backend B>
double layer_difference(B& backend, const StoredGatedMlp<B>& gated, const LayerCheck& check,
                        Workspace<B>& workspace) {
  const std::size_t rows = check.score.size();
  if (rows == 0) return 0;
  const LayerCheck found =
      detail::layer_answers(backend, gated, check.input, static_cast<Index>(rows), workspace);
  double largest = detail::relative_difference(found.score.data(), check.score.data(), rows);
  const std::size_t d = check.output.size() / rows;
  for (std::size_t i = 0; i < rows; ++i) {
    largest = std::max(largest, detail::relative_difference(found.output.data() + i * d,
                                                            check.output.data() + i * d, d));
  }
  return largest;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
