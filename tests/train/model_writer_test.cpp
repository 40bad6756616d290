// Models as Hugging Face folders: what other programs wrote comes out as it was, and what was made
// here is read back.
#include "wanamaker/io/model_writer.hpp"

#include <string>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/io/gguf_model_writer.hpp"
#include "wanamaker/io/model_config.hpp"
#include "wanamaker/io/safetensors.hpp"
#include "wanamaker/train/initialise.hpp"
#include "wanamaker/train/model_shape.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using WrittenBackend = EigenBackend<float>;

ModelShape writable_shape(Family family) {
  ModelShape shape{.family = family,
                   .vocabulary = 31,
                   .width = 24,
                   .layers = 2,
                   .heads = 4,
                   .positions = 16,
                   .hidden = 40};
  if (family == Family::llama) shape.key_heads = 2;
  return shape;
}

AnyTransformer<WrittenBackend> made(WrittenBackend& backend, const ModelConfig& config) {
  AnyTransformer<WrittenBackend> model = make_model(backend, config);
  initialise(backend, model, 17);
  // Biases and gains that are all different, so that a mistaken order would show.
  RandomStream random(18);
  for (const auto& p : parameters<WrittenBackend>(model)) {
    if (p.decays) continue;
    for (Index i = 0; i < p.value.size(); ++i)
      p.value.data[i] += static_cast<float>(random.normal());
  }
  return model;
}

/// The settings by the text that they are written as.
std::string settings_text(const ModelConfig& config) {
  return model_config_json(config).dump();
}

template <class Expected>
void check_parameters(AnyTransformer<WrittenBackend>& model, AnyTransformer<WrittenBackend>& loaded,
                      Expected expected) {
  const auto before = parameters<WrittenBackend>(model);
  const auto after = parameters<WrittenBackend>(loaded);
  REQUIRE(before.size() == after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    CAPTURE(before[i].name);
    REQUIRE(before[i].name == after[i].name);
    REQUIRE(before[i].value.size() == after[i].value.size());
    int differing = 0;
    for (Index j = 0; j < before[i].value.size(); ++j) {
      differing += after[i].value.data[j] == expected(before[i], before[i].value.data[j]) ? 0 : 1;
    }
    CHECK(differing == 0);
  }
}

template <class Expected>
void check_written(AnyTransformer<WrittenBackend>& model, const std::filesystem::path& folder,
                   Expected expected) {
  WrittenBackend backend;
  AnyTransformer<WrittenBackend> loaded = load_model(backend, folder);
  CHECK(settings_text(loaded.config()) == settings_text(model.config()));
  check_parameters(model, loaded, [&](const auto&, float value) { return expected(value); });
}

/// One of every family, and the two topologies of GPT-NeoX.
std::vector<ModelShape> writable_shapes() {
  ModelShape sequential = writable_shape(Family::gpt_neox);
  sequential.parallel_residual = false;
  return {writable_shape(Family::gpt2), writable_shape(Family::gpt_neox), sequential,
          writable_shape(Family::llama)};
}

}  // namespace

TEST_CASE("models of every family are read back as they were written") {
  for (const ModelShape& shape : writable_shapes()) {
    ModelConfig config = model_config(shape);
    config.bos = 0;
    config.eos = {0, 3};
    const std::string name = config.name;
    CAPTURE(name);
    WrittenBackend backend;
    AnyTransformer<WrittenBackend> model = made(backend, config);
    const TemporaryFolder folder;
    write_model(folder.path(), backend, model, false);
    check_written(model, folder.path(), [](float value) { return value; });
    write_model(folder.path(), backend, model);
    CHECK(SafetensorsFile::open(folder / "model.safetensors").tensors().begin()->second.dtype ==
          DType::float16);
    check_written(model, folder.path(), [](float v) { return static_cast<float>(half(v)); });
  }
}

TEST_CASE("models of every family are read back from GGUF as they were written") {
  for (const ModelShape& shape : writable_shapes()) {
    ModelConfig config = model_config(shape);
    config.norm_epsilon = static_cast<float>(config.norm_epsilon);  // as GGUF has it
    const std::string name = config.name;
    CAPTURE(name);
    WrittenBackend backend;
    AnyTransformer<WrittenBackend> model = made(backend, config);
    const TemporaryFolder folder;
    const auto path = folder / (name + ".gguf");
    for (const bool as_float16 : {false, true}) {
      write_gguf_model(path, backend, model, config, {}, as_float16);
      AnyTransformer<WrittenBackend> loaded = load_model(backend, path);
      ModelConfig read = loaded.config();
      read.name = name;
      CHECK(settings_text(read) == settings_text(config));
      // By way of a folder: GGUF has GPT-2's matrices the other way round.
      write_model(folder.path(), backend, loaded, false);
      AnyTransformer<WrittenBackend> again = load_model(backend, folder.path());
      check_parameters(model, again, [&](const auto& p, float value) {
        const bool is_wide = !as_float16 || !p.decays || p.name.ends_with("wpe.weight");
        return is_wide ? value : static_cast<float>(half(value));
      });
    }
  }
}

TEST_CASE("settings that GGUF has no words for are refused") {
  WrittenBackend backend;
  const TemporaryFolder folder;
  ModelConfig config = model_config(writable_shape(Family::gpt2));
  AnyTransformer<WrittenBackend> model = made(backend, config);
  config.scale_by_inverse_layer = true;
  CHECK(error_id([&] { write_gguf_model(folder / "m.gguf", backend, model, config, {}); }) ==
        "model/unwritable");
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("files of other programs are written as they were read") {
  for (const char* name : {"tiny-gpt2", "tiny-neox", "tiny-neox-sequential", "tiny-llama"}) {
    const auto original = shared_data("golden/" + std::string(name));
    if (!original) return;
    CAPTURE(name);
    WrittenBackend backend;
    AnyTransformer<WrittenBackend> model = load_model(backend, *original);
    const TemporaryFolder folder;
    write_model(folder.path(), backend, model, false);
    const SafetensorsFile before = SafetensorsFile::open(*original / "model.safetensors");
    const SafetensorsFile after = SafetensorsFile::open(folder / "model.safetensors");
    std::size_t compared = 0;
    for (const auto& entry : after.tensors()) {
      const std::string& tensor = entry.first;
      CAPTURE(tensor);
      REQUIRE(before.contains(tensor));
      CHECK(before.info(tensor).shape == entry.second.shape);
      CHECK(before.read<float>(tensor) == after.read<float>(tensor));
      ++compared;
    }
    for (const std::string& tensor : before.names()) {
      const bool is_known = after.contains(tensor) || detail::is_stray_buffer(tensor) ||
                            (model.config().tied_head && tensor == "lm_head.weight");
      CHECK_MESSAGE(is_known, tensor);
    }
    CHECK(compared > 20);
    CHECK(settings_text(read_model_config(folder.path())) ==
          settings_text(read_model_config(*original)));
  }
}

TEST_CASE("what a folder cannot hold is refused before anything is written") {
  WrittenBackend backend;
  const TemporaryFolder folder;
  const auto refusal = [&](AnyTransformer<WrittenBackend>& model) {
    return error_id([&] { write_model(folder.path(), backend, model); });
  };
  AnyTransformer<WrittenBackend> model = made(backend, model_config(writable_shape(Family::gpt2)));
  parameters<WrittenBackend>(model).front().value.data[3] = 1e6f;
  CHECK(refusal(model) == "model/storage-overflow");
  model.mlp(1) = AffineMlp<WrittenBackend>(
      Linear<WrittenBackend>(make_matrix(backend, 24, 24), WeightLayout::in_out));
  CHECK(refusal(model) == "model/unwritable");
  ModelConfig scaled = model_config(writable_shape(Family::llama));
  scaled.rope_scaling = linear_rope_scaling(scaled.rotary_width, 2.0);
  AnyTransformer<WrittenBackend> stretched = made(backend, scaled);
  CHECK(refusal(stretched) == "model/unwritable");
  CHECK(std::filesystem::is_empty(folder.path()));
}
