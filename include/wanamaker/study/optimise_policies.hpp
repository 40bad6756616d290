// The search over what stands in the MLPs' places: at each step the policy that saves most for what
// it loses, every later layer fitted anew on what it then sees.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/compound_fit.hpp"
#include "wanamaker/study/optimise_measure.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What one layer may become, fitted on what it sees. Policies refer to each other and to the
/// model: it stays where it was made.
template <class B>
class FittedLayer {
 public:
  explicit FittedLayer(AnyMlp<B> affine) : affine_(std::move(affine)) {}
  FittedLayer(const FittedLayer&) = delete;
  FittedLayer& operator=(const FittedLayer&) = delete;

  void add_low_rank(Index rank, AnyMlp<B> policy) {
    others_.emplace_back(LayerPolicy{PolicyKind::low_rank, rank, 0}, std::move(policy));
  }

  /// `score` > 0 goes to the affine map, which must be there; counts say how many do.
  void add_gate(B& backend, double share, LinearScore score, const AnyMlp<B>& mlp,
                RoutedCounts<B>& counts) {
    auto policy = SearchedGate<B>::hard({backend, std::move(score)}, MlpReference(affine_),
                                        MlpReference(mlp), 0.0);
    policy.set_listener(
        [&counts](Index layer, ConstVectorView<TokenId> choices) { counts.add(layer, choices); });
    others_.emplace_back(LayerPolicy{PolicyKind::gate, 0, share}, AnyMlp<B>(std::move(policy)));
  }

  const AnyMlp<B>& affine() const { return affine_; }
  /// Null where the layer has no such policy.
  const AnyMlp<B>* find(const LayerPolicy& wanted) const {
    if (wanted.kind == PolicyKind::affine) return &affine_;
    for (const auto& [policy, mlp] : others_) {
      if (policy == wanted) return &mlp;
    }
    return nullptr;
  }

 private:
  AnyMlp<B> affine_;
  std::deque<std::pair<LayerPolicy, AnyMlp<B>>> others_;
};

namespace detail {

/// Scores of a linear gate fitted to δ ≤ 0, with the threshold that routes `share` of `scores`
/// folded in; nothing where ties leave only all or none.
inline std::optional<LinearScore> routing_share(const LinearScore& gate,
                                                const std::vector<double>& scores, double share) {
  const GateThreshold at = threshold_for_fraction(scores, share);
  if (at.fraction <= 0 || at.fraction >= 1) return std::nullopt;
  return LinearScore{gate.weights, gate.bias - at.threshold};
}

/// Fits layers where passes over fit, gate and select splits stand. Without shares, gates are left
/// out and the last two passes are not used.
template <class B>
class PolicyFit {
 public:
  PolicyFit(OptimiseMeasure<B>& measure, std::vector<LayerPolicy> wanted)
      : measure_(measure), c_(measure.context()), wanted_(std::move(wanted)) {}

  const std::vector<LayerPolicy>& wanted() const { return wanted_; }
  bool has_gates() const {
    return std::any_of(wanted_.begin(), wanted_.end(),
                       [](const LayerPolicy& p) { return p.kind == PolicyKind::gate; });
  }

  std::shared_ptr<FittedLayer<B>> run(double rho, LayerPass<B>& fit, LayerPass<B>* gate,
                                      LayerPass<B>* select) {
    const CoMoments moments = moments_here(c_, fit);
    const auto ridge = RidgeSurrogate::fit(moments, {.lambda = rho}, c_.executor);
    auto fitted = std::make_shared<FittedLayer<B>>(AnyMlp<B>(ridge.to_mlp(c_.backend)));
    add_low_ranks(*fitted, moments, ridge);
    if (has_gates()) add_gates(*fitted, *gate, *select);
    return fitted;
  }

 private:
  void add_low_ranks(FittedLayer<B>& fitted, const CoMoments& moments,
                     const RidgeSurrogate& ridge) const {
    std::optional<ReducedRankRegression> regression;
    for (const LayerPolicy& policy : wanted_) {
      if (policy.kind != PolicyKind::low_rank) continue;
      if (!regression) regression.emplace(moments, ridge, ConstMatrixView<double>{}, c_.executor);
      fitted.add_low_rank(policy.rank,
                          AnyMlp<B>(regression->of_rank(policy.rank).to_mlp(c_.backend)));
    }
  }

  void add_gates(FittedLayer<B>& fitted, LayerPass<B>& gate, LayerPass<B>& select) {
    const Index layer = gate.layer();
    const GateData<B> data = collect_gate_data_here(c_.backend, gate, fitted.affine(),
                                                    c_.model.config().width, c_.workspace);
    const LinearScore score =
        fit_logistic_gate(c_.backend, data.inputs.view(), labels_at_most(data.delta, 0).labels)
            .gate.linear_score();
    std::vector<NamedGate<B>> gates;
    gates.push_back({"gate", AnyGate<B>(DeltaRegressionGate<B>(c_.backend, score))});
    std::vector<std::vector<double>> scores;
    select.visit([&](const MlpSite<B>& site) {
      append_scores(c_.backend, site, gates, scores, c_.workspace);
    });
    for (const LayerPolicy& policy : wanted_) {
      if (policy.kind != PolicyKind::gate) continue;
      const auto routing = routing_share(score, scores.front(), policy.share);
      if (!routing) continue;
      fitted.add_gate(c_.backend, policy.share, *routing, c_.model.mlp(layer), measure_.counts());
    }
  }

  OptimiseMeasure<B>& measure_;
  SweepContext<B> c_;
  std::vector<LayerPolicy> wanted_;
};

template <class B>
class PolicySearch {
 public:
  /// `alone`: gives each layer's ρ.
  PolicySearch(OptimiseMeasure<B>& measure, const StandIns<B>& alone,
               std::vector<LayerPolicy> wanted)
      : measure_(measure), c_(measure.context()), alone_(alone), fit_(measure, std::move(wanted)) {
    fit_from(0);
    nats_ = measure.select_baseline();
  }

  /// The next model of the path; nothing where no policy costs less than what stands there.
  std::optional<FoundModel<B>> next() {
    const std::vector<OptimiseMove> moves = possible_moves();
    const OptimiseMove* move = best_move(moves, nats_, measure_.select_budget());
    if (move == nullptr) return std::nullopt;
    for (const LayerPolicy& policy : fit_.wanted()) {
      if (name_of(policy) == move->now) chosen_.insert_or_assign(move->layer, policy);
    }
    fit_from(move->layer + 1);
    FoundModel<B> found = model_now();
    found.point.move = "layer " + std::to_string(move->layer) + ": " + move->now;
    measure_.measure(found);
    nats_ = found.point.select_nll_sum;
    return found;
  }

 private:
  const std::vector<Index>& layers() const { return measure_.study().layers(); }

  FoundModel<B> model_now() const {
    FoundModel<B> now;
    for (const auto& [layer, policy] : chosen_) {
      now.policies.push_back(fitted_.at(layer));
      now.edits.mlps().set(layer, fitted_.at(layer)->find(policy));
      now.point.changes.push_back({layer, name_of(policy), {}});
    }
    return now;
  }

  std::string name_at(Index layer) const {
    const auto found = chosen_.find(layer);
    return found == chosen_.end() ? "mlp" : name_of(found->second);
  }

  /// Fits layers `first` and later, one after the other, in the model whose earlier layers are as
  /// chosen.
  void fit_from(Index first) {
    if (first > layers().back()) return;
    const StudyInput<B>& in = measure_.study().input();
    const EvaluationSet fit_set = make_evaluation_set(in.corpus, in.splits.fit.documents, in.rule);
    LayerPass<B> fit = pass_over(fit_set);
    std::optional<LayerPass<B>> gate, select;
    if (fit_.has_gates()) {
      gate.emplace(pass_over(c_.gate->set));
      select.emplace(pass_over(c_.select->set));
    }
    std::vector<LayerPass<B>*> passes{&fit};
    if (gate) passes.insert(passes.end(), {&*gate, &*select});
    for (const Index layer : layers()) {
      if (layer < first) continue;
      measure_.progress()("fits", layer, c_.model.layers());
      for (LayerPass<B>* pass : passes) {
        while (pass->layer() < layer) pass->advance();
      }
      fitted_[layer] = fit_.run(alone_.at(layer)->rho(), fit, gate ? &*gate : nullptr,
                                select ? &*select : nullptr);
      put_into(passes, layer);
    }
  }

  LayerPass<B> pass_over(const EvaluationSet& set) const {
    return LayerPass<B>(c_.backend, c_.model, set, c_.workspace, model_now().edits.mlps(),
                        measure_.progress());
  }

  /// What was chosen for the layer, fitted just now, into the passes. A gate that ties leave no
  /// share to is the affine map from then on.
  void put_into(const std::vector<LayerPass<B>*>& passes, Index layer) {
    const auto chosen = chosen_.find(layer);
    if (chosen == chosen_.end()) return;
    if (fitted_.at(layer)->find(chosen->second) == nullptr) chosen->second = LayerPolicy{};
    for (LayerPass<B>* pass : passes) {
      pass->override_mlp(layer, fitted_.at(layer)->find(chosen->second));
    }
  }

  /// Every policy that costs less than what stands in its place, with the loss that it leads to.
  std::vector<OptimiseMove> possible_moves() {
    std::vector<OptimiseMove> moves;
    LayerPass<B> pass = pass_over(c_.select->set);
    for (const Index layer : layers()) {
      measure_.progress()("moves", layer, c_.model.layers());
      while (pass.layer() < layer) pass.advance();
      add_moves(layer, pass, moves);
    }
    return moves;
  }

  void add_moves(Index layer, LayerPass<B>& pass, std::vector<OptimiseMove>& moves) {
    std::vector<const AnyMlp<B>*> policies;
    const std::size_t first = moves.size();
    const double now = measure_.costs().at(name_at(layer));
    for (const LayerPolicy& wanted : fit_.wanted()) {
      const AnyMlp<B>* policy = fitted_.at(layer)->find(wanted);
      const double saved = now - measure_.costs().at(name_of(wanted));
      if (policy == nullptr || !(saved > 0)) continue;
      policies.push_back(policy);
      moves.push_back({layer, name_of(wanted), saved, 0});
    }
    if (policies.empty()) return;
    std::vector<std::vector<double>> losses(policies.size(),
                                            std::vector<double>(c_.select->baseline.size()));
    pass.visit([&](const MlpSite<B>& site) {
      for (std::size_t i = 0; i < policies.size(); ++i) {
        measure_policy(c_, *policies[i], site, pass, losses[i]);
      }
    });
    for (std::size_t i = 0; i < policies.size(); ++i) {
      moves[first + i].select_nats = sum_of(losses[i]);
    }
  }

  OptimiseMeasure<B>& measure_;
  SweepContext<B> c_;
  const StandIns<B>& alone_;
  PolicyFit<B> fit_;
  std::map<Index, std::shared_ptr<FittedLayer<B>>> fitted_;
  std::map<Index, LayerPolicy> chosen_;
  double nats_ = 0;
};

}  // namespace detail

}  // namespace wanamaker::inline WANAMAKER_ABI
