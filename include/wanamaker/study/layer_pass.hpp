// Walking an evaluation set through a model one layer at a time, with every batch's residual stream
// kept: at layer ℓ any number of variants share the prefix, the attention and the norm, and each
// runs only what comes after the MLP.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "wanamaker/study/losses.hpp"
#include "wanamaker/study/mlp_overrides.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Block forwards run so far, for tests and cost reports.
struct WorkCount {
  Index prefix_blocks = 0;   ///< blocks run once for all variants
  Index variant_blocks = 0;  ///< blocks run for single variants
  Index variants = 0;        ///< (variant, batch) pairs
};

/// One batch at the MLP of one layer. Views live until the visit ends.
template <class B>
struct MlpSite {
  Index layer = 0;
  Index batch = 0;
  const EvaluationBatch& tokens;
  const PackedBatch<B>& packed;
  RowContext<B> rows;
  const_matrix_view_t<B> carry;       ///< [T × d] the stream without the MLP's output
  const_matrix_view_t<B> mlp_input;   ///< [T × d]
  const_matrix_view_t<B> mlp_output;  ///< [T × d] of the model's own MLP
};

/// Memory: one residual stream [T × d] a batch, T all tokens of the set.
template <class B>
class LayerPass {
 public:
  /// All referenced objects must outlive the pass. `overrides`: policies that stand in for MLPs
  /// wherever the pass or a variant runs a layer that is not the one under study. `progress` is
  /// only asked whether to go on, before each batch and each variant.
  LayerPass(B& backend, const AnyTransformer<B>& model, const EvaluationSet& set,
            Workspace<B>& workspace, MlpOverrides<B> overrides = {}, Progress progress = {})
      : backend_(backend),
        model_(model),
        set_(set),
        workspace_(workspace),
        overrides_(std::move(overrides)),
        progress_(std::move(progress)) {
    for (const EvaluationBatch& batch : set.batches) {
      packed_.emplace_back(backend, batch.tokens, batch.offsets);
      residuals_.push_back(make_matrix(backend, packed_.back().rows(), model.config().width));
      model.embed(backend, packed_.back(), residuals_.back().view());
    }
  }

  /// The layer whose input the residual streams are.
  Index layer() const { return layer_; }
  const WorkCount& work() const { return work_; }
  const EvaluationSet& set() const { return set_; }

  /// Calls visit(site) for every batch in order and stays at this layer; attention and MLP are run
  /// again by whatever comes next.
  template <class Visit>
  void visit(Visit&& visit) {
    for (std::size_t b = 0; b < packed_.size(); ++b) visit_batch(b, visit, [](auto&&...) {});
  }

  /// Calls visit(site) for every batch in order, then moves all batches past this layer, with the
  /// model's own MLP.
  template <class Visit>
  void advance(Visit&& visit) {
    for (std::size_t b = 0; b < packed_.size(); ++b) {
      visit_batch(b, visit, [&](const MlpSite<B>& site, matrix_view_t<B> residual) {
        ops::add<B>(backend_, site.carry, site.mlp_output, residual);
      });
    }
    ++layer_;
  }

  /// The same, but with a policy in the MLP's place from here on: what later layers see is what
  /// they would see in the changed model.
  template <MlpPolicy<B> Policy, class Visit>
  void advance_with(const Policy& policy, Visit&& visit) {
    for (std::size_t b = 0; b < packed_.size(); ++b) {
      visit_batch(b, visit, [&](const MlpSite<B>& site, matrix_view_t<B> residual) {
        const matrix_view_t<B> y = workspace_.matrix(residual.rows, residual.cols);
        mlp_forward(policy, backend_, site.mlp_input, site.rows, y, workspace_);
        ops::add<B>(backend_, site.carry, y, residual);
      });
    }
    ++layer_;
  }

  /// Moves on without looking, past the override where there is one.
  void advance() {
    for (std::size_t b = 0; b < packed_.size(); ++b) {
      forward_blocks(backend_, model_, overrides_, layer_, layer_ + 1, packed_[b],
                     residuals_[b].view(), workspace_);
      ++work_.prefix_blocks;
    }
    ++layer_;
  }

  /// Changes what stands in for a layer that is still to come.
  void override_mlp(Index layer, const AnyMlp<B>* policy) { overrides_.set(layer, policy); }

  /// Losses of the site's scored tokens when `output` [T × d] stands for the MLP's output, written
  /// to the batch's place in `losses` (all losses of the set).
  void losses_with(const MlpSite<B>& site, const_matrix_view_t<B> output,
                   std::span<double> losses) {
    progress_.poll();
    const typename Workspace<B>::Frame frame(workspace_);
    const PackedBatch<B>& batch = packed_[static_cast<std::size_t>(site.batch)];
    const matrix_view_t<B> residual = workspace_.matrix(output.rows, output.cols);
    ops::add<B>(backend_, site.carry, output, residual);
    forward_blocks(backend_, model_, overrides_, site.layer + 1, model_.layers(), batch, residual,
                   workspace_);
    work_.variant_blocks += model_.layers() - site.layer - 1;
    ++work_.variants;
    const std::vector<double> own =
        model_.token_losses(backend_, residual, site.tokens.scored, workspace_);
    std::copy(own.begin(), own.end(), losses.begin() + site.tokens.first_loss);
  }

 private:
  template <class Visit, class Leave>
  void visit_batch(std::size_t b, Visit&& visit, Leave&& leave) {
    progress_.poll();
    const typename Workspace<B>::Frame frame(workspace_);
    const PackedBatch<B>& batch = packed_[b];
    const matrix_view_t<B> residual = residuals_[b].view();
    const matrix_view_t<B> carry = workspace_.matrix(residual.rows, residual.cols);
    const matrix_view_t<B> input = workspace_.matrix(residual.rows, residual.cols);
    const matrix_view_t<B> output = workspace_.matrix(residual.rows, residual.cols);
    model_.attend(backend_, layer_, batch, residual, carry, input, workspace_);
    const RowContext<B> rows = model_.row_context(layer_, batch, residual, carry);
    model_.mlp(layer_).forward(backend_, input, rows, output, workspace_);
    ++work_.prefix_blocks;
    const MlpSite<B> site{layer_, static_cast<Index>(b), set_.batches[b], batch, rows, carry, input,
                          output};
    visit(site);
    leave(site, residual);
  }

  B& backend_;
  const AnyTransformer<B>& model_;
  const EvaluationSet& set_;
  Workspace<B>& workspace_;
  MlpOverrides<B> overrides_;
  Progress progress_;
  std::vector<PackedBatch<B>> packed_;
  std::vector<matrix_t<B>> residuals_;
  Index layer_ = 0;
  WorkCount work_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
