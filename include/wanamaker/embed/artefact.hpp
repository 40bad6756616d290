// A gated layer that `study export` wrote, as one policy to route with: gate, map and full path,
// checked against the numbers that came with them.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "wanamaker/gate/layer_check.hpp"
#include "wanamaker/io/model_loader.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Largest relative difference from a layer's check vectors that is let pass: what weights of 16
/// bits may come to.
inline constexpr double layer_check_tolerance = 1e-3;

/// FOLDER/wanamaker_gates.safetensors' layer, with the host program's own `mlp` as the full path.
/// It must give what the file's check vectors say, relative to the largest number of a row: so the
/// file is whole, and the MLP the one that the gate was fitted beside. Throws DataError
/// ("check/mismatch"), FormatError ("check/malformed": a file without check vectors) and what
/// read_gated_layer and the MLP throw.
template <Backend B>
StoredGatedMlp<B> load_gated_mlp(B& backend, const std::filesystem::path& folder, Index layer,
                                 AnyMlp<B> mlp, double tolerance = layer_check_tolerance) {
  const GatedLayer own = read_gated_layer(folder, layer);
  const std::string where =
      (folder / gated_layers_file).string() + ", layer " + std::to_string(layer);
  if (own.check.score.empty()) {
    detail::throw_bad_check(where, "check.input, check.score, check.output", "none");
  }
  StoredGatedMlp<B> gated = gated_mlp(backend, own, std::move(mlp));
  Workspace<B> workspace(backend);
  const double difference = layer_difference(backend, gated, own.check, workspace);
  if (!(difference <= tolerance)) {
    throw DataError(
        {.id = "check/mismatch",
         .where = where,
         .what = "the layer does not compute what it was written to compute",
         .expected = "numbers within " + std::to_string(tolerance) + " of a row's largest",
         .found = "a relative difference of " + std::to_string(difference),
         .mend = "export it again, or see what changed its files or the MLP"});
  }
  gated.counts().reset();
  return gated;
}

/// The same with the MLP that the folder's own weights make.
template <Backend B>
StoredGatedMlp<B> load_gated_mlp(B& backend, const std::filesystem::path& folder, Index layer,
                                 double tolerance = layer_check_tolerance) {
  return load_gated_mlp(backend, folder, layer, load_mlp(backend, folder, layer), tolerance);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
