// A sweep as published: ridge on 10,000 tokens, logistic and PCA gates on 25,000, the perplexity of
// each on 12,000.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/paper_protocol.hpp"
#include "wanamaker/study/sweep.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// A published gate: its name in the published files and in ours.
template <class B>
struct PaperGateFit {
  std::string published_name;
  std::string name;
  double parameters;
  LogisticGate<B> gate;
};

/// Co-moments of the first `tokens` rows of a set, all layers in one pass.
template <class B>
CoMomentCollector<B> paper_co_moments(B& backend, const AnyTransformer<B>& model,
                                      const EvaluationSet& set, Index tokens,
                                      Workspace<B>& workspace, const Progress& progress) {
  CoMomentCollector<B> collector(backend, model.layers(), model.config().width,
                                 {.row_limit = tokens});
  collect_set(backend, model, set, collector, workspace, progress);
  return collector;
}

// The four gates on the first `tokens` rows of the gate data.
template <class B>
std::vector<PaperGateFit<B>> fit_paper_gates(B& backend, const GateData<B>& data, Index tokens,
                                             double C) {
  const Index n = std::min(tokens, data.inputs.rows());
  const std::span<const double> delta(data.delta.data(), static_cast<std::size_t>(n));
  const const_matrix_view_t<B> x = data.inputs.view().middle_rows(0, n);
  const std::vector<std::uint8_t> labels = published_labels(delta).labels;
  const LogisticOptions options{.C = C};
  std::vector<PaperGateFit<B>> gates;
  auto plain = fit_logistic_gate<B>(backend, x, labels, {}, options);
  gates.push_back(
      {"linear", "gate-logistic", static_cast<double>(x.cols + 1), std::move(plain.gate)});
  const CoMoments moments = gate_moments<B>(backend, x, delta);
  const std::vector<Index> counts{2, 6, 12};
  auto pca = fit_pca_gates<B>(backend, x, moments, labels, counts, {}, options);
  for (std::size_t i = 0; i < pca.size(); ++i) {
    gates.push_back({"b=" + std::to_string(counts[i] / 2), "gate-pca-" + std::to_string(counts[i]),
                     pca[i].published_parameters, std::move(pca[i].gate)});
  }
  return gates;
}

/// Losses of the surrogate and of each gate on the evaluation set, and the share of all positions
/// that each gate routes.
struct PaperMeasurement {
  std::vector<std::vector<double>> losses;
  std::vector<double> routed;
};

// Advances the evaluation pass; `linear_losses`: of the surrogate on all rows.
template <class B>
PaperMeasurement measure_paper_gates(const SweepContext<B>& c, const AnyMlp<B>& ridge,
                                     const std::vector<PaperGateFit<B>>& gates,
                                     LinearLosses linear_losses) {
  PaperMeasurement m;
  m.losses.assign(gates.size(), std::vector<double>(linear_losses.size()));
  m.routed.assign(gates.size(), 0.0);
  double positions = 0;
  c.report->pass->advance([&](const MlpSite<B>& site) {
    const typename Workspace<B>::Frame frame(c.workspace);
    const Index rows = site.mlp_input.rows;
    positions += static_cast<double>(rows);
    const matrix_view_t<B> linear = c.workspace.matrix(rows, site.mlp_input.cols);
    const VectorView<double> scores = c.workspace.template vector<double>(rows);
    ridge.forward(c.backend, site.mlp_input, site.rows, linear, c.workspace);
    for (std::size_t g = 0; g < gates.size(); ++g) {
      gates[g].gate.score(c.backend, site.mlp_input, site.rows, scores, c.workspace);
      const std::vector<double> host = host_copy(c.backend, scores);
      m.routed[g] += threshold_at(host, 0.5).fraction * static_cast<double>(rows);
      measure_selected(c, site, *c.report, scores, 0.5, linear, linear_losses, m.losses[g]);
    }
  });
  for (double& r : m.routed) r = 100 * r / positions;
  return m;
}

inline VariantResult paper_variant(const std::string& name, double parameters,
                                   std::span<const double> losses) {
  VariantResult variant{.name = name, .parameters = parameters, .nll_sum = sum_of(losses)};
  variant.perplexity = perplexity_of(variant.nll_sum / static_cast<double>(losses.size()));
  return variant;
}

inline double percent_over(double perplexity, double baseline) {
  return 100 * (perplexity / baseline - 1);
}

/// One layer by the published procedure; both passes stand at it before and past it afterwards.
template <class B>
class PaperLayerSweep {
 public:
  PaperLayerSweep(const SweepContext<B>& context, const PaperFigures& figures,
                  const CoMoments& moments)
      : c_(context), figures_(figures), width_(context.model.config().width), moments_(moments) {}

  LayerResult run(Index layer) {
    result_.layer = layer;
    fit_ridge();
    measure_ridge();
    if (paper_.all_linear_delta_pct > figures_.largest_percent) {
      c_.gate->pass->advance();
      c_.report->pass->advance();
    } else {
      measure_gates();
    }
    const auto comparisons = compare_paired(sums_, c_.options.intervals, c_.executor);
    for (std::size_t v = 0; v < sums_.size(); ++v) result_.variants[v].comparison = comparisons[v];
    result_.paper = std::move(paper_);
    return std::move(result_);
  }

 private:
  void fit_ridge() {
    const RidgeSurrogate ridge = RidgeSurrogate::fit(
        moments_, {.lambda = figures_.lambda, .scale = LambdaScale::absolute}, c_.executor);
    policy_ = AnyMlp<B>(ridge.to_mlp(c_.backend));
    result_.r2 = ridge.report().in_sample.r2;
    result_.condition = ridge.report().condition;
    result_.lambda = ridge.report().lambda;
  }

  void add_variant(VariantResult variant, const std::vector<double>& losses) {
    check_finite_losses(losses, "layer " + std::to_string(result_.layer) + ", " + variant.name);
    result_.variants.push_back(std::move(variant));
    sums_.push_back(sum_by_document(c_.report->baseline, losses, c_.report->set.document_offsets));
  }

  double baseline_perplexity() const {
    const std::vector<double>& losses = c_.report->baseline;
    return perplexity_of(sum_of(losses) / static_cast<double>(losses.size()));
  }

  void measure_ridge() {
    linear_losses_.resize(c_.report->baseline.size());
    c_.report->pass->visit([&](const MlpSite<B>& site) {
      measure_policy(c_, policy_, site, *c_.report->pass, linear_losses_);
    });
    add_variant(paper_variant("ridge", policy_.cost(1).parameters, linear_losses_), linear_losses_);
    result_.delta = summarise_distribution(differences(linear_losses_, c_.report->baseline));
    paper_.all_linear_ppl = result_.variants.front().perplexity;
    paper_.all_linear_delta_pct = percent_over(paper_.all_linear_ppl, baseline_perplexity());
  }

  void measure_gates() {
    const GateData<B> data = collect_gate_data(c_.backend, *c_.gate->pass, policy_,
                                               c_.gate->baseline, width_, c_.workspace);
    const auto gates = fit_paper_gates(c_.backend, data, figures_.gate_tokens, figures_.C);
    const PaperMeasurement m = measure_paper_gates(c_, policy_, gates, linear_losses_);
    for (std::size_t g = 0; g < gates.size(); ++g) {
      VariantResult variant = paper_variant(
          gates[g].name, gates[g].parameters + policy_.cost(1).parameters, m.losses[g]);
      variant.fraction_linear = m.routed[g] / 100;
      variant.threshold = 0.5;
      paper_.gates.push_back({gates[g].published_name, gates[g].parameters, variant.perplexity,
                              percent_over(variant.perplexity, baseline_perplexity()),
                              m.routed[g]});
      add_variant(std::move(variant), m.losses[g]);
    }
  }

  const SweepContext<B>& c_;
  const PaperFigures& figures_;
  Index width_;
  const CoMoments& moments_;
  AnyMlp<B> policy_{};
  std::vector<double> linear_losses_;
  LayerResult result_{};
  PaperLayer paper_{};
  std::vector<PairedSums> sums_;
};

}  // namespace detail

/// Runs the published procedure on every chosen layer. Results have, beside the published figures,
/// intervals paired by row, which the procedure lacks. Layers that `checkpoint` has are not
/// measured again. Throws what its parts throw.
template <class B>
SweepResult run_paper_sweep(B& backend, const AnyTransformer<B>& model, const PaperSets& sets,
                            const PaperFigures& figures, const Protocol& protocol,
                            const SweepOptions& options, const ExecutorRef& executor,
                            Workspace<B>& workspace, const Progress& progress = {},
                            const SweepCheckpoint& checkpoint = {}) {
  const std::vector<Index> layers = chosen_layers(options.layers, model.layers());
  const auto collector =
      detail::paper_co_moments(backend, model, sets.fit, figures.fit_tokens, workspace, progress);
  const auto gate = walk_split(backend, model, sets.gate, workspace, progress, "gate rows");
  const auto evaluation =
      walk_split(backend, model, sets.evaluation, workspace, progress, "evaluation rows");
  SweepResult result;
  result.protocol = protocol;
  result.model = summarise_model(model);
  result.protocol.token_ids_hash = token_ids_hash(evaluation->set);
  result.fit_documents = static_cast<Index>(sets.fit.documents.size());
  result.fit_tokens = collector.rows_seen(collector.layers().front());
  result.gate_documents = static_cast<Index>(sets.gate.documents.size());
  result.gate_tokens = std::min(figures.gate_tokens, sets.gate.scored());
  result.baseline = baseline_of(evaluation->set, evaluation->baseline);
  const SweepContext<B> context{backend,   model,      options, executor,
                                workspace, gate.get(), nullptr, evaluation.get()};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    progress("sweep", static_cast<Index>(i), static_cast<Index>(layers.size()));
    result.layers.push_back(stored_or(checkpoint, layers[i], [&] {
      for (WalkedSplit<B>* split : {gate.get(), evaluation.get()}) {
        while (split->pass->layer() < layers[i]) split->pass->advance();
      }
      return detail::PaperLayerSweep<B>(context, figures, collector.moments(layers[i]))
          .run(layers[i]);
    }));
  }
  progress("sweep", static_cast<Index>(layers.size()), static_cast<Index>(layers.size()));
  detail::adjust_p_values(result.layers);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
