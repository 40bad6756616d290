// Weights of a model folder or a GGUF file to an AnyTransformer: tensor names with and without
// prefixes, layouts by architecture, fused projections in one order.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/io/gguf.hpp"
#include "wanamaker/io/gguf_config.hpp"
#include "wanamaker/io/model_config.hpp"
#include "wanamaker/io/tensor_source.hpp"
#include "wanamaker/io/weight_conventions.hpp"
#include "wanamaker/nn/any_transformer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// Buffers that old releases stored among the weights; they are no parameters.
inline bool is_stray_buffer(std::string_view name) {
  constexpr std::string_view endings[] = {".attn.bias", ".attn.masked_bias", ".attention.bias",
                                          ".attention.masked_bias", ".rotary_emb.inv_freq"};
  if (name == "rope_freqs.weight") return true;  // of GGUF: part of the settings
  return std::any_of(std::begin(endings), std::end(endings),
                     [name](std::string_view ending) { return name.ends_with(ending); });
}

// Reads tensors by the names that Hugging Face gives them, whatever the file calls them, checks
// shapes, and knows afterwards which tensors nobody asked for.
template <class B>
class WeightReader {
 public:
  using Storage = storage_t<B>;
  using Scalar = scalar_t<B>;

  WeightReader(B& backend, const TensorArchive& archive, WeightConventions conventions)
      : backend_(backend), archive_(archive), conventions_(std::move(conventions)) {}

  const WeightConventions& conventions() const { return conventions_; }
  bool contains(const std::string& name) const { return archive_.contains(full_name(name)); }

  /// [rows × cols] of weights on the host, in the backend's storage format.
  std::vector<Storage> host_weights(const std::string& name, Index rows, Index cols) {
    return host_values<Storage>(name, {rows, cols});
  }
  /// n scalars on the host.
  std::vector<Scalar> host_vector(const std::string& name, Index n) {
    return host_values<Scalar>(name, {n});
  }
  weight_matrix_t<B> weights(const std::string& name, Index rows, Index cols) {
    return upload_weights(host_weights(name, rows, cols), rows, cols);
  }
  matrix_t<B> vector(const std::string& name, Index n) {
    return upload_vector(host_vector(name, n));
  }
  weight_matrix_t<B> upload_weights(const std::vector<Storage>& values, Index rows, Index cols) {
    return matrix_from_host<Storage>(backend_, values.data(), rows, cols);
  }
  matrix_t<B> upload_vector(const std::vector<Scalar>& values) {
    return matrix_from_host<Scalar>(backend_, values.data(), 1, static_cast<Index>(values.size()));
  }

  /// A dense layer NAME.weight, NAME.bias from `inputs` to `outputs`.
  Linear<B> linear(const std::string& name, Index inputs, Index outputs, WeightLayout layout,
                   bool has_bias) {
    const bool in_out = layout == WeightLayout::in_out;
    weight_matrix_t<B> weight =
        weights(name + ".weight", in_out ? inputs : outputs, in_out ? outputs : inputs);
    if (!has_bias) return {std::move(weight), layout};
    return {std::move(weight), layout, vector(name + ".bias", outputs)};
  }

  LayerNorm<B> layer_norm(const std::string& name, const ModelConfig& c) {
    return {vector(name + ".weight", c.width), vector(name + ".bias", c.width), c.norm_epsilon};
  }
  RmsNorm<B> rms_norm(const std::string& name, const ModelConfig& c) {
    return {vector(name + ".weight", c.width), c.norm_epsilon};
  }

  /// The embedding, which may have more rows than the vocabulary.
  weight_matrix_t<B> embedding(const std::string& name, const ModelConfig& c) {
    const Index rows = padded_rows(full_name(name), c);
    return weights(name, rows, c.width);
  }
  /// The head; an empty layer where it is tied to the embedding.
  Linear<B> head(const std::string& name, const ModelConfig& c) {
    if (c.tied_head) {
      taken_.insert(full_name(name));
      return {};
    }
    return {weights(name, padded_rows(full_name(name), c), c.width), WeightLayout::out_in};
  }

  /// Throws FormatError for a tensor that the architecture does not use: it would change the
  /// result.
  void refuse_the_rest() const {
    for (const std::string& name : archive_.names()) {
      if (taken_.contains(name) || is_stray_buffer(name)) continue;
      throw FormatError({.id = "model/unused-tensor",
                         .where = archive_.path().string(),
                         .what = "tensor " + in_quotes(name) + " belongs to no part of the model",
                         .mend = "check that settings and weights belong together"});
    }
  }

 private:
  std::string full_name(const std::string& name) const { return conventions_.name_in_file(name); }

  Index padded_rows(const std::string& full, const ModelConfig& c) const {
    const Shape shape = archive_.info(full).shape;
    if (shape.size() == 2 && shape[0] >= c.vocabulary) return shape[0];
    fail_shape(full, {c.vocabulary, c.width});
  }

  template <class T>
  std::vector<T> host_values(const std::string& name, const Shape& shape) {
    const std::string full = full_name(name);
    if (archive_.info(full).shape != shape) fail_shape(full, shape);
    taken_.insert(full);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      return archive_.template read<T>(full);
    } else {
      if (archive_.info(full).dtype == dtype_of<T>) return archive_.template read<T>(full);
      return narrowed<T>(archive_.template read<float>(full), full);
    }
  }

  template <class T>
  std::vector<T> narrowed(const std::vector<float>& values, const std::string& full) const {
    std::vector<T> result;
    result.reserve(values.size());
    for (const float value : values) {
      result.push_back(T(value));
      if (!std::isfinite(static_cast<float>(result.back()))) fail_narrow(full, value);
    }
    return result;
  }

  [[noreturn]] void fail_narrow(const std::string& full, float value) const {
    throw NumericalError({.id = "model/storage-overflow",
                          .where = archive_.path().string() + ", tensor " + in_quotes(full),
                          .what = "a weight is too large for 16-bit storage",
                          .found = std::to_string(value),
                          .mend = "store weights as float or bfloat16"});
  }
  [[noreturn]] void fail_shape(const std::string& full, const Shape& expected) const {
    throw FormatError({.id = "tensor/shape",
                       .where = archive_.path().string() + ", tensor " + in_quotes(full),
                       .what = "wrong shape",
                       .expected = shape_text(expected),
                       .found = shape_text(archive_.info(full).shape),
                       .mend = "check that config.json and weights belong together"});
  }

  B& backend_;
  const TensorArchive& archive_;
  WeightConventions conventions_;
  std::set<std::string, std::less<>> taken_;
};

/// f(activation functor) for a kind known at run time.
template <class F>
auto with_activation(ActivationKind kind, F&& f) {
  switch (kind) {
    case ActivationKind::gelu_tanh:
      return f(GeluTanh{});
    case ActivationKind::gelu_erf:
      return f(GeluErf{});
    case ActivationKind::silu:
      return f(Silu{});
    default:
      return f(Relu{});
  }
}

inline AttentionShape attention_shape(const ModelConfig& c, Index layer) {
  double scale = c.scale_attention ? 1.0 / std::sqrt(static_cast<double>(c.head_width)) : 1.0;
  if (c.scale_by_inverse_layer) scale /= static_cast<double>(layer + 1);
  return {c.heads, c.key_heads, c.head_width, scale, c.sliding_window};
}

/// Rows of GPT-NeoX's fused projection (heads, 3, head_width) in the order q, k, v: entry i of the
/// result is the row of the file that belongs at row i.
inline std::vector<Index> fused_row_order(Index heads, Index head_width) {
  std::vector<Index> order;
  for (Index part = 0; part < 3; ++part) {
    for (Index head = 0; head < heads; ++head) {
      for (Index j = 0; j < head_width; ++j) order.push_back((head * 3 + part) * head_width + j);
    }
  }
  return order;
}

/// Rows of a projection whose rotated pairs are neighbours, in the order first halves, second
/// halves: entry i of the result is the row of the file that belongs at row i.
inline std::vector<Index> paired_row_order(Index heads, Index head_width) {
  std::vector<Index> order;
  for (Index head = 0; head < heads; ++head) {
    for (Index part = 0; part < 2; ++part) {
      for (Index j = 0; j < head_width / 2; ++j) order.push_back(head * head_width + 2 * j + part);
    }
  }
  return order;
}

template <class T>
std::vector<T> rows_in_order(const std::vector<T>& rows, Index cols,
                             const std::vector<Index>& order) {
  std::vector<T> result;
  result.reserve(rows.size());
  for (const Index row : order) {
    const auto begin = rows.begin() + row * cols;
    result.insert(result.end(), begin, begin + cols);
  }
  return result;
}

template <class B, class Reader>
AnyMlp<B> dense_mlp(Reader& reader, const ModelConfig& c, const std::string& up,
                    const std::string& down, WeightLayout layout) {
  return with_activation(c.activation, [&](auto activation) {
    return AnyMlp<B>(
        DenseMlp<B, decltype(activation)>(reader.linear(up, c.width, c.hidden, layout, true),
                                          reader.linear(down, c.hidden, c.width, layout, true)));
  });
}

template <class B, class Reader>
AnyMlp<B> llama_mlp(Reader& reader, const ModelConfig& c, const std::string& at) {
  constexpr WeightLayout layout = WeightLayout::out_in;
  return with_activation(c.activation, [&](auto activation) {
    return AnyMlp<B>(GatedLinearUnitMlp<B, decltype(activation)>(
        reader.linear(at + "gate_proj", c.width, c.hidden, layout, c.mlp_bias),
        reader.linear(at + "up_proj", c.width, c.hidden, layout, c.mlp_bias),
        reader.linear(at + "down_proj", c.hidden, c.width, layout, c.mlp_bias)));
  });
}

/// The MLP of one layer, of any family.
template <class B, class Reader>
AnyMlp<B> layer_mlp(Reader& reader, const ModelConfig& c, Index layer) {
  const std::string number = std::to_string(layer);
  if (c.family == Family::gpt2) {
    const std::string at = "h." + number + ".mlp.";
    return dense_mlp<B>(reader, c, at + "c_fc", at + "c_proj", reader.conventions().gpt2_layout);
  }
  const std::string at = "layers." + number + ".mlp.";
  if (c.family == Family::llama) return llama_mlp<B>(reader, c, at);
  return dense_mlp<B>(reader, c, at + "dense_h_to_4h", at + "dense_4h_to_h", WeightLayout::out_in);
}

template <class B, class Reader>
typename AnyTransformer<B>::Model load_gpt2(Reader& reader, const ModelConfig& c) {
  using Model = typename AnyTransformer<B>::Model;
  typename Model::Parts parts{.config = c,
                              .embedding = reader.embedding("wte.weight", c),
                              .position_table = reader.weights("wpe.weight", c.positions, c.width),
                              .blocks = {},
                              .final_norm = reader.layer_norm("ln_f", c),
                              .head = reader.head("lm_head.weight", c)};
  for (Index l = 0; l < c.layers; ++l) {
    const std::string at = "h." + std::to_string(l) + ".";
    const WeightLayout layout = reader.conventions().gpt2_layout;
    parts.blocks.emplace_back(
        reader.layer_norm(at + "ln_1", c),
        CausalSelfAttention<B, AnyPositions<B>>(
            reader.linear(at + "attn.c_attn", c.width, 3 * c.width, layout, true),
            reader.linear(at + "attn.c_proj", c.width, c.width, layout, true),
            attention_shape(c, l), LearnedPositions{}),
        reader.layer_norm(at + "ln_2", c), layer_mlp<B>(reader, c, l));
  }
  return Model(std::move(parts));
}

template <class B, class Reader>
Linear<B> neox_qkv(Reader& reader, const ModelConfig& c, const std::string& name) {
  const Index rows = 3 * c.width;
  if (!reader.conventions().fused_by_head) {
    return reader.linear(name, c.width, rows, WeightLayout::out_in, c.attention_bias);
  }
  const std::vector<Index> order = fused_row_order(c.heads, c.head_width);
  const auto weight =
      rows_in_order(reader.host_weights(name + ".weight", rows, c.width), c.width, order);
  weight_matrix_t<B> uploaded = reader.upload_weights(weight, rows, c.width);
  if (!c.attention_bias) return {std::move(uploaded), WeightLayout::out_in};
  return {std::move(uploaded), WeightLayout::out_in,
          reader.upload_vector(rows_in_order(reader.host_vector(name + ".bias", rows), 1, order))};
}

/// Tables for all positions of a model. Throws FormatError where the settings ask for more than 2²⁸
/// angles: they come from a file.
template <class B>
RotaryPositions<B> rotary_positions(B& backend, const ModelConfig& c) {
  constexpr Index most = Index{1} << 28;
  if (c.positions > most / c.rotary_width) {
    throw FormatError({.id = "config/bad-setting",
                       .where = c.name,
                       .what = "too many positions",
                       .expected = "at most " + std::to_string(most / c.rotary_width),
                       .found = std::to_string(c.positions),
                       .mend = "lower max_position_embeddings or context_length in the file"});
  }
  const std::vector<double> angles =
      rotary_angles(c.positions, c.rotary_width, c.rope_theta, c.rope_scaling.divisors);
  return RotaryPositions<B>::from_angles(backend, angles, c.positions, c.rope_scaling.magnitude);
}

template <class B, class Reader>
typename AnyTransformer<B>::Model load_neox(B& backend, Reader& reader, const ModelConfig& c) {
  using Model = typename AnyTransformer<B>::Model;
  typename Model::Parts parts{.config = c,
                              .embedding = reader.embedding("embed_in.weight", c),
                              .position_table = {},
                              .blocks = {},
                              .final_norm = reader.layer_norm("final_layer_norm", c),
                              .head = reader.head("embed_out.weight", c)};
  const RotaryPositions<B> rotary = rotary_positions(backend, c);
  const AnyResidual topology =
      c.parallel_residual ? AnyResidual(ParallelResidual{}) : AnyResidual(SequentialResidual{});
  for (Index l = 0; l < c.layers; ++l) {
    const std::string at = "layers." + std::to_string(l) + ".";
    constexpr WeightLayout layout = WeightLayout::out_in;
    parts.blocks.emplace_back(reader.layer_norm(at + "input_layernorm", c),
                              CausalSelfAttention<B, AnyPositions<B>>(
                                  neox_qkv<B>(reader, c, at + "attention.query_key_value"),
                                  reader.linear(at + "attention.dense", c.width, c.width, layout,
                                                c.attention_output_bias),
                                  attention_shape(c, l), rotary),
                              reader.layer_norm(at + "post_attention_layernorm", c),
                              layer_mlp<B>(reader, c, l), topology);
  }
  return Model(std::move(parts));
}

// Separate query, key and value projections, one below the other.
template <class B, class Reader>
Linear<B> llama_qkv(Reader& reader, const ModelConfig& c, const std::string& at) {
  std::vector<storage_t<B>> weight;
  std::vector<scalar_t<B>> bias;
  for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
    const Index heads = part[0] == 'q' ? c.heads : c.key_heads;
    const Index rows = heads * c.head_width;
    auto own = reader.host_weights(at + part + ".weight", rows, c.width);
    auto own_bias = c.attention_bias ? reader.host_vector(at + part + ".bias", rows)
                                     : std::vector<scalar_t<B>>{};
    if (reader.conventions().rotary_neighbours && part[0] != 'v') {
      const std::vector<Index> order = paired_row_order(heads, c.head_width);
      own = rows_in_order(own, c.width, order);
      if (!own_bias.empty()) own_bias = rows_in_order(own_bias, 1, order);
    }
    weight.insert(weight.end(), own.begin(), own.end());
    bias.insert(bias.end(), own_bias.begin(), own_bias.end());
  }
  const Index rows = static_cast<Index>(weight.size()) / c.width;
  weight_matrix_t<B> uploaded = reader.upload_weights(weight, rows, c.width);
  if (!c.attention_bias) return {std::move(uploaded), WeightLayout::out_in};
  return {std::move(uploaded), WeightLayout::out_in, reader.upload_vector(bias)};
}

template <class B, class Reader>
typename AnyTransformer<B>::Model load_llama(B& backend, Reader& reader, const ModelConfig& c) {
  using Model = typename AnyTransformer<B>::Model;
  typename Model::Parts parts{.config = c,
                              .embedding = reader.embedding("embed_tokens.weight", c),
                              .position_table = {},
                              .blocks = {},
                              .final_norm = reader.rms_norm("norm", c),
                              .head = reader.head("lm_head.weight", c)};
  const RotaryPositions<B> rotary = rotary_positions(backend, c);
  for (Index l = 0; l < c.layers; ++l) {
    const std::string at = "layers." + std::to_string(l) + ".";
    parts.blocks.emplace_back(
        reader.rms_norm(at + "input_layernorm", c),
        CausalSelfAttention<B, AnyPositions<B>>(
            llama_qkv<B>(reader, c, at + "self_attn."),
            reader.linear(at + "self_attn.o_proj", c.heads * c.head_width, c.width,
                          WeightLayout::out_in, c.attention_output_bias),
            attention_shape(c, l), rotary),
        reader.rms_norm(at + "post_attention_layernorm", c), layer_mlp<B>(reader, c, l));
  }
  return Model(std::move(parts));
}

/// The model of a family. `Reader` is WeightReader, or another with the same members.
template <class B, class Reader>
AnyTransformer<B> assemble_model(B& backend, Reader& reader, const ModelConfig& c) {
  using Any = AnyTransformer<B>;
  if (c.family == Family::gpt2) return Any(load_gpt2<B>(reader, c));
  if (c.family == Family::llama) return Any(load_llama(backend, reader, c));
  return Any(load_neox(backend, reader, c));
}

template <class B>
AnyTransformer<B> load_family(B& backend, const TensorArchive& archive,
                              const WeightConventions& conventions, const ModelConfig& c) {
  WeightReader<B> reader(backend, archive, conventions);
  AnyTransformer<B> model = assemble_model(backend, reader, c);
  reader.refuse_the_rest();
  return model;
}

}  // namespace detail

/// Loads a Hugging Face folder (config.json and safetensors weights) or a GGUF file (by its name)
/// into the backend's memory, weights in its storage format; quantised ones are dequantised. Throws
/// FileError, FormatError, and DataError for weights that are not finite.
template <Backend B>
AnyTransformer<B> load_model(B& backend, const std::filesystem::path& path) {
  if (is_gguf_path(path)) {
    const GgufFile file = GgufFile::open(path);
    const ModelConfig config = gguf_model_config(file);
    return detail::load_family(backend, TensorArchive::open(path),
                               gguf_conventions(gguf_architecture(file)), config);
  }
  const ModelConfig config = read_model_config(path);
  const TensorArchive archive = TensorArchive::open(path);
  return detail::load_family(backend, archive, folder_conventions(config.family, archive.names()),
                             config);
}

/// The MLP of one layer alone, from a Hugging Face folder: no other weights are read. Throws as
/// load_model, and ShapeError ("shape/no-such-layer").
template <Backend B>
AnyMlp<B> load_mlp(B& backend, const std::filesystem::path& folder, Index layer) {
  const ModelConfig config = read_model_config(folder);
  if (layer < 0 || layer >= config.layers) {
    throw ShapeError({.id = "shape/no-such-layer",
                      .where = "load_mlp, " + folder.string(),
                      .what = "the model has no such layer",
                      .expected = "0 to " + std::to_string(config.layers - 1),
                      .found = std::to_string(layer),
                      .mend = "ask for a layer of the model"});
  }
  const TensorArchive archive = TensorArchive::open(folder);
  detail::WeightReader<B> reader(backend, archive,
                                 folder_conventions(config.family, archive.names()));
  return detail::layer_mlp<B>(reader, config, layer);
}

}  // namespace wanamaker::inline WANAMAKER_ABI

#ifdef WANAMAKER_COMPILED
#include "wanamaker/io/compiled_models.hpp"
#endif
