// What the ladder's gates are called.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "wanamaker/core/error.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The names of the full ladder's gates, in the order of result files.
inline const std::vector<std::string>& ladder_gate_names() {
  static const std::vector<std::string> names{
      "random",           "first-position", "norm-rule",         "token-table",
      "gate-logistic",    "gate-cost",      "gate-delta",        "gate-pca-2",
      "gate-pca-6",       "gate-pca-12",    "gate-bottleneck-1", "gate-bottleneck-3",
      "gate-bottleneck-6"};
  return names;
}

inline bool is_ladder_gate(const std::string& name) {
  const std::vector<std::string>& names = ladder_gate_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether only the full ladder has it.
inline bool is_wider_gate(const std::string& name) {
  return name.starts_with("gate-pca-") || name.starts_with("gate-bottleneck-");
}

/// Whether it is one linear score of the MLP's input and a threshold.
inline bool is_linear_gate(const std::string& name) {
  return name.starts_with("gate-") && !name.starts_with("gate-bottleneck-");
}

/// Throws ProtocolError ("protocol/unknown-gate") for a name that no gate of the ladder has.
inline void check_gate_name(const std::string& name) {
  if (is_ladder_gate(name)) return;
  std::string all;
  for (const std::string& known : ladder_gate_names()) all += (all.empty() ? "" : ", ") + known;
  throw ProtocolError({.id = "protocol/unknown-gate",
                       .where = "gates",
                       .what = "no gate of the ladder has this name",
                       .expected = all,
                       .found = name,
                       .mend = "choose one of these"});
}

}  // namespace wanamaker::inline WANAMAKER_ABI
