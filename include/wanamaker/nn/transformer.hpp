// A decoder-only transformer: embedding, blocks, final norm, head; losses without ever holding
// [tokens × vocabulary].
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/nn/batch.hpp"
#include "wanamaker/nn/block.hpp"
#include "wanamaker/nn/config.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Which rows of a batch are scored: the residual stream at row rows[i] predicts targets[i].
struct ScoredPositions {
  std::vector<TokenId> rows;
  std::vector<TokenId> targets;
};

/// What a model says of scored positions.
struct TokenScores {
  std::vector<double> losses{};  ///< −log p of the target, in nats
  std::vector<double> ranks{};   ///< tokens that it would choose before the target; 0: its choice
};

/// Every position of every sequence predicts its successor; the last of each predicts nothing.
template <class B>
ScoredPositions all_next_tokens(const PackedBatch<B>& batch) {
  ScoredPositions scored;
  for (Index s = 0; s < batch.sequences(); ++s) {
    const std::size_t sequence = static_cast<std::size_t>(s);
    for (Index row = batch.offsets()[sequence]; row + 1 < batch.offsets()[sequence + 1]; ++row) {
      scored.rows.push_back(static_cast<TokenId>(row));
      scored.targets.push_back(batch.host_tokens()[static_cast<std::size_t>(row + 1)]);
    }
  }
  return scored;
}

/// A model of equal blocks. Immutable while it runs: several threads may share it, each with its
/// own backend and workspace.
template <class B, class Block>
class Transformer {
 public:
  using BackendType = B;
  using BlockType = Block;
  using Norm = typename Block::NormType;

  struct Parts {
    ModelConfig config;
    weight_matrix_t<B> embedding;       ///< [V × d]
    weight_matrix_t<B> position_table;  ///< [positions × d], or empty
    std::vector<Block> blocks;
    Norm final_norm;
    Linear<B> head;  ///< d → V', V' >= V; empty where tied
  };

  explicit Transformer(Parts parts) : parts_(std::move(parts)) {}

  const ModelConfig& config() const { return parts_.config; }
  Index layers() const { return static_cast<Index>(parts_.blocks.size()); }
  const Block& block(Index layer) const { return parts_.blocks[static_cast<std::size_t>(layer)]; }
  Block& block(Index layer) { return parts_.blocks[static_cast<std::size_t>(layer)]; }
  const Norm& final_norm() const { return parts_.final_norm; }
  /// [positions × d]; empty where positions are not learned.
  const weight_matrix_t<B>& position_table() const { return parts_.position_table; }
  const weight_matrix_t<B>& embedding() const { return parts_.embedding; }
  /// Everything that the model is made of, for training and for files.
  const Parts& parts() const { return parts_; }
  Parts& parts() { return parts_; }

  /// residual ← embedding[token] + position_table[position]; residual [T × d]. Throws DataError for
  /// ids outside the vocabulary, ProtocolError for sequences longer than the model's positions.
  void embed(B& backend, const PackedBatch<B>& batch, matrix_view_t<B> residual) const {
    check_length(batch);
    check_ids(batch.host_tokens());
    ops::gather_rows(backend, parts_.embedding.view(), batch.tokens(), residual);
    if (parts_.position_table.empty()) return;
    ops::gather_add_rows(backend, parts_.position_table.view(), batch.positions(), residual);
  }

  /// residual ← the stream after the last block, before the final norm; [T × d].
  template <class Observer = NoObserver>
  void forward(B& backend, const PackedBatch<B>& batch, matrix_view_t<B> residual,
               Workspace<B>& workspace, Observer&& observer = {}) const {
    embed(backend, batch, residual);
    forward_from(backend, 0, batch, residual, workspace, observer);
  }

  /// Blocks layer … L − 1 in place on a stream [T × d] that enters block `layer`. Throws ShapeError
  /// where the stream does not belong to the batch or there is no such layer, ProtocolError for
  /// sequences that are too long.
  template <class Observer = NoObserver>
  void forward_from(B& backend, Index layer, const PackedBatch<B>& batch, matrix_view_t<B> residual,
                    Workspace<B>& workspace, Observer&& observer = {}) const {
    check_stream(layer, batch, residual);
    for (Index l = layer; l < layers(); ++l) {
      detail::notify_residual(observer, l, const_matrix_view_t<B>(residual));
      block(l).forward(backend, l, batch, residual, workspace, observer);
    }
    detail::notify_residual(observer, layers(), const_matrix_view_t<B>(residual));
  }

  /// logits [n × V'] of rows of the final stream [n × d].
  void logits(B& backend, const_matrix_view_t<B> residual, matrix_view_t<B> logits,
              Workspace<B>& workspace) const {
    const typename Workspace<B>::Frame frame(workspace);
    const matrix_view_t<B> normed = workspace.matrix(residual.rows, residual.cols);
    parts_.final_norm.forward(backend, residual, normed);
    ops::linear<B>(backend, normed, head_factor(), head_bias(), logits);
  }

  /// Negative log-likelihoods in nats of the scored positions, from the final stream [T × d].
  /// Logits exist for 128 rows at a time at most. Throws ShapeError for rows that the stream has
  /// not, DataError for targets outside the vocabulary.
  std::vector<double> token_losses(B& backend, const_matrix_view_t<B> residual,
                                   const ScoredPositions& scored, Workspace<B>& workspace) const {
    std::vector<double> losses(scored.rows.size());
    for_each_scored_block(
        scored, residual.rows, loss_block_rows, [&](std::size_t begin, auto rows, auto targets) {
          loss_block(backend, residual, rows, targets, losses.data() + begin, workspace);
        });
    return losses;
  }

  /// The same, and which choice the target was. Throws as token_losses.
  TokenScores token_scores(B& backend, const_matrix_view_t<B> residual,
                           const ScoredPositions& scored, Workspace<B>& workspace) const {
    TokenScores scores{std::vector<double>(scored.rows.size()),
                       std::vector<double>(scored.rows.size())};
    for_each_scored_block(
        scored, residual.rows, ranked_block_rows, [&](std::size_t begin, auto rows, auto targets) {
          score_block(backend, residual, rows, targets, scores.losses.data() + begin,
                      scores.ranks.data() + begin, workspace);
        });
    return scores;
  }

  /// Columns of the logits: the vocabulary, or more where a file pads it.
  Index logit_columns() const { return head_factor().cols(); }

  /// The head as a right factor [d × V'] and its bias, which may be empty.
  Operand<storage_t<B>> head_factor() const {
    return config().tied_head ? transposed(parts_.embedding.view()) : parts_.head.factor();
  }
  ConstVectorView<scalar_t<B>> head_bias() const {
    return parts_.head.has_bias() ? parts_.head.bias().vector() : ConstVectorView<scalar_t<B>>{};
  }

  /// Throws what forward_from throws for a stream that enters block `layer`.
  void check_stream(Index layer, const PackedBatch<B>& batch,
                    const_matrix_view_t<B> residual) const {
    check_shape(residual, batch.rows(), config().width, "Transformer: residual stream");
    check_length(batch);
    if (layer < 0 || layer > layers()) throw_no_layer(layer);
  }

  /// Throws what token_losses throws for a stream of `rows` rows.
  void check_scored(const ScoredPositions& scored, Index rows) const {
    const bool inside = std::all_of(scored.rows.begin(), scored.rows.end(),
                                    [rows](TokenId row) { return row >= 0 && row < rows; });
    if (!inside || scored.rows.size() != scored.targets.size()) throw_not_scorable(scored, rows);
    check_ids(scored.targets);
  }

  /// Learned numbers; a tied head counts once.
  double parameters() const {
    double total = static_cast<double>(parts_.embedding.size() + parts_.position_table.size() +
                                       parts_.final_norm.parameters() + parts_.head.parameters());
    for (const Block& b : parts_.blocks) total += b.parameters();
    return total;
  }

 private:
  // Rows whose final norm exists at a time, and whose logits do.
  static constexpr Index loss_block_rows = 1024;
  static constexpr Index ranked_block_rows = 128;

  VectorView<TokenId> upload(B& backend, std::span<const TokenId> values,
                             Workspace<B>& workspace) const {
    const VectorView<TokenId> memory =
        workspace.template vector<TokenId>(static_cast<Index>(values.size()));
    backend.copy_from_host(values.data(), memory.size, memory.data);
    return memory;
  }

  /// f(first, rows, targets) for blocks of scored positions.
  template <class F>
  void for_each_scored_block(const ScoredPositions& scored, Index rows, Index block_rows,
                             F&& f) const {
    check_scored(scored, rows);
    const std::size_t n = scored.rows.size();
    const std::size_t block = static_cast<std::size_t>(block_rows);
    for (std::size_t first = 0; first < n; first += block) {
      const std::size_t count = std::min(block, n - first);
      f(first, std::span(scored.rows).subspan(first, count),
        std::span(scored.targets).subspan(first, count));
    }
  }

  matrix_view_t<B> gather(B& backend, const_matrix_view_t<B> residual,
                          std::span<const TokenId> rows, Workspace<B>& workspace) const {
    const matrix_view_t<B> chosen =
        workspace.matrix(static_cast<Index>(rows.size()), residual.cols);
    ops::gather_rows(backend, residual, upload(backend, rows, workspace), chosen);
    return chosen;
  }

  void loss_block(B& backend, const_matrix_view_t<B> residual, std::span<const TokenId> rows,
                  std::span<const TokenId> targets, double* losses, Workspace<B>& workspace) const {
    const typename Workspace<B>::Frame frame(workspace);
    const matrix_view_t<B> chosen = gather(backend, residual, rows, workspace);
    const VectorView<double> nll = workspace.template vector<double>(chosen.rows);
    parts_.final_norm.forward(backend, chosen, chosen);
    ops::linear_token_loss<B>(backend, chosen, head_factor(), head_bias(),
                              upload(backend, targets, workspace), config().vocabulary, nll,
                              workspace);
    backend.synchronize();
    backend.copy_to_host(nll.data, nll.size, losses);
  }

  void score_block(B& backend, const_matrix_view_t<B> residual, std::span<const TokenId> rows,
                   std::span<const TokenId> targets, double* losses, double* ranks,
                   Workspace<B>& workspace) const {
    const typename Workspace<B>::Frame frame(workspace);
    const matrix_view_t<B> chosen = gather(backend, residual, rows, workspace);
    const matrix_view_t<B> scores = workspace.matrix(chosen.rows, logit_columns());
    logits(backend, chosen, scores, workspace);
    const VectorView<double> found = workspace.template vector<double>(chosen.rows);
    const VectorView<TokenId> wanted = upload(backend, targets, workspace);
    ops::token_loss<B>(backend, scores, wanted, config().vocabulary, found);
    backend.synchronize();
    backend.copy_to_host(found.data, found.size, losses);
    ops::target_rank<B>(backend, scores, wanted, config().vocabulary, found);
    backend.synchronize();
    backend.copy_to_host(found.data, found.size, ranks);
  }

  void check_length(const PackedBatch<B>& batch) const {
    if (batch.longest() > config().positions) throw_too_long(batch.longest());
  }

  void check_ids(std::span<const TokenId> ids) const {
    for (const TokenId id : ids) {
      if (id < 0 || id >= config().vocabulary) throw_outside(id);
    }
  }

  [[noreturn]] void throw_no_layer(Index layer) const {
    throw ShapeError({.id = "shape/layer",
                      .where = "Transformer::forward_from",
                      .what = "the model has no such layer",
                      .expected = "0 to " + std::to_string(layers()),
                      .found = std::to_string(layer),
                      .mend = "count layers from 0"});
  }

  [[noreturn]] void throw_not_scorable(const ScoredPositions& scored, Index rows) const {
    throw ShapeError({.id = "shape/scored-rows",
                      .where = "Transformer::token_losses",
                      .what = "scored positions do not belong to the residual stream",
                      .expected = "a target for each row, and rows below " + std::to_string(rows),
                      .found = std::to_string(scored.rows.size()) + " rows and " +
                               std::to_string(scored.targets.size()) + " targets",
                      .mend = "make them from the same batch, as all_next_tokens does"});
  }

  [[noreturn]] void throw_too_long(Index length) const {
    throw ProtocolError({.id = "protocol/window-too-long",
                         .where = config().name,
                         .what = "a sequence is longer than the model's positions",
                         .expected = "at most " + std::to_string(config().positions) + " tokens",
                         .found = std::to_string(length),
                         .mend = "use a smaller --window, or fewer tokens"});
  }
  [[noreturn]] void throw_outside(TokenId id) const {
    throw DataError({.id = "data/token-outside-vocabulary",
                     .where = config().name,
                     .what = "a token id is not in the model's vocabulary",
                     .expected = "0 to " + std::to_string(config().vocabulary - 1),
                     .found = std::to_string(id),
                     .mend = "use the tokenizer that belongs to the model"});
  }

  Parts parts_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
