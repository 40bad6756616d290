// What results say of each published claim: a verdict by a rule stated beforehand (the claim's
// `test`), the figures behind it, and what would be needed where nothing is decided.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wanamaker/report/layer_figures.hpp"
#include "wanamaker/report/published_claims.hpp"
#include "wanamaker/report/report_text.hpp"
#include "wanamaker/report/result_files.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

enum class ClaimState { holds, does_not_hold, undecided };

constexpr std::string_view text_of(ClaimState state) {
  return state == ClaimState::holds           ? "holds"
         : state == ClaimState::does_not_hold ? "does not hold"
                                              : "cannot be decided here";
}

/// Of one claim and one model.
struct ClaimAnswer {
  ClaimState state = ClaimState::undecided;
  std::string found{};   ///< our figures
  std::string needed{};  ///< to decide, or how sure the verdict is
};

namespace detail {

inline ClaimAnswer not_measured(const std::string& command) {
  return {ClaimState::undecided, "not measured", "results of study " + command};
}

/// How many of some items speak for and against.
struct ClaimTally {
  int yes = 0, no = 0, total = 0;

  void count(bool for_it, bool against_it) {
    ++total;
    yes += for_it ? 1 : 0;
    no += against_it ? 1 : 0;
  }
  ClaimState majority() const {
    if (2 * yes > total) return ClaimState::holds;
    return 2 * no > total ? ClaimState::does_not_hold : ClaimState::undecided;
  }
  std::string of_total(int n) const { return std::to_string(n) + " of " + std::to_string(total); }
};

inline bool shown_below(const Estimate& e, double limit) {
  return e.high && *e.high < limit;
}
inline bool shown_above(const Estimate& e, double limit) {
  return e.low && *e.low > limit;
}
/// The intervals lie apart, a's below b's.
inline bool shown_less(const Estimate& a, const Estimate& b) {
  return a.high && b.low && *a.high < *b.low;
}

/// "median layer undecided: about N documents (here n) …"
inline std::string documents_sentence(const std::vector<double>& needed,
                                      std::optional<double> documents) {
  const std::optional<double> median = median_of(needed);
  if (!median) return "";
  return "about " + count_text(median) + " documents like these (here " + count_text(documents) +
         ") to decide the median layer that is open, with probability 0.8";
}

inline ClaimState ends_state(const std::vector<LayerFigures>& layers) {
  const Estimate &first = layers.front().ridge, &last = layers.back().ridge;
  if (shown_above(first, 4) || shown_above(last, 4)) return ClaimState::holds;
  if (shown_below(first, 4) && shown_below(last, 4)) return ClaimState::does_not_hold;
  return ClaimState::undecided;
}

/// Documents for a layer that is neither shown cheap nor dear: to tell the map from 4 %, or from
/// the constant where only that is open.
inline std::optional<double> documents_for_layer(const LayerFigures& layer,
                                                 std::optional<double> documents) {
  const bool cheap = shown_below(layer.ridge, 4) && layer.mean.value;
  return documents_to_tell(layer.ridge, cheap ? *layer.mean.value : 4, documents);
}

inline ClaimAnswer answer_linear(const std::vector<LayerFigures>& layers,
                                 std::optional<double> documents) {
  if (layers.size() < 3) return {ClaimState::undecided, "fewer than three layers", "all layers"};
  ClaimTally tally;
  std::vector<double> needed;
  for (std::size_t l = 1; l + 1 < layers.size(); ++l) {
    const Estimate &ridge = layers[l].ridge, &mean = layers[l].mean;
    const bool cheap = shown_below(ridge, 4) && shown_less(ridge, mean);
    const bool dear = shown_above(ridge, 4) || shown_less(mean, ridge);
    tally.count(cheap, dear);
    if (cheap || dear) continue;
    if (const auto n = documents_for_layer(layers[l], documents)) needed.push_back(*n);
  }
  const ClaimState middle = tally.majority(), ends = ends_state(layers);
  ClaimAnswer answer;
  answer.state = middle == ends ? middle
                 : middle == ClaimState::does_not_hold || ends == ClaimState::does_not_hold
                     ? ClaimState::does_not_hold
                     : ClaimState::undecided;
  answer.found = "the middle: " + tally.of_total(tally.yes) +
                 " layers are shown to cost at most 4 % " + "and less than a constant, " +
                 std::to_string(tally.no) + " are shown not to; the " +
                 "ends: " + change_text(layers.front().ridge.value) + " % and " +
                 change_text(layers.back().ridge.value) + " %, " +
                 (ends == ClaimState::holds           ? "shown to cost more"
                  : ends == ClaimState::does_not_hold ? "as cheap"
                                                      : "open");
  if (answer.state == ClaimState::undecided) answer.needed = documents_sentence(needed, documents);
  return answer;
}

inline ClaimAnswer answer_skew(const std::vector<LayerFigures>& layers,
                               std::optional<double> documents) {
  const auto below = median_of(values_of(layers, [](const auto& l) { return l.share_below; }));
  const auto top = median_of(values_of(layers, [](const auto& l) { return l.top_share; }));
  if (!below || !top || !documents || *documents < 2) return not_measured("sweep");
  const double error = std::sqrt(*below * (1 - *below) / *documents);
  const double z = normal_quantile(0.95);
  ClaimAnswer answer;
  if (*below + z * error < 0.9 || *top < 0.5) answer.state = ClaimState::does_not_hold;
  if (*below - z * error >= 0.9 && *top >= 0.5) answer.state = ClaimState::holds;
  answer.found = "median layer: |δ| < 0.05 nats at " + share_text(below, 1) +
                 " of positions; a tenth of them holds " + share_text(top) + " of the positive δ";
  if (answer.state == ClaimState::undecided && *below != 0.9) {
    const double ratio = (z + normal_quantile(0.8)) / (*below - 0.9);
    answer.needed = "about " + count_text(std::ceil(*below * (1 - *below) * ratio * ratio)) +
                    " documents (here " + count_text(documents) + "), at worst: positions of one " +
                    "document count as one";
  }
  return answer;
}

inline ClaimAnswer answer_gate(const std::vector<LayerFigures>& layers,
                               std::optional<double> documents) {
  ClaimTally tally;
  int apart = 0;
  std::vector<double> needed;
  for (const LayerFigures& l : layers) {
    if (!l.gate.value) continue;
    const bool cheap = shown_below(l.gate, 1) && l.routed && *l.routed >= 0.25;
    const bool beats = shown_less(l.gate, l.random);
    apart += beats ? 1 : 0;
    tally.count(cheap && beats, shown_above(l.gate, 1) || shown_less(l.random, l.gate));
    if (!cheap || beats || !l.random.value) continue;
    if (const auto n = documents_to_tell(l.gate, *l.random.value, documents)) needed.push_back(*n);
  }
  if (tally.total == 0) return not_measured("sweep");
  const auto routed = median_of(values_of(layers, [](const auto& l) { return l.routed; }));
  return {tally.majority(),
          "better than random routing (intervals apart) in " + tally.of_total(apart) +
              " layers, that and at least 25 % routed below 1 % in " + std::to_string(tally.yes) +
              "; median share routed " + share_text(routed),
          documents_sentence(needed, documents)};
}

inline ClaimAnswer answer_auc(const std::vector<LayerFigures>& layers, const ClaimAnswer& gate) {
  const std::vector<double> areas = values_of(layers, [](const auto& l) { return l.auc; });
  if (areas.empty()) return not_measured("sweep");
  ClaimTally tally;
  for (const double auc : areas) tally.count(auc <= 0.65, auc > 0.65);
  const ClaimState poor = tally.majority();
  ClaimAnswer answer{gate.state,
                     "median AUC " + figure_text(median_of(areas), 3) + "; claim 3 " +
                         std::string(text_of(gate.state)),
                     gate.needed};
  if (poor != ClaimState::holds) answer.state = poor;
  return answer;
}

/// Gates on all layers, fitted in one way.
inline ClaimAnswer answer_all_gates(const ResultView& v) {
  const Estimate e = estimate_of(v);
  const double mlp = 1 - v.number("flops_fraction_mlp").value_or(1);
  const double total = 1 - v.number("flops_fraction_total").value_or(1);
  ClaimAnswer answer;
  answer.found = v.text("name") + " " + change_text(e.value) + " % " + range_text(e.low, e.high) +
                 ", saves " + share_text(mlp) + " of the MLPs' FLOPs, " + share_text(total) +
                 " of all";
  const std::string verdict = v.text("verdict");
  if (verdict == "inferior") answer.state = ClaimState::does_not_hold;
  if (verdict == "non-inferior" && mlp >= 0.35) answer.state = ClaimState::holds;
  if (answer.state != ClaimState::undecided) return answer;
  if (verdict == "non-inferior") {
    answer.needed = "gates that route more (--gate-fraction)";
  } else if (const auto n = v.number("documents_needed")) {
    answer.needed = "about " + count_text(n) + " documents for " + v.text("name");
  }
  return answer;
}

inline ClaimAnswer answer_compound(const ResultView& compound) {
  ClaimAnswer answer{ClaimState::does_not_hold, "", ""};
  for (const char* name : {"naive-gate", "sequential-gate"}) {
    const ResultView v = compound.item("variants", "name", name);
    if (!v) continue;
    const ClaimAnswer one = answer_all_gates(v);
    answer.found += (answer.found.empty() ? "" : "; ") + one.found;
    if (answer.state == ClaimState::holds || one.state == ClaimState::does_not_hold) continue;
    answer.state = one.state;
    answer.needed = one.needed;
  }
  if (answer.found.empty()) return not_measured("compound");
  answer.found += "; allowed loss " + figure_text(compound.number("max_loss_percent"), 1) + " %";
  return answer;
}

inline ClaimAnswer answer_context(const ResultView& probe) {
  if (!probe) return not_measured("probe");
  ClaimTally tally;
  std::vector<double> context, token;
  for (const ResultView& layer : probe.items("layers")) {
    const ResultView part = layer.item("probes", "name", "context");
    const auto range = part.range("above_token_table_interval");
    tally.count(range && range->low > 0, range && range->high < 0);
    if (const auto auc = part.number("auc")) context.push_back(*auc);
    const auto table = layer.item("probes", "name", "token-label-table").number("auc");
    if (table) token.push_back(*table);
  }
  if (tally.total == 0) return not_measured("probe");
  return {tally.majority(),
          "context says more than the token's table in " + tally.of_total(tally.yes) +
              " layers, less in " + std::to_string(tally.no) + "; median AUC " +
              figure_text(median_of(context), 3) + " against " + figure_text(median_of(token), 3),
          tally.majority() == ClaimState::undecided ? "more documents in the report split" : ""};
}

inline ClaimAnswer answer_transfer(const ResultView& transfer) {
  if (!transfer) return not_measured("transfer");
  ClaimTally tally;
  std::vector<double> power;
  for (const ResultView& layer : transfer.items("layers")) {
    for (const ResultView& pair : layer.items("pairs")) {
      if (pair.text("to") == "half 1") continue;  // within one corpus: reliability, not transfer
      const std::string verdict = pair.text("verdict");
      tally.count(verdict == "does not transfer" || verdict == "reverses",
                  verdict == "transfers" || verdict == "transfers in part");
      if (const auto p = pair.number("power")) power.push_back(*p);
    }
  }
  if (tally.total == 0) return not_measured("transfer with two corpora");
  return {tally.majority(),
          "of " + std::to_string(tally.total) + " comparisons " + std::to_string(tally.no) +
              " transfer at least in part, " + std::to_string(tally.yes) + " do not",
          "median power to find what could be found: " + figure_text(median_of(power))};
}

inline ClaimAnswer answer_features(const ResultView& features, const ResultView& clusters) {
  ClaimTally tally;
  std::vector<double> best;
  for (const ResultView& layer : features.items("layers")) {
    bool explains = false, excluded = true;
    double largest = 0;
    for (const ResultView& fit : layer.item("sets", "name", "hindsight").items("fits")) {
      explains = explains || fit.text("verdict") == "explains";
      excluded = excluded && fit.text("verdict") == "less than the smallest effect";
      largest = std::max(largest, fit.number("r2").value_or(0));
    }
    tally.count(excluded && !explains, explains);
    best.push_back(largest);
  }
  std::vector<double> between;
  for (const ResultView& layer : clusters.items("layers")) {
    if (const auto r2 = layer.number("delta_held_out_r2")) between.push_back(*r2);
  }
  const std::string of_clusters =
      between.empty() ? "" : "; clusters: median held-out R² " + figure_text(median_of(between), 4);
  if (tally.total == 0) {
    ClaimAnswer answer = not_measured("features");
    if (!between.empty()) answer.found = "features not measured" + of_clusters;
    return answer;
  }
  return {tally.majority(),
          "features explain in " + tally.of_total(tally.no) + " layers (best held-out R², median " +
              figure_text(median_of(best), 3) + "), shown not to in " + std::to_string(tally.yes) +
              of_clusters,
          tally.majority() == ClaimState::undecided ? "more documents in the report split" : ""};
}

inline ClaimState state_named(const std::string& name) {
  if (name == text_of(ClaimState::holds)) return ClaimState::holds;
  return name == text_of(ClaimState::does_not_hold) ? ClaimState::does_not_hold
                                                    : ClaimState::undecided;
}

/// An arm's model at the end of a stage, as fine-tuning results name it.
inline std::string point_text(const std::string& arm, const std::string& stage) {
  return arm + "/" + stage;
}

/// The comparison that matters most for a treated point: on unseen text, at equal tokens.
inline ResultView matched_comparison(const ResultView& run, const std::string& point) {
  for (const char* kind : {"equal-flops", "equal-tokens"}) {
    for (const ResultView& c : run.items("comparisons")) {
      if (c.text("treated") == point && c.text("kind") == kind && c.text("text") == "unseen") {
        return c;
      }
    }
  }
  return {};
}

inline ClaimAnswer answer_training(const ResultView& run, const std::string& command,
                                   const std::string& stage) {
  const std::string point = point_text(command, stage);
  const ResultView verdict = run.item("verdicts", "point", point);
  if (!verdict) return not_measured(command);
  const ResultView c = matched_comparison(run, point);
  const Estimate e = estimate_of(c);
  ClaimAnswer answer{state_named(verdict.text("gains")), "", ""};
  answer.found = "against " + text_or_dash(c.text("control")) + " " + change_text(e.value) + " % " +
                 range_text(e.low, e.high) +
                 "; baseline kept: " + text_or_dash(verdict.text("kept")) + " (" +
                 change_text(verdict.number("kept_delta_percent")) + " %)";
  if (const auto n = c.number("documents_needed")) {
    answer.needed = "about " + count_text(n) + " documents to show a gain of this size";
  } else if (answer.state == ClaimState::undecided) {
    answer.needed = "more seeds and documents";
  }
  return answer;
}

inline ClaimAnswer answer_overfitting(const ModelResults& model) {
  for (const char* command : {"control", "progressive", "two-phase"}) {
    const ResultView gap =
        model.result(command).item("gaps", "point", point_text("linear", "linear"));
    if (!gap) continue;
    const auto unseen = gap.number("unseen_nats");
    const auto range = gap.range("interval_nats");
    ClaimAnswer answer;
    if (range && range->low > 0 && unseen && *unseen <= 0) answer.state = ClaimState::holds;
    if (range && range->high < 0) answer.state = ClaimState::does_not_hold;
    answer.found = "δ of the linear maps: " + change_text(gap.number("trained_nats"), 4) +
                   " nats on text trained on, " + change_text(unseen, 4) +
                   " on unseen; difference " + change_text(gap.number("gap_nats"), 4);
    if (range) answer.found += " " + range_text(range->low, range->high, 4);
    if (answer.state == ClaimState::undecided) answer.needed = "more documents of both kinds";
    return answer;
  }
  return not_measured("control");
}

/// Twins speak of the claim's first half alone: that the sequential residual is the easy one.
inline ClaimAnswer answer_architecture(const std::vector<LayerFigures>& layers,
                                       const ResultView& twins) {
  const auto cost = median_of(values_of(layers, [](const auto& l) { return l.ridge.value; }));
  const ResultView topology = twins.item("topology", "treated", "sequential");
  if (!cost && !topology) return not_measured("twins");
  ClaimAnswer answer;
  if (cost) answer.found = "median layer costs " + change_text(cost) + " %";
  answer.needed =
      "twins trained alike but for their topology, three seeds each (study twins), and three sizes";
  if (!topology) return answer;
  std::vector<double> differences;
  for (const ResultView& d : topology.items("difference_percent")) {
    differences.push_back(d.as_number());
  }
  const auto range = topology.range("interval_percent");
  answer.found += std::string(cost ? "; " : "") + "sequential against its parallel twin: median " +
                  "layer costs " + change_text(median_of(differences)) + " points of perplexity" +
                  (range ? " " + range_text(range->low, range->high) : "") + ", median of " +
                  std::to_string(differences.size()) + " seeds";
  const std::string verdict = topology.text("verdict");
  if (verdict == "worse") answer.state = ClaimState::does_not_hold;
  answer.needed = verdict == "undecided"
                      ? "more seeds to tell the twins apart, and twins of three sizes"
                      : "twins of three sizes, for whether larger is cheaper";
  return answer;
}

/// The named ways to give the middle layers less nonlinearity.
inline bool is_of_lesser_middle(const ResultView& comparison) {
  const std::string treated = comparison.text("treated");
  for (const char* name : {"thin-middle", "affine-middle", "hybrid-middle", "routed-middle"}) {
    if (treated.starts_with(name)) return true;
  }
  return false;
}

/// "at equal parameters 1 of 4 better than uniform, 2 worse".
inline std::string budget_text(const std::string& kind, const ClaimTally& tally) {
  return "at " + kind + " " + tally.of_total(tally.yes) + " better than uniform, " +
         std::to_string(tally.no) + " worse";
}

inline ClaimAnswer answer_budgets(const ResultView& budgets) {
  ClaimTally parameters, flops;
  for (const ResultView& c : budgets.items("comparisons")) {
    if (!is_of_lesser_middle(c)) continue;
    const bool better = c.text("verdict") == "better", worse = c.text("verdict") == "worse";
    if (c.text("kind") == "equal-parameters") parameters.count(better, worse);
    if (c.text("kind") == "equal-flops") flops.count(better, worse);
  }
  if (parameters.total == 0 || flops.total == 0) return not_measured("budgets");
  ClaimAnswer answer;
  answer.found =
      budget_text("equal parameters", parameters) + "; " + budget_text("equal FLOPs", flops);
  // Of several ways one is better by chance; most of them are not.
  const auto most = [](const ClaimTally& t) { return 2 * t.yes > t.total && t.no == 0; };
  if (most(parameters) && most(flops)) answer.state = ClaimState::holds;
  if (parameters.no == parameters.total && flops.no == flops.total) {
    answer.state = ClaimState::does_not_hold;
  }
  if (answer.state == ClaimState::undecided) answer.needed = "more seeds, documents and steps";
  return answer;
}

inline ClaimAnswer answer_by_number(int number, const ModelResults& model) {
  const ResultView sweep = model.result("sweep");
  const std::vector<LayerFigures> layers = layer_figures(sweep);
  const std::optional<double> documents = sweep["baseline"].number("documents");
  if (number <= 4 && layers.empty()) return not_measured("sweep");
  switch (number) {
    case 1:
      return answer_linear(layers, documents);
    case 2:
      return answer_skew(layers, documents);
    case 3:
      return answer_gate(layers, documents);
    case 4:
      return answer_auc(layers, answer_gate(layers, documents));
    case 5:
      return answer_compound(model.result("compound"));
    case 6:
      return answer_context(model.result("probe"));
    case 7:
      return answer_transfer(model.result("transfer"));
    case 8:
      return answer_features(model.result("features"), model.result("clusters"));
    case 9:
      return answer_architecture(layers, model.result("twins"));
    case 10:
      return answer_training(model.result("progressive"), "progressive", "final");
    case 11:
      return answer_training(model.result("two-phase"), "two-phase", "hard");
    case 12:
      return answer_overfitting(model);
    default:
      return answer_budgets(model.result("budgets"));
  }
}

}  // namespace detail

/// What the results of one model say of a claim. Results of a published procedure, with its faults,
/// decide nothing.
inline ClaimAnswer claim_answer(const PublishedClaim& claim, const ModelResults& model) {
  ClaimAnswer answer = detail::answer_by_number(claim.number, model);
  const std::string protocol = model.result("sweep")["protocol"].text("name");
  if (claim.number <= 4 && !protocol.empty() && protocol != "rigorous") {
    answer.state = ClaimState::undecided;
    answer.needed = "the rigorous protocol: these figures are by " + protocol + ", faults included";
  }
  return answer;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
