// How long a model takes for a token, end to end: reading prompts, or going on from them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#include "wanamaker/stats/quantiles.hpp"
#include "wanamaker/study/block_edits.hpp"
#include "wanamaker/study/cost_table.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Seconds of several things that are run in turn, so that whatever else the machine does meets all
/// alike: each one's median of `repetitions` runs, after one that is not counted. A run gives its
/// seconds.
inline std::vector<double> interleaved_medians(const std::vector<std::function<double()>>& runs,
                                               Index repetitions) {
  std::vector<std::vector<double>> seconds(runs.size());
  for (Index r = 0; r <= repetitions; ++r) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const double taken = runs[i]();
      if (r > 0) seconds[i].push_back(taken);
    }
  }
  std::vector<double> medians;
  for (const std::vector<double>& own : seconds) {
    medians.push_back(sorted_quantile(sorted_copy(own), 0.5));
  }
  return medians;
}

/// Seconds that f() takes.
template <class F>
double seconds_of(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A piece of work that is the same for every changed form of a model: `batch` sequences of made-up
/// tokens. Prefill reads them whole, 512 tokens each or as many as the model has positions, to the
/// logits that follow each. Decode reads 128 tokens of each, or half the positions, which is not
/// counted, and then goes on by 16 tokens, or as many as fit, one of each sequence at a time, to
/// their logits.
template <class B>
class SpeedTrial {
 public:
  /// `kind`: parameters are nothing to run; decode stands for them.
  SpeedTrial(B& backend, const AnyTransformer<B>& model, Workspace<B>& workspace, CostKind kind,
             Index batch)
      : backend_(backend),
        model_(model),
        workspace_(workspace),
        is_prefill_(kind == CostKind::prefill),
        batch_(batch) {
    const Index positions = model.config().positions;
    tokens_ = is_prefill_ ? std::min<Index>(512, positions)
                          : std::max<Index>(1, std::min<Index>(128, positions / 2));
    steps_ = is_prefill_ ? 1 : std::max<Index>(1, std::min<Index>(16, positions - tokens_));
  }

  /// Of one sequence, that are read first.
  Index tokens() const { return tokens_; }
  /// Rows of one forward pass that counts.
  Index rows() const { return is_prefill_ ? batch_ * tokens_ : batch_; }

  /// Seconds a token, run once.
  double seconds(const BlockEdits<B>& edits) {
    if (is_prefill_) {
      const PackedBatch<B> prompts(backend_, ids(tokens_), offsets(tokens_));
      return seconds_of([&] { run(edits, prompts); }) / static_cast<double>(rows());
    }
    return seconds_of_steps(edits);
  }

 private:
  double seconds_of_steps(const BlockEdits<B>& edits) {
    ModelConfig config = model_.config();
    config.layers = edits.runs_before(config.layers);
    KeyValueCache<B> cache(backend_, config, batch_, tokens_ + steps_);
    std::vector<Index> sequences;
    for (Index s = 0; s < batch_; ++s) sequences.push_back(s);
    run(edits, PackedBatch<B>(backend_, ids(tokens_), offsets(tokens_), cache, sequences));
    return seconds_of([&] {
             for (Index step = 0; step < steps_; ++step) {
               run(edits, PackedBatch<B>(backend_, ids(1), offsets(1), cache, sequences));
             }
           }) /
           static_cast<double>(batch_ * steps_);
  }

  /// To the logits after each sequence.
  void run(const BlockEdits<B>& edits, const PackedBatch<B>& batch) {
    const typename Workspace<B>::Frame frame(workspace_);
    const matrix_view_t<B> residual = workspace_.matrix(batch.rows(), model_.config().width);
    const matrix_view_t<B> last = workspace_.matrix(batch_, residual.cols);
    const matrix_view_t<B> logits = workspace_.matrix(batch_, model_.logit_columns());
    model_.embed(backend_, batch, residual);
    forward_blocks(backend_, model_, edits, 0, model_.layers(), batch, residual, workspace_);
    for (Index s = 0; s < batch_; ++s) {
      const Index end = batch.offsets()[static_cast<std::size_t>(s) + 1];
      ops::copy<B>(backend_, residual.middle_rows(end - 1, 1), last.middle_rows(s, 1));
    }
    model_.logits(backend_, last, logits, workspace_);
    backend_.synchronize();
  }

  std::vector<TokenId> ids(Index each) const {
    std::vector<TokenId> ids;
    for (Index i = 0; i < batch_ * each; ++i) {
      ids.push_back(static_cast<TokenId>((7919 * i + 13) % model_.config().vocabulary));
    }
    return ids;
  }
  std::vector<Index> offsets(Index each) const {
    std::vector<Index> offsets;
    for (Index s = 0; s <= batch_; ++s) offsets.push_back(s * each);
    return offsets;
  }

  B& backend_;
  const AnyTransformer<B>& model_;
  Workspace<B>& workspace_;
  bool is_prefill_;
  Index batch_;
  Index tokens_ = 0;
  Index steps_ = 1;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
