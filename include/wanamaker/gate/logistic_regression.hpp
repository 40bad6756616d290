// Logistic regression with an L2 penalty, to a certified gradient norm. Needs Eigen.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/backend/third_party/eigen_factorisations.hpp"
#include "wanamaker/gate/host_rows.hpp"
#include "wanamaker/gate/quasi_newton.hpp"
#include "wanamaker/gate/standardised_gram.hpp"
#include "wanamaker/gate/standardised_rows.hpp"
#include "wanamaker/stats/checks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Penalty of a logistic regression, and when its fit ends.
struct LogisticOptions {
  double C = 1;             ///< inverse penalty, as in scikit-learn
  bool standardise = true;  ///< fit on x̃ = (x − mean)/scale; false: on x itself
  double tolerance = 1e-8;  ///< converged when no |∂ mean loss| is larger
  Index max_iterations = 500;
  /// Curvature is estimated from about this many rows per feature; more rows, fewer steps.
  double curvature_rows = 8;
  /// Wider inputs are fitted without a matrix of curvature (memory d², time d³).
  Index largest_curvature = 4096;
};

enum class FitStatus { converged, iteration_limit, stalled, one_class };

/// "converged", "iteration_limit", "stalled", "one_class".
constexpr const char* fit_status_name(FitStatus status) {
  switch (status) {
    case FitStatus::converged:
      return "converged";
    case FitStatus::iteration_limit:
      return "iteration_limit";
    case FitStatus::stalled:
      return "stalled";
    case FitStatus::one_class:
      return "one_class";
  }
  return "";
}

/// How an iterative fit ended; never thrown, always reported.
struct FitReport {
  FitStatus status = FitStatus::converged;
  Index iterations = 0;
  Index evaluations = 0;     ///< passes over the data
  double objective = 0;      ///< Σ_i w_i·loss_i + penalty
  double gradient_norm = 0;  ///< max_k |∂ objective/∂ parameter_k| / Σ_i w_i
  double positives = 0;      ///< share of rows with label 1

  bool converged() const { return status == FitStatus::converged; }
};

/// Coefficients as they were fitted, on standardised features, and how the fit ended.
struct LogisticFit {
  std::vector<double> coefficients{};  ///< [d], of the standardised features
  double intercept = 0;
  FeatureScaling scaling{};
  FitReport report{};

  /// The fitted logit as a function of raw features.
  LinearScore folded() const { return unstandardise(coefficients, intercept, scaling); }
};

namespace detail {

/// w·log(1 + e^∓z) and its derivative w·(p − y), without overflow.
struct LogisticTerm {
  const std::uint8_t* labels;
  const double* weights;  // null: 1

  RowTerm operator()(Index i, double z) const {
    const double decay = std::exp(-std::abs(z));
    const double y = labels[i];
    const double p = z >= 0 ? 1 / (1 + decay) : decay / (1 + decay);
    const double w = weights == nullptr ? 1.0 : weights[i];
    return {w * (std::log1p(decay) + std::max(z, 0.0) - y * z), w * (p - y)};
  }
};

/// Σ_i w_i·log(1 + e^∓z_i) + |coefficients|²/(2C); the last entry of a point is the intercept.
template <class T>
struct LogisticObjective {
  const StandardisedRows<T>* rows;
  LogisticTerm term;
  double penalty;  // 1/C

  double operator()(std::span<const double> point, std::span<double> gradient) const {
    double value = rows->accumulate(point, term, gradient);
    const std::span<const double> coefficients = point.first(point.size() - 1);
    add_scaled(penalty, coefficients, gradient);
    value += 0.5 * penalty * dot(coefficients, coefficients);
    return value;
  }
};

/// The inverse of an estimate of the objective's curvature: v ← (XᵀDX + I/C)⁻¹·v, or v/diagonal.
class CurvatureInverse {
 public:
  explicit CurvatureInverse(double diagonal) : diagonal_(diagonal) {}

  /// gram: XᵀDX with its intercept column last. Rounding may leave a matrix that is not positive
  /// definite: the diagonal is raised until it is. One that overflowed is not used.
  CurvatureInverse(EigenRowMajor<double> gram, double penalty) : diagonal_(1) {
    if (!gram.allFinite()) return;
    const double floor = 1e-12 * gram.trace() / static_cast<double>(gram.rows());
    gram.diagonal().array() += penalty;
    gram(gram.rows() - 1, gram.cols() - 1) += floor + 1e-300 - penalty;
    factor_.emplace(gram);
    for (double shift = floor; factor_->info() != Eigen::Success; shift *= 100) {
      gram.diagonal().array() += shift + 1e-300;
      factor_->compute(gram);
    }
  }

  void operator()(std::span<double> v) const {
    if (factor_) {
      Eigen::Map<Eigen::VectorXd> vector(v.data(), static_cast<Index>(v.size()));
      factor_->solveInPlace(vector);
    } else {
      for (double& value : v) value /= diagonal_;
    }
  }

 private:
  std::optional<Eigen::LLT<EigenRowMajor<double>>> factor_{};
  double diagonal_;
};

inline double total_of(std::span<const double> weights, Index rows) {
  if (weights.empty()) return static_cast<double>(rows);
  double total = 0;
  for (const double w : weights) total += w;
  return total;
}

inline void check_weights(std::span<const double> weights, std::size_t rows, const char* where) {
  if (weights.empty()) return;
  check_same_length(rows, weights.size(), where);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] >= 0 && weights[i] <= largest_value) continue;
    throw DataError({.id = "gate/weights",
                     .where = std::string(where) + ", element " + std::to_string(i),
                     .what = "unusable weight",
                     .expected = "a finite number that is not negative",
                     .found = number_text(weights[i]),
                     .mend = "leave the row out instead"});
  }
}

inline void check_regularisation(double C, const char* where) {
  if (C > 0 && C <= largest_value) return;
  throw ProtocolError({.id = "gate/regularisation",
                       .where = where,
                       .what = "unusable C",
                       .expected = "a positive finite number",
                       .found = number_text(C),
                       .mend = "use 1, as scikit-learn does"});
}

/// Rows, labels and weights of one fit, checked.
template <Backend B>
struct LogisticProblem {
  const_matrix_view_t<B> x;  // in the backend's memory
  std::span<const std::uint8_t> labels;
  std::span<const double> weights;  // empty: 1

  LogisticTerm term() const { return {labels.data(), weights.empty() ? nullptr : weights.data()}; }
  double total_weight() const { return total_of(weights, x.rows); }
  double weight(std::size_t i) const { return weights.empty() ? 1.0 : weights[i]; }
  double positive_weight() const {
    double sum = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) sum += labels[i] * weight(i);
    return sum;
  }
  double positives() const {
    double sum = 0;
    for (const std::uint8_t label : labels) sum += label;
    return sum;
  }
};

/// Where one class has no weight: the shrunk log odds of the labels, whatever the features.
template <Backend B>
LogisticFit constant_fit(const LogisticProblem<B>& problem, FeatureScaling scaling) {
  const double n = static_cast<double>(problem.labels.size());
  const double positives = problem.positives();
  LogisticFit fit;
  fit.coefficients.assign(scaling.mean.size(), 0.0);
  fit.scaling = std::move(scaling);
  fit.intercept = std::log((positives + 0.5) / (n - positives + 0.5));
  fit.report.status = FitStatus::one_class;
  fit.report.positives = positives / n;
  return fit;
}

/// The curvature where the rows have these logits, from a sample of rows that grows with `round`.
template <Backend B, class T>
CurvatureInverse curvature_at(B& backend, const LogisticProblem<B>& problem,
                              const StandardisedRows<T>& rows, std::span<const double> logits,
                              const LogisticOptions& options, Index round) {
  std::vector<double> curvature(logits.begin(), logits.end());
  double total = 0;
  for (std::size_t i = 0; i < curvature.size(); ++i) {
    const double decay = std::exp(-std::abs(curvature[i]));
    curvature[i] = problem.weight(i) * decay / ((1 + decay) * (1 + decay));
    total += curvature[i];
  }
  if (rows.width() > options.largest_curvature) return CurvatureInverse(total + 1 / options.C);
  const double size = options.curvature_rows * static_cast<double>((rows.width() + 1) << round);
  const bool every_row = 2 * size >= static_cast<double>(rows.rows());
  const RowSample sample =
      every_row ? all_rows(rows.rows(), curvature) : systematic_sample(curvature, size);
  return CurvatureInverse(standardised_gram(backend, problem.x, rows.scaling(), sample),
                          1 / options.C);
}

/// Continues a report by one run of the minimiser; total: Σ w_i.
inline void add_run(const MinimiserResult& run, double total, FitReport& report) {
  report.iterations += run.iterations;
  report.evaluations += run.evaluations;
  report.objective = run.value;
  report.gradient_norm = largest_magnitude(run.gradient) / total;
  report.status = run.converged ? FitStatus::converged
                  : run.stalled ? FitStatus::stalled
                                : FitStatus::iteration_limit;
}

/// Quasi-Newton runs from an estimated curvature, which is renewed where it proves a poor one.
template <Backend B, class T>
LogisticFit minimise_logistic(B& backend, const LogisticProblem<B>& problem,
                              const StandardisedRows<T>& rows, const LogisticOptions& options) {
  const Index longest_run =
      rows.width() > options.largest_curvature ? options.max_iterations : Index{40};
  const double total = problem.total_weight();
  const LogisticObjective<T> objective{&rows, problem.term(), 1 / options.C};
  std::vector<double> point(static_cast<std::size_t>(rows.width() + 1));
  point.back() = std::log(problem.positive_weight() / (total - problem.positive_weight()));
  std::vector<double> logits(problem.labels.size(), point.back());
  FitReport report{.positives = problem.positives() / static_cast<double>(rows.rows())};
  for (Index round = 0;; ++round) {
    const CurvatureInverse inverse =
        curvature_at(backend, problem, rows, logits, options, std::min<Index>(round, 20));
    MinimiserResult run = minimise(
        objective, std::move(point), inverse,
        {.tolerance = options.tolerance * total,
         .max_iterations = std::min(options.max_iterations - report.iterations, longest_run)});
    add_run(run, total, report);
    point = std::move(run.point);
    if (run.converged || run.stalled || report.iterations >= options.max_iterations) break;
    logits = rows.scores(point);
  }
  const double intercept = point.back();
  point.pop_back();
  return {std::move(point), intercept, rows.scaling(), report};
}

}  // namespace detail

/// Minimises Σ_i w_i·log(1 + e^{∓z_i}) + |coefficients|²/(2C), z = x̃·coefficients + intercept,
/// minus for label 1: scikit-learn's LogisticRegression, intercept not penalised. x [n × d] in the
/// backend's memory; the arithmetic is double's, only the curvature that steers the steps is
/// estimated in the backend's scalar from a sample of rows. Deterministic for any number of
/// threads. Labels of one class give a constant fit that says so. Throws ShapeError
/// ("stats/length-mismatch"), DataError ("stats/label", "gate/features", "gate/weights"),
/// ProtocolError ("gate/regularisation").
template <Backend B>
LogisticFit fit_logistic_regression(B& backend, const_matrix_view_t<B> x,
                                    std::span<const std::uint8_t> labels,
                                    std::span<const double> weights = {},
                                    const LogisticOptions& options = {}) {
  const std::size_t n = static_cast<std::size_t>(x.rows);
  detail::check_labels(labels, n, "fit_logistic_regression(labels)");
  detail::check_weights(weights, n, "fit_logistic_regression(weights)");
  detail::check_regularisation(options.C, "fit_logistic_regression(C)");
  const detail::HostRows<B> host(backend, x);
  const ExecutorRef executor = detail::executor_of(backend);
  FeatureScaling scaling = fit_feature_scaling(host.view(), executor);
  if (!options.standardise) scaling = no_scaling(x.cols);
  const detail::LogisticProblem<B> problem{x, labels, weights};
  const double positive = problem.positive_weight();
  if (!(positive > 0) || !(positive < problem.total_weight())) {
    return detail::constant_fit(problem, std::move(scaling));
  }
  const StandardisedRows<scalar_t<B>> rows(host.view(), scaling, executor);
  return detail::minimise_logistic(backend, problem, rows, options);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
