// The model that an arm of a fine-tuning experiment changes: a copy whose layers take one form
// after another without losing what they had before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/math.hpp"
#include "wanamaker/gate/backward.hpp"
#include "wanamaker/gate/random_gate.hpp"
#include "wanamaker/study/recipe.hpp"
#include "wanamaker/study/routed_counts.hpp"
#include "wanamaker/train/model_copy.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Shares of a layer's rows that each part is run on in training.
struct PathShares {
  double mlp = 1;
  double map = 0;
  double gate = 0;
};

/// Owns a copy of a model. Each layer has its MLP, from its first affine or gated form on a map,
/// and from its first gated form on a gate; what is not in place is kept aside as it is.
template <Backend B>
class ArmModel {
 public:
  using LearnedGate = GatedMlp<TrainableLogisticGate<B>, AffineMlp<B>, AnyMlp<B>>;
  using RandomRouting = GatedMlp<RandomGate, AffineMlp<B>, AnyMlp<B>>;

  /// `seed`: of random routing. Throws as copy_model.
  ArmModel(B& backend, const AnyTransformer<B>& origin, std::uint64_t seed)
      : backend_(backend),
        model_(copy_model(backend, origin)),
        counts_(backend, origin.layers()),
        seed_(seed),
        places_(static_cast<std::size_t>(origin.layers())) {}
  ArmModel(const ArmModel&) = delete;
  ArmModel& operator=(const ArmModel&) = delete;

  AnyTransformer<B>& model() { return model_; }
  const AnyTransformer<B>& model() const { return model_; }
  LayerForm form(Index layer) const { return place(layer).form; }
  /// Counts the rows that hard gates and random routing send to maps, outside of training.
  RoutedCounts<B>& counts() { return counts_; }

  bool has_map(Index layer) const {
    return place(layer).map.has_value() || form(layer) != LayerForm::mlp;
  }
  /// The map of a layer that has none yet.
  void set_map(Index layer, AffineMlp<B> map) { place(layer).map = std::move(map); }
  /// The share of rows that random routing sends to the map, from the next set_form on.
  void set_rate(Index layer, double rate) { place(layer).rate = rate; }
  double rate(Index layer) const { return place(layer).rate; }

  /// Throws ProtocolError where the form needs a map and the layer has none.
  void set_form(Index layer, LayerForm form) {
    if (form != LayerForm::mlp && !has_map(layer)) refuse_form(layer, form);
    take_apart(layer);
    place(layer).form = form;
    model_.mlp(layer) = assembled(layer, form);
  }

  /// λ of every gated layer's penalty.
  void set_sparsity(double weight) {
    for (Index l = 0; l < model_.layers(); ++l) {
      if (LearnedGate* gated = learned(l)) gated->set_sparsity_weight(weight);
    }
  }

  /// FLOPs of one token in the layer's place, where `fraction` of the tokens have the map alone.
  double flops(Index layer, double fraction) const {
    if (const LearnedGate* gated = learned(layer); gated != nullptr && gated->is_hard()) {
      return gated->cost_per_token().flops(fraction);
    }
    if (const RandomRouting* random = drawn(layer)) return random->cost_per_token().flops(fraction);
    return model_.mlp(layer).cost(1).flops;
  }

  /// Both paths of a gate are run where it is trained; of random routing each on its own rows.
  PathShares training_shares(Index layer) const {
    const Place& own = place(layer);
    if (own.form == LayerForm::mlp) return {1, 0, 0};
    if (own.form == LayerForm::affine) return {0, 1, 0};
    if (own.form == LayerForm::random_routing) return {1 - own.rate, own.rate, 0};
    return {1, 1, 1};
  }
  /// Costs of one token of MLP, map and gate; those that are out of place cost nothing.
  GatedCost cost_per_token(Index layer) const {
    if (const LearnedGate* gated = learned(layer)) return gated->cost_per_token();
    if (const RandomRouting* random = drawn(layer)) return random->cost_per_token();
    const MlpCost own = model_.mlp(layer).cost(1);
    return form(layer) == LayerForm::mlp ? GatedCost{.mlp = own} : GatedCost{.surrogate = own};
  }

  /// g of a constant gate: logistic(b).
  double constant(Index layer) const {
    return logistic(learned(layer)->gate().linear_score(backend_).bias);
  }

 private:
  struct Place {
    LayerForm form = LayerForm::mlp;
    AnyMlp<B> mlp{};
    std::optional<AffineMlp<B>> map{};
    std::optional<TrainableLogisticGate<B>> gate{};
    double rate = 0;
  };

  Place& place(Index layer) { return places_[static_cast<std::size_t>(layer)]; }
  const Place& place(Index layer) const { return places_[static_cast<std::size_t>(layer)]; }

  LearnedGate* learned(Index layer) { return model_.mlp(layer).template get<LearnedGate>(); }
  const LearnedGate* learned(Index layer) const {
    return model_.mlp(layer).template get<LearnedGate>();
  }
  const RandomRouting* drawn(Index layer) const {
    return model_.mlp(layer).template get<RandomRouting>();
  }

  void take_apart(Index layer) {
    Place& own = place(layer);
    AnyMlp<B>& standing = model_.mlp(layer);
    if (own.form == LayerForm::mlp) {
      own.mlp = std::move(standing);
    } else if (own.form == LayerForm::affine) {
      own.map = std::move(*standing.template get<AffineMlp<B>>());
    } else if (own.form == LayerForm::random_routing) {
      take_paths(*standing.template get<RandomRouting>(), own);
    } else {
      LearnedGate& gated = *standing.template get<LearnedGate>();
      own.gate = std::move(gated.gate());
      take_paths(gated, own);
    }
  }
  template <class Gated>
  static void take_paths(Gated& gated, Place& own) {
    own.map = std::move(gated.surrogate());
    own.mlp = std::move(gated.mlp());
  }

  AnyMlp<B> assembled(Index layer, LayerForm form) {
    Place& own = place(layer);
    if (form == LayerForm::mlp) return std::move(own.mlp);
    AffineMlp<B> map = std::move(*own.map);
    own.map.reset();
    if (form == LayerForm::affine) return AnyMlp<B>(std::move(map));
    if (form == LayerForm::random_routing) {
      auto random = RandomRouting::hard(RandomGate(own.rate, seed_), std::move(map),
                                        std::move(own.mlp), 1 - own.rate);
      return counted(std::move(random));
    }
    TrainableLogisticGate<B> gate = taken_gate(own);
    if (form != LayerForm::hard_gate) {
      return trainable_mlp<B>(
          LearnedGate::soft(std::move(gate), std::move(map), std::move(own.mlp)));
    }
    return counted(LearnedGate::hard(std::move(gate), std::move(map), std::move(own.mlp), 0.5));
  }

  /// The layer's gate; at first g = ½ for every token.
  TrainableLogisticGate<B> taken_gate(Place& own) {
    if (!own.gate) {
      const auto width = static_cast<std::size_t>(model_.config().width);
      return TrainableLogisticGate<B>(backend_, {std::vector<double>(width), 0.0});
    }
    TrainableLogisticGate<B> gate = std::move(*own.gate);
    own.gate.reset();
    return gate;
  }

  template <class Gated>
  AnyMlp<B> counted(Gated gated) {
    gated.set_listener(
        [this](Index layer, ConstVectorView<TokenId> choices) { counts_.add(layer, choices); });
    return trainable_mlp<B>(std::move(gated));
  }

  [[noreturn]] static void refuse_form(Index layer, LayerForm form) {
    throw ProtocolError({.id = "finetune/no-map",
                         .where = "layer " + std::to_string(layer),
                         .what = "the form needs a map, and none was fitted",
                         .expected = "set_map before",
                         .found = std::string(name_of(form)),
                         .mend = "fit a map for the layer first"});
  }

  B& backend_;
  AnyTransformer<B> model_;
  RoutedCounts<B> counts_;
  std::uint64_t seed_;
  std::vector<Place> places_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
