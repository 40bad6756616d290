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
#include "wanamaker/study/layer_pass.hpp"
#include "wanamaker/study/sweep_result.hpp"

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

/// Inputs and δ of the surrogate at the pass's layer; advances the pass.
template <class B>
GateData<B> collect_gate_data(B& backend, LayerPass<B>& pass, const AnyMlp<B>& surrogate,
                              std::span<const double> baseline, Index width,
                              Workspace<B>& workspace) {
  const Index n = pass.set().scored();
  GateData<B> data{make_matrix(backend, n, width), {}, {}, documents_of_losses(pass.set())};
  std::vector<double> losses(static_cast<std::size_t>(n));
  pass.advance([&](const MlpSite<B>& site) {
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
    const matrix_view_t<B> output = workspace.matrix(site.mlp_input.rows, width);
    surrogate.forward(backend, site.mlp_input, site.rows, output, workspace);
    pass.losses_with(site, output, losses);
  });
  data.delta.reserve(losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) data.delta.push_back(losses[i] - baseline[i]);
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

/// Scores of all rows of one site in host memory, reduced to those that predict a scored token.
template <class B>
std::vector<double> scored_rows_of(B& backend, const MlpSite<B>& site, VectorView<double> scores) {
  std::vector<double> all(static_cast<std::size_t>(scores.size));
  backend.synchronize();
  backend.copy_to_host(scores.data, scores.size, all.data());
  std::vector<double> chosen;
  chosen.reserve(site.tokens.scored.rows.size());
  for (const TokenId row : site.tokens.scored.rows) {
    chosen.push_back(all[static_cast<std::size_t>(row)]);
  }
  return chosen;
}

/// Chooses thresholds on the select split: the wanted share, else the gate's own point; gates
/// without one route what gate-logistic routes. Advances the pass.
template <class B>
void choose_thresholds(B& backend, LayerPass<B>& pass, std::vector<NamedGate<B>>& gates,
                       std::optional<double> fraction, Workspace<B>& workspace) {
  std::vector<std::vector<double>> scores(gates.size());
  pass.advance([&](const MlpSite<B>& site) {
    const typename Workspace<B>::Frame frame(workspace);
    const VectorView<double> own = workspace.template vector<double>(site.mlp_input.rows);
    for (std::size_t g = 0; g < gates.size(); ++g) {
      gates[g].gate.score(backend, site.mlp_input, site.rows, own, workspace);
      const std::vector<double> chosen = scored_rows_of(backend, site, own);
      scores[g].insert(scores[g].end(), chosen.begin(), chosen.end());
    }
  });
  double matched = fraction.value_or(0.5);
  for (std::size_t g = 0; g < gates.size(); ++g) {
    if (gates[g].matched) continue;
    const GateThreshold at =
        fraction ? threshold_for_fraction(scores[g], *fraction)
                 : threshold_at(scores[g], gates[g].gate.natural_threshold().value_or(0.5));
    gates[g].threshold = at.threshold;
    if (gates[g].name == "gate-logistic" && !fraction) matched = at.fraction;
  }
  for (std::size_t g = 0; g < gates.size(); ++g) {
    if (gates[g].matched) {
      gates[g].threshold = threshold_for_fraction(scores[g], matched).threshold;
    }
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
