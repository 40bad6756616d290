// What may stand in the MLPs' places while a model writes, by the names that other results have.
#pragma once

#include <charconv>
#include <optional>
#include <string>

#include "wanamaker/core/index.hpp"
#include "wanamaker/study/gate_names.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// "none", "zero", "mean", "ridge", "rank-R", or the ridge map where a gate of the ladder says so.
struct MlpReplacement {
  enum class Kind { none, zero, mean, ridge, low_rank, gate };
  Kind kind = Kind::none;
  Index rank = 0;      ///< of low_rank
  std::string gate{};  ///< of gate: its name

  bool is_none() const { return kind == Kind::none; }
  bool is_gated() const { return kind == Kind::gate; }
  /// Whether it is fitted on texts.
  bool is_fitted() const { return kind != Kind::none && kind != Kind::zero; }
};

/// Whether files can hold it: maps, as MLPs, and gates of one linear score, beside the model.
inline bool is_exportable(const MlpReplacement& replacement) {
  return !replacement.is_gated() || is_linear_gate(replacement.gate);
}

inline std::string name_of(const MlpReplacement& replacement) {
  using Kind = MlpReplacement::Kind;
  switch (replacement.kind) {
    case Kind::none:
      return "none";
    case Kind::zero:
      return "zero";
    case Kind::mean:
      return "mean";
    case Kind::ridge:
      return "ridge";
    case Kind::low_rank:
      return "rank-" + std::to_string(replacement.rank);
    case Kind::gate:
      break;
  }
  return replacement.gate;
}

/// The replacement of that name. The ladder's random gate is none: it draws for whole sequences.
inline std::optional<MlpReplacement> replacement_named(const std::string& name) {
  using Kind = MlpReplacement::Kind;
  for (const Kind kind : {Kind::none, Kind::zero, Kind::mean, Kind::ridge}) {
    if (const MlpReplacement plain{kind, 0, {}}; name_of(plain) == name) return plain;
  }
  if (is_ladder_gate(name) && name != "random") return MlpReplacement{Kind::gate, 0, name};
  if (!name.starts_with("rank-")) return std::nullopt;
  Index rank = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + 5, end, rank);
  if (error != std::errc{} || rest != end || rank < 1) return std::nullopt;
  return MlpReplacement{Kind::low_rank, rank, {}};
}

}  // namespace wanamaker::inline WANAMAKER_ABI
