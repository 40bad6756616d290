// What an experiment on the routing decision found, in plain sentences, and what it could have
// seen: "no effect" and "no power to see one" are never the same sentence.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/report/routing_tables.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline std::string measured_on(const StudyHeader& r) {
  return r.model.name + ", " + std::to_string(r.baseline.tokens) + " positions of " +
         std::to_string(r.baseline.documents) + " documents that no fit has seen";
}

inline std::string of_layers(Index count, std::size_t layers) {
  return std::to_string(count) + " of " + std::to_string(layers) +
         (layers == 1 ? " layer" : " layers");
}

/// At how many layers an interval lies above 0, below it, or holds it; and its typical half width.
struct SignsOverLayers {
  Index above = 0;
  Index below = 0;
  std::vector<double> values{};
  std::vector<double> half_widths{};

  void add(double value, const std::optional<Interval>& interval) {
    values.push_back(value);
    if (!interval) return;
    above += interval->low > 0 ? 1 : 0;
    below += interval->high < 0 ? 1 : 0;
    half_widths.push_back((interval->high - interval->low) / 2);
  }
};

inline SignsOverLayers against_table(const ProbeResult& r, const char* name) {
  SignsOverLayers signs;
  for (const ProbeLayer& layer : r.layers) {
    const ProbeScore* probe = named(layer.probes, name);
    if (probe == nullptr || !probe->above_token_table) continue;
    signs.add(*probe->above_token_table, probe->above_token_table_interval.interval);
  }
  return signs;
}

inline std::string probe_sentence(const ProbeResult& r, const char* name, const char* title) {
  const SignsOverLayers signs = against_table(r, name);
  const auto median = median_of(signs.values);
  if (!median) return std::string(title) + ": nothing to compare.\n";
  std::string text = std::string(title) + " ranks positions better than the table by token in " +
                     of_layers(signs.above, r.layers.size()) + ", worse in " +
                     std::to_string(signs.below) + "; the median difference of AUC is " +
                     signed_text(*median, 3);
  if (const auto seen = median_of(signs.half_widths)) {
    text += " (one of about " + fixed_text(*seen, 3) + " would have been seen)";
  }
  return text + ".\n";
}

}  // namespace detail

/// Above a probe's table.
inline std::string probe_headline(const ProbeResult& r) {
  return detail::measured_on(r) +
         ": how well a linear gate tells where the linear map does (δ ≤ 0), as AUC, by what it may "
         "see of the MLP's input:";
}

/// Below it. Intervals are of single layers, not adjusted for their number.
inline std::string probe_finding(const ProbeResult& r) {
  return detail::probe_sentence(r, "context", "The context (all but the token's embedding)") +
         detail::probe_sentence(r, "input", "The whole input");
}

/// Above a table of clusters.
inline std::string clusters_headline(const ClustersResult& r) {
  return detail::measured_on(r) + ": what " + std::to_string(r.clusters) +
         " clusters of MLP inputs say of δ, beside random partitions of the same sizes:";
}

/// Below it.
inline std::string clusters_finding(const ClustersResult& r) {
  Index above = 0;
  Index useful = 0;
  std::vector<double> explained, noticed, held_out;
  for (const ClusterLayer& layer : r.layers) {
    if (layer.delta_held_out_r2) {
      held_out.push_back(*layer.delta_held_out_r2);
      useful += *layer.delta_held_out_r2 > 0 ? 1 : 0;
    }
    if (!layer.delta_explained) continue;
    above += layer.delta_explained->value > layer.delta_explained->random_p95 ? 1 : 0;
    explained.push_back(layer.delta_explained->value);
    noticed.push_back(layer.delta_explained->random_p95);
  }
  if (explained.empty() || held_out.empty()) return "δ is constant: nothing to explain.\n";
  return "Clusters hold more of δ's variance than chance in " +
         detail::of_layers(above, r.layers.size()) + ": a median share of " +
         detail::percent_text(*detail::median_of(explained)) + ", where chance reaches " +
         detail::percent_text(*detail::median_of(noticed)) +
         " once in twenty.\nTheir mean δ on other documents predicts anything in " +
         detail::of_layers(useful, r.layers.size()) + ": the median R² is " +
         signed_text(*detail::median_of(held_out), 4) + ".\n";
}

/// Above a table of token lists.
inline std::string transfer_headline(const TransferResult& r) {
  return r.model.name + ": does a list of tokens by their mean δ say anything of other texts? " +
         "Medians over " + std::to_string(r.layers.size()) +
         (r.layers.size() == 1 ? " layer" : " layers") +
         ", and at how many of them the verdict fell:";
}

/// Below it.
inline std::string transfer_finding(const TransferResult& r) {
  Index decided = 0, all = 0, carried = 0;
  std::vector<double> powers;
  for (const detail::PairOverLayers& p : detail::pairs_over_layers(r)) {
    const Index some = p.count(TransferVerdict::transfers) + p.count(TransferVerdict::partly);
    carried += some;
    decided += some + p.count(TransferVerdict::does_not) + p.count(TransferVerdict::reverses);
    all += static_cast<Index>(p.layers.size());
    for (const ListComparison* c : p.layers) powers.push_back(c->power);
  }
  std::string text =
      "Of " + std::to_string(all) + " comparisons " + std::to_string(decided) +
      " decide anything; in " + std::to_string(carried) +
      " of them the lists have something in common (unrelated lists would seem to in "
      "about 2.5 % of all).\n";
  if (const auto power = detail::median_of(powers)) {
    text += "Equal lists would have been told from unrelated ones with a median probability of " +
            fixed_text(*power, 2) +
            "; where there is no power, a correlation near 0 says nothing.\n";
  }
  return text;
}

/// Above a table of features.
inline std::string features_headline(const FeaturesResult& r) {
  return detail::measured_on(r) + ": R² of δ on " + std::to_string(r.folds) +
         " folds of documents held out. The first five columns and the verdict are of what is "
         "known "
         "before the position is run; hindsight and comparison, of trees on ranks, are what it "
         "cannot know:";
}

/// Below it.
inline std::string features_finding(const FeaturesResult& r) {
  Index explains = 0, less = 0, no_power = 0;
  std::vector<double> r2, raw_r2, detectable;
  for (const FeaturesLayer& layer : r.layers) {
    const FeatureFit* raw = detail::fit_of(layer, "before", "boosted-trees", "raw");
    if (raw != nullptr && raw->r2) raw_r2.push_back(*raw->r2);
    const FeatureFit* fit = detail::fit_of(layer, "before", "boosted-trees", "rank");
    if (fit == nullptr) continue;
    explains += fit->verdict == FeatureVerdict::explains ? 1 : 0;
    less += fit->verdict == FeatureVerdict::less_than ? 1 : 0;
    no_power += fit->verdict == FeatureVerdict::no_power ? 1 : 0;
    if (fit->r2) r2.push_back(*fit->r2);
    if (fit->detectable) detectable.push_back(*fit->detectable);
  }
  if (r2.empty()) return "δ is constant: nothing to explain.\n";
  const auto raw_median = detail::median_of(raw_r2);
  const std::string raw =
      raw_median ? ", of δ in nats " + signed_text(*raw_median, 3) : std::string();
  std::string text = "What is known beforehand explains ranks of δ in " +
                     detail::of_layers(explains, r.layers.size()) + " (trees, median R² " +
                     signed_text(*detail::median_of(r2), 3) + raw + "); in " +
                     std::to_string(less) + " it is less than the " +
                     detail::percent_text(r.smallest_effect) + " that would matter, in " +
                     std::to_string(no_power) + " these positions cannot tell.\n";
  if (const auto seen = detail::median_of(detectable)) {
    text += "An R² of about " + fixed_text(*seen, 3) + " would have been told from 0.\n";
  }
  return text;
}

/// Above a table of marginal δ.
inline std::string marginal_headline(const MarginalResult& r) {
  return detail::measured_on(r) +
         ": what replacing the MLP at one position alone changes, to first order, and how often "
         "its "
         "sign is that of the exact change where that is large:";
}

namespace detail {

inline std::string writers_sentence(const WriterTest& t) {
  std::string text = "Layers that cannot be made linear (" + std::to_string(t.catastrophic) +
                     ") and layers that write first positions' large activations (" +
                     std::to_string(t.writers) + "): " + std::to_string(t.both) + " are both";
  switch (t.verdict) {
    case WriterVerdict::holds:
      return text + "; that they are the same holds (p " + fixed_text(t.p_value, 3) + ").\n";
    case WriterVerdict::does_not_hold:
      return text + "; that they are the same does not hold (p " + fixed_text(t.p_value, 3) +
             "; the fullest overlap would give " + fixed_text(t.least_p_value, 3) + ").\n";
    case WriterVerdict::cannot_be_decided:
      break;
  }
  return text + "; whether they are the same cannot be decided here: with " +
         std::to_string(t.layers) + (t.layers == 1 ? " layer" : " layers") +
         " even the fullest overlap would give p " + fixed_text(t.least_p_value, 3) + ".\n";
}

/// Which of two gates costs less, over layers, where the interval of their difference says.
inline std::string teachers_sentence(const std::vector<MarginalLayer>& layers) {
  SignsOverLayers signs;
  std::vector<double> agreement;
  for (const MarginalLayer& layer : layers) {
    const PairedComparison& d = layer.gates.difference;
    if (layer.gates.spearman) agreement.push_back(*layer.gates.spearman);
    if (!d.ci_low_percent || !d.ci_high_percent) continue;
    signs.add(d.delta_percent, Interval{*d.ci_low_percent, *d.ci_high_percent});
  }
  std::string text =
      "A gate that learns from marginal δ costs less than one that learns from joint δ, equal "
      "shares routed, in " +
      of_layers(signs.below, layers.size()) + ", more in " + std::to_string(signs.above);
  if (const auto seen = median_of(signs.half_widths)) {
    text += " (a difference of about " + fixed_text(*seen, 2) + " % would have been seen)";
  }
  text += ".";
  if (const auto rank = median_of(agreement)) {
    text += " Rank correlation of the two δ of a position: " + signed_text(*rank, 2) + " (median).";
  }
  return text + "\n";
}

}  // namespace detail

/// Below it: where first order may be read, what is said of layers where it may not, and the test
/// of the layers that write large activations.
inline std::string marginal_finding(const MarginalResult& r) {
  constexpr double enough = 0.9;
  Index right = 0;
  Index patched = 0;
  std::string doubtful;
  for (const MarginalLayer& layer : r.layers) {
    patched = std::max(patched, layer.agreement.positions);
    if (layer.agreement.large_same_sign.value_or(0) >= enough) {
      ++right;
    } else if (!layer.statement.empty()) {
      doubtful += "layer " + std::to_string(layer.layer) + ": " + layer.statement + "\n";
    }
  }
  return "First order has the exact sign at 90 % or more of the large δ in " +
         detail::of_layers(right, r.layers.size()) + ", by " + std::to_string(patched) +
         " patched positions in each.\n" + doubtful + detail::teachers_sentence(r.layers) +
         detail::writers_sentence(r.writers);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
