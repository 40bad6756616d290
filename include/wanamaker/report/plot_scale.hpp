// Where values go along an axis: evenly, or by their logarithm on both sides of zero, for costs
// that run from a hundredth of a per cent to thousands.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "wanamaker/report/curve_svg.hpp"
#include "wanamaker/report/report_text.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// sign(x)·log₁₀(1 + |x|/unit): even below the unit, logarithmic beyond.
inline double two_sided_log(double x, double unit = 1) {
  return std::copysign(std::log10(1 + std::abs(x) / unit), x);
}

/// An axis from `begin` to `end`, in units of the picture.
class PlotScale {
 public:
  static constexpr double farthest = 1e12;  ///< what is beyond is shown at the edge

  /// Holds all finite values. `spacing`: between labels, at least. `even_to`: beyond this the axis
  /// is logarithmic; 0: nowhere.
  PlotScale(const std::vector<double>& values, double begin, double end, double spacing,
            double even_to = 0)
      : begin_(begin), end_(end), spacing_(spacing), even_to_(even_to) {
    double low = farthest, high = -farthest;
    for (const double v : values) {
      if (!std::isfinite(v)) continue;
      low = std::min(low, clamped(v));
      high = std::max(high, clamped(v));
    }
    if (low > high) low = 0, high = 1;
    low_ = transformed(low), high_ = transformed(high);
    const double margin = low_ == high_ ? 0.5 : 0.04 * (high_ - low_);
    low_ -= margin, high_ += margin;
  }

  double place(double value) const {
    const double t = std::clamp(transformed(clamped(value)), low_, high_);
    return begin_ + (t - low_) / (high_ - low_) * (end_ - begin_);
  }

  /// Values to label, ascending.
  std::vector<double> ticks() const {
    if (even_to_ <= 0) {
      const double intervals = std::max(1.0, std::floor(std::abs(end_ - begin_) / spacing_));
      return detail::axis_of(low_, high_, begin_, end_, intervals).ticks();
    }
    std::vector<double> chosen;
    for (const double candidate : candidates()) {
      const bool inside = transformed(candidate) >= low_ && transformed(candidate) <= high_;
      if (inside && has_room(chosen, candidate)) chosen.push_back(candidate);
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

 private:
  static double clamped(double v) { return std::clamp(v, -farthest, farthest); }
  double transformed(double v) const { return even_to_ > 0 ? two_sided_log(v, even_to_) : v; }

  // Zero, powers of ten, then what lies between.
  static std::vector<double> candidates() {
    std::vector<double> values{0};
    for (const double lead : {1.0, 3.0}) {
      for (int power = -3; power <= 12; ++power) {
        values.push_back(lead * std::pow(10.0, power));
        values.push_back(-values.back());
      }
    }
    // The larger first: they say how far the axis goes.
    std::stable_sort(values.begin() + 1, values.begin() + 33,
                     [](double a, double b) { return std::abs(a) > std::abs(b); });
    return values;
  }

  bool has_room(const std::vector<double>& chosen, double candidate) const {
    return std::all_of(chosen.begin(), chosen.end(), [&](double other) {
      return std::abs(place(other) - place(candidate)) >= spacing_;
    });
  }

  double begin_, end_, spacing_;
  double even_to_;
  double low_ = 0, high_ = 1;
};

namespace detail {

/// A tick's label.
inline std::string tick_text(double tick) {
  return with_minus(short_number(std::abs(tick) < 1e-12 ? 0 : tick));
}

}  // namespace detail

/// Whether values spread so widely that their logarithms are wanted.
inline bool spreads_widely(const std::vector<double>& values) {
  double largest = 0;
  for (const double v : values) {
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  }
  return largest > 30;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
