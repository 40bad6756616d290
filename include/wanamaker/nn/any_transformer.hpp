// One type for every family, for models whose family is known only when a file is read.
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "wanamaker/nn/families.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A model of any family with type-erased MLPs. Dispatch costs one visit per call.
template <class B>
class AnyTransformer {
 public:
  using Gpt2 = Transformer<B, Gpt2Block<B, AnyMlp<B>>>;
  using NeoXParallel = Transformer<B, GptNeoXBlock<B, AnyMlp<B>, ParallelResidual>>;
  using NeoXSequential = Transformer<B, GptNeoXBlock<B, AnyMlp<B>, SequentialResidual>>;
  using Llama = Transformer<B, LlamaBlock<B, AnyMlp<B>>>;
  using Variant = std::variant<Gpt2, NeoXParallel, NeoXSequential, Llama>;

  template <class Model>
  explicit AnyTransformer(Model model) : model_(std::move(model)) {}

  /// f(model) with the model's own type.
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit(std::forward<F>(f), model_);
  }
  template <class F>
  decltype(auto) visit(F&& f) {
    return std::visit(std::forward<F>(f), model_);
  }

  const ModelConfig& config() const {
    return visit([](const auto& m) -> const ModelConfig& { return m.config(); });
  }
  Index layers() const {
    return visit([](const auto& m) { return m.layers(); });
  }
  double parameters() const {
    return visit([](const auto& m) { return m.parameters(); });
  }

  void embed(B& backend, const PackedBatch<B>& batch, matrix_view_t<B> residual) const {
    visit([&](const auto& m) { m.embed(backend, batch, residual); });
  }
  template <class Observer = NoObserver>
  void forward(B& backend, const PackedBatch<B>& batch, matrix_view_t<B> residual,
               Workspace<B>& workspace, Observer&& observer = {}) const {
    visit([&](const auto& m) { m.forward(backend, batch, residual, workspace, observer); });
  }
  template <class Observer = NoObserver>
  void forward_from(B& backend, Index layer, const PackedBatch<B>& batch, matrix_view_t<B> residual,
                    Workspace<B>& workspace, Observer&& observer = {}) const {
    visit([&](const auto& m) {
      m.forward_from(backend, layer, batch, residual, workspace, observer);
    });
  }
  /// As TransformerBlock::attend of one block.
  template <class Observer = NoObserver>
  void attend(B& backend, Index layer, const PackedBatch<B>& batch, const_matrix_view_t<B> residual,
              matrix_view_t<B> carry, matrix_view_t<B> mlp_input, Workspace<B>& workspace,
              Observer&& observer = {}) const {
    visit([&](const auto& m) {
      m.block(layer).attend(backend, layer, batch, residual, carry, mlp_input, workspace, observer);
    });
  }
  /// What an MLP policy of block `layer` may look at, after `attend`.
  RowContext<B> row_context(Index layer, const PackedBatch<B>& batch,
                            const_matrix_view_t<B> residual, const_matrix_view_t<B> carry) const {
    return visit(
        [&](const auto& m) { return m.block(layer).row_context(layer, batch, residual, carry); });
  }
  /// The MLP of block `layer`.
  const AnyMlp<B>& mlp(Index layer) const {
    return visit([&](const auto& m) -> const AnyMlp<B>& { return m.block(layer).mlp(); });
  }
  AnyMlp<B>& mlp(Index layer) {
    return visit([&](auto& m) -> AnyMlp<B>& { return m.block(layer).mlp(); });
  }
  void logits(B& backend, const_matrix_view_t<B> residual, matrix_view_t<B> logits,
              Workspace<B>& workspace) const {
    visit([&](const auto& m) { m.logits(backend, residual, logits, workspace); });
  }
  std::vector<double> token_losses(B& backend, const_matrix_view_t<B> residual,
                                   const ScoredPositions& scored, Workspace<B>& workspace) const {
    return visit(
        [&](const auto& m) { return m.token_losses(backend, residual, scored, workspace); });
  }
  TokenScores token_scores(B& backend, const_matrix_view_t<B> residual,
                           const ScoredPositions& scored, Workspace<B>& workspace) const {
    return visit(
        [&](const auto& m) { return m.token_scores(backend, residual, scored, workspace); });
  }
  Index logit_columns() const {
    return visit([](const auto& m) { return m.logit_columns(); });
  }

 private:
  Variant model_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
