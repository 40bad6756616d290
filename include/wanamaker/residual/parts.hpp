// The summands of the residual stream, and groups of them.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What writes to the residual stream.
enum class PartKind { token, position, attention, mlp };

/// "token", "position", "attention", "mlp".
constexpr const char* name_of(PartKind kind) {
  switch (kind) {
    case PartKind::token:
      return "token";
    case PartKind::position:
      return "position";
    case PartKind::attention:
      return "attention";
    case PartKind::mlp:
      return "mlp";
  }
  return "";
}

/// One summand of the residual stream: the token's embedding, that of its position where it is
/// learned, the output of one layer's attention or MLP.
struct ResidualPart {
  PartKind kind = PartKind::token;
  Index layer = -1;  ///< of attention and MLP; −1 for the embeddings

  /// "token", "position", "attention-3", "mlp-3".
  std::string name() const {
    const std::string kind_name = name_of(kind);
    return layer < 0 ? kind_name : kind_name + "-" + std::to_string(layer);
  }
  friend bool operator==(const ResidualPart&, const ResidualPart&) = default;
};

/// Some parts that are looked at together, by their numbers.
struct PartGroup {
  std::string name{};
  std::vector<Index> parts{};
};

/// The parts of each kind together: token, position, attention, mlp; kinds that do not occur are
/// left out.
inline std::vector<PartGroup> parts_by_kind(std::span<const ResidualPart> parts) {
  std::vector<PartGroup> groups;
  for (const PartKind kind :
       {PartKind::token, PartKind::position, PartKind::attention, PartKind::mlp}) {
    PartGroup group{.name = name_of(kind)};
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (parts[p].kind == kind) group.parts.push_back(static_cast<Index>(p));
    }
    if (!group.parts.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

/// The token's embedding against all that was added to it: "token" and "context". The position's
/// embedding is context, as it says nothing of which token stands there.
inline std::vector<PartGroup> token_and_context(std::span<const ResidualPart> parts) {
  std::vector<PartGroup> groups{{.name = "token"}, {.name = "context"}};
  for (std::size_t p = 0; p < parts.size(); ++p) {
    groups[parts[p].kind == PartKind::token ? 0 : 1].parts.push_back(static_cast<Index>(p));
  }
  return groups;
}

/// Every part on its own.
inline std::vector<PartGroup> single_parts(std::span<const ResidualPart> parts) {
  std::vector<PartGroup> groups;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    groups.push_back({.name = parts[p].name(), .parts = {static_cast<Index>(p)}});
  }
  return groups;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
