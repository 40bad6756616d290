// Gated layers in a file of their own, beside a model that has all its MLPs (docs/gates.md has the
// layout): which layers have a gate, what it reads, and the map that it may send a token to.
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/gate/gated_mlp.hpp"
#include "wanamaker/gate/linear_gate.hpp"
#include "wanamaker/io/safetensors.hpp"
#include "wanamaker/io/safetensors_writer.hpp"
#include "wanamaker/nn/any_transformer.hpp"
#include "wanamaker/surrogate/affine_map.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What a layer must compute for k rows x, so that whoever loads it can see that it does.
struct LayerCheck {
  std::vector<double> input{};   ///< x [k × d], numbers that float holds
  std::vector<double> score{};   ///< w·x + c [k]
  std::vector<double> output{};  ///< [k × d]: the map's where the score is above 0, else the MLP's
};

/// One layer: f̂(x) = x·W + b where w·x + c > 0, else MLP(x), x the MLP's input.
struct GatedLayer {
  Index layer = 0;
  LinearScore gate{};  ///< w [d] and c; whatever threshold it had is within c
  AffineMap map{};     ///< W [d × d] and b [d]
  LayerCheck check{};  ///< may be empty
};

/// A layer that runs as one of these says.
template <class B>
using StoredGatedMlp = GatedMlp<LinearGate<B, IdentityLink>, AffineMlp<B>, AnyMlp<B>>;

/// Name of the file, and what its metadata call its format.
inline constexpr const char* gated_layers_file = "wanamaker_gates.safetensors";
inline constexpr const char* gated_layers_format = "wanamaker/gates/1";

namespace detail {

/// "layers.L.": what the names of a layer's tensors begin with.
inline std::string gated_layer_prefix(Index layer) {
  return "layers." + std::to_string(layer) + ".";
}

[[noreturn]] inline void throw_bad_gates(const std::string& where, std::string expected,
                                         std::string found) {
  throw FormatError({.id = "gate/malformed-file",
                     .where = where,
                     .what = "these are no gated layers of this model",
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .mend = "export the model again"});
}

/// L of "layers.L.gate.weight"; the name must be spelt as this library spells it.
inline Index gated_layer_number(const SafetensorsFile& file, const std::string& name) {
  Index layer = 0;
  for (std::size_t i = std::string_view("layers.").size(); i < name.size(); ++i) {
    if (name[i] < '0' || name[i] > '9' || layer > 1'000'000) break;
    layer = 10 * layer + (name[i] - '0');
  }
  for (const char* part : {"gate.weight", "gate.bias", "map.weight", "map.bias", "check.input",
                           "check.score", "check.output"}) {
    if (name == gated_layer_prefix(layer) + part) return layer;
  }
  throw_bad_gates(file.path().string(),
                  "tensors layers.L.gate.weight, gate.bias, map.weight, map.bias, check.input, "
                  "check.score, check.output",
                  in_quotes(name));
}

/// A tensor that must have the shape.
inline std::vector<double> gated_layer_values(const SafetensorsFile& file, const std::string& name,
                                              const Shape& shape) {
  const Shape& found = file.info(name).shape;
  if (found != shape) {
    throw_bad_gates(file.path().string() + ", tensor " + in_quotes(name), shape_text(shape),
                    shape_text(found));
  }
  return file.read<double>(name);
}

/// All of one layer, of the width of its gate.
inline GatedLayer gated_layer_of(const SafetensorsFile& file, Index number) {
  const std::string prefix = gated_layer_prefix(number);
  const auto elements = [&](const char* name) {
    return static_cast<Index>(file.info(prefix + name).elements());
  };
  const auto values = [&](const char* name, const Shape& shape) {
    return gated_layer_values(file, prefix + name, shape);
  };
  const Index d = elements("gate.weight");
  GatedLayer own{number,
                 {values("gate.weight", {d}), values("gate.bias", {1}).front()},
                 {d, d, values("map.weight", {d, d}), values("map.bias", {d})}};
  if (file.contains(prefix + "check.score")) {
    const Index rows = elements("check.score");
    own.check = {values("check.input", {rows, d}), values("check.score", {rows}),
                 values("check.output", {rows, d})};
  }
  return own;
}

inline SafetensorsFile open_gated_layers(const std::filesystem::path& folder) {
  SafetensorsFile file = SafetensorsFile::open(folder / gated_layers_file);
  const auto format = file.metadata().find("format");
  if (format != file.metadata().end() && format->second == gated_layers_format) return file;
  throw_bad_gates(file.path().string(), gated_layers_format,
                  format == file.metadata().end() ? "no format" : format->second);
}

inline std::set<Index> gated_layer_numbers(const SafetensorsFile& file) {
  std::set<Index> numbers;
  for (const std::string& name : file.names()) numbers.insert(gated_layer_number(file, name));
  return numbers;
}

}  // namespace detail

/// FOLDER/wanamaker_gates.safetensors, atomically: gates and checks in double, maps in T. Throws
/// FileError, NumericalError where a number of a map does not fit T.
template <class T>
void write_gated_layers(const std::filesystem::path& folder,
                        const std::vector<GatedLayer>& layers) {
  std::vector<std::vector<T>> maps;  // until they are written
  maps.reserve(2 * layers.size());
  std::vector<TensorToWrite> tensors;
  for (const GatedLayer& own : layers) {
    const std::string prefix = detail::gated_layer_prefix(own.layer);
    const Index d = own.map.inputs, e = own.map.outputs;
    const auto add = [&](const char* name, std::span<const double> values, Shape shape) {
      tensors.push_back(tensor_to_write<double>(prefix + name, values, std::move(shape)));
    };
    const auto add_map = [&](const char* name, const std::vector<double>& values, Shape shape) {
      maps.push_back(detail::narrowed<T>(values));
      tensors.push_back(tensor_to_write<T>(prefix + name, maps.back(), std::move(shape)));
    };
    add("gate.weight", own.gate.weights, {d});
    add("gate.bias", {&own.gate.bias, 1}, {1});
    add_map("map.weight", own.map.weight, {d, e});
    add_map("map.bias", own.map.bias, {e});
    if (own.check.score.empty()) continue;
    const Index rows = static_cast<Index>(own.check.score.size());
    add("check.input", own.check.input, {rows, d});
    add("check.score", own.check.score, {rows});
    add("check.output", own.check.output, {rows, e});
  }
  write_safetensors(folder / gated_layers_file, std::move(tensors),
                    {{"format", gated_layers_format}});
}

/// Whether the folder has such a file.
inline bool has_gated_layers(const std::filesystem::path& folder) {
  std::error_code unreadable;
  return std::filesystem::exists(folder / gated_layers_file, unreadable);
}

/// What write_gated_layers wrote, layers ascending. Throws FormatError ("gate/malformed-file" for
/// other names and shapes), DataError for numbers that are not finite, FileError.
inline std::vector<GatedLayer> read_gated_layers(const std::filesystem::path& folder) {
  const SafetensorsFile file = detail::open_gated_layers(folder);
  std::vector<GatedLayer> layers;
  for (const Index number : detail::gated_layer_numbers(file)) {
    layers.push_back(detail::gated_layer_of(file, number));
  }
  return layers;
}

/// One layer of it. Throws as read_gated_layers, and FormatError ("gate/no-such-layer").
inline GatedLayer read_gated_layer(const std::filesystem::path& folder, Index layer) {
  const SafetensorsFile file = detail::open_gated_layers(folder);
  const std::set<Index> numbers = detail::gated_layer_numbers(file);
  if (numbers.contains(layer)) return detail::gated_layer_of(file, layer);
  std::string there;
  for (const Index number : numbers) there += (there.empty() ? "" : ", ") + std::to_string(number);
  throw FormatError({.id = "gate/no-such-layer",
                     .where = file.path().string(),
                     .what = "no gate at this layer",
                     .expected = there.empty() ? "a file that has gates" : "layer " + there,
                     .found = std::to_string(layer),
                     .mend = "ask for a layer that has a gate, or export it"});
}

/// The layer with its gate and map before the MLP.
template <Backend B>
StoredGatedMlp<B> gated_mlp(B& backend, const GatedLayer& own, AnyMlp<B> mlp) {
  return StoredGatedMlp<B>::hard(
      LinearGate<B, IdentityLink>(backend, own.gate),
      AffineMlp<B>(detail::linear_from_host(backend, own.map.weight, own.map.inputs,
                                            own.map.outputs, own.map.bias)),
      std::move(mlp), 0.0);
}

/// Puts each before its layer's MLP. Throws FormatError ("gate/malformed-file") where the model has
/// no such layer or is of another width.
template <Backend B>
void install_gates(B& backend, AnyTransformer<B>& model, const std::vector<GatedLayer>& layers) {
  const ModelConfig& config = model.config();
  for (const GatedLayer& own : layers) {
    if (own.layer < config.layers && own.map.inputs == config.width) continue;
    detail::throw_bad_gates(
        config.name,
        std::to_string(config.layers) + " layers of width " + std::to_string(config.width),
        "layer " + std::to_string(own.layer) + " of width " + std::to_string(own.map.inputs));
  }
  for (const GatedLayer& own : layers) {
    AnyMlp<B> mlp = std::move(model.mlp(own.layer));
    model.mlp(own.layer) = AnyMlp<B>(gated_mlp(backend, own, std::move(mlp)));
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
