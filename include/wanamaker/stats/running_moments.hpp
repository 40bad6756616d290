// Mean and variance of a stream, mergeable across pieces.
#pragma once

#include <cmath>
#include <optional>

#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Count, mean and centred sum of squares of the values seen (Welford 1962; merged as in Chan,
/// Golub and LeVeque 1983). Merging pieces in a fixed order gives the same result for any thread
/// count. Values are not checked: a NaN makes the moments NaN, for the caller to refuse.
class RunningMoments {
 public:
  void add(double value) {
    ++count_;
    const double deviation = value - mean_;
    mean_ += deviation / static_cast<double>(count_);
    centred_squares_ += deviation * (value - mean_);
  }

  /// As if the values of `other` had been added after these.
  void merge(const RunningMoments& other) {
    if (other.count_ == 0) return;
    const double here = static_cast<double>(count_);
    const double there = static_cast<double>(other.count_);
    const double deviation = other.mean_ - mean_;
    mean_ += deviation * (there / (here + there));
    centred_squares_ +=
        other.centred_squares_ + deviation * deviation * (here * (there / (here + there)));
    count_ += other.count_;
  }

  Index count() const { return count_; }

  /// Missing for an empty stream.
  std::optional<double> mean() const { return count_ > 0 ? std::optional(mean_) : std::nullopt; }

  /// Σ (x − mean)² / (n − 1); missing below two values.
  std::optional<double> variance() const {
    return count_ > 1 ? std::optional(centred_squares_ / static_cast<double>(count_ - 1))
                      : std::nullopt;
  }

  /// √variance; missing below two values.
  std::optional<double> standard_deviation() const {
    return count_ > 1 ? std::optional(std::sqrt(*variance())) : std::nullopt;
  }

  /// √(variance / n), for independent values; missing below two values.
  std::optional<double> standard_error() const {
    return count_ > 1 ? std::optional(std::sqrt(*variance() / static_cast<double>(count_)))
                      : std::nullopt;
  }

 private:
  Index count_ = 0;
  double mean_ = 0;
  double centred_squares_ = 0;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
