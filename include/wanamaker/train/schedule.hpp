// Learning rates by step: constant, or a cosine from the peak down to a floor, after a linear
// warm-up.
#pragma once

#include <cmath>
#include <string>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

enum class ScheduleShape { constant, cosine };

/// η(s) for s = 0, 1, …: peak·(s + 1)/warm_up below warm_up; from there on the peak, or, for a
/// cosine, peak·(floor + (1 − floor)·(1 + cos(π·(s − warm_up)/(steps − warm_up)))/2), and
/// peak·floor from `steps` on (Loshchilov & Hutter 2017, without restarts).
struct LearningRateSchedule {
  ScheduleShape shape = ScheduleShape::cosine;
  double peak = 1e-3;
  Index warm_up = 0;   ///< steps
  Index steps = 1000;  ///< where the cosine ends
  double floor = 0.1;  ///< share of the peak that is left there

  double rate(Index step) const {
    if (step < warm_up) return peak * static_cast<double>(step + 1) / static_cast<double>(warm_up);
    if (shape == ScheduleShape::constant) return peak;
    if (step >= steps) return peak * floor;
    const double progress =
        static_cast<double>(step - warm_up) / static_cast<double>(steps - warm_up);
    return peak * (floor + (1.0 - floor) * 0.5 * (1.0 + std::cos(3.141592653589793 * progress)));
  }
};

/// Throws DataError for rates and lengths that make no schedule.
inline void check_schedule(const LearningRateSchedule& schedule) {
  const bool is_cosine = schedule.shape == ScheduleShape::cosine;
  const bool fits = std::isfinite(schedule.peak) && schedule.peak >= 0 && schedule.warm_up >= 0 &&
                    schedule.floor >= 0 && schedule.floor <= 1 &&
                    (!is_cosine || schedule.steps >= schedule.warm_up);
  if (fits) return;
  throw DataError({.id = "training/schedule",
                   .where = "LearningRateSchedule",
                   .what = "impossible schedule",
                   .expected = "a finite peak, 0 <= floor <= 1, 0 <= warm-up <= steps",
                   .found = "peak " + std::to_string(schedule.peak) + ", floor " +
                            std::to_string(schedule.floor) + ", warm-up " +
                            std::to_string(schedule.warm_up) + " of " +
                            std::to_string(schedule.steps) + " steps",
                   .mend = "correct the learning rate's settings"});
}

}  // namespace wanamaker::inline WANAMAKER_ABI
