// Cholesky factorisation of symmetric positive definite systems in double, with a condition
// estimate.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "wanamaker/backend/eigen.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace detail {

struct SolvedSystem {
  std::vector<double> solution{};  // [n × e]
  double condition = 0;            // estimate, 1-norm
};

/// Solves (A + λI)·X = B for symmetric A [n × n], B [n × e]; nothing where a pivot is not positive.
inline std::optional<SolvedSystem> solve_positive_definite(ConstMatrixView<double> a, double lambda,
                                                           ConstMatrixView<double> b) {
  EigenRowMajor<double> shifted = as_eigen(a);
  shifted.diagonal().array() += lambda;
  const Eigen::LLT<EigenRowMajor<double>> factor(shifted);
  if (factor.info() != Eigen::Success) return std::nullopt;
  SolvedSystem result;
  result.condition = 1.0 / factor.rcond();
  result.solution.resize(static_cast<std::size_t>(b.size()));
  const MatrixView<double> x(result.solution.data(), b.rows, b.cols);
  as_eigen(x) = as_eigen(b);
  EigenView<double> view = as_eigen(x);
  factor.solveInPlace(view);
  return result;
}

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
