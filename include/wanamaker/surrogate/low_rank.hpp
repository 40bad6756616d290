// Reduced-rank regression from co-moments: the best map of rank k in a metric of the outputs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/surrogate/ridge.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// f̂(x) = (x·P)·Q + b; P [d × k], Q [k × e].
class LowRankSurrogate {
 public:
  LowRankSurrogate(Index inputs, Index outputs, std::vector<double> down, std::vector<double> up,
                   std::vector<double> bias)
      : inputs_(inputs),
        outputs_(outputs),
        down_(std::move(down)),
        up_(std::move(up)),
        bias_(std::move(bias)) {}

  /// k.
  Index rank() const { return outputs_ > 0 ? static_cast<Index>(up_.size()) / outputs_ : 0; }
  /// k·(d + e) + e.
  Index parameters() const { return rank() * (inputs_ + outputs_) + outputs_; }
  ConstMatrixView<double> down() const { return {down_.data(), inputs_, rank()}; }
  ConstMatrixView<double> up() const { return {up_.data(), rank(), outputs_}; }

  /// The same map with W = P·Q multiplied out.
  AffineMap map() const {
    return {inputs_, outputs_, detail::product(down(), up(), ExecutorRef{}), bias_};
  }

  /// As an MLP policy of two factors. Throws NumericalError where a weight does not fit the
  /// backend's storage type.
  template <Backend B>
  LowRankMlp<B> to_mlp(B& backend) const {
    return LowRankMlp<B>(detail::linear_from_host(backend, down_, inputs_, rank(), {}),
                         detail::linear_from_host(backend, up_, rank(), outputs_, bias_));
  }

 private:
  Index inputs_;
  Index outputs_;
  std::vector<double> down_;
  std::vector<double> up_;
  std::vector<double> bias_;
};

/// Minimises Σ w (y − ŷ)ᵀM(y − ŷ) + λ tr(WMWᵀ) over W of rank k (Izenman 1975; with the ridge
/// term, Mukherjee & Zhu 2011): W_k = W·H·V_k·V_kᵀ·H⁻¹, where W is the full-rank solution, H = M^½
/// and V_k the first k eigenvectors of H·Wᵀ(XcᵀXc + λI)W·H. One decomposition serves all ranks.
class ReducedRankRegression {
 public:
  /// `full` was fitted on `moments`. `metric` [e × e] is symmetric positive definite, or empty for
  /// the identity. Throws ShapeError, and NumericalError for a metric that is not positive
  /// definite.
  ReducedRankRegression(const CoMoments& moments, const RidgeSurrogate& full,
                        ConstMatrixView<double> metric = {}, const ExecutorRef& executor = {})
      : map_(full.map()), executor_(executor) {
    check_shape(moments.xy(), map_.inputs, map_.outputs, "ReducedRankRegression: co-moments");
    if (metric.size() > 0) take_metric(metric);
    decompose(moments);
  }

  /// Squared size of the fitted values along each direction, in the metric, descending: rank k
  /// keeps the first k.
  const std::vector<double>& spectrum() const { return directions_.values; }
  /// min(d, e).
  Index largest_rank() const { return std::min(map_.inputs, map_.outputs); }

  /// Throws ShapeError unless 1 <= rank <= min(d, e).
  LowRankSurrogate of_rank(Index rank) const {
    check_rank(rank);
    const Index e = map_.outputs;
    const ConstMatrixView<double> first = directions_.vectors().middle_rows(0, rank);  // V_kᵀ
    std::vector<double> up(first.data, first.data + rank * e);
    std::vector<double> right(up);
    if (!half_.empty()) {
      right = detail::product(first, square(half_), executor_);
      up = detail::product(first, square(inverse_half_), executor_);
    }
    const std::vector<double> columns =
        detail::transposed_copy(ConstMatrixView<double>(right.data(), rank, e));  // H·V_k
    std::vector<double> down = detail::product(
        map_.weight_view(), ConstMatrixView<double>(columns.data(), e, rank), executor_);
    std::vector<double> bias = bias_of(down_up(down, up, rank));
    return {map_.inputs, e, std::move(down), std::move(up), std::move(bias)};
  }

 private:
  ConstMatrixView<double> square(const std::vector<double>& values) const {
    return {values.data(), map_.outputs, map_.outputs};
  }

  // H and H⁻¹ from the eigenvectors of M.
  void take_metric(ConstMatrixView<double> metric) {
    check_shape(metric, map_.outputs, map_.outputs, "ReducedRankRegression: metric");
    const detail::SymmetricEigen eigen = detail::symmetric_eigen(metric);
    if (!(eigen.values.back() > eigen.cutoff())) throw_metric(eigen.values.back());
    half_ = power(eigen, 0.5);
    inverse_half_ = power(eigen, -0.5);
  }

  std::vector<double> power(const detail::SymmetricEigen& eigen, double exponent) const {
    std::vector<double> scaled = eigen.transposed;
    for (std::size_t i = 0; i < scaled.size(); ++i) {
      scaled[i] *= std::pow(eigen.values[i / eigen.values.size()], exponent);
    }
    return detail::transposed_product(eigen.vectors(), square(scaled), executor_);
  }

  // Wᵀ(XcᵀXc + λI)W = Wᵀ·XcᵀY, made symmetric against round-off.
  void decompose(const CoMoments& moments) {
    std::vector<double> fitted =
        detail::transposed_product(map_.weight_view(), moments.xy(), executor_);
    if (!half_.empty()) {
      const std::vector<double> once = detail::product(square(fitted), square(half_), executor_);
      fitted = detail::product(square(half_), square(once), executor_);
    }
    const std::vector<double> mirrored = detail::transposed_copy(square(fitted));
    for (std::size_t i = 0; i < fitted.size(); ++i) fitted[i] = 0.5 * (fitted[i] + mirrored[i]);
    directions_ = detail::symmetric_eigen(square(fitted));
    mean_x_.assign(moments.mean_x().begin(), moments.mean_x().end());
    mean_y_.assign(moments.mean_y().begin(), moments.mean_y().end());
  }

  // mean_x·P·Q, without ever forming P·Q.
  std::vector<double> down_up(const std::vector<double>& down, const std::vector<double>& up,
                              Index rank) const {
    const ConstMatrixView<double> mean(mean_x_.data(), 1, map_.inputs);
    const std::vector<double> inner =
        detail::product(mean, ConstMatrixView<double>(down.data(), map_.inputs, rank), executor_);
    return detail::product(ConstMatrixView<double>(inner.data(), 1, rank),
                           ConstMatrixView<double>(up.data(), rank, map_.outputs), executor_);
  }
  std::vector<double> bias_of(const std::vector<double>& mean_prediction) const {
    std::vector<double> bias(mean_y_);
    for (std::size_t j = 0; j < bias.size(); ++j) bias[j] -= mean_prediction[j];
    return bias;
  }

  void check_rank(Index rank) const {
    if (rank >= 1 && rank <= largest_rank()) return;
    throw ShapeError({.id = "shape/rank",
                      .where = "ReducedRankRegression::of_rank",
                      .what = "a rank that the map cannot have",
                      .expected = "1 to " + std::to_string(largest_rank()),
                      .found = std::to_string(rank),
                      .mend = "choose a rank within the model's width"});
  }
  [[noreturn]] static void throw_metric(double smallest) {
    throw NumericalError({.id = "numeric/metric-not-positive",
                          .where = "ReducedRankRegression",
                          .what = "the metric of the outputs is not positive definite",
                          .expected = "eigenvalues above 0",
                          .found = std::to_string(smallest),
                          .mend = "add a multiple of the identity to it"});
  }

  AffineMap map_;
  ExecutorRef executor_;
  std::vector<double> half_{};
  std::vector<double> inverse_half_{};
  detail::SymmetricEigen directions_{};
  std::vector<double> mean_x_{};
  std::vector<double> mean_y_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
