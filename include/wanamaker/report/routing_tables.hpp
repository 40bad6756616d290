// The experiments on the routing decision as short tables for people, and as CSV.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/report/result_tables.hpp"
#include "wanamaker/report/side_by_side.hpp"
#include "wanamaker/stats/quantiles.hpp"
#include "wanamaker/study/clusters_result.hpp"
#include "wanamaker/study/features_result.hpp"
#include "wanamaker/study/marginal_result.hpp"
#include "wanamaker/study/probe_result.hpp"
#include "wanamaker/study/transfer_result.hpp"
#include "wanamaker/text/utf8_stream.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A token for a terminal: its spelling in quotes, or "#id" where `spellings` (by id, as
/// Tokenizer::token_bytes gives them) has none.
inline std::string token_label(TokenId token, std::span<const std::string> spellings) {
  const std::size_t at = static_cast<std::size_t>(token);
  if (token < 0 || at >= spellings.size()) return "#" + std::to_string(token);
  Utf8Stream characters;  // a token may end in the middle of one
  std::string text = characters.add(spellings[at]);
  text += characters.finish();
  std::string shown = "\"";
  for (const char c : terminal_text(text)) {
    shown += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return shown + "\"";
}

namespace detail {

inline std::string fixed_or_dash(const std::optional<double>& value, int digits) {
  return value ? fixed_text(*value, digits) : "–";
}

inline std::string signed_or_dash(const std::optional<double>& value, int digits) {
  return value ? signed_text(*value, digits) : "–";
}

inline std::string share_or_dash(const std::optional<double>& share) {
  return share ? percent_text(*share) : "–";
}

inline std::string interval_or_dash(const std::optional<Interval>& interval, int digits) {
  if (!interval) return "–";
  return "[" + signed_text(interval->low, digits) + ", " + signed_text(interval->high, digits) +
         "]";
}

/// The median of what is there.
inline std::optional<double> median_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  return sorted_quantile(values, 0.5);
}

/// The element of that name, or none.
template <class T>
const T* named(const std::vector<T>& values, const std::string& name) {
  const auto found =
      std::find_if(values.begin(), values.end(), [&](const T& v) { return v.name == name; });
  return found == values.end() ? nullptr : &*found;
}

inline std::string auc_text(const ProbeLayer& layer, const char* name) {
  const ProbeScore* probe = named(layer.probes, name);
  return probe == nullptr || !probe->auc ? "–" : fixed_text(probe->auc->auc, 3);
}

}  // namespace detail

/// AUC of δ ≤ 0 on the report split by what a gate may see, beside the table that knows the token.
inline TextTable probe_table(const ProbeResult& result) {
  TextTable table({"layer", "δ ≤ 0", "token table", "token", "attention", "MLPs", "context",
                   "input", "input − table", "95 % interval", "cosine"});
  for (const ProbeLayer& layer : result.layers) {
    const ProbeScore* input = detail::named(layer.probes, "input");
    table.add({std::to_string(layer.layer), detail::percent_text(layer.positive_share),
               detail::auc_text(layer, "token-label-table"), detail::auc_text(layer, "token"),
               detail::auc_text(layer, "attention"), detail::auc_text(layer, "mlp"),
               detail::auc_text(layer, "context"), detail::auc_text(layer, "input"),
               input == nullptr ? "–" : detail::signed_or_dash(input->above_token_table, 3),
               input == nullptr
                   ? "–"
                   : detail::interval_or_dash(input->above_token_table_interval.interval, 3),
               detail::signed_or_dash(layer.token_context_cosine, 2)});
  }
  return table;
}

/// Every probe of every layer.
inline TextTable probe_csv(const ProbeResult& result) {
  TextTable table({"layer", "probe", "features", "auc", "auc_low", "auc_high", "above_token_table",
                   "above_token_table_low", "above_token_table_high"});
  const auto add_ends = [](std::vector<std::string>& line, const DocumentInterval& interval) {
    line.push_back(interval.interval ? exact_text(interval.interval->low) : "");
    line.push_back(interval.interval ? exact_text(interval.interval->high) : "");
  };
  for (const ProbeLayer& layer : result.layers) {
    for (const ProbeScore& p : layer.probes) {
      std::vector<std::string> line{std::to_string(layer.layer), p.name, std::to_string(p.features),
                                    p.auc ? exact_text(p.auc->auc) : ""};
      add_ends(line, p.interval);
      line.push_back(detail::optional_text(p.above_token_table));
      add_ends(line, p.above_token_table_interval);
      table.add(line);
    }
  }
  return table;
}

/// What clusters of MLP inputs say of δ, beside random partitions of their sizes.
inline TextTable clusters_table(const ClustersResult& result) {
  TextTable table({"layer", "silhouette", "inputs explained", "δ explained", "random 95 %",
                   "held-out R²", "purity", "random 95 %", "tokens' purity"});
  for (const ClusterLayer& layer : result.layers) {
    const auto& explained = layer.delta_explained;
    table.add({std::to_string(layer.layer), fixed_text(layer.silhouette, 3),
               detail::percent_text(layer.inputs_explained),
               explained ? detail::percent_text(explained->value) : "–",
               explained ? detail::percent_text(explained->random_p95) : "–",
               detail::signed_or_dash(layer.delta_held_out_r2, 4),
               detail::percent_text(layer.decision_purity.value),
               detail::percent_text(layer.decision_purity.random_p95),
               detail::percent_text(layer.token_purity.value)});
  }
  return table;
}

/// Every cluster, its most frequent tokens by their spellings.
inline TextTable clusters_csv(const ClustersResult& result,
                              std::span<const std::string> spellings) {
  TextTable table({"layer", "cluster", "positions", "mean_delta", "delta_p10", "delta_p90",
                   "share_linear", "top_tokens"});
  for (const ClusterLayer& layer : result.layers) {
    for (const ClusterSummary& c : layer.clusters) {
      std::string tokens;
      for (const TokenCount& t : c.top_tokens) {
        tokens += (tokens.empty() ? "" : " ") + token_label(t.token, spellings);
      }
      table.add({std::to_string(layer.layer), std::to_string(c.cluster),
                 std::to_string(c.positions), detail::optional_text(c.mean_delta),
                 detail::optional_text(c.delta_p10), detail::optional_text(c.delta_p90),
                 detail::optional_text(c.share_linear), tokens});
    }
  }
  return table;
}

namespace detail {

/// One kind of pair over all layers.
struct PairOverLayers {
  const ListPair* pair = nullptr;
  std::vector<const ListComparison*> layers{};

  Index count(TransferVerdict verdict) const {
    return std::count_if(layers.begin(), layers.end(),
                         [&](const ListComparison* c) { return c->verdict == verdict; });
  }
  /// Median of one figure over the layers that have it.
  template <class Figure>
  std::optional<double> median(const Figure& figure) const {
    std::vector<double> values;
    for (const ListComparison* c : layers) {
      const std::optional<double> value = figure(*c);
      if (value) values.push_back(*value);
    }
    return median_of(std::move(values));
  }
};

/// In the order of the first layer's pairs.
inline std::vector<PairOverLayers> pairs_over_layers(const TransferResult& result) {
  std::vector<PairOverLayers> pairs;
  for (const TransferLayer& layer : result.layers) {
    for (std::size_t p = 0; p < layer.pairs.size(); ++p) {
      if (pairs.size() <= p) pairs.push_back({&layer.pairs[p]});
      pairs[p].layers.push_back(&layer.pairs[p].comparison);
    }
  }
  return pairs;
}

}  // namespace detail

/// Pairs of token lists: medians over layers, and at how many layers each verdict fell.
inline TextTable transfer_table(const TransferResult& result) {
  TextTable table({"list by", "from", "to", "map", "types", "r", "attainable", "flips listed",
                   "flips all", "transfers", "in part", "does not", "no power"});
  for (const detail::PairOverLayers& p : detail::pairs_over_layers(result)) {
    const auto number = [](const std::optional<double>& value, int digits) {
      return detail::fixed_or_dash(value, digits);
    };
    const auto types = p.median(
        [](const ListComparison& c) { return std::optional(static_cast<double>(c.types)); });
    table.add(
        {name_of(p.pair->role), p.pair->from, p.pair->to, p.pair->surrogate, number(types, 0),
         detail::signed_or_dash(p.median([](const auto& c) { return c.pearson; }), 2),
         number(p.median([](const auto& c) { return std::optional(c.attainable); }), 2),
         detail::share_or_dash(p.median([](const auto& c) { return c.listed_flips; })),
         detail::share_or_dash(p.median([](const auto& c) { return c.base_flips; })),
         std::to_string(p.count(TransferVerdict::transfers)),
         std::to_string(p.count(TransferVerdict::partly)),
         std::to_string(p.count(TransferVerdict::does_not) + p.count(TransferVerdict::reverses)),
         std::to_string(p.count(TransferVerdict::no_power) +
                        p.count(TransferVerdict::not_comparable))});
  }
  return table;
}

/// Every pair of every layer.
inline TextTable transfer_csv(const TransferResult& result) {
  TextTable table({"layer", "role", "from", "to", "surrogate", "types", "pearson", "pearson_low",
                   "pearson_high", "spearman", "attainable", "disattenuated", "power", "listed",
                   "listed_flips", "base_flips", "flips_by_chance", "verdict"});
  for (const TransferLayer& layer : result.layers) {
    for (const ListPair& p : layer.pairs) {
      const ListComparison& c = p.comparison;
      table.add({std::to_string(layer.layer), name_of(p.role), p.from, p.to, p.surrogate,
                 std::to_string(c.types), detail::optional_text(c.pearson),
                 c.pearson_interval ? exact_text(c.pearson_interval->low) : "",
                 c.pearson_interval ? exact_text(c.pearson_interval->high) : "",
                 detail::optional_text(c.spearman), exact_text(c.attainable),
                 detail::optional_text(c.disattenuated), exact_text(c.power),
                 std::to_string(c.listed), detail::optional_text(c.listed_flips),
                 detail::optional_text(c.base_flips), exact_text(c.flips_by_chance),
                 name_of(c.verdict)});
    }
  }
  return table;
}

namespace detail {

inline const FeatureFit* fit_of(const FeaturesLayer& layer, const char* set, const char* method,
                                const char* scale) {
  const FeatureSet* found = named(layer.sets, set);
  if (found == nullptr) return nullptr;
  for (const FeatureFit& fit : found->fits) {
    if (fit.method == method && fit.scale == scale) return &fit;
  }
  return nullptr;
}

inline std::string r2_text(const FeatureFit* fit) {
  return fit == nullptr ? "–" : signed_or_dash(fit->r2, 3);
}

/// The feature of largest |Spearman| with δ.
inline const SingleFeature* strongest_feature(const FeaturesLayer& layer) {
  const SingleFeature* strongest = nullptr;
  for (const SingleFeature& f : layer.features) {
    if (!f.spearman) continue;
    if (strongest == nullptr || std::abs(*f.spearman) > std::abs(*strongest->spearman)) {
      strongest = &f;
    }
  }
  return strongest;
}

}  // namespace detail

/// R² of δ on documents held out: what is known before the position is run, by both methods and
/// scales, and by trees on ranks what hindsight and both models' outputs add.
inline TextTable features_table(const FeaturesResult& result) {
  TextTable table({"layer", "ridge", "trees", "95 % interval", "ridge, ranks", "trees, ranks",
                   "verdict", "hindsight", "comparison", "strongest alone", "ρ"});
  for (const FeaturesLayer& layer : result.layers) {
    const FeatureFit* trees = detail::fit_of(layer, "before", "boosted-trees", "raw");
    const FeatureFit* ranks = detail::fit_of(layer, "before", "boosted-trees", "rank");
    const SingleFeature* strongest = detail::strongest_feature(layer);
    table.add({std::to_string(layer.layer),
               detail::r2_text(detail::fit_of(layer, "before", "ridge", "raw")),
               detail::r2_text(trees),
               trees == nullptr ? "–" : detail::interval_or_dash(trees->r2_interval, 3),
               detail::r2_text(detail::fit_of(layer, "before", "ridge", "rank")),
               detail::r2_text(ranks), ranks == nullptr ? "–" : name_of(ranks->verdict),
               detail::r2_text(detail::fit_of(layer, "hindsight", "boosted-trees", "rank")),
               detail::r2_text(detail::fit_of(layer, "comparison", "boosted-trees", "rank")),
               strongest == nullptr ? "–" : strongest->name,
               strongest == nullptr ? "–" : signed_text(*strongest->spearman, 2)});
  }
  return table;
}

/// Every regression of every layer.
inline TextTable features_csv(const FeaturesResult& result) {
  TextTable table({"layer", "set", "features", "method", "scale", "r2", "r2_low", "r2_high",
                   "detectable", "spearman", "verdict"});
  for (const FeaturesLayer& layer : result.layers) {
    for (const FeatureSet& set : layer.sets) {
      for (const FeatureFit& f : set.fits) {
        table.add({std::to_string(layer.layer), set.name, std::to_string(set.features.size()),
                   f.method, f.scale, detail::optional_text(f.r2),
                   f.r2_interval ? exact_text(f.r2_interval->low) : "",
                   f.r2_interval ? exact_text(f.r2_interval->high) : "",
                   detail::optional_text(f.detectable), detail::optional_text(f.spearman),
                   name_of(f.verdict)});
      }
    }
  }
  return table;
}

namespace detail {

inline const MarginalGroup* group_named(const MarginalLayer& layer, const char* name) {
  return named(layer.groups, name);
}

inline std::string magnitude_text(const MarginalLayer& layer, const char* group) {
  const MarginalGroup* found = group_named(layer, group);
  return found == nullptr ? "–" : share_or_dash(found->share_of_magnitude);
}

}  // namespace detail

/// Where marginal δ lies, whether first order may be read, and what first positions have to do with
/// layers that cannot be made linear. Shares are of Σ|δ|.
inline TextTable marginal_table(const MarginalResult& result) {
  TextTable table({"layer", "all linear", "first positions", "sinks", "others", "sign right",
                   "sign right elsewhere", "ρ", "first writes", "gate: norm rule", "gate: joint δ",
                   "gate: marginal δ"});
  for (const MarginalLayer& layer : result.layers) {
    const WriterFigures& w = layer.writer;
    table.add({std::to_string(layer.layer), signed_text(w.linear_percent, 2) + " %",
               detail::magnitude_text(layer, "first"), detail::magnitude_text(layer, "sinks"),
               detail::magnitude_text(layer, "others"),
               detail::share_or_dash(layer.agreement.large_same_sign),
               detail::share_or_dash(layer.agreement_elsewhere.large_same_sign),
               detail::signed_or_dash(layer.agreement.spearman, 2),
               fixed_text(w.first_norm_ratio, 1) + "×", signed_text(w.norm_rule_percent, 2) + " %",
               signed_text(w.logistic_percent, 2) + " %",
               signed_text(layer.gates.marginal.comparison.delta_percent, 2) + " %"});
  }
  return table;
}

/// Every patched position: δ to first order beside the exact one.
inline TextTable marginal_csv(const MarginalResult& result,
                              std::span<const std::string> spellings) {
  TextTable table({"layer", "position", "place", "token", "text", "group", "first_order", "exact",
                   "integrated", "relative_change"});
  for (const MarginalLayer& layer : result.layers) {
    for (const PatchedPosition& p : layer.patches) {
      table.add({std::to_string(layer.layer), std::to_string(p.position), std::to_string(p.place),
                 std::to_string(p.token), token_label(p.token, spellings), p.group,
                 exact_text(p.first_order), exact_text(p.exact),
                 detail::optional_text(p.integrated), exact_text(p.relative_change)});
    }
  }
  return table;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
