// Values recorded from peer libraries by tests/reference/stats.py, and constants
// that these tests share.
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace wanamaker_test {

inline constexpr double epsilon = std::numeric_limits<double>::epsilon();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// The recorded numbers under group and key of tests/reference/stats.json; one for a single number.
std::vector<double> recorded(const std::string& group, const std::string& key);

/// The same of tests/reference/stats_structure.json, made by stats_structure.py.
std::vector<double> recorded_structure(const std::string& group, const std::string& key);

inline double recorded_number(const std::string& group, const std::string& key) {
  return recorded(group, key).at(0);
}

/// Recorded integers as the type that a function takes.
template <class T>
std::vector<T> recorded_as(const std::string& group, const std::string& key) {
  std::vector<T> values;
  for (const double value : recorded(group, key)) values.push_back(static_cast<T>(value));
  return values;
}

}  // namespace wanamaker_test
