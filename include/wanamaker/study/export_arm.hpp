// A fine-tuned model as a folder: what an arm of an experiment has become at the end of a stage.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/arm_model.hpp"
#include "wanamaker/study/export_model.hpp"
#include "wanamaker/train/model_copy.hpp"
#include "wanamaker/train/model_shape.hpp"
#include "wanamaker/train/planned_model.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// A model of the family's own form with a changed model's values, and what has no place in that
/// form.
template <class B>
struct StoredModel {
  AnyTransformer<B> model;
  ModelConfig config;
  std::vector<GatedLayer> gated{};
};

/// MLPs act as affine and low-rank policies; learned gates are routed at g > ½.
template <Backend B>
StoredModel<B> stored_model(B& backend, AnyTransformer<B>& changed, double scale) {
  StoredModel<B> stored{make_model(backend, changed.config()), changed.config()};
  copy_parameters_by_name(backend, changed, stored.model);
  bool acts = false;
  for (Index layer = 0; layer < stored.config.layers; ++layer) {
    const AnyMlp<B>& own = changed.mlp(layer);
    if (const auto* gated = own.template get<LearnedRouting<B>>()) {
      stored.gated.push_back(
          {layer, gated->gate().linear_score(backend), map_of(backend, gated->surrogate().map())});
    } else if (const auto map = affine_map_of(backend, own, stored.config.width)) {
      act_as(backend, stored.model.mlp(layer), *map, scale);
      acts = true;
    }
  }
  if (acts && give_mlps_zero_biases(backend, stored.model)) stored.config.mlp_bias = true;
  return stored;
}

/// Writes a changed model as write_exported does; returns the largest difference in nats between
/// its losses and those of what was written.
template <Backend B>
double export_changed(B& backend, AnyTransformer<B>& changed, std::vector<TokenId> ids,
                      const std::filesystem::path& folder, Workspace<B>& workspace) {
  auto stored = stored_model(backend, changed, StockScale::for_float);
  const std::vector<double> own =
      sequence_losses(backend, changed, std::span<const TokenId>(ids), {}, workspace);
  const CheckVectors check = write_exported(backend, stored.model, stored.config, stored.gated,
                                            std::move(ids), false, folder, workspace);
  return largest_difference(own, check.nats);
}

/// Throws ProtocolError ("protocol/not-stock") for a layer whose form no file has.
template <Backend B>
void check_writable_forms(const ArmModel<B>& arm) {
  for (Index layer = 0; layer < arm.model().layers(); ++layer) {
    const LayerForm form = arm.form(layer);
    if (form == LayerForm::mlp || form == LayerForm::affine || form == LayerForm::hard_gate) {
      continue;
    }
    throw ProtocolError({.id = "protocol/not-stock",
                         .where = "export_arm, layer " + std::to_string(layer),
                         .what = "no file has this form of a layer",
                         .expected = "mlp, affine or hard-gate",
                         .found = std::string(name_of(form)),
                         .mend = "export the model at the end of another stage"});
  }
}

}  // namespace detail

/// Writes an arm's model, weights as the backend's scalar: FOLDER/config.json, model.safetensors
/// and wanamaker_check.json for `ids`, and wanamaker_gates.safetensors where layers have hard
/// gates. MLPs act as the maps of affine layers. Returns the largest difference in nats between the
/// arm's losses and those of what was written. The arm stays as it is. Throws ProtocolError
/// ("protocol/not-stock") for layers with blends or random routing, and what write_model throws.
template <Backend B>
double export_arm(B& backend, ArmModel<B>& arm, std::vector<TokenId> ids,
                  const std::filesystem::path& folder, Workspace<B>& workspace) {
  detail::check_writable_forms(arm);
  return detail::export_changed(backend, arm.model(), std::move(ids), folder, workspace);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
