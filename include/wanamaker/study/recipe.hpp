// Recipes of fine-tuning: stages, each of which says what stands in the MLPs' places, what is
// trained and for how long. Controls are recipes, too.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What stands in the place of a layer's MLP; "map" is the affine map fitted for the layer.
enum class LayerForm {
  mlp,            ///< the MLP
  affine,         ///< the map
  soft_gate,      ///< (1 − g)·MLP + g·map with a logistic gate that can be trained
  hard_gate,      ///< the map where that gate has g > ½, the MLP elsewhere
  constant_gate,  ///< the blend with one g for all tokens, which can be trained
  random_routing  ///< the map at as many positions as a gate chose, drawn at random
};

/// The name of a form in result files.
constexpr std::string_view name_of(LayerForm form) {
  switch (form) {
    case LayerForm::mlp:
      return "mlp";
    case LayerForm::affine:
      return "affine";
    case LayerForm::soft_gate:
      return "soft-gate";
    case LayerForm::hard_gate:
      return "hard-gate";
    case LayerForm::constant_gate:
      return "constant-gate";
    case LayerForm::random_routing:
      return "random-routing";
  }
  return "";
}

/// A part of a recipe: `layers` take `form`, then what is trained is trained for `steps`, then the
/// model is evaluated. Maps are fitted where a layer needs one for the first time, in the model as
/// it then is; MLPs and gates that are out of place keep their values.
struct Stage {
  std::string name{};
  std::vector<Index> layers{};
  LayerForm form = LayerForm::mlp;
  std::string trained{};       ///< rules of ParameterSelection; empty: everything
  std::string frozen{};        ///< of these, what stays as it is
  Index steps = 0;             ///< of the optimiser, whose moments begin anew
  double rate = 0;             ///< peak of the learning rate
  double sparsity = 0;         ///< λ of λ·mean(1 − g), for each gated layer
  Index sparsity_warm_up = 0;  ///< steps in which λ rises from λ/warm_up

  /// λ at step s = 0, 1, … of the stage.
  double sparsity_at(Index step) const {
    if (step >= sparsity_warm_up) return sparsity;
    return sparsity * static_cast<double>(step + 1) / static_cast<double>(sparsity_warm_up);
  }
};

/// Stages one after the other.
using Recipe = std::vector<Stage>;

/// Steps of all stages.
inline Index steps_of(const Recipe& recipe) {
  Index steps = 0;
  for (const Stage& stage : recipe) steps += stage.steps;
  return steps;
}

/// Does the recipe's outcome depend on the seed?
inline bool is_seeded(const Recipe& recipe) {
  return std::any_of(recipe.begin(), recipe.end(), [](const Stage& stage) {
    return stage.steps > 0 || stage.form == LayerForm::random_routing;
  });
}

/// What recipes are made of.
struct RecipeOptions {
  std::vector<Index> layers{};  ///< to be linearised; progressively in this order
  Index between_steps = 100;    ///< progressive: after each layer
  Index final_steps = 400;      ///< progressive: after the last
  Index adapt_steps = 400;      ///< two phases: around affine layers
  Index gate_steps = 400;       ///< two phases: of the gates
  double rate = 1e-4;           ///< peak
  double gate_rate = 1e-2;      ///< peak, where gates alone are trained
  double sparsity = 0.02;       ///< nats that a token saves by skipping one layer's MLP
  Index sparsity_warm_up = 100;
};

/// Rules for what a recipe freezes or trains.
inline constexpr const char* rule_of_maps = "*.mlp.affine.*";
inline constexpr const char* rule_of_gates = "*.mlp.gate.*";
inline constexpr const char* rule_of_gate_directions = "*.mlp.gate.weight";

/// Layers by their distance from the middle of the list (ascending), of two equal ones the lower
/// first.
inline std::vector<Index> middle_outwards(std::vector<Index> layers) {
  std::sort(layers.begin(), layers.end());
  const Index last = static_cast<Index>(layers.size()) - 1;
  std::vector<std::pair<Index, Index>> by_distance;  // twice the distance, layer
  for (Index i = 0; i <= last; ++i) {
    by_distance.emplace_back(std::abs(2 * i - last), layers[static_cast<std::size_t>(i)]);
  }
  std::sort(by_distance.begin(), by_distance.end());
  std::transform(by_distance.begin(), by_distance.end(), layers.begin(),
                 [](const auto& entry) { return entry.second; });
  return layers;
}

/// Nothing is done: the model as it is.
inline Recipe untouched_recipe() {
  return {{.name = "untouched"}};
}

/// Plain fine-tuning: everything is trained, nothing replaced.
inline Recipe plain_recipe(Index steps, double rate) {
  return {{.name = "tuned", .steps = steps, .rate = rate}};
}

/// All layers affine, nothing trained: what linearising costs by itself.
inline Recipe linear_recipe(const RecipeOptions& o) {
  return {{.name = "linear", .layers = o.layers, .form = LayerForm::affine}};
}

/// One layer after the other becomes its map, which is frozen, with short training of the rest
/// between and longer training at the end ("final"); then the MLPs are put back ("full").
inline Recipe progressive_recipe(const RecipeOptions& o) {
  Recipe recipe;
  for (const Index layer : o.layers) {
    recipe.push_back({.name = "layer-" + std::to_string(layer),
                      .layers = {layer},
                      .form = LayerForm::affine,
                      .frozen = rule_of_maps,
                      .steps = o.between_steps,
                      .rate = o.rate});
  }
  recipe.push_back(
      {.name = "final", .frozen = rule_of_maps, .steps = o.final_steps, .rate = o.rate});
  recipe.push_back({.name = "full", .layers = o.layers});
  return recipe;
}

/// Phase 1: all layers are their maps, which are frozen, and the rest adapts ("adapted"); then the
/// MLPs are put back ("full": g = 0). Phase 2: gates are trained between maps and MLPs and nothing
/// else ("soft"), then made hard ("hard").
inline Recipe two_phase_recipe(const RecipeOptions& o) {
  return {{.name = "adapted",
           .layers = o.layers,
           .form = LayerForm::affine,
           .frozen = rule_of_maps,
           .steps = o.adapt_steps,
           .rate = o.rate},
          {.name = "full", .layers = o.layers},
          {.name = "soft",
           .layers = o.layers,
           .form = LayerForm::soft_gate,
           .trained = rule_of_gates,
           .steps = o.gate_steps,
           .rate = o.gate_rate,
           .sparsity = o.sparsity,
           .sparsity_warm_up = o.sparsity_warm_up},
          {.name = "hard", .layers = o.layers, .form = LayerForm::hard_gate}};
}

/// Gates, maps and everything else are trained together, for as many steps as two phases have
/// ("soft"); then the gates are made hard ("hard"), then left out ("full": g = 0).
inline Recipe joint_recipe(const RecipeOptions& o) {
  return {{.name = "soft",
           .layers = o.layers,
           .form = LayerForm::soft_gate,
           .steps = o.adapt_steps + o.gate_steps,
           .rate = o.rate,
           .sparsity = o.sparsity,
           .sparsity_warm_up = o.sparsity_warm_up},
          {.name = "hard", .layers = o.layers, .form = LayerForm::hard_gate},
          {.name = "full", .layers = o.layers}};
}

/// A gated recipe up to its soft stage, with g the same for all tokens ("constant").
inline Recipe with_constant_gates(const Recipe& recipe) {
  Recipe constant;
  for (Stage stage : recipe) {
    constant.push_back(stage);
    if (stage.form != LayerForm::soft_gate) continue;
    constant.back().name = "constant";
    constant.back().form = LayerForm::constant_gate;
    constant.back().frozen = rule_of_gate_directions;
    break;
  }
  return constant;
}

/// A gated recipe up to its soft stage, which is trained with positions drawn at random ("random").
inline Recipe with_random_routing(const Recipe& recipe) {
  Recipe random;
  for (Stage stage : recipe) {
    random.push_back(stage);
    if (stage.form != LayerForm::soft_gate) continue;
    random.back().name = "random";
    random.back().form = LayerForm::random_routing;
    random.back().sparsity = 0;
    if (stage.trained == rule_of_gates) random.back().steps = 0;  // there is nothing to train
    break;
  }
  return random;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
