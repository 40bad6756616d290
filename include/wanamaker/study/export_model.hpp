// A model with maps in the places of its MLPs, as a folder that runtimes load which know nothing of
// maps: every map becomes an MLP of the model's own form. With gates: the model as it is, and gates
// and maps in a file beside it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/core/half.hpp"
#include "wanamaker/gate/layer_check.hpp"
#include "wanamaker/io/gguf_model_writer.hpp"
#include "wanamaker/io/model_writer.hpp"
#include "wanamaker/study/export_result.hpp"
#include "wanamaker/study/generate_study.hpp"
#include "wanamaker/surrogate/stock_replacement.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What check vectors are taken from: the first tokens of the first document that has two. Throws
/// DataError ("data/nothing-to-score").
inline std::vector<TokenId> ids_to_check(const TokenizedCorpus& corpus, Index at_most) {
  for (const TokenizedDocument& document : corpus.documents) {
    if (document.ids.size() < 2) continue;
    const auto count = std::min<std::ptrdiff_t>(at_most, std::ssize(document.ids));
    return {document.ids.begin(), document.ids.begin() + count};
  }
  throw DataError({.id = "data/nothing-to-score",
                   .where = "export",
                   .what = "no document has a token that can be scored",
                   .expected = "a document of two tokens or more",
                   .mend = "give a longer text"});
}

namespace detail {

inline void check_exportable(const ExportOptions& options) {
  const bool fits = is_exportable(options.replacement);
  if (fits && !(options.replacement.is_gated() && options.gguf_tokenizer)) return;
  throw ProtocolError(
      {.id = "protocol/not-stock",
       .where = "--replace",
       .what = fits ? "GGUF files have no gates" : "no file has a form for this gate",
       .expected = fits ? "zero, mean, ridge or rank-R with --gguf"
                        : "zero, mean, ridge, rank-R, gate-logistic, gate-cost, "
                          "gate-delta or gate-pca-N",
       .found = name_of(options.replacement),
       .mend = "choose another, or run the gate by `study generate`"});
}

/// Weights as float16 holds them. What it cannot hold becomes infinite, which write_model refuses.
template <class B>
void round_to_float16(B& backend, AnyTransformer<B>& model) {
  for (const Parameter<B>& p : parameters<B>(model)) {
    for (Index row = 0; row < p.value.rows; ++row) {
      const VectorView<scalar_t<B>> values(p.value.row(row), p.value.cols);
      std::vector<scalar_t<B>> rounded = host_copy(backend, values);
      for (scalar_t<B>& value : rounded) {
        value = static_cast<scalar_t<B>>(static_cast<float>(half(static_cast<float>(value))));
      }
      backend.copy_from_host(rounded.data(), values.size, values.data);
    }
  }
}

/// The gate as w·x + c, its threshold at 0.
template <class B>
LinearScore score_above_zero(const NamedGate<B>& gate) {
  constexpr double never = 1e300;  // a threshold that no score passes, or every one
  const auto folded = [&](LinearScore score, double threshold) {
    score.bias -= std::clamp(threshold, -never, never);
    return score;
  };
  if (const auto* logistic = gate.gate.template get<LogisticGate<B>>()) {
    const double odds = gate.threshold / (1 - gate.threshold);
    return folded(logistic->linear_score(), gate.threshold >= 1 ? never : std::log(odds));
  }
  return folded(gate.gate.template get<DeltaRegressionGate<B>>()->linear_score(), gate.threshold);
}

template <class B>
std::vector<GatedLayer> gated_layers_of(B& backend, const FittedReplacement<B>& fitted,
                                        Index width) {
  std::vector<GatedLayer> layers;
  for (const Index layer : fitted.layers()) {
    const LayerStandIns<B>& own = fitted.stand_ins(layer);
    layers.push_back(
        {layer, score_above_zero(own.gate()), *affine_map_of(backend, own.linear(), width)});
  }
  return layers;
}

/// Lets the model's own MLPs act as the maps. The settings that the model then has.
template <class B>
ModelConfig act_as_maps(B& backend, AnyTransformer<B>& model, const FittedReplacement<B>& fitted,
                        double scale) {
  ModelConfig config = model.config();
  for (const Index layer : fitted.layers()) {
    const auto map = affine_map_of(backend, *fitted.overrides().at(layer), config.width);
    act_as(backend, model.mlp(layer), *map, scale);
  }
  if (!fitted.layers().empty() && give_mlps_zero_biases(backend, model)) config.mlp_bias = true;
  return config;
}

}  // namespace detail

/// −log p of ids[1], ids[2], … in nats, each given all before it, with `overrides` in the places of
/// MLPs.
template <class B>
std::vector<double> sequence_losses(B& backend, const AnyTransformer<B>& model,
                                    std::span<const TokenId> ids, const MlpOverrides<B>& overrides,
                                    Workspace<B>& workspace) {
  const typename Workspace<B>::Frame frame(workspace);
  const PackedBatch<B> batch(backend, ids);
  const matrix_view_t<B> residual = workspace.matrix(batch.rows(), model.config().width);
  model.embed(backend, batch, residual);
  forward_blocks(backend, model, overrides, 0, model.layers(), batch, residual, workspace);
  return model.token_losses(backend, residual, all_next_tokens(batch), workspace);
}

namespace detail {

/// Writes the model and its gates, puts the gates into the model, and writes the losses that it
/// then has. The check vectors.
template <class B>
CheckVectors write_exported(B& backend, AnyTransformer<B>& model, const ModelConfig& config,
                            std::vector<GatedLayer> gated, std::vector<TokenId> ids,
                            bool as_float16, const std::filesystem::path& folder,
                            Workspace<B>& workspace) {
  write_model(folder, backend, model, config, as_float16);
  if (!gated.empty()) {
    for (GatedLayer& own : gated) {
      own.check = layer_check(backend, own, model.mlp(own.layer), workspace);
    }
    write_gated_layers<scalar_t<B>>(folder, gated);
    install_gates(backend, model, gated);
  }
  CheckVectors check{std::move(ids), {}};
  check.nats = sequence_losses(backend, model, std::span<const TokenId>(check.ids), {}, workspace);
  write_check_vectors(folder, check);
  return check;
}

}  // namespace detail

/// Fits what is to stand in the chosen layers (all where none are named) on the input's splits as
/// run_generate does, and writes FOLDER/config.json, model.safetensors and wanamaker_check.json,
/// and model.gguf where it is asked for; tokenizer files are left to the caller. Maps: the model's
/// own MLPs act as them. Gates: the MLPs stay, and gates and maps are in
/// wanamaker_gates.safetensors. `model`, the input's own, is the exported one afterwards. Throws
/// ProtocolError ("protocol/not-stock") for gates that no file has a form for, and what the fits,
/// act_as and write_model throw.
template <class B>
ExportResult run_export(const StudyInput<B>& in, AnyTransformer<B>& model,
                        const ExportOptions& options, const std::filesystem::path& folder) {
  detail::check_exportable(options);
  ExportResult result{.protocol = in.protocol, .model = summarise_model(model), .options = options};
  GenerateResult fit;
  const detail::FittedReplacement<B> fitted(in, options.replacement, fit);
  result.layers = fitted.layers();
  result.fit_documents = fit.fit_documents;
  result.fit_tokens = fit.fit_tokens;
  std::vector<TokenId> ids =
      ids_to_check(in.corpus, std::min(options.check_tokens, model.config().positions));
  const std::vector<double> as_fitted = sequence_losses(
      in.backend, model, std::span<const TokenId>(ids), fitted.overrides(), in.workspace);
  std::vector<GatedLayer> gated;
  ModelConfig config = model.config();
  if (options.replacement.is_gated()) {
    gated = detail::gated_layers_of(in.backend, fitted, config.width);
  } else {
    result.scale = options.as_float16 ? StockScale::for_half : StockScale::for_float;
    config = detail::act_as_maps(in.backend, model, fitted, result.scale);
  }
  if (options.as_float16) detail::round_to_float16(in.backend, model);
  if (options.gguf_tokenizer) {
    write_gguf_model(folder / "model.gguf", in.backend, model, config, *options.gguf_tokenizer,
                     options.as_float16);
  }
  result.check = detail::write_exported(in.backend, model, config, std::move(gated), std::move(ids),
                                        options.as_float16, folder, in.workspace);
  result.largest_difference = largest_difference(as_fitted, result.check.nats);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
