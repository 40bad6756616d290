// Writing on: tokens drawn one after the other, each given the prompt and all tokens before it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/nn/key_value_cache.hpp"
#include "wanamaker/nn/sampling.hpp"
#include "wanamaker/study/mlp_overrides.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Reads one sequence with a cache, with the policies that override MLPs. Memory: the cache, and
/// one residual stream of at most 256 tokens.
template <class B>
class Decoder {
 public:
  /// Room for `capacity` tokens. Referenced objects must outlive the decoder.
  Decoder(B& backend, const AnyTransformer<B>& model, const MlpOverrides<B>& overrides,
          Workspace<B>& workspace, Index capacity)
      : backend_(backend),
        model_(model),
        overrides_(overrides),
        workspace_(workspace),
        cache_(backend, model.config(), 1, capacity) {}

  /// Tokens read so far.
  Index length() const { return cache_.length(0); }

  /// Reads tokens (at least one) that follow what was read before; gives the logits [V] of the
  /// token after them, valid until the next call. Throws what Transformer::embed throws,
  /// ProtocolError where the capacity is exceeded, ShapeError for no tokens.
  std::span<const double> read(std::span<const TokenId> tokens) {
    std::span<const TokenId> rest = tokens;
    while (rest.size() > longest_piece) {
      read_piece(rest.first(longest_piece));
      rest = rest.subspan(longest_piece);
    }
    return read_piece(rest);
  }

 private:
  static constexpr std::size_t longest_piece = 256;

  std::span<const double> read_piece(std::span<const TokenId> tokens) {
    batch_.assign(backend_, tokens, cache_);
    const typename Workspace<B>::Frame frame(workspace_);
    const matrix_view_t<B> residual = workspace_.matrix(batch_.rows(), model_.config().width);
    const matrix_view_t<B> logits = workspace_.matrix(1, model_.logit_columns());
    model_.embed(backend_, batch_, residual);
    forward_blocks(backend_, model_, overrides_, 0, model_.layers(), batch_, residual, workspace_);
    model_.logits(backend_, residual.middle_rows(residual.rows - 1, 1), logits, workspace_);
    host_logits_.resize(static_cast<std::size_t>(logits.cols));
    backend_.synchronize();
    backend_.copy_to_host(logits.data, logits.cols, host_logits_.data());
    const auto vocabulary = static_cast<std::ptrdiff_t>(model_.config().vocabulary);
    logits_.assign(host_logits_.begin(), host_logits_.begin() + vocabulary);
    return logits_;
  }

  B& backend_;
  const AnyTransformer<B>& model_;
  const MlpOverrides<B>& overrides_;
  Workspace<B>& workspace_;
  KeyValueCache<B> cache_;
  PackedBatch<B> batch_{};
  std::vector<scalar_t<B>> host_logits_;
  std::vector<double> logits_;
};

/// Why a text ends.
enum class StopReason {
  end_of_text,  ///< a token that ends texts was drawn; it is the last of the ids
  tokens,       ///< as many as were asked for
  positions     ///< the model has no position for another
};

/// "end-of-text", "tokens", "positions".
constexpr const char* name_of(StopReason reason) {
  switch (reason) {
    case StopReason::end_of_text:
      return "end-of-text";
    case StopReason::tokens:
      return "tokens";
    case StopReason::positions:
      break;
  }
  return "positions";
}

/// How long a text may become, where it ends, and how tokens are drawn.
struct GenerationOptions {
  Index tokens = 100;           ///< at most
  std::vector<TokenId> ends{};  ///< tokens that end a text
  SamplingOptions sampling{};
};

/// A text that a model wrote, and why it ended.
struct Generation {
  std::vector<TokenId> ids{};  ///< without the prompt
  StopReason stop = StopReason::tokens;
};

/// Throws DataError for an empty prompt, ProtocolError for one longer than the model's positions,
/// for less than one token, and as check_sampling does.
inline void check_generation(const ModelConfig& config, std::span<const TokenId> prompt,
                             const GenerationOptions& options) {
  const Index length = static_cast<Index>(prompt.size());
  if (prompt.empty()) {
    throw DataError({.id = "data/empty-prompt",
                     .where = "prompt",
                     .what = "there is nothing to go on from",
                     .expected = "at least one token",
                     .found = "none",
                     .mend = "give a text, or --bos where the model has such a token"});
  }
  if (length > config.positions) {
    throw ProtocolError({.id = "protocol/prompt-too-long",
                         .where = "prompt",
                         .what = "longer than the model's positions",
                         .expected = "at most " + std::to_string(config.positions) + " tokens",
                         .found = std::to_string(length),
                         .mend = "give a shorter text"});
  }
  if (options.tokens < 1) {
    throw ProtocolError({.id = "protocol/no-tokens",
                         .where = "--tokens",
                         .what = "no tokens are asked for",
                         .expected = "1 or more",
                         .found = std::to_string(options.tokens),
                         .mend = "ask for more"});
  }
  check_sampling(options.sampling);
}

/// Draws tokens that follow the prompt until one ends the text, as many as asked for are there, or
/// the model's positions are used up: the last position gives a token that is not read itself.
/// Token t is drawn at position t of the sampling's streams; on_token(id) is called for each and
/// may throw to end. A gate that looks at whole sequences (RandomGate) sees pieces of them here.
/// Throws as check_generation does, NumericalError for logits that are not finite.
template <class B, class OnToken>
Generation generate(B& backend, const AnyTransformer<B>& model, std::span<const TokenId> prompt,
                    const GenerationOptions& options, const MlpOverrides<B>& overrides,
                    Workspace<B>& workspace, OnToken&& on_token) {
  check_generation(model.config(), prompt, options);
  const Index positions = model.config().positions;
  const Index length = static_cast<Index>(prompt.size());
  const Index further = std::min(options.tokens - 1, positions - length);
  Decoder<B> decoder(backend, model, overrides, workspace, length + further);
  Sampler sampler(options.sampling);
  Generation result;
  std::span<const TokenId> unread = prompt;
  while (true) {
    const TokenId id = sampler.draw(decoder.read(unread), result.ids.size());
    result.ids.push_back(id);
    on_token(id);
    const bool ends = std::find(options.ends.begin(), options.ends.end(), id) != options.ends.end();
    if (ends) return {std::move(result.ids), StopReason::end_of_text};
    if (static_cast<Index>(result.ids.size()) == options.tokens) break;
    if (decoder.length() == positions) return {std::move(result.ids), StopReason::positions};
    unread = std::span<const TokenId>(&result.ids.back(), 1);
  }
  return result;
}

/// The same with the model's own MLPs.
template <class B>
Generation generate(B& backend, const AnyTransformer<B>& model, std::span<const TokenId> prompt,
                    const GenerationOptions& options) {
  Workspace<B> workspace(backend);
  return generate(backend, model, prompt, options, MlpOverrides<B>{}, workspace, [](TokenId) {});
}

/// −log p in nats of each of `ids` by the model itself, given the prompt and those before it.
template <class B>
std::vector<double> continuation_losses(B& backend, const AnyTransformer<B>& model,
                                        std::span<const TokenId> prompt,
                                        std::span<const TokenId> ids, Workspace<B>& workspace) {
  if (ids.empty()) return {};
  std::vector<TokenId> tokens(prompt.begin(), prompt.end());
  tokens.insert(tokens.end(), ids.begin(), ids.end() - 1);
  ScoredPositions scored{.rows = {}, .targets = {ids.begin(), ids.end()}};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    scored.rows.push_back(static_cast<TokenId>(prompt.size() - 1 + i));
  }
  const typename Workspace<B>::Frame frame(workspace);
  const PackedBatch<B> batch(backend, tokens);
  const matrix_view_t<B> residual = workspace.matrix(batch.rows(), model.config().width);
  model.forward(backend, batch, residual, workspace);
  return model.token_losses(backend, residual, scored, workspace);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
