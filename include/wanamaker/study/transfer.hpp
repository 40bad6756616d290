// Whether lists of tokens that need the MLP carry over: between halves of one corpus, and to other
// corpora with the same surrogate and with one fitted there.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/stats/folds.hpp"
#include "wanamaker/study/layer_delta.hpp"
#include "wanamaker/study/layer_study.hpp"
#include "wanamaker/study/transfer_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Parts are layers.
using TransferCheckpoint = Checkpoint<Index, TransferLayer>;

/// A corpus with everything that a run needs, by name.
template <class B>
struct NamedStudy {
  std::string name{};
  const StudyInput<B>* input = nullptr;
};

namespace detail {

/// A corpus on its way through the model.
template <class B>
struct TransferCorpus {
  explicit TransferCorpus(const NamedStudy<B>& named)
      : name(named.name),
        study(std::make_unique<LayerStudy<B>>(
            *named.input, typename LayerStudy<B>::Needs{
                              .gate = false, .select = named.input->options.rhos.size() > 1})) {}

  const EvaluationSet& report() const { return study->report().set; }
  std::vector<TokenId> tokens(TokenRole role) const {
    return role == TokenRole::input ? inputs_of_losses(report()) : targets_of_losses(report());
  }

  std::string name;
  std::unique_ptr<LayerStudy<B>> study;
};

/// One layer of all corpora.
template <class B>
class LayerTransfer {
 public:
  LayerTransfer(std::vector<TransferCorpus<B>>& corpora, const TransferOptions& options,
                Index layer, const ExecutorRef& executor)
      : corpora_(corpora), options_(options), layer_(layer), executor_(executor) {}

  TransferLayer run() {
    TransferLayer result{.layer = layer_};
    for (TransferCorpus<B>& corpus : corpora_) corpus.study->walk_to(layer_);
    const AnyMlp<B> surrogate = first_surrogate(result);
    const std::vector<double> delta = delta_of(corpora_.front(), surrogate);
    for (const TokenRole role : {TokenRole::input, TokenRole::target}) {
      result.variances.push_back(variance_of(role, delta));
      result.pairs.push_back(halves(role, delta));
    }
    for (std::size_t c = 1; c < corpora_.size(); ++c) {
      add_pairs(corpora_[c], surrogate, "same", delta, result);
      add_pairs(corpora_[c], own_surrogate(corpora_[c]), "refitted", delta, result);
    }
    return result;
  }

 private:
  AnyMlp<B> first_surrogate(TransferLayer& result) {
    const SweepContext<B> context = corpora_.front().study->context();
    const RidgeSurrogate fit =
        choose_ridge(context, corpora_.front().study->moments(layer_), result.lambda_trials).fit;
    result.r2 = fit.report().in_sample.r2;
    result.lambda = fit.report().lambda;
    return AnyMlp<B>(fit.to_mlp(context.backend));
  }
  AnyMlp<B> own_surrogate(TransferCorpus<B>& corpus) {
    const SweepContext<B> context = corpus.study->context();
    std::vector<LambdaTrial> trials;
    return AnyMlp<B>(
        choose_ridge(context, corpus.study->moments(layer_), trials).fit.to_mlp(context.backend));
  }

  std::vector<double> delta_of(TransferCorpus<B>& corpus, const AnyMlp<B>& surrogate) {
    const SweepContext<B> context = corpus.study->context();
    return measure_delta(context, surrogate, *context.report,
                         "layer " + std::to_string(layer_) + ", ridge on " + corpus.name);
  }

  RoleVariance variance_of(TokenRole role, const std::vector<double>& delta) const {
    const TypeSample sample(corpora_.front().tokens(role), delta);
    std::vector<TypeMean> types = sample.means(options_.lists.least_count);
    RoleVariance result{.role = role, .types = static_cast<Index>(types.size())};
    for (const TypeMean& type : types) result.positions += type.count;
    if (const auto components = sample.components(types)) {
      result.intraclass = components->intraclass();
      result.p_value = components->p_value;
      result.list_reliability = components->list_reliability();
    }
    std::stable_sort(types.begin(), types.end(),
                     [](const TypeMean& a, const TypeMean& b) { return a.mean > b.mean; });
    types.resize(std::min(types.size(), static_cast<std::size_t>(options_.shown)));
    result.largest = std::move(types);
    return result;
  }

  // Documents are dealt to two halves in turn.
  ListPair halves(TokenRole role, const std::vector<double>& delta) const {
    const std::vector<TokenId> tokens = corpora_.front().tokens(role);
    const std::vector<Index> half =
        document_folds(documents_of_losses(corpora_.front().report()), 2, "run_transfer");
    const auto sample_of_half = [&](Index wanted) {
      std::vector<TokenId> own;
      std::vector<double> values;
      for (std::size_t i = 0; i < half.size(); ++i) {
        if (half[i] != wanted) continue;
        own.push_back(tokens[i]);
        values.push_back(delta[i]);
      }
      return TypeSample(own, values);
    };
    return {role, "half 0", "half 1", "same",
            compare_token_lists(sample_of_half(0), sample_of_half(1), options_.lists, executor_)};
  }

  void add_pairs(TransferCorpus<B>& corpus, const AnyMlp<B>& surrogate, const char* which,
                 const std::vector<double>& delta, TransferLayer& result) {
    const std::vector<double> other = delta_of(corpus, surrogate);
    for (const TokenRole role : {TokenRole::input, TokenRole::target}) {
      const TypeSample from(corpora_.front().tokens(role), delta);
      const TypeSample to(corpus.tokens(role), other);
      result.pairs.push_back({role, corpora_.front().name, corpus.name, which,
                              compare_token_lists(from, to, options_.lists, executor_)});
    }
  }

  std::vector<TransferCorpus<B>>& corpora_;
  const TransferOptions& options_;
  Index layer_;
  ExecutorRef executor_;
};

}  // namespace detail

/// δ of each layer's linear map, fitted on the fit split of the first corpus, on the report splits
/// of all; lists by input and by target token. Halves of the first corpus's report split say what a
/// list can reach at all; other corpora are measured with the same surrogate and with one fitted
/// there. All corpora have the model and the layers of the first. A δ is filed under a token, not
/// explained by it: variance between types is what any of the type's usual contexts bring too.
/// Throws what its parts throw, ProtocolError ("stats/folds") for a report split of one document.
template <class B>
TransferResult run_transfer(const NamedStudy<B>& first, std::span<const NamedStudy<B>> others,
                            const TransferOptions& options = {},
                            const TransferCheckpoint& checkpoint = {}) {
  std::vector<detail::TransferCorpus<B>> corpora;
  corpora.emplace_back(first);
  for (const NamedStudy<B>& other : others) corpora.emplace_back(other);
  TransferResult result{corpora.front().study->header(), {}, {}};
  for (const auto& corpus : corpora) result.corpora.push_back(corpus.name);
  result.layers = corpora.front().study->for_each_layer("transfer", checkpoint, [&](Index layer) {
    return detail::LayerTransfer<B>(corpora, options, layer, first.input->executor).run();
  });
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
