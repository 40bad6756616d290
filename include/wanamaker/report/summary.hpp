// A whole study of one model on one page of text.
#pragma once

#include <string>

#include "wanamaker/report/result_tables.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// One sentence above a gate-curve table.
inline std::string gate_curve_headline(const GateCurveResult& r) {
  return r.model.name +
         ": how many positions each layer's logistic gate may send to the linear "
         "map for at most " +
         signed_text(r.max_loss_percent, 1) +
         " % perplexity (chosen on the select split, measured on the report split), and the area "
         "under cost against share in thousandths of a nat:";
}

/// One sentence above a compound table.
inline std::string compound_headline(const CompoundResult& r) {
  return r.model.name + ": many layers replaced at once; perplexity of the full model " +
         fixed_text(r.baseline.perplexity, 2) + " on " + std::to_string(r.baseline.tokens) +
         " tokens:";
}

namespace detail {

inline const CompoundVariant* compound_named(const CompoundResult& r, const std::string& name) {
  for (const CompoundVariant& v : r.variants) {
    if (v.name == name) return &v;
  }
  return nullptr;
}

inline std::string cost_sentence(const CompoundVariant& v) {
  return signed_text(v.comparison.delta_percent, 1) + " % perplexity, interval " +
         interval_text(v.comparison);
}

inline std::string compound_line(const CompoundResult& r, const std::string& name,
                                 const std::string& title) {
  const CompoundVariant* v = compound_named(r, name);
  if (v == nullptr) return "";
  return "  " + title + ": " + cost_sentence(*v) + "; saves " +
         percent_text(1 - v->flops_fraction_mlp) + " of the MLPs' FLOPs, " +
         percent_text(1 - v->flops_fraction_total) + " of all.\n";
}

}  // namespace detail

/// What may be had within the allowed loss.
inline std::string compound_choice(const CompoundResult& r) {
  const std::string limit = fixed_text(r.max_loss_percent, 1) + " % on the select split";
  if (!r.chosen) return "Nothing that was tried stays within " + limit + ".";
  const CompoundVariant* v = detail::compound_named(r, *r.chosen);
  if (v == nullptr) return "";
  return "Cheapest within " + limit + ": " + v->name + " (layers " +
         detail::layers_text(v->layers) + "), " + detail::cost_sentence(*v) + "; it saves " +
         detail::percent_text(1 - v->flops_fraction_mlp) + " of the MLPs' FLOPs, " +
         detail::percent_text(1 - v->flops_fraction_total) + " of all.";
}

/// Cost by layer of a constant, the linear map, the gate beside random routing at its rate, and
/// what the gate may route within the allowed loss.
inline TextTable summary_table(const SweepResult& sweep, const GateCurveResult& curves) {
  TextTable table({"layer", "mean", "linear", "95 % interval", "gate", "random", "routed", "AUC",
                   "routable", "verdict"});
  for (const LayerResult& layer : sweep.layers) {
    const VariantResult* ridge = detail::variant_named(layer, "ridge");
    const VariantResult* gate = detail::variant_named(layer, "gate-logistic");
    std::string routable = "–";
    for (const CurveLayer& c : curves.layers) {
      if (c.layer != layer.layer) continue;
      routable = detail::routed_text(detail::operating_point(detail::curve_of(c, "gate-logistic")));
    }
    table.add({std::to_string(layer.layer), detail::percent_of(layer, "mean"),
               detail::percent_of(layer, "ridge"),
               ridge == nullptr ? "–" : detail::interval_text(ridge->comparison),
               detail::percent_of(layer, "gate-logistic"), detail::percent_of(layer, "random"),
               gate == nullptr || !gate->fraction_linear
                   ? "–"
                   : detail::percent_text(*gate->fraction_linear),
               gate == nullptr || !gate->auc ? "–" : fixed_text(*gate->auc, 3), routable,
               detail::verdict(layer)});
  }
  return table;
}

/// The page: what was measured, a line for each layer, all layers at once, what may be had.
inline std::string summary_text(const SweepResult& sweep, const GateCurveResult& curves,
                                const CompoundResult& compound) {
  const std::string limit = fixed_text(curves.max_loss_percent, 1);
  std::string text = sweep_headline(sweep) + "\n" + summary_table(sweep, curves).aligned();
  text +=
      "mean, linear: that in the MLP's place. gate, random: the linear map at the routed "
      "positions, the MLP elsewhere. routable: what the gate may route for " +
      limit + " %.\n\nAll chosen layers at once:\n";
  text += detail::compound_line(compound, "mean", "mean outputs");
  text += detail::compound_line(compound, "naive-linear", "linear maps fitted alone");
  text += detail::compound_line(compound, "sequential-linear", "linear maps fitted in sequence");
  text += detail::compound_line(compound, "naive-random", "random routing");
  text += detail::compound_line(compound, "naive-gate", "gates fitted alone");
  text += detail::compound_line(compound, "sequential-gate", "gates fitted in sequence");
  return text + compound_choice(compound) + "\n";
}

}  // namespace wanamaker::inline WANAMAKER_ABI
