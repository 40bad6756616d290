// Minimising a smooth function by limited-memory quasi-Newton steps from a given curvature.
// Nocedal & Wright 2006, chapter 7; line search: Lewis & Overton 2013.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// When the minimiser stops, and what it remembers.
struct MinimiserOptions {
  double tolerance = 1e-6;     ///< converged when no |∂f/∂x_k| is larger
  Index max_iterations = 500;  ///< steps
  Index memory = 10;           ///< steps remembered
};

/// Where the minimiser stopped; running out of steps is no error.
struct MinimiserResult {
  std::vector<double> point{};
  std::vector<double> gradient{};
  double value = 0;
  Index iterations = 0;
  Index evaluations = 0;
  bool converged = false;
  bool stalled = false;  ///< no smaller value could be found along the last direction
};

namespace detail {

inline double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

inline void add_scaled(double factor, std::span<const double> a, std::span<double> sum) {
  for (std::size_t k = 0; k < a.size(); ++k) sum[k] += factor * a[k];
}

inline double largest_magnitude(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) {
    if (!(std::abs(value) <= largest)) largest = std::abs(value);  // NaN stays
  }
  return largest;
}

/// The last steps s and changes of gradient y, and the direction −H·g that they imply.
class SecantMemory {
 public:
  explicit SecantMemory(Index capacity) : capacity_(static_cast<std::size_t>(capacity)) {}

  void add(std::vector<double> step, std::vector<double> change) {
    const double product = dot(step, change);
    if (!(product > 0)) return;  // only at kinks: no curvature to learn from
    if (pairs_.size() == capacity_) pairs_.pop_front();
    pairs_.push_back({std::move(step), std::move(change), product});
  }

  /// −H·g, where H starts from `precondition` (v ← P·v).
  template <class Precondition>
  std::vector<double> direction(std::span<const double> gradient,
                                const Precondition& precondition) const {
    std::vector<double> v(gradient.begin(), gradient.end());
    std::vector<double> factors(pairs_.size());
    for (std::size_t k = pairs_.size(); k-- > 0;) {
      factors[k] = dot(pairs_[k].step, v) / pairs_[k].product;
      add_scaled(-factors[k], pairs_[k].change, v);
    }
    precondition(std::span<double>(v));
    for (std::size_t k = 0; k < pairs_.size(); ++k) {
      const double factor = factors[k] - dot(pairs_[k].change, v) / pairs_[k].product;
      add_scaled(factor, pairs_[k].step, v);
    }
    for (double& value : v) value = -value;
    return v;
  }

 private:
  struct Pair {
    std::vector<double> step;
    std::vector<double> change;
    double product;
  };
  std::size_t capacity_;
  std::deque<Pair> pairs_{};
};

/// One point with its value and gradient.
struct Evaluation {
  std::vector<double> point{};
  std::vector<double> gradient{};
  double value = 0;
};

template <class Objective>
Evaluation evaluate_along(const Objective& objective, const Evaluation& from,
                          std::span<const double> direction, double step) {
  Evaluation next{from.point, std::vector<double>(from.point.size()), 0};
  add_scaled(step, direction, next.point);
  next.value = objective(std::span<const double>(next.point), std::span<double>(next.gradient));
  return next;
}

/// A step that satisfies the weak Wolfe conditions, by doubling and bisection; false where forty
/// trials find none. Near the minimum a decrease is lost in the value's rounding, which is allowed.
template <class Objective>
bool line_search(const Objective& objective, std::span<const double> direction, Evaluation& current,
                 Index& evaluations) {
  const double slope = dot(current.gradient, direction);
  const double rounding = 16 * std::numeric_limits<double>::epsilon() * std::abs(current.value);
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  double step = 1;
  for (int trial = 0; slope < 0 && trial < 40; ++trial) {
    Evaluation next = evaluate_along(objective, current, direction, step);
    ++evaluations;
    if (!(next.value <= current.value + 1e-4 * step * slope + rounding)) {
      high = step;
    } else if (dot(next.gradient, direction) < 0.9 * slope) {
      low = step;
    } else {
      current = std::move(next);
      return true;
    }
    step = std::isinf(high) ? 2 * step : 0.5 * (low + high);
  }
  return false;
}

inline std::vector<double> difference(std::span<const double> a, std::span<const double> b) {
  std::vector<double> result(a.begin(), a.end());
  add_scaled(-1.0, b, result);
  return result;
}

}  // namespace detail

/// Minimises f from `start`. objective(point, gradient) returns f and writes ∂f; precondition(v)
/// replaces v by an approximation of (∂²f)⁻¹·v. Deterministic.
template <class Objective, class Precondition>
MinimiserResult minimise(const Objective& objective, std::vector<double> start,
                         const Precondition& precondition, const MinimiserOptions& options = {}) {
  detail::SecantMemory memory(options.memory);
  detail::Evaluation current{std::move(start), {}, 0};
  current.gradient.resize(current.point.size());
  current.value =
      objective(std::span<const double>(current.point), std::span<double>(current.gradient));
  MinimiserResult result{.evaluations = 1};
  const auto small = [&] {
    return detail::largest_magnitude(current.gradient) <= options.tolerance;
  };
  while (!small() && result.iterations < options.max_iterations && !result.stalled) {
    const std::vector<double> direction = memory.direction(current.gradient, precondition);
    const detail::Evaluation before = current;
    result.stalled = !detail::line_search(objective, direction, current, result.evaluations);
    if (result.stalled) break;
    ++result.iterations;
    memory.add(detail::difference(current.point, before.point),
               detail::difference(current.gradient, before.gradient));
  }
  result.converged = small();
  result.point = std::move(current.point);
  result.gradient = std::move(current.gradient);
  result.value = current.value;
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
