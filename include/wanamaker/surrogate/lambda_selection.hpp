// Choosing the ridge penalty: by generalised cross-validation from one eigendecomposition, or by
// any loss on held-out data.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/surrogate/ridge.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Which of several candidates was chosen, and why.
struct LambdaChoice {
  double lambda = 0;
  double loss = 0;
  std::vector<double> losses{};  ///< one per candidate, as given
  bool is_at_edge = false;       ///< smallest or largest candidate: the grid may be too narrow
};

namespace detail {

inline void check_candidates(std::span<const double> candidates) {
  const bool usable =
      !candidates.empty() && std::all_of(candidates.begin(), candidates.end(),
                                         [](double c) { return c >= 0 && std::isfinite(c); });
  if (usable) return;
  throw DataError({.id = "data/bad-lambda",
                   .where = "choice of lambda",
                   .what = "candidates that cannot be tried",
                   .expected = "at least one, all finite and at least 0",
                   .found = std::to_string(candidates.size()) + " candidates",
                   .mend = "give another grid"});
}

/// The smallest finite loss; of equal ones the one of the largest λ, the smoothest map.
inline LambdaChoice smallest_loss(std::span<const double> candidates, std::vector<double> losses) {
  std::size_t best = candidates.size();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!std::isfinite(losses[i])) continue;
    const bool is_better = best == candidates.size() || losses[i] < losses[best] ||
                           (losses[i] == losses[best] && candidates[i] > candidates[best]);
    if (is_better) best = i;
  }
  if (best == candidates.size()) {
    throw NumericalError({.id = "numeric/no-finite-loss",
                          .where = "choice of lambda",
                          .what = "no candidate has a finite loss",
                          .mend = "give larger candidates"});
  }
  const auto [low, high] = std::minmax_element(candidates.begin(), candidates.end());
  const bool at_edge = candidates[best] == *low || candidates[best] == *high;
  const double loss = losses[best];
  return {candidates[best], loss, std::move(losses), at_edge};
}

}  // namespace detail

/// `count` values from `low` to `high`, both included, at equal ratios.
inline std::vector<double> logarithmic_grid(double low, double high, Index count) {
  std::vector<double> grid;
  for (Index i = 0; i < count; ++i) {
    const double share = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0.0;
    grid.push_back(low * std::pow(high / low, share));
  }
  return grid;
}

/// Tries every candidate: loss_of(λ) is whatever the choice is to be made by, usually the nats per
/// token of the select split with the layer replaced. Candidates whose loss is not finite are
/// passed over. Throws DataError for bad candidates, NumericalError where no loss is finite.
template <class LossOf>
LambdaChoice select_lambda(std::span<const double> candidates, LossOf&& loss_of) {
  detail::check_candidates(candidates);
  std::vector<double> losses;
  for (const double candidate : candidates) {
    losses.push_back(static_cast<double>(loss_of(candidate)));
  }
  return detail::smallest_loss(candidates, std::move(losses));
}

/// Generalised cross-validation (Golub, Heath & Wahba 1979) for all λ from one eigendecomposition
/// of XcᵀXc: GCV(λ) = n·RSS(λ)/(n − 1 − Σ s_k/(s_k + λ))², the intercept taking one degree of
/// freedom. RSS is not let below its round-off, n·eps·Σ(y − mean)², so that data which an affine
/// map fits exactly get the largest λ that still does, instead of a quotient of roundings; where no
/// degree of freedom is left the score is infinite. It is never NaN.
class GeneralisedCrossValidation {
 public:
  /// Throws DataError where there are no rows.
  explicit GeneralisedCrossValidation(const CoMoments& moments, const ExecutorRef& executor = {})
      : rows_(static_cast<double>(moments.rows())) {
    detail::check_has_rows(moments);
    detail::SymmetricEigen eigen = detail::symmetric_eigen(moments.xx());
    const double cutoff = eigen.cutoff();
    const std::vector<double> rotated = detail::product(eigen.vectors(), moments.xy(), executor);
    for (const double yy : moments.yy()) total_ += yy;
    residual_ = total_;
    const std::size_t e = moments.mean_y().size();
    for (std::size_t k = 0; k < eigen.values.size() && eigen.values[k] > cutoff; ++k) {
      double square = 0;
      for (std::size_t j = 0; j < e; ++j) square += rotated[k * e + j] * rotated[k * e + j];
      eigenvalues_.push_back(eigen.values[k]);
      explained_.push_back(square / eigen.values[k]);
      residual_ -= explained_.back();
    }
    floor_ = rows_ * std::numeric_limits<double>::epsilon() * total_;
    residual_ = std::max(residual_, 0.0);
  }

  /// Absolute λ >= 0.
  double score(double lambda) const {
    const double free = degrees_left(lambda);
    if (!(free > 0)) return std::numeric_limits<double>::infinity();
    return rows_ * std::max(residual(lambda), floor_) / (free * free);
  }

  /// 1 + Σ s/(s + λ): the trace of the hat matrix.
  double degrees_of_freedom(double lambda) const { return rows_ - degrees_left(lambda); }

  /// RSS(λ) = RSS(0) + Σ (λ/(s + λ))²·(what direction k explains).
  double residual(double lambda) const {
    double sum = residual_;
    for (std::size_t k = 0; k < eigenvalues_.size(); ++k) {
      const double left = lambda / (eigenvalues_[k] + lambda);
      sum += left * left * explained_[k];
    }
    return sum;
  }

  /// The candidate of the smallest score. Throws as select_lambda.
  LambdaChoice select(std::span<const double> candidates) const {
    return select_lambda(candidates, [this](double lambda) { return score(lambda); });
  }

  /// Directions that stand out from round-off.
  Index rank() const { return static_cast<Index>(eigenvalues_.size()); }

 private:
  // n − 1 − Σ s/(s + λ), summed without cancellation.
  double degrees_left(double lambda) const {
    double left = std::max(rows_ - 1.0 - static_cast<double>(eigenvalues_.size()), 0.0);
    for (const double s : eigenvalues_) left += lambda / (s + lambda);
    return left;
  }

  double rows_;
  double total_ = 0;
  double residual_ = 0;
  double floor_ = 0;
  std::vector<double> eigenvalues_{};
  std::vector<double> explained_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
