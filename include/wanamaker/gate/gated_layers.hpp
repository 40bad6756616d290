// Gated layers in a file of their own, beside a model that has all its MLPs (docs/gates.md has the
// layout): which layers have a gate, what it reads, and the map that it may send a token to.
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
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

/// One layer: f̂(x) = x·W + b where w·x + c > 0, else MLP(x), x the MLP's input.
struct GatedLayer {
  Index layer = 0;
  LinearScore gate{};  ///< w [d] and c; whatever threshold it had is within c
  AffineMap map{};     ///< W [d × d] and b [d]
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
  for (const char* part : {"gate.weight", "gate.bias", "map.weight", "map.bias"}) {
    if (name == gated_layer_prefix(layer) + part) return layer;
  }
  throw_bad_gates(file.path().string(),
                  "tensors layers.L.gate.weight, gate.bias, map.weight, map.bias", in_quotes(name));
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

}  // namespace detail

/// FOLDER/wanamaker_gates.safetensors, atomically: gates in double, maps in T. Throws FileError,
/// NumericalError where a number of a map does not fit T.
template <class T>
void write_gated_layers(const std::filesystem::path& folder,
                        const std::vector<GatedLayer>& layers) {
  std::vector<std::vector<T>> maps;  // until they are written
  maps.reserve(2 * layers.size());
  std::vector<TensorToWrite> tensors;
  for (const GatedLayer& own : layers) {
    const std::string prefix = detail::gated_layer_prefix(own.layer);
    const Index d = own.map.inputs, e = own.map.outputs;
    const auto add_map = [&](const char* name, const std::vector<double>& values, Shape shape) {
      maps.push_back(detail::narrowed<T>(values));
      tensors.push_back(tensor_to_write<T>(prefix + name, maps.back(), std::move(shape)));
    };
    tensors.push_back(tensor_to_write<double>(prefix + "gate.weight", own.gate.weights, {d}));
    tensors.push_back(tensor_to_write<double>(prefix + "gate.bias", {&own.gate.bias, 1}, {1}));
    add_map("map.weight", own.map.weight, {d, e});
    add_map("map.bias", own.map.bias, {e});
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
  const SafetensorsFile file = SafetensorsFile::open(folder / gated_layers_file);
  const auto format = file.metadata().find("format");
  if (format == file.metadata().end() || format->second != gated_layers_format) {
    detail::throw_bad_gates(file.path().string(), gated_layers_format,
                            format == file.metadata().end() ? "no format" : format->second);
  }
  std::set<Index> numbers;
  for (const std::string& name : file.names()) {
    numbers.insert(detail::gated_layer_number(file, name));
  }
  std::vector<GatedLayer> layers;
  for (const Index number : numbers) {
    const std::string prefix = detail::gated_layer_prefix(number);
    const Index d = static_cast<Index>(file.info(prefix + "gate.weight").elements());
    const auto values = [&](const char* name, const Shape& shape) {
      return detail::gated_layer_values(file, prefix + name, shape);
    };
    layers.push_back({number,
                      {values("gate.weight", {d}), values("gate.bias", {1}).front()},
                      {d, d, values("map.weight", {d, d}), values("map.bias", {d})}});
  }
  return layers;
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
