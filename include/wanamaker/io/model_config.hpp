// config.json of the model families, in its old and new spellings, to ModelConfig. A setting that
// changes the result and is not implemented is an error; nothing is silently ignored.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/io/json.hpp"
#include "wanamaker/nn/config.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

// Settings of training, of generation and of bookkeeping: without effect on the forward pass.
inline constexpr std::array harmless_settings = {"_name_or_path",
                                                 "architectures",
                                                 "attention_dropout",
                                                 "attn_pdrop",
                                                 "auto_map",
                                                 "bad_words_ids",
                                                 "begin_suppress_tokens",
                                                 "bos_token_id",
                                                 "chunk_size_feed_forward",
                                                 "classifier_dropout",
                                                 "decoder_start_token_id",
                                                 "diversity_penalty",
                                                 "do_sample",
                                                 "dtype",
                                                 "early_stopping",
                                                 "embd_pdrop",
                                                 "eos_token_id",
                                                 "finetuning_task",
                                                 "forced_bos_token_id",
                                                 "forced_eos_token_id",
                                                 "gradient_checkpointing",
                                                 "hidden_dropout",
                                                 "id2label",
                                                 "initializer_range",
                                                 "is_decoder",
                                                 "is_llama_config",
                                                 "label2id",
                                                 "length_penalty",
                                                 "max_length",
                                                 "max_window_layers",
                                                 "min_length",
                                                 "model_type",
                                                 "n_ctx",
                                                 "n_special",
                                                 "no_repeat_ngram_size",
                                                 "num_beam_groups",
                                                 "num_beams",
                                                 "num_return_sequences",
                                                 "output_attentions",
                                                 "output_hidden_states",
                                                 "output_scores",
                                                 "pad_token_id",
                                                 "predict_special_tokens",
                                                 "prefix",
                                                 "pretraining_tp",
                                                 "problem_type",
                                                 "remove_invalid_values",
                                                 "reorder_and_upcast_attn",
                                                 "repetition_penalty",
                                                 "resid_pdrop",
                                                 "return_dict",
                                                 "return_dict_in_generate",
                                                 "sep_token_id",
                                                 "summary_activation",
                                                 "summary_first_dropout",
                                                 "summary_proj_to_labels",
                                                 "summary_type",
                                                 "summary_use_proj",
                                                 "suppress_tokens",
                                                 "task_specific_params",
                                                 "temperature",
                                                 "tf_legacy_loss",
                                                 "tokenizer_class",
                                                 "top_k",
                                                 "top_p",
                                                 "torch_dtype",
                                                 "torchscript",
                                                 "transformers.js_config",
                                                 "transformers_version",
                                                 "typical_p",
                                                 "unsloth_fixed",
                                                 "use_cache"};

inline std::string setting_text(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  constexpr std::size_t longest = 60;
  if (text.size() > longest) text = text.substr(0, longest) + "…";
  return text;
}

// Takes settings out of one config.json by name, remembers which were taken, and refuses the rest.
class SettingReader {
 public:
  SettingReader(const Json& settings, std::string where)
      : settings_(settings), where_(std::move(where)) {
    if (!settings.is_object()) fail("", "an object of settings", setting_text(settings));
  }

  const std::string& where() const { return where_; }

  /// The setting under the first of its names that is there and not null; null where there is none.
  const Json* find(std::initializer_list<const char*> names) {
    const Json* found = nullptr;
    for (const char* name : names) {
      const auto item = settings_.find(name);
      if (item == settings_.end()) continue;
      taken_.insert(name);
      if (found == nullptr && !item->is_null()) found = &*item;
    }
    return found;
  }

  Index size(std::initializer_list<const char*> names, Index lowest, Index fallback = -1) {
    const Json* value = find(names);
    if (value == nullptr && fallback >= 0) return fallback;
    constexpr std::int64_t largest = std::int64_t{1} << 31;
    const bool valid = value != nullptr && value->is_number_integer() &&
                       value->get<double>() >= static_cast<double>(lowest) &&
                       value->get<double>() <= static_cast<double>(largest);
    if (valid) return value->get<Index>();
    fail(*names.begin(), "an integer of at least " + std::to_string(lowest),
         value == nullptr ? "nothing" : setting_text(*value));
  }

  double positive(std::initializer_list<const char*> names, double fallback) {
    const Json* value = find(names);
    if (value == nullptr) return fallback;
    const double number = value->is_number() ? value->get<double>() : 0.0;
    if (number > 0 && std::isfinite(number)) return number;
    fail(*names.begin(), "a positive number", setting_text(*value));
  }

  bool flag(const char* name, bool fallback) {
    const Json* value = find({name});
    if (value == nullptr) return fallback;
    if (value->is_boolean()) return value->get<bool>();
    fail(name, "true or false", setting_text(*value));
  }

  std::string text(std::initializer_list<const char*> names, const std::string& fallback) {
    const Json* value = find(names);
    if (value == nullptr) return fallback;
    if (value->is_string()) return value->get<std::string>();
    fail(*names.begin(), "a text", setting_text(*value));
  }

  /// Refuses the setting unless it is absent, null, or has the one value that is implemented.
  void require(const char* name, const Json& implemented) {
    const Json* value = find({name});
    if (value == nullptr || *value == implemented) return;
    throw FormatError({.id = "config/not-implemented",
                       .where = where_,
                       .what = std::string("setting ") + name + " is not implemented",
                       .expected = setting_text(implemented),
                       .found = setting_text(*value),
                       .mend = "use a model without it"});
  }

  /// Refuses settings that nobody asked for, unless they are known to be harmless or say "off".
  void refuse_the_rest() const {
    for (const auto& [name, value] : settings_.items()) {
      const bool harmless = std::find(harmless_settings.begin(), harmless_settings.end(), name) !=
                            harmless_settings.end();
      const bool off =
          value.is_null() || value == Json(false) || (value.is_structured() && value.empty());
      if (taken_.contains(name) || harmless || off) continue;
      throw FormatError(
          {.id = "config/unknown-setting",
           .where = where_,
           .what = "unknown setting " + shortened(name),
           .expected = "settings of GPT-2, GPT-NeoX or Llama-type models",
           .found = setting_text(value),
           .mend = "if it does not change the forward pass, delete it from the file"});
    }
  }

  [[noreturn]] void fail(const char* name, std::string expected, const std::string& found) const {
    throw FormatError({.id = "config/bad-setting",
                       .where = where_,
                       .what = std::string("setting ") + name,
                       .expected = std::move(expected),
                       .found = shortened(found, 200),
                       .mend = "correct the file or download the model again"});
  }

 private:
  const Json& settings_;
  std::string where_;
  std::set<std::string, std::less<>> taken_;
};

inline ActivationKind activation_named(SettingReader& settings, const std::string& fallback) {
  const std::string name = settings.text({"hidden_act", "activation_function"}, fallback);
  if (name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh") {
    return ActivationKind::gelu_tanh;
  }
  if (name == "gelu" || name == "gelu_python") return ActivationKind::gelu_erf;
  if (name == "silu" || name == "swish") return ActivationKind::silu;
  if (name == "relu") return ActivationKind::relu;
  settings.fail("hidden_act", "gelu_new, gelu_fast, gelu_pytorch_tanh, gelu, silu or relu", name);
}

inline void check_heads(SettingReader& settings, const ModelConfig& config, bool width_from_heads) {
  if (width_from_heads && config.width % config.heads != 0) {
    settings.fail("hidden_size", "a multiple of the number of heads",
                  std::to_string(config.width) + " with " + std::to_string(config.heads));
  }
  if (config.heads % config.key_heads != 0) {
    settings.fail("num_key_value_heads", "a divisor of the number of heads",
                  std::to_string(config.key_heads) + " for " + std::to_string(config.heads));
  }
}

// One id or several; those outside the vocabulary are left out.
inline std::vector<TokenId> token_ids(SettingReader& settings, const char* name, Index vocabulary) {
  std::vector<TokenId> ids;
  const Json* value = settings.find({name});
  if (value == nullptr) return ids;
  for (const Json& entry : value->is_array() ? *value : Json::array({*value})) {
    if (!entry.is_number_integer()) continue;
    const std::int64_t id = entry.get<std::int64_t>();
    if (id >= 0 && id < vocabulary) ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

inline void read_token_ids(SettingReader& settings, ModelConfig& config) {
  const std::vector<TokenId> bos = token_ids(settings, "bos_token_id", config.vocabulary);
  if (!bos.empty()) config.bos = bos.front();
  config.eos = token_ids(settings, "eos_token_id", config.vocabulary);
}

inline ModelConfig gpt2_config(SettingReader& s) {
  ModelConfig c;
  c.family = Family::gpt2;
  c.vocabulary = s.size({"vocab_size"}, 1);
  c.width = s.size({"n_embd", "hidden_size"}, 1);
  c.layers = s.size({"n_layer", "num_hidden_layers"}, 0);
  c.heads = s.size({"n_head", "num_attention_heads"}, 1);
  c.key_heads = c.heads;
  c.hidden = s.size({"n_inner", "intermediate_size"}, 1, 4 * c.width);
  c.positions = s.size({"n_positions", "max_position_embeddings"}, 1);
  check_heads(s, c, true);
  c.head_width = c.width / c.heads;
  c.norm_epsilon = s.positive({"layer_norm_epsilon"}, 1e-5);
  c.activation = activation_named(s, "gelu_new");
  c.tied_head = s.flag("tie_word_embeddings", true);
  c.scale_attention = s.flag("scale_attn_weights", true);
  c.scale_by_inverse_layer = s.flag("scale_attn_by_inverse_layer_idx", false);
  s.require("add_cross_attention", false);
  return c;
}

inline double required_positive(SettingReader& s, const char* name) {
  if (s.find({name}) == nullptr) s.fail(name, "a positive number", "nothing");
  return s.positive({name}, 0.0);
}

inline RopeScaling llama3_settings(SettingReader& rope, const ModelConfig& c) {
  const Llama3Rope settings{
      .factor = required_positive(rope, "factor"),
      .low = required_positive(rope, "low_freq_factor"),
      .high = required_positive(rope, "high_freq_factor"),
      .original_positions = required_positive(rope, "original_max_position_embeddings")};
  if (settings.high <= settings.low) {
    rope.fail("high_freq_factor", "a number above low_freq_factor", std::to_string(settings.high));
  }
  return llama3_rope_scaling(c.rotary_width, c.rope_theta, settings);
}

inline RopeScaling yarn_settings(SettingReader& rope, const ModelConfig& c) {
  const double factor = required_positive(rope, "factor");
  double magnitude = yarn_magnitude(factor);
  const bool has_weights =
      rope.find({"mscale"}) != nullptr && rope.find({"mscale_all_dim"}) != nullptr;
  if (has_weights) {
    magnitude = yarn_magnitude(factor, rope.positive({"mscale"}, 1.0)) /
                yarn_magnitude(factor, rope.positive({"mscale_all_dim"}, 1.0));
  }
  return yarn_rope_scaling(
      c.rotary_width, c.rope_theta,
      {.factor = factor,
       .beta_fast = rope.positive({"beta_fast"}, 32.0),
       .beta_slow = rope.positive({"beta_slow"}, 1.0),
       .original_positions = required_positive(rope, "original_max_position_embeddings"),
       .magnitude = rope.positive({"attention_factor"}, magnitude),
       .truncate = rope.flag("truncate", true)});
}

inline RopeScaling read_rope_scaling(SettingReader& rope, const ModelConfig& c) {
  const std::string type = rope.text({"rope_type", "type"}, "default");
  if (type == "yarn") return yarn_settings(rope, c);
  if (type == "llama3") return llama3_settings(rope, c);
  rope.find({"original_max_position_embeddings"});
  if (type == "linear") {
    return linear_rope_scaling(c.rotary_width, required_positive(rope, "factor"));
  }
  if (type == "default") return {};
  throw FormatError({.id = "config/not-implemented",
                     .where = rope.where(),
                     .what = "rope scaling is not implemented",
                     .expected = "rope_type default, linear, llama3 or yarn",
                     .found = shortened(type),
                     .mend = "use a model without it"});
}

/// Entries of a head that are rotated, at most: a table is made for each pair, on the word of a
/// file that may be short.
inline constexpr Index widest_rotation = 65536;

/// Settings that are finite each may make frequencies that are not.
inline void check_rope_scaling(SettingReader& rope, const RopeScaling& scaling) {
  const auto is_usable = [](double d) { return d > 0 && std::isfinite(d); };
  const auto& divisors = scaling.divisors;
  if (is_usable(scaling.magnitude) && std::all_of(divisors.begin(), divisors.end(), is_usable)) {
    return;
  }
  rope.fail("rope_scaling", "settings that give positive finite frequencies", "others");
}

// Rotary settings in either spelling: rope_parameters {…}, or rope_theta / rotary_emb_base,
// rotary_pct / partial_rotary_factor, rope_scaling.
inline void read_rotary(SettingReader& s, ModelConfig& c, double default_share) {
  c.rope_theta = s.positive({"rope_theta", "rotary_emb_base"}, 10000.0);
  double share = s.positive({"rotary_pct", "partial_rotary_factor"}, default_share);
  const Json* parameters = s.find({"rope_parameters", "rope_scaling"});
  const Json* scaling = s.find({"rope_scaling"});
  if (scaling != nullptr && *scaling != *parameters) {
    s.fail("rope_scaling", "no other rope_parameters beside it", setting_text(*scaling));
  }
  const Json none = Json::object();
  SettingReader rope(parameters != nullptr ? *parameters : none, s.where() + ", rope_parameters");
  c.rope_theta = rope.positive({"rope_theta"}, c.rope_theta);
  share = rope.positive({"partial_rotary_factor"}, share);
  const Index most = std::min(c.head_width, widest_rotation);
  // Compared before it is cast: a share may be any number.
  const double rotated = std::floor(static_cast<double>(c.head_width) * share);
  const bool fits =
      rotated >= 2 && rotated <= static_cast<double>(most) && std::fmod(rotated, 2.0) == 0;
  if (!fits) {
    s.fail("rotary_pct",
           "an even number of rotated entries within a head, at most " + std::to_string(most),
           setting_text(Json(rotated)) + " of " + std::to_string(c.head_width));
  }
  c.rotary_width = static_cast<Index>(rotated);
  c.rope_scaling = read_rope_scaling(rope, c);
  check_rope_scaling(rope, c.rope_scaling);
  rope.refuse_the_rest();
}

inline ModelConfig gpt_neox_config(SettingReader& s) {
  ModelConfig c;
  c.family = Family::gpt_neox;
  c.vocabulary = s.size({"vocab_size"}, 1);
  c.width = s.size({"hidden_size"}, 1);
  c.layers = s.size({"num_hidden_layers"}, 0);
  c.heads = s.size({"num_attention_heads"}, 1);
  c.key_heads = c.heads;
  c.hidden = s.size({"intermediate_size"}, 1);
  c.positions = s.size({"max_position_embeddings"}, 1);
  check_heads(s, c, true);
  c.head_width = c.width / c.heads;
  c.norm_epsilon = s.positive({"layer_norm_eps"}, 1e-5);
  c.activation = activation_named(s, "gelu");
  c.parallel_residual = s.flag("use_parallel_residual", true);
  c.tied_head = s.flag("tie_word_embeddings", false);
  const bool attention_bias = s.flag("attention_bias", true);
  c.attention_bias = attention_bias;
  c.attention_output_bias = attention_bias;
  read_rotary(s, c, 0.25);
  return c;
}

inline ModelConfig llama_config(SettingReader& s, const std::string& type) {
  ModelConfig c;
  c.family = Family::llama;
  c.vocabulary = s.size({"vocab_size"}, 1);
  c.width = s.size({"hidden_size"}, 1);
  c.layers = s.size({"num_hidden_layers"}, 0);
  c.heads = s.size({"num_attention_heads"}, 1);
  c.key_heads = s.size({"num_key_value_heads"}, 1, c.heads);
  c.hidden = s.size({"intermediate_size"}, 1);
  c.positions = s.size({"max_position_embeddings"}, 1);
  const bool own_head_width = s.find({"head_dim"}) != nullptr;
  check_heads(s, c, !own_head_width);
  c.head_width = own_head_width ? s.size({"head_dim"}, 1) : c.width / c.heads;
  c.norm_epsilon = s.positive({"rms_norm_eps"}, 1e-6);
  c.activation = activation_named(s, "silu");
  c.tied_head = s.flag("tie_word_embeddings", false);
  // Qwen2 has biases on queries, keys and values alone, and does not say so.
  c.attention_bias = s.flag("attention_bias", type == "qwen2");
  c.attention_output_bias = type != "qwen2" && c.attention_bias;
  c.mlp_bias = s.flag("mlp_bias", false);
  s.require("rope_interleaved", false);
  const bool windowed = s.flag("use_sliding_window", type == "mistral");
  const Index window = s.size({"sliding_window"}, 1, 0);
  c.sliding_window = windowed ? window : 0;
  if (windowed && type == "qwen2") s.require("use_sliding_window", false);
  read_rotary(s, c, 1.0);
  return c;
}

/// What a family that is not implemented has and ours lack; empty for families unknown here.
inline std::string_view missing_of_family(std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> families[] = {
      {"phi3", "fused projections in an order of its own, and longrope scaling"},
      {"phi", "a head with bias and partial rotary positions in a parallel block with one norm"},
      {"gemma", "norms with gain 1 + w, scaled embeddings, and soft caps"},
      {"olmo", "norms without gain, or norms after attention and MLP"},
      {"qwen3", "norms of queries and keys"},
      {"qwen2moe", "mixtures of experts"},
      {"qwen2_moe", "mixtures of experts"},
      {"mixtral", "mixtures of experts"},
      {"falcon", "multi-query attention with fused projections"},
      {"mpt", "linear attention biases (ALiBi)"},
      {"bloom", "linear attention biases (ALiBi)"},
      {"gptj", "rotated neighbours in a parallel block with one norm"},
      {"mamba", "state spaces in place of attention"}};
  for (const auto& [name, missing] : families) {
    if (type.starts_with(name)) return missing;
  }
  return "";
}

[[noreturn]] inline void refuse_family(const std::string& where, const std::string& type,
                                       std::string expected) {
  const std::string_view missing = missing_of_family(type);
  throw FormatError(
      {.id = "config/not-implemented",
       .where = where,
       .what = "model family is not implemented",
       .expected = std::move(expected),
       .found = shortened(type) + (missing.empty() ? "" : ", which needs ") + std::string(missing),
       .mend = "use a model of these families"});
}

inline ModelConfig config_of_type(SettingReader& settings) {
  const std::string type = settings.text({"model_type"}, "");
  if (type == "gpt2") return gpt2_config(settings);
  if (type == "gpt_neox") return gpt_neox_config(settings);
  if (type == "llama" || type == "mistral" || type == "qwen2") return llama_config(settings, type);
  const std::string known = "gpt2, gpt_neox, llama, mistral or qwen2";
  if (type.empty()) settings.fail("model_type", known, "nothing");
  refuse_family(settings.where(), type, known);
}

}  // namespace detail

/// A parsed config.json to ModelConfig; `where` names the file in messages. Throws FormatError for
/// missing, impossible, unknown and unimplemented settings.
inline ModelConfig model_config_from_json(const Json& json, const std::string& where) {
  detail::SettingReader settings(json, where);
  ModelConfig config = detail::config_of_type(settings);
  detail::read_token_ids(settings, config);
  settings.require("quantization_config", nullptr);
  settings.refuse_the_rest();
  return config;
}

/// Reads folder/config.json; the model is named after its folder. Throws FileError, FormatError.
inline ModelConfig read_model_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  ModelConfig config = model_config_from_json(parse_json_file(path), path.string());
  const std::filesystem::path named = std::filesystem::weakly_canonical(folder);
  config.name = named.filename().string();
  return config;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
