// The sweep: for every layer, what replacing its MLP by a surrogate costs, against the full model
// on the same tokens, paired by document.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/stats/distribution_summary.hpp"
#include "wanamaker/stats/multiple_comparisons.hpp"
#include "wanamaker/stats/paired_bootstrap.hpp"
#include "wanamaker/study/layer_pass.hpp"
#include "wanamaker/study/perplexity.hpp"
#include "wanamaker/study/splits.hpp"
#include "wanamaker/study/token_losses.hpp"
#include "wanamaker/surrogate/co_moment_collector.hpp"
#include "wanamaker/surrogate/ridge.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Loss of the full model on the report split.
struct SweepBaseline {
  Index documents = 0;
  Index tokens = 0;
  double nll_sum = 0;
  double perplexity = 0;
};

/// One stand-in for one layer's MLP, compared with the full model.
struct VariantResult {
  std::string name;       ///< zero, mean, ridge, …
  double parameters = 0;  ///< of the stand-in
  double nll_sum = 0;     ///< nats, on the report split
  double perplexity = 0;
  PairedComparison comparison{};
  std::optional<double> p_holm{};  ///< over the layers of this variant
  std::optional<double> p_bh{};
};

struct LayerResult {
  Index layer = 0;
  double r2 = 0;         ///< of the ridge map on the fit split, all outputs together
  double condition = 0;  ///< of the regularised normal matrix
  double lambda = 0;
  DistributionSummary delta{};  ///< joint δ in nats of the ridge variant on the report split
  std::vector<VariantResult> variants{};
};

struct SweepResult {
  Protocol protocol{};
  ModelSummary model{};
  Index fit_documents = 0;
  Index fit_tokens = 0;
  SweepBaseline baseline{};
  std::vector<LayerResult> layers{};
};

struct SweepOptions {
  std::vector<Index> layers;  ///< ascending; empty: all
  double rho = 1e-6;          ///< λ = ρ·tr(XcᵀXc)/d
  GramPrecision precision = GramPrecision::exact;
  PairedOptions intervals;
};

/// Co-moments of every layer's MLP from one pass over the fit split.
template <class B>
CoMomentCollector<B> collect_co_moments(B& backend, const AnyTransformer<B>& model,
                                        const TokenizedCorpus& corpus, const FitSplit& fit,
                                        const WindowRule& rule, GramPrecision precision,
                                        Workspace<B>& workspace, const Progress& progress = {}) {
  const EvaluationSet set = make_evaluation_set(corpus, fit.documents, rule);
  CoMomentCollector<B> collector(backend, model.layers(), model.config().width,
                                 {.precision = precision});
  const Index batches = static_cast<Index>(set.batches.size());
  for (Index b = 0; b < batches; ++b) {
    progress("co-moments", b, batches);
    const EvaluationBatch& batch = set.batches[static_cast<std::size_t>(b)];
    const typename Workspace<B>::Frame frame(workspace);
    const PackedBatch<B> packed(backend, batch.tokens, batch.offsets);
    const matrix_view_t<B> residual = workspace.matrix(packed.rows(), model.config().width);
    model.forward(backend, packed, residual, workspace, collector);
  }
  collector.finish();
  progress("co-moments", batches, batches);
  return collector;
}

namespace detail {

/// One stand-in to evaluate at a layer.
template <class B>
struct NamedPolicy {
  std::string name;
  AnyMlp<B> policy;
};

template <class B>
std::vector<NamedPolicy<B>> surrogate_ladder(B& backend, const CoMoments& moments,
                                             const RidgeSurrogate& ridge) {
  std::vector<NamedPolicy<B>> ladder;
  ladder.push_back({"zero", ZeroMlp<B>{}});
  std::vector<scalar_t<B>> mean;
  for (const double m : moments.mean_y()) mean.push_back(static_cast<scalar_t<B>>(m));
  ladder.push_back({"mean", MeanMlp<B>(matrix_from_host<scalar_t<B>>(
                                backend, mean.data(), 1, static_cast<Index>(mean.size())))});
  ladder.push_back({"ridge", ridge.to_mlp(backend)});
  return ladder;
}

/// Losses of every policy at the pass's layer; advances the pass.
template <class B>
void evaluate_policies(B& backend, LayerPass<B>& pass, const std::vector<NamedPolicy<B>>& policies,
                       TokenLosses& losses, std::size_t first_row, Workspace<B>& workspace) {
  pass.advance([&](const MlpSite<B>& site) {
    const typename Workspace<B>::Frame frame(workspace);
    const matrix_view_t<B> output = workspace.matrix(site.mlp_input.rows, site.mlp_input.cols);
    for (std::size_t v = 0; v < policies.size(); ++v) {
      policies[v].policy.forward(backend, site.mlp_input, site.rows, output, workspace);
      pass.losses_with(site, output, losses.row(first_row + v));
    }
  });
}

inline std::vector<VariantResult> compare_variants(const TokenLosses& losses,
                                                   const std::vector<double>& parameters,
                                                   const PairedOptions& options,
                                                   const ExecutorRef& executor) {
  std::vector<PairedSums> sums;
  for (std::size_t v = 1; v < losses.variants.size(); ++v) sums.push_back(losses.paired(0, v));
  const std::vector<PairedComparison> comparisons = compare_paired(sums, options, executor);
  std::vector<VariantResult> results;
  for (std::size_t v = 1; v < losses.variants.size(); ++v) {
    VariantResult result{.name = losses.variants[v], .parameters = parameters[v - 1]};
    result.nll_sum = sum_of(losses.row(v));
    result.perplexity = perplexity_of(result.nll_sum / static_cast<double>(losses.row(v).size()));
    result.comparison = comparisons[v - 1];
    results.push_back(std::move(result));
  }
  return results;
}

/// Holm and Benjamini–Hochberg over the layers, one family for each variant.
inline void adjust_p_values(std::vector<LayerResult>& layers) {
  if (layers.empty()) return;
  for (std::size_t v = 0; v < layers.front().variants.size(); ++v) {
    std::vector<std::optional<double>> p;
    for (const LayerResult& layer : layers) p.push_back(layer.variants[v].comparison.p_value);
    const auto holm = holm_adjusted(p);
    const auto bh = benjamini_hochberg_adjusted(p);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      layers[l].variants[v].p_holm = holm[l];
      layers[l].variants[v].p_bh = bh[l];
    }
  }
}

inline std::vector<double> differences(std::span<const double> variant,
                                       std::span<const double> baseline) {
  std::vector<double> delta;
  delta.reserve(variant.size());
  for (std::size_t i = 0; i < variant.size(); ++i) delta.push_back(variant[i] - baseline[i]);
  return delta;
}

}  // namespace detail

/// The chosen layers, all of them where none are named. Throws ProtocolError for a layer that the
/// model does not have.
inline std::vector<Index> chosen_layers(const std::vector<Index>& wanted, Index layers) {
  std::vector<Index> result = wanted;
  if (result.empty()) {
    for (Index l = 0; l < layers; ++l) result.push_back(l);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  for (const Index l : result) {
    if (l >= 0 && l < layers) continue;
    throw ProtocolError({.id = "protocol/no-such-layer",
                         .where = "--layers",
                         .what = "the model has no such layer",
                         .expected = "0 to " + std::to_string(layers - 1),
                         .found = std::to_string(l),
                         .mend = "name layers that the model has"});
  }
  return result;
}

/// Fits on the fit split, reports on the report split. Every variant of a layer shares the prefix;
/// layer ℓ's variants run only what follows its MLP. Throws what its parts throw; non-finite losses
/// are a NumericalError.
template <class B>
SweepResult run_sweep(B& backend, const AnyTransformer<B>& model, const TokenizedCorpus& corpus,
                      const Splits& splits, const WindowRule& rule, const Protocol& protocol,
                      const SweepOptions& options, const ExecutorRef& executor,
                      Workspace<B>& workspace, const Progress& progress = {}) {
  const std::vector<Index> layers = chosen_layers(options.layers, model.layers());
  const CoMomentCollector<B> collector = collect_co_moments(
      backend, model, corpus, splits.fit, rule, options.precision, workspace, progress);

  const EvaluationSet report = make_evaluation_set(corpus, splits.report.documents, rule);
  const std::vector<double> baseline =
      run_losses(backend, model, report, workspace, progress, "baseline");

  SweepResult result{.protocol = protocol, .model = summarise_model(model)};
  result.protocol.token_ids_hash = token_ids_hash(report);
  result.fit_documents = static_cast<Index>(splits.fit.documents.size());
  result.fit_tokens = collector.rows_seen(collector.layers().front());
  result.baseline = {static_cast<Index>(report.documents.size()), report.scored(), sum_of(baseline),
                     perplexity_of(sum_of(baseline) / static_cast<double>(report.scored()))};

  LayerPass<B> pass(backend, model, report, workspace);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    progress("sweep", static_cast<Index>(i), static_cast<Index>(layers.size()));
    while (pass.layer() < layers[i]) pass.advance();
    const CoMoments& moments = collector.moments(layers[i]);
    const RidgeSurrogate ridge = RidgeSurrogate::fit(moments, {.lambda = options.rho});
    const auto ladder = detail::surrogate_ladder(backend, moments, ridge);
    std::vector<std::string> names{"full"};
    std::vector<double> parameters;
    for (const auto& entry : ladder) {
      names.push_back(entry.name);
      parameters.push_back(entry.policy.cost(1).parameters);
    }
    TokenLosses losses(std::move(names), report.document_offsets);
    std::copy(baseline.begin(), baseline.end(), losses.row(0).begin());
    detail::evaluate_policies(backend, pass, ladder, losses, 1, workspace);
    for (std::size_t v = 1; v < losses.variants.size(); ++v) {
      check_finite_losses(losses.row(v),
                          "layer " + std::to_string(layers[i]) + ", " + losses.variants[v]);
    }
    LayerResult layer{.layer = layers[i],
                      .r2 = ridge.report().in_sample.r2,
                      .condition = ridge.report().condition,
                      .lambda = ridge.report().lambda};
    layer.delta = summarise_distribution(detail::differences(losses.row(3), losses.row(0)));
    layer.variants = detail::compare_variants(losses, parameters, options.intervals, executor);
    result.layers.push_back(std::move(layer));
  }
  progress("sweep", static_cast<Index>(layers.size()), static_cast<Index>(layers.size()));
  detail::adjust_p_values(result.layers);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
