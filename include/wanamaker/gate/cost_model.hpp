// What a policy and a whole model take: FLOPs with attention scores, gates and LM head counted, and
// bytes of weights read per decoded token. Multiplications and additions count one each; norms,
// activations and softmax, linear in the width, are left out on both sides of every ratio.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "wanamaker/nn/config.hpp"
#include "wanamaker/nn/mlp_policy.hpp"
#include "wanamaker/stats/checks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// FLOPs of a model for one set of sequences.
struct ModelFlops {
  double attention_projections = 0;  ///< q, k, v and output
  double attention_scores = 0;       ///< q·kᵀ and its product with v
  double mlp = 0;                    ///< MLPs, or what stands in their place, gates included
  double head = 0;                   ///< logits

  double total() const { return attention_projections + attention_scores + mlp + head; }
};

/// Shares of FLOPs that a variant saves; negative where it takes more.
struct FlopsSaved {
  double of_mlp = 0;
  double of_total = 0;
};

/// One layer with a gate before its MLP; costs of one token.
struct GatedCost {
  MlpCost gate{};
  MlpCost surrogate{};
  MlpCost mlp{};

  /// FLOPs of one token, where `fraction` of the tokens skip the MLP.
  double flops(double fraction) const {
    return gate.flops + fraction * surrogate.flops + (1 - fraction) * mlp.flops;
  }

  /// The smallest fraction with flops(fraction) ≤ budget·mlp.flops. Throws ProtocolError
  /// ("gate/flop-budget") where there is none.
  double fraction_for_flops(double budget) const {
    const double excess = gate.flops + (1 - budget) * mlp.flops;
    const double saved_by_all = mlp.flops - surrogate.flops;
    if (excess <= 0) return 0;
    if (excess <= saved_by_all) return excess / saved_by_all;
    throw ProtocolError({.id = "gate/flop-budget",
                         .where = "fraction_for_flops(budget)",
                         .what = "routing every token to the surrogate takes more",
                         .expected = "at least " + detail::number_text(flops(1) / mlp.flops) +
                                     " of the MLP's FLOPs",
                         .found = detail::number_text(budget),
                         .mend = "allow more FLOPs, or use a surrogate of lower rank"});
  }

  /// Expected bytes of weights read per decoded token for a batch of B tokens: the MLP's weights
  /// are spared only when the whole batch is routed past them, with probability fraction^B if the
  /// tokens are independent; those of the surrogate when none is, (1 − fraction)^B.
  double weight_bytes_per_token(double fraction, Index batch) const {
    const double b = static_cast<double>(batch);
    const double reads_mlp = 1 - std::pow(fraction, b);
    const double reads_surrogate = 1 - std::pow(1 - fraction, b);
    return (gate.weight_bytes + reads_mlp * mlp.weight_bytes +
            reads_surrogate * surrogate.weight_bytes) /
           b;
  }
};

namespace detail {

/// Pairs (query, key) that causal attention scores in one sequence; `window` 0: all before.
inline double attention_pairs(Index tokens, Index window) {
  const double t = static_cast<double>(tokens);
  if (window <= 0 || window >= tokens) return t * (t + 1) / 2;
  const double w = static_cast<double>(window);
  return w * (w + 1) / 2 + (t - w) * w;
}

}  // namespace detail

/// FLOPs of a forward pass with `mlp_flops` for all layers' MLPs together. Sequences are given by
/// their lengths; `logits` is how many positions get logits.
inline ModelFlops model_flops(const ModelConfig& config, std::span<const Index> lengths,
                              double mlp_flops, Index logits) {
  const double layers = static_cast<double>(config.layers);
  const double width = static_cast<double>(config.width);
  const double queries = static_cast<double>(config.heads * config.head_width);
  const double keys = static_cast<double>(config.key_heads * config.head_width);
  double tokens = 0;
  double pairs = 0;
  for (const Index length : lengths) {
    tokens += static_cast<double>(length);
    pairs += detail::attention_pairs(length, config.sliding_window);
  }
  return {.attention_projections = layers * tokens * 2 * width * (2 * queries + 2 * keys),
          .attention_scores = layers * pairs * 4 * queries,
          .mlp = mlp_flops,
          .head = 2 * width * static_cast<double>(config.vocabulary) * static_cast<double>(logits)};
}

/// What `variant` saves of `dense`.
inline FlopsSaved flops_saved(const ModelFlops& dense, const ModelFlops& variant) {
  return {1 - variant.mlp / dense.mlp, 1 - variant.total() / dense.total()};
}

/// Bytes of weights read per decoded token by everything but the MLPs: attention, norms and head
/// are read once for a batch, embeddings are looked up. `bytes` is the size of one weight.
inline double shared_weight_bytes_per_token(const ModelConfig& config, double bytes, Index batch) {
  const double width = static_cast<double>(config.width);
  const double queries = static_cast<double>(config.heads * config.head_width);
  const double keys = static_cast<double>(config.key_heads * config.head_width);
  const double attention = static_cast<double>(config.layers) * width * (2 * queries + 2 * keys);
  const double head = width * static_cast<double>(config.vocabulary);
  return bytes * (attention + head) / static_cast<double>(batch);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
