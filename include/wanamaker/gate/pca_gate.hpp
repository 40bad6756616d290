// Logistic gates that see only the first principal components of the input. Needs Eigen.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/gate/gate_moments.hpp"
#include "wanamaker/gate/host_rows.hpp"
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

/// Standardised rows on their first principal components.
struct ProjectedRows {
  FeatureScaling scaling;
  PrincipalComponents principal;
  std::vector<double> values;  // [n × k]
};

/// One pass over x for each component.
template <Backend B>
ProjectedRows project_rows(B& backend, const_matrix_view_t<B> x, const CoMoments& moments,
                           Index components) {
  ProjectedRows result{feature_scaling_of(moments), {}, {}};
  const EigenRowMajor<double> correlation = correlation_matrix(moments, result.scaling);
  result.principal = principal_components({correlation.data(), x.cols, x.cols}, components);
  const HostRows<B> host(backend, x);
  const StandardisedRows<scalar_t<B>> rows(host.view(), result.scaling, executor_of(backend));
  result.values.resize(static_cast<std::size_t>(x.rows * components));
  for (Index k = 0; k < components; ++k) {
    const double* direction = result.principal.components.row(k).data();
    std::vector<double> point(direction, direction + x.cols);
    point.push_back(0);
    const std::vector<double> scores = rows.scores(point);
    for (Index i = 0; i < x.rows; ++i) {
      result.values[static_cast<std::size_t>(i * components + k)] =
          scores[static_cast<std::size_t>(i)];
    }
  }
  return result;
}

/// What a fit on the first components means for the raw features.
inline LinearScore fold_components(const LogisticFit& fit, const ProjectedRows& projected) {
  std::vector<double> coefficients(projected.scaling.mean.size(), 0.0);
  for (std::size_t k = 0; k < fit.coefficients.size(); ++k) {
    const double* direction = projected.principal.components.row(static_cast<Index>(k)).data();
    add_scaled(fit.coefficients[k], {direction, coefficients.size()}, coefficients);
  }
  return unstandardise(coefficients, fit.intercept, projected.scaling);
}

}  // namespace detail

/// One gate for each number of components in `counts` (at most d each), from one eigendecomposition
/// and one set of projections: inputs are standardised, projected on the first k principal
/// components, and these projections, not standardised again, go into a logistic regression, as in
/// the published procedure. `moments` are those of x. Throws as fit_logistic_regression, ShapeError
/// ("stats/components").
template <Backend B>
std::vector<FittedPcaGate<B>> fit_pca_gates(B& backend, const_matrix_view_t<B> x,
                                            const CoMoments& moments,
                                            std::span<const std::uint8_t> labels,
                                            std::span<const Index> counts,
                                            std::span<const double> weights = {},
                                            LogisticOptions options = {}) {
  options.standardise = false;
  Index most = 0;
  for (const Index count : counts) most = std::max(most, std::min(count, x.cols));
  const detail::ProjectedRows projected = detail::project_rows(backend, x, moments, most);
  const ConstMatrixView<double> all(projected.values.data(), x.rows, most);
  EigenBackend<double> host(detail::executor_of(backend));
  std::vector<FittedPcaGate<B>> gates;
  for (const Index count : counts) {
    const Index k = std::min(count, x.cols);
    const LogisticFit fit =
        fit_logistic_regression(host, all.middle_cols(0, k), labels, weights, options);
    gates.push_back({LogisticGate<B>(backend, detail::fold_components(fit, projected)), fit.report,
                     k, projected.principal.explained_by_first(k),
                     static_cast<double>(k * x.cols + 2 * k + 1)});
  }
  return gates;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
