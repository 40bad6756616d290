// The sweep: for every layer, what replacing its MLP by a surrogate costs, against the full model
// on the same tokens, paired by document.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/stats/multiple_comparisons.hpp"
#include "wanamaker/study/layer_sweep.hpp"
#include "wanamaker/study/splits.hpp"
#include "wanamaker/surrogate/co_moment_collector.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

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

/// Runs the set through the model once, all layers' MLP inputs and outputs into the collector.
template <class B>
void collect_set(B& backend, const AnyTransformer<B>& model, const EvaluationSet& set,
                 CoMomentCollector<B>& collector, Workspace<B>& workspace,
                 const Progress& progress = {}) {
  const Index batches = static_cast<Index>(set.batches.size());
  for (Index b = 0; b < batches && !collector.is_full(); ++b) {
    progress("co-moments", b, batches);
    const EvaluationBatch& batch = set.batches[static_cast<std::size_t>(b)];
    const typename Workspace<B>::Frame frame(workspace);
    const PackedBatch<B> packed(backend, batch.tokens, batch.offsets);
    const matrix_view_t<B> residual = workspace.matrix(packed.rows(), model.config().width);
    model.forward(backend, packed, residual, workspace, collector);
  }
  collector.finish();
  progress("co-moments", batches, batches);
}

/// Co-moments of every layer's MLP from one pass over the fit split.
template <class B>
CoMomentCollector<B> collect_co_moments(B& backend, const AnyTransformer<B>& model,
                                        const TokenizedCorpus& corpus, const FitSplit& fit,
                                        const WindowRule& rule, const SweepOptions& options,
                                        Workspace<B>& workspace, const Progress& progress = {}) {
  CoMomentCollector<B> collector(
      backend, model.layers(), model.config().width,
      {.precision = options.precision, .layers = chosen_layers(options.layers, model.layers())});
  collect_set(backend, model, make_evaluation_set(corpus, fit.documents, rule), collector,
              workspace, progress);
  return collector;
}

namespace detail {

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

}  // namespace detail

/// What a run may leave behind layer by layer, to go on after an interruption.
struct SweepCheckpoint {
  /// The stored result of a layer, where there is one.
  std::function<std::optional<LayerResult>(Index layer)> load;
  std::function<void(const LayerResult& result)> save;
};

namespace detail {

template <class B>
struct SweepSplits {
  std::unique_ptr<WalkedSplit<B>> gate;
  std::unique_ptr<WalkedSplit<B>> select;
  std::unique_ptr<WalkedSplit<B>> report;

  // Moves every split past the layers before `layer`.
  void walk_to(Index layer) {
    for (WalkedSplit<B>* split : {gate.get(), select.get(), report.get()}) {
      while (split != nullptr && split->pass->layer() < layer) split->pass->advance();
    }
  }
};

template <class B>
SweepSplits<B> walk_splits(B& backend, const AnyTransformer<B>& model,
                           const TokenizedCorpus& corpus, const Splits& splits,
                           const WindowRule& rule, const SweepOptions& options,
                           Workspace<B>& workspace, const Progress& progress) {
  const auto walk = [&](const std::vector<Index>& documents, const std::string& stage) {
    return walk_split(backend, model, make_evaluation_set(corpus, documents, rule), workspace,
                      progress, stage);
  };
  SweepSplits<B> walked;
  const bool has_gates = options.ladder != Ladder::surrogates;
  if (has_gates) walked.gate = walk(splits.gate.documents, "baseline of the gate split");
  if (has_gates || options.rhos.size() > 1) {
    walked.select = walk(splits.select.documents, "baseline of the select split");
  }
  walked.report = walk(splits.report.documents, "baseline of the report split");
  return walked;
}

inline SweepBaseline baseline_of(const EvaluationSet& set, std::span<const double> losses) {
  const double sum = sum_of(losses);
  return {static_cast<Index>(set.documents.size()), set.scored(), sum,
          perplexity_of(sum / static_cast<double>(set.scored()))};
}

}  // namespace detail

/// Fits surrogates on the fit split and gates on the gate split, chooses λ and thresholds on the
/// select split, reports on the report split. Every variant of a layer shares the prefix; layer ℓ's
/// variants run only what follows its MLP. Throws what its parts throw; non-finite losses are a
/// NumericalError.
template <class B>
SweepResult run_sweep(B& backend, const AnyTransformer<B>& model, const TokenizedCorpus& corpus,
                      const Splits& splits, const WindowRule& rule, const Protocol& protocol,
                      const SweepOptions& options, const ExecutorRef& executor,
                      Workspace<B>& workspace, const Progress& progress = {},
                      const SweepCheckpoint& checkpoint = {}) {
  const std::vector<Index> layers = chosen_layers(options.layers, model.layers());
  const CoMomentCollector<B> collector =
      collect_co_moments(backend, model, corpus, splits.fit, rule, options, workspace, progress);
  detail::SweepSplits<B> walked =
      detail::walk_splits(backend, model, corpus, splits, rule, options, workspace, progress);

  SweepResult result{.protocol = protocol, .model = summarise_model(model)};
  result.protocol.token_ids_hash = token_ids_hash(walked.report->set);
  result.fit_documents = static_cast<Index>(splits.fit.documents.size());
  result.fit_tokens = collector.rows_seen(collector.layers().front());
  if (walked.gate) {
    result.gate_documents = static_cast<Index>(splits.gate.documents.size());
    result.gate_tokens = walked.gate->set.scored();
  }
  result.baseline = detail::baseline_of(walked.report->set, walked.report->baseline);

  const SweepContext<B> context{backend,
                                model,
                                options,
                                executor,
                                workspace,
                                walked.gate.get(),
                                walked.select.get(),
                                walked.report.get()};
  const Index count = static_cast<Index>(layers.size());
  for (Index i = 0; i < count; ++i) {
    progress("sweep", i, count);
    const Index layer = layers[static_cast<std::size_t>(i)];
    std::optional<LayerResult> stored = checkpoint.load ? checkpoint.load(layer) : std::nullopt;
    if (!stored) {
      walked.walk_to(layer);
      stored = LayerSweep<B>(context, layer, collector.moments(layer)).run();
      if (checkpoint.save) checkpoint.save(*stored);
    }
    result.layers.push_back(std::move(*stored));
  }
  progress("sweep", count, count);
  detail::adjust_p_values(result.layers);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
