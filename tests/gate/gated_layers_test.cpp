// Files of gated layers: what is written comes back, what is none is refused.
#include "wanamaker/gate/gated_layers.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/reference.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

/// Width 2.
GatedLayer small_gated_layer(Index layer) {
  return {layer, {{0.1, -3}, 1e-17}, {2, 2, {1, 0.5, -0.25, 8}, {0.125, -1}}};
}

/// The error of reading these tensors as gated layers.
std::string reading(const TemporaryFolder& folder, std::vector<TensorToWrite> tensors,
                    const std::string& format = gated_layers_format) {
  write_safetensors(folder / gated_layers_file, std::move(tensors), {{"format", format}});
  return error_id([&] { read_gated_layers(folder.path()); });
}

}  // namespace

TEST_CASE("gated layers come back from their file, the gate to the last bit") {
  const TemporaryFolder folder;
  CHECK_FALSE(has_gated_layers(folder.path()));
  write_gated_layers<float>(folder.path(), {small_gated_layer(11), small_gated_layer(2)});
  CHECK(has_gated_layers(folder.path()));
  const std::vector<GatedLayer> layers = read_gated_layers(folder.path());
  REQUIRE(layers.size() == 2);
  CHECK(layers[0].layer == 2);
  CHECK(layers[1].layer == 11);
  for (const GatedLayer& own : layers) {
    CHECK(own.gate.weights == std::vector<double>{0.1, -3});
    CHECK(own.gate.bias == 1e-17);
    CHECK(own.map.weight == std::vector<double>{1, 0.5, -0.25, 8});
    CHECK(own.map.bias == std::vector<double>{0.125, -1});
  }
}

TEST_CASE("the map serves where w·x + c is above 0, the MLP elsewhere") {
  ReferenceBackend<double> backend;
  const auto gated =
      gated_mlp(backend, small_gated_layer(0),
                AnyMlp<ReferenceBackend<double>>(ZeroMlp<ReferenceBackend<double>>{}));
  // w·x + c: 0.1 − 3 < 0; 3.1 > 0; exactly 1e-17 > 0.
  const std::vector<double> x{1, 1, 1, -1, 0, 0};
  std::vector<double> y(6);
  Workspace<ReferenceBackend<double>> workspace(backend);
  gated.forward(backend, ConstMatrixView<double>(x.data(), 3, 2), {},
                MatrixView<double>(y.data(), 3, 2), workspace);
  CHECK(y == std::vector<double>{0, 0, 1 + 0.25 + 0.125, 0.5 - 8 - 1, 0.125, -1});
}

TEST_CASE("files that are no gated layers are refused") {
  const TemporaryFolder folder;
  const std::vector<double> numbers(6, 1.0);
  const auto tensor = [&](const char* name, Shape shape) {
    Index count = 1;
    for (const Index n : shape) count *= n;
    const std::span<const double> values(numbers.data(), static_cast<std::size_t>(count));
    return tensor_to_write<double>(name, values, std::move(shape));
  };
  const auto whole = [&](Shape weight, Shape bias, Shape map, Shape intercept) {
    return std::vector<TensorToWrite>{tensor("layers.3.gate.weight", std::move(weight)),
                                      tensor("layers.3.gate.bias", std::move(bias)),
                                      tensor("layers.3.map.weight", std::move(map)),
                                      tensor("layers.3.map.bias", std::move(intercept))};
  };
  CHECK(reading(folder, whole({2}, {1}, {2, 2}, {2})) == "");
  CHECK(reading(folder, whole({2}, {1}, {2, 2}, {2}), "other/1") == "gate/malformed-file");
  CHECK(reading(folder, whole({2}, {2}, {2, 2}, {2})) == "gate/malformed-file");
  CHECK(reading(folder, whole({2}, {1}, {2, 3}, {2})) == "gate/malformed-file");
  CHECK(reading(folder, whole({2}, {1}, {4}, {2})) == "gate/malformed-file");
  CHECK(reading(folder, whole({2}, {1}, {2, 2}, {1})) == "gate/malformed-file");
  CHECK(reading(folder, whole({2, 1}, {1}, {2, 2}, {2})) == "gate/malformed-file");
  for (const char* name : {"layers.03.gate.weight", "layers.3.gate.scale", "layers..map.bias", "x",
                           "layers.99999999999999999999.gate.bias"}) {
    CAPTURE(name);
    CHECK(reading(folder, {tensor(name, {1})}) == "gate/malformed-file");
  }
  CHECK(reading(folder, {tensor("layers.3.gate.weight", {2})}) == "tensor/missing");
}
