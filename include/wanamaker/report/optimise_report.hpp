// The search for a cheaper model, for people: the verdict first, then before and after beside the
// plain ways, then every path.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "wanamaker/report/curve_svg.hpp"
#include "wanamaker/report/result_tables.hpp"
#include "wanamaker/study/optimise_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline const OptimisePoint* chosen_point(const OptimisePath& path) {
  return path.chosen ? &path.points[static_cast<std::size_t>(*path.chosen)] : nullptr;
}

/// "decode, batch 1".
inline std::string cost_text(const OptimiseOptions& o) {
  const std::string name(name_of(o.cost));
  return o.cost == CostKind::parameters ? name : name + ", batch " + std::to_string(o.batch);
}

/// "1 3-5: affine; 2: gate-0.5".
inline std::string changes_text(const OptimisePoint& point) {
  std::vector<std::pair<std::string, std::vector<Index>>> by_name;
  for (const BlockChange& c : point.changes) {
    if (by_name.empty() || by_name.back().first != c.now) by_name.push_back({c.now, {}});
    by_name.back().second.push_back(c.layer);
  }
  std::string text;
  for (const auto& [name, layers] : by_name) {
    text += (text.empty() ? "" : "; ") + layers_text(layers) + ": " + name;
  }
  return text;
}

inline std::string speed_text(const OptimiseResult& r, const std::string& name) {
  for (const MeasuredSpeed& s : r.speeds) {
    if (s.name == name) return fixed_text(s.tokens_per_second, 0);
  }
  return "–";
}

inline std::string other_loss_text(const std::optional<OtherText>& t) {
  return t ? signed_text(t->comparison.delta_percent, 2) : "–";
}

}  // namespace detail

/// The verdict, in one line.
inline std::string optimise_headline(const OptimiseResult& r) {
  const std::string limit = fixed_text(r.options.max_loss_percent, 2) + " %";
  const std::string begin = r.model.name + ", " + detail::cost_text(r.options) + ": ";
  const OptimisePoint* p = detail::chosen_point(r.paths.front());
  if (p == nullptr) {
    return begin + "nothing pays at a loss of " + limit +
           ": no policy that was tried costs less within it.";
  }
  const bool shown = p->verdict == NonInferiorityVerdict::non_inferior;
  const bool refuted = p->verdict == NonInferiorityVerdict::inferior;
  return begin + detail::percent_text(p->cost_fraction) + " of the cost with " +
         std::to_string(p->changes.size()) + " of " + std::to_string(r.model.layers) +
         " layers changed, " + signed_text(p->comparison.delta_percent, 2) + " % perplexity " +
         detail::interval_text(p->comparison) + "; " +
         (shown     ? "shown to lose less than "
          : refuted ? "shown to lose more than "
                    : "not shown to lose less than ") +
         limit + " on documents that no choice saw.";
}

/// The model as it is and each way's choice.
inline TextTable optimise_table(const OptimiseResult& r) {
  TextTable table({"model", "layers", "cost", "perplexity", "loss %", "95 % interval",
                   "within the loss", "other text %", "tokens a second", "parameters", "MB"});
  const auto sizes = [](double parameters, double bytes) {
    return std::pair(fixed_text(parameters, 0), fixed_text(bytes / 1e6, 2));
  };
  const auto [parameters, bytes] = sizes(r.model.parameters, r.weight_bytes);
  table.add({"original", "–", detail::percent_text(1), fixed_text(r.baseline.perplexity, 2), "–",
             "–", "–", "–", detail::speed_text(r, "original"), parameters, bytes});
  for (const OptimisePath& path : r.paths) {
    const OptimisePoint* p = detail::chosen_point(path);
    if (p == nullptr) {
      table.add({path.name, "nothing", "–", "–", "–", "–", "–", "–", "–", "–", "–"});
      continue;
    }
    const auto [own_parameters, own_bytes] = sizes(p->parameters, p->weight_bytes);
    table.add({path.name, detail::changes_text(*p), detail::percent_text(p->cost_fraction),
               fixed_text(p->perplexity, 2), signed_text(p->comparison.delta_percent, 2),
               detail::interval_text(p->comparison), detail::verdict_text(p->verdict),
               detail::other_loss_text(path.other), detail::speed_text(r, path.name),
               own_parameters, own_bytes});
  }
  return table;
}

/// Every point of every path; a star marks what was chosen.
inline TextTable frontier_table(const OptimiseResult& r) {
  TextTable table(
      {"path", "move", "cost", "select %", "loss %", "95 % interval", "within the loss", "chosen"});
  for (const OptimisePath& path : r.paths) {
    for (std::size_t i = 0; i < path.points.size(); ++i) {
      const OptimisePoint& p = path.points[i];
      table.add({path.name, p.move, detail::percent_text(p.cost_fraction),
                 signed_text(p.select_delta_percent, 2), signed_text(p.comparison.delta_percent, 2),
                 detail::interval_text(p.comparison), detail::verdict_text(p.verdict),
                 path.chosen == static_cast<Index>(i) ? "*" : ""});
    }
  }
  return table;
}

/// Before and after healing; empty where there was none.
inline std::string healing_text(const OptimiseResult& r) {
  if (!r.healed) return "";
  const HealedModel& h = *r.healed;
  return "Healed on " + std::to_string(h.tokens) + " tokens: divergence from the original " +
         fixed_text(h.first_loss, 4) + " → " + fixed_text(h.last_loss, 4) + " nats, perplexity " +
         fixed_text(h.perplexity, 2) + ", " + signed_text(h.comparison.delta_percent, 2) + " % " +
         detail::interval_text(h.comparison) + ", other text " + detail::other_loss_text(h.other) +
         " %; within the loss: " + detail::verdict_text(h.verdict) + ".\n";
}

/// The same, unrounded.
inline TextTable optimise_csv(const OptimiseResult& r) {
  TextTable table({"path",
                   "point",
                   "chosen",
                   "move",
                   "changes",
                   "cost",
                   "cost_fraction",
                   "parameters",
                   "weight_bytes",
                   "select_nll_sum",
                   "select_delta_percent",
                   "within",
                   "perplexity",
                   "nll_sum",
                   "delta_nats",
                   "delta_percent",
                   "ci_low_percent",
                   "ci_high_percent",
                   "p_value",
                   "verdict"});
  for (const OptimisePath& path : r.paths) {
    for (std::size_t i = 0; i < path.points.size(); ++i) {
      const OptimisePoint& p = path.points[i];
      const PairedComparison& c = p.comparison;
      table.add({path.name,
                 std::to_string(i),
                 path.chosen == static_cast<Index>(i) ? "1" : "0",
                 p.move,
                 detail::changes_text(p),
                 exact_text(p.cost),
                 exact_text(p.cost_fraction),
                 exact_text(p.parameters),
                 exact_text(p.weight_bytes),
                 exact_text(p.select_nll_sum),
                 exact_text(p.select_delta_percent),
                 p.within ? "1" : "0",
                 exact_text(p.perplexity),
                 exact_text(p.nll_sum),
                 exact_text(c.delta_nats),
                 exact_text(c.delta_percent),
                 detail::optional_text(c.ci_low_percent),
                 detail::optional_text(c.ci_high_percent),
                 detail::optional_text(c.p_value),
                 std::string(name_of(p.verdict))});
    }
  }
  return table;
}

/// Perplexity against cost along every path, from the original on.
inline std::string optimise_svg(const OptimiseResult& r) {
  std::vector<Curve> curves;
  for (const OptimisePath& path : r.paths) {
    Curve curve{path.name, {100}, {0}};
    for (const OptimisePoint& p : path.points) {
      curve.x.push_back(100 * p.cost_fraction);
      curve.y.push_back(p.comparison.delta_percent);
    }
    curves.push_back(std::move(curve));
  }
  return curve_svg(curves, {r.model.name + ": perplexity against cost",
                            "cost (" + detail::cost_text(r.options) + "), % of the original's",
                            "change of perplexity, %"});
}

}  // namespace wanamaker::inline WANAMAKER_ABI
