// A model whose layers have the MLPs of a plan, trained as one and run with its gates made hard.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/gate/backward.hpp"
#include "wanamaker/gate/stock_hybrid.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/train/layer_mlp.hpp"
#include "wanamaker/train/model_copy.hpp"
#include "wanamaker/train/model_shape.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A layer that learns which tokens an affine map suffices for.
template <class B>
using LearnedRouting = GatedMlp<TrainableLogisticGate<B>, AffineMlp<B>, AnyMlp<B>>;

/// An affine path and an MLP of the family's kind.
template <class B>
using PlannedHybrid = HybridMlp<AffineMlp<B>, AnyMlp<B>>;

/// λ of λ·mean(1 − g) for each learned gate, rising over the first steps.
struct SparsityOptions {
  double weight = 0;  ///< nats that a token saves by skipping one layer's MLP
  Index warm_up = 0;  ///< steps in which λ rises from weight/warm_up

  /// λ at step s = 0, 1, ….
  double at(Index step) const {
    if (step >= warm_up) return weight;
    return weight * static_cast<double>(step + 1) / static_cast<double>(warm_up);
  }
};

namespace detail {

/// Makes the MLPs of one model, of zeros.
template <Backend B>
class PlannedMlps {
 public:
  PlannedMlps(B& backend, const ModelConfig& config)
      : backend_(backend), zeros_(backend), config_(config) {}

  AnyMlp<B> operator()(const LayerMlp& mlp) {
    switch (mlp.kind) {
      case MlpKind::dense:
        return family_mlp(mlp.size);
      case MlpKind::affine:
        return AnyMlp<B>(affine());
      case MlpKind::low_rank:
        return AnyMlp<B>(LowRankMlp<B>(linear(config_.width, mlp.size, false),
                                       linear(mlp.size, config_.width, true)));
      case MlpKind::hybrid:
        return trainable_mlp<B>(PlannedHybrid<B>(affine(), family_mlp(mlp.size)));
      case MlpKind::gated:
        return trainable_mlp<B>(
            LearnedRouting<B>::soft(even_gate(), affine(), family_mlp(mlp.size)));
      case MlpKind::zero:
        break;
    }
    return AnyMlp<B>(ZeroMlp<B>());
  }

 private:
  AnyMlp<B> family_mlp(Index hidden) {
    ModelConfig own = config_;
    own.hidden = hidden;
    if (own.family == Family::llama) return llama_mlp<B>(zeros_, own, "");
    const bool is_gpt2 = own.family == Family::gpt2;
    return dense_mlp<B>(zeros_, own, "", "",
                        is_gpt2 ? zeros_.conventions().gpt2_layout : WeightLayout::out_in);
  }
  Linear<B> linear(Index inputs, Index outputs, bool has_bias) {
    return zeros_.linear("", inputs, outputs, WeightLayout::in_out, has_bias);
  }
  AffineMlp<B> affine() { return AffineMlp<B>(linear(config_.width, config_.width, true)); }
  /// g = ½ for every token.
  TrainableLogisticGate<B> even_gate() {
    return {backend_, {std::vector<double>(static_cast<std::size_t>(config_.width)), 0.0}};
  }

  B& backend_;
  ZeroWeights<B> zeros_;
  const ModelConfig& config_;
};

}  // namespace detail

/// A model whose parameters are all 0, as make_model, with the plan's MLPs: one for each layer and
/// every size known. Gates are soft.
template <Backend B>
AnyTransformer<B> make_model(B& backend, const ModelConfig& config, const MlpPlan& plan) {
  AnyTransformer<B> model = make_model(backend, config);
  detail::PlannedMlps<B> mlps(backend, config);
  for (std::size_t l = 0; l < plan.size(); ++l) {
    model.mlp(static_cast<Index>(l)) = mlps(plan[l]);
  }
  return model;
}

/// Hidden units of the family's MLP that computes what a layer of the plan does (stock_mlp,
/// stock_gated_mlp).
inline Index stock_hidden(const ModelConfig& config, const LayerMlp& mlp) {
  const Index map = config.family == Family::llama ? config.width : 2 * config.width;
  switch (mlp.kind) {
    case MlpKind::affine:
    case MlpKind::low_rank:
      return map;
    case MlpKind::hybrid:
      return map + mlp.size;
    default:
      return std::max<Index>(1, mlp.size);
  }
}

/// Can stock_model give the plan the family's own form? All kinds but learned routing have it.
inline bool is_stock(const MlpPlan& plan) {
  return !has_kind(plan, MlpKind::gated);
}

/// A model in the form that files have, with the settings to write.
template <class B>
struct StockModel {
  AnyTransformer<B> model;
  ModelConfig config{};
};

/// The same model with the family's MLPs, all as wide as the widest that is needed, for files,
/// which have one width. Units that a dense layer lacks have weights of 0, and an activation of 0
/// is 0; maps and hybrids are what the MLP acts as (act_as, `scale` as there). It computes the same
/// but for rounding. The plan must be stock.
template <Backend B>
StockModel<B> stock_model(B& backend, AnyTransformer<B>& model, const MlpPlan& plan, double scale) {
  ModelConfig config = model.config();
  config.hidden = 1;
  for (const LayerMlp& mlp : plan) {
    config.hidden = std::max(config.hidden, stock_hidden(config, mlp));
  }
  StockModel<B> stock{make_model(backend, config), config};
  copy_parameters_by_name(backend, model, stock.model);
  bool acts = false;
  for (std::size_t l = 0; l < plan.size(); ++l) {
    const AnyMlp<B>& own = model.mlp(static_cast<Index>(l));
    AnyMlp<B>& mlp = stock.model.mlp(static_cast<Index>(l));
    const MlpKind kind = plan[l].kind;
    if (kind == MlpKind::dense || kind == MlpKind::zero) continue;
    acts = true;
    if (kind == MlpKind::hybrid) {
      act_as(backend, mlp, *own.template get<PlannedHybrid<B>>(), scale);
    } else {
      act_as(backend, mlp, *affine_map_of(backend, own, config.width), scale);
    }
  }
  if (acts && give_mlps_zero_biases(backend, stock.model)) stock.config.mlp_bias = true;
  return stock;
}

/// f(layer, routing) for every layer that learns its routing.
template <class B, class F>
void for_each_routing(AnyTransformer<B>& model, F&& f) {
  for (Index l = 0; l < model.layers(); ++l) {
    if (auto* routing = model.mlp(l).template get<LearnedRouting<B>>()) f(l, *routing);
  }
}

/// λ of every learned gate's penalty.
template <class B>
void set_sparsity(AnyTransformer<B>& model, double weight) {
  for_each_routing(
      model, [weight](Index, LearnedRouting<B>& routing) { routing.set_sparsity_weight(weight); });
}

/// Soft gates become hard: the map where g > ½, the MLP elsewhere, each run on its own rows.
/// `listener`: of every layer's choices. Gradients and lists of parameters that were made for the
/// model hold no longer.
template <class B>
void harden_gates(AnyTransformer<B>& model, const RoutingListener& listener = {}) {
  for_each_routing(model, [&](Index layer, LearnedRouting<B>& soft) {
    auto hard = LearnedRouting<B>::hard(std::move(soft.gate()), std::move(soft.surrogate()),
                                        std::move(soft.mlp()), 0.5);
    hard.set_listener(listener);
    model.mlp(layer) = trainable_mlp<B>(std::move(hard));
  });
}

}  // namespace wanamaker::inline WANAMAKER_ABI
