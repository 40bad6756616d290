// Models by shape: a family's settings from a few numbers, and a model of zeros that has them.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/core/error.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/io/weight_conventions.hpp"
#include "wanamaker/nn/any_transformer.hpp"
#include "wanamaker/nn/config.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What a model to train is chosen by. 0 stands for a family's usual value.
struct ModelShape {
  Family family = Family::gpt2;
  Index vocabulary = 0;
  Index width = 0;      ///< d
  Index layers = 0;     ///< L
  Index heads = 0;      ///< H; d/H is the head's width
  Index positions = 0;  ///< longest window
  Index hidden = 0;     ///< h; usually 4·d, Llama type: 8·d/3 rounded up to a multiple of 16
  Index key_heads = 0;  ///< Llama type; usually H
  bool parallel_residual = true;  ///< GPT-NeoX type
};

namespace detail {

[[noreturn]] inline void refuse_shape(const ModelShape& s) {
  throw DataError(
      {.id = "training/shape",
       .where = "model_config",
       .what = "no model has this shape",
       .expected = "positive numbers; a width that is a multiple of the heads, these of the key "
                   "heads (fewer with the Llama type only); an even head width where positions are "
                   "rotary",
       .found = "vocabulary " + std::to_string(s.vocabulary) + ", width " +
                std::to_string(s.width) + ", " + std::to_string(s.layers) + " layers, " +
                std::to_string(s.heads) + " heads, " + std::to_string(s.key_heads) +
                " key heads, hidden " + std::to_string(s.hidden) + ", " +
                std::to_string(s.positions) + " positions",
       .mend = "choose other numbers"});
}

inline void check_shape_of_model(const ModelShape& s) {
  const auto numbers = {s.vocabulary, s.width, s.layers, s.heads, s.positions};
  if (*std::min_element(numbers.begin(), numbers.end()) <= 0 || s.hidden < 0 || s.key_heads < 0) {
    refuse_shape(s);
  }
  const Index key_heads = s.key_heads > 0 ? s.key_heads : s.heads;
  const bool heads_fit = s.width % s.heads == 0 && s.heads % key_heads == 0 &&
                         (key_heads == s.heads || s.family == Family::llama);
  const bool is_rotary = s.family != Family::gpt2;
  if (!heads_fit || (is_rotary && s.width / s.heads % 2 != 0)) refuse_shape(s);
}

}  // namespace detail

/// The settings of a model of that shape: GPT-2 (Radford et al. 2019): learned positions, GELU by
/// tanh, tied head. GPT-NeoX as Pythia (Biderman et al. 2023): a quarter of each head rotated,
/// GELU, a head of its own. Llama type (Touvron et al. 2023): rotary positions, RMSNorm, SiLU, no
/// biases, tied head as in small models of this type. Throws DataError where the numbers fit no
/// model.
inline ModelConfig model_config(const ModelShape& shape) {
  detail::check_shape_of_model(shape);
  const bool is_llama = shape.family == Family::llama;
  const bool is_neox = shape.family == Family::gpt_neox;
  const Index usual_hidden = is_llama ? blocks_of(8 * shape.width, 3 * 16) * 16 : 4 * shape.width;
  ModelConfig c{.family = shape.family, .name = family_name(shape.family)};
  c.vocabulary = shape.vocabulary;
  c.width = shape.width;
  c.layers = shape.layers;
  c.heads = shape.heads;
  c.key_heads = shape.key_heads > 0 ? shape.key_heads : shape.heads;
  c.head_width = shape.width / shape.heads;
  c.hidden = shape.hidden > 0 ? shape.hidden : usual_hidden;
  c.positions = shape.positions;
  if (is_llama) c.rotary_width = c.head_width;
  if (is_neox) c.rotary_width = std::max<Index>(2, c.head_width / 8 * 2);
  if (is_neox) c.activation = ActivationKind::gelu_erf;
  if (is_llama) c.activation = ActivationKind::silu;
  c.parallel_residual = is_neox && shape.parallel_residual;
  c.tied_head = !is_neox;
  c.attention_bias = c.attention_output_bias = c.mlp_bias = !is_llama;
  return c;
}

namespace detail {

/// Stands in for a file: every weight is 0. Members as those of WeightReader.
template <class B>
class ZeroWeights {
 public:
  explicit ZeroWeights(B& backend) : backend_(backend) {}

  const WeightConventions& conventions() const { return conventions_; }
  std::vector<storage_t<B>> host_weights(const std::string&, Index rows, Index cols) const {
    return std::vector<storage_t<B>>(static_cast<std::size_t>(rows * cols));
  }
  std::vector<scalar_t<B>> host_vector(const std::string&, Index n) const {
    return std::vector<scalar_t<B>>(static_cast<std::size_t>(n));
  }
  weight_matrix_t<B> weights(const std::string&, Index rows, Index cols) const {
    return {backend_.template allocate<storage_t<B>>(rows * cols), rows, cols};
  }
  weight_matrix_t<B> upload_weights(const std::vector<storage_t<B>>&, Index rows,
                                    Index cols) const {
    return weights("", rows, cols);
  }
  matrix_t<B> upload_vector(const std::vector<scalar_t<B>>& values) const {
    return make_matrix(backend_, 1, static_cast<Index>(values.size()));
  }
  Linear<B> linear(const std::string&, Index inputs, Index outputs, WeightLayout layout,
                   bool has_bias) const {
    const bool in_out = layout == WeightLayout::in_out;
    return {weights("", in_out ? inputs : outputs, in_out ? outputs : inputs), layout,
            make_matrix(backend_, has_bias ? 1 : 0, has_bias ? outputs : 0)};
  }
  LayerNorm<B> layer_norm(const std::string&, const ModelConfig& c) const {
    return {make_matrix(backend_, 1, c.width), make_matrix(backend_, 1, c.width), c.norm_epsilon};
  }
  RmsNorm<B> rms_norm(const std::string&, const ModelConfig& c) const {
    return {make_matrix(backend_, 1, c.width), c.norm_epsilon};
  }
  weight_matrix_t<B> embedding(const std::string&, const ModelConfig& c) const {
    return weights("", c.vocabulary, c.width);
  }
  Linear<B> head(const std::string&, const ModelConfig& c) const {
    if (c.tied_head) return {};
    return {weights("", c.vocabulary, c.width), WeightLayout::out_in};
  }

 private:
  B& backend_;
  WeightConventions conventions_{};
};

}  // namespace detail

/// A model whose parameters are all 0, to be given values by `initialise` or otherwise. The MLP of
/// a layer can be replaced before: model.mlp(layer) = … .
template <Backend B>
AnyTransformer<B> make_model(B& backend, const ModelConfig& config) {
  detail::ZeroWeights<B> zeros(backend);
  return detail::assemble_model(backend, zeros, config);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
