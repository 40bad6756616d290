// The layer computed by hand as `study export` would write it.
#pragma once

#include "embed_testing.hpp"
#include "wanamaker/gate/layer_check.hpp"

namespace wanamaker_test {

inline constexpr Index planted_width = 6;

/// Check vectors included.
inline GatedLayer planted_gated_layer(EmbedBackend& backend, Index number) {
  const PlainLayer plain(planted_width);
  GatedLayer layer{number, {plain.gate, 0}, {planted_width, planted_width, plain.map, plain.bias}};
  Workspace<EmbedBackend> workspace(backend);
  layer.check =
      layer_check(backend, layer, AnyMlp<EmbedBackend>(dense_of(backend, plain)), workspace);
  return layer;
}

}  // namespace wanamaker_test
