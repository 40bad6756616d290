// Ridge regression from co-moments: the surrogate that the study fits to every layer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/surrogate/affine_map.hpp"
#include "wanamaker/surrogate/cholesky.hpp"
#include "wanamaker/surrogate/symmetric_eigen.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What λ‖W‖² is measured in.
enum class LambdaScale {
  absolute,  ///< λ = value
  relative,  ///< λ = value·tr(XcᵀXc)/d: value is in units of the inputs' mean squared size
};

/// Settings of a ridge fit. The published procedure is {0.01, LambdaScale::absolute}, which equals
/// its weighting s/(s² + λ) of unscaled singular values.
struct RidgeOptions {
  double lambda = 1e-6;
  LambdaScale scale = LambdaScale::relative;
};

/// How a fit was computed.
enum class RidgeMethod {
  cholesky,  ///< of XcᵀXc + λI
  eigen,     ///< eigenvectors of XcᵀXc, directions below round-off left out
  qr,        ///< orthogonal triangularisation of the data themselves
};

/// What is known about a fit besides the map. Nothing in it is ever NaN.
struct RidgeReport {
  RidgeMethod method = RidgeMethod::cholesky;
  double lambda = 0;       ///< absolute λ that was used
  double condition = 1;    ///< of the system solved: estimate in the 1-norm (Cholesky), else exact
  double sensitivity = 0;  ///< condition × relative round-off of the co-moments: what a single
                           ///< entry of W may be off by; predictions suffer far less
  bool is_beyond_cholesky = false;  ///< condition too large for the Gram matrix: refit by QR
  Index rows = 0;
  Index rank = 0;                   ///< directions used; d unless method is not Cholesky
  Index constant_inputs = 0;        ///< inputs without variance; their weights are 0
  bool is_underdetermined = false;  ///< no more rows than inputs: λ alone decides part of W
  Explained in_sample{};
};

namespace detail {

/// A condition above which fewer than four digits of a solution can be trusted.
inline constexpr double largest_cholesky_condition = 1e-4 / std::numeric_limits<double>::epsilon();

inline double trace(ConstMatrixView<double> m) {
  double sum = 0;
  for (Index i = 0; i < m.rows; ++i) sum += m(i, i);
  return sum;
}

inline double absolute_lambda(const RidgeOptions& options, double trace_xx, Index inputs) {
  if (!(options.lambda >= 0) || !std::isfinite(options.lambda)) {
    throw DataError({.id = "data/bad-lambda",
                     .where = "RidgeSurrogate::fit",
                     .what = "a ridge penalty that cannot be",
                     .expected = "finite, at least 0",
                     .found = std::to_string(options.lambda),
                     .mend = "choose another lambda"});
  }
  if (options.scale == LambdaScale::absolute || inputs == 0) return options.lambda;
  return options.lambda * trace_xx / static_cast<double>(inputs);
}

inline double relative_roundoff(GramPrecision precision) {
  return precision == GramPrecision::exact ? 0x1p-53 : 0x1p-24;
}

inline RidgeReport described(const CoMoments& moments) {
  RidgeReport report;
  report.rows = moments.rows();
  report.is_underdetermined = moments.rows() <= moments.inputs();
  for (Index i = 0; i < moments.inputs(); ++i) {
    report.constant_inputs += moments.xx()(i, i) > 0 ? 0 : 1;
  }
  return report;
}

// W = V·diag(1/(s + λ))·VᵀXᵀY over the eigenvalues s that stand out from round-off.
inline std::vector<double> solve_by_eigenvectors(const CoMoments& moments, RidgeReport& report,
                                                 const ExecutorRef& executor) {
  const SymmetricEigen eigen = symmetric_eigen(moments.xx());
  const double cutoff = eigen.cutoff();
  double smallest = 0;
  for (const double s : eigen.values) {
    if (s <= cutoff) break;
    smallest = s;
    ++report.rank;
  }
  const ConstMatrixView<double> basis = eigen.vectors().middle_rows(0, report.rank);
  std::vector<double> rotated = product(basis, moments.xy(), executor);
  for (std::size_t i = 0; i < rotated.size(); ++i) {
    rotated[i] /= eigen.values[i / moments.mean_y().size()] + report.lambda;
  }
  if (report.rank > 0) {
    report.condition = (eigen.values.front() + report.lambda) / (smallest + report.lambda);
  }
  return transposed_product(
      basis, ConstMatrixView<double>(rotated.data(), report.rank, moments.outputs()), executor);
}

// b = mean_y − mean_x·W.
inline std::vector<double> intercept(std::span<const double> mean_x, std::span<const double> mean_y,
                                     ConstMatrixView<double> weight) {
  std::vector<double> bias(mean_y.begin(), mean_y.end());
  for (Index i = 0; i < weight.rows; ++i) {
    const double m = mean_x[static_cast<std::size_t>(i)];
    for (Index j = 0; j < weight.cols; ++j) bias[static_cast<std::size_t>(j)] -= m * weight(i, j);
  }
  return bias;
}

// Σ w(y − ŷ)² per output where (XcᵀXc + λI)W = XcᵀY holds: YY − W∘XY − λW∘W, summed by columns.
inline std::vector<double> ridge_residual(const CoMoments& moments, ConstMatrixView<double> weight,
                                          double lambda) {
  std::vector<double> residual(moments.yy().begin(), moments.yy().end());
  const ConstMatrixView<double> xy = moments.xy();
  for (Index i = 0; i < weight.rows; ++i) {
    for (Index j = 0; j < weight.cols; ++j) {
      residual[static_cast<std::size_t>(j)] -= weight(i, j) * (xy(i, j) + lambda * weight(i, j));
    }
  }
  return residual;
}

}  // namespace detail

/// f̂(x) = xW + b minimising Σ w‖y − xW − b‖² + λ‖W‖²; the intercept is not penalised (Hoerl &
/// Kennard 1970, on centred data).
class RidgeSurrogate {
 public:
  /// Cholesky in double; eigenvectors of XcᵀXc where that breaks down or its condition is beyond
  /// trust, which the report says. Throws DataError for a bad λ or where there are no rows. The
  /// result does not depend on the executor's threads.
  static RidgeSurrogate fit(const CoMoments& moments, const RidgeOptions& options = {},
                            const ExecutorRef& executor = {}) {
    detail::check_has_rows(moments);
    RidgeReport report = detail::described(moments);
    report.lambda = detail::absolute_lambda(options, detail::trace(moments.xx()), moments.inputs());
    AffineMap map{moments.inputs(), moments.outputs(), solve(moments, report, executor), {}};
    map.bias = detail::intercept(moments.mean_x(), moments.mean_y(), map.weight_view());
    report.sensitivity = report.condition * detail::relative_roundoff(moments.precision());
    report.in_sample =
        detail::explained_from(detail::ridge_residual(moments, map.weight_view(), report.lambda),
                               {moments.yy().begin(), moments.yy().end()});
    return {std::move(map), std::move(report)};
  }

  /// From a map that was fitted elsewhere, with what is known about it.
  RidgeSurrogate(AffineMap map, RidgeReport report)
      : map_(std::move(map)), report_(std::move(report)) {}

  const AffineMap& map() const { return map_; }
  const RidgeReport& report() const { return report_; }
  /// d·e + e.
  Index parameters() const { return map_.parameters(); }

  /// The map as an MLP policy, weights rounded to the backend's storage type. Throws
  /// NumericalError where a weight does not fit it.
  template <Backend B>
  AffineMlp<B> to_mlp(B& backend) const {
    return AffineMlp<B>(
        detail::linear_from_host(backend, map_.weight, map_.inputs, map_.outputs, map_.bias));
  }

 private:
  static std::vector<double> solve(const CoMoments& moments, RidgeReport& report,
                                   const ExecutorRef& executor) {
    std::optional<detail::CholeskySolver> solver =
        detail::CholeskySolver::solve(moments.xx(), report.lambda, moments.xy(), executor);
    if (solver) report.condition = solver->condition();
    if (solver && report.condition <= detail::largest_cholesky_condition) {
      report.rank = moments.inputs();
      return solver->take_solution();
    }
    report.method = RidgeMethod::eigen;
    report.is_beyond_cholesky = true;
    return detail::solve_by_eigenvectors(moments, report, executor);
  }

  AffineMap map_{};
  RidgeReport report_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
