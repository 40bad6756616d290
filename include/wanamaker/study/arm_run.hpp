// Running one arm of a fine-tuning experiment with one seed: fit, change, train, evaluate, stage by
// stage.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/finetune_result.hpp"
#include "wanamaker/study/flops_shares.hpp"
#include "wanamaker/study/layer_study.hpp"
#include "wanamaker/study/training_flops.hpp"
#include "wanamaker/surrogate/ridge.hpp"
#include "wanamaker/train/model_loss.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What a fine-tuning experiment is given. Referenced objects must outlive the run.
template <class B>
struct FinetuneInput {
  B& backend;
  const AnyTransformer<B>& model;
  const TokenizedCorpus& corpus;
  const Splits& splits;  ///< train, fit, select and report are used
  Workspace<B>& workspace;
  const TokenizedCorpus* other = nullptr;     ///< text of another domain; null: none
  const PassageCorpus* last_words = nullptr;  ///< passages, each one window; null: none
  WindowRule rule{};                          ///< of evaluations and fits
  Protocol protocol{};                        ///< token_ids_hash is filled in
  FinetuneOptions options{};
  ExecutorRef executor{};
  Progress progress{};
  /// Called with (arm, seed, point, model) at the end of every stage; the model is to be left as it
  /// is. May be empty; stored arms are not run and not shown.
  std::function<void(const std::string&, std::uint64_t, const FinetunePoint&, ArmModel<B>&)>
      on_point{};
};

/// Routed shares by layer, on the select split.
using RoutedShares = std::map<Index, double>;

/// A text to evaluate on.
struct EvaluationText {
  std::string name{};
  EvaluationSet set{};
  std::vector<Index> targets{};  ///< of passages: tokens of the last word, by document of the set
};

namespace detail {

/// Documents of the train split, evenly spaced, with about as many tokens as `wanted`.
inline std::vector<Index> some_trained_documents(const TokenizedCorpus& corpus,
                                                 const TrainSplit& train, Index wanted) {
  Index available = 0;
  for (const Index d : train.documents) {
    available += static_cast<Index>(corpus.documents[static_cast<std::size_t>(d)].ids.size());
  }
  const std::size_t every =
      static_cast<std::size_t>(std::max<Index>(1, available / std::max<Index>(1, wanted)));
  std::vector<Index> chosen;
  for (std::size_t i = 0; i < train.documents.size(); i += every) {
    chosen.push_back(train.documents[i]);
  }
  return chosen;
}

inline std::vector<Index> all_documents(const TokenizedCorpus& corpus) {
  std::vector<Index> all;
  for (std::size_t d = 0; d < corpus.documents.size(); ++d) all.push_back(static_cast<Index>(d));
  return all;
}

/// What arms share: training tokens, sets of windows, the baseline's costs.
template <Backend B>
class FinetuneTexts {
 public:
  explicit FinetuneTexts(const FinetuneInput<B>& in)
      : fit_(make_evaluation_set(in.corpus, in.splits.fit.documents, in.rule)),
        select_(make_evaluation_set(in.corpus, in.splits.select.documents, in.rule)),
        tokens_(training_tokens(in)) {
    texts_.push_back(
        {unseen_text, make_evaluation_set(in.corpus, in.splits.report.documents, in.rule)});
    const std::vector<Index> trained =
        some_trained_documents(in.corpus, in.splits.train, texts_.front().set.tokens);
    texts_.push_back({trained_text, make_evaluation_set(in.corpus, trained, in.rule)});
    if (in.other != nullptr) {
      texts_.push_back(
          {other_text, make_evaluation_set(*in.other, all_documents(*in.other), in.rule)});
    }
    if (in.last_words != nullptr) add_last_words(*in.last_words, in.rule);
  }

  const EvaluationSet& fit() const { return fit_; }
  const EvaluationSet& select() const { return select_; }
  const EvaluationSet& unseen() const { return texts_.front().set; }
  const std::vector<EvaluationText>& texts() const { return texts_; }
  const std::vector<TokenId>& tokens() const { return tokens_; }

 private:
  static std::vector<TokenId> training_tokens(const FinetuneInput<B>& in) {
    TokenizedCorpus chosen;
    for (const Index d : in.splits.train.documents) {
      chosen.documents.push_back(in.corpus.documents[static_cast<std::size_t>(d)]);
    }
    return joined_documents(chosen, in.options.separator);
  }

  void add_last_words(const PassageCorpus& passages, const WindowRule& rule) {
    EvaluationText text{last_words_text,
                        make_evaluation_set(passages.corpus, all_documents(passages.corpus), rule)};
    text.targets = scored_targets(passages.corpus, passages.target_tokens, text.set);
    texts_.push_back(std::move(text));
  }

  EvaluationSet fit_;
  EvaluationSet select_;
  std::vector<TokenId> tokens_;
  std::vector<EvaluationText> texts_;
};

/// Sums of a set's losses by document.
inline TextLosses losses_by_document(const std::string& text, const EvaluationSet& set,
                                     std::span<const double> losses) {
  TextLosses result{.text = text};
  for (std::size_t d = 0; d + 1 < set.document_offsets.size(); ++d) {
    const auto begin = static_cast<std::size_t>(set.document_offsets[d]);
    const auto count = static_cast<std::size_t>(set.document_offsets[d + 1]) - begin;
    result.tokens.push_back(static_cast<Index>(count));
    result.nll.push_back(sum_of(losses.subspan(begin, count)));
  }
  return result;
}

/// Each passage's last word as if it were one token.
inline TextLosses losses_of_last_words(const EvaluationText& text, const TokenScores& scores) {
  TextLosses result{.text = text.name};
  for (std::size_t d = 0; d < text.targets.size(); ++d) {
    const LastWordScore score = last_word_score(scores, text.set, text.targets, d);
    result.tokens.push_back(1);
    result.nll.push_back(score.nll);
    result.hits.push_back(score.is_hit ? 1 : 0);
  }
  return result;
}

/// The losses of a point's steps, and their means at both ends.
inline void add_losses(FinetunePoint& point, const LossCurve& curve) {
  constexpr std::size_t ends = 10;
  const std::size_t first = std::min(ends, curve.size());
  for (const TrainingStep& step : curve) point.losses.push_back(step.loss);
  point.first_loss = mean_loss(curve, first, first);
  point.last_loss = mean_loss(curve, curve.size(), ends);
}

}  // namespace detail

/// One arm with one seed, from the model as it was given. Step n of any arm sees the windows that
/// step n of every other arm with that seed sees.
template <Backend B>
class ArmRunner {
 public:
  /// `rates`: of random routing, until hard gates of the arm itself set others.
  ArmRunner(const FinetuneInput<B>& in, const detail::FinetuneTexts<B>& texts, const Arm& arm,
            std::uint64_t seed, RoutedShares rates = {})
      : in_(in),
        texts_(texts),
        arm_(arm),
        windows_(texts.tokens(), in.options.window, in.options.sequences, seed),
        own_(in.backend, in.model, seed),
        rates_(std::move(rates)) {
    run_.arm = arm.name;
    run_.seed = seed;
  }

  /// Throws what Trainer, fits and evaluations throw; ProtocolError ("finetune/nothing-to-train")
  /// for a stage that has steps and nothing to train.
  ArmRun run() {
    for (const Stage& stage : arm_.recipe) {
      fit_maps(stage);
      for (const Index layer : stage.layers) take_form(layer, stage.form);
      now_ = FinetunePoint{.stage = stage.name,
                           .steps = now_.steps,
                           .tokens = now_.tokens,
                           .training_flops = now_.training_flops};
      if (stage.steps > 0) train(stage);
      evaluate();
      if (in_.on_point) in_.on_point(run_.arm, run_.seed, now_, own_);
      run_.points.push_back(now_);
    }
    return std::move(run_);
  }

  /// The model as it now is.
  const ArmModel<B>& model() const { return own_; }

 private:
  void take_form(Index layer, LayerForm form) {
    const auto rate = rates_.find(layer);
    if (rate != rates_.end()) own_.set_rate(layer, rate->second);
    own_.set_form(layer, form);
  }

  void fit_maps(const Stage& stage) {
    std::vector<Index> missing;
    for (const Index layer : stage.layers) {
      if (stage.form != LayerForm::mlp && !own_.has_map(layer)) missing.push_back(layer);
    }
    if (missing.empty()) return;
    CoMomentCollector<B> collector(in_.backend, own_.model().layers(), own_.model().config().width,
                                   {.layers = missing});
    collect_set(in_.backend, own_.model(), texts_.fit(), collector, in_.workspace, in_.progress);
    for (const Index layer : missing) {
      const auto fit =
          RidgeSurrogate::fit(collector.moments(layer), {.lambda = in_.options.rho}, in_.executor);
      own_.set_map(layer, fit.to_mlp(in_.backend));
    }
    now_.training_flops += fit_flops(own_, texts_.fit(), static_cast<Index>(missing.size()));
  }

  TrainerOptions trainer_options(const Stage& stage) const {
    TrainerOptions options = in_.options.training;
    options.steps = stage.steps;
    options.schedule.peak = stage.rate;
    options.schedule.warm_up = std::min(in_.options.warm_up, stage.steps / 2);
    options.schedule.steps = stage.steps;
    return options;
  }

  Gradients<B> gradients_of(const Stage& stage) {
    const ParameterSelection trained(stage.trained);
    const ParameterSelection frozen(stage.frozen);
    return Gradients<B>(in_.backend, own_.model(), [&](const std::string& name) {
      return (!stage.trained.empty() && !trained(name)) || frozen(name);
    });
  }

  void train(const Stage& stage) {
    const Gradients<B> gradients = gradients_of(stage);
    const ParameterList<B> parameters = wanamaker::parameters<B>(own_.model(), gradients);
    if (gradients.first_layer() > own_.model().layers()) refuse_stage(stage);
    const TrainerOptions options = trainer_options(stage);
    Trainer<B> trainer(in_.backend, parameters, options);
    ModelLoss<B, AnyTransformer<B>> loss(in_.backend, own_.model(), gradients,
                                         {.recompute = in_.options.recompute});
    const Index first_batch = now_.steps * options.accumulation;
    Index batch_of_stage = 0;
    const auto batches = [&](Index n) { return windows_(first_batch + n); };
    const auto with_sparsity = [&](const TrainingBatch& batch) {
      own_.set_sparsity(stage.sparsity_at(batch_of_stage++ / options.accumulation));
      return loss(batch);
    };
    add_training(stage, trainer.run(batches, with_sparsity, in_.progress),
                 step_flops(own_, parameters, in_.options.window, in_.options.sequences,
                            in_.options.recompute)
                     .total());
  }

  void add_training(const Stage& stage, const LossCurve& curve, double flops_of_batch) {
    detail::add_losses(now_, curve);
    now_.steps += stage.steps;
    now_.tokens += curve.back().tokens;
    now_.training_flops +=
        flops_of_batch * static_cast<double>(stage.steps * in_.options.training.accumulation);
  }

  /// Losses of the set; counts() has what was routed at its scored positions.
  std::vector<double> losses_of(const EvaluationSet& set) {
    RoutedCounts<B>& counts = own_.counts();
    counts.reset();
    std::vector<double> losses =
        run_losses_with(in_.backend, own_.model(), MlpOverrides<B>{}, set, in_.workspace,
                        in_.progress, arm_.name + "/" + now_.stage,
                        [&](const EvaluationBatch& batch) { counts.set_batch(&batch); });
    counts.set_batch(nullptr);
    return losses;
  }

  TextLosses text_losses(const EvaluationText& text) {
    if (text.targets.empty()) {
      return detail::losses_by_document(text.name, text.set, losses_of(text.set));
    }
    const TokenScores scores = run_token_scores(in_.backend, own_.model(), text.set, in_.workspace,
                                                in_.progress, arm_.name + "/" + now_.stage);
    return detail::losses_of_last_words(text, scores);
  }

  void evaluate() {
    for (const EvaluationText& text : texts_.texts()) {
      now_.texts.push_back(text_losses(text));
      if (text.name == unseen_text) describe_layers();
    }
    set_rates();
  }

  /// After the unseen text was run.
  void describe_layers() {
    const double scored = static_cast<double>(texts_.unseen().scored());
    std::vector<double> flops;
    for (Index l = 0; l < own_.model().layers(); ++l) {
      LayerState state{.layer = l, .form = own_.form(l)};
      if (state.form == LayerForm::affine) state.fraction_linear = 1;
      if (state.form == LayerForm::hard_gate || state.form == LayerForm::random_routing) {
        state.fraction_linear = static_cast<double>(own_.counts().routed(l)) / scored;
      }
      if (state.form == LayerForm::constant_gate) state.constant = own_.constant(l);
      const double fraction = state.fraction_linear.value_or(0);
      now_.fraction_linear += fraction / static_cast<double>(own_.model().layers());
      flops.push_back(own_.flops(l, fraction));
      if (state.form != LayerForm::mlp) now_.layers.push_back(state);
    }
    const FlopsShares shares = flops_shares(in_.model, texts_.unseen(), flops);
    now_.flops_fraction_mlp = shares.mlp;
    now_.flops_fraction_total = shares.total;
  }

  /// What hard gates route on the select split is the rate of random routing from here on.
  void set_rates() {
    const bool has_hard =
        std::any_of(now_.layers.begin(), now_.layers.end(),
                    [](const LayerState& state) { return state.form == LayerForm::hard_gate; });
    if (!has_hard) return;
    losses_of(texts_.select());
    const double scored = static_cast<double>(texts_.select().scored());
    for (LayerState& state : now_.layers) {
      if (state.form != LayerForm::hard_gate) continue;
      state.select_fraction = static_cast<double>(own_.counts().routed(state.layer)) / scored;
      rates_[state.layer] = *state.select_fraction;
    }
  }

  [[noreturn]] void refuse_stage(const Stage& stage) const {
    throw ProtocolError({.id = "finetune/nothing-to-train",
                         .where = arm_.name + ", stage " + stage.name,
                         .what = "the stage has steps and trains nothing",
                         .expected = "a parameter that is trained",
                         .found = "trained '" + stage.trained + "', frozen '" + stage.frozen + "'",
                         .mend = "correct the rules, or give the stage no steps"});
  }

  const FinetuneInput<B>& in_;
  const detail::FinetuneTexts<B>& texts_;
  const Arm& arm_;
  WindowSampler windows_;
  ArmModel<B> own_;
  RoutedShares rates_;
  FinetunePoint now_{};
  ArmRun run_{};
};

/// What hard gates of the run route on the select split, at its last point that has some.
inline RoutedShares routed_shares(const ArmRun& run) {
  RoutedShares shares;
  for (const FinetunePoint& point : run.points) {
    for (const LayerState& state : point.layers) {
      if (state.select_fraction) shares[state.layer] = *state.select_fraction;
    }
  }
  return shares;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
