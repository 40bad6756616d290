// Marginal δ over a report split: maps, agreement with exact patches, sinks set apart, and the test
// whether catastrophic layers are those that write first positions' large activations.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/residual/marginal_delta.hpp"
#include "wanamaker/stats/quantiles.hpp"
#include "wanamaker/stats/running_moments.hpp"
#include "wanamaker/study/layer_delta.hpp"
#include "wanamaker/study/layer_study.hpp"
#include "wanamaker/study/layer_sweep.hpp"
#include "wanamaker/study/marginal_gates.hpp"
#include "wanamaker/study/marginal_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// log of n over k.
inline double log_binomial(Index n, Index k) {
  const auto log_factorial = [](Index i) { return std::lgamma(static_cast<double>(i) + 1); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

}  // namespace detail

/// The probability that at least `both` of `chosen` items, drawn from n without replacement, are
/// among `marked` ones: Fisher's (1922) exact test, one-sided.
inline double overlap_p_value(Index n, Index marked, Index chosen, Index both) {
  const double all = detail::log_binomial(n, chosen);
  double p = 0;
  for (Index k = std::max(both, chosen + marked - n); k <= std::min(marked, chosen); ++k) {
    p += std::exp(detail::log_binomial(marked, k) + detail::log_binomial(n - marked, chosen - k) -
                  all);
  }
  return std::min(p, 1.0);
}

/// The test over layers, from what was found of each.
inline WriterTest test_writers(std::span<const WriterFigures> layers, double catastrophic_percent,
                               double level = 0.05) {
  WriterTest test{.layers = static_cast<Index>(layers.size())};
  std::vector<double> costs;
  std::vector<double> ratios;
  for (const WriterFigures& layer : layers) {
    costs.push_back(std::min(layer.linear_percent, detail::largest_value));
    ratios.push_back(layer.first_norm_ratio);
    test.writers += layer.is_writer ? 1 : 0;
    if (!layer.is_catastrophic) continue;
    test.catastrophic += 1;
    test.both += layer.is_writer ? 1 : 0;
    test.norm_rule_better += layer.norm_rule_percent < layer.logistic_percent ? 1 : 0;
    test.saved_by_first += layer.first_position_percent <= catastrophic_percent ? 1 : 0;
  }
  test.spearman = spearman_correlation(costs, ratios);
  test.p_value = overlap_p_value(test.layers, test.writers, test.catastrophic, test.both);
  test.least_p_value = overlap_p_value(test.layers, test.writers, test.catastrophic,
                                       std::min(test.writers, test.catastrophic));
  if (test.p_value <= level) {
    test.verdict = WriterVerdict::holds;
  } else if (test.least_p_value <= level) {
    test.verdict = WriterVerdict::does_not_hold;
  }
  return test;
}

namespace detail {

enum class PositionGroup : std::uint8_t { first, sink, other };
inline constexpr std::array<const char*, 3> position_group_names{"first", "sinks", "others"};

/// What of a batch's scored positions is the same for every layer.
struct BatchPlaces {
  std::vector<Index> rows{};
  std::vector<Index> places{};  // in their windows
  std::vector<TokenId> tokens{};
};

inline BatchPlaces batch_places(const EvaluationBatch& batch) {
  BatchPlaces result;
  for (const TokenId row : batch.scored.rows) {
    const auto next = std::upper_bound(batch.offsets.begin(), batch.offsets.end(), Index{row});
    result.rows.push_back(row);
    result.places.push_back(row - *(next - 1));
    result.tokens.push_back(batch.tokens[static_cast<std::size_t>(row)]);
  }
  return result;
}

/// Streaming figures of one group of positions.
struct GroupMoments {
  RunningMoments delta{};
  RunningMoments output{};
  RunningMoments change{};
  RunningMoments stream{};
  double sum = 0;
  double magnitude = 0;
  Index linear = 0;
};

/// One layer's figures as batches go by; independent of the number of positions but for those that
/// are patched or mapped.
struct MarginalCollector {
  std::array<GroupMoments, 3> groups{};
  std::map<TokenId, RunningMoments> tokens{};
  double joint_sum = 0;
  std::optional<double> integrated_sum{};
  std::vector<PatchedPosition> patches{};
  std::vector<double> map{};
};

inline MarginalGroup group_of(const GroupMoments& m, PositionGroup group, double magnitude) {
  const Index n = m.delta.count();
  MarginalGroup result{.name = position_group_names[static_cast<std::size_t>(group)],
                       .positions = n,
                       .delta_sum = m.sum,
                       .mean = m.delta.mean(),
                       .standard_deviation = m.delta.standard_deviation(),
                       .share_linear = share_of_count(m.linear, n),
                       .output_norm = m.output.mean(),
                       .change_norm = m.change.mean(),
                       .stream_norm = m.stream.mean()};
  if (magnitude > 0) result.share_of_magnitude = m.magnitude / magnitude;
  return result;
}

inline MarginalAgreement agreement_of(std::span<const PatchedPosition> patches, bool elsewhere) {
  std::vector<double> estimate;
  std::vector<double> exact;
  for (const PatchedPosition& p : patches) {
    if (elsewhere && p.group != position_group_names[2]) continue;
    estimate.push_back(p.first_order);
    exact.push_back(p.exact);
  }
  return marginal_agreement(estimate, exact);
}

inline std::optional<MarginalAgreement> path_agreement_of(
    std::span<const PatchedPosition> patches) {
  std::vector<double> estimate;
  std::vector<double> exact;
  for (const PatchedPosition& p : patches) {
    if (!p.integrated) return std::nullopt;
    estimate.push_back(*p.integrated);
    exact.push_back(p.exact);
  }
  return marginal_agreement(estimate, exact);
}

inline MarginalDisagreement disagreement_of(std::span<const PatchedPosition> patches) {
  MarginalDisagreement result;
  if (patches.empty()) return result;
  std::vector<double> sizes;
  for (const PatchedPosition& p : patches) sizes.push_back(std::abs(p.exact));
  const double median = sorted_quantile(sorted_copy(sizes), 0.5);
  RunningMoments right;
  RunningMoments wrong;
  Index mended = 0;
  for (const PatchedPosition& p : patches) {
    if (!(std::abs(p.exact) > median)) continue;
    result.large += 1;
    const bool agrees = sign_of(p.first_order) == sign_of(p.exact);
    (agrees ? right : wrong).add(p.relative_change);
    if (agrees) continue;
    result.wrong_first += p.group == position_group_names[0] ? 1 : 0;
    result.wrong_sinks += p.group == position_group_names[1] ? 1 : 0;
    mended += p.integrated && sign_of(*p.integrated) == sign_of(p.exact) ? 1 : 0;
  }
  result.wrong = wrong.count();
  result.relative_change = right.mean();
  result.wrong_change = wrong.mean();
  if (patches.front().integrated) result.right_after_path = share_of_count(mended, result.wrong);
  return result;
}

/// Three digits are enough for a sentence.
inline std::string three_digits(double value) {
  char text[32];
  const std::to_chars_result end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::general, 3);
  return std::string(text, end.ptr);
}

inline std::string statement_of(const MarginalDisagreement& d) {
  if (d.large == 0) return "No position was patched with an effect; nothing is known here.";
  const double share = 1 - static_cast<double>(d.wrong) / static_cast<double>(d.large);
  std::string text = "First order has the sign of the exact effect at " +
                     three_digits(100 * share) + " % of " + std::to_string(d.large) +
                     " positions with large effects";
  if (share >= 0.9) return text + ": it may be read here.";
  text += ", below 90 %: it may not be read here. Of the " + std::to_string(d.wrong) + " others " +
          std::to_string(d.wrong_first) + " are first positions and " +
          std::to_string(d.wrong_sinks) + " sinks";
  if (d.relative_change && d.wrong_change) {
    text += "; the change is " + three_digits(*d.wrong_change) +
            " of the stream's length at them and " + three_digits(*d.relative_change) +
            " at the rest";
  }
  if (d.right_after_path) {
    text += "; a path over all positions sets " + three_digits(100 * *d.right_after_path) +
            " % of them right";
  }
  return text + ".";
}

/// The report split, batch by batch, all layers at once.
template <class B>
class MarginalPass {
 public:
  MarginalPass(const StudyInput<B>& input, const MarginalOptions& options, const EvaluationSet& set,
               MarginalDelta<B>& marginal)
      : in_(input),
        options_(options),
        set_(set),
        marginal_(marginal),
        collectors_(static_cast<std::size_t>(marginal.stand_ins())) {}

  void run() {
    const Index batches = static_cast<Index>(set_.batches.size());
    for (Index b = 0; b < batches; ++b) {
      in_.progress("marginal", b, batches);
      const EvaluationBatch& batch = set_.batches[static_cast<std::size_t>(b)];
      const typename Workspace<B>::Frame frame(in_.workspace);
      const PackedBatch<B> packed(in_.backend, batch.tokens, batch.offsets);
      marginal_.begin(packed, batch.scored);
      const BatchPlaces places = batch_places(batch);
      for (Index k = 0; k < marginal_.stand_ins(); ++k) add(k, batch, places);
    }
    in_.progress("marginal", batches, batches);
  }

  const MarginalCollector& collector(Index k) const {
    return collectors_[static_cast<std::size_t>(k)];
  }
  const PatchWork& work() const { return work_; }

 private:
  void add(Index k, const EvaluationBatch& batch, const BatchPlaces& places) {
    MarginalCollector& own = collectors_[static_cast<std::size_t>(k)];
    check_finite_losses(marginal_.first_order(k),
                        "marginal δ of layer " + std::to_string(marginal_.layer(k)));
    own.joint_sum += marginal_.joint(k);
    std::vector<double> path;
    if (options_.integrated_steps > 0) {
      path = marginal_.integrated(k, options_.integrated_steps);
      own.integrated_sum = own.integrated_sum.value_or(0) + sum_of(path);
    }
    const std::vector<PositionGroup> groups = groups_of(k, places);
    add_positions(k, batch, places, groups, own);
    add_patches(k, batch, places, groups, path, own);
  }

  // Sinks by the lengths of this layer's stream.
  std::vector<PositionGroup> groups_of(Index k, const BatchPlaces& places) const {
    const std::vector<double>& norms = marginal_.stream_norms(k);
    const double longest = options_.sink_ratio * sorted_quantile(sorted_copy(norms), 0.5);
    std::vector<PositionGroup> groups;
    for (std::size_t s = 0; s < places.rows.size(); ++s) {
      const bool is_sink = norms[static_cast<std::size_t>(places.rows[s])] > longest;
      groups.push_back(places.places[s] == 0 ? PositionGroup::first
                       : is_sink             ? PositionGroup::sink
                                             : PositionGroup::other);
    }
    return groups;
  }

  void add_positions(Index k, const EvaluationBatch& batch, const BatchPlaces& places,
                     const std::vector<PositionGroup>& groups, MarginalCollector& own) const {
    for (std::size_t s = 0; s < places.rows.size(); ++s) {
      const std::size_t row = static_cast<std::size_t>(places.rows[s]);
      const double delta = marginal_.first_order(k)[row];
      GroupMoments& group = own.groups[static_cast<std::size_t>(groups[s])];
      group.delta.add(delta);
      group.output.add(marginal_.output_norms(k)[row]);
      group.change.add(marginal_.change_norms(k)[row]);
      group.stream.add(marginal_.stream_norms(k)[row]);
      group.sum += delta;
      group.magnitude += std::abs(delta);
      group.linear += delta <= 0 ? 1 : 0;
      if (groups[s] == PositionGroup::other) own.tokens[places.tokens[s]].add(delta);
      if (batch.first_loss + static_cast<Index>(s) < options_.map_positions) {
        own.map.push_back(delta);
      }
    }
  }

  std::vector<std::size_t> patched_of(const EvaluationBatch& batch) const {
    std::vector<std::size_t> chosen;
    const Index end = batch.first_loss + static_cast<Index>(batch.scored.rows.size());
    for (const Index at : evenly_spread(set_.scored(), options_.exact_positions)) {
      if (at >= batch.first_loss && at < end) {
        chosen.push_back(static_cast<std::size_t>(at - batch.first_loss));
      }
    }
    return chosen;
  }

  void add_patches(Index k, const EvaluationBatch& batch, const BatchPlaces& places,
                   const std::vector<PositionGroup>& groups, const std::vector<double>& path,
                   MarginalCollector& own) {
    const std::vector<std::size_t> chosen = patched_of(batch);
    std::vector<Index> rows;
    for (const std::size_t s : chosen) rows.push_back(places.rows[s]);
    const std::vector<double> exact = marginal_.exact(k, rows, work_);
    check_finite_losses(exact, "patches of layer " + std::to_string(marginal_.layer(k)));
    for (std::size_t p = 0; p < chosen.size(); ++p) {
      const std::size_t s = chosen[p];
      const std::size_t row = static_cast<std::size_t>(rows[p]);
      const double length = marginal_.stream_norms(k)[row];
      PatchedPosition patch{
          .position = batch.first_loss + static_cast<Index>(s),
          .place = places.places[s],
          .token = places.tokens[s],
          .group = position_group_names[static_cast<std::size_t>(groups[s])],
          .first_order = marginal_.first_order(k)[row],
          .exact = exact[p],
          .relative_change = length > 0 ? marginal_.change_norms(k)[row] / length : 0.0};
      if (!path.empty()) patch.integrated = path[row];
      own.patches.push_back(std::move(patch));
    }
  }

  const StudyInput<B>& in_;
  const MarginalOptions& options_;
  const EvaluationSet& set_;
  MarginalDelta<B>& marginal_;
  std::vector<MarginalCollector> collectors_;
  PatchWork work_{};
};

inline double cost_percent_of(const LayerResult& layer, const char* variant) {
  for (const VariantResult& v : layer.variants) {
    if (v.name == variant) return v.comparison.delta_percent;
  }
  return 0;
}

inline WriterFigures writer_of(const LayerResult& costs, const MarginalCollector& own,
                               const MarginalOptions& options) {
  WriterFigures result{.linear_percent = cost_percent_of(costs, "ridge"),
                       .first_position_percent = cost_percent_of(costs, "first-position"),
                       .norm_rule_percent = cost_percent_of(costs, "norm-rule"),
                       .logistic_percent = cost_percent_of(costs, "gate-logistic")};
  const double others = own.groups[2].output.mean().value_or(0);
  if (others > 0) result.first_norm_ratio = own.groups[0].output.mean().value_or(0) / others;
  result.is_writer = result.first_norm_ratio > options.sink_ratio;
  result.is_catastrophic = result.linear_percent > options.catastrophic_percent;
  return result;
}

/// The types with the largest mean; of equal ones the lower id.
inline std::vector<TypeMean> largest_types(const std::map<TokenId, RunningMoments>& tokens,
                                           Index least_count, Index shown) {
  std::vector<TypeMean> types;
  for (const auto& [type, moments] : tokens) {
    if (moments.count() >= std::max<Index>(least_count, 1)) {
      types.push_back({type, moments.count(), *moments.mean()});
    }
  }
  std::stable_sort(types.begin(), types.end(),
                   [](const TypeMean& a, const TypeMean& b) { return a.mean > b.mean; });
  types.resize(std::min(types.size(), static_cast<std::size_t>(std::max<Index>(shown, 0))));
  return types;
}

inline MarginalLayer finish_layer(const LayerResult& costs, const MarginalCollector& own,
                                  const MarginalOptions& options) {
  MarginalLayer result{.layer = costs.layer,
                       .r2 = costs.r2,
                       .lambda = costs.lambda,
                       .lambda_trials = costs.lambda_trials,
                       .joint_sum = own.joint_sum,
                       .integrated_sum = own.integrated_sum,
                       .patches = own.patches,
                       .map = own.map};
  double magnitude = 0;
  for (const GroupMoments& group : own.groups) {
    magnitude += group.magnitude;
    result.first_order_sum += group.sum;
  }
  for (const PositionGroup g : {PositionGroup::first, PositionGroup::sink, PositionGroup::other}) {
    result.groups.push_back(group_of(own.groups[static_cast<std::size_t>(g)], g, magnitude));
  }
  result.agreement = agreement_of(own.patches, false);
  result.agreement_elsewhere = agreement_of(own.patches, true);
  if (options.integrated_steps > 0) result.integrated_agreement = path_agreement_of(own.patches);
  result.disagreement = disagreement_of(own.patches);
  result.statement = statement_of(result.disagreement);
  result.writer = writer_of(costs, own, options);
  result.tokens = largest_types(own.tokens, options.least_count, options.shown);
  return result;
}

inline PatchCost cost_of(const PatchWork& work) {
  PatchCost cost{.patches = work.patches, .passes = work.passes};
  if (work.patches == 0) return cost;
  const double n = static_cast<double>(work.patches);
  cost.block_rows_per_patch = work.block_rows / n;
  cost.scored_rows_per_patch = work.scored_rows / n;
  cost.naive_block_rows_per_patch = work.naive_block_rows / n;
  cost.naive_scored_rows_per_patch = work.naive_scored_rows / n;
  return cost;
}

inline std::vector<MapPosition> positions_of_map(const EvaluationSet& set, Index count) {
  const std::vector<Index> documents = documents_of_losses(set);
  std::vector<MapPosition> result;
  for (const EvaluationBatch& batch : set.batches) {
    const BatchPlaces places = batch_places(batch);
    for (std::size_t s = 0; s < places.rows.size(); ++s) {
      const std::size_t at = static_cast<std::size_t>(batch.first_loss) + s;
      if (static_cast<Index>(at) >= count) return result;
      result.push_back({documents[at], places.places[s], places.tokens[s]});
    }
  }
  return result;
}

/// ρ of the map that a layer's sweep chose: as choose_ridge, the last of those with the least loss.
inline double chosen_rho(const LayerResult& layer, const SweepOptions& options) {
  if (layer.lambda_trials.empty()) return options.rhos.front();
  LambdaTrial best = layer.lambda_trials.front();
  for (const LambdaTrial& trial : layer.lambda_trials) {
    if (trial.nll_sum <= best.nll_sum) best = trial;
  }
  return best.rho;
}

}  // namespace detail

/// For each layer's linear map: marginal δ to first order at every scored position of the report
/// split, exactly at some, along a path where asked; first positions and sinks apart. What the
/// layer loses with all positions linear and with gates (a quick sweep), for the test of the
/// writers, and with a gate that learned from marginal δ. Memory: two streams for each layer and
/// batch, what a backward pass of a batch keeps, and figures of the positions that are patched or
/// mapped. Models must be trainable: policies with a backward pass, weights in the type that is
/// computed in. Throws what its parts throw.
template <class B>
MarginalResult run_marginal(const StudyInput<B>& input, const MarginalOptions& options = {},
                            const MarginalCheckpoint& checkpoint = {}) {
  StudyInput<B> own = input;
  own.options.ladder = Ladder::quick;
  LayerStudy<B> study(own, {});
  MarginalResult result;
  static_cast<StudyHeader&>(result) = study.header();
  result.options = options;
  const SweepContext<B> context = study.context();
  std::vector<GatesOfDelta> gates;
  const auto measure = [&](Index layer) {
    const CoMoments& moments = study.moments(layer);
    gates.push_back(stored_or(checkpoint.gates, layer,
                              [&] { return compare_gates_of_delta(context, layer, moments); }));
    return stored_or(checkpoint.costs, layer,
                     [&] { return LayerSweep<B>(context, layer, moments).run(); });
  };
  const std::vector<LayerResult> costs =
      study.for_each_layer("marginal: gates", SweepCheckpoint{}, measure);
  std::vector<AnyMlp<B>> maps;
  for (const LayerResult& layer : costs) {
    const double rho = detail::chosen_rho(layer, own.options);
    maps.emplace_back(RidgeSurrogate::fit(study.moments(layer.layer), {.lambda = rho}, own.executor)
                          .to_mlp(own.backend));
  }
  std::vector<LayerStandIn<B>> stand_ins;
  for (std::size_t k = 0; k < maps.size(); ++k) stand_ins.push_back({costs[k].layer, &maps[k]});
  MarginalDelta<B> marginal(own.backend, own.model, stand_ins, own.workspace, options.patch_rows);
  const EvaluationSet& set = study.report().set;
  detail::MarginalPass<B> pass(own, options, set, marginal);
  pass.run();
  result.map_positions = detail::positions_of_map(set, options.map_positions);
  result.patch_cost = detail::cost_of(pass.work());
  std::vector<WriterFigures> writers;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    result.layers.push_back(
        detail::finish_layer(costs[k], pass.collector(static_cast<Index>(k)), options));
    result.layers.back().gates = std::move(gates[k]);
    writers.push_back(result.layers.back().writer);
  }
  result.writers = test_writers(writers, options.catastrophic_percent);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
