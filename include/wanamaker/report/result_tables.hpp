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
  TextTable table({"model", "documents", "tokens", "perplexity", "bits/byte", "word perplexity"});
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

/// What replacing each layer's MLP costs, by layer: the map beside the constant.
inline TextTable sweep_table(const SweepResult& result) {
  TextTable table({"layer", "R²", "linear Δ%", "95% interval", "mean Δ%", "zero Δ%", "verdict"});
  for (const LayerResult& layer : result.layers) {
    const VariantResult* ridge = detail::variant_named(layer, "ridge");
    const VariantResult* mean = detail::variant_named(layer, "mean");
    const VariantResult* zero = detail::variant_named(layer, "zero");
    if (ridge == nullptr || mean == nullptr || zero == nullptr) continue;
    const double linear = ridge->comparison.delta_percent;
    const bool beats_constant = linear < mean->comparison.delta_percent;
    const bool significant = ridge->p_holm && *ridge->p_holm < 0.05;
    table.add({std::to_string(layer.layer), fixed_text(layer.r2, 3), signed_text(linear, 2),
               detail::interval_text(ridge->comparison),
               signed_text(mean->comparison.delta_percent, 2),
               signed_text(zero->comparison.delta_percent, 2),
               !beats_constant
                   ? "a constant does as well"
                   : (significant ? (linear > 0 ? "costs" : "gains") : "no difference shown")});
  }
  return table;
}

/// Every variant of every layer.
inline TextTable sweep_csv(const SweepResult& result) {
  TextTable table({"layer", "variant", "parameters", "perplexity", "nll_sum", "delta_nats",
                   "delta_percent", "ci_low_percent", "ci_high_percent", "p_value", "p_holm",
                   "p_bh"});
  for (const LayerResult& layer : result.layers) {
    for (const VariantResult& v : layer.variants) {
      const PairedComparison& c = v.comparison;
      table.add({std::to_string(layer.layer), v.name, exact_text(v.parameters),
                 exact_text(v.perplexity), exact_text(v.nll_sum), exact_text(c.delta_nats),
                 exact_text(c.delta_percent), detail::optional_text(c.ci_low_percent),
                 detail::optional_text(c.ci_high_percent), detail::optional_text(c.p_value),
                 detail::optional_text(v.p_holm), detail::optional_text(v.p_bh)});
    }
  }
  return table;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
