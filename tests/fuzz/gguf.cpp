// GGUF files: whatever is accepted reads as its header says, and its settings are a possible model.
#include "wanamaker/io/gguf.hpp"

#include "fuzz/config_properties.hpp"
#include "fuzz/fuzzing.hpp"
#include "wanamaker/io/gguf_config.hpp"
#include "wanamaker/io/gguf_writer.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

void read_value(const GgufValue& value) {
  const bool is_scalar = !value.is_array();
  must_hold(value.texts().has_value() <= value.is_array(), "texts of what is no array");
  must_hold(value.text().has_value() <= is_scalar, "a text of an array");
  must_hold(value.integer().has_value() <= is_scalar, "an integer of an array");
  if (const auto numbers = value.numbers()) {
    must_hold(numbers->size() == value.count(), "another number of elements");
  }
  value.boolean();
  value.number();
  value.integers();
}

void read_gguf(std::string_view input) {
  const GgufFile file = GgufFile::open(fuzz_file("m.gguf", input));
  for (const auto& [key, value] : file.metadata()) read_value(value);
  for (const auto& [name, info] : file.tensors()) {
    const auto elements = static_cast<std::size_t>(element_count(info.shape).value());
    must_hold(info.elements() == elements, "another number of elements than the shape's");
    must_hold(file.read<float>(name, NonFinite::allow).size() == elements, "other numbers");
    must_hold(file.bytes(name).size() == info.end - info.begin, "other bytes");
  }
  must_hold_of_config(gguf_model_config(file));
}

GgufMetadataToWrite llama_metadata() {
  return {{"general.architecture", std::string("llama")},
          {"llama.embedding_length", std::uint32_t{32}},
          {"llama.block_count", std::uint32_t{1}},
          {"llama.attention.head_count", std::uint32_t{2}},
          {"llama.feed_forward_length", std::uint32_t{64}},
          {"llama.context_length", std::uint32_t{128}},
          {"llama.attention.layer_norm_rms_epsilon", 1e-5f},
          {"llama.rope.scaling.type", std::string("linear")},
          {"llama.rope.scaling.factor", 2.0f},
          {"tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"}},
          {"tokenizer.ggml.bos_token_id", std::uint32_t{1}}};
}

std::vector<std::string> gguf_seeds() {
  const std::vector<float> values(64, 0.5f);
  const std::filesystem::path path = fuzz_file("seed.gguf", "");
  std::vector<std::string> seeds;
  for (const GgufType type : {GgufType::float32, GgufType::float16, GgufType::q8_0}) {
    write_gguf(path, llama_metadata(), {{"token_embd.weight", type, {2, 32}, values}});
    seeds.push_back(read_bytes(path));
  }
  write_gguf(path, {}, {});
  seeds.push_back(read_bytes(path));
  return seeds;
}

const FuzzRegistration gguf_target(
    {.name = "gguf", .read = read_gguf, .seeds = gguf_seeds, .bounds = {.memory_factor = 64}});

}  // namespace
