// Results as short tables for people, and as CSV for spreadsheets.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "wanamaker/report/text_table.hpp"
#include "wanamaker/study/compound_result.hpp"
#include "wanamaker/study/gate_curve_result.hpp"
#include "wanamaker/study/generate_result.hpp"
#include "wanamaker/study/perplexity.hpp"
#include "wanamaker/study/sweep_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline std::string optional_text(const std::optional<double>& value) {
  return value ? exact_text(*value) : std::string();
}

inline std::string interval_text(const PairedComparison& c) {
  if (!c.ci_low_percent || !c.ci_high_percent) return "–";
  return "[" + signed_text(*c.ci_low_percent, 2) + ", " + signed_text(*c.ci_high_percent, 2) + "]";
}

inline const VariantResult* variant_named(const LayerResult& layer, const std::string& name) {
  for (const VariantResult& v : layer.variants) {
    if (v.name == name) return &v;
  }
  return nullptr;
}

}  // namespace detail

/// One line for each model; last words where they were measured.
inline TextTable perplexity_table(const std::vector<PerplexityResult>& results) {
  const bool has_last_words =
      std::any_of(results.begin(), results.end(),
                  [](const PerplexityResult& r) { return r.last_words.has_value(); });
  std::vector<std::string> header = {"model",      "documents",     "tokens",
                                     "perplexity", "bits per byte", "word perplexity"};
  if (has_last_words) header.insert(header.end(), {"last-word accuracy", "last-word perplexity"});
  TextTable table(header);
  for (const PerplexityResult& r : results) {
    std::vector<std::string> line = {r.model.name,
                                     std::to_string(r.documents),
                                     std::to_string(r.tokens),
                                     fixed_text(r.perplexity, 2),
                                     r.bits_per_byte ? fixed_text(*r.bits_per_byte, 3) : "–",
                                     r.word_perplexity ? fixed_text(*r.word_perplexity, 1) : "–"};
    if (has_last_words) {
      line.push_back(r.last_words ? fixed_text(r.last_words->accuracy, 4) : "–");
      line.push_back(r.last_words ? fixed_text(r.last_words->perplexity, 2) : "–");
    }
    table.add(line);
  }
  return table;
}

/// Losses by document.
inline TextTable perplexity_csv(const PerplexityResult& r) {
  TextTable table({"document", "tokens", "nll_sum", "perplexity"});
  for (const DocumentLoss& d : r.document_losses) {
    const double tokens = static_cast<double>(d.tokens);
    table.add({d.name, std::to_string(d.tokens), exact_text(d.nll_sum),
               d.tokens > 0 ? exact_text(perplexity_of(d.nll_sum / tokens)) : ""});
  }
  return table;
}

/// One sentence above a sweep's table.
inline std::string sweep_headline(const SweepResult& r) {
  return r.model.name + ": perplexity " + fixed_text(r.baseline.perplexity, 2) + " on " +
         std::to_string(r.baseline.tokens) + " tokens of " + std::to_string(r.baseline.documents) +
         " documents that no fit has seen. What replacing one layer's MLP changes, in per cent of "
         "perplexity:";
}

namespace detail {

inline std::string percent_of(const LayerResult& layer, const std::string& variant) {
  const VariantResult* v = variant_named(layer, variant);
  return v == nullptr ? "–" : signed_text(v->comparison.delta_percent, 2);
}

// What the linear map's line says: worse than nothing learned, or a cost, a gain, or neither.
inline std::string verdict(const LayerResult& layer) {
  const VariantResult* ridge = variant_named(layer, "ridge");
  const VariantResult* mean = variant_named(layer, "mean");
  if (ridge == nullptr) return "–";
  const double linear = ridge->comparison.delta_percent;
  if (mean != nullptr && mean->comparison.delta_percent <= linear) {
    return "a constant does as well";
  }
  if (!ridge->p_holm || *ridge->p_holm >= 0.05) return "no difference shown";
  return linear > 0 ? "costs" : "gains";
}

}  // namespace detail

/// What replacing each layer's MLP costs: the linear map beside a constant and nothing. The verdict
/// is by Holm's p over the layers at 5 %.
inline TextTable sweep_table(const SweepResult& result) {
  TextTable table({"layer", "R²", "linear", "95 % interval", "mean", "nothing", "verdict"});
  for (const LayerResult& layer : result.layers) {
    const VariantResult* ridge = detail::variant_named(layer, "ridge");
    table.add({std::to_string(layer.layer), fixed_text(layer.r2, 3),
               detail::percent_of(layer, "ridge"),
               ridge == nullptr ? "–" : detail::interval_text(ridge->comparison),
               detail::percent_of(layer, "mean"), detail::percent_of(layer, "zero"),
               detail::verdict(layer)});
  }
  return table;
}

/// What gates save and cost, by layer, beside random routing at the same rate; empty without gates.
inline TextTable gate_table(const SweepResult& result) {
  TextTable table({"layer", "routed", "logistic gate", "95 % interval", "random", "token table",
                   "oracle", "AUC"});
  for (const LayerResult& layer : result.layers) {
    const VariantResult* gate = detail::variant_named(layer, "gate-logistic");
    if (gate == nullptr || !gate->fraction_linear) continue;
    table.add({std::to_string(layer.layer), fixed_text(100 * *gate->fraction_linear, 1) + " %",
               detail::percent_of(layer, "gate-logistic"), detail::interval_text(gate->comparison),
               detail::percent_of(layer, "random"), detail::percent_of(layer, "token-table"),
               detail::percent_of(layer, "oracle"), gate->auc ? fixed_text(*gate->auc, 3) : "–"});
  }
  return table;
}

/// Every variant of every layer.
inline TextTable sweep_csv(const SweepResult& result) {
  TextTable table({"layer", "variant", "parameters", "perplexity", "nll_sum", "delta_nats",
                   "delta_percent", "ci_low_percent", "ci_high_percent", "p_value", "p_holm",
                   "p_bh", "auc", "fraction_linear", "flops_fraction_mlp", "flops_fraction_total"});
  for (const LayerResult& layer : result.layers) {
    for (const VariantResult& v : layer.variants) {
      const PairedComparison& c = v.comparison;
      table.add({std::to_string(layer.layer), v.name, exact_text(v.parameters),
                 exact_text(v.perplexity), exact_text(v.nll_sum), exact_text(c.delta_nats),
                 exact_text(c.delta_percent), detail::optional_text(c.ci_low_percent),
                 detail::optional_text(c.ci_high_percent), detail::optional_text(c.p_value),
                 detail::optional_text(v.p_holm), detail::optional_text(v.p_bh),
                 detail::optional_text(v.auc), detail::optional_text(v.fraction_linear),
                 detail::optional_text(v.flops_fraction_mlp),
                 detail::optional_text(v.flops_fraction_total)});
    }
  }
  return table;
}

namespace detail {

inline std::string percent_text(double share) {
  return fixed_text(100 * share, 1) + " %";
}

inline const GateCurve* curve_of(const CurveLayer& layer, const std::string& gate) {
  for (const GateCurve& c : layer.curves) {
    if (c.gate == gate) return &c;
  }
  return nullptr;
}

// The gate that saves most of the area under the random curve, references and random left out.
inline const GateCurve* best_curve(const CurveLayer& layer) {
  const GateCurve* best = nullptr;
  for (const GateCurve& c : layer.curves) {
    if (c.gate == "oracle" || c.gate == "random") continue;
    if (best == nullptr || c.area_below_random > best->area_below_random) best = &c;
  }
  return best;
}

inline const CurvePoint* operating_point(const GateCurve* curve) {
  if (curve == nullptr || !curve->operating_point) return nullptr;
  return &curve->points[static_cast<std::size_t>(*curve->operating_point)];
}

inline std::string routed_text(const CurvePoint* point) {
  if (point == nullptr || !point->result.fraction_linear) return "0.0 %";
  return percent_text(*point->result.fraction_linear);
}

inline std::string cost_text(const CurvePoint* point) {
  return point == nullptr ? "–" : signed_text(point->result.comparison.delta_percent, 2);
}

}  // namespace detail

/// How much each layer's logistic gate may route within the allowed loss, chosen on the select
/// split, beside what random routing may; areas in thousandths of a nat per token.
inline TextTable gate_curve_table(const GateCurveResult& result) {
  TextTable table({"layer", "routed", "cost %", "95 % interval", "random routed", "area", "random",
                   "oracle", "best gate"});
  for (const CurveLayer& layer : result.layers) {
    const GateCurve* gate = detail::curve_of(layer, "gate-logistic");
    const GateCurve* random = detail::curve_of(layer, "random");
    const GateCurve* oracle = detail::curve_of(layer, "oracle");
    const GateCurve* best = detail::best_curve(layer);
    const CurvePoint* point = detail::operating_point(gate);
    const auto area = [](const GateCurve* c) {
      return c == nullptr ? "–" : signed_text(1000 * c->area_nats, 2);
    };
    table.add({std::to_string(layer.layer), detail::routed_text(point), detail::cost_text(point),
               point == nullptr ? "–" : detail::interval_text(point->result.comparison),
               detail::routed_text(detail::operating_point(random)), area(gate), area(random),
               area(oracle), best == nullptr ? "–" : best->gate});
  }
  return table;
}

/// Every point of every curve.
inline TextTable gate_curve_csv(const GateCurveResult& result) {
  TextTable table({"layer", "gate", "target", "threshold", "fraction_linear",
                   "select_delta_percent", "perplexity", "nll_sum", "delta_nats", "delta_percent",
                   "ci_low_percent", "ci_high_percent", "flops_fraction_mlp",
                   "flops_fraction_total"});
  for (const CurveLayer& layer : result.layers) {
    for (const GateCurve& curve : layer.curves) {
      for (const CurvePoint& p : curve.points) {
        const PairedComparison& c = p.result.comparison;
        table.add({std::to_string(layer.layer), curve.gate, exact_text(p.target),
                   detail::optional_text(p.result.threshold),
                   detail::optional_text(p.result.fraction_linear),
                   detail::optional_text(p.select_delta_percent), exact_text(p.result.perplexity),
                   exact_text(p.result.nll_sum), exact_text(c.delta_nats),
                   exact_text(c.delta_percent), detail::optional_text(c.ci_low_percent),
                   detail::optional_text(c.ci_high_percent),
                   detail::optional_text(p.result.flops_fraction_mlp),
                   detail::optional_text(p.result.flops_fraction_total)});
      }
    }
  }
  return table;
}

namespace detail {

inline std::string layers_text(const std::vector<Index>& layers) {
  std::string text;
  for (const Index l : layers) text += (text.empty() ? "" : " ") + std::to_string(l);
  return text;
}

}  // namespace detail

namespace detail {

inline std::string verdict_text(NonInferiorityVerdict verdict) {
  switch (verdict) {
    case NonInferiorityVerdict::non_inferior:
      return "yes";
    case NonInferiorityVerdict::inferior:
      return "no";
    default:
      return "undecided";
  }
}

}  // namespace detail

/// Several layers at once; a star marks what no other variant beats on the select split.
inline TextTable compound_table(const CompoundResult& result) {
  TextTable table({"variant", "layers", "routed", "MLP FLOPs", "all FLOPs", "perplexity", "cost %",
                   "95 % interval", "within the loss", "frontier"});
  for (const CompoundVariant& v : result.variants) {
    table.add({v.name, std::to_string(v.layers.size()), detail::percent_text(v.fraction_linear),
               detail::percent_text(v.flops_fraction_mlp),
               detail::percent_text(v.flops_fraction_total), fixed_text(v.perplexity, 2),
               signed_text(v.comparison.delta_percent, 2), detail::interval_text(v.comparison),
               detail::verdict_text(v.verdict), v.on_frontier ? "*" : ""});
  }
  return table;
}

/// Every variant of a compound run.
inline TextTable compound_csv(const CompoundResult& result) {
  TextTable table({"variant", "layers", "fraction_linear", "flops_fraction_mlp",
                   "flops_fraction_total", "perplexity", "nll_sum", "delta_nats", "delta_percent",
                   "ci_low_percent", "ci_high_percent", "p_value", "select_nll_sum",
                   "select_delta_percent", "on_frontier"});
  for (const CompoundVariant& v : result.variants) {
    const PairedComparison& c = v.comparison;
    table.add({v.name, detail::layers_text(v.layers), exact_text(v.fraction_linear),
               exact_text(v.flops_fraction_mlp), exact_text(v.flops_fraction_total),
               exact_text(v.perplexity), exact_text(v.nll_sum), exact_text(c.delta_nats),
               exact_text(c.delta_percent), detail::optional_text(c.ci_low_percent),
               detail::optional_text(c.ci_high_percent), detail::optional_text(c.p_value),
               exact_text(v.select_nll_sum), exact_text(v.select_delta_percent),
               v.on_frontier ? "1" : "0"});
  }
  return table;
}

/// What was written, in numbers; nats are by the model as it is.
inline TextTable generate_table(const GenerateResult& result) {
  TextTable table({"text", "tokens", "ended by", "nats per token", "surrogate ran at"});
  for (const WrittenText& t : result.texts) {
    double share = 0;
    for (const ReplacedLayer& l : t.replaced) {
      share += l.fraction_linear / static_cast<double>(t.replaced.size());
    }
    const std::string layers = std::to_string(t.replaced.size()) + " of " +
                               std::to_string(result.model.layers) + " layers";
    table.add({t.name, std::to_string(t.generation.ids.size()), name_of(t.generation.stop),
               fixed_text(mean_nats(t), 2),
               t.replaced.empty() ? "–" : detail::percent_text(share) + " in " + layers});
  }
  return table;
}

/// The same, unrounded.
inline TextTable generate_csv(const GenerateResult& result) {
  TextTable table(
      {"text", "tokens", "stop", "nll_sum", "nats_per_token", "positions", "fraction_linear"});
  for (const WrittenText& t : result.texts) {
    table.add({t.name, std::to_string(t.generation.ids.size()), name_of(t.generation.stop),
               exact_text(sum_of(t.nats)), exact_text(mean_nats(t)), std::to_string(t.positions),
               exact_text(t.fraction_linear)});
  }
  return table;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
