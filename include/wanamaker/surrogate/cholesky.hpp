// Cholesky factorisation of symmetric positive definite systems in double, blocked so that nearly
// all of the work is Gram products, and an estimate of the condition number.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "wanamaker/backend/gram.hpp"
#include "wanamaker/core/executor.hpp"
#include "wanamaker/surrogate/products.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace detail {

/// Solves (A + λI)X = B by A + λI = UᵀU (Golub & Van Loan 4.2): the forward substitution runs along
/// with the factorisation. The answer does not depend on the executor's threads.
class CholeskySolver {
 public:
  /// A [n × n] symmetric, B [n × e]; nothing where a pivot is not positive.
  static std::optional<CholeskySolver> solve(ConstMatrixView<double> a, double lambda,
                                             ConstMatrixView<double> b,
                                             const ExecutorRef& executor) {
    CholeskySolver solver(a, lambda, b, executor);
    if (!solver.factorise()) return std::nullopt;
    solver.substitute_back();
    return solver;
  }

  /// X [n × e], row-major.
  std::vector<double> take_solution() { return std::move(x_); }

  /// Estimate of ‖A + λI‖₁·‖(A + λI)⁻¹‖₁, nearly always within a factor of 3 and never too large
  /// but by round-off. Hager 1984; Higham 1988, algorithm 4.1.
  double condition() const { return norm_ * inverse_norm(); }

 private:
  static constexpr Index block = 96;

  CholeskySolver(ConstMatrixView<double> a, double lambda, ConstMatrixView<double> b,
                 const ExecutorRef& executor)
      : n_(a.rows), columns_(b.cols), executor_(executor) {
    u_.reserve(static_cast<std::size_t>(n_ * n_));
    x_.reserve(static_cast<std::size_t>(b.size()));
    for (Index i = 0; i < n_; ++i) {
      u_.insert(u_.end(), a.row(i), a.row(i) + n_);
      x_.insert(x_.end(), b.row(i), b.row(i) + columns_);
      u()(i, i) += lambda;
      double sum = 0;
      for (Index j = 0; j < n_; ++j) sum += std::abs(u()(i, j));
      norm_ = std::max(norm_, sum);
    }
  }

  MatrixView<double> u() { return {u_.data(), n_, n_}; }
  ConstMatrixView<double> u() const { return {u_.data(), n_, n_}; }
  MatrixView<double> x() { return {x_.data(), n_, columns_}; }

  // Block row k of [U | U⁻ᵀB] from the rows above it: each number is written once.
  bool factorise() {
    for (Index k = 0; k < n_; k += block) {
      const Index count = std::min(block, n_ - k);
      const Index after = k + count;
      const ConstMatrixView<double> above = u().middle_rows(0, k).middle_cols(k, count);
      const MatrixView<double> own = u().middle_rows(k, count);
      const MatrixView<double> known = x().middle_rows(k, count);
      subtract_products(above, u().middle_rows(0, k).middle_cols(k, n_ - k),
                        own.middle_cols(k, n_ - k));
      subtract_products(above, x().middle_rows(0, k), known);
      if (!factorise_diagonal(k, count)) return false;
      const std::vector<double> inverse = inverse_diagonal(k, count);
      multiply(inverse, own.middle_cols(after, n_ - after));
      multiply(inverse, known);
    }
    return true;
  }

  // U_kk from A_kk, row by row; the part below the diagonal is left as it was.
  bool factorise_diagonal(Index k, Index count) {
    const MatrixView<double> d = u().middle_rows(k, count).middle_cols(k, count);
    for (Index p = 0; p < count; ++p) {
      if (!(d(p, p) > 0) || !std::isfinite(d(p, p))) return false;
      const double root = std::sqrt(d(p, p));
      for (Index j = p; j < count; ++j) d(p, j) /= root;
      for (Index i = p + 1; i < count; ++i) {
        for (Index j = i; j < count; ++j) d(i, j) -= d(p, i) * d(p, j);
      }
    }
    return true;
  }

  // U_kk⁻¹ [count × count], so that substitution with a block is a product (Du Croz & Higham 1992:
  // as accurate as substitution where U_kk is not worse conditioned than the system).
  std::vector<double> inverse_diagonal(Index k, Index count) const {
    std::vector<double> values(static_cast<std::size_t>(count * count));
    const MatrixView<double> inverse(values.data(), count, count);
    const ConstMatrixView<double> d = u().middle_rows(k, count).middle_cols(k, count);
    for (Index p = count - 1; p >= 0; --p) {
      inverse(p, p) = 1.0 / d(p, p);
      for (Index i = p + 1; i < count; ++i) {
        const double factor = d(p, i) / d(p, p);
        for (Index j = i; j < count; ++j) inverse(p, j) -= factor * inverse(i, j);
      }
    }
    return values;
  }

  // rows ← mᵀ·rows, m square.
  void multiply(const std::vector<double>& m, MatrixView<double> rows) const {
    std::vector<double> before;
    before.reserve(static_cast<std::size_t>(rows.size()));
    for (Index i = 0; i < rows.rows; ++i) {
      before.insert(before.end(), rows.row(i), rows.row(i) + rows.cols);
      std::fill(rows.row(i), rows.row(i) + rows.cols, 0.0);
    }
    add_gram<double, double>(executor_, {m.data(), rows.rows, rows.rows},
                             {before.data(), rows.rows, rows.cols}, 1.0, rows);
  }

  // Block row k of X from the rows below it.
  void substitute_back() {
    for (Index k = (blocks_of(n_, block) - 1) * block; k >= 0; k -= block) {
      const Index count = std::min(block, n_ - k);
      const Index after = k + count;
      const MatrixView<double> known = x().middle_rows(k, count);
      const std::vector<double> right =
          transposed_copy(u().middle_rows(k, count).middle_cols(after, n_ - after));
      subtract_products({right.data(), n_ - after, count}, x().middle_rows(after, n_ - after),
                        known);
      const std::vector<double> inverse = inverse_diagonal(k, count);
      multiply(transposed_copy({inverse.data(), count, count}), known);
    }
  }

  // c ← c − aᵀ·b.
  void subtract_products(ConstMatrixView<double> a, ConstMatrixView<double> b,
                         MatrixView<double> c) const {
    add_gram<double, double>(executor_, a, b, -1.0, c);
  }

  // v ← (A + λI)⁻¹ v.
  void apply_inverse(std::vector<double>& values) const {
    double* v = values.data();
    for (Index p = 0; p < n_; ++p) {
      v[p] /= u()(p, p);
      for (Index j = p + 1; j < n_; ++j) v[j] -= u()(p, j) * v[p];
    }
    for (Index p = n_ - 1; p >= 0; --p) {
      double sum = v[p];
      for (Index j = p + 1; j < n_; ++j) sum -= u()(p, j) * v[j];
      v[p] = sum / u()(p, p);
    }
  }

  static double norm1(const std::vector<double>& v) {
    double sum = 0;
    for (const double value : v) sum += std::abs(value);
    return sum;
  }

  // Climbs along the subgradient of ‖A⁻¹v‖₁ over the unit vectors, at most five steps.
  double inverse_norm() const {
    if (n_ == 0) return 0;
    const std::size_t n = static_cast<std::size_t>(n_);
    std::vector<double> v(n, 1.0 / static_cast<double>(n_));
    double estimate = alternating_estimate();
    for (int step = 0; step < 5; ++step) {
      std::vector<double> y = v;
      apply_inverse(y);
      estimate = std::max(estimate, norm1(y));
      for (double& value : y) value = value < 0 ? -1.0 : 1.0;
      apply_inverse(y);
      double slope = 0;
      std::size_t best = 0;
      for (std::size_t i = 0; i < n; ++i) {
        slope += y[i] * v[i];
        if (std::abs(y[i]) > std::abs(y[best])) best = i;
      }
      if (std::abs(y[best]) <= slope) break;
      v.assign(n, 0.0);
      v[best] = 1.0;
    }
    return estimate;
  }

  // A lower bound that the climb can miss by cancellation.
  double alternating_estimate() const {
    std::vector<double> v;
    for (Index i = 0; i < n_; ++i) {
      const double size =
          1.0 + static_cast<double>(i) / static_cast<double>(std::max<Index>(n_ - 1, 1));
      v.push_back(i % 2 == 0 ? size : -size);
    }
    apply_inverse(v);
    return 2.0 * norm1(v) / (3.0 * static_cast<double>(n_));
  }

  Index n_;
  Index columns_;
  ExecutorRef executor_;
  std::vector<double> u_{};
  std::vector<double> x_{};
  double norm_ = 0;
};

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
