// Settings of a model from the metadata of a GGUF file. What changes the result and is not
// implemented is an error; nothing is silently ignored.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/io/gguf.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/io/model_config.hpp"
#include "wanamaker/nn/config.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline constexpr std::string_view gguf_architectures = "llama, gpt2, gptneox or qwen2";

/// A metadata value for SettingReader; long arrays only by their length.
inline Json gguf_setting(const GgufValue& value) {
  constexpr std::uint64_t longest = 256;
  if (const auto flag = value.boolean()) return *flag;
  if (const auto integer = value.integer()) return *integer;
  if (const auto number = value.number()) return *number;
  if (const auto text = value.text()) return shortened(*text);
  if (value.is_array() && value.count() <= longest) {
    if (const auto numbers = value.numbers()) return *numbers;
  }
  return value.is_array() ? "an array of " + std::to_string(value.count()) : "another value";
}

/// The settings of an architecture, under their names without its prefix.
inline Json gguf_settings(const GgufFile& file, const std::string& architecture) {
  const std::string prefix = architecture + ".";
  Json settings = Json::object();
  for (const auto& [key, value] : file.metadata()) {
    if (key.starts_with(prefix)) settings[key.substr(prefix.size())] = gguf_setting(value);
  }
  return settings;
}

/// Refuses keys outside the architecture's that may say something about the forward pass.
inline void check_gguf_keys(const GgufFile& file, const std::string& architecture) {
  constexpr std::array<std::string_view, 4> harmless = {"general.", "tokenizer.", "quantize.",
                                                        "split."};
  for (const auto& [key, value] : file.metadata()) {
    const std::string& name = key;
    const auto begins = [&name](std::string_view prefix) { return name.starts_with(prefix); };
    if (begins(architecture + ".") || std::any_of(harmless.begin(), harmless.end(), begins))
      continue;
    throw FormatError({.id = "config/unknown-setting",
                       .where = file.path().string(),
                       .what = "unknown key " + in_quotes(key),
                       .expected = "keys of the format, the tokenizer and " + architecture,
                       .found = setting_text(gguf_setting(value)),
                       .mend = "if it does not change the forward pass, delete it from the file"});
  }
}

/// A model in several files, and files that hold something else than a model.
inline void check_gguf_kind(const GgufFile& file) {
  const GgufValue* parts = file.find("split.count");
  if (parts != nullptr && parts->integer().value_or(2) > 1) {
    throw FormatError({.id = "gguf/split",
                       .where = file.path().string(),
                       .what = "one of several files of a model",
                       .expected = "a model in one file",
                       .found = setting_text(gguf_setting(*parts)) + " files",
                       .mend = "merge them with llama-gguf-split --merge"});
  }
  const GgufValue* type = file.find("general.type");
  if (type != nullptr && type->text() != "model") {
    throw FormatError({.id = "config/not-implemented",
                       .where = file.path().string(),
                       .what = "file holds no whole model",
                       .expected = "general.type model",
                       .found = setting_text(gguf_setting(*type)),
                       .mend = "give the model's own file"});
  }
}

/// Rows of the embedding, where the file has one of two dimensions.
inline Index gguf_embedding_rows(const GgufFile& file, SettingReader& settings) {
  if (file.contains("token_embd.weight")) {
    const Shape& shape = file.info("token_embd.weight").shape;
    if (shape.size() == 2 && shape[0] > 0) return shape[0];
  }
  settings.fail("vocab_size", "an embedding token_embd.weight of two dimensions", "none");
}

inline Index gguf_vocabulary(const GgufFile& file, SettingReader& settings) {
  const Index rows = gguf_embedding_rows(file, settings);
  const GgufValue* tokens = file.find("tokenizer.ggml.tokens");
  Index known = rows;
  if (tokens != nullptr && tokens->is_array() && tokens->count() > 0) {
    known = std::min(known, static_cast<Index>(std::min<std::uint64_t>(
                                tokens->count(), static_cast<std::uint64_t>(rows))));
  }
  return settings.size({"vocab_size"}, 1, known);
}

inline void read_gguf_sizes(const GgufFile& file, SettingReader& s, ModelConfig& c) {
  c.vocabulary = gguf_vocabulary(file, s);
  c.width = s.size({"embedding_length"}, 1);
  c.layers = s.size({"block_count"}, 0);
  c.heads = s.size({"attention.head_count"}, 1);
  c.key_heads = s.size({"attention.head_count_kv"}, 1, c.heads);
  c.hidden = s.size({"feed_forward_length"}, 1);
  c.positions = s.size({"context_length"}, 1);
  const bool own_head_width = s.find({"attention.key_length"}) != nullptr;
  check_heads(s, c, !own_head_width);
  c.head_width = own_head_width ? s.size({"attention.key_length"}, 1) : c.width / c.heads;
  s.require("attention.value_length", Json(c.head_width));
  s.require("attention.causal", true);
  s.require("expert_count", 0);
  s.require("expert_used_count", 0);
  // Both names mean the layout that WeightConventions knows.
  if (s.text({"tensor_data_layout"}, "reference") != "Meta AI original pth") {
    s.require("tensor_data_layout", "reference");
  }
  c.tied_head = !file.contains("output.weight");
}

/// Divisors of rotary frequencies that the file has as a tensor (Llama 3).
inline std::vector<double> gguf_rope_divisors(const GgufFile& file, const ModelConfig& c,
                                              SettingReader& s) {
  const auto divisors = file.read<double>("rope_freqs.weight");
  const bool fits = static_cast<Index>(divisors.size()) == c.rotary_width / 2 &&
                    std::all_of(divisors.begin(), divisors.end(), [](double d) { return d > 0; });
  if (!fits) {
    s.fail("tensor rope_freqs.weight", std::to_string(c.rotary_width / 2) + " positive numbers",
           std::to_string(divisors.size()) + " numbers");
  }
  return divisors;
}

inline RopeScaling gguf_yarn(SettingReader& s, const ModelConfig& c, double factor) {
  s.require("rope.scaling.yarn_ext_factor", 1.0);
  const double magnitude = s.positive({"rope.scaling.attn_factor"}, 1.0) *
                           s.positive({"rope.scaling.yarn_attn_factor"}, 1.0);
  const Index original = s.size({"rope.scaling.original_context_length"}, 1);
  return yarn_rope_scaling(c.rotary_width, c.rope_theta,
                           {.factor = factor,
                            .beta_fast = s.positive({"rope.scaling.yarn_beta_fast"}, 32.0),
                            .beta_slow = s.positive({"rope.scaling.yarn_beta_slow"}, 1.0),
                            .original_positions = static_cast<double>(original),
                            .magnitude = magnitude * yarn_magnitude(factor)});
}

inline RopeScaling gguf_rope_scaling(const GgufFile& file, SettingReader& s, const ModelConfig& c) {
  const std::string type = s.text({"rope.scaling.type"}, "none");
  const double factor = s.positive({"rope.scaling.factor"}, s.positive({"rope.scale_linear"}, 1.0));
  s.find({"rope.scaling.finetuned"});
  if (file.contains("rope_freqs.weight")) {
    if (type != "none") s.require("rope.scaling.type", "none");
    return {gguf_rope_divisors(file, c, s), 1.0};
  }
  if (type == "yarn") return gguf_yarn(s, c, factor);
  s.find({"rope.scaling.original_context_length"});
  if (type == "linear" || (type == "none" && factor != 1.0)) {
    return linear_rope_scaling(c.rotary_width, factor);
  }
  s.require("rope.scaling.type", "none");
  return {};
}

inline void read_gguf_rotary(const GgufFile& file, SettingReader& s, ModelConfig& c,
                             bool whole_heads) {
  c.rope_theta = s.positive({"rope.freq_base"}, 10000.0);
  c.rotary_width = s.size({"rope.dimension_count"}, 2, c.head_width);
  const bool fits = c.rotary_width % 2 == 0 && c.rotary_width <= c.head_width &&
                    c.rotary_width <= widest_rotation &&
                    (!whole_heads || c.rotary_width == c.head_width);
  if (!fits) {
    s.fail("rope.dimension_count",
           whole_heads ? "the head's " + std::to_string(c.head_width) + ", an even number"
                       : "an even number within a head of " + std::to_string(c.head_width),
           std::to_string(c.rotary_width));
  }
  c.rope_scaling = gguf_rope_scaling(file, s, c);
  check_rope_scaling(s, c.rope_scaling);
}

inline ModelConfig gguf_gpt2_config(const GgufFile& file, SettingReader& s) {
  ModelConfig c;
  c.family = Family::gpt2;
  read_gguf_sizes(file, s, c);
  c.norm_epsilon = required_positive(s, "attention.layer_norm_epsilon");
  c.activation = ActivationKind::gelu_tanh;
  return c;
}

/// The activation is not among the metadata; GPT-NeoX and Pythia have the exact GELU.
inline ModelConfig gguf_neox_config(const GgufFile& file, SettingReader& s) {
  ModelConfig c;
  c.family = Family::gpt_neox;
  read_gguf_sizes(file, s, c);
  c.norm_epsilon = required_positive(s, "attention.layer_norm_epsilon");
  c.activation = ActivationKind::gelu_erf;
  c.parallel_residual = s.flag("use_parallel_residual", true);
  c.attention_bias = c.layers == 0 || file.contains("blk.0.attn_qkv.bias");
  c.attention_output_bias = c.attention_bias;
  read_gguf_rotary(file, s, c, false);
  return c;
}

inline ModelConfig gguf_llama_config(const GgufFile& file, SettingReader& s,
                                     const std::string& architecture) {
  ModelConfig c;
  c.family = Family::llama;
  read_gguf_sizes(file, s, c);
  c.norm_epsilon = required_positive(s, "attention.layer_norm_rms_epsilon");
  c.activation = ActivationKind::silu;
  c.attention_bias = file.contains("blk.0.attn_q.bias");
  c.attention_output_bias = file.contains("blk.0.attn_output.bias");
  c.mlp_bias = file.contains("blk.0.ffn_up.bias");
  if (architecture == "qwen2") s.require("attention.sliding_window", 0);
  c.sliding_window = s.size({"attention.sliding_window"}, 0, 0);
  read_gguf_rotary(file, s, c, true);
  return c;
}

inline ModelConfig gguf_config_of(const GgufFile& file, SettingReader& s,
                                  const std::string& architecture) {
  if (architecture == "gpt2") return gguf_gpt2_config(file, s);
  if (architecture == "gptneox") return gguf_neox_config(file, s);
  if (architecture == "llama" || architecture == "qwen2") {
    return gguf_llama_config(file, s, architecture);
  }
  refuse_family(file.path().string(), architecture, std::string(gguf_architectures));
}

inline std::optional<TokenId> gguf_token_id(const GgufFile& file, std::string_view key,
                                            Index vocabulary) {
  const GgufValue* value = file.find(key);
  const auto id = value == nullptr ? std::nullopt : value->integer();
  if (!id || *id < 0 || *id >= vocabulary) return std::nullopt;
  return static_cast<TokenId>(*id);
}

}  // namespace detail

/// `general.architecture`. Throws FormatError where the file has none.
inline std::string gguf_architecture(const GgufFile& file) {
  const GgufValue* value = file.find("general.architecture");
  const auto name = value == nullptr ? std::nullopt : value->text();
  if (name && !name->empty() && !first_invalid_utf8(*name)) return std::string(*name);
  throw FormatError({.id = "config/bad-setting",
                     .where = file.path().string(),
                     .what = "key general.architecture",
                     .expected = std::string(detail::gguf_architectures),
                     .found = value == nullptr ? "nothing" : "another value",
                     .mend = "convert the model again"});
}

/// Settings of the model in a GGUF file, which is named after the file. Throws FormatError for
/// missing, impossible, unknown and unimplemented ones, and for a part of a model.
inline ModelConfig gguf_model_config(const GgufFile& file) {
  const std::string architecture = gguf_architecture(file);
  detail::check_gguf_kind(file);
  const Json json = detail::gguf_settings(file, architecture);
  detail::SettingReader settings(json,
                                 file.path().string() + ", " + detail::shortened(architecture));
  ModelConfig config = detail::gguf_config_of(file, settings, architecture);
  settings.refuse_the_rest();
  detail::check_gguf_keys(file, architecture);
  config.bos = detail::gguf_token_id(file, "tokenizer.ggml.bos_token_id", config.vocabulary);
  const auto eos = detail::gguf_token_id(file, "tokenizer.ggml.eos_token_id", config.vocabulary);
  if (eos) config.eos = {*eos};
  config.name = file.path().stem().string();
  return config;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
