// What the parts of a model take, in the terms in which a user pays: seconds a token as they were
// measured on a machine, or parameters.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What is to become less.
enum class CostKind {
  prefill,    ///< seconds a token where whole prompts are read
  decode,     ///< seconds a token where each sequence goes on by one token at a time
  parameters  ///< numbers to keep
};

/// The name in options and files.
constexpr std::string_view name_of(CostKind kind) {
  switch (kind) {
    case CostKind::prefill:
      return "prefill";
    case CostKind::decode:
      return "decode";
    case CostKind::parameters:
      break;
  }
  return "parameters";
}

inline std::optional<CostKind> cost_kind_named(std::string_view name) {
  for (const CostKind kind : {CostKind::prefill, CostKind::decode, CostKind::parameters}) {
    if (name_of(kind) == name) return kind;
  }
  return std::nullopt;
}

/// Costs by part: "rest" (all but the blocks), "block" (a whole one as it is), "mlp" (its MLP) and
/// every policy by its name. Blocks of one model are alike.
struct CostTable {
  CostKind kind = CostKind::decode;
  Index batch = 1;        ///< sequences at once
  Index layers = 0;       ///< of the model that it is of
  Index width = 0;        ///< d
  Index tokens = 0;       ///< of a sequence: that are read at once, or that are there already
  Index repetitions = 0;  ///< each figure is a median of so many; 0: it was counted
  std::map<std::string, double> parts{};

  /// Throws ProtocolError ("optimise/no-cost") for a part that the table has not.
  double at(const std::string& part) const {
    const auto found = parts.find(part);
    if (found != parts.end()) return found->second;
    throw ProtocolError({.id = "optimise/no-cost",
                         .where = "table of costs",
                         .what = "a part has no cost",
                         .expected = part,
                         .found = std::to_string(parts.size()) + " other parts",
                         .mend = "measure the costs anew, with the same ranks and shares"});
  }
};

/// Throws ProtocolError ("optimise/other-costs") where a table is of another kind, batch or model,
/// and as CostTable::at where it lacks a part.
inline void check_costs(const CostTable& table, const CostTable& wanted) {
  const bool fits = table.kind == wanted.kind && table.batch == wanted.batch &&
                    table.layers == wanted.layers && table.width == wanted.width;
  const auto text = [](const CostTable& t) {
    return std::string(name_of(t.kind)) + ", batch " + std::to_string(t.batch) + ", " +
           std::to_string(t.layers) + " layers of width " + std::to_string(t.width);
  };
  if (!fits) {
    throw ProtocolError({.id = "optimise/other-costs",
                         .where = "table of costs",
                         .what = "it was made for something else",
                         .expected = text(wanted),
                         .found = text(table),
                         .mend = "measure the costs anew"});
  }
  for (const auto& [part, cost] : wanted.parts) table.at(part);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
