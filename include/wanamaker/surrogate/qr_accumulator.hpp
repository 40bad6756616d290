// Orthogonal triangularisation of a stream of rows: the route for inputs whose Gram matrix has lost
// what their R factor still holds. Condition numbers up to 10¹⁵ instead of 10⁸. docs/surrogates.md
// says when it is worth its second pass and its fourfold work.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/backend/third_party/eigen_factorisations.hpp"
#include "wanamaker/surrogate/ridge.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The R factor of [1 X] and QᵀY, from blocks of rows: R [d+1 × d+1], QᵀY [d+1 × e], and the
/// squared size of what is left of each output. Blocks are stacked under R and triangularised again
/// by Householder reflections (TSQR: Demmel, Grigori, Hoemmen & Langou 2012). The first column
/// makes the rest of R that of the centred inputs. Rows are gathered into blocks of fixed size, so
/// the result is a function of their sequence alone. `Configuration`: of the Eigen whose matrices
/// it holds.
template <class Configuration>
class BasicQrAccumulator {
 public:
  BasicQrAccumulator(Index inputs, Index outputs)
      : d_(inputs),
        e_(outputs),
        block_rows_(std::max<Index>(2 * (inputs + 1), 256)),
        origin_x_(Eigen::RowVectorXd::Zero(inputs)),
        origin_y_(Eigen::RowVectorXd::Zero(outputs)),
        r_(Eigen::MatrixXd::Zero(inputs + 1, inputs + 1)),
        z_(Eigen::MatrixXd::Zero(inputs + 1, outputs)),
        left_(Eigen::RowVectorXd::Zero(outputs)) {}

  Index inputs() const { return d_; }
  Index outputs() const { return e_; }
  /// Rows of weight above 0.
  Index rows() const { return rows_; }

  /// Adds the rows of x [T × d] and y [T × e], in the backend's memory, with weights [T] >= 0 in
  /// host memory, or 1. No workspace is used: CoMoments::add takes one. Throws ShapeError, and
  /// DataError where a value is not finite.
  template <Backend B>
  void add(B& backend, const_matrix_view_t<B> x, const_matrix_view_t<B> y, Workspace<B>&,
           std::span<const double> weights = {}) {
    check_shape(x, x.rows, d_, "QrAccumulator::add: x");
    check_shape(y, x.rows, e_, "QrAccumulator::add: y");
    if (!weights.empty()) {
      check_size(ConstVectorView<double>(weights.data(), static_cast<Index>(weights.size())),
                 x.rows, "QrAccumulator::add: weights");
    }
    const std::vector<double> host_x = download<B>(backend, x, "input");
    const std::vector<double> host_y = download<B>(backend, y, "output");
    for (Index t = 0; t < x.rows; ++t) {
      const double weight = weights.empty() ? 1.0 : weights[static_cast<std::size_t>(t)];
      check_weight(weight, t);
      if (weight > 0) add_row(host_x.data() + t * d_, host_y.data() + t * e_, weight);
    }
  }

  /// Adds what `other` has seen. Throws ShapeError.
  void merge(const BasicQrAccumulator& other) {
    if (other.d_ != d_ || other.e_ != e_) throw_width(other);
    if (other.rows_ == 0) return;
    BasicQrAccumulator theirs = other;
    theirs.reduce();
    if (rows_ == 0) set_origin(theirs.origin_x_, theirs.origin_y_);
    theirs.move_origin(origin_x_, origin_y_);
    reduce();
    triangularise(theirs.r_, theirs.z_);
    left_ += theirs.left_;
    rows_ += theirs.rows_;
  }

  /// Ridge regression by the singular values s of the centred inputs: W = V·diag(s/(s² + λ))·UᵀY,
  /// directions below d·eps of the largest left out. Throws as RidgeSurrogate::fit.
  RidgeSurrogate fit_ridge(const RidgeOptions& options = {}) const {
    BasicQrAccumulator whole = *this;
    whole.reduce();
    return whole.fit_reduced(options);
  }

 private:
  template <class B>
  static std::vector<double> download(B& backend, const_matrix_view_t<B> m, const char* which) {
    const std::vector<scalar_t<B>> values = detail::host_copy(backend, m);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) continue;
      throw DataError({.id = "data/non-finite-activation",
                       .where = std::string("QrAccumulator, ") + which + ", column " +
                                std::to_string(i % static_cast<std::size_t>(m.cols)),
                       .what = "a value that is not finite",
                       .expected = "finite numbers",
                       .mend = "check the model's weights, or compute in a wider type"});
    }
    return {values.begin(), values.end()};
  }

  static void check_weight(double weight, Index row) {
    if (weight >= 0 && std::isfinite(weight)) return;
    throw DataError({.id = "data/bad-weight",
                     .where = "QrAccumulator::add, row " + std::to_string(row),
                     .what = "a weight that cannot be used",
                     .expected = "finite, at least 0",
                     .found = std::to_string(weight),
                     .mend = "correct the weights"});
  }
  [[noreturn]] void throw_width(const BasicQrAccumulator& other) const {
    throw ShapeError({.id = "shape/co-moments",
                      .where = "QrAccumulator::merge",
                      .what = "accumulators of different widths",
                      .expected = shape_text(d_, e_),
                      .found = shape_text(other.d_, other.e_),
                      .mend = "merge statistics of the same layer"});
  }

  // Rows are kept as [√w, √w(x − origin) | √w(y − origin)]; the origin is the first row, so that a
  // constant column is exactly 0 and a large mean costs nothing.
  void add_row(const double* x, const double* y, double weight) {
    const Eigen::Map<const Eigen::RowVectorXd> row_x(x, d_);
    const Eigen::Map<const Eigen::RowVectorXd> row_y(y, e_);
    if (rows_ == 0) set_origin(row_x, row_y);
    if (block_x_.rows() == 0) {
      block_x_ = Eigen::MatrixXd::Zero(block_rows_, d_ + 1);
      block_y_ = Eigen::MatrixXd::Zero(block_rows_, e_);
    }
    const double root = std::sqrt(weight);
    block_x_(filled_, 0) = root;
    block_x_.row(filled_).tail(d_) = root * (row_x - origin_x_);
    block_y_.row(filled_) = root * (row_y - origin_y_);
    ++rows_;
    if (++filled_ == block_rows_) reduce();
  }

  void set_origin(const Eigen::RowVectorXd& x, const Eigen::RowVectorXd& y) {
    origin_x_ = x;
    origin_y_ = y;
  }

  // x − new = (x − old) + (old − new)·1, and R's first column is that of the ones: all of it is in
  // row 0.
  void move_origin(const Eigen::RowVectorXd& x, const Eigen::RowVectorXd& y) {
    r_.row(0).tail(d_) += r_(0, 0) * (origin_x_ - x);
    z_.row(0) += r_(0, 0) * (origin_y_ - y);
    set_origin(x, y);
  }

  void reduce() {
    if (filled_ == 0) return;
    triangularise(block_x_.topRows(filled_), block_y_.topRows(filled_));
    filled_ = 0;
  }

  // [R; x] = Q·R', then R ← R', QᵀY ← the first rows of Qᵀ[QᵀY; y]; the other rows are residuals.
  void triangularise(const Eigen::MatrixXd& x, const Eigen::MatrixXd& y) {
    const Index p = d_ + 1;
    Eigen::MatrixXd stacked(p + x.rows(), p);
    stacked << r_, x;
    Eigen::MatrixXd outputs(p + y.rows(), e_);
    outputs << z_, y;
    const Eigen::HouseholderQR<Eigen::MatrixXd> qr(stacked);
    outputs.applyOnTheLeft(qr.householderQ().adjoint());
    r_ = qr.matrixQR().topRows(p).triangularView<Eigen::Upper>();
    z_ = outputs.topRows(p);
    left_ += outputs.bottomRows(y.rows()).colwise().squaredNorm();
  }

  RidgeSurrogate fit_reduced(const RidgeOptions& options) const {
    if (rows_ == 0) {
      throw DataError({.id = "data/no-rows",
                       .where = "QrAccumulator::fit_ridge",
                       .what = "no data to fit on",
                       .expected = "at least one row of positive weight",
                       .found = "none",
                       .mend = "give more text to fit on"});
    }
    const Eigen::MatrixXd inputs = r_.bottomRightCorner(d_, d_);  // R of the centred inputs
    const Eigen::MatrixXd outputs = z_.bottomRows(d_);
    RidgeReport report = describe(inputs);
    report.lambda = detail::absolute_lambda(options, inputs.squaredNorm(), d_);
    const Eigen::BDCSVD<Eigen::MatrixXd> svd(inputs, Eigen::ComputeFullU | Eigen::ComputeFullV);
    const Eigen::MatrixXd projected = svd.matrixU().transpose() * outputs;
    const Eigen::VectorXd factors = ridge_factors(svd.singularValues(), report);
    AffineMap map = affine_map(svd.matrixV() * (factors.asDiagonal() * projected));
    report.in_sample = explained_by(svd.singularValues(), factors, projected);
    return {std::move(map), std::move(report)};
  }

  RidgeReport describe(const Eigen::MatrixXd& inputs) const {
    RidgeReport report;
    report.method = RidgeMethod::qr;
    report.rows = rows_;
    report.is_underdetermined = rows_ <= d_;
    for (Index i = 0; i < d_; ++i) {
      report.constant_inputs += inputs.col(i).squaredNorm() > 0 ? 0 : 1;
    }
    return report;
  }

  // s/(s² + λ), 0 for directions that are round-off.
  Eigen::VectorXd ridge_factors(const Eigen::VectorXd& s, RidgeReport& report) const {
    constexpr double eps = std::numeric_limits<double>::epsilon();
    const double largest = d_ > 0 ? s[0] : 0.0;
    Eigen::VectorXd factors = Eigen::VectorXd::Zero(d_);
    double smallest = largest;
    for (Index k = 0; k < d_ && s[k] > largest * static_cast<double>(d_) * eps; ++k) {
      factors[k] = s[k] / (s[k] * s[k] + report.lambda);
      smallest = s[k];
      ++report.rank;
    }
    if (report.rank > 0) {
      report.condition =
          (largest * largest + report.lambda) / (smallest * smallest + report.lambda);
    }
    report.sensitivity = std::sqrt(report.condition) * 0x1p-53;
    return factors;
  }

  AffineMap affine_map(const EigenRowMajor<double>& weight) const {
    const Eigen::RowVectorXd mean_x = origin_x_ + r_.row(0).tail(d_) / r_(0, 0);
    const Eigen::RowVectorXd mean_y = origin_y_ + z_.row(0) / r_(0, 0);
    const Eigen::RowVectorXd bias = mean_y - mean_x * weight;
    return {d_, e_, std::vector<double>(weight.data(), weight.data() + weight.size()),
            std::vector<double>(bias.data(), bias.data() + e_)};
  }

  // Of direction k the share (1 − s·factor)² of its part of Y is left.
  Explained explained_by(const Eigen::VectorXd& s, const Eigen::VectorXd& factors,
                         const Eigen::MatrixXd& projected) const {
    const Eigen::VectorXd share = 1.0 - s.array() * factors.array();
    const Eigen::RowVectorXd residual =
        left_ + (share.asDiagonal() * projected).colwise().squaredNorm();
    const Eigen::RowVectorXd total = left_ + projected.colwise().squaredNorm();
    return detail::explained_from(std::vector<double>(residual.data(), residual.data() + e_),
                                  std::vector<double>(total.data(), total.data() + e_));
  }

  Index d_;
  Index e_;
  Index block_rows_;
  Index rows_ = 0;
  Index filled_ = 0;
  Eigen::RowVectorXd origin_x_;
  Eigen::RowVectorXd origin_y_;
  Eigen::MatrixXd r_;
  Eigen::MatrixXd z_;
  Eigen::RowVectorXd left_;
  Eigen::MatrixXd block_x_{};
  Eigen::MatrixXd block_y_{};
};

/// That of this translation unit.
using QrAccumulator = BasicQrAccumulator<EigenAsConfigured>;

}  // namespace wanamaker::inline WANAMAKER_ABI
