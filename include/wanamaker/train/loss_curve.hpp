// What a training run was like, step by step; and when it gets worse instead of better.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// One step of training.
struct TrainingStep {
  Index step = 0;            ///< from 1
  Index tokens = 0;          ///< scored so far, this step included
  double loss = 0;           ///< before the step's update; nats per scored token
  double learning_rate = 0;  ///< of the update
  double gradient_norm = 0;  ///< before clipping
};

/// All steps so far.
using LossCurve = std::vector<TrainingStep>;

/// Rows "step,tokens,loss,learning_rate,gradient_norm" under that header; numbers read back to the
/// same values.
inline std::string loss_curve_csv(const LossCurve& curve) {
  const auto append = [](std::string& text, double value, char end) {
    char digits[32];
    text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr).push_back(end);
  };
  std::string text = "step,tokens,loss,learning_rate,gradient_norm\n";
  for (const TrainingStep& step : curve) {
    text.append(std::to_string(step.step)).append(",");
    text.append(std::to_string(step.tokens)).append(",");
    append(text, step.loss, ',');
    append(text, step.learning_rate, ',');
    append(text, step.gradient_norm, '\n');
  }
  return text;
}

/// Mean loss of steps max(0, end − count) … end − 1 of the curve.
inline double mean_loss(const LossCurve& curve, std::size_t end, std::size_t count) {
  const std::size_t begin = end > count ? end - count : 0;
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += curve[i].loss;
  return end > begin ? sum / static_cast<double>(end - begin) : 0.0;
}

/// Tells when a loss rises: the mean of the last `window` losses lies more than `rise` nats above
/// the least such mean before.
class RisingLoss {
 public:
  RisingLoss(Index window, double rise)
      : window_(static_cast<std::size_t>(std::max<Index>(window, 1))), rise_(rise) {}

  /// Looks at the first `steps` steps of the curve; to be called for 1, 2, … in order.
  bool operator()(const LossCurve& curve, std::size_t steps) {
    if (steps < window_) return false;
    const double mean = mean_loss(curve, steps, window_);
    const bool rises = mean > least_ + rise_;
    least_ = std::min(least_, mean);
    return rises;
  }

 private:
  std::size_t window_;
  double rise_;
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace wanamaker::inline WANAMAKER_ABI
