// Eigenvalues and eigenvectors of symmetric matrices, on the host in double.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/third_party/eigen_factorisations.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace detail {

/// A = V·diag(values)·Vᵀ; values descending, vectors the rows of `transposed` [n × n] = Vᵀ.
struct SymmetricEigen {
  std::vector<double> values{};
  std::vector<double> transposed{};

  Index size() const { return static_cast<Index>(values.size()); }
  ConstMatrixView<double> vectors() const { return {transposed.data(), size(), size()}; }
  /// Below it an eigenvalue of a Gram matrix is round-off: n·eps times the largest.
  double cutoff() const {
    const double largest = values.empty() ? 0.0 : std::max(values.front(), 0.0);
    return largest * static_cast<double>(size()) * std::numeric_limits<double>::epsilon();
  }
};

/// By tridiagonalisation and implicit QR (Eigen). Reads the lower triangle.
inline SymmetricEigen symmetric_eigen(ConstMatrixView<double> a) {
  const Eigen::MatrixXd copy = as_eigen(a);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(copy);
  const Index n = a.rows;
  SymmetricEigen result;
  for (Index k = n - 1; k >= 0; --k) {
    result.values.push_back(solver.eigenvalues()[k]);
    const double* vector = solver.eigenvectors().data() + k * n;  // column-major
    result.transposed.insert(result.transposed.end(), vector, vector + n);
  }
  return result;
}

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
