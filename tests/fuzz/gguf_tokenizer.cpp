// The tokenizer of a GGUF file: whatever is accepted encodes and decodes.
#include "wanamaker/text/gguf_tokenizer.hpp"

#include "fuzz/fuzzing.hpp"
#include "fuzz/tokenizer_properties.hpp"
#include "wanamaker/io/gguf_writer.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

void read_tokenizer_of_gguf(std::string_view input) {
  const GgufFile file = GgufFile::open(fuzz_file("t.gguf", input));
  use_tokenizer(Tokenizer(read_gguf_tokenizer(file)));
}

GgufMetadataToWrite byte_level_keys(const std::string& pre_tokenizer) {
  return {{"general.architecture", std::string("llama")},
          {"tokenizer.ggml.model", std::string("gpt2")},
          {"tokenizer.ggml.pre", pre_tokenizer},
          {"tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "ab", "<s>", "\u0120"}},
          {"tokenizer.ggml.token_type", std::vector<std::int32_t>{1, 1, 1, 3, 1}},
          {"tokenizer.ggml.merges", std::vector<std::string>{"a b"}},
          {"tokenizer.ggml.bos_token_id", std::uint32_t{3}}};
}

GgufMetadataToWrite sentencepiece_keys() {
  return {{"general.architecture", std::string("llama")},
          {"tokenizer.ggml.model", std::string("llama")},
          {"tokenizer.ggml.tokens",
           std::vector<std::string>{"<unk>", "<s>", "a", "b", "ab", "\u2581", "\u2581a"}},
          {"tokenizer.ggml.token_type", std::vector<std::int32_t>{2, 3, 1, 1, 1, 1, 1}},
          {"tokenizer.ggml.scores", std::vector<float>{0, 0, -1, -2, -3, -4, -5}},
          {"tokenizer.ggml.add_eos_token", true},
          {"tokenizer.ggml.eos_token_id", std::uint32_t{1}}};
}

std::vector<std::string> gguf_tokenizer_seeds() {
  const std::filesystem::path path = fuzz_file("seed.gguf", "");
  std::vector<std::string> seeds;
  for (const GgufMetadataToWrite& keys :
       {byte_level_keys("gpt-2"), byte_level_keys("llama-bpe"), byte_level_keys("smollm"),
        byte_level_keys("qwen2"), sentencepiece_keys()}) {
    write_gguf(path, keys, {});
    seeds.push_back(read_bytes(path));
  }
  return seeds;
}

const FuzzRegistration gguf_tokenizer_target({.name = "gguf_tokenizer",
                                              .read = read_tokenizer_of_gguf,
                                              .seeds = gguf_tokenizer_seeds,
                                              .bounds = tokenizer_bounds});

}  // namespace
