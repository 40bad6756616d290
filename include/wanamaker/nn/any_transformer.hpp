// One type for every family, for models whose family is known only when a file is read.
#pragma once

#include <utility>
#include <vector>

#include "wanamaker/nn/any_parts.hpp"
#include "wanamaker/nn/families.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A model of any family: norms, positions, residual topology and MLPs are known at run time, each
/// behind one branch or indirect call, so that code which runs a model is compiled once.
template <class B>
class AnyTransformer {
 public:
  using Model = Transformer<B, AnyBlock<B>>;

  explicit AnyTransformer(Model model) : model_(std::move(model)) {}

  /// From a model whose parts are known, which moves into this one.
  template <class Norm, class Positions, class Mlp, class Topology>
  explicit AnyTransformer(
      Transformer<B, TransformerBlock<B, Norm, CausalSelfAttention<B, Positions>, Mlp, Topology>>
          model)
      : model_(any_parts(std::move(model.parts()))) {}

  /// f(model) with the Transformer inside.
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::forward<F>(f)(model_);
  }
  template <class F>
  decltype(auto) visit(F&& f) {
    return std::forward<F>(f)(model_);
  }

  const ModelConfig& config() const { return model_.config(); }
  Index layers() const { return model_.layers(); }
  double parameters() const { return model_.parameters(); }

  void embed(B& backend, const PackedBatch<B>& batch, matrix_view_t<B> residual) const {
    model_.embed(backend, batch, residual);
  }
  template <class Observer = NoObserver>
  void forward(B& backend, const PackedBatch<B>& batch, matrix_view_t<B> residual,
               Workspace<B>& workspace, Observer&& observer = {}) const {
    model_.forward(backend, batch, residual, workspace, observer);
  }
  template <class Observer = NoObserver>
  void forward_from(B& backend, Index layer, const PackedBatch<B>& batch, matrix_view_t<B> residual,
                    Workspace<B>& workspace, Observer&& observer = {}) const {
    model_.forward_from(backend, layer, batch, residual, workspace, observer);
  }
  /// As TransformerBlock::attend of one block.
  template <class Observer = NoObserver>
  void attend(B& backend, Index layer, const PackedBatch<B>& batch, const_matrix_view_t<B> residual,
              matrix_view_t<B> carry, matrix_view_t<B> mlp_input, Workspace<B>& workspace,
              Observer&& observer = {}) const {
    model_.block(layer).attend(backend, layer, batch, residual, carry, mlp_input, workspace,
                               observer);
  }
  /// What an MLP policy of block `layer` may look at, after `attend`.
  RowContext<B> row_context(Index layer, const PackedBatch<B>& batch,
                            const_matrix_view_t<B> residual, const_matrix_view_t<B> carry) const {
    return model_.block(layer).row_context(layer, batch, residual, carry);
  }
  /// The MLP of block `layer`.
  const AnyMlp<B>& mlp(Index layer) const { return model_.block(layer).mlp(); }
  AnyMlp<B>& mlp(Index layer) { return model_.block(layer).mlp(); }
  void logits(B& backend, const_matrix_view_t<B> residual, matrix_view_t<B> logits,
              Workspace<B>& workspace) const {
    model_.logits(backend, residual, logits, workspace);
  }
  std::vector<double> token_losses(B& backend, const_matrix_view_t<B> residual,
                                   const ScoredPositions& scored, Workspace<B>& workspace) const {
    return model_.token_losses(backend, residual, scored, workspace);
  }
  TokenScores token_scores(B& backend, const_matrix_view_t<B> residual,
                           const ScoredPositions& scored, Workspace<B>& workspace) const {
    return model_.token_scores(backend, residual, scored, workspace);
  }
  Index logit_columns() const { return model_.logit_columns(); }

 private:
  template <class Parts>
  static typename Model::Parts any_parts(Parts parts) {
    std::vector<AnyBlock<B>> blocks;
    blocks.reserve(parts.blocks.size());
    for (auto& block : parts.blocks) {
      auto& attention = block.attention();
      blocks.emplace_back(std::move(block.attention_norm()),
                          CausalSelfAttention<B, AnyPositions<B>>(
                              std::move(attention.qkv()), std::move(attention.output()),
                              attention.shape(), attention.positions()),
                          std::move(block.mlp_norm()), std::move(block.mlp()), block.topology());
    }
    return {std::move(parts.config), std::move(parts.embedding),  std::move(parts.position_table),
            std::move(blocks),       std::move(parts.final_norm), std::move(parts.head)};
  }

  Model model_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
