// The settings of a paired comparison.
#pragma once

#include <cstdint>
#include <optional>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/checks.hpp"
#include "wanamaker/stats/paired_comparison.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// From so many documents on, the bootstrap is the default; below it Student's t.
inline constexpr Index bootstrap_documents = 40;

/// Settings of compare_paired.
struct PairedOptions {
  double level = 0.95;      ///< of the two-sided intervals
  Index resamples = 10000;  ///< 100 to 10,000,000
  std::uint64_t seed = 0;
  double null_nats = 0;  ///< Δ under the hypothesis that p-values test
  /// cluster_t, percentile or bca; missing: percentile from 40 documents on,
  /// cluster_t below.
  std::optional<IntervalMethod> method{};
  /// Widens bootstrap intervals by √(m / (m − 1)) · t_{m−1} / z for m documents; without it they
  /// cover too rarely up to some hundred documents. Off: as other software has them.
  bool expand = true;
};

namespace detail {

inline void check_options(const PairedOptions& options) {
  check_open_probability(options.level, "compare_paired(level)");
  check_finite({&options.null_nats, 1}, "compare_paired(null_nats)");
  check_resamples(options.resamples, "compare_paired(resamples)");
  if (options.method == IntervalMethod::identical) {
    throw ProtocolError({.id = "stats/interval-method",
                         .where = "compare_paired(method)",
                         .what = "not a method that can be asked for",
                         .expected = "cluster-t, percentile or bca",
                         .found = "identical",
                         .mend = "leave the method open"});
  }
}

}  // namespace detail

}  // namespace wanamaker::inline WANAMAKER_ABI
