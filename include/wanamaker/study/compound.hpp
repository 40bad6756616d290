// All chosen layers at once: stand-ins fitted alone or in sequence, a greedy choice of layers, and
// the frontier of perplexity against FLOPs.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/compound_fit.hpp"
#include "wanamaker/study/compound_result.hpp"
#include "wanamaker/study/flops_shares.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Marks the variants that no other variant beats in FLOPs and select loss together.
inline void mark_frontier(std::vector<CompoundVariant>& variants) {
  for (CompoundVariant& v : variants) {
    v.on_frontier = std::none_of(variants.begin(), variants.end(), [&](const auto& other) {
      const bool no_worse = other.flops_fraction_total <= v.flops_fraction_total &&
                            other.select_nll_sum <= v.select_nll_sum;
      const bool better = other.flops_fraction_total < v.flops_fraction_total ||
                          other.select_nll_sum < v.select_nll_sum;
      return no_worse && better;
    });
  }
}

/// The variant with the fewest FLOPs within the limit on the select split; of equals the first.
inline std::optional<std::string> cheapest_within(const std::vector<CompoundVariant>& variants,
                                                  double max_loss_percent) {
  const CompoundVariant* best = nullptr;
  for (const CompoundVariant& v : variants) {
    if (v.select_delta_percent > max_loss_percent) continue;
    if (best == nullptr || v.flops_fraction_total < best->flops_fraction_total) best = &v;
  }
  return best == nullptr ? std::nullopt : std::optional(best->name);
}

namespace detail {

template <class B>
class CompoundStudy {
 public:
  CompoundStudy(LayerStudy<B>& study, const CompoundOptions& options,
                const CompoundCheckpoint& checkpoint)
      : study_(study),
        options_(options),
        checkpoint_(checkpoint),
        c_(study.context()),
        counts_(c_.backend, c_.model.layers()),
        has_gates_(c_.options.ladder != Ladder::surrogates) {}

  std::vector<CompoundVariant> run() {
    alone_ = fit_alone(study_, has_gates_, counts_);
    add_all_at_once("mean", StandIn::mean, alone_);
    add_all_at_once("naive-linear", StandIn::linear, alone_);
    if (has_gates_) {
      add_all_at_once("naive-gate", StandIn::gate, alone_);
      add_all_at_once("naive-random", StandIn::random, alone_);
    }
    add_sequential("sequential-linear", StandIn::linear);
    if (has_gates_) add_sequential("sequential-gate", StandIn::gate);
    if (options_.greedy_linear) add_greedy_path("greedy-linear", StandIn::linear);
    if (options_.greedy_gate && has_gates_) add_greedy_path("greedy-gate", StandIn::gate);
    return std::move(variants_);
  }

 private:
  // measure(), or the stored variant.
  template <class Measure>
  const CompoundVariant& add(const std::string& name, Measure&& measure) {
    study_.input().progress(name, 0, 1);
    variants_.push_back(stored_or(checkpoint_, name, std::forward<Measure>(measure)));
    return variants_.back();
  }

  void add_all_at_once(const std::string& name, StandIn which, const StandIns<B>& stand_ins) {
    add(name, [&] { return measure(name, study_.layers(), which, stand_ins); });
  }

  StandIns<B> fit_in_sequence(std::vector<Index> layers, StandIn which) {
    std::sort(layers.begin(), layers.end());
    return SequentialFit<B>(study_, alone_, counts_).run(layers, which);
  }

  void add_sequential(const std::string& name, StandIn which) {
    add(name, [&] {
      return measure(name, study_.layers(), which, fit_in_sequence(study_.layers(), which));
    });
  }

  // Greedy: of the layers not yet replaced, each tried with its stand-in fitted alone, the one that
  // loses least per FLOP saved on the select split. Then all chosen layers are fitted anew, in
  // sequence.
  void add_greedy_path(const std::string& prefix, StandIn which) {
    std::vector<Index> chosen;
    StandIns<B> fitted;  // of the layers chosen so far, unless the last step was stored
    while (chosen.size() < study_.layers().size()) {
      const std::string name = prefix + "-" + std::to_string(chosen.size() + 1);
      const CompoundVariant& variant = add(name, [&] {
        if (fitted.size() < chosen.size()) fitted = fit_in_sequence(chosen, which);
        chosen.push_back(best_candidate(chosen, which, fitted));
        fitted = fit_in_sequence(chosen, which);
        return measure(name, chosen, which, fitted);
      });
      chosen = variant.layers;
      if (variant.flops_fraction_mlp <= options_.flop_budget) break;
    }
  }

  Index best_candidate(const std::vector<Index>& chosen, StandIn which, const StandIns<B>& fitted) {
    const MlpOverrides<B> overrides = overrides_of(chosen, which, fitted);
    LayerPass<B> pass(c_.backend, c_.model, c_.select->set, c_.workspace, overrides,
                      study_.input().progress);
    const double current = sum_of(losses_of(overrides, c_.select->set, "greedy choice", false));
    Index best = -1;
    double least = 0;
    for (const Index layer : study_.layers()) {
      while (pass.layer() < layer) pass.advance();
      if (overrides.at(layer) != nullptr) continue;
      const double price = price_of(pass, layer, which, current);
      if (best < 0 || price < least) {
        best = layer;
        least = price;
      }
    }
    return best;
  }

  // Nats per FLOP saved by one more layer; `current`: the loss without it.
  double price_of(LayerPass<B>& pass, Index layer, StandIn which, double current) {
    const LayerStandIns<B>& stand_ins = *alone_.at(layer);
    std::vector<double> losses(c_.select->baseline.size());
    counts_.reset();
    pass.visit([&](const MlpSite<B>& site) {
      const typename Workspace<B>::Frame frame(c_.workspace);
      const matrix_view_t<B> output = c_.workspace.matrix(site.mlp_input.rows, site.mlp_input.cols);
      counts_.set_batch(&site.tokens);
      stand_ins.policy(which).forward(c_.backend, site.mlp_input, site.rows, output, c_.workspace);
      counts_.set_batch(nullptr);
      pass.losses_with(site, output, losses);
    });
    const double routed =
        static_cast<double>(counts_.routed(layer)) / static_cast<double>(losses.size());
    const AnyMlp<B>& mlp = c_.model.mlp(layer);
    const double saved = mlp.cost(1).flops - stand_ins.flops(which, mlp, routed);
    const double lost = sum_of(losses) - current;
    return saved > 0 ? lost / saved : std::numeric_limits<double>::max();
  }

  MlpOverrides<B> overrides_of(const std::vector<Index>& layers, StandIn which,
                               const StandIns<B>& stand_ins) const {
    MlpOverrides<B> overrides;
    for (const Index layer : layers) overrides.set(layer, &stand_ins.at(layer)->policy(which));
    return overrides;
  }

  std::vector<double> losses_of(const MlpOverrides<B>& overrides, const EvaluationSet& set,
                                const std::string& name, bool counted) {
    counts_.reset();
    std::vector<double> losses = run_losses_with(
        c_.backend, c_.model, overrides, set, c_.workspace, study_.input().progress, name,
        [&](const EvaluationBatch& batch) { counts_.set_batch(counted ? &batch : nullptr); });
    counts_.set_batch(nullptr);
    return losses;
  }

  CompoundVariant measure(const std::string& name, const std::vector<Index>& layers, StandIn which,
                          const StandIns<B>& stand_ins) {
    const MlpOverrides<B> overrides = overrides_of(layers, which, stand_ins);
    CompoundVariant v{.name = name, .layers = layers};
    v.select_nll_sum = sum_of(losses_of(overrides, c_.select->set, name, false));
    const double scored_on_select = static_cast<double>(c_.select->baseline.size());
    v.select_delta_percent =
        percent_of_nats((v.select_nll_sum - sum_of(c_.select->baseline)) / scored_on_select);

    const std::vector<double> losses = losses_of(overrides, c_.report->set, name, true);
    v.nll_sum = sum_of(losses);
    v.perplexity = perplexity_of(v.nll_sum / static_cast<double>(losses.size()));
    const PairedSums sums =
        sum_by_document(c_.report->baseline, losses, c_.report->set.document_offsets);
    v.comparison = compare_paired(sums, c_.options.intervals, c_.executor);
    const NonInferiorityResult test = test_non_inferiority(
        sums, {.percent = options_.max_loss_percent}, c_.options.intervals, c_.executor);
    v.verdict = test.verdict;
    v.documents_needed = test.documents_needed;
    set_costs(v, which, stand_ins);
    return v;
  }

  // counts_ holds what was routed on the report split.
  void set_costs(CompoundVariant& v, StandIn which, const StandIns<B>& stand_ins) const {
    const bool is_gated = which == StandIn::gate || which == StandIn::random;
    const double scored = static_cast<double>(c_.report->baseline.size());
    std::vector<double> flops = mlp_flops_per_token(c_.model);
    for (const Index layer : v.layers) {
      const double share = is_gated ? static_cast<double>(counts_.routed(layer)) / scored : 1.0;
      v.fraction_linear += share / static_cast<double>(c_.model.layers());
      flops[static_cast<std::size_t>(layer)] =
          stand_ins.at(layer)->flops(which, c_.model.mlp(layer), share);
    }
    const FlopsShares shares = flops_shares(c_.model, c_.report->set, flops);
    v.flops_fraction_mlp = shares.mlp;
    v.flops_fraction_total = shares.total;
  }

  LayerStudy<B>& study_;
  const CompoundOptions& options_;
  const CompoundCheckpoint& checkpoint_;
  SweepContext<B> c_;
  RoutedCounts<B> counts_;
  bool has_gates_;
  StandIns<B> alone_;
  std::vector<CompoundVariant> variants_;
};

}  // namespace detail

/// Replaces all chosen layers at once: by their mean outputs; by maps and gates that were fitted
/// alone (`naive-…`), with random routing of as many positions beside them; by maps and gates
/// fitted in sequence (`sequential-…`); and along a greedy path of layers, all refitted after each
/// choice
/// (`greedy-…-N`). Everything is chosen on the select split and reported on the report split.
/// Memory: beside the sweep's, the residual stream of the fit split. Throws what its parts throw.
template <class B>
CompoundResult run_compound(const StudyInput<B>& input, const CompoundOptions& options,
                            const CompoundCheckpoint& checkpoint = {}) {
  LayerStudy<B> study(input, {.gate = input.options.ladder != Ladder::surrogates});
  CompoundResult result{study.header(), options.flop_budget, options.max_loss_percent, {}, {}};
  result.variants = detail::CompoundStudy<B>(study, options, checkpoint).run();
  mark_frontier(result.variants);
  result.chosen = cheapest_within(result.variants, options.max_loss_percent);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
