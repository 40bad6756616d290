// config.json and weights that are right in other spellings, and that are wrong.
#include "wanamaker/io/model_loader.hpp"

#include <map>
#include <string>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/io/safetensors_writer.hpp"

namespace {

using namespace wanamaker;
using wanamaker_test::error_id;
using wanamaker_test::TemporaryFolder;
using B = ReferenceBackend<double>;

const std::filesystem::path models = std::string(WANAMAKER_EXAMPLES_DATA) + "/models";

ModelConfig config_with(const std::string& model, const Json& changes) {
  Json config = parse_json_file(models / model / "config.json");
  config.merge_patch(changes);
  return model_config_from_json(config, "config.json");
}
std::string config_fault(const std::string& model, const Json& changes) {
  return error_id([&] { config_with(model, changes); });
}

struct StoredTensor {
  Shape shape;
  std::vector<float> values;
};
using Tensors = std::map<std::string, StoredTensor>;

Tensors tensors_of(const std::string& model) {
  const SafetensorsFile file = SafetensorsFile::open(models / model / "model.safetensors");
  Tensors tensors;
  for (const std::string& name : file.names()) {
    tensors[name] = {file.info(name).shape, file.read<float>(name)};
  }
  return tensors;
}

// A model folder with these tensors and the config of `model`.
void write_model(const std::filesystem::path& folder, const std::string& model,
                 const Tensors& tensors, const Json& changes = Json::object()) {
  Json config = parse_json_file(models / model / "config.json");
  config.merge_patch(changes);
  wanamaker_test::write_bytes(folder / "config.json", config.dump());
  std::vector<TensorToWrite> out;
  for (const auto& [name, tensor] : tensors) {
    out.push_back(tensor_to_write<float>(name, tensor.values, tensor.shape));
  }
  write_safetensors(folder / "model.safetensors", std::move(out));
}

std::vector<double> losses_of(const std::filesystem::path& folder) {
  B backend;
  const AnyTransformer<B> model = load_model(backend, folder);
  Workspace<B> workspace(backend);
  const std::vector<TokenId> ids{17, 300, 4000, 5};
  const PackedBatch<B> batch(backend, ids);
  auto residual = make_matrix(backend, batch.rows(), model.config().width);
  model.forward(backend, batch, residual.view(), workspace);
  return model.token_losses(backend, residual.view(), all_next_tokens(batch), workspace);
}

TEST_CASE("settings in old and new spellings mean the same") {
  const ModelConfig now = config_with("books-neox", Json::object());
  const ModelConfig old =
      config_with("books-neox",
                  {{"rope_parameters", nullptr}, {"rotary_pct", 0.25}, {"rotary_emb_base", 10000}});
  CHECK(now.rotary_width == 8);
  CHECK(old.rotary_width == now.rotary_width);
  CHECK(old.rope_theta == now.rope_theta);
  CHECK(config_with("books-gpt2", {{"n_inner", 700}}).hidden == 700);
  CHECK(config_with("books-gpt2", Json::object()).hidden == 768);
  CHECK(config_with("books-gpt2", {{"activation_function", "gelu"}}).activation ==
        ActivationKind::gelu_erf);
  CHECK(config_with("books-gpt2", {{"tie_word_embeddings", nullptr}}).tied_head);
}

TEST_CASE("settings that are missing, impossible, unknown or not implemented are refused") {
  CHECK(config_fault("books-gpt2", {{"n_embd", nullptr}}) == "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"n_layer", -1}}) == "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"n_head", 5}}) == "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"n_embd", 1e300}}) == "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"layer_norm_epsilon", "small"}}) == "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"activation_function", "quick_gelu"}}) ==
        "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"model_type", "mamba"}}) == "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"add_cross_attention", true}}) == "config/not-implemented");
  CHECK(config_fault("books-neox", {{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}}) ==
        "config/not-implemented");
  CHECK(config_fault("books-neox", {{"rotary_pct", 0.01}, {"rope_parameters", nullptr}}) ==
        "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"logit_softcap", 30}}) == "config/unknown-setting");
  CHECK(config_fault("books-gpt2", {{"quantization_config", {{"bits", 4}}}}) ==
        "config/not-implemented");
}

TEST_CASE("tensor names with and without prefix, stray buffers, a written tied head") {
  const std::vector<double> expected = losses_of(models / "books-gpt2");
  Tensors plain;
  for (auto& [name, tensor] : tensors_of("books-gpt2")) {
    plain[name.substr(std::string("transformer.").size())] = tensor;
  }
  plain["h.0.attn.bias"] = {{1, 1, 2, 2}, {1, 0, 1, 1}};
  plain["h.0.attn.masked_bias"] = {{1}, {-10000}};
  plain["lm_head.weight"] = plain["wte.weight"];
  const TemporaryFolder folder;
  write_model(folder.path(), "books-gpt2", plain);
  CHECK(losses_of(folder.path()) == expected);
}

TEST_CASE("a head that is not tied is used, and rows beyond the vocabulary do not count") {
  const std::vector<double> expected = losses_of(models / "books-gpt2");
  Tensors tensors = tensors_of("books-gpt2");
  StoredTensor& embedding = tensors["transformer.wte.weight"];
  tensors["lm_head.weight"] = embedding;
  const TemporaryFolder untied;
  write_model(untied.path(), "books-gpt2", tensors, {{"tie_word_embeddings", false}});
  CHECK(losses_of(untied.path()) == expected);
  embedding.shape[0] += 2;
  embedding.values.resize(embedding.values.size() + 2 * 192, 50.0f);
  tensors.erase("lm_head.weight");
  const TemporaryFolder padded;
  write_model(padded.path(), "books-gpt2", tensors);
  CHECK(losses_of(padded.path()) == expected);
}

TEST_CASE("fused rows of GPT-NeoX are put in the order q, k, v") {
  const std::vector<Index> order = detail::fused_row_order(2, 3);
  CHECK(order == std::vector<Index>{0, 1, 2, 9, 10, 11, 3, 4, 5, 12, 13, 14, 6, 7, 8, 15, 16, 17});
}

TEST_CASE("weights that are missing, misshapen, not finite or of no use are refused") {
  const auto fault = [](const std::string& model, const auto& change) {
    Tensors tensors = tensors_of(model);
    change(tensors);
    const TemporaryFolder folder;
    write_model(folder.path(), model, tensors);
    return error_id([&] {
      B backend;
      load_model(backend, folder.path());
    });
  };
  CHECK(fault("books-gpt2", [](Tensors& t) { t.erase("transformer.h.3.mlp.c_fc.bias"); }) ==
        "tensor/missing");
  CHECK(fault("books-gpt2", [](Tensors& t) {
          t["transformer.ln_f.weight"] = {{191}, std::vector<float>(191)};
        }) == "tensor/shape");
  CHECK(fault("books-gpt2", [](Tensors& t) {
          t["transformer.wte.weight"] = {{4000, 192}, std::vector<float>(4000 * 192)};
        }) == "tensor/shape");
  CHECK(fault("books-neox", [](Tensors& t) { t.erase("embed_out.weight"); }) == "tensor/missing");
  CHECK(fault("books-neox", [](Tensors& t) {
          t["gpt_neox.layers.0.attention.q_norm.weight"] = {{192}, std::vector<float>(192)};
        }) == "model/unused-tensor");
  CHECK(fault("books-gpt2", [](Tensors& t) {
          t["transformer.h.1.mlp.c_fc.weight"].values[5] = std::numeric_limits<float>::quiet_NaN();
        }) == "tensor/value");
}

}  // namespace
