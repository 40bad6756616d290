// Plain ways to a cheaper model, to be compared with: whole blocks left out one after the other,
// and one linear map of the residual stream for a run of blocks (as ReplaceMe: Shopkhoev et al.
// 2025).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/optimise_measure.hpp"
#include "wanamaker/surrogate/ridge.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// At each step the block whose loss is missed least.
template <class B>
class BlockDrop {
 public:
  explicit BlockDrop(OptimiseMeasure<B>& measure) : measure_(measure) {}

  std::optional<FoundModel<B>> next() {
    const double saved = measure_.costs().at("block");
    if (!(saved > 0)) return std::nullopt;
    std::vector<OptimiseMove> moves;
    for (const Index layer : measure_.study().layers()) {
      if (!edits_.runs(layer)) continue;
      BlockEdits<B> edits = edits_;
      edits.leave_out(layer);
      moves.push_back({layer, "left-out", saved, measure_.select_nats(edits)});
    }
    const OptimiseMove* move =
        best_move(moves, measure_.select_baseline(), measure_.select_budget());
    if (move == nullptr) return std::nullopt;
    edits_.leave_out(move->layer);
    FoundModel<B> found{.edits = edits_};
    found.point.move = "layer " + std::to_string(move->layer) + ": left out";
    for (Index l = 0; l < measure_.context().model.layers(); ++l) {
      if (!edits_.runs(l)) found.point.changes.push_back({l, "left-out", {}});
    }
    measure_.measure(found);
    return found;
  }

 private:
  OptimiseMeasure<B>& measure_;
  BlockEdits<B> edits_{};
};

/// Blocks [first, last].
struct BlockRun {
  Index first = 0;
  Index last = -1;

  bool empty() const { return last < first; }
};

/// The best single block, then at each step the run longer by one block within the chosen layers,
/// on the side where less is lost; its map fitted by ridge regression from the stream that enters
/// the first block to what the run adds to it, with the penalty that loses least.
template <class B>
class LinearRun {
 public:
  explicit LinearRun(OptimiseMeasure<B>& measure) : measure_(measure), c_(measure.context()) {}

  std::optional<FoundModel<B>> next() {
    const double saved = measure_.costs().at("block");
    if (!(saved > 0)) return std::nullopt;
    std::vector<BlockRun> runs;
    std::vector<FoundModel<B>> models;
    std::vector<OptimiseMove> moves;
    for (const BlockRun& run : longer_runs()) {
      const CoMoments moments = moments_of(run);
      for (const double rho : c_.options.rhos) {
        runs.push_back(run);
        models.push_back(with_map(run, moments, rho));
        const auto number = static_cast<Index>(moves.size());
        moves.push_back({number, "linear", saved, measure_.select_nats(models.back().edits)});
      }
    }
    const OptimiseMove* move =
        best_move(moves, measure_.select_baseline(), measure_.select_budget());
    if (move == nullptr) return std::nullopt;
    run_ = runs[static_cast<std::size_t>(move->layer)];
    FoundModel<B> found = std::move(models[static_cast<std::size_t>(move->layer)]);
    describe(found.point);
    measure_.measure(found);
    return found;
  }

 private:
  std::vector<BlockRun> longer_runs() const {
    std::vector<BlockRun> runs;
    const std::vector<Index>& layers = measure_.study().layers();
    for (const Index l : layers) {
      if (run_.empty()) runs.push_back({l, l});
    }
    if (run_.empty()) return runs;
    if (run_.first > layers.front()) runs.push_back({run_.first - 1, run_.last});
    if (run_.last < layers.back()) runs.push_back({run_.first, run_.last + 1});
    return runs;
  }

  FoundModel<B> with_map(const BlockRun& run, const CoMoments& moments, double rho) {
    FoundModel<B> model;
    const auto map = std::make_shared<AnyMlp<B>>(
        RidgeSurrogate::fit(moments, {.lambda = rho}, c_.executor).to_mlp(c_.backend));
    model.edits.leave_out(run.first, map.get());
    for (Index l = run.first + 1; l <= run.last; ++l) model.edits.leave_out(l);
    model.policies.push_back(map);
    return model;
  }

  /// Of the stream before the run, and of what the run adds to it.
  CoMoments moments_of(const BlockRun& run) {
    const StudyInput<B>& in = measure_.study().input();
    const EvaluationSet set = make_evaluation_set(in.corpus, in.splits.fit.documents, in.rule);
    CoMomentCollector<B> collector(c_.backend, 1, c_.model.config().width,
                                   {.precision = c_.options.precision});
    for (const EvaluationBatch& batch : set.batches) {
      measure_.progress().poll();
      const typename Workspace<B>::Frame frame(c_.workspace);
      const PackedBatch<B> packed(c_.backend, batch.tokens, batch.offsets);
      const matrix_view_t<B> stream = c_.workspace.matrix(packed.rows(), c_.model.config().width);
      c_.model.embed(c_.backend, packed, stream);
      run_blocks(0, run.first, packed, stream);
      collector.on_mlp_input(0, stream);
      const matrix_view_t<B> before = c_.workspace.matrix(stream.rows, stream.cols);
      ops::copy<B>(c_.backend, stream, before);
      run_blocks(run.first, run.last + 1, packed, stream);
      ops::subtract<B>(c_.backend, stream, before, stream);
      collector.on_mlp_output(0, stream);
    }
    collector.finish();
    return collector.moments(0);
  }
  void run_blocks(Index first, Index end, const PackedBatch<B>& batch, matrix_view_t<B> stream) {
    forward_blocks(c_.backend, c_.model, MlpOverrides<B>{}, first, end, batch, stream,
                   c_.workspace);
  }

  void describe(OptimisePoint& point) const {
    point.move = "blocks " + std::to_string(run_.first) + "-" + std::to_string(run_.last) +
                 ": one linear map";
    for (Index l = run_.first; l <= run_.last; ++l) {
      point.changes.push_back({l, l == run_.first ? "linear" : "left-out", {}});
    }
  }

  OptimiseMeasure<B>& measure_;
  SweepContext<B> c_;
  BlockRun run_{};
};

}  // namespace detail

}  // namespace wanamaker::inline WANAMAKER_ABI
