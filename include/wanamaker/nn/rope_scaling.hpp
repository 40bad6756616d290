// Rotary frequencies stretched for contexts longer than those a model was first trained on.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What becomes of the frequencies θ_j = theta^(−2j/r), j = 0 … r/2 − 1: each is divided by its
/// divisor, and cosines and sines are multiplied by the magnitude.
struct RopeScaling {
  std::vector<double> divisors{};  ///< r/2 numbers > 0; empty: all 1
  double magnitude = 1.0;
};

/// `linear`: every frequency divided by `factor` (Chen et al. 2023).
inline RopeScaling linear_rope_scaling(Index rotary_width, double factor) {
  return {std::vector<double>(static_cast<std::size_t>(rotary_width / 2), factor), 1.0};
}

/// `llama3`: wavelengths beyond original/low are stretched by `factor`, those below original/high
/// stay, those between are blended (Llama Team 2024).
struct Llama3Rope {
  double factor = 8.0;
  double low = 1.0;
  double high = 4.0;                 ///< > low
  double original_positions = 8192;  ///< longest window before
};

/// `yarn`: frequencies with more than beta_fast turns in the original window stay, those with fewer
/// than beta_slow are divided by `factor`, those between are blended (Peng et al. 2023).
struct YarnRope {
  double factor = 1.0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  double original_positions = 0;  ///< longest window before
  double magnitude = 1.0;
  bool truncate = true;  ///< bounds rounded outwards to whole pairs
};

namespace detail {

inline double rope_frequency(Index pair, Index rotary_width, double theta) {
  return std::pow(theta, -2.0 * static_cast<double>(pair) / static_cast<double>(rotary_width));
}

/// Divisor of a frequency that is the blend kept · 1 + (1 − kept) / factor.
inline double blended_divisor(double kept, double factor) {
  return 1.0 / (kept + (1.0 - kept) / factor);
}

}  // namespace detail

inline RopeScaling llama3_rope_scaling(Index rotary_width, double theta, const Llama3Rope& s) {
  RopeScaling scaling;
  for (Index j = 0; j < rotary_width / 2; ++j) {
    const double turns = s.original_positions * detail::rope_frequency(j, rotary_width, theta) /
                         (2 * std::numbers::pi);
    const double kept = std::clamp((turns - s.low) / (s.high - s.low), 0.0, 1.0);
    scaling.divisors.push_back(detail::blended_divisor(kept, s.factor));
  }
  return scaling;
}

/// YaRN's usual magnitude, 0.1 · weight · ln(factor) + 1, or 1 where nothing is stretched.
inline double yarn_magnitude(double factor, double weight = 1.0) {
  return factor <= 1.0 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

inline RopeScaling yarn_rope_scaling(Index rotary_width, double theta, const YarnRope& s) {
  const auto width = static_cast<double>(rotary_width);
  // The pair whose frequency turns that often in the original window.
  const auto pair_of = [&](double turns) {
    return width * std::log(s.original_positions / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double low = pair_of(s.beta_fast), high = pair_of(s.beta_slow);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, width - 1);
  if (low == high) high += 0.001;
  RopeScaling scaling{.divisors = {}, .magnitude = s.magnitude};
  for (Index j = 0; j < rotary_width / 2; ++j) {
    const double kept = 1.0 - std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
    scaling.divisors.push_back(detail::blended_divisor(kept, s.factor));
  }
  return scaling;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
