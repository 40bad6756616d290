// What every experiment on layers begins with: the chosen layers, co-moments of all of them from
// one pass over the fit split, and the other splits on their way through the model.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/checkpoint.hpp"
#include "wanamaker/study/splits.hpp"
#include "wanamaker/study/walked_split.hpp"
#include "wanamaker/surrogate/co_moment_collector.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What an experiment on layers is given. Referenced objects must outlive the run.
template <class B>
struct StudyInput {
  B& backend;
  const AnyTransformer<B>& model;
  const TokenizedCorpus& corpus;
  const Splits& splits;
  Workspace<B>& workspace;
  WindowRule rule{};
  Protocol protocol{};  ///< token_ids_hash is filled in
  SweepOptions options{};
  ExecutorRef executor{};
  Progress progress{};
};

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

/// Losses of the full model on a set, summed.
inline SweepBaseline baseline_of(const EvaluationSet& set, std::span<const double> losses) {
  const double sum = sum_of(losses);
  return {static_cast<Index>(set.documents.size()), set.scored(), sum,
          perplexity_of(sum / static_cast<double>(set.scored()))};
}

/// Co-moments and walked splits for one run over the chosen layers, in ascending order.
template <class B>
class LayerStudy {
 public:
  /// Which splits the run needs beside fit.
  struct Needs {
    bool gate = true;
    bool select = true;
    bool report = true;
  };

  LayerStudy(const StudyInput<B>& input, Needs needs)
      : in_(input),
        layers_(chosen_layers(input.options.layers, input.model.layers())),
        collector_(input.backend, input.model.layers(), input.model.config().width,
                   {.precision = input.options.precision, .layers = layers_}) {
    collect_set(in_.backend, in_.model, set_of(in_.splits.fit), collector_, in_.workspace,
                in_.progress);
    if (needs.gate) gate_ = walk(in_.splits.gate, "baseline of the gate split");
    if (needs.select) select_ = walk(in_.splits.select, "baseline of the select split");
    if (needs.report) report_ = walk(in_.splits.report, "baseline of the report split");
  }

  const StudyInput<B>& input() const { return in_; }
  const std::vector<Index>& layers() const { return layers_; }
  const CoMoments& moments(Index layer) const { return collector_.moments(layer); }
  const WalkedSplit<B>* gate() const { return gate_.get(); }
  const WalkedSplit<B>* select() const { return select_.get(); }
  const WalkedSplit<B>& report() const { return *report_; }

  SweepContext<B> context() const {
    return {in_.backend,   in_.model,   in_.options,   in_.executor,
            in_.workspace, gate_.get(), select_.get(), report_.get()};
  }

  /// Moves every split on to the layer.
  void walk_to(Index layer) {
    for (WalkedSplit<B>* split : {gate_.get(), select_.get(), report_.get()}) {
      if (split != nullptr) split->walk_to(layer);
    }
  }

  /// measure(layer), or the stored result, for every layer in order.
  template <class Result, class Measure>
  std::vector<Result> for_each_layer(const std::string& stage,
                                     const Checkpoint<Index, Result>& checkpoint,
                                     Measure&& measure) {
    std::vector<Result> results;
    const Index count = static_cast<Index>(layers_.size());
    for (const Index layer : layers_) {
      in_.progress(stage, static_cast<Index>(results.size()), count);
      results.push_back(stored_or(checkpoint, layer, [&] {
        walk_to(layer);
        return measure(layer);
      }));
    }
    in_.progress(stage, count, count);
    return results;
  }

  /// Baseline and hash of the ids are those of the report split, where the run needs one.
  StudyHeader header() const {
    StudyHeader header{
        .protocol = in_.protocol,
        .model = summarise_model(in_.model),
        .fit_documents = static_cast<Index>(in_.splits.fit.documents.size()),
        .fit_tokens = collector_.rows_seen(layers_.front()),
        .gate_documents = gate_ ? static_cast<Index>(gate_->set.documents.size()) : 0,
        .gate_tokens = gate_ ? gate_->set.scored() : 0,
        .baseline = {}};
    if (!report_) return header;
    header.baseline = baseline_of(report_->set, report_->baseline);
    header.protocol.token_ids_hash = token_ids_hash(report_->set);
    return header;
  }

 private:
  template <class Purpose>
  EvaluationSet set_of(const Split<Purpose>& split) const {
    return make_evaluation_set(in_.corpus, split.documents, in_.rule);
  }
  template <class Purpose>
  std::unique_ptr<WalkedSplit<B>> walk(const Split<Purpose>& split, const std::string& stage) {
    return walk_split(in_.backend, in_.model, set_of(split), in_.workspace, in_.progress, stage);
  }

  const StudyInput<B>& in_;
  std::vector<Index> layers_;
  CoMomentCollector<B> collector_;
  std::unique_ptr<WalkedSplit<B>> gate_;
  std::unique_ptr<WalkedSplit<B>> select_;
  std::unique_ptr<WalkedSplit<B>> report_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
