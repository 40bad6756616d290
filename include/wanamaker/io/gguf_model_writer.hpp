// A model as one GGUF file, with names, layouts and settings as llama.cpp's converter writes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/io/gguf_writer.hpp"
#include "wanamaker/io/model_writer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline std::string gguf_architecture_of(const ModelConfig& c) {
  if (c.family == Family::gpt2) return "gpt2";
  if (c.family == Family::gpt_neox) return "gptneox";
  return c.attention_bias && !c.attention_output_bias ? "qwen2" : "llama";
}

/// GGUF has no words for what would go beyond a family's usual settings.
inline void check_gguf_writable(const ModelConfig& c) {
  constexpr ActivationKind usual[] = {ActivationKind::gelu_tanh, ActivationKind::gelu_erf,
                                      ActivationKind::silu};
  const bool has_usual_attention = c.scale_attention && !c.scale_by_inverse_layer;
  if (c.activation != usual[static_cast<int>(c.family)] || !has_usual_attention) {
    throw_unwritable_model(c, "GGUF has no word for these settings",
                           "the family's activation and scale of attention", "others");
  }
  if (!c.rope_scaling.divisors.empty() || c.rope_scaling.magnitude != 1.0) {
    throw_unwritable_model(c, "scaled rotary positions cannot be written", "none", "divisors");
  }
}

inline GgufMetadataToWrite gguf_settings_of(const ModelConfig& c, bool as_float16) {
  const std::string architecture = gguf_architecture_of(c);
  GgufMetadataToWrite m{{"general.architecture", architecture},
                        {"general.name", c.name},
                        {"general.file_type", std::uint32_t{as_float16 ? 1u : 0u}}};
  const auto number = [&](const char* key, Index value) {
    m.emplace_back(architecture + "." + key, static_cast<std::uint32_t>(value));
  };
  const auto real = [&](const char* key, double value) {
    m.emplace_back(architecture + "." + key, static_cast<float>(value));
  };
  number("context_length", c.positions);
  number("embedding_length", c.width);
  number("block_count", c.layers);
  number("feed_forward_length", c.hidden);
  number("attention.head_count", c.heads);
  if (c.family == Family::gpt2) {
    real("attention.layer_norm_epsilon", c.norm_epsilon);
    return m;
  }
  number("rope.dimension_count", c.rotary_width);
  real("rope.freq_base", c.rope_theta);
  if (c.family == Family::gpt_neox) {
    real("attention.layer_norm_epsilon", c.norm_epsilon);
    m.emplace_back(architecture + ".use_parallel_residual", c.parallel_residual);
    return m;
  }
  number("attention.head_count_kv", c.key_heads);
  real("attention.layer_norm_rms_epsilon", c.norm_epsilon);
  if (c.head_width * c.heads != c.width) {
    number("attention.key_length", c.head_width);
    number("attention.value_length", c.head_width);
  }
  if (c.sliding_window > 0) number("attention.sliding_window", c.sliding_window);
  return m;
}

/// "transformer.h.3.mlp.c_fc.weight" → "blk.3.ffn_up.weight".
inline std::string gguf_parameter_name(const std::string& name) {
  for (const std::string_view prefix : {"transformer.", "gpt_neox.", "model."}) {
    if (name.starts_with(prefix)) return gguf_name(name.substr(prefix.size()));
  }
  return gguf_name(name);
}

/// One parameter as GGUF files have it: out_in everywhere, q, k and v of Llama's apart, with
/// rotated pairs as neighbours.
template <class T>
void append_in_gguf_form(HostTensor<T> tensor, const ModelConfig& c, bool is_out_in,
                         std::vector<HostTensor<T>>& tensors) {
  const auto has = [&](std::string_view part) {
    return tensor.name.find(part) != std::string::npos;
  };
  const bool is_projection = has(".attn.") || has(".mlp.");
  if (c.family == Family::gpt2 && !is_out_in && tensor.shape.size() == 2 && is_projection) {
    tensor = transposed_tensor(tensor);
  }
  const std::size_t fused = tensor.name.find("qkv_proj");
  if (fused == std::string::npos) return tensors.push_back(std::move(tensor));
  const bool are_neighbours = gguf_architecture_of(c) == "llama";
  Index first = 0;
  for (const char part : {'q', 'k', 'v'}) {
    const Index heads = part == 'q' ? c.heads : c.key_heads;
    std::string name = tensor.name;
    name.replace(fused, 3, std::string(1, part));
    HostTensor<T> own = rows_of(tensor, std::move(name), first, heads * c.head_width);
    if (are_neighbours && part != 'v') undo_row_order(own, paired_row_order(heads, c.head_width));
    tensors.push_back(std::move(own));
    first += heads * c.head_width;
  }
}

}  // namespace detail

/// Writes PATH, atomically: settings, then `tokenizer` (gguf_tokenizer_metadata), then weights as
/// float32, or matrices as float16 (all but a table of positions). `config`: as for write_model.
/// Throws DataError for models that llama.cpp has no settings for, and what write_gguf throws.
template <Backend B>
void write_gguf_model(const std::filesystem::path& path, B& backend, AnyTransformer<B>& model,
                      const ModelConfig& config, const GgufMetadataToWrite& tokenizer,
                      bool as_float16 = true) {
  using T = scalar_t<B>;
  detail::check_gguf_writable(config);
  const ParameterList<B> list = parameters<B>(model);
  detail::check_mlps_writable<B>(config, list);
  std::vector<detail::HostTensor<T>> tensors;
  const bool is_out_in = detail::has_transposed_weights(model);
  backend.synchronize();
  for (const Parameter<B>& p : list) {
    detail::append_in_gguf_form(detail::host_tensor(backend, p), config, is_out_in, tensors);
  }
  std::vector<std::vector<float>> values;
  values.reserve(tensors.size());
  std::vector<GgufTensorToWrite> files;
  for (const detail::HostTensor<T>& tensor : tensors) {
    values.emplace_back(tensor.values.begin(), tensor.values.end());
    const std::string name = detail::gguf_parameter_name(tensor.name);
    const bool is_wide = !as_float16 || tensor.shape.size() < 2 || name == "position_embd.weight";
    files.push_back({.name = name,
                     .type = is_wide ? GgufType::float32 : GgufType::float16,
                     .shape = tensor.shape,
                     .values = values.back()});
  }
  GgufMetadataToWrite metadata = detail::gguf_settings_of(config, as_float16);
  metadata.insert(metadata.end(), tokenizer.begin(), tokenizer.end());
  write_gguf(path, metadata, files);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
