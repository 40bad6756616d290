// Logistic gates that see only the first principal components of the input. Needs Eigen.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/gate/gate_moments.hpp"
#include "wanamaker/gate/logistic_gate.hpp"
#include "wanamaker/stats/pca.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A gate of k components. Folded, it is one direction in the input, as a LogisticGate.
template <class B>
struct FittedPcaGate {
  LogisticGate<B> gate;
  FitReport report{};
  Index components = 0;           ///< min(wanted, d)
  double explained_variance = 0;  ///< share of the standardised inputs' variance
  /// As the published files count them: k·d + 2k + 1.
  double published_parameters = 0;
};

namespace detail {

/// C_ij = Σ x̃_i·x̃_j / n, from co-moments; 0 for constant features.
inline EigenRowMajor<double> correlation_matrix(const CoMoments& moments,
                                                const FeatureScaling& scaling) {
  EigenRowMajor<double> correlation = as_eigen(moments.xx()) / moments.weight();
  for (Index i = 0; i < moments.inputs(); ++i) {
    const double scale = scaling.scale[static_cast<std::size_t>(i)];
    correlation.row(i) /= scale;
    correlation.col(i) /= scale;
  }
  for (const Index j : scaling.constant_features) {
    correlation.row(j).setZero();
    correlation.col(j).setZero();
  }
  return correlation;
}

/// Projections [n × k] of the standardised rows, one pass for each component.
template <class T>
std::vector<double> projections(const StandardisedRows<T>& rows,
                                const PrincipalComponents& principal) {
  const Index count = principal.components.rows();
  std::vector<double> result(static_cast<std::size_t>(rows.rows() * count));
  for (Index k = 0; k < count; ++k) {
    const double* direction = principal.components.row(k).data();
    std::vector<double> point(direction, direction + rows.width());
    point.push_back(0);
    const std::vector<double> scores = rows.scores(point);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      result[i * static_cast<std::size_t>(count) + static_cast<std::size_t>(k)] = scores[i];
    }
  }
  return result;
}

/// The logistic fit on the first k columns of the projections, as coefficients of x̃.
inline LogisticFit fit_on_components(ConstMatrixView<double> projected,
                                     const PrincipalComponents& principal,
                                     std::span<const std::uint8_t> labels,
                                     std::span<const double> weights, LogisticOptions options,
                                     const ExecutorRef& executor) {
  EigenBackend<double> host(executor);
  options.standardise = false;
  LogisticFit fit = fit_logistic_regression(host, projected, labels, weights, options);
  std::vector<double> coefficients(static_cast<std::size_t>(principal.components.cols()), 0.0);
  for (Index k = 0; k < projected.cols; ++k) {
    const double* direction = principal.components.row(k).data();
    add_scaled(fit.coefficients[static_cast<std::size_t>(k)], {direction, coefficients.size()},
               coefficients);
  }
  fit.coefficients = std::move(coefficients);
  return fit;
}

}  // namespace detail

/// One gate for each number of components in `counts`, from one eigendecomposition and one set of
/// projections: inputs are standardised, projected on the first k principal components, and these
/// projections, not standardised again, go into a logistic regression, as in the published
/// procedure. `moments` are those of x. Throws as fit_logistic_regression, ShapeError
/// ("stats/components").
template <Backend B>
std::vector<FittedPcaGate<B>> fit_pca_gates(B& backend, const_matrix_view_t<B> x,
                                            const CoMoments& moments,
                                            std::span<const std::uint8_t> labels,
                                            std::span<const Index> counts,
                                            std::span<const double> weights = {},
                                            const LogisticOptions& options = {}) {
  Index most = 0;
  for (const Index count : counts) most = std::max(most, std::min(count, x.cols));
  const detail::HostRows<B> host(backend, x);
  const ExecutorRef executor = detail::executor_of(backend);
  const FeatureScaling scaling = feature_scaling_of(moments);
  const EigenRowMajor<double> correlation = detail::correlation_matrix(moments, scaling);
  const PrincipalComponents principal =
      principal_components({correlation.data(), x.cols, x.cols}, most);
  const StandardisedRows<scalar_t<B>> rows(host.view(), scaling, executor);
  const std::vector<double> projected = detail::projections(rows, principal);
  const ConstMatrixView<double> all(projected.data(), x.rows, most);
  std::vector<FittedPcaGate<B>> gates;
  for (const Index count : counts) {
    const Index k = std::min(count, x.cols);
    const LogisticFit fit = detail::fit_on_components(all.middle_cols(0, k), principal, labels,
                                                      weights, options, executor);
    double explained = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(k); ++c) {
      explained += principal.explained(c);
    }
    gates.push_back(
        {LogisticGate<B>(backend, unstandardise(fit.coefficients, fit.intercept, scaling)),
         fit.report, k, explained, static_cast<double>(k * x.cols + 2 * k + 1)});
  }
  return gates;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
