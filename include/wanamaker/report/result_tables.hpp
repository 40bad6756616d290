// Results as short tables for people, and as CSV for spreadsheets.
#pragma once

#include <optional>
#include <string>

#include "wanamaker/report/text_table.hpp"
#include "wanamaker/study/perplexity.hpp"
#include "wanamaker/study/sweep.hpp"

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

/// One line of a table of perplexities.
inline TextTable perplexity_table(const std::vector<PerplexityResult>& results) {
  TextTable table(
      {"model", "documents", "tokens", "perplexity", "bits per byte", "word perplexity"});
  for (const PerplexityResult& r : results) {
    table.add({r.model.name, std::to_string(r.documents), std::to_string(r.tokens),
               fixed_text(r.perplexity, 2), r.bits_per_byte ? fixed_text(*r.bits_per_byte, 3) : "–",
               r.word_perplexity ? fixed_text(*r.word_perplexity, 1) : "–"});
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

}  // namespace wanamaker::inline WANAMAKER_ABI
