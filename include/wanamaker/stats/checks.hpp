// What the statistics demand of their input: equal lengths, finite numbers, probabilities.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI::detail {

/// Larger values are refused as nonsense: below it, sums of squares and cubes stay finite.
inline constexpr double largest_value = 1e100;

inline std::string number_text(double value) {
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

/// Throws DataError ("stats/non-finite") naming the first unusable element.
inline void check_finite(std::span<const double> values, std::string_view where) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i]) <= largest_value) continue;
    throw DataError({.id = "stats/non-finite",
                     .where = std::string(where) + ", element " + std::to_string(i),
                     .what = "unusable value",
                     .expected = "a finite number of at most 1e100 in magnitude",
                     .found = number_text(values[i]),
                     .mend = "find what made this value and leave it out or repair it"});
  }
}

/// Throws ShapeError ("stats/length-mismatch") unless both lengths agree.
inline void check_same_length(std::size_t expected, std::size_t found, std::string_view where) {
  if (expected == found) return;
  throw ShapeError({.id = "stats/length-mismatch",
                    .where = std::string(where),
                    .what = "lengths differ",
                    .expected = std::to_string(expected) + " elements",
                    .found = std::to_string(found),
                    .mend = "pass one element for each observation"});
}

/// Throws DataError ("stats/empty") where there is nothing to summarise.
inline void check_not_empty(std::size_t size, std::string_view where) {
  if (size > 0) return;
  throw DataError({.id = "stats/empty",
                   .where = std::string(where),
                   .what = "no values",
                   .expected = "at least one",
                   .mend = "pass the values to summarise"});
}

/// Throws DataError ("stats/probability") unless 0 ≤ p ≤ 1.
inline void check_probability(double p, std::string_view where) {
  if (p >= 0 && p <= 1) return;
  throw DataError({.id = "stats/probability",
                   .where = std::string(where),
                   .what = "not a probability",
                   .expected = "a number from 0 to 1",
                   .found = number_text(p),
                   .mend = "pass a probability, not a percentage"});
}

/// Throws DataError ("stats/probability") unless 0 < p < 1: confidence levels, significance levels.
inline void check_open_probability(double p, std::string_view where) {
  if (p > 0 && p < 1) return;
  throw DataError({.id = "stats/probability",
                   .where = std::string(where),
                   .what = "not a level",
                   .expected = "a number between 0 and 1, both excluded",
                   .found = number_text(p),
                   .mend = "pass for example 0.95, not 95"});
}

/// Throws ShapeError ("stats/length-mismatch"), DataError ("stats/label") unless there is a label 0
/// or 1 for each of `count` observations.
inline void check_labels(std::span<const std::uint8_t> labels, std::size_t scores,
                         std::string_view where) {
  check_same_length(scores, labels.size(), where);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] <= 1) continue;
    throw DataError({.id = "stats/label",
                     .where = std::string(where) + ", element " + std::to_string(i),
                     .what = "not a label",
                     .expected = "0 or 1",
                     .found = std::to_string(labels[i]),
                     .mend = "label positives 1 and negatives 0"});
  }
}

/// Throws ProtocolError ("stats/resamples") unless an interval can be read from so many.
inline void check_resamples(Index resamples, std::string_view where) {
  if (resamples >= 100 && resamples <= 10'000'000) return;
  throw ProtocolError({.id = "stats/resamples",
                       .where = std::string(where),
                       .what = "unusable number of resamples",
                       .expected = "100 to 10000000",
                       .found = std::to_string(resamples),
                       .mend = "leave the default"});
}

}  // namespace wanamaker::inline WANAMAKER_ABI::detail
