// Fine-tuning experiments: every arm of a plan with every seed on the same tokens, plain
// fine-tuning for as many FLOPs beside them, and what can be said.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/arm_run.hpp"
#include "wanamaker/study/finetune_comparison.hpp"
#include "wanamaker/study/finetune_plans.hpp"
#include "wanamaker/study/linearised_layers.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Layers by what replacing each alone by its map costs on the select split, the cheapest first.
template <Backend B>
std::vector<Index> order_by_cost(const FinetuneInput<B>& in, const std::vector<Index>& layers) {
  const EvaluationSet select = make_evaluation_set(in.corpus, in.splits.select.documents, in.rule);
  std::vector<std::pair<double, Index>> costs;
  for_each_linearised(
      LinearisedInput<B>{.backend = in.backend,
                         .model = in.model,
                         .fit = make_evaluation_set(in.corpus, in.splits.fit.documents, in.rule),
                         .set = select,
                         .rho = in.options.rho,
                         .workspace = in.workspace,
                         .executor = in.executor,
                         .progress = in.progress},
      layers, [&costs](Index layer, const std::vector<double>& losses) {
        costs.emplace_back(sum_of(losses), layer);
      });
  std::sort(costs.begin(), costs.end());
  std::vector<Index> order;
  for (const auto& [cost, layer] : costs) order.push_back(layer);
  return order;
}

namespace detail {

/// Throws ProtocolError where there is no seed, one is given twice, or a layer is none.
inline void check_finetune(const FinetuneOptions& options, Index layers) {
  check_seeds(options.seeds);
  if (options.recipes.layers.empty()) {
    throw ProtocolError({.id = "finetune/no-layers",
                         .where = "RecipeOptions::layers",
                         .what = "no layer to linearise",
                         .expected = "at least one",
                         .found = "none",
                         .mend = "name layers"});
  }
  chosen_layers(options.recipes.layers, layers);
}

template <Backend B>
class FinetuneStudy {
 public:
  FinetuneStudy(const FinetuneInput<B>& in, FinetunePlan plan, const FinetuneCheckpoint& checkpoint)
      : in_(in), plan_(std::move(plan)), checkpoint_(checkpoint), texts_(in) {}

  FinetuneResult run() {
    FinetuneResult result = header();
    for (const Arm& arm : plan_.arms) run_arm(arm);
    add_equal_flops();
    const FinetuneComparisons comparisons(runs_, comparison_options(in_.options), in_.executor);
    for (const Contrast& contrast : plan_.contrasts) {
      for (const EvaluationText& text : texts_.texts()) {
        result.comparisons.push_back(comparisons.compare(contrast, text.name));
      }
    }
    for (const PointName& point : compared_points()) {
      result.gaps.push_back(comparisons.gap(point));
    }
    for (const PointName& point : plan_.treated) {
      result.verdicts.push_back(
          {point, claim_verdict(result.comparisons, point), comparisons.kept(point)});
    }
    result.runs = std::move(runs_);
    return result;
  }

 private:
  FinetuneResult header() const {
    FinetuneResult result{.command = plan_.command,
                          .protocol = in_.protocol,
                          .model = summarise_model(in_.model),
                          .options = in_.options};
    result.protocol.token_ids_hash = token_ids_hash(texts_.unseen());
    result.train_documents = static_cast<Index>(in_.splits.train.documents.size());
    result.train_tokens = static_cast<Index>(texts_.tokens().size());
    for (const EvaluationText& text : texts_.texts()) {
      result.texts.push_back({text.name, static_cast<Index>(text.set.documents.size()),
                              text.set.scored(), token_ids_hash(text.set)});
    }
    return result;
  }

  const ArmRun& run_with(const Arm& arm, std::uint64_t seed) {
    in_.progress(arm.name + ", seed " + std::to_string(seed), 0, 1);
    runs_.push_back(stored_or(checkpoint_, ArmKey{arm.name, seed}, [&] {
      RoutedShares rates;
      if (!arm.rates_of.empty()) rates = routed_shares(run_named(arm.rates_of, seed));
      return ArmRunner<B>(in_, texts_, arm, seed, std::move(rates)).run();
    }));
    return runs_.back();
  }

  /// With every seed, or with the first where the outcome does not depend on it.
  void run_arm(const Arm& arm) {
    const std::size_t count = is_seeded(arm.recipe) ? in_.options.seeds.size() : 1;
    for (std::size_t s = 0; s < count; ++s) run_with(arm, in_.options.seeds[s]);
  }

  const ArmRun& run_named(const std::string& arm, std::uint64_t seed) const {
    for (const ArmRun& run : runs_) {
      if (run.arm == arm && run.seed == seed) return run;
    }
    throw_no_point({arm, "any"});
  }

  /// FLOPs of one step of plain fine-tuning, of all its batches.
  double plain_step_flops() {
    ArmModel<B> plain(in_.backend, in_.model, 0);
    const double batch = step_flops(plain, parameters<B>(plain.model()), in_.options.window,
                                    in_.options.sequences, in_.options.recompute)
                             .total();
    return batch * static_cast<double>(in_.options.training.accumulation);
  }

  /// Plain fine-tuning for the number of steps whose FLOPs are next to each treated point's.
  void add_equal_flops() {
    const double step = plain_step_flops();
    for (const PointName& treated : plan_.treated) {
      const double flops = point_of(runs_, treated, in_.options.seeds.front()).training_flops;
      const auto steps = std::max<Index>(1, static_cast<Index>(std::llround(flops / step)));
      const Arm plain = plain_arm(steps, in_.options.recipes.rate);
      const auto is_plain = [&](const Arm& arm) { return arm.name == plain.name; };
      if (std::none_of(plan_.arms.begin(), plan_.arms.end(), is_plain)) {
        plan_.arms.push_back(plain);
        run_arm(plain);
      }
      plan_.contrasts.push_back({treated, {plain.name, "tuned"}, ControlKind::equal_flops});
    }
    const auto place = [this](const Contrast& contrast) {
      return std::find(plan_.treated.begin(), plan_.treated.end(), contrast.treated);
    };
    std::stable_sort(plan_.contrasts.begin(), plan_.contrasts.end(),
                     [&](const Contrast& a, const Contrast& b) { return place(a) < place(b); });
  }

  /// Everything that contrasts name but the untouched model, each once.
  std::vector<PointName> compared_points() const {
    std::vector<PointName> points;
    for (const Contrast& contrast : plan_.contrasts) {
      for (const PointName& point : {contrast.treated, contrast.control}) {
        const bool is_there = std::find(points.begin(), points.end(), point) != points.end();
        if (!is_there && point.arm != "untouched") points.push_back(point);
      }
    }
    return points;
  }

  const FinetuneInput<B>& in_;
  FinetunePlan plan_;
  const FinetuneCheckpoint& checkpoint_;
  FinetuneTexts<B> texts_;
  std::vector<ArmRun> runs_;
};

}  // namespace detail

/// Runs a plan. All arms begin with the same model; arms with the same seed see the same windows in
/// the same order; maps are fitted on the fit split, rates of random routing come from the select
/// split, weights from the train split; the report split ("unseen"), documents of the train split
/// ("trained") and the other corpus ("other") are only read. The model is left as it is. Results
/// do not depend on threads, nor on which parts were stored. Throws ProtocolError
/// ("finetune/seeds", "finetune/no-layers", "protocol/no-such-layer") and what its parts throw.
template <Backend B>
FinetuneResult run_finetune(const FinetuneInput<B>& input, const FinetunePlan& plan,
                            const FinetuneCheckpoint& checkpoint = {}) {
  detail::check_finetune(input.options, input.model.layers());
  return detail::FinetuneStudy<B>(input, plan, checkpoint).run();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
