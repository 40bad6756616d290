// How files call and lay out the weights that Hugging Face's names stand for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/nn/config.hpp"
#include "wanamaker/nn/linear.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// Names of modules: Hugging Face's within a block or a model, and GGUF's.
struct ModuleName {
  std::string_view hugging_face, gguf;
};
inline constexpr std::array<ModuleName, 28> gguf_modules{{
    {"wte", "token_embd"},
    {"wpe", "position_embd"},
    {"ln_f", "output_norm"},
    {"ln_1", "attn_norm"},
    {"attn.c_attn", "attn_qkv"},
    {"attn.c_proj", "attn_output"},
    {"ln_2", "ffn_norm"},
    {"mlp.c_fc", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
    {"embed_in", "token_embd"},
    {"final_layer_norm", "output_norm"},
    {"attention.query_key_value", "attn_qkv"},
    {"attention.dense", "attn_output"},
    {"mlp.dense_h_to_4h", "ffn_up"},
    {"mlp.dense_4h_to_h", "ffn_down"},
    {"embed_out", "output"},
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"lm_head", "output"},
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
}};

inline std::string gguf_module(std::string_view name) {
  for (const ModuleName& module : gguf_modules) {
    if (module.hugging_face == name) return std::string(module.gguf);
  }
  return std::string(name);
}

/// "layers.3.mlp.up_proj.weight" → "blk.3.ffn_up.weight".
inline std::string gguf_name(std::string_view name) {
  const std::size_t ending = name.rfind('.');
  const std::string_view kind = name.substr(ending);
  std::string_view inside = name.substr(0, ending);
  std::string block;
  for (const std::string_view list : {"h.", "layers."}) {
    if (!inside.starts_with(list)) continue;
    const std::size_t end = inside.find('.', list.size()) + 1;
    block = "blk." + std::string(inside.substr(list.size(), end - list.size()));
    inside = inside.substr(end);
  }
  return block + gguf_module(inside) + std::string(kind);
}

}  // namespace detail

/// What one kind of file does with a family's weights.
struct WeightConventions {
  bool gguf_names = false;
  std::string prefix{};  ///< of all names but the head's, where names are Hugging Face's
  WeightLayout gpt2_layout = WeightLayout::in_out;
  bool fused_by_head = true;  ///< GPT-NeoX's q, k, v of each head together, not each of all heads
  bool rotary_neighbours = false;  ///< Llama's q, k rows: rotated pairs are neighbours, not halves

  /// The file's name for Hugging Face's (without prefix).
  std::string name_in_file(const std::string& name) const {
    if (gguf_names) return detail::gguf_name(name);
    const bool is_head = name == "lm_head.weight" || name == "embed_out.weight";
    return is_head ? name : prefix + name;
  }
};

/// Hugging Face folders: a prefix by family, which some files leave out.
inline WeightConventions folder_conventions(Family family, const std::vector<std::string>& names) {
  constexpr const char* prefixes[] = {"transformer.", "gpt_neox.", "model."};
  const std::string prefix = prefixes[static_cast<int>(family)];
  const bool is_there = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return name.starts_with(prefix);
  });
  return {.prefix = is_there ? prefix : ""};
}

/// GGUF files as llama.cpp's converter writes them; `architecture` as in the file.
inline WeightConventions gguf_conventions(std::string_view architecture) {
  return {.gguf_names = true,
          .prefix = "",
          .gpt2_layout = WeightLayout::out_in,
          .fused_by_head = false,
          .rotary_neighbours = architecture == "llama"};
}

}  // namespace wanamaker::inline WANAMAKER_ABI
