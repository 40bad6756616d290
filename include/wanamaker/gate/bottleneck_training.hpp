// Training bottleneck gates by full-batch quasi-Newton steps: seeded and deterministic. Needs
// Eigen.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/random.hpp"
#include "wanamaker/gate/bottleneck_gate.hpp"
#include "wanamaker/gate/host_rows.hpp"
#include "wanamaker/gate/logistic_gate.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Shape and penalty of a bottleneck gate, and when its fit ends.
struct BottleneckOptions {
  Index units = 3;  ///< b, 1 to 16
  double C = 1;     ///< inverse L2 penalty on all weights; shifts and bias are free
  std::uint64_t seed = 0;
  double tolerance = 1e-6;    ///< converged when no |∂ mean loss| is larger
  Index max_iterations = 20;  ///< later steps fit noise: see docs/gates.md
};

namespace detail {

inline constexpr Index most_bottleneck_units = 16;

/// Sums over rows of loss and gradient: [b × d] of hidden weights, [b] shifts, [b] out, bias, loss.
template <class T>
struct AddBottleneckTerms {
  ConstMatrixView<T> x;
  const double* hidden;  // [b × d], raw coordinates
  const double* shift;   // [b], raw coordinates
  const double* out;     // [b]
  double bias;
  Index units;
  LogisticTerm term;

  WANAMAKER_KERNEL void operator()(Index begin, Index end, double* sums) const {
    for_each_row_group(x, begin, end, *this, sums);
  }

  template <class Group>
  WANAMAKER_KERNEL void add_group(Index i, const Group& group, double* sums) const {
    using Values = typename Group::Values;
    Values h[most_bottleneck_units];
    Values z;
    z.fill(bias);
    for (Index k = 0; k < units; ++k) {
      h[k] = group.times(hidden + k * x.cols);
      for (std::size_t r = 0; r < z.size(); ++r) {
        h[k][r] += shift[k];
        z[r] += h[k][r] > 0 ? out[k] * h[k][r] : 0.0;
      }
    }
    double* tail = sums + units * x.cols;
    for (double& value : z) {
      const RowTerm t = term(i++, value);
      tail[2 * units] += t.slope;
      tail[2 * units + 1] += t.value;
      value = t.slope;
    }
    for (Index k = 0; k < units; ++k) add_unit(k, group, z, h[k], sums);
  }

 private:
  /// Gradients of unit k where it is active; h: what it gave.
  template <class Group, class Values>
  WANAMAKER_KERNEL void add_unit(Index k, const Group& group, const Values& slope, Values h,
                                 double* sums) const {
    double* tail = sums + units * x.cols;
    for (std::size_t r = 0; r < h.size(); ++r) {
      tail[units + k] += h[r] > 0 ? slope[r] * h[r] : 0.0;
      h[r] = h[r] > 0 ? slope[r] * out[k] : 0.0;
      tail[k] += h[r];
    }
    group.add_to(sums + k * x.cols, h);
  }
};

/// Where the parts of a parameter vector lie: hidden [b × d], shift [b], out [b], bias.
struct BottleneckLayout {
  Index units;
  Index width;

  std::size_t hidden(Index k) const { return static_cast<std::size_t>(k * width); }
  std::size_t shift(Index k) const { return static_cast<std::size_t>(units * width + k); }
  std::size_t out(Index k) const { return static_cast<std::size_t>(units * width + units + k); }
  std::size_t bias() const { return static_cast<std::size_t>(units * width + 2 * units); }
  std::size_t size() const { return bias() + 1; }
};

/// The gate's function of raw features, from parameters in standardised coordinates.
inline BottleneckScore unstandardise_bottleneck(std::span<const double> point,
                                                const BottleneckLayout& layout,
                                                const FeatureScaling& scaling) {
  BottleneckScore score;
  for (Index k = 0; k < layout.units; ++k) {
    score.hidden.push_back(
        unstandardise(point.subspan(layout.hidden(k), static_cast<std::size_t>(layout.width)),
                      point[layout.shift(k)], scaling));
    score.out.push_back(point[layout.out(k)]);
  }
  score.bias = point[layout.bias()];
  return score;
}

/// Σ_i w_i·log(1 + e^∓z_i) + (|hidden|² + |out|²)/(2C), gradients in standardised coordinates.
template <class T>
struct BottleneckObjective {
  const StandardisedRows<T>* rows;
  LogisticTerm term;
  double penalty;
  BottleneckLayout layout;

  double operator()(std::span<const double> point, std::span<double> gradient) const {
    const FeatureScaling& scaling = rows->scaling();
    const BottleneckScore score = unstandardise_bottleneck(point, layout, scaling);
    std::vector<double> hidden;
    std::vector<double> shifts;
    for (const LinearScore& unit : score.hidden) {
      hidden.insert(hidden.end(), unit.weights.begin(), unit.weights.end());
      shifts.push_back(unit.bias);
    }
    std::vector<double> sums(layout.size() + 1);
    sum_over_rows(rows->rows(), rows->executor(),
                  AddBottleneckTerms<T>{rows->raw(), hidden.data(), shifts.data(), score.out.data(),
                                        score.bias, layout.units, term},
                  sums);
    std::copy_n(sums.begin(), gradient.size(), gradient.begin());
    standardise_gradient(gradient);
    return sums.back() + add_penalty(point, gradient);
  }

 private:
  void standardise_gradient(std::span<double> gradient) const {
    const FeatureScaling& scaling = rows->scaling();
    for (Index k = 0; k < layout.units; ++k) {
      double* g = gradient.data() + layout.hidden(k);
      const double slopes = gradient[layout.shift(k)];
      for (std::size_t j = 0; j < scaling.mean.size(); ++j) {
        g[j] = (g[j] - scaling.mean[j] * slopes) / scaling.scale[j];
      }
    }
  }

  double add_penalty(std::span<const double> point, std::span<double> gradient) const {
    const auto add = [&](std::size_t first, std::size_t count) {
      add_scaled(penalty, point.subspan(first, count), gradient.subspan(first, count));
      return 0.5 * penalty * dot(point.subspan(first, count), point.subspan(first, count));
    };
    return add(0, layout.shift(0)) + add(layout.out(0), static_cast<std::size_t>(layout.units));
  }
};

/// Unit 0 starts as the logistic fit, shifted by three standard deviations of its logits so that it
/// is active nearly everywhere; the others start small, in random directions. So training starts
/// about where a linear gate ends.
inline std::vector<double> bottleneck_start(const LogisticFit& fit, const BottleneckLayout& layout,
                                            double spread, std::uint64_t seed) {
  std::vector<double> point(layout.size(), 0.0);
  std::copy(fit.coefficients.begin(), fit.coefficients.end(), point.begin());
  point[layout.shift(0)] = 3 * spread;
  point[layout.out(0)] = 1;
  point[layout.bias()] = fit.intercept - 3 * spread;
  RandomStream stream(seed, 0x626f74746c65);
  const double scale = 0.1 * std::max(spread, 0.1) / std::sqrt(static_cast<double>(layout.width));
  for (Index k = 1; k < layout.units; ++k) {
    for (Index j = 0; j < layout.width; ++j) {
      point[layout.hidden(k) + static_cast<std::size_t>(j)] = scale * stream.normal();
    }
    point[layout.out(k)] = stream.normal() < 0 ? -1 : 1;
  }
  return point;
}

/// v ← P·v with P the curvature of a logistic fit for each unit's hidden weights and shift, and the
/// number of rows for the rest: directions of very different variance become alike.
struct BottleneckPreconditioner {
  const CurvatureInverse* unit;
  BottleneckLayout layout;
  double rows;

  void operator()(std::span<double> v) const {
    std::vector<double> part(static_cast<std::size_t>(layout.width) + 1);
    for (Index k = 0; k < layout.units; ++k) {
      double* hidden = v.data() + layout.hidden(k);
      std::copy_n(hidden, layout.width, part.begin());
      part.back() = v[layout.shift(k)];
      (*unit)(std::span<double>(part));
      std::copy_n(part.begin(), layout.width, hidden);
      v[layout.shift(k)] = part.back();
      v[layout.out(k)] *= 4 / rows;
    }
    v[layout.bias()] *= 4 / rows;
  }
};

inline double standard_deviation_of(std::span<const double> values) {
  double mean = 0;
  double square = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) square += (value - mean) * (value - mean);
  return std::sqrt(square / static_cast<double>(values.size()));
}

inline void check_units(Index units) {
  if (units >= 1 && units <= most_bottleneck_units) return;
  throw ProtocolError({.id = "gate/bottleneck-units",
                       .where = "fit_bottleneck_gate(units)",
                       .what = "unusable number of hidden units",
                       .expected = "1 to " + std::to_string(most_bottleneck_units),
                       .found = std::to_string(units),
                       .mend = "the study uses 1, 3 and 6"});
}

/// From the logistic fit by quasi-Newton steps.
template <Backend B>
MinimiserResult train_bottleneck(B& backend, const LogisticProblem<B>& problem,
                                 const LogisticFit& fit, const BottleneckLayout& layout,
                                 const BottleneckOptions& options) {
  const HostRows<B> host(backend, problem.x);
  const StandardisedRows<scalar_t<B>> rows(host.view(), fit.scaling, executor_of(backend));
  std::vector<double> linear = fit.coefficients;
  linear.push_back(fit.intercept);
  const std::vector<double> logits = rows.scores(linear);
  const CurvatureInverse curvature =
      curvature_at(backend, problem, rows, logits, {.C = options.C}, 0);
  const double total = problem.total_weight();
  const BottleneckObjective<scalar_t<B>> objective{&rows, problem.term(), 1 / options.C, layout};
  return minimise(
      objective, bottleneck_start(fit, layout, standard_deviation_of(logits), options.seed),
      BottleneckPreconditioner{&curvature, layout, total},
      {.tolerance = options.tolerance * total, .max_iterations = options.max_iterations});
}

}  // namespace detail

/// g(x) = logistic(Σ_k out_k·max(0, x̃·hidden_k + shift_k) + bias). Minimises Σ_i w_i·log(1 +
/// e^∓z_i) plus (|hidden|² + |out|²)/(2C), starting from the logistic fit: a local minimum.
/// Deterministic for a seed; labels of one class give a constant gate that says so. Throws as
/// fit_logistic_regression, and ProtocolError ("gate/bottleneck-units").
template <Backend B>
FittedGate<BottleneckGate<B>> fit_bottleneck_gate(B& backend, const_matrix_view_t<B> x,
                                                  std::span<const std::uint8_t> labels,
                                                  std::span<const double> weights = {},
                                                  const BottleneckOptions& options = {}) {
  detail::check_units(options.units);
  const LogisticFit fit =
      fit_logistic_regression(backend, x, labels, weights, {.C = options.C, .tolerance = 1e-6});
  const detail::BottleneckLayout layout{options.units, x.cols};
  const detail::LogisticProblem<B> problem{x, labels, weights};
  std::vector<double> point(layout.size(), 0.0);
  point.back() = fit.intercept;
  FitReport report = fit.report;
  if (report.status != FitStatus::one_class) {
    MinimiserResult run = detail::train_bottleneck(backend, problem, fit, layout, options);
    report = {.positives = fit.report.positives};
    detail::add_run(run, problem.total_weight(), report);
    point = std::move(run.point);
  }
  return {BottleneckGate<B>(backend, detail::unstandardise_bottleneck(point, layout, fit.scaling)),
          report, fit.scaling.constant_features};
}

}  // namespace wanamaker::inline WANAMAKER_ABI
