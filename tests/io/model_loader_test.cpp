// config.json and weights that are right in other spellings, and that are wrong.
#include "wanamaker/io/model_loader.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/io/gguf_writer.hpp"
#include "wanamaker/io/safetensors_writer.hpp"

namespace {

using namespace wanamaker;
using wanamaker_test::error_id;
using wanamaker_test::TemporaryFolder;
using B = ReferenceBackend<double>;

const std::filesystem::path models = std::string(WANAMAKER_EXAMPLES_DATA) + "/models";

// In the spelling of transformers 5; the folder has the old one.
const Json rotary_of_today{
    {"rotary_pct", nullptr},
    {"rotary_emb_base", nullptr},
    {"rope_parameters",
     {{"partial_rotary_factor", 0.25}, {"rope_theta", 10000.0}, {"rope_type", "default"}}}};

ModelConfig config_with(const std::string& model, const Json& changes) {
  Json config = parse_json_file(models / model / "config.json");
  if (model == "books-neox") config.merge_patch(rotary_of_today);
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

TEST_CASE("a text may end with one of several tokens; ids outside the vocabulary are left out") {
  using Ids = std::vector<TokenId>;
  const auto ends = [](const Json& value) {
    return config_with("books-gpt2", {{"eos_token_id", value}}).eos;
  };
  CHECK(ends(7) == Ids{7});
  CHECK(ends({7, 0, 4095}) == Ids{7, 0, 4095});
  CHECK(ends({4096, 3, -1, "x"}) == Ids{3});
  CHECK(ends(nullptr).empty());
  CHECK(ends(Json::array()).empty());
  CHECK(config_with("books-gpt2", {{"bos_token_id", {5, 6}}}).bos == 5);
}

TEST_CASE("settings that are missing, impossible, unknown or not implemented are refused") {
  CHECK(config_fault("books-gpt2", {{"n_embd", nullptr}}) == "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"n_layer", -1}}) == "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"n_head", 5}}) == "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"n_embd", 1e300}}) == "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"layer_norm_epsilon", "small"}}) == "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"activation_function", "quick_gelu"}}) ==
        "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"model_type", "mamba"}}) == "config/not-implemented");
  CHECK(config_fault("books-gpt2", {{"model_type", ""}}) == "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"add_cross_attention", true}}) == "config/not-implemented");
  CHECK(config_fault("books-neox", {{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}}) ==
        "config/bad-setting");  // two settings that differ
  const auto rope_fault = [](const Json& rope) {
    return config_fault("books-neox", {{"rope_parameters", nullptr}, {"rope_scaling", rope}});
  };
  CHECK(rope_fault({{"type", "linear"}, {"factor", 2}}).empty());
  CHECK(rope_fault({{"type", "linear"}}) == "config/bad-setting");
  CHECK(rope_fault({{"type", "dynamic"}, {"factor", 2}}) == "config/not-implemented");
  CHECK(rope_fault({{"type", "longrope"}}) == "config/not-implemented");
  CHECK(rope_fault({{"type", "yarn"}, {"factor", 2}}) == "config/bad-setting");
  CHECK(rope_fault({{"type", "linear"}, {"factor", 2}, {"beta", 1}}) == "config/unknown-setting");
  CHECK(rope_fault({{"rope_type", "llama3"},
                    {"factor", 8},
                    {"low_freq_factor", 4},
                    {"high_freq_factor", 1},
                    {"original_max_position_embeddings", 8192}}) == "config/bad-setting");
  CHECK(config_fault("books-neox", {{"rotary_pct", 0.01}, {"rope_parameters", nullptr}}) ==
        "config/bad-setting");
  CHECK(config_fault("books-gpt2", {{"logit_softcap", 30}}) == "config/unknown-setting");
  CHECK(config_fault("books-gpt2", {{"quantization_config", {{"bits", 4}}}}) ==
        "config/not-implemented");
}

TEST_CASE("rotary settings that no number of entries can have are refused") {
  // The cast of such a share to an integer was undefined.
  for (const double share : {1e300, 1.5, 1e-300}) {
    CHECK(config_fault("books-neox", {{"rotary_pct", share}, {"rope_parameters", nullptr}}) ==
          "config/bad-setting");
  }
  // 200 bytes asked for a table of 8 GiB.
  const Json wide{{"hidden_size", 1 << 30},
                  {"num_attention_heads", 1},
                  {"rope_parameters", {{"rope_type", "linear"}, {"factor", 2}}}};
  CHECK(config_fault("books-neox", wide) == "config/bad-setting");
}

TEST_CASE("rotary settings that are finite and give frequencies that are not are refused") {
  const auto yarn_fault = [](double theta, double weight) {
    return config_fault("books-neox", {{"rope_parameters",
                                        {{"rope_type", "yarn"},
                                         {"rope_theta", theta},
                                         {"factor", 2},
                                         {"original_max_position_embeddings", 256},
                                         {"mscale", weight},
                                         {"mscale_all_dim", 1.0}}}});
  };
  CHECK(yarn_fault(10000.0, 1.0).empty());
  CHECK(yarn_fault(10000.0, 1e300).empty());
  CHECK(yarn_fault(1.0, 1.0) == "config/bad-setting");  // log θ is a divisor
  CHECK(yarn_fault(10000.0, 1.7e308).empty());
  CHECK(config_fault("books-neox",
                     {{"rope_parameters", {{"rope_type", "linear"}, {"factor", 5e-324}}}})
            .empty());
  CHECK(config_fault("books-neox", {{"rope_parameters",
                                     {{"rope_type", "llama3"},
                                      {"factor", 5e-324},
                                      {"low_freq_factor", 1.0},
                                      {"high_freq_factor", 4.0},
                                      {"original_max_position_embeddings", 1e-300}}}}) ==
        "config/bad-setting");
}

TEST_CASE("a long name in a file does not make a long message") {
  try {
    config_with("books-gpt2", {{std::string(1 << 20, 'n'), 1}});
    FAIL("no error");
  } catch (const FormatError& error) {
    CHECK(error.id() == "config/unknown-setting");
    CHECK(std::string(error.what()).size() < 1000);
  }
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

// --- GGUF ------------------------------------------------------------------------------------

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

// Names as llama.cpp's converter gives them.
std::string name_in_gguf(std::string name) {
  const std::pair<const char*, const char*> parts[] = {{"transformer.", ""},
                                                       {"gpt_neox.", ""},
                                                       {"model.", ""},
                                                       {"embed_tokens", "token_embd"},
                                                       {"wte", "token_embd"},
                                                       {"wpe", "position_embd"},
                                                       {"embed_in", "token_embd"},
                                                       {"embed_out", "output"},
                                                       {"lm_head", "output"},
                                                       {"ln_f", "output_norm"},
                                                       {"final_layer_norm", "output_norm"},
                                                       {"layers.", "blk."},
                                                       {"attn.c_attn", "attn_qkv"},
                                                       {"attn.c_proj", "attn_output"},
                                                       {"attention.query_key_value", "attn_qkv"},
                                                       {"attention.dense", "attn_output"},
                                                       {"self_attn.q_proj", "attn_q"},
                                                       {"self_attn.k_proj", "attn_k"},
                                                       {"self_attn.v_proj", "attn_v"},
                                                       {"self_attn.o_proj", "attn_output"},
                                                       {"ln_1", "attn_norm"},
                                                       {"post_attention_layernorm", "ffn_norm"},
                                                       {"input_layernorm", "attn_norm"},
                                                       {"ln_2", "ffn_norm"},
                                                       {"mlp.c_fc", "ffn_up"},
                                                       {"mlp.c_proj", "ffn_down"},
                                                       {"mlp.dense_h_to_4h", "ffn_up"},
                                                       {"mlp.dense_4h_to_h", "ffn_down"},
                                                       {"mlp.gate_proj", "ffn_gate"},
                                                       {"mlp.up_proj", "ffn_up"},
                                                       {"mlp.down_proj", "ffn_down"}};
  for (const auto& [from, to] : parts) name = replaced(name, from, to);
  if (name.starts_with("h.")) name = "blk" + name.substr(1);
  return name == "norm.weight" ? "output_norm.weight" : name;
}

StoredTensor transposed(const StoredTensor& t) {
  StoredTensor result{{t.shape[1], t.shape[0]}, t.values};
  for (Index i = 0; i < t.shape[0]; ++i) {
    for (Index j = 0; j < t.shape[1]; ++j) {
      result.values[static_cast<std::size_t>(j * t.shape[0] + i)] =
          t.values[static_cast<std::size_t>(i * t.shape[1] + j)];
    }
  }
  return result;
}

// reshape(outer, a, b, rest).swapaxes(1, 2), as converters do it.
StoredTensor axes_swapped(const StoredTensor& t, Index outer, Index a, Index b) {
  StoredTensor result = t;
  const Index rest = static_cast<Index>(t.values.size()) / (outer * a * b);
  std::size_t at = 0;
  for (Index o = 0; o < outer; ++o) {
    for (Index j = 0; j < b; ++j) {
      for (Index i = 0; i < a; ++i) {
        for (Index k = 0; k < rest; ++k) {
          result.values[at++] =
              t.values[static_cast<std::size_t>(((o * a + i) * b + j) * rest + k)];
        }
      }
    }
  }
  return result;
}

void write_gguf_model(const std::filesystem::path& path, const Tensors& tensors,
                      const GgufMetadataToWrite& metadata, GgufType type = GgufType::float32) {
  std::vector<GgufTensorToWrite> out;
  for (const auto& [name, t] : tensors) {
    out.push_back({name, t.shape.size() == 2 ? type : GgufType::float32, t.shape, t.values});
  }
  write_gguf(path, metadata, out);
}

GgufMetadataToWrite gguf_metadata(const std::string& architecture, std::uint32_t vocabulary,
                                  const std::vector<std::uint32_t>& sizes) {
  const std::string at = architecture + ".";
  return {{"general.architecture", architecture},  {at + "vocab_size", vocabulary},
          {at + "embedding_length", sizes[0]},     {at + "block_count", sizes[1]},
          {at + "attention.head_count", sizes[2]}, {at + "feed_forward_length", sizes[3]},
          {at + "context_length", sizes[4]},       {"tokenizer.ggml.bos_token_id", sizes[5]}};
}

GgufMetadataToWrite with(GgufMetadataToWrite metadata, const std::string& key,
                         const GgufValueToWrite& value) {
  for (auto& [present, own] : metadata) {
    if (present == key) {
      own = value;
      return metadata;
    }
  }
  metadata.emplace_back(key, value);
  return metadata;
}

GgufMetadataToWrite books_metadata(const std::string& architecture) {
  return with(gguf_metadata(architecture, 4096, {192, 6, 6, 768, 256, 3}),
              architecture + ".attention.layer_norm_epsilon", 1e-5f);
}

// The loader reads epsilon as it is in the file, a float; so must the folder it is compared with.
const Json float_epsilon = static_cast<double>(1e-5f);

TEST_CASE("a GGUF file of GPT-2 is the same model as its folder") {
  const TemporaryFolder folder;
  const Tensors tensors = tensors_of("books-gpt2");
  write_model(folder.path(), "books-gpt2", tensors, {{"layer_norm_epsilon", float_epsilon}});
  Tensors converted;
  for (const auto& [name, t] : tensors) {
    const bool is_conv = t.shape.size() == 2 && name.find(".h.") != name.npos;
    converted[name_in_gguf(name)] = is_conv ? transposed(t) : t;
  }
  write_gguf_model(folder / "books.gguf", converted, books_metadata("gpt2"));
  CHECK(losses_of(folder / "books.gguf") == losses_of(folder.path()));
  B backend;
  const ModelConfig config = load_model(backend, folder / "books.gguf").config();
  CHECK(config.name == "books");
  CHECK(config.bos == 3);
  CHECK(config.tied_head);
  // An untied head is used.
  converted["output.weight"] = converted["token_embd.weight"];
  write_gguf_model(folder / "untied.gguf", converted, books_metadata("gpt2"));
  CHECK(losses_of(folder / "untied.gguf") == losses_of(folder.path()));
}

TEST_CASE("a GGUF file of GPT-NeoX is the same model as its folder") {
  const TemporaryFolder folder;
  const Tensors tensors = tensors_of("books-neox");
  write_model(folder.path(), "books-neox", tensors, {{"layer_norm_eps", float_epsilon}});
  Tensors converted;
  for (const auto& [name, t] : tensors) {
    // (heads, 3, width of a head) to (3, heads, width of a head)
    const bool is_fused = name.find("query_key_value") != name.npos;
    converted[name_in_gguf(name)] = is_fused ? axes_swapped(t, 1, 6, 3) : t;
  }
  const GgufMetadataToWrite metadata =
      with(with(books_metadata("gptneox"), "gptneox.rope.dimension_count", std::uint32_t{8}),
           "gptneox.use_parallel_residual", true);
  write_gguf_model(folder / "books.gguf", converted, metadata);
  CHECK(losses_of(folder / "books.gguf") == losses_of(folder.path()));
  write_gguf_model(folder / "sequential.gguf", converted,
                   with(metadata, "gptneox.use_parallel_residual", false));
  CHECK(losses_of(folder / "sequential.gguf") != losses_of(folder.path()));
}

// A random Llama-type model: 4 query heads and 2 key heads, width 32 unless told otherwise.
struct TinyLlama {
  bool has_bias = false;
  Index width = 32;
  Tensors tensors{};

  explicit TinyLlama(bool bias, Index d = 32) : has_bias(bias), width(d) {
    add("model.embed_tokens.weight", {4100, d});
    add("model.norm.weight", {d});
    add("lm_head.weight", {4100, d});
    for (const std::string at : {"model.layers.0.", "model.layers.1."}) {
      add(at + "input_layernorm.weight", {d});
      add(at + "post_attention_layernorm.weight", {d});
      add(at + "self_attn.o_proj.weight", {d, d});
      add(at + "mlp.gate_proj.weight", {2 * d, d});
      add(at + "mlp.up_proj.weight", {2 * d, d});
      add(at + "mlp.down_proj.weight", {d, 2 * d});
      for (const char* part : {"q", "k", "v"}) {
        const Index rows = *part == 'q' ? d : d / 2;
        add(at + "self_attn." + part + "_proj.weight", {rows, d});
        if (has_bias) add(at + "self_attn." + part + "_proj.bias", {rows});
      }
    }
  }

  void write_folder(const std::filesystem::path& folder, const Json& changes) const {
    Json config{{"model_type", has_bias ? "qwen2" : "llama"},
                {"vocab_size", 4100},
                {"hidden_size", width},
                {"num_hidden_layers", 2},
                {"num_attention_heads", 4},
                {"num_key_value_heads", 2},
                {"intermediate_size", 2 * width},
                {"max_position_embeddings", 64},
                {"rms_norm_eps", float_epsilon},
                {"rope_theta", 5000},
                {"use_sliding_window", false}};
    config.merge_patch(changes);
    wanamaker_test::write_bytes(folder / "config.json", config.dump());
    std::vector<TensorToWrite> out;
    for (const auto& [name, t] : tensors) {
      out.push_back(tensor_to_write<float>(name, t.values, t.shape));
    }
    write_safetensors(folder / "model.safetensors", std::move(out));
  }

  Tensors converted() const {
    Tensors result;
    for (const auto& [name, t] : tensors) {
      const bool q = name.find("q_proj") != name.npos, k = name.find("k_proj") != name.npos;
      const bool permuted = !has_bias && (q || k);
      result[name_in_gguf(name)] = permuted ? axes_swapped(t, q ? 4 : 2, 2, width / 8) : t;
    }
    return result;
  }

  GgufMetadataToWrite metadata() const {
    const std::string a = has_bias ? "qwen2" : "llama";
    const auto d = static_cast<std::uint32_t>(width);
    return with(with(with(gguf_metadata(a, 4100, {d, 2, 4, 2 * d, 64, 1}),
                          a + ".attention.head_count_kv", std::uint32_t{2}),
                     a + ".attention.layer_norm_rms_epsilon", 1e-5f),
                a + ".rope.freq_base", 5000.0f);
  }

 private:
  void add(const std::string& name, Shape shape) {
    StoredTensor& t = tensors[name];
    t.shape = std::move(shape);
    t.values.resize(static_cast<std::size_t>(*element_count(t.shape)));
    for (float& x : t.values) x = static_cast<float>(random_.uniform() - 0.4);
  }
  RandomStream random_{8};
};

TEST_CASE("GGUF files of Llama and Qwen2 are the same models as their folders") {
  for (const bool has_bias : {false, true}) {
    CAPTURE(has_bias);
    const TinyLlama tiny(has_bias);
    const TemporaryFolder folder;
    tiny.write_folder(folder.path(), Json::object());
    write_gguf_model(folder / "m.gguf", tiny.converted(), tiny.metadata());
    CHECK(losses_of(folder / "m.gguf") == losses_of(folder.path()));
  }
}

TEST_CASE("a model as Q8_0 is near to what it was made from, and the same as dequantised") {
  const TinyLlama tiny(false);
  const TemporaryFolder folder;
  write_gguf_model(folder / "full.gguf", tiny.converted(), tiny.metadata());
  write_gguf_model(folder / "q8.gguf", tiny.converted(), tiny.metadata(), GgufType::q8_0);
  Tensors dequantised = tiny.converted();
  const GgufFile file = GgufFile::open(folder / "q8.gguf");
  for (auto& [name, t] : dequantised) t.values = file.read<float>(name);
  write_gguf_model(folder / "back.gguf", dequantised, tiny.metadata());
  const std::vector<double> q8 = losses_of(folder / "q8.gguf");
  CHECK(q8 == losses_of(folder / "back.gguf"));
  CHECK(q8 != losses_of(folder / "full.gguf"));
}

// Blocks of random bits with scales of about 1/64, so that sums stay small.
std::vector<std::byte> random_blocks(GgufType type, std::size_t blocks, RandomStream& random) {
  const std::size_t size = block_bytes(type);
  std::vector<std::byte> bytes(blocks * size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.below(256));
  const bool has_minimum = type == GgufType::q4_1 || type == GgufType::q5_1 ||
                           type == GgufType::q4_k || type == GgufType::q5_k;
  const std::size_t scale_at = type == GgufType::q6_k ? size - 2 : 0;
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t i = 0; i < (has_minimum ? 2u : 1u); ++i) {
      const std::uint16_t bits = half_bits_from_float(static_cast<float>(random.uniform()) / 64);
      std::memcpy(bytes.data() + b * size + scale_at + 2 * i, &bits, sizeof bits);
    }
  }
  return bytes;
}

TEST_CASE("a model of quantised blocks is the model of their dequantised values, bit for bit") {
  for (const GgufType type : {GgufType::q4_0, GgufType::q4_1, GgufType::q5_0, GgufType::q5_1,
                              GgufType::q8_0, GgufType::q4_k, GgufType::q5_k, GgufType::q6_k}) {
    CAPTURE(gguf_type_name(type));
    const TinyLlama tiny(false, 256);
    const TemporaryFolder folder;
    RandomStream random(15);
    std::map<std::string, std::vector<std::byte>> blocks;
    std::vector<GgufTensorToWrite> tensors;
    Tensors values = tiny.converted();
    for (const auto& [name, t] : values) {
      GgufTensorToWrite tensor{name, GgufType::float32, t.shape, t.values};
      if (t.shape.size() == 2) {
        blocks[name] = random_blocks(type, t.values.size() / block_elements(type), random);
        tensor = {name, type, t.shape, {}, blocks[name]};
      }
      tensors.push_back(tensor);
    }
    write_gguf(folder / "quantised.gguf", tiny.metadata(), tensors);
    const GgufFile file = GgufFile::open(folder / "quantised.gguf");
    for (auto& [name, t] : values) t.values = file.read<float>(name);
    write_gguf_model(folder / "float.gguf", values, tiny.metadata());
    CHECK(losses_of(folder / "quantised.gguf") == losses_of(folder / "float.gguf"));
  }
}

TEST_CASE("rotary frequencies are stretched as the file says") {
  const TinyLlama tiny(false);
  const TemporaryFolder folder;
  const auto losses = [&](const Tensors& tensors, const GgufMetadataToWrite& metadata) {
    write_gguf_model(folder / "m.gguf", tensors, metadata);
    return losses_of(folder / "m.gguf");
  };
  const Tensors plain = tiny.converted();
  Tensors stretched = plain;
  stretched["rope_freqs.weight"] = {{4}, {2, 2, 2, 2}};
  const std::vector<double> expected = losses(stretched, tiny.metadata());
  CHECK(expected != losses(plain, tiny.metadata()));
  const GgufMetadataToWrite twice = with(tiny.metadata(), "llama.rope.scaling.factor", 2.0f);
  CHECK(losses(plain, with(twice, "llama.rope.scaling.type", std::string("linear"))) == expected);
  CHECK(losses(plain, with(tiny.metadata(), "llama.rope.scale_linear", 2.0f)) == expected);
  stretched["rope_freqs.weight"] = {{4}, {1, 1, 1, 1}};
  CHECK(losses(stretched, tiny.metadata()) == losses(plain, tiny.metadata()));
}

TEST_CASE("GGUF files that are no model of ours are refused by name") {
  const TinyLlama tiny(false);
  const TemporaryFolder folder;
  const auto fault = [&](const Tensors& tensors, const GgufMetadataToWrite& metadata) {
    write_gguf_model(folder / "m.gguf", tensors, metadata);
    return error_id([&] {
      B backend;
      load_model(backend, folder / "m.gguf");
    });
  };
  const Tensors good = tiny.converted();
  const auto changed = [&](const std::string& key, const GgufValueToWrite& value) {
    return fault(good, with(tiny.metadata(), key, value));
  };
  CHECK(changed("general.name", std::string("x")).empty());
  for (const float value : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    CHECK(changed("llama.rope.freq_base", value) == "config/bad-setting");
    CHECK(changed("llama.attention.layer_norm_rms_epsilon", value) == "config/bad-setting");
  }
  CHECK(changed("general.architecture", std::string("gemma2")) == "config/not-implemented");
  CHECK(changed("general.architecture", std::uint32_t{1}) == "config/bad-setting");
  CHECK(changed("general.type", std::string("adapter")) == "config/not-implemented");
  CHECK(changed("split.count", std::uint32_t{3}) == "gguf/split");
  CHECK(changed("llama.context_length", std::uint32_t{1} << 31) == "config/bad-setting");
  CHECK(changed("llama.block_count", std::uint32_t{3}) == "tensor/missing");
  CHECK(changed("llama.block_count", std::uint32_t{1}) == "model/unused-tensor");
  CHECK(changed("llama.block_count", std::string("2")) == "config/bad-setting");
  CHECK(changed("llama.embedding_length", std::uint32_t{33}) == "config/bad-setting");
  CHECK(changed("llama.attention.head_count_kv", std::uint32_t{3}) == "config/bad-setting");
  CHECK(changed("llama.attention.head_count_kv", std::vector<std::int32_t>{2, 2}) ==
        "config/bad-setting");
  CHECK(changed("llama.attention.value_length", std::uint32_t{16}) == "config/not-implemented");
  CHECK(changed("llama.attention.layer_norm_rms_epsilon", -1.0f) == "config/bad-setting");
  CHECK(changed("llama.rope.dimension_count", std::uint32_t{4}) == "config/bad-setting");
  CHECK(changed("llama.rope.scaling.type", std::string("longrope")) == "config/not-implemented");
  CHECK(changed("llama.rope.scaling.type", std::string("yarn")) == "config/bad-setting");
  CHECK(changed("llama.expert_count", std::uint32_t{8}) == "config/not-implemented");
  CHECK(changed("llama.logit_scale", 2.0f) == "config/unknown-setting");
  CHECK(changed("clip.vision", 2.0f) == "config/unknown-setting");
  Tensors bad = good;
  bad["rope_freqs.weight"] = {{3}, {1, 1, 1}};
  CHECK(fault(bad, tiny.metadata()) == "config/bad-setting");
  bad["rope_freqs.weight"] = {{4}, {1, 1, 0, 1}};
  CHECK(fault(bad, tiny.metadata()) == "config/bad-setting");
  bad = good;
  bad["blk.0.attn_q_norm.weight"] = {{8}, std::vector<float>(8)};
  CHECK(fault(bad, tiny.metadata()) == "model/unused-tensor");
  bad = good;
  bad.erase("token_embd.weight");
  CHECK(fault(bad, tiny.metadata()) == "config/bad-setting");
}

}  // namespace
