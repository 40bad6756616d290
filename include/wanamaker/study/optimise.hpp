// From a study to a model worth running: the cheapest one within a loss, in the user's terms and by
// costs measured where it is to run, verified on documents that no choice has seen, beside plain
// ways to the same end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/optimise_blocks.hpp"
#include "wanamaker/study/optimise_policies.hpp"
#include "wanamaker/study/optimised_model.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What run_optimise is given besides a study's input. Referenced objects must outlive the run.
template <class B>
struct OptimiseInput {
  StudyInput<B> study;
  OptimiseOptions options{};
  const TokenizedCorpus* other = nullptr;  ///< text of another domain; null: none
  /// Called once with the model that was chosen, healed where that was asked for; not called where
  /// none was.
  std::function<void(AnyTransformer<B>&)> on_model{};
};

namespace detail {

/// Throws ProtocolError ("optimise/options").
inline void check_optimise(const OptimiseOptions& o) {
  const bool shares = std::all_of(o.shares.begin(), o.shares.end(),
                                  [](double share) { return share > 0 && share < 1; });
  const HealOptions& h = o.heal;
  const bool heals = h.tokens == 0 || (h.window > 0 && h.sequences > 0 && h.steps() > 0);
  if (shares && heals && o.batch >= 1 && o.max_loss_percent >= 0 && o.steps_beyond >= 0) return;
  throw ProtocolError({.id = "optimise/options",
                       .where = "OptimiseOptions",
                       .what = "impossible settings",
                       .expected = "a batch of 1 or more, a loss of at least 0, shares between 0 "
                                   "and 1, tokens to heal with for one step at least",
                       .mend = "correct the settings"});
}

/// Maps of every rank, and gates at every share where gates may save.
inline std::vector<LayerPolicy> searched_policies(const OptimiseOptions& options,
                                                  std::vector<Index> ranks, Index width) {
  std::vector<LayerPolicy> policies{{PolicyKind::affine, 0, 0}};
  if (ranks.empty()) ranks = {std::max<Index>(1, width / 16), std::max<Index>(1, width / 4)};
  for (const Index rank : ranks) {
    if (rank < width) policies.push_back({PolicyKind::low_rank, rank, 0});
  }
  if (options.cost == CostKind::parameters) return policies;  // a gate keeps its MLP
  for (const double share : options.shares) policies.push_back({PolicyKind::gate, 0, share});
  return policies;
}

template <Backend B>
class OptimiseRun {
 public:
  explicit OptimiseRun(const OptimiseInput<B>& in)
      : in_(in),
        policies_(
            searched_policies(in.options, in.study.options.ranks, in.study.model.config().width)),
        study_(in.study, {.gate = in.options.cost != CostKind::parameters}),
        c_(study_.context()),
        counts_(c_.backend, c_.model.layers()) {}

  OptimiseResult run() {
    OptimiseResult result{study_.header(), in_.options};
    result.costs = costs();
    OptimiseMeasure<B> measure(study_, in_.options, result.costs, counts_);
    result.cost = cost_of(result.costs, {});
    result.weight_bytes = measure.weight_bytes_of({});
    measure_other({}, other_baseline_);
    alone_ = fit_alone(study_, false, counts_);
    search(measure);
    for (const Path& path : paths_) result.paths.push_back(described(path));
    heal(measure, result);
    result.speeds = speeds();
    return result;
  }

 private:
  struct Path {
    std::string name;
    std::vector<FoundModel<B>> models;

    /// The cheapest within the budget.
    std::optional<Index> chosen() const {
      std::optional<Index> best;
      for (std::size_t i = 0; i < models.size(); ++i) {
        const OptimisePoint& own = models[i].point;
        if (!own.within || own.cost_fraction >= 1) continue;
        if (best && own.cost >= models[static_cast<std::size_t>(*best)].point.cost) continue;
        best = static_cast<Index>(i);
      }
      return best;
    }
    const FoundModel<B>* chosen_model() const {
      const std::optional<Index> index = chosen();
      return index ? &models[static_cast<std::size_t>(*index)] : nullptr;
    }
  };

  CostTable costs() {
    if (!in_.options.costs) {
      in_.study.progress("costs", 0, 1);
      return cost_table(c_.backend, c_.model, c_.workspace, in_.options.cost, in_.options.batch,
                        policies_);
    }
    CostTable wanted{.kind = in_.options.cost,
                     .batch = in_.options.batch,
                     .layers = c_.model.layers(),
                     .width = c_.model.config().width};
    wanted.parts = {{"rest", 0}, {"block", 0}, {"mlp", 0}};
    for (const LayerPolicy& policy : policies_) wanted.parts[name_of(policy)] = 0;
    check_costs(*in_.options.costs, wanted);
    return *in_.options.costs;
  }

  void search(OptimiseMeasure<B>& measure) {
    std::vector<LayerPolicy> low_rank;
    for (const LayerPolicy& p : policies_) {
      if (p.kind == PolicyKind::low_rank) low_rank.push_back(p);
    }
    add_path("policies", PolicySearch<B>(measure, alone_, policies_));
    if (!low_rank.empty()) add_path("low-rank", PolicySearch<B>(measure, alone_, low_rank));
    add_path("linear-blocks", LinearRun<B>(measure));
    add_path("drop-blocks", BlockDrop<B>(measure));
  }

  template <class Search>
  void add_path(const std::string& name, Search search) {
    in_.study.progress(name, 0, 1);
    paths_.push_back(
        {name, follow_path<B>(in_.options.steps_beyond, [&] { return search.next(); })});
  }

  OptimisePath described(const Path& path) {
    OptimisePath result{path.name, {}, path.chosen(), {}};
    for (const FoundModel<B>& model : path.models) result.points.push_back(model.point);
    if (const FoundModel<B>* chosen = path.chosen_model()) result.other = other_text(chosen->edits);
    return result;
  }

  void measure_other(const BlockEdits<B>& edits, std::vector<double>& losses) {
    if (in_.other == nullptr) return;
    if (!other_set_) {
      std::vector<Index> all;
      for (std::size_t d = 0; d < in_.other->documents.size(); ++d) {
        all.push_back(static_cast<Index>(d));
      }
      other_set_ = make_evaluation_set(*in_.other, all, in_.study.rule);
    }
    losses = run_losses_with(c_.backend, c_.model, edits, *other_set_, c_.workspace,
                             in_.study.progress, "other text", [](const EvaluationBatch&) {});
  }

  std::optional<OtherText> other_text(const BlockEdits<B>& edits) {
    if (in_.other == nullptr) return std::nullopt;
    std::vector<double> losses;
    measure_other(edits, losses);
    return other_text(losses);
  }
  OtherText other_text(const std::vector<double>& losses) const {
    const auto perplexity = [](const std::vector<double>& own) {
      return perplexity_of(sum_of(own) / static_cast<double>(own.size()));
    };
    return {static_cast<Index>(other_set_->documents.size()), other_set_->scored(),
            perplexity(other_baseline_), perplexity(losses),
            compare_paired(sum_by_document(other_baseline_, losses, other_set_->document_offsets),
                           c_.options.intervals, c_.executor)};
  }

  /// The chosen model of the search over policies becomes a model of its own where someone wants
  /// it.
  void heal(OptimiseMeasure<B>& measure, OptimiseResult& result) {
    const FoundModel<B>* chosen = paths_.front().chosen_model();
    const bool heals = in_.options.heal.tokens > 0;
    if (chosen == nullptr || (!heals && !in_.on_model)) return;
    AnyTransformer<B> model = model_with(c_.backend, c_.model, chosen->edits.mlps());
    if (heals) result.healed = healed(measure, model);
    if (in_.on_model) in_.on_model(model);
  }

  HealedModel healed(OptimiseMeasure<B>& measure, AnyTransformer<B>& model) {
    TokenizedCorpus trained;
    for (const Index d : in_.study.splits.train.documents) {
      trained.documents.push_back(in_.study.corpus.documents[static_cast<std::size_t>(d)]);
    }
    const std::vector<TokenId> tokens =
        joined_documents(trained, static_cast<TokenId>(in_.options.heal.separator));
    const LossCurve curve =
        distil(c_.backend, model, c_.model, tokens, in_.options.heal, in_.study.progress);
    constexpr std::size_t ends = 10;
    HealedModel result{.steps = in_.options.heal.steps(),
                       .tokens = curve.back().tokens,
                       .first_loss = mean_loss(curve, std::min(ends, curve.size()), ends),
                       .last_loss = mean_loss(curve, curve.size(), ends)};
    const auto losses_of = [&](const EvaluationSet& set) {
      return run_losses(c_.backend, model, set, c_.workspace, in_.study.progress, "healed model");
    };
    result.select_delta_percent = measure.select_percent(sum_of(losses_of(c_.select->set)));
    const std::vector<double> losses = losses_of(c_.report->set);
    result.perplexity = perplexity_of(sum_of(losses) / static_cast<double>(losses.size()));
    measure.compare(losses, result.comparison, result.verdict);
    if (other_set_) result.other = other_text(losses_of(*other_set_));
    return result;
  }

  std::vector<MeasuredSpeed> speeds() {
    const BlockEdits<B> original;
    SpeedTrial<B> trial(c_.backend, c_.model, c_.workspace, in_.options.cost, in_.options.batch);
    std::vector<std::string> names{"original"};
    std::vector<std::function<double()>> runs{[&] { return trial.seconds(original); }};
    for (const Path& path : paths_) {
      const FoundModel<B>* chosen = path.chosen_model();
      if (chosen == nullptr) continue;
      names.push_back(path.name);
      runs.push_back([&trial, chosen] { return trial.seconds(chosen->edits); });
    }
    in_.study.progress("speed", 0, 1);
    constexpr Index repetitions = 9;
    const std::vector<double> medians = interleaved_medians(runs, repetitions);
    std::vector<MeasuredSpeed> result;
    for (std::size_t i = 0; i < names.size(); ++i) result.push_back({names[i], 1 / medians[i]});
    return result;
  }

  const OptimiseInput<B>& in_;
  std::vector<LayerPolicy> policies_;
  LayerStudy<B> study_;
  SweepContext<B> c_;
  RoutedCounts<B> counts_;
  StandIns<B> alone_;
  std::vector<Path> paths_;
  std::optional<EvaluationSet> other_set_{};
  std::vector<double> other_baseline_{};
};

}  // namespace detail

/// Searches greedily, by the loss on the select split and by a table of costs: policies for MLPs
/// (affine, low-rank, hard gates), refitted as earlier layers change; and, for comparison, low-rank
/// maps alone, one linear map for a run of blocks, and blocks left out. Every point of every path
/// is measured on the report split; each path's chosen point, the cheapest within the loss, on the
/// other text, too. Everything but `speeds`, and a table of costs that is not given, is a function
/// of the input. Memory: as run_compound, and the policies of all points. Throws ProtocolError
/// ("optimise/options", "optimise/other-costs", "optimise/no-cost") and what its parts throw.
template <Backend B>
OptimiseResult run_optimise(const OptimiseInput<B>& input) {
  detail::check_optimise(input.options);
  return detail::OptimiseRun<B>(input).run();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
