// XᵀX of standardised features with a column of ones, from all rows or from a weighted sample. Host
// factorisations follow, so this header needs Eigen.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/gate/feature_scaling.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Rows to sum over, and how much each counts.
struct RowSample {
  std::vector<Index> rows{};
  std::vector<double> weights{};
};

/// Every row, with the given weights or with weight 1.
inline RowSample all_rows(Index count, std::span<const double> weights = {}) {
  RowSample sample{std::vector<Index>(static_cast<std::size_t>(count)),
                   std::vector<double>(static_cast<std::size_t>(count), 1.0)};
  std::iota(sample.rows.begin(), sample.rows.end(), Index{0});
  if (!weights.empty()) sample.weights.assign(weights.begin(), weights.end());
  return sample;
}

/// About `size` rows whose weighted sum estimates the sum of importance_i·(row i): row i is taken
/// with probability π_i = min(1, size·importance_i/Σ importance) and counts importance_i/π_i.
/// Systematic sampling without random numbers (Madow 1949): the same rows every time.
inline RowSample systematic_sample(std::span<const double> importance, double size) {
  double total = 0;
  for (const double value : importance) total += value;
  RowSample sample;
  double cumulative = 0.5;
  for (std::size_t i = 0; i < importance.size() && total > 0; ++i) {
    const double probability = std::min(1.0, size * importance[i] / total);
    const double before = std::floor(cumulative);
    cumulative += probability;
    if (std::floor(cumulative) == before) continue;
    sample.rows.push_back(static_cast<Index>(i));
    sample.weights.push_back(importance[i] / probability);
  }
  return sample;
}

namespace kernels {

/// block[i] = √weight·(x̃[row], 1), the features of a sampled row standardised.
template <class T>
struct StandardiseRow {
  ConstMatrixView<T> x;
  ConstVectorView<Index> rows;
  ConstVectorView<double> root_weights;
  ConstVectorView<double> mean;
  ConstVectorView<double> scale;
  MatrixView<T> block;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* in = x.row(rows[i]);
    T* out = block.row(i);
    const double w = root_weights[i];
    const double* m = mean.data;
    const double* s = scale.data;
    team.each(x.cols, [=](Index j) {
      out[j] = static_cast<T>(w * (static_cast<double>(in[j]) - m[j]) / s[j]);
    });
    if (team.leader()) out[x.cols] = static_cast<T>(w);
  }
};

}  // namespace kernels

namespace detail {

inline std::vector<double> square_roots(std::span<const double> values) {
  std::vector<double> roots(values.begin(), values.end());
  for (double& value : roots) value = std::sqrt(value);
  return roots;
}

}  // namespace detail

/// G = Σ_i weight_i·(x̃_i, 1)ᵀ(x̃_i, 1) over the sample, [(d + 1) × (d + 1)], in double on the host.
/// x [n × d] in the backend's memory. `blocked` multiplies blocks of rows in the backend's scalar.
template <Backend B>
EigenRowMajor<double> standardised_gram(B& backend, const_matrix_view_t<B> x,
                                        const FeatureScaling& scaling, const RowSample& sample,
                                        GramPrecision precision = GramPrecision::blocked) {
  constexpr Index block_rows = 4096;
  const Index width = x.cols + 1;
  const Index count = static_cast<Index>(sample.rows.size());
  const auto mean = detail::backend_copy(backend, scaling.mean);
  const auto scale = detail::backend_copy(backend, scaling.scale);
  const auto rows = detail::backend_copy(backend, sample.rows);
  const auto weights = detail::backend_copy(backend, detail::square_roots(sample.weights));
  matrix_t<B> block = make_matrix(backend, std::min(block_rows, count), width);
  auto sums = backend.template allocate<double>(width * width);
  for (Index first = 0; first < count; first += block_rows) {
    const Index taken = std::min(block_rows, count - first);
    const matrix_view_t<B> filled = block.view().middle_rows(0, taken);
    backend.for_each_row(taken,
                         kernels::StandardiseRow<scalar_t<B>>{x,
                                                              {rows.data() + first, taken},
                                                              {weights.data() + first, taken},
                                                              {mean.data(), x.cols},
                                                              {scale.data(), x.cols},
                                                              filled});
    backend.gram(filled, filled, {sums.data(), width, width}, precision);
  }
  EigenRowMajor<double> gram(width, width);
  backend.synchronize();
  backend.copy_to_host(sums.data(), width * width, gram.data());
  return gram;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
