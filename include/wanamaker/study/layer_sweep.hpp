// One layer of a sweep: surrogates, gates and references, measured on the report split.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/gate/assessment.hpp"
#include "wanamaker/gate/gated_mlp.hpp"
#include "wanamaker/gate/preset_gate.hpp"
#include "wanamaker/study/flops_shares.hpp"
#include "wanamaker/study/gate_ladder.hpp"
#include "wanamaker/study/ridge_choice.hpp"
#include "wanamaker/study/site_routing.hpp"
#include "wanamaker/study/token_losses.hpp"
#include "wanamaker/surrogate/leverage.hpp"
#include "wanamaker/surrogate/low_rank.hpp"
#include "wanamaker/surrogate/mean.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Measures one layer; all passes stand at it before and past it afterwards.
template <class B>
class LayerSweep {
 public:
  LayerSweep(const SweepContext<B>& context, Index layer, const CoMoments& moments)
      : c_(context), layer_(layer), moments_(moments) {}

  LayerResult run() {
    LayerResult result{.layer = layer_};
    fit_ = choose_ridge(c_, moments_, result.lambda_trials).fit;
    result.r2 = fit_->report().in_sample.r2;
    result.condition = fit_->report().condition;
    result.lambda = fit_->report().lambda;
    ridge_ = AnyMlp<B>(fit_->to_mlp(c_.backend));
    fit_gates();
    result.map_error = measure_ridge();
    result.delta = summarise_distribution(delta_);
    prepare_variants();
    c_.report->pass->advance([&](const MlpSite<B>& site) { measure_site(site); });
    finish_variants(result);
    return result;
  }

 private:
  struct Variant {
    Variant(std::string name, std::vector<double> own) : losses(std::move(own)) {
      result.name = std::move(name);
    }

    VariantResult result{};
    std::vector<double> losses;
    AnyMlp<B> policy{};                  // a surrogate on all rows, or
    const NamedGate<B>* gate = nullptr;  // a gate, or
    std::vector<std::uint8_t> routed{};  // a routing of the scored tokens
    std::vector<double> scores{};        // of the scored tokens, where there is a gate
    bool is_routed() const { return gate != nullptr || !routed.empty(); }
  };

  Index width() const { return c_.model.config().width; }
  std::size_t scored() const { return c_.report->baseline.size(); }

  // --- before the report split ---

  void fit_gates() {
    if (c_.options.ladder == Ladder::surrogates) {
      if (c_.select != nullptr) c_.select->pass->advance();
      return;
    }
    const GateData<B> data = collect_gate_data(c_.backend, *c_.gate->pass, ridge_,
                                               c_.gate->baseline, width(), c_.workspace);
    gates_ = fit_gate_ladder(c_.backend, data, c_.model.config().vocabulary, c_.options.ladder,
                             c_.options.seed + static_cast<std::uint64_t>(layer_));
    choose_thresholds(c_.backend, *c_.select->pass, gates_, threshold_rule(c_, layer_, ridge_),
                      c_.workspace);
  }

  // --- the report split ---

  // The ridge variant and the gates' scores come first: they decide the references' routings.
  MapError measure_ridge() {
    ridge_losses_.resize(scored());
    LeverageCollector<B, AnyMlp<B>> leverage(c_.backend);
    leverage.watch(layer_, ridge_, moments_.mean_y());
    c_.report->pass->visit([&](const MlpSite<B>& site) {
      measure_policy(c_, ridge_, site, *c_.report->pass, ridge_losses_);
      leverage.begin_batch(site.packed);
      leverage.on_mlp_input(layer_, site.mlp_input);
      leverage.on_mlp_output(layer_, site.mlp_output);
      append_scores(c_.backend, site, gates_, gate_scores_, c_.workspace);
    });
    check_finite_losses(ridge_losses_, "layer " + std::to_string(layer_) + ", ridge");
    delta_ = detail::differences(ridge_losses_, c_.report->baseline);
    const LeverageReport report = leverage.report(layer_);
    return {report.r2, report.top_share, report.first_share, report.r2_without_top,
            report.r2_without_first};
  }

  void add_policy(const std::string& name, AnyMlp<B> policy) {
    Variant variant(name, std::vector<double>(scored()));
    variant.result.parameters = policy.cost(1).parameters;
    set_flops(variant.result, policy.cost(1).flops);
    variant.policy = std::move(policy);
    variants_.push_back(std::move(variant));
  }

  void add_surrogates() {
    add_policy("zero", ZeroMlp<B>{});
    add_policy("mean", MeanSurrogate::fit(moments_).to_mlp(c_.backend));
    Variant ridge("ridge", ridge_losses_);
    ridge.result.parameters = ridge_.cost(1).parameters;
    set_flops(ridge.result, ridge_.cost(1).flops);
    variants_.push_back(std::move(ridge));
  }

  void add_low_ranks() {
    std::vector<Index> ranks = c_.options.ranks;
    if (ranks.empty()) ranks = {std::max<Index>(1, width() / 16), std::max<Index>(1, width() / 4)};
    if (c_.options.ladder == Ladder::quick) ranks.resize(1);
    const ReducedRankRegression regression(moments_, *fit_, {}, c_.executor);
    for (const Index rank : ranks) {
      if (rank >= width()) continue;
      add_policy("rank-" + std::to_string(rank), regression.of_rank(rank).to_mlp(c_.backend));
    }
  }

  void add_gate(const NamedGate<B>& gate, std::vector<double> scores) {
    Variant variant(gate.name, std::vector<double>(scored()));
    variant.gate = &gate;
    variant.result.threshold = gate.threshold;
    variant.result.note = gate.note;
    variant.result.parameters = gate.gate.cost(1).parameters + ridge_.cost(1).parameters;
    variant.scores = std::move(scores);
    set_routing(variant, threshold_at(variant.scores, gate.threshold).fraction,
                gate.gate.cost(1).flops);
    variants_.push_back(std::move(variant));
  }

  void add_oracle(const std::string& name, OracleRouting routing) {
    Variant variant(name, std::vector<double>(scored()));
    variant.routed = std::move(routing.routed);
    variant.result.parameters = ridge_.cost(1).parameters;
    set_routing(variant, routing.fraction, 0);
    variants_.push_back(std::move(variant));
  }

  void prepare_variants() {
    add_surrogates();
    if (c_.options.ladder == Ladder::surrogates) return;
    add_low_ranks();
    // The oracle routes as many positions as gate-logistic does.
    double fraction = 0.5;
    for (std::size_t g = 0; g < gates_.size(); ++g) {
      add_gate(gates_[g], std::move(gate_scores_[g]));
      if (gates_[g].name == "gate-logistic") fraction = *variants_.back().result.fraction_linear;
    }
    add_oracle("oracle", oracle_at_fraction(delta_, fraction));
    add_oracle("oracle-best", oracle_at_best(delta_));
  }

  void measure_site(const MlpSite<B>& site) {
    const typename Workspace<B>::Frame frame(c_.workspace);
    const matrix_view_t<B> linear = c_.workspace.matrix(site.mlp_input.rows, width());
    ridge_.forward(c_.backend, site.mlp_input, site.rows, linear, c_.workspace);
    for (Variant& variant : variants_) {
      if (variant.is_routed()) {
        run_routed(variant, site, linear);
      } else if (variant.result.name != "ridge") {
        measure_policy(c_, variant.policy, site, *c_.report->pass, variant.losses);
      }
    }
  }

  void run_routed(Variant& variant, const MlpSite<B>& site, const_matrix_view_t<B> linear) {
    const typename Workspace<B>::Frame frame(c_.workspace);
    VectorView<double> scores{};
    double threshold = 0.5;
    if (variant.gate != nullptr) {
      scores = c_.workspace.template vector<double>(site.mlp_input.rows);
      variant.gate->gate.score(c_.backend, site.mlp_input, site.rows, scores, c_.workspace);
      threshold = variant.gate->threshold;
    } else {
      scores = routing_scores(c_.backend, site, variant.routed, c_.workspace);
    }
    measure_selected(c_, site, *c_.report, scores, threshold, linear, ridge_losses_,
                     variant.losses);
  }

  // --- results ---

  void set_routing(Variant& variant, double fraction, double gate_flops) {
    variant.result.fraction_linear = fraction;
    const GatedCost cost{{.flops = gate_flops}, ridge_.cost(1), c_.model.mlp(layer_).cost(1)};
    set_flops(variant.result, cost.flops(fraction));
  }

  // flops: of one token in this layer's MLP place.
  void set_flops(VariantResult& result, double flops) const {
    const FlopsShares shares = flops_shares_of_layer(c_.model, c_.report->set, layer_, flops);
    result.flops_fraction_mlp = shares.mlp;
    result.flops_fraction_total = shares.total;
  }

  static void assess(Variant& variant, const std::vector<std::uint8_t>& labels) {
    const GateAssessment assessment =
        assess_gate(variant.scores, labels, {},
                    {.scores_are_probabilities = variant.gate->gate.scores_are_probabilities()});
    if (assessment.auc) variant.result.auc = assessment.auc->auc;
    if (!assessment.calibration) return;
    variant.result.calibration_error = assessment.calibration->expected_calibration_error;
    variant.result.brier_score = assessment.calibration->brier_score;
  }

  void finish_variants(LayerResult& result) {
    std::vector<PairedSums> sums;
    const std::vector<std::uint8_t> labels = labels_at_most(delta_, 0).labels;
    for (Variant& variant : variants_) {
      check_finite_losses(variant.losses,
                          "layer " + std::to_string(layer_) + ", " + variant.result.name);
      variant.result.nll_sum = sum_of(variant.losses);
      variant.result.perplexity =
          perplexity_of(variant.result.nll_sum / static_cast<double>(scored()));
      if (variant.gate != nullptr) assess(variant, labels);
      sums.push_back(
          sum_by_document(c_.report->baseline, variant.losses, c_.report->set.document_offsets));
    }
    const auto comparisons = compare_paired(sums, c_.options.intervals, c_.executor);
    for (std::size_t v = 0; v < variants_.size(); ++v) {
      variants_[v].result.comparison = comparisons[v];
      result.variants.push_back(std::move(variants_[v].result));
    }
  }

  const SweepContext<B>& c_;
  Index layer_;
  const CoMoments& moments_;
  std::optional<RidgeSurrogate> fit_;
  AnyMlp<B> ridge_{};
  std::vector<double> ridge_losses_;
  std::vector<double> delta_;
  std::vector<NamedGate<B>> gates_;
  std::vector<std::vector<double>> gate_scores_;  // of the report split's scored tokens
  std::vector<Variant> variants_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
