// Do predicted probabilities mean what they say? Reliability table, Brier score, calibration error.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/checks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// One row of a reliability table; only rows with positions are kept.
struct ReliabilityBin {
  double low = 0;  ///< predicted probabilities in [low, high), the last row's high included
  double high = 1;
  Index count = 0;
  double mean_predicted = 0;
  double share_positive = 0;
};

/// How far probabilities are what they say.
struct Calibration {
  std::vector<ReliabilityBin> bins{};
  double brier_score = 0;  ///< mean (p − y)² (Brier 1950)
  /// Σ over bins of count / n · |share positive − mean predicted| (Naeini, Cooper and Hauskrecht
  /// 2015). Depends on the bins, and is not 0 for a perfect gate on few positions.
  double expected_calibration_error = 0;
};

namespace detail {

inline void check_probabilities(std::span<const double> values, const char* where) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    check_probability(values[i], std::string(where) + ", element " + std::to_string(i));
  }
}

/// The bin with low ≤ p < high; p · bins alone may round across an edge.
inline std::size_t bin_of(double p, std::span<const ReliabilityBin> table) {
  const std::size_t last = table.size() - 1;
  const std::size_t guess =
      std::min(static_cast<std::size_t>(p * static_cast<double>(table.size())), last);
  if (p < table[guess].low) return guess - 1;
  return p >= table[guess].high && guess < last ? guess + 1 : guess;
}

inline std::vector<ReliabilityBin> reliability_bins(std::span<const double> predicted,
                                                    std::span<const std::uint8_t> labels,
                                                    Index bins) {
  std::vector<ReliabilityBin> table(static_cast<std::size_t>(bins));
  const double scale = static_cast<double>(bins);
  for (std::size_t b = 0; b < table.size(); ++b) {
    table[b].low = static_cast<double>(b) / scale;
    table[b].high = static_cast<double>(b + 1) / scale;
  }
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    ReliabilityBin& bin = table[bin_of(predicted[i], table)];
    ++bin.count;
    bin.mean_predicted += predicted[i];
    bin.share_positive += labels[i];
  }
  std::erase_if(table, [](const ReliabilityBin& bin) { return bin.count == 0; });
  for (ReliabilityBin& bin : table) {
    bin.mean_predicted /= static_cast<double>(bin.count);
    bin.share_positive /= static_cast<double>(bin.count);
  }
  return table;
}

}  // namespace detail

/// Compares predicted probabilities with labels (0 or 1) in `bins` rows of equal width. Throws
/// ShapeError ("stats/length-mismatch"), DataError ("stats/empty", "stats/probability",
/// "stats/label"), ProtocolError ("stats/bins").
inline Calibration calibrate(std::span<const double> predicted,
                             std::span<const std::uint8_t> labels, Index bins = 10) {
  detail::check_not_empty(predicted.size(), "calibrate(predicted)");
  detail::check_labels(labels, predicted.size(), "calibrate(labels)");
  detail::check_probabilities(predicted, "calibrate(predicted)");
  if (bins < 1 || bins > 10000) {
    throw ProtocolError({.id = "stats/bins",
                         .where = "calibrate(bins)",
                         .what = "unusable number of bins",
                         .expected = "1 to 10000",
                         .found = std::to_string(bins),
                         .mend = "use 10"});
  }
  const double n = static_cast<double>(predicted.size());
  Calibration calibration{.bins = detail::reliability_bins(predicted, labels, bins)};
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const double error = predicted[i] - labels[i];
    calibration.brier_score += error * error / n;
  }
  for (const ReliabilityBin& bin : calibration.bins) {
    calibration.expected_calibration_error +=
        static_cast<double>(bin.count) / n * std::abs(bin.share_positive - bin.mean_predicted);
  }
  return calibration;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
