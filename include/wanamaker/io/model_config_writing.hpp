// A model's settings as config.json, for this library and for others.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/json_writing.hpp"
#include "wanamaker/nn/config.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

[[noreturn]] inline void throw_unwritable_model(const ModelConfig& c, std::string what,
                                                std::string expected, std::string found) {
  throw DataError({.id = "model/unwritable",
                   .where = c.name,
                   .what = std::move(what),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .mend = "keep such a model as a checkpoint"});
}

inline std::string_view activation_name(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::gelu_tanh:
      return "gelu_new";
    case ActivationKind::gelu_erf:
      return "gelu";
    case ActivationKind::silu:
      return "silu";
    default:
      return "relu";
  }
}

/// The share of a head that is rotated, such that readers, who cut share · head_width to a whole
/// number, find `rotary_width` again.
inline double rotary_share(const ModelConfig& c) {
  const auto width = static_cast<double>(c.head_width);
  double share = static_cast<double>(c.rotary_width) / width;
  while (std::floor(width * share) < static_cast<double>(c.rotary_width)) {
    share = std::nextafter(share, 2.0);
  }
  return share;
}

inline OrderedJson gpt2_config_json(const ModelConfig& c) {
  return {{"model_type", "gpt2"},
          {"architectures", {"GPT2LMHeadModel"}},
          {"vocab_size", c.vocabulary},
          {"n_positions", c.positions},
          {"n_embd", c.width},
          {"n_layer", c.layers},
          {"n_head", c.heads},
          {"n_inner", c.hidden},
          {"activation_function", activation_name(c.activation)},
          {"layer_norm_epsilon", c.norm_epsilon},
          {"scale_attn_weights", c.scale_attention},
          {"scale_attn_by_inverse_layer_idx", c.scale_by_inverse_layer},
          {"attn_pdrop", 0.0},
          {"embd_pdrop", 0.0},
          {"resid_pdrop", 0.0}};
}

inline OrderedJson neox_config_json(const ModelConfig& c) {
  return {{"model_type", "gpt_neox"},
          {"architectures", {"GPTNeoXForCausalLM"}},
          {"vocab_size", c.vocabulary},
          {"max_position_embeddings", c.positions},
          {"hidden_size", c.width},
          {"num_hidden_layers", c.layers},
          {"num_attention_heads", c.heads},
          {"intermediate_size", c.hidden},
          {"hidden_act", activation_name(c.activation)},
          {"layer_norm_eps", c.norm_epsilon},
          {"rotary_pct", rotary_share(c)},
          {"rotary_emb_base", c.rope_theta},
          {"use_parallel_residual", c.parallel_residual},
          {"attention_bias", c.attention_bias}};
}

inline OrderedJson llama_config_json(const ModelConfig& c) {
  const bool is_qwen2 = c.attention_bias && !c.attention_output_bias;
  const bool is_mistral = c.sliding_window > 0;
  OrderedJson json = {{"model_type", is_qwen2     ? "qwen2"
                                     : is_mistral ? "mistral"
                                                  : "llama"},
                      {"architectures",
                       {is_qwen2     ? "Qwen2ForCausalLM"
                        : is_mistral ? "MistralForCausalLM"
                                     : "LlamaForCausalLM"}},
                      {"vocab_size", c.vocabulary},
                      {"max_position_embeddings", c.positions},
                      {"hidden_size", c.width},
                      {"num_hidden_layers", c.layers},
                      {"num_attention_heads", c.heads},
                      {"num_key_value_heads", c.key_heads},
                      {"head_dim", c.head_width},
                      {"intermediate_size", c.hidden},
                      {"hidden_act", activation_name(c.activation)},
                      {"rms_norm_eps", c.norm_epsilon},
                      {"rope_theta", c.rope_theta}};
  if (is_mistral) json["sliding_window"] = c.sliding_window;
  if (!is_qwen2 && !is_mistral) {
    json["attention_bias"] = c.attention_bias;
    json["mlp_bias"] = c.mlp_bias;
  }
  return json;
}

/// What config.json has no word for.
inline void check_config_writable(const ModelConfig& c) {
  if (!c.rope_scaling.divisors.empty() || c.rope_scaling.magnitude != 1.0) {
    throw_unwritable_model(c, "scaled rotary positions cannot be written", "none", "divisors");
  }
  const bool is_qwen2 = c.attention_bias && !c.attention_output_bias;
  const bool is_mixed =
      c.family == Family::llama && c.sliding_window > 0 && (c.attention_bias || c.mlp_bias);
  const bool is_whole = c.family != Family::llama || c.rotary_width == c.head_width;
  if (!is_mixed && is_whole && !(is_qwen2 && c.mlp_bias)) return;
  throw_unwritable_model(c, "no model type has these settings together",
                         "those of Llama, Mistral or Qwen2", "a mixture");
}

}  // namespace detail

/// What read_model_config reads back to the same settings (but for the name). Throws DataError for
/// settings that no family's config.json has.
inline OrderedJson model_config_json(const ModelConfig& c) {
  detail::check_config_writable(c);
  OrderedJson json = c.family == Family::gpt2       ? detail::gpt2_config_json(c)
                     : c.family == Family::gpt_neox ? detail::neox_config_json(c)
                                                    : detail::llama_config_json(c);
  json["tie_word_embeddings"] = c.tied_head;
  if (c.bos) json["bos_token_id"] = *c.bos;
  if (c.eos.size() == 1) json["eos_token_id"] = c.eos.front();
  if (c.eos.size() > 1) json["eos_token_id"] = c.eos;
  return json;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
