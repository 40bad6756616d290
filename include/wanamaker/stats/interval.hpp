// A confidence interval, and the change of unit between nats per token and perplexity.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "wanamaker/core/version.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// From `low` to `high`, in the unit that its owner names.
struct Interval {
  double low = 0;
  double high = 0;
};

/// 100 (exp(Δ) − 1): by how many per cent Δ nats per token raise the perplexity. At most the
/// largest double (reached at 705 nats), so that a table never holds infinity.
inline double percent_of_nats(double delta_nats) {
  return std::min(100 * std::expm1(delta_nats), std::numeric_limits<double>::max());
}

/// ln(1 + percent / 100), the inverse of percent_of_nats; percent > −100.
inline double nats_of_percent(double percent) {
  return std::log1p(percent / 100);
}

/// Both ends in per cent; exact, since the map rises.
inline Interval percent_of_nats(const Interval& nats) {
  return {percent_of_nats(nats.low), percent_of_nats(nats.high)};
}

}  // namespace wanamaker::inline WANAMAKER_ABI
