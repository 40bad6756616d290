// Loss and gradients of a whole model: docs/training.md derives them.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "wanamaker/nn/any_transformer.hpp"
#include "wanamaker/nn/backward/any_mlp.hpp"
#include "wanamaker/nn/backward/block.hpp"
#include "wanamaker/nn/backward/losses.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// How a loss is differentiated.
struct LossOptions {
  double weight = 1;       ///< gradients of weight · mean are added; the mean is returned
  bool recompute = false;  ///< keep each block's input alone, and run it again going back
};

/// Means over the scored positions, in nats.
struct DistillationLosses {
  double nll = 0;
  double divergence = 0;
  double total = 0;  ///< (1 − share)·nll + share·divergence: what is differentiated
};

namespace detail {

template <class Observer, class View>
void notify_residual_gradient(Observer& observer, Index layer, View view) {
  if constexpr (requires { observer.on_residual_gradient(layer, view); }) {
    observer.on_residual_gradient(layer, view);
  }
}
template <class Observer, class View>
void notify_mlp_output_gradient(Observer& observer, Index layer, View view) {
  if constexpr (requires { observer.on_mlp_output_gradient(layer, view); }) {
    observer.on_mlp_output_gradient(layer, view);
  }
}

/// Does an observer look at gradients? Then they are computed down to the embedding.
template <class B, class Observer>
concept SeesGradients = requires(Observer& observer, const_matrix_view_t<B> view) {
  observer.on_mlp_output_gradient(Index{}, view);
}
|| requires(Observer& observer, const_matrix_view_t<B> view) {
  observer.on_residual_gradient(Index{}, view);
};

/// One forward and one backward pass of a model over a batch.
template <class B, class Block, class Observer>
class ModelPass {
 public:
  using Model = Transformer<B, Block>;
  using View = matrix_view_t<B>;
  using ConstView = const_matrix_view_t<B>;

  ModelPass(const Model& model, B& backend, const PackedBatch<B>& batch,
            const Gradients<B>& gradients, Workspace<B>& workspace, const LossOptions& options,
            Observer& observer)
      : model_(model),
        batch_(batch),
        pass_{backend, workspace, gradients, options.weight},
        recompute_(options.recompute),
        observer_(observer) {
    check_no_cache();
  }

  /// Embedding and blocks; streams are kept.
  void forward_pass() {
    const View embedded = stream();
    model_.embed(pass_.backend, batch_, embedded);
    embeds_ = true;
    forward_pass_from(0, embedded);
  }

  /// Blocks first … L − 1 over a stream [T × d] that enters block `first`; streams are kept.
  void forward_pass_from(Index first, ConstView residual) {
    first_ = first;
    streams_.push_back(residual);
    for (Index l = first; l < model_.layers(); ++l) {
      notify_residual(observer_, l, streams_.back());
      const View next = stream();
      run_block(l, next);
      streams_.push_back(next);
    }
    notify_residual(observer_, model_.layers(), streams_.back());
    d_stream_ = stream();
    fill(d_stream_);
  }

  /// Final norm, head and loss, some rows at a time; their gradients, and that of the final stream.
  template <class Loss>
  void head_pass(const ScoredPositions& scored, Loss& loss) {
    const Index n = static_cast<Index>(scored.rows.size());
    const double weight = pass_.weight / static_cast<double>(n);
    const Index most = std::clamp(most_logits / model_.logit_columns(), Index{128}, Index{1024});
    for (Index first = 0; first < n; first += most) {
      const std::size_t begin = static_cast<std::size_t>(first);
      const std::size_t count = static_cast<std::size_t>(std::min(most, n - first));
      head_block(std::span(scored.rows).subspan(begin, count),
                 std::span(scored.targets).subspan(begin, count), weight, loss);
    }
  }

  /// Blocks from the last down to the lowest that has a gradient, then the embedding.
  void backward_pass() {
    pass_.is_repetition = recompute_;
    const Index lowest =
        SeesGradients<B, Observer> ? first_ : std::max(pass_.gradients.first_layer(), first_);
    for (Index l = model_.layers() - 1; l >= lowest; --l) {
      notify_residual_gradient(observer_, l + 1, ConstView(d_stream_));
      notify_mlp_output_gradient(observer_, l, ConstView(d_stream_));
      block_backward(l);
    }
    if (lowest == first_) {
      notify_residual_gradient(observer_, first_, ConstView(d_stream_));
      pass_.tape.check_taken();
    }
    if (embeds_ && pass_.gradients.first_layer() < 0) embedding_backward();
  }

 private:
  // Logits at a time: as many rows as make the products of the head worth their memory.
  static constexpr Index most_logits = Index{1} << 21;

  View stream() { return pass_.workspace.matrix(batch_.rows(), model_.config().width); }
  void fill(View view) {
    pass_.backend.for_each_row(view.rows, kernels::FillRow<scalar_t<B>>{scalar_t<B>(0), view});
  }

  void run_block(Index l, View out) {
    const ConstView in = streams_[static_cast<std::size_t>(l - first_)];
    if (!recompute_) return forward_taped(model_.block(l), pass_, l, batch_, in, out, observer_);
    const typename Workspace<B>::Frame frame(pass_.workspace);
    forward_taped(model_.block(l), pass_, l, batch_, in, out, observer_);
    pass_.tape.truncate(0);
  }

  void block_backward(Index l) {
    const typename Workspace<B>::Frame frame(pass_.workspace);
    const ConstView in = streams_[static_cast<std::size_t>(l - first_)];
    if (recompute_) forward_taped(model_.block(l), pass_, l, batch_, in, stream());
    backward(model_.block(l), pass_, l, batch_, in, d_stream_);
  }

  VectorView<TokenId> upload(std::span<const TokenId> values) {
    const auto memory = pass_.workspace.template vector<TokenId>(static_cast<Index>(values.size()));
    pass_.backend.copy_from_host(values.data(), memory.size, memory.data);
    return memory;
  }

  template <class Loss>
  void head_block(std::span<const TokenId> rows, std::span<const TokenId> targets, double weight,
                  Loss& loss) {
    const typename Workspace<B>::Frame frame(pass_.workspace);
    const LossBlock block{upload(rows), upload(targets), model_.config().vocabulary, weight};
    const View chosen = pass_.workspace.matrix(block.rows.size, d_stream_.cols);
    const View normed = pass_.workspace.matrix(chosen.rows, chosen.cols);
    const View logits = pass_.workspace.matrix(chosen.rows, model_.logit_columns());
    ops::gather_rows<B>(pass_.backend, streams_.back(), block.rows, chosen);
    model_.final_norm().forward(pass_.backend, chosen, normed);
    ops::linear<B>(pass_.backend, normed, model_.head_factor(), model_.head_bias(), logits);
    loss(pass_, block, logits);
    add_head_gradients(normed, logits);
    ops::linear_input_gradient<B>(pass_.backend, logits, model_.head_factor(), normed);
    const View d_chosen = pass_.workspace.matrix(chosen.rows, chosen.cols);
    fill(d_chosen);
    backward(model_.final_norm(), pass_, ConstView(chosen), normed, d_chosen);
    ops::scatter_rows<B>(pass_.backend, d_chosen, block.rows, d_stream_);
  }

  void add_head_gradients(ConstView normed, ConstView d_logits) {
    if (!model_.config().tied_head) {
      return add_parameter_gradients(model_.parts().head, pass_, normed, d_logits);
    }
    const View d_embedding = pass_.gradients.of(model_.embedding());
    if (d_embedding.size() == 0) return;
    ops::add_weight_gradient(pass_.backend, normed, d_logits, true, d_embedding);
  }

  void embedding_backward() {
    const View d_embedding = pass_.gradients.of(model_.embedding());
    if (d_embedding.size() > 0) {
      ops::scatter_add_rows<B>(pass_.backend, d_stream_, batch_.host_tokens(), d_embedding,
                               pass_.workspace);
    }
    const View d_positions = pass_.gradients.of(model_.parts().position_table);
    if (d_positions.size() == 0) return;
    std::vector<TokenId> positions;
    for (const AttentionSpan& span : batch_.spans()) {
      for (Index i = 0; i < span.queries; ++i) positions.push_back(static_cast<TokenId>(i));
    }
    ops::scatter_add_rows<B>(pass_.backend, d_stream_, positions, d_positions, pass_.workspace);
  }

  void check_no_cache() const {
    const bool whole = std::all_of(batch_.spans().begin(), batch_.spans().end(),
                                   [](const AttentionSpan& s) { return s.queries == s.keys; });
    if (whole) return;
    throw ProtocolError({.id = "training/cached-batch",
                         .where = model_.config().name,
                         .what = "the batch goes on with tokens of a cache",
                         .expected = "whole sequences: gradients flow to all that a token sees",
                         .mend = "make the batch without a cache"});
  }

  const Model& model_;
  const PackedBatch<B>& batch_;
  BackwardPass<B> pass_;
  bool recompute_;
  Observer& observer_;
  Index first_ = 0;
  bool embeds_ = false;
  std::vector<ConstView> streams_{};
  View d_stream_{};
};

/// Throws DataError where nothing is scored, ShapeError where a row is scored twice.
inline void check_scored_once(const ScoredPositions& scored, Index rows) {
  if (scored.rows.empty()) {
    throw DataError({.id = "data/nothing-to-score",
                     .where = "loss_and_gradients",
                     .what = "no position is scored",
                     .expected = "at least one",
                     .found = "0",
                     .mend = "give sequences of two or more tokens"});
  }
  std::vector<bool> seen(static_cast<std::size_t>(rows), false);
  for (const TokenId row : scored.rows) {
    if (!seen[static_cast<std::size_t>(row)]) {
      seen[static_cast<std::size_t>(row)] = true;
      continue;
    }
    throw ShapeError({.id = "shape/scored-rows",
                      .where = "loss_and_gradients",
                      .what = "a position is scored twice",
                      .expected = "each row at most once",
                      .found = "row " + std::to_string(row) + " again",
                      .mend = "score each position once, as all_next_tokens does"});
  }
}

template <class B, class Block, class Loss, class Observer>
void differentiate(const Transformer<B, Block>& model, B& backend, const PackedBatch<B>& batch,
                   const ScoredPositions& scored, const Gradients<B>& gradients,
                   Workspace<B>& workspace, const LossOptions& options, Loss& loss,
                   Observer& observer) {
  model.check_scored(scored, batch.rows());
  check_scored_once(scored, batch.rows());
  const typename Workspace<B>::Frame frame(workspace);
  ModelPass<B, Block, Observer> pass(model, backend, batch, gradients, workspace, options,
                                     observer);
  pass.forward_pass();
  pass.head_pass(scored, loss);
  pass.backward_pass();
}

}  // namespace detail

/// Mean loss of the scored positions in nats; adds the gradients of weight · mean to `gradients`,
/// which were made for this model. What has no gradient is frozen: it costs no product, and the
/// pass ends at the lowest layer that has one. Observers see the forward pass as those of
/// Transformer::forward do, and on the way back, where they have such members,
/// on_residual_gradient(layer, d) and on_mlp_output_gradient(layer, d): the gradient [T × d] of
/// weight · mean with respect to that stream or output. Recomputation gives the same bits from
/// less memory. Throws what token_losses throws, DataError for no scored position, ShapeError for
/// one scored twice, ProtocolError for policies without a backward pass and for cached batches.
template <class B, class Block, class Observer = NoObserver>
double loss_and_gradients(const Transformer<B, Block>& model, B& backend,
                          const PackedBatch<B>& batch, const ScoredPositions& scored,
                          const Gradients<B>& gradients, Workspace<B>& workspace,
                          const LossOptions& options = {}, Observer&& observer = {}) {
  CrossEntropyLoss<B> loss;
  detail::differentiate(model, backend, batch, scored, gradients, workspace, options, loss,
                        observer);
  return loss.nll_sum() / static_cast<double>(scored.rows.size());
}
template <class B, class Observer = NoObserver>
double loss_and_gradients(const AnyTransformer<B>& model, B& backend, const PackedBatch<B>& batch,
                          const ScoredPositions& scored, const Gradients<B>& gradients,
                          Workspace<B>& workspace, const LossOptions& options = {},
                          Observer&& observer = {}) {
  return model.visit([&](const auto& own) {
    return loss_and_gradients(own, backend, batch, scored, gradients, workspace, options, observer);
  });
}

/// The same from the middle: of blocks layer … L − 1, final norm and head, over a stream [T × d]
/// that enters block `layer` and is left as it is; layer = L is norm and head alone. The gradient
/// of that stream is the observer's on_residual_gradient(layer, d). Throws what forward_from
/// throws too.
template <class B, class Block, class Observer = NoObserver>
double loss_and_gradients_from(const Transformer<B, Block>& model, B& backend, Index layer,
                               const PackedBatch<B>& batch, const_matrix_view_t<B> residual,
                               const ScoredPositions& scored, const Gradients<B>& gradients,
                               Workspace<B>& workspace, const LossOptions& options = {},
                               Observer&& observer = {}) {
  using Watcher = std::remove_reference_t<Observer>;
  model.check_stream(layer, batch, residual);
  model.check_scored(scored, batch.rows());
  detail::check_scored_once(scored, batch.rows());
  const typename Workspace<B>::Frame frame(workspace);
  CrossEntropyLoss<B> loss;
  detail::ModelPass<B, Block, Watcher> pass(model, backend, batch, gradients, workspace, options,
                                            observer);
  pass.forward_pass_from(layer, residual);
  pass.head_pass(scored, loss);
  pass.backward_pass();
  return loss.nll_sum() / static_cast<double>(scored.rows.size());
}
template <class B, class Observer = NoObserver>
double loss_and_gradients_from(const AnyTransformer<B>& model, B& backend, Index layer,
                               const PackedBatch<B>& batch, const_matrix_view_t<B> residual,
                               const ScoredPositions& scored, const Gradients<B>& gradients,
                               Workspace<B>& workspace, const LossOptions& options = {},
                               Observer&& observer = {}) {
  return model.visit([&](const auto& own) {
    return loss_and_gradients_from(own, backend, layer, batch, residual, scored, gradients,
                                   workspace, options, observer);
  });
}

/// As loss_and_gradients, for (1 − share) · cross-entropy + share · τ² · KL(teacher ‖ model), with
/// another model of the same vocabulary as the teacher. Throws ProtocolError
/// ("training/distillation") too.
template <class B, class Block, class Teacher, class Observer = NoObserver>
DistillationLosses distillation_loss_and_gradients(
    const Transformer<B, Block>& model, const Teacher& teacher, B& backend,
    const PackedBatch<B>& batch, const ScoredPositions& scored, const Gradients<B>& gradients,
    Workspace<B>& workspace, const ops::DistillationMix& mix, const LossOptions& options = {},
    Observer&& observer = {}) {
  const typename Workspace<B>::Frame frame(workspace);
  const matrix_view_t<B> stream = workspace.matrix(batch.rows(), teacher.config().width);
  DistillationLoss<B, Teacher> loss(teacher, stream, model.config().vocabulary, mix);
  teacher.forward(backend, batch, stream, workspace);
  detail::differentiate(model, backend, batch, scored, gradients, workspace, options, loss,
                        observer);
  const double n = static_cast<double>(scored.rows.size());
  const double nll = loss.nll_sum() / n;
  const double divergence = loss.divergence_sum() / n;
  return {nll, divergence, (1 - mix.share) * nll + mix.share * divergence};
}
template <class B, class Teacher, class Observer = NoObserver>
DistillationLosses distillation_loss_and_gradients(
    const AnyTransformer<B>& model, const Teacher& teacher, B& backend, const PackedBatch<B>& batch,
    const ScoredPositions& scored, const Gradients<B>& gradients, Workspace<B>& workspace,
    const ops::DistillationMix& mix, const LossOptions& options = {}, Observer&& observer = {}) {
  return model.visit([&](const auto& own) {
    return distillation_loss_and_gradients(own, teacher, backend, batch, scored, gradients,
                                           workspace, mix, options, observer);
  });
}

/// A model's learned arrays: embedding, positions, blocks, final norm, head (a tied one is the
/// embedding).
template <class B, class Block>
void collect_parameters(Transformer<B, Block>& model, const ParameterCollector<B>& collector) {
  auto& parts = model.parts();
  const ParameterCollector<B> named =
      collector.named(parameter_names(model.config().family)).at_layer(-1);
  const ParameterNames& names = named.names();
  named.within(names.embedding).matrix("weight", parts.embedding);
  named.within(names.position_table).matrix("weight", parts.position_table);
  for (Index l = 0; l < model.layers(); ++l) {
    const auto own = named.at_layer(l).within(names.blocks).within(std::to_string(l));
    detail::collect(model.block(l), own);
  }
  const ParameterCollector<B> after = named.at_layer(model.layers());
  detail::collect(parts.final_norm, after.within(names.final_norm));
  if (!model.config().tied_head) after.linear(names.head, parts.head);
}
template <class B>
void collect_parameters(AnyTransformer<B>& model, const ParameterCollector<B>& collector) {
  model.visit([&](auto& own) { detail::collect(own, collector); });
}

}  // namespace wanamaker::inline WANAMAKER_ABI
