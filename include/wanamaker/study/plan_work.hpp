// What an experiment will take before it is run: passes through the model, counted as the
// experiments make them; FLOPs, memory traffic and memory from these.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/gate/cost_model.hpp"
#include "wanamaker/study/gate_names.hpp"
#include "wanamaker/study/sweep_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Tokens that an experiment is given, by split.
struct PlannedTokens {
  double fit = 0;
  double gate = 0;
  double select = 0;
  double report = 0;
};

/// An experiment on layers, as its options say.
struct PlannedStudy {
  ModelConfig model{};
  PlannedTokens tokens{};
  Index window = 0;           ///< tokens run together, at most
  std::vector<Index> layers;  ///< ascending
  Ladder ladder = Ladder::full;
  Index rhos = 1;   ///< values of ρ that are tried
  Index ranks = 2;  ///< low-rank maps of a layer, but for `quick`, which has one of them
};

/// Token passes: one token through one block, or through the head.
struct PassWork {
  double block_tokens = 0;
  double head_tokens = 0;

  PassWork& operator+=(const PassWork& other) {
    block_tokens += other.block_tokens;
    head_tokens += other.head_tokens;
    return *this;
  }
};

/// What an experiment does.
struct PlannedWork {
  PassWork passes{};
  double moment_tokens = 0;  ///< tokens times layers whose co-moments are summed
  double fits = 0;           ///< maps solved for
  double spectra = 0;        ///< eigendecompositions of a [d × d] matrix
  double kept_tokens = 0;    ///< whose residual stream is kept
  double kept_moments = 0;   ///< layers whose co-moments are kept
};

namespace detail {

/// One forward pass over `tokens` tokens, to the losses.
inline PassWork whole_pass(const PlannedStudy& s, double tokens) {
  return {tokens * static_cast<double>(s.model.layers), tokens};
}

/// `variants` passes from behind layer `layer` on.
inline PassWork passes_after(const PlannedStudy& s, Index layer, double variants, double tokens) {
  return {variants * tokens * static_cast<double>(s.model.layers - layer - 1), variants * tokens};
}

/// Stand-ins of one layer in a sweep: for all rows, and routed.
struct SweepVariants {
  Index whole = 0;
  Index routed = 0;
};

inline SweepVariants sweep_variants(const PlannedStudy& s) {
  constexpr Index zero_mean_ridge = 3, oracles = 2;
  if (s.ladder == Ladder::surrogates) return {zero_mean_ridge, 0};
  const std::vector<std::string>& names = ladder_gate_names();
  const auto wider = std::count_if(names.begin(), names.end(), is_wider_gate);
  const auto all = static_cast<std::ptrdiff_t>(names.size());
  if (s.ladder == Ladder::quick) {
    return {zero_mean_ridge + std::min<Index>(1, s.ranks),
            static_cast<Index>(all - wider) + oracles};
  }
  return {zero_mean_ridge + s.ranks, static_cast<Index>(all) + oracles};
}

/// Co-moments of the chosen layers and the full model's losses on the splits that are walked.
inline PlannedWork layer_study_work(const PlannedStudy& s, const PlannedTokens& walked) {
  PlannedWork work;
  const double layers = static_cast<double>(s.layers.size());
  work.passes.block_tokens = s.tokens.fit * static_cast<double>(s.model.layers);
  work.moment_tokens = s.tokens.fit * layers;
  work.kept_moments = layers;
  work.kept_tokens = walked.gate + walked.select + walked.report;
  work.passes += whole_pass(s, work.kept_tokens);
  return work;
}

}  // namespace detail

/// As run_sweep does it: at each chosen layer the select split is run for every ρ where there are
/// several, the gate split once with the map, the report split once for each stand-in. At the last
/// layer what a routing loses is chosen from losses that are known.
inline PlannedWork sweep_work(const PlannedStudy& s) {
  const bool has_gates = s.ladder != Ladder::surrogates;
  const bool tries = s.rhos > 1;
  const PlannedTokens walked{0, has_gates ? s.tokens.gate : 0,
                             has_gates || tries ? s.tokens.select : 0, s.tokens.report};
  PlannedWork work = detail::layer_study_work(s, walked);
  const detail::SweepVariants variants = detail::sweep_variants(s);
  for (const Index layer : s.layers) {
    const bool is_last = layer + 1 == s.model.layers;
    const Index run = variants.whole + (is_last ? 0 : variants.routed);
    work.passes += detail::passes_after(s, layer, static_cast<double>(run), s.tokens.report);
    work.passes.block_tokens += s.tokens.report;  // looked at twice: scores first
    if (tries) {
      work.passes += detail::passes_after(s, layer, static_cast<double>(s.rhos), s.tokens.select);
      work.passes.block_tokens += s.tokens.select;
    }
    if (has_gates) work.passes += detail::passes_after(s, layer, 1, s.tokens.gate);
    work.fits += tries ? static_cast<double>(s.rhos + 1) : 1;
    if (variants.whole > 3) work.spectra += 1;
    if (s.ladder == Ladder::full) work.spectra += 1;  // principal components
  }
  // Every split is moved on through every layer up to the last one that is chosen.
  if (!s.layers.empty()) {
    work.passes.block_tokens += work.kept_tokens * static_cast<double>(s.layers.back() + 1);
  }
  return work;
}

/// As run_gate_curve does it, at most: `gates` curves of `fractions` points each, on the select
/// split and on the report split, and the reference's on the latter. Shares that a gate cannot
/// route are left out there; at the last layer points are chosen from losses that are known.
inline PlannedWork gate_curve_work(const PlannedStudy& s, Index gates, Index fractions) {
  const bool tries = s.rhos > 1;
  PlannedWork work =
      detail::layer_study_work(s, {0, s.tokens.gate, s.tokens.select, s.tokens.report});
  for (const Index layer : s.layers) {
    const bool is_last = layer + 1 == s.model.layers;
    const double of_gates = is_last ? 0 : static_cast<double>(gates * fractions);
    const double of_oracle = is_last ? 0 : static_cast<double>(fractions);
    const double of_rhos = tries ? static_cast<double>(s.rhos) : 0;
    work.passes += detail::passes_after(s, layer, 1, s.tokens.gate);
    work.passes += detail::passes_after(s, layer, of_rhos + 1 + of_gates, s.tokens.select);
    work.passes += detail::passes_after(s, layer, 1 + of_gates + of_oracle, s.tokens.report);
    work.passes.block_tokens += (tries ? 2 : 1) * s.tokens.select + s.tokens.report;
    work.fits += tries ? static_cast<double>(s.rhos + 1) : 1;
    if (s.ladder == Ladder::full) work.spectra += 1;
  }
  if (!s.layers.empty()) {
    work.passes.block_tokens += work.kept_tokens * static_cast<double>(s.layers.back() + 1);
  }
  return work;
}

/// Training on `tokens` tokens: forward, and twice as much for gradients of inputs and weights.
inline PlannedWork training_work(const PlannedStudy& s, double tokens) {
  return {.passes = detail::whole_pass(s, 3 * tokens)};
}

/// `study perplexity`: one pass over the report split.
inline PlannedWork perplexity_work(const PlannedStudy& s) {
  return {.passes = detail::whole_pass(s, s.tokens.report)};
}

/// What one token takes of a model, and what its weights do.
struct ModelCost {
  double block_flops = 0;  ///< of a token in one block, at the window's average of pairs
  double head_flops = 0;   ///< of a token's logits
  double parameters = 0;   ///< learned numbers
  double block_parameters = 0;
  double head_parameters = 0;
};

/// From the shape alone: the family's dense or gated MLP.
inline ModelCost model_cost(const ModelConfig& c, Index window) {
  const double width = static_cast<double>(c.width), layers = static_cast<double>(c.layers);
  const double tokens = static_cast<double>(window);
  const double matrices = c.family == Family::llama ? 3 : 2;
  const double mlp = matrices * width * static_cast<double>(c.hidden);
  const Index lengths[] = {window};
  const ModelFlops flops = model_flops(c, lengths, 2 * layers * tokens * mlp, window);
  const double head = width * static_cast<double>(c.vocabulary);
  const double positions = c.rotary_width == 0 ? width * static_cast<double>(c.positions) : 0;
  ModelCost cost{.block_flops = (flops.total() - flops.head) / (layers * tokens),
                 .head_flops = flops.head / tokens,
                 .block_parameters = flops.attention_projections / (2 * layers * tokens) + mlp,
                 .head_parameters = head};
  cost.parameters = layers * cost.block_parameters + head + positions + (c.tied_head ? 0 : head);
  return cost;
}

/// What a machine, or each of several, does in a second and holds.
struct MachineRates {
  double product_flops = 0;  ///< products of the model's scalars
  double double_flops = 0;   ///< fits
  double bytes = 0;          ///< read from memory
  double memory = 0;         ///< bytes of one
  Index count = 1;           ///< devices that share documents
};

/// Seconds by what takes them, and bytes that one device holds.
struct WorkCost {
  double flops = 0;
  double product_seconds = 0;
  double traffic_seconds = 0;  ///< streams and weights moved
  double fit_seconds = 0;
  double weight_bytes = 0;
  double stream_bytes = 0;
  double moment_bytes = 0;

  /// Products and what lies between them take turns.
  double seconds() const { return product_seconds + traffic_seconds + fit_seconds; }
  double memory() const { return weight_bytes + stream_bytes + moment_bytes; }
};

/// `scalar_bytes`, `weight_bytes`: of one number of the stream and of the weights; `batch`: tokens
/// run together, for which the weights are read once.
inline WorkCost work_cost(const PlannedStudy& s, const PlannedWork& work, const MachineRates& rates,
                          double scalar_bytes, double weight_bytes, double batch) {
  const ModelCost model = model_cost(s.model, s.window);
  const double width = static_cast<double>(s.model.width);
  const double devices = static_cast<double>(std::max<Index>(1, rates.count));
  const double square = width * width;
  // XᵀX is symmetric: d² of its 2·d² products; XᵀY takes 2·d².
  const double moment_flops = 3 * square * work.moment_tokens;
  WorkCost cost;
  cost.flops = work.passes.block_tokens * model.block_flops +
               work.passes.head_tokens * model.head_flops + moment_flops;
  cost.product_seconds = cost.flops / (rates.product_flops * devices);
  // A block reads and writes the stream some ten times, and its weights once for a batch.
  const double block_bytes =
      10 * width * scalar_bytes + model.block_parameters * weight_bytes / batch;
  const double head_bytes = 2 * width * scalar_bytes + model.head_parameters * weight_bytes / batch;
  cost.traffic_seconds =
      (work.passes.block_tokens * block_bytes + work.passes.head_tokens * head_bytes) /
      (rates.bytes * devices);
  // Cholesky d³/3, solving for d columns 2·d³; eigenvalues and vectors of a symmetric matrix 9·d³.
  const double cube = square * width;
  cost.fit_seconds = (work.fits * (cube / 3 + 2 * cube) + work.spectra * 9 * cube) /
                     (rates.double_flops * devices);
  cost.weight_bytes = model.parameters * weight_bytes;
  cost.stream_bytes = work.kept_tokens * width * scalar_bytes / devices;
  cost.moment_bytes = work.kept_moments * 2 * square * 8;
  return cost;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
