// Layers in files: loaded with their check vectors, refused where those fail.
#include "wanamaker/embed/artefact.hpp"

#include <functional>
#include <limits>
#include <string>

#include "embed_artefact.hpp"

namespace {

using namespace wanamaker_test;

/// The error of loading the planted layer after `spoil` changed what is written.
std::string refusal_of_layer(const std::function<void(GatedLayer&)>& spoil,
                             double tolerance = 1e-3) {
  const TemporaryFolder folder;
  EmbedBackend backend;
  GatedLayer layer = planted_gated_layer(backend, 3);
  spoil(layer);
  write_gated_layers<float>(folder.path(), {layer});
  return error_id([&] {
    load_gated_mlp(backend, folder.path(), 3,
                   AnyMlp<EmbedBackend>(dense_of(backend, PlainLayer(planted_width))), tolerance);
  });
}

}  // namespace

TEST_CASE("a layer comes from its file as one policy that routes") {
  const TemporaryFolder folder;
  EmbedBackend backend;
  write_gated_layers<float>(folder.path(),
                            {planted_gated_layer(backend, 1), planted_gated_layer(backend, 3)});
  const PlainLayer plain(planted_width);
  const StoredGatedMlp<EmbedBackend> gated =
      load_gated_mlp(backend, folder.path(), 3, AnyMlp<EmbedBackend>(dense_of(backend, plain)));
  CHECK(gated.surrogate_rows() + gated.mlp_rows() == 0);  // the check does not count
  const Numbers values = short_numbers(21, 20 * planted_width);
  HostRows<half> x(20, planted_width, planted_width + 1, 0), y(20, planted_width, planted_width, 1);
  x.fill(values);
  Workspace<EmbedBackend> workspace(backend);
  run_foreign(backend, gated, x.view, y.view, workspace);
  for (Index i = 0; i < 20; ++i) {
    const Numbers expected = plain(values.data() + i * planted_width);
    CHECK(all_close(y.row(i), expected, 0, 8 * embed_tolerance<half>(planted_width)));
  }
  CHECK(gated.surrogate_rows() > 0);
  CHECK(gated.mlp_rows() > 0);
  CHECK(error_id([&] { load_gated_mlp(backend, folder.path(), 2, AnyMlp<EmbedBackend>()); }) ==
        "gate/no-such-layer");
}

TEST_CASE("checked rows take both paths, by a margin, where the gate has two") {
  EmbedBackend backend;
  const LayerCheck check = planted_gated_layer(backend, 0).check;
  REQUIRE(check.score.size() == 8);
  const PlainLayer plain(planted_width);
  double norm = 0;
  for (const double w : plain.gate) norm += w * w;
  for (std::size_t i = 0; i < 8; ++i) {
    const double sign = i % 2 == 0 ? 1 : -1;
    CHECK(std::abs(check.score[i] - sign * std::sqrt(norm)) < 1e-5);
    const double* const row = check.input.data() + i * static_cast<std::size_t>(planted_width);
    CHECK(std::abs(check.score[i] - plain.score(row)) < 1e-12);
    CHECK(static_cast<double>(static_cast<float>(*row)) == *row);
  }
  for (const double bias : {-1e300, 1e300}) {
    GatedLayer one_way = planted_gated_layer(backend, 0);
    one_way.gate.bias = bias;
    const std::vector<double> rows = detail::checked_rows(one_way.gate);
    for (const double v : rows) CHECK(std::abs(v) < 10);
  }
}

TEST_CASE("a layer that computes something else is refused") {
  CHECK(refusal_of_layer([](GatedLayer&) {}) == "");
  CHECK(refusal_of_layer([](GatedLayer& own) { own.check = {}; }) == "check/malformed");
  CHECK(refusal_of_layer([](GatedLayer& own) { own.map.weight[7] += 0.1; }) == "check/mismatch");
  CHECK(refusal_of_layer([](GatedLayer& own) { own.map.bias[2] *= -1; }) == "check/mismatch");
  CHECK(refusal_of_layer([](GatedLayer& own) { own.gate.weights[1] += 0.1; }) == "check/mismatch");
  CHECK(refusal_of_layer([](GatedLayer& own) { own.gate.bias += 0.1; }) == "check/mismatch");
  // Another MLP than the one that the gate was fitted beside.
  CHECK(refusal_of_layer([](GatedLayer& own) {
          for (double& v : own.check.output) v *= 1.01;
        }) == "check/mismatch");
  CHECK(refusal_of_layer(
            [](GatedLayer& own) {
              for (double& v : own.check.output) v *= 1.01;
            },
            0.02) == "");
}

TEST_CASE("check vectors of other shapes are refused, and kept as they are otherwise") {
  const TemporaryFolder folder;
  EmbedBackend backend;
  const GatedLayer layer = planted_gated_layer(backend, 3);
  write_gated_layers<float>(folder.path(), {layer});
  const LayerCheck check = read_gated_layer(folder.path(), 3).check;
  CHECK(check.input == layer.check.input);
  CHECK(check.score == layer.check.score);
  CHECK(check.output == layer.check.output);
  const Numbers numbers(100, 0.0);
  for (const auto& [input, output] : {std::pair<Shape, Shape>{{2, 2}, {2, 2}},
                                      {{3, 2}, {2, 2}},
                                      {{2, 2}, {2, 3}},
                                      {{4}, {2, 2}}}) {
    std::vector<TensorToWrite> tensors;
    const auto add = [&](const char* name, const Shape& shape) {
      const auto count = static_cast<std::size_t>(*element_count(shape));
      tensors.push_back(tensor_to_write<double>(std::string("layers.3.") + name,
                                                std::span(numbers.data(), count), shape));
    };
    add("gate.weight", {2});
    add("gate.bias", {1});
    add("map.weight", {2, 2});
    add("map.bias", {2});
    add("check.score", {2});
    add("check.input", input);
    add("check.output", output);
    write_safetensors(folder / gated_layers_file, tensors, {{"format", gated_layers_format}});
    const bool is_right = input == Shape{2, 2} && output == Shape{2, 2};
    CHECK(error_id([&] { read_gated_layer(folder.path(), 3); }) ==
          (is_right ? "" : "gate/malformed-file"));
  }
}
