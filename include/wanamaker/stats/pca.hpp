// Principal components of a covariance or correlation matrix. Needs Eigen.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/third_party/eigen_factorisations.hpp"
#include "wanamaker/stats/checks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Directions of largest variance, in descending order of it.
struct PrincipalComponents {
  EigenRowMajor<double> components{};  ///< [k × d], orthonormal rows
  std::vector<double> variances{};     ///< [k]
  double total_variance = 0;           ///< of all d directions

  /// Share of the total variance along the first `count` components; 0 where there is none at all.
  double explained_by_first(Index count) const {
    double sum = 0;
    for (Index k = 0; k < count; ++k) sum += variances[static_cast<std::size_t>(k)];
    return total_variance > 0 ? sum / total_variance : 0.0;
  }
};

namespace detail {

inline void check_components(Index wanted, ConstMatrixView<double> covariance) {
  if (covariance.rows == covariance.cols && wanted >= 1 && wanted <= covariance.cols) return;
  throw ShapeError({.id = "stats/components",
                    .where = "principal_components",
                    .what = "unusable number of components, or the matrix is not square",
                    .expected = "1 to the number of features",
                    .found = std::to_string(wanted) + " of " + shape_text(covariance),
                    .mend = "ask for fewer components"});
}

}  // namespace detail

/// The first `count` eigenvectors of a symmetric positive semi-definite matrix [d × d], by a full
/// eigendecomposition in double. The entry of largest magnitude of each is positive, so that the
/// result does not depend on the solver's signs. Throws ShapeError ("stats/components"), DataError
/// ("stats/non-finite").
inline PrincipalComponents principal_components(ConstMatrixView<double> covariance, Index count) {
  detail::check_components(count, covariance);
  for (Index i = 0; i < covariance.rows; ++i) {
    detail::check_finite({covariance.row(i), static_cast<std::size_t>(covariance.cols)},
                         "principal_components(covariance)");
  }
  const Eigen::SelfAdjointEigenSolver<EigenRowMajor<double>> eigen(as_eigen(covariance));
  PrincipalComponents result{.components = EigenRowMajor<double>(count, covariance.cols)};
  for (Index k = 0; k < count; ++k) {
    const Index from = covariance.cols - 1 - k;  // the solver's order is ascending
    Eigen::VectorXd direction = eigen.eigenvectors().col(from);
    Index largest = 0;
    direction.cwiseAbs().maxCoeff(&largest);
    if (direction[largest] < 0) direction = -direction;
    result.components.row(k) = direction.transpose();
    result.variances.push_back(std::max(eigen.eigenvalues()[from], 0.0));
  }
  for (Index k = 0; k < covariance.cols; ++k) {
    result.total_variance += std::max(eigen.eigenvalues()[k], 0.0);
  }
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
