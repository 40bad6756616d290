// The stand-ins of single layers for a model that has several of them, fitted alone or one after
// the other, each on what the model with the earlier ones gives it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/gate/gated_mlp.hpp"
#include "wanamaker/gate/references.hpp"
#include "wanamaker/study/gate_ladder.hpp"
#include "wanamaker/study/layer_study.hpp"
#include "wanamaker/study/ridge_choice.hpp"
#include "wanamaker/study/routed_counts.hpp"
#include "wanamaker/surrogate/low_rank.hpp"
#include "wanamaker/surrogate/mean.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Which stand-in of a layer is meant.
enum class StandIn {
  mean,    ///< the mean output
  linear,  ///< the linear map
  gate,    ///< the linear map where the gate says so, the MLP elsewhere
  random   ///< the linear map at as many positions, chosen at random
};

/// What the linear map and the gate of a layer are.
struct StandInRecipe {
  Index rank = 0;  ///< of the linear map; 0: the ridge map as it is
  std::string gate = "gate-logistic";
};

/// One layer's stand-ins. They refer to each other and to the model: it stays where it was made.
template <class B>
class LayerStandIns {
 public:
  LayerStandIns(double rho, AnyMlp<B> mean, AnyMlp<B> linear)
      : rho_(rho), mean_(std::move(mean)), linear_(std::move(linear)) {}
  LayerStandIns(const LayerStandIns&) = delete;
  LayerStandIns& operator=(const LayerStandIns&) = delete;

  /// `gates`: first the gate, then random routing beside it, with thresholds.
  void set_gates(std::vector<NamedGate<B>> gates, const AnyMlp<B>& mlp, RoutedCounts<B>& counts) {
    gates_ = std::move(gates);
    gate_ = gated(gates_[0], mlp, counts);
    random_ = gated(gates_[1], mlp, counts);
  }

  const AnyMlp<B>& policy(StandIn which) const {
    switch (which) {
      case StandIn::mean:
        return mean_;
      case StandIn::linear:
        return linear_;
      case StandIn::gate:
        return gate_;
      case StandIn::random:
        break;
    }
    return random_;
  }

  /// FLOPs of one token where `fraction` of the tokens go to the linear map.
  double flops(StandIn which, const AnyMlp<B>& mlp, double fraction) const {
    if (which == StandIn::mean) return mean_.cost(1).flops;
    if (which == StandIn::linear) return linear_.cost(1).flops;
    const MlpCost gate = gates_[which == StandIn::gate ? 0 : 1].gate.cost(1);
    return GatedCost{gate, linear_.cost(1), mlp.cost(1)}.flops(fraction);
  }

  double rho() const { return rho_; }
  const AnyMlp<B>& linear() const { return linear_; }
  /// The gate with its threshold, after set_gates.
  const NamedGate<B>& gate() const { return gates_.front(); }

 private:
  AnyMlp<B> gated(const NamedGate<B>& gate, const AnyMlp<B>& mlp, RoutedCounts<B>& counts) const {
    auto policy =
        GatedMlp<GateReference<AnyGate<B>>, MlpReference<AnyMlp<B>>, MlpReference<AnyMlp<B>>>::hard(
            GateReference(gate.gate), MlpReference(linear_), MlpReference(mlp), gate.threshold);
    policy.set_listener(
        [&counts](Index layer, ConstVectorView<TokenId> choices) { counts.add(layer, choices); });
    return AnyMlp<B>(std::move(policy));
  }

  double rho_;
  AnyMlp<B> mean_;
  AnyMlp<B> linear_;
  std::vector<NamedGate<B>> gates_;
  AnyMlp<B> gate_{};
  AnyMlp<B> random_{};
};

/// Stand-ins by layer.
template <class B>
using StandIns = std::map<Index, std::unique_ptr<LayerStandIns<B>>>;

namespace detail {

/// The gate, a random one, and gate-logistic where it is another: what gates without a threshold of
/// their own are matched to. Thresholds: still to be chosen.
template <class B>
std::vector<NamedGate<B>> fit_compound_gates(const SweepContext<B>& c, const GateData<B>& data,
                                             Index layer, const std::string& gate) {
  const std::uint64_t seed = c.options.seed + static_cast<std::uint64_t>(layer);
  const Index vocabulary = c.model.config().vocabulary;
  std::vector<NamedGate<B>> gates;
  gates.push_back(fit_ladder_gate(c.backend, data, vocabulary, gate, seed));
  gates.push_back(fit_ladder_gate(c.backend, data, vocabulary, "random", seed));
  if (gate != "gate-logistic") {
    gates.push_back(fit_ladder_gate(c.backend, data, vocabulary, "gate-logistic", seed));
  }
  return gates;
}

/// Throws ShapeError for a rank that the map cannot have.
template <class B>
AnyMlp<B> linear_map(const SweepContext<B>& c, const RidgeSurrogate& ridge,
                     const CoMoments& moments, Index rank) {
  if (rank == 0) return AnyMlp<B>(ridge.to_mlp(c.backend));
  const ReducedRankRegression regression(moments, ridge, {}, c.executor);
  return AnyMlp<B>(regression.of_rank(rank).to_mlp(c.backend));
}

/// Co-moments of the MLP of the layer at which the pass stands, of what it sees there. The pass
/// stays.
template <class B>
CoMoments moments_here(const SweepContext<B>& c, LayerPass<B>& pass) {
  const Index layer = pass.layer();
  CoMomentCollector<B> collector(c.backend, c.model.layers(), c.model.config().width,
                                 {.precision = c.options.precision, .layers = {layer}});
  pass.visit([&](const MlpSite<B>& site) {
    collector.on_mlp_input(layer, site.mlp_input);
    collector.on_mlp_output(layer, site.mlp_output);
  });
  collector.finish();
  return collector.moments(layer);
}

template <class B>
std::unique_ptr<LayerStandIns<B>> make_stand_ins(const SweepContext<B>& c, const ChosenRidge& ridge,
                                                 const CoMoments& moments, Index rank) {
  return std::make_unique<LayerStandIns<B>>(
      ridge.rho, AnyMlp<B>(MeanSurrogate::fit(moments).to_mlp(c.backend)),
      linear_map(c, ridge.fit, moments, rank));
}

}  // namespace detail

/// Every chosen layer's stand-ins, each fitted in the model as it is. Gates are left out where
/// `has_gates` is false. Moves the study's passes.
template <class B>
StandIns<B> fit_alone(LayerStudy<B>& study, bool has_gates, RoutedCounts<B>& counts,
                      const StandInRecipe& recipe = {}) {
  const SweepContext<B> c = study.context();
  StandIns<B> result;
  Index done = 0;
  for (const Index layer : study.layers()) {
    study.input().progress("stand-ins", done++, static_cast<Index>(study.layers().size()));
    study.walk_to(layer);
    std::vector<LambdaTrial> trials;
    const ChosenRidge ridge = choose_ridge(c, study.moments(layer), trials);
    auto stand_ins = detail::make_stand_ins(c, ridge, study.moments(layer), recipe.rank);
    if (has_gates) {
      const GateData<B> data =
          collect_gate_data(c.backend, *c.gate->pass, stand_ins->linear(), c.gate->baseline,
                            c.model.config().width, c.workspace);
      std::vector<NamedGate<B>> gates = detail::fit_compound_gates(c, data, layer, recipe.gate);
      choose_thresholds(c.backend, *c.select->pass, gates,
                        threshold_rule(c, layer, stand_ins->linear()), c.workspace);
      stand_ins->set_gates(std::move(gates), c.model.mlp(layer), counts);
    }
    result.emplace(layer, std::move(stand_ins));
  }
  return result;
}

/// Fits the stand-ins of `layers` (ascending) one after the other, each on the streams of the model
/// in which the earlier ones already stand; later layers are the model's own. The passes over fit,
/// gate and select splits hold one residual stream each.
template <class B>
class SequentialFit {
 public:
  /// `alone`: gives each layer's ρ.
  SequentialFit(const LayerStudy<B>& study, const StandIns<B>& alone, RoutedCounts<B>& counts,
                StandInRecipe recipe = {})
      : study_(study),
        c_(study.context()),
        alone_(alone),
        counts_(counts),
        recipe_(std::move(recipe)) {}

  StandIns<B> run(const std::vector<Index>& layers, StandIn which) {
    const bool has_gates = which == StandIn::gate;
    const StudyInput<B>& in = study_.input();
    const EvaluationSet fit_set = make_evaluation_set(in.corpus, in.splits.fit.documents, in.rule);
    LayerPass<B> fit(c_.backend, c_.model, fit_set, c_.workspace, {}, in.progress);
    std::unique_ptr<LayerPass<B>> gate;
    std::unique_ptr<LayerPass<B>> select;
    if (has_gates) {
      gate = pass_over(study_.gate()->set);
      select = pass_over(study_.select()->set);
    }
    StandIns<B> result;
    for (const Index layer : layers) {
      in.progress("sequential fit", layer, c_.model.layers());
      for (LayerPass<B>* pass : {&fit, gate.get(), select.get()}) {
        while (pass != nullptr && pass->layer() < layer) pass->advance();
      }
      auto stand_ins = fit_layer(fit, layer);
      if (has_gates) fit_gates(*gate, *select, *stand_ins, layer);
      const AnyMlp<B>& policy = stand_ins->policy(which);
      for (LayerPass<B>* pass : {&fit, gate.get(), select.get()}) {
        if (pass != nullptr) pass->advance_with(policy, [](const MlpSite<B>&) {});
      }
      result.emplace(layer, std::move(stand_ins));
    }
    return result;
  }

 private:
  std::unique_ptr<LayerPass<B>> pass_over(const EvaluationSet& set) {
    return std::make_unique<LayerPass<B>>(c_.backend, c_.model, set, c_.workspace,
                                          MlpOverrides<B>{}, study_.input().progress);
  }

  std::unique_ptr<LayerStandIns<B>> fit_layer(LayerPass<B>& pass, Index layer) {
    const double rho = alone_.at(layer)->rho();
    const CoMoments moments = detail::moments_here(c_, pass);
    const ChosenRidge ridge{RidgeSurrogate::fit(moments, {.lambda = rho}, c_.executor), rho};
    return detail::make_stand_ins(c_, ridge, moments, recipe_.rank);
  }

  void fit_gates(LayerPass<B>& gate, LayerPass<B>& select, LayerStandIns<B>& stand_ins,
                 Index layer) {
    const GateData<B> data = collect_gate_data_here(c_.backend, gate, stand_ins.linear(),
                                                    c_.model.config().width, c_.workspace);
    std::vector<NamedGate<B>> gates = detail::fit_compound_gates(c_, data, layer, recipe_.gate);
    std::vector<std::vector<double>> scores;
    select.visit([&](const MlpSite<B>& site) {
      append_scores(c_.backend, site, gates, scores, c_.workspace);
    });
    set_thresholds(gates, scores, threshold_rule(c_, layer, stand_ins.linear()));
    stand_ins.set_gates(std::move(gates), c_.model.mlp(layer), counts_);
  }

  const LayerStudy<B>& study_;
  SweepContext<B> c_;
  const StandIns<B>& alone_;
  RoutedCounts<B>& counts_;
  StandInRecipe recipe_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
