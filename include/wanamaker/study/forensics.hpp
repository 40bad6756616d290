// Examples for reading: what the linear map costs at single positions of a text, where a logistic
// gate sends them, and which tokens lie at either end of the direction that it reads.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/gate/host_rows.hpp"
#include "wanamaker/gate/logistic_gate.hpp"
#include "wanamaker/stats/auc.hpp"
#include "wanamaker/stats/correlation.hpp"
#include "wanamaker/stats/running_moments.hpp"
#include "wanamaker/study/forensics_result.hpp"
#include "wanamaker/study/layer_delta.hpp"
#include "wanamaker/study/layer_study.hpp"
#include "wanamaker/study/token_features.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Parts are layers.
using ForensicsCheckpoint = Checkpoint<Index, ForensicsLayer>;

namespace detail {

/// The numbers of the losses that passages show.
inline std::vector<std::vector<Index>> losses_of_passages(const EvaluationSet& set,
                                                          const ForensicsOptions& options) {
  std::vector<std::vector<Index>> passages;
  for (std::size_t d = 0; d < set.documents.size(); ++d) {
    if (static_cast<Index>(passages.size()) >= options.passages) break;
    const Index begin = set.document_offsets[d];
    const Index end = std::min(set.document_offsets[d + 1], begin + options.positions);
    passages.emplace_back();
    for (Index i = begin; i < end; ++i) passages.back().push_back(i);
  }
  return passages;
}

inline std::vector<Passage> passages_of(const EvaluationSet& set, const ForensicsOptions& options) {
  const std::vector<TokenId> tokens = inputs_of_losses(set);
  const std::vector<TokenId> targets = targets_of_losses(set);
  std::vector<Passage> passages;
  for (const std::vector<Index>& losses : losses_of_passages(set, options)) {
    Passage passage{.document = static_cast<Index>(passages.size())};
    for (const Index i : losses) {
      passage.tokens.push_back(tokens[static_cast<std::size_t>(i)]);
      passage.targets.push_back(targets[static_cast<std::size_t>(i)]);
    }
    passages.push_back(std::move(passage));
  }
  return passages;
}

/// Types with enough positions, by rising mean logit.
inline std::vector<TypeScore> score_types(std::span<const TokenId> tokens,
                                          std::span<const double> logits,
                                          std::span<const double> delta, Index least_count) {
  std::map<TokenId, std::pair<RunningMoments, RunningMoments>> by_type;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto& [logit, own] = by_type[tokens[i]];
    logit.add(logits[i]);
    own.add(delta[i]);
  }
  std::vector<TypeScore> types;
  for (const auto& [type, moments] : by_type) {
    const auto& [logit, own] = moments;
    if (logit.count() < least_count) continue;
    types.push_back({type, logit.count(), logit.mean().value_or(0), own.mean().value_or(0)});
  }
  std::stable_sort(types.begin(), types.end(),
                   [](const TypeScore& a, const TypeScore& b) { return a.logit < b.logit; });
  return types;
}

/// One layer's examples.
template <class B>
class LayerForensics {
 public:
  LayerForensics(const SweepContext<B>& context, const ForensicsOptions& options, Index layer,
                 const CoMoments& moments)
      : c_(context), options_(options), layer_(layer), moments_(moments) {}

  ForensicsLayer run() {
    ForensicsLayer result{.layer = layer_};
    const RidgeSurrogate fit = choose_ridge(c_, moments_, result.lambda_trials).fit;
    result.r2 = fit.report().in_sample.r2;
    result.lambda = fit.report().lambda;
    const AnyMlp<B> surrogate(fit.to_mlp(c_.backend));
    fit_gate(collect(*c_.gate, surrogate), result);
    const GateData<B> report = collect(*c_.report, surrogate);
    check_finite_losses(report.delta, "layer " + std::to_string(layer_) + ", ridge");
    const std::vector<double> logits =
        linear_scores<B>(c_.backend, {result.direction, result.bias}, report.inputs.view());
    describe_gate(logits, report, result);
    describe_types(logits, report, result);
    for (const std::vector<Index>& passage : losses_of_passages(c_.report->set, options_)) {
      for (const Index i : passage) {
        const std::size_t at = static_cast<std::size_t>(i);
        result.delta.push_back(report.delta[at]);
        result.probability.push_back(1 / (1 + std::exp(-logits[at])));
      }
    }
    return result;
  }

 private:
  GateData<B> collect(WalkedSplit<B>& split, const AnyMlp<B>& surrogate) const {
    return collect_gate_data(c_.backend, *split.pass, surrogate, split.baseline,
                             c_.model.config().width, c_.workspace);
  }

  void fit_gate(const GateData<B>& data, ForensicsLayer& result) const {
    const DeltaLabels labels = labels_at_most(data.delta, 0);
    const LinearScore score = fit_logistic_regression<B>(c_.backend, data.inputs.view(),
                                                         labels.labels, {}, {.C = options_.C})
                                  .folded();
    result.direction = score.weights;
    result.bias = score.bias;
  }

  void describe_gate(std::span<const double> logits, const GateData<B>& report,
                     ForensicsLayer& result) const {
    const auto routed = std::count_if(logits.begin(), logits.end(), [](double z) { return z > 0; });
    result.fraction_linear = static_cast<double>(routed) / static_cast<double>(logits.size());
    const auto auc = area_under_roc(logits, labels_at_most(report.delta, 0).labels);
    if (auc) result.auc = auc->auc;
  }

  void describe_types(std::span<const double> logits, const GateData<B>& report,
                      ForensicsLayer& result) const {
    const std::vector<TypeScore> types =
        score_types(report.tokens, logits, report.delta, options_.least_count);
    std::vector<double> by_logit, by_delta;
    for (const TypeScore& t : types) {
      by_logit.push_back(t.logit);
      by_delta.push_back(t.delta);
    }
    result.types = static_cast<Index>(types.size());
    if (types.size() > 1) result.type_spearman = spearman_correlation(by_logit, by_delta);
    const std::size_t shown = std::min(types.size(), static_cast<std::size_t>(options_.shown));
    result.bottom.assign(types.begin(), types.begin() + static_cast<std::ptrdiff_t>(shown));
    result.top.assign(types.rbegin(), types.rbegin() + static_cast<std::ptrdiff_t>(shown));
    compare_function_words(logits, report.tokens, result);
  }

  void compare_function_words(std::span<const double> logits, std::span<const TokenId> tokens,
                              ForensicsLayer& result) const {
    RunningMoments all, listed, others;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      all.add(logits[i]);
      const std::size_t type = static_cast<std::size_t>(tokens[i]);
      if (type >= options_.spellings.size()) continue;
      (is_function_word(options_.spellings[type]) ? listed : others).add(logits[i]);
    }
    result.logit_deviation = all.standard_deviation();
    if (listed.mean() && others.mean()) {
      result.function_words = *listed.mean() - *others.mean();
    }
  }

  const SweepContext<B>& c_;
  const ForensicsOptions& options_;
  Index layer_;
  const CoMoments& moments_;
};

}  // namespace detail

/// For each layer: joint δ of its linear map and the probability of a logistic gate (fitted to
/// δ ≤ 0 on the gate split) at the first positions of some report documents, and the gate's
/// direction in coordinates of the MLP's input (coefficients divided by the inputs' scales) with
/// the token types at its ends. Memory: n·d scalars for the positions of the gate split, then of
/// the report split. Throws what its parts throw.
template <class B>
ForensicsResult run_forensics(const StudyInput<B>& input, const ForensicsOptions& options = {},
                              const ForensicsCheckpoint& checkpoint = {}) {
  LayerStudy<B> study(input, {.gate = true, .select = input.options.rhos.size() > 1});
  ForensicsResult result{study.header(), detail::passages_of(study.report().set, options), {}};
  const SweepContext<B> context = study.context();
  result.layers = study.for_each_layer("forensics", checkpoint, [&](Index layer) {
    return detail::LayerForensics<B>(context, options, layer, study.moments(layer)).run();
  });
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
