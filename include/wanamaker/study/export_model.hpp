// A model with maps in the places of its MLPs, as a folder that runtimes load which know nothing of
// maps: every map becomes an MLP of the model's own form.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/core/half.hpp"
#include "wanamaker/io/gguf_model_writer.hpp"
#include "wanamaker/io/model_writer.hpp"
#include "wanamaker/study/export_result.hpp"
#include "wanamaker/study/generate_study.hpp"
#include "wanamaker/surrogate/stock_replacement.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline void check_exportable(const MlpReplacement& replacement) {
  if (!replacement.is_gated()) return;
  throw ProtocolError({.id = "protocol/not-stock",
                       .where = "--replace",
                       .what = "stock runtimes have no gates",
                       .expected = "zero, mean, ridge or rank-R",
                       .found = name_of(replacement),
                       .mend = "export a linear map, or run the gate by `study generate`"});
}

/// The first tokens of the first document that has two.
inline std::vector<TokenId> check_ids(const TokenizedCorpus& corpus, Index at_most) {
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

/// Fits what is to stand in the chosen layers (all where none are named) on the input's splits as
/// run_generate does, lets the model's own MLPs act as it, and writes FOLDER/config.json,
/// model.safetensors and wanamaker_check.json, and model.gguf where it is asked for; tokenizer
/// files are left to the caller. `model`, the input's own, is the exported one afterwards. Throws
/// ProtocolError for gates, and what the fits, act_as and write_model throw.
template <class B>
ExportResult run_export(const StudyInput<B>& in, AnyTransformer<B>& model,
                        const ExportOptions& options, const std::filesystem::path& folder) {
  detail::check_exportable(options.replacement);
  ExportResult result{.protocol = in.protocol, .model = summarise_model(model), .options = options};
  result.scale = options.as_float16 ? StockScale::for_half : StockScale::for_float;
  GenerateResult fit;
  const detail::FittedReplacement<B> fitted(in, options.replacement, fit);
  result.layers = fitted.layers();
  result.fit_documents = fit.fit_documents;
  result.fit_tokens = fit.fit_tokens;
  result.check.ids =
      detail::check_ids(in.corpus, std::min(options.check_tokens, model.config().positions));
  const std::vector<double> with_maps =
      sequence_losses(in.backend, model, result.check.ids, fitted.overrides(), in.workspace);
  for (const Index layer : result.layers) {
    const auto map = affine_map_of(in.backend, *fitted.overrides().at(layer), model.config().width);
    act_as(in.backend, model.mlp(layer), *map, result.scale);
  }
  ModelConfig config = model.config();
  if (!result.layers.empty() && give_mlps_zero_biases(in.backend, model)) config.mlp_bias = true;
  if (options.as_float16) detail::round_to_float16(in.backend, model);
  result.check.nats = sequence_losses(in.backend, model, result.check.ids, {}, in.workspace);
  result.largest_difference = largest_difference(with_maps, result.check.nats);
  write_model(folder, in.backend, model, config, options.as_float16);
  if (options.gguf_tokenizer) {
    write_gguf_model(folder / "model.gguf", in.backend, model, config, *options.gguf_tokenizer,
                     options.as_float16);
  }
  write_check_vectors(folder, result.check);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
