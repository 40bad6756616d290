// What stands in the MLP's place of each layer of a model to train, in a few words:
// "ends:dense:1024,middle:affine".
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/nn/config.hpp"
#include "wanamaker/train/parameter_selection.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What a layer of a plan computes in the MLP's place.
enum class MlpKind {
  dense,     ///< the family's MLP with H hidden units
  affine,    ///< x·W + b
  low_rank,  ///< (x·P)·Q + b of rank R
  hybrid,    ///< an affine path plus the family's MLP with H hidden units
  gated,     ///< a learned gate between an affine map and the family's MLP with H hidden units
  zero       ///< nothing
};

/// A size that is solved for, written "?".
inline constexpr Index size_to_solve = -1;

/// The MLP of one layer.
struct LayerMlp {
  MlpKind kind = MlpKind::dense;
  Index size = 0;  ///< H or R; 0 where the kind has none

  friend bool operator==(const LayerMlp&, const LayerMlp&) = default;
};

/// The MLPs of all layers, from the first on.
using MlpPlan = std::vector<LayerMlp>;

namespace detail {

/// A kind, and whether its size must, may or cannot be given; what may be left out is the model's.
struct MlpKindRule {
  enum class Size { none, optional, required };
  std::string_view name;
  MlpKind kind;
  Size size;
};

inline constexpr std::array<MlpKindRule, 6> mlp_kinds = {
    {{"dense", MlpKind::dense, MlpKindRule::Size::optional},
     {"affine", MlpKind::affine, MlpKindRule::Size::none},
     {"low-rank", MlpKind::low_rank, MlpKindRule::Size::required},
     {"hybrid", MlpKind::hybrid, MlpKindRule::Size::required},
     {"gated", MlpKind::gated, MlpKindRule::Size::optional},
     {"zero", MlpKind::zero, MlpKindRule::Size::none}}};

}  // namespace detail

/// The kind's name in plans.
constexpr std::string_view name_of(MlpKind kind) {
  return detail::mlp_kinds[static_cast<std::size_t>(kind)].name;
}

/// How many layers at either end are called "ends": a quarter of all, but one at least.
constexpr Index layers_of_an_end(Index layers) {
  return std::max<Index>(1, layers / 4);
}

namespace detail {

/// Layers first … last.
struct LayerRange {
  Index first = 0;
  Index last = -1;

  bool has(Index layer) const { return layer >= first && layer <= last; }
};

/// Reads one item LAYERS:KIND:SIZE of a plan.
class MlpPlanItem {
 public:
  MlpPlanItem(std::string_view text, const ModelConfig& config) : text_(text), config_(config) {
    const std::size_t colon = text.find(':');
    if (colon == text.npos) refuse("no kind of MLP is named", "LAYERS:KIND:SIZE");
    read_layers(text.substr(0, colon));
    const std::string_view rest = text.substr(colon + 1);
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const MlpKindRule& rule = rule_named(rest.substr(0, end));
    mlp_ = {rule.kind,
            size_by(rule, end < rest.size() ? std::optional<std::string_view>(rest.substr(end + 1))
                                            : std::nullopt)};
  }

  void put_into(MlpPlan& plan) const {
    for (std::size_t l = 0; l < plan.size(); ++l) {
      const bool chosen = std::any_of(ranges_.begin(), ranges_.end(), [l](const LayerRange& r) {
        return r.has(static_cast<Index>(l));
      });
      if (chosen) plan[l] = mlp_;
    }
  }

 private:
  void read_layers(std::string_view name) {
    const Index last = config_.layers - 1, end = layers_of_an_end(config_.layers);
    if (name == "all") return ranges_.push_back({0, last});
    if (name == "ends") {
      ranges_ = {{0, end - 1}, {last - end + 1, last}};
    } else if (name == "middle") {
      ranges_ = {{end, last - end}};
    } else {
      ranges_ = {numbered_range(name)};
    }
    if (name == "middle" && ranges_.front().first > ranges_.front().last) {
      refuse("the model has no middle layers", "three layers or more");
    }
  }

  LayerRange numbered_range(std::string_view name) const {
    const std::size_t dash = std::min(name.find('-'), name.size());
    const auto first = whole_number(name.substr(0, dash));
    const auto last = dash < name.size() ? whole_number(name.substr(dash + 1)) : first;
    if (first && last && *first <= *last && *last < config_.layers) return {*first, *last};
    refuse("no such layers", "a layer or FIRST-LAST from 0 to " +
                                 std::to_string(config_.layers - 1) + ", or all, ends or middle");
  }

  const MlpKindRule& rule_named(std::string_view name) const {
    for (const MlpKindRule& rule : mlp_kinds) {
      if (rule.name == name) return rule;
    }
    refuse("no such kind of MLP", "dense, affine, low-rank, hybrid, gated or zero");
  }

  Index size_by(const MlpKindRule& rule, std::optional<std::string_view> size) const {
    using Size = MlpKindRule::Size;
    if (!size && rule.size == Size::none) return 0;
    if (!size && rule.size == Size::optional) return config_.hidden;
    if (size && rule.size == Size::none) refuse("this kind has no size", "LAYERS:KIND");
    if (size && *size == "?") return size_to_solve;
    const auto number = size ? whole_number(*size) : std::nullopt;
    constexpr Index largest = 1 << 24;
    if (number && *number >= 1 && *number <= largest) return *number;
    refuse("no usable size",
           rule.kind == MlpKind::low_rank ? "a rank of 1 or more" : "hidden units, 1 or more");
  }

  [[noreturn]] void refuse(std::string what, std::string expected) const {
    throw DataError({.id = "training/mlp-plan",
                     .where = "plan of the layers' MLPs",
                     .what = std::move(what),
                     .expected = std::move(expected),
                     .found = "'" + std::string(text_) + "'",
                     .mend = "write items such as 0:dense:1024,1-4:affine,5:dense:1024"});
  }

  std::string_view text_;
  const ModelConfig& config_;
  std::vector<LayerRange> ranges_{};
  LayerMlp mlp_{};
};

}  // namespace detail

/// The family's own MLPs, as the configuration has them.
inline MlpPlan dense_plan(const ModelConfig& config) {
  return MlpPlan(static_cast<std::size_t>(config.layers), {MlpKind::dense, config.hidden});
}

/// A plan from items LAYERS:KIND or LAYERS:KIND:SIZE with commas between, of which a later one
/// overrides an earlier one; layers that none names have the family's MLP. LAYERS: a number from 0,
/// FIRST-LAST, all, ends or middle (layers_of_an_end). KIND and SIZE: dense or dense:H, affine,
/// low-rank:R, hybrid:H, gated or gated:H, zero; H is the model's where it is left out, and a "?"
/// is to be solved for (solve_plan). Throws DataError ("training/mlp-plan").
inline MlpPlan parse_mlp_plan(std::string_view text, const ModelConfig& config) {
  MlpPlan plan = dense_plan(config);
  for (bool more = !text.empty(); more;) {
    const std::size_t comma = text.find(',');
    more = comma != text.npos;
    detail::MlpPlanItem(text.substr(0, comma), config).put_into(plan);
    if (more) text.remove_prefix(comma + 1);
  }
  return plan;
}

/// "gated:96".
inline std::string text_of(const LayerMlp& mlp) {
  const std::string kind(name_of(mlp.kind));
  if (mlp.size == 0) return kind;
  return kind + ":" + (mlp.size == size_to_solve ? "?" : std::to_string(mlp.size));
}

/// The plan as parse_mlp_plan reads it, equal neighbours together: "0:dense:1024,1-4:affine".
inline std::string text_of(const MlpPlan& plan) {
  std::string text;
  for (std::size_t first = 0; first < plan.size();) {
    std::size_t last = first;
    while (last + 1 < plan.size() && plan[last + 1] == plan[first]) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
    text += ":" + text_of(plan[first]);
    first = last + 1;
  }
  return text;
}

/// Does the plan have layers of that kind?
inline bool has_kind(const MlpPlan& plan, MlpKind kind) {
  return std::any_of(plan.begin(), plan.end(),
                     [kind](const LayerMlp& mlp) { return mlp.kind == kind; });
}

/// Does the plan have a size to solve for?
inline bool is_to_solve(const MlpPlan& plan) {
  return std::any_of(plan.begin(), plan.end(),
                     [](const LayerMlp& mlp) { return mlp.size == size_to_solve; });
}

}  // namespace wanamaker::inline WANAMAKER_ABI
