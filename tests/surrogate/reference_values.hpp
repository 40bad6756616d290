// Values recorded from scikit-learn and NumPy by tests/reference/surrogate.py.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "surrogate_data.hpp"
#include "wanamaker/io/third_party/json.hpp"

namespace wanamaker_test {

inline const nlohmann::json& reference_values() {
  static const nlohmann::json values = [] {
    std::ifstream in(std::string(WANAMAKER_SOURCE_DIR) + "/tests/reference/surrogate.json");
    return nlohmann::json::parse(in);
  }();
  return values;
}

/// A matrix written as a list of rows, flat.
inline std::vector<double> flat(const nlohmann::json& rows) {
  std::vector<double> values;
  for (const auto& row : rows) {
    for (const auto& value : row) values.push_back(value.get<double>());
  }
  return values;
}

inline Data reference_data() {
  const auto& x = reference_values().at("x");
  const auto& y = reference_values().at("y");
  return {static_cast<Index>(x.size()), static_cast<Index>(x[0].size()),
          static_cast<Index>(y[0].size()), flat(x), flat(y)};
}

}  // namespace wanamaker_test
