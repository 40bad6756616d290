// config.json: whatever is accepted is a possible model, and is written as the same one.
#include "fuzz/config_properties.hpp"
#include "fuzz/fuzzing.hpp"
#include "wanamaker/io/model_config.hpp"
#include "wanamaker/io/model_config_writing.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

ModelConfig config_of(std::string_view text) {
  return model_config_from_json(parse_json(text, "config.json"), "config.json");
}

void read_config(std::string_view input) {
  const ModelConfig c = config_of(input);
  must_hold_of_config(c);
  const std::string written = model_config_json(c).dump();
  must_hold(model_config_json(config_of(written)).dump() == written, "another model once written");
}

std::vector<std::string> config_seeds() {
  return {
      R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12,
          "n_positions": 1024, "bos_token_id": 50256, "activation_function": "gelu_new"})",
      R"({"model_type": "gpt_neox", "vocab_size": 4096, "hidden_size": 192, "num_hidden_layers": 6,
          "num_attention_heads": 6, "intermediate_size": 768, "max_position_embeddings": 256,
          "rotary_pct": 0.25, "rotary_emb_base": 10000, "use_parallel_residual": false,
          "rope_scaling": {"type": "linear", "factor": 2.0}})",
      R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 128,
          "max_position_embeddings": 4096, "eos_token_id": [1, 2], "rope_parameters":
          {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8, "low_freq_factor": 1,
           "high_freq_factor": 4, "original_max_position_embeddings": 8192}})",
      R"({"model_type": "qwen2", "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 2, "head_dim": 16, "intermediate_size": 8,
          "max_position_embeddings": 64, "rope_scaling": {"rope_type": "yarn", "factor": 4,
          "original_max_position_embeddings": 32, "beta_fast": 32, "mscale": 1,
          "mscale_all_dim": 1, "truncate": false}, "use_sliding_window": false})",
      R"({"model_type": "mistral", "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 64,
          "sliding_window": 4096})"};
}

const FuzzRegistration config_target({.name = "config",
                                      .read = read_config,
                                      .seeds = config_seeds,
                                      .bounds = {.memory_factor = 100}});  // three documents

}  // namespace
