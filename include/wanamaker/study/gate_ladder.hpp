// All gates of the ladder, fitted to one layer's inputs and δ.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/gate/any_gate.hpp"
#include "wanamaker/gate/bottleneck_training.hpp"
#include "wanamaker/gate/delta_regression.hpp"
#include "wanamaker/gate/gate_moments.hpp"
#include "wanamaker/gate/logistic_gate.hpp"
#include "wanamaker/gate/pca_gate.hpp"
#include "wanamaker/gate/random_gate.hpp"
#include "wanamaker/gate/rule_gates.hpp"
#include "wanamaker/gate/threshold.hpp"
#include "wanamaker/gate/token_table.hpp"
#include "wanamaker/study/gate_names.hpp"
#include "wanamaker/study/site_routing.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What gates learn from: one row for each scored token of the gate split.
template <class B>
struct GateData {
  matrix_t<B> inputs;            ///< [n × d] MLP input at the position that predicts
  std::vector<double> delta;     ///< [n] nats, L_ridge − L_full
  std::vector<TokenId> tokens;   ///< [n] the token at that position
  std::vector<Index> documents;  ///< [n] which document of the set, from 0
};

/// The document of every scored token of a set.
inline std::vector<Index> documents_of_losses(const EvaluationSet& set) {
  std::vector<Index> documents;
  documents.reserve(static_cast<std::size_t>(set.scored()));
  for (std::size_t d = 0; d + 1 < set.document_offsets.size(); ++d) {
    documents.insert(
        documents.end(),
        static_cast<std::size_t>(set.document_offsets[d + 1] - set.document_offsets[d]),
        static_cast<Index>(d));
  }
  return documents;
}

namespace detail {

/// The MLP inputs and the tokens at the positions that predict.
template <class B>
void append_inputs(B& backend, const MlpSite<B>& site, GateData<B>& data, Workspace<B>& workspace) {
  const typename Workspace<B>::Frame frame(workspace);
  const std::vector<TokenId>& rows = site.tokens.scored.rows;
  const Index count = static_cast<Index>(rows.size());
  const VectorView<TokenId> index = workspace.template vector<TokenId>(count);
  backend.copy_from_host(rows.data(), count, index.data);
  ops::gather_rows(backend, site.mlp_input, index,
                   data.inputs.view().middle_rows(site.tokens.first_loss, count));
  for (const TokenId row : rows) {
    data.tokens.push_back(site.tokens.tokens[static_cast<std::size_t>(row)]);
  }
}

template <class B>
GateData<B> empty_gate_data(B& backend, const EvaluationSet& set, Index width) {
  return {make_matrix(backend, set.scored(), width), {}, {}, documents_of_losses(set)};
}

inline std::vector<double> differences(std::span<const double> a, std::span<const double> b) {
  std::vector<double> result;
  result.reserve(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) result.push_back(a[i] - b[i]);
  return result;
}

/// One site's inputs and tokens to `data`, its losses with the surrogate to `losses`.
template <class B>
void observe_site(B& backend, LayerPass<B>& pass, const AnyMlp<B>& surrogate,
                  const MlpSite<B>& site, GateData<B>& data, std::span<double> losses,
                  Workspace<B>& workspace) {
  const typename Workspace<B>::Frame frame(workspace);
  append_inputs(backend, site, data, workspace);
  const matrix_view_t<B> output = workspace.matrix(site.mlp_input.rows, site.mlp_input.cols);
  surrogate.forward(backend, site.mlp_input, site.rows, output, workspace);
  pass.losses_with(site, output, losses);
}

}  // namespace detail

/// Inputs and δ of the surrogate at the pass's layer; advances the pass.
template <class B>
GateData<B> collect_gate_data(B& backend, LayerPass<B>& pass, const AnyMlp<B>& surrogate,
                              std::span<const double> baseline, Index width,
                              Workspace<B>& workspace) {
  GateData<B> data = detail::empty_gate_data(backend, pass.set(), width);
  std::vector<double> losses(baseline.size());
  pass.advance([&](const MlpSite<B>& site) {
    detail::observe_site<B>(backend, pass, surrogate, site, data, losses, workspace);
  });
  data.delta = detail::differences(losses, baseline);
  return data;
}

/// The same where earlier layers of the pass are replaced: δ is against the MLP's own output in the
/// same, changed model. The pass stays.
template <class B>
GateData<B> collect_gate_data_here(B& backend, LayerPass<B>& pass, const AnyMlp<B>& surrogate,
                                   Index width, Workspace<B>& workspace) {
  GateData<B> data = detail::empty_gate_data(backend, pass.set(), width);
  std::vector<double> linear(static_cast<std::size_t>(pass.set().scored()));
  std::vector<double> full(linear.size());
  pass.visit([&](const MlpSite<B>& site) {
    detail::observe_site<B>(backend, pass, surrogate, site, data, linear, workspace);
    pass.losses_with(site, site.mlp_output, full);
  });
  data.delta = detail::differences(linear, full);
  return data;
}

/// A gate of the ladder. `matched`: it has no threshold of its own and routes the share that
/// gate-logistic routes on the select split.
template <class B>
struct NamedGate {
  std::string name;
  AnyGate<B> gate;
  bool matched = false;
  double threshold = 0.5;
  std::string note{};
};

namespace detail {

inline std::string fit_note(const FitReport& report) {
  return report.converged() ? std::string() : std::string(fit_status_name(report.status));
}

template <class B>
void add_rules(std::vector<NamedGate<B>>& gates, B& backend, const GateData<B>& data,
               Index vocabulary) {
  gates.push_back({"first-position", FirstPositionGate{}});
  gates.push_back({"norm-rule", NormGate(data.inputs.cols(), NormSource::residual, false), true});
  gates.push_back(
      {"token-table",
       TokenTableGate<B>(backend,
                         fit_token_table({data.tokens, data.delta, data.documents}, vocabulary))});
}

template <class B>
void add_logistic_gates(std::vector<NamedGate<B>>& gates, B& backend, const GateData<B>& data,
                        const DeltaLabels& labels) {
  auto logistic = fit_logistic_gate(backend, data.inputs.view(), labels.labels);
  gates.push_back(
      {"gate-logistic", std::move(logistic.gate), false, 0.5, fit_note(logistic.report)});
  auto cost = fit_cost_sensitive_gate(backend, data.inputs.view(), data.delta);
  gates.push_back({"gate-cost", std::move(cost.gate), false, 0.5, fit_note(cost.report)});
}

template <class B>
void add_wider_gates(std::vector<NamedGate<B>>& gates, B& backend, const GateData<B>& data,
                     const CoMoments& moments, const DeltaLabels& labels, std::uint64_t seed) {
  const std::vector<Index> counts{2, 6, 12};
  auto pca = fit_pca_gates(backend, data.inputs.view(), moments, labels.labels, counts);
  for (std::size_t i = 0; i < pca.size(); ++i) {
    gates.push_back({"gate-pca-" + std::to_string(counts[i]), std::move(pca[i].gate), false, 0.5,
                     fit_note(pca[i].report)});
  }
  for (const Index units : {1, 3, 6}) {
    auto fitted = fit_bottleneck_gate(backend, data.inputs.view(), labels.labels, {},
                                      {.units = units, .seed = seed});
    gates.push_back({"gate-bottleneck-" + std::to_string(units), std::move(fitted.gate), false, 0.5,
                     fit_note(fitted.report)});
  }
}

}  // namespace detail

/// The ladder's gates in the order of result files, fitted to label δ <= 0 (the surrogate does no
/// harm). `random` comes first and is given its rate by match_thresholds. Throws what the fits
/// throw.
template <class B>
std::vector<NamedGate<B>> fit_gate_ladder(B& backend, const GateData<B>& data, Index vocabulary,
                                          Ladder ladder, std::uint64_t seed) {
  const DeltaLabels labels = labels_at_most(data.delta, 0);
  std::vector<NamedGate<B>> gates;
  gates.push_back({"random", RandomGate(0.5, seed), true});
  detail::add_rules(gates, backend, data, vocabulary);
  detail::add_logistic_gates(gates, backend, data, labels);
  const CoMoments moments = gate_moments(backend, data.inputs.view(), data.delta);
  gates.push_back({"gate-delta", fit_delta_regression(backend, moments).gate});
  if (ladder == Ladder::full) {
    detail::add_wider_gates(gates, backend, data, moments, labels, seed);
  }
  return gates;
}

namespace detail {

/// The smallest group of gates fitted together that has this one.
template <class B>
std::vector<NamedGate<B>> fit_group_of(B& backend, const GateData<B>& data, Index vocabulary,
                                       const std::string& name, std::uint64_t seed) {
  const DeltaLabels labels = labels_at_most(data.delta, 0);
  std::vector<NamedGate<B>> gates;
  if (name == "random") {
    gates.push_back({"random", RandomGate(0.5, seed), true});
  } else if (!name.starts_with("gate-")) {
    add_rules(gates, backend, data, vocabulary);
  } else if (name == "gate-logistic" || name == "gate-cost") {
    add_logistic_gates(gates, backend, data, labels);
  } else {
    const CoMoments moments = gate_moments(backend, data.inputs.view(), data.delta);
    gates.push_back({"gate-delta", fit_delta_regression(backend, moments).gate});
    if (name != "gate-delta") add_wider_gates(gates, backend, data, moments, labels, seed);
  }
  return gates;
}

}  // namespace detail

/// The gate of that name as fit_gate_ladder fits it. Throws ProtocolError
/// ("protocol/unknown-gate"), and what the fit throws.
template <class B>
NamedGate<B> fit_ladder_gate(B& backend, const GateData<B>& data, Index vocabulary,
                             const std::string& name, std::uint64_t seed) {
  check_gate_name(name);
  std::vector<NamedGate<B>> gates = detail::fit_group_of(backend, data, vocabulary, name, seed);
  return std::move(*std::find_if(gates.begin(), gates.end(),
                                 [&](const NamedGate<B>& gate) { return gate.name == name; }));
}

/// Scores of every gate at one site, appended to the gate's list.
template <class B>
void append_scores(B& backend, const MlpSite<B>& site, const std::vector<NamedGate<B>>& gates,
                   std::vector<std::vector<double>>& scores, Workspace<B>& workspace) {
  const typename Workspace<B>::Frame frame(workspace);
  const VectorView<double> own = workspace.template vector<double>(site.mlp_input.rows);
  scores.resize(gates.size());
  for (std::size_t g = 0; g < gates.size(); ++g) {
    gates[g].gate.score(backend, site.mlp_input, site.rows, own, workspace);
    const std::vector<double> chosen = scored_rows_of(backend, site, own);
    scores[g].insert(scores[g].end(), chosen.begin(), chosen.end());
  }
}

/// How thresholds are chosen from scores on the select split: a share, or a share of the MLP's
/// FLOPs, or neither: the gate's own point.
struct ThresholdRule {
  std::optional<double> fraction{};
  std::optional<double> flops{};
  MlpCost surrogate{};  ///< of one token
  MlpCost mlp{};
};

/// How the options want thresholds chosen at a layer with this surrogate.
template <class B>
ThresholdRule threshold_rule(const SweepContext<B>& c, Index layer, const AnyMlp<B>& surrogate) {
  return {c.options.gate_fraction, c.options.gate_flops, surrogate.cost(1),
          c.model.mlp(layer).cost(1)};
}

namespace detail {

template <class B>
GateThreshold threshold_by(const ThresholdRule& rule, const NamedGate<B>& gate,
                           const std::vector<double>& scores) {
  if (rule.fraction) return threshold_for_fraction(scores, *rule.fraction);
  if (rule.flops) {
    return threshold_for_flops(scores, {gate.gate.cost(1), rule.surrogate, rule.mlp}, *rule.flops);
  }
  return threshold_at(scores, gate.gate.natural_threshold().value_or(0.5));
}

}  // namespace detail

/// Thresholds by the rule; where it is the gates' own, those without one route what gate-logistic
/// routes. Throws ProtocolError ("gate/flop-budget") where a budget cannot be met.
template <class B>
void set_thresholds(std::vector<NamedGate<B>>& gates,
                    const std::vector<std::vector<double>>& scores, const ThresholdRule& rule) {
  const bool is_own = !rule.fraction && !rule.flops;
  double matched = 0.5;
  for (std::size_t g = 0; g < gates.size(); ++g) {
    if (gates[g].matched && is_own) continue;
    const GateThreshold at = detail::threshold_by(rule, gates[g], scores[g]);
    gates[g].threshold = at.threshold;
    if (gates[g].name == "gate-logistic") matched = at.fraction;
  }
  for (std::size_t g = 0; g < gates.size(); ++g) {
    if (!gates[g].matched || !is_own) continue;
    gates[g].threshold = threshold_for_fraction(scores[g], matched).threshold;
  }
}

/// set_thresholds at the pass's layer; advances the pass.
template <class B>
void choose_thresholds(B& backend, LayerPass<B>& pass, std::vector<NamedGate<B>>& gates,
                       const ThresholdRule& rule, Workspace<B>& workspace) {
  std::vector<std::vector<double>> scores;
  pass.advance(
      [&](const MlpSite<B>& site) { append_scores(backend, site, gates, scores, workspace); });
  set_thresholds(gates, scores, rule);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
