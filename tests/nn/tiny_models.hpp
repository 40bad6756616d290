// Tiny models of every family with seeded weights, as naive::Model and as the library's models.
#pragma once

#include <span>
#include <type_traits>
#include <utility>

#include "nn/naive_transformer.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/nn/any_transformer.hpp"

namespace wanamaker_test {

using namespace wanamaker;

/// Multiples of 1/128 below 1/2: exact in half and bfloat16 too.
inline std::vector<double> random_values(RandomStream& random, int n) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) {
    values.push_back((static_cast<double>(random.below(127)) - 63.0) / 128.0);
  }
  return values;
}

inline naive::Rows<double> random_rows(RandomStream& random, int rows, int cols) {
  naive::Rows<double> values;
  for (int i = 0; i < rows; ++i) values.push_back(random_values(random, cols));
  return values;
}

inline naive::Dense random_dense(RandomStream& random, int inputs, int outputs, bool has_bias) {
  naive::Dense dense{random_rows(random, inputs, outputs), {}};
  if (has_bias) dense.bias = random_values(random, outputs);
  return dense;
}

inline naive::Norm random_norm(RandomStream& random, int width) {
  naive::Norm norm{random_values(random, width), random_values(random, width)};
  for (double& g : norm.gain) g += 1.0;
  return norm;
}

/// Weights drawn in a fixed order; `padding`: rows of the head beyond the vocabulary.
inline naive::Model random_model(const naive::Settings& s, bool has_bias, int padding = 0) {
  RandomStream random(5);
  naive::Model m{.settings = s,
                 .embedding = random_rows(random, s.vocabulary, s.width),
                 .position_table = {},
                 .blocks = {},
                 .final_norm = random_norm(random, s.width),
                 .head = {}};
  if (s.rotary_width == 0) m.position_table = random_rows(random, s.positions, s.width);
  const int query_width = s.heads * s.head_width, key_width = s.key_heads * s.head_width;
  for (int l = 0; l < s.layers; ++l) {
    m.blocks.push_back({.attention_norm = random_norm(random, s.width),
                        .mlp_norm = random_norm(random, s.width),
                        .query = random_dense(random, s.width, query_width, has_bias),
                        .key = random_dense(random, s.width, key_width, has_bias),
                        .value = random_dense(random, s.width, key_width, has_bias),
                        .output = random_dense(random, query_width, s.width, has_bias),
                        .gate = random_dense(random, s.width, s.hidden, has_bias),
                        .up = random_dense(random, s.width, s.hidden, has_bias),
                        .down = random_dense(random, s.hidden, s.width, has_bias)});
  }
  if (!s.tied) m.head = random_dense(random, s.width, s.vocabulary + padding, false);
  return m;
}

inline naive::Model tiny_gpt2() {
  return random_model({.vocabulary = 31,
                       .width = 12,
                       .layers = 2,
                       .heads = 3,
                       .key_heads = 3,
                       .head_width = 4,
                       .hidden = 20,
                       .positions = 80,
                       .tied = true},
                      true);
}

/// Rotary on part of a head, exact GELU, a head with more rows than the vocabulary.
inline naive::Model tiny_neox(bool parallel) {
  return random_model({.vocabulary = 29,
                       .width = 12,
                       .layers = 2,
                       .heads = 2,
                       .key_heads = 2,
                       .head_width = 6,
                       .hidden = 16,
                       .positions = 80,
                       .rotary_width = 4,
                       .parallel = parallel,
                       .activation = "gelu"},
                      true, 3);
}

/// Grouped queries, heads wider than d/H; with biases as in Qwen2, or with a window as in Mistral.
inline naive::Model tiny_llama(bool has_bias, int window) {
  return random_model({.vocabulary = 27,
                       .width = 10,
                       .layers = 3,
                       .heads = 4,
                       .key_heads = 2,
                       .head_width = 6,
                       .hidden = 14,
                       .positions = 80,
                       .rotary_width = 6,
                       .rope_theta = 500.0,
                       .epsilon = 1e-6,
                       .root_mean_square = true,
                       .gated = true,
                       .window = window,
                       .activation = "silu"},
                      has_bias);
}

// ---------------------------------------------------------------- into the library

/// naive::Model as a model on a backend.
template <class B>
class ModelMaker {
 public:
  using Scalar = scalar_t<B>;
  using Storage = storage_t<B>;

  ModelMaker(B& backend, const naive::Model& model) : backend_(backend), model_(model) {}

  weight_matrix_t<B> weights(const naive::Rows<double>& rows) const {
    std::vector<Storage> values;
    for (const std::vector<double>& row : rows) {
      for (const double v : row) values.push_back(static_cast<Storage>(static_cast<float>(v)));
    }
    const Index count = static_cast<Index>(rows.size());
    return matrix_from_host<Storage>(backend_, values.data(), count,
                                     static_cast<Index>(values.size()) / count);
  }
  matrix_t<B> row(const std::vector<double>& values) const {
    std::vector<Scalar> converted;
    for (const double v : values) converted.push_back(static_cast<Scalar>(v));
    return matrix_from_host<Scalar>(backend_, converted.data(), 1,
                                    static_cast<Index>(values.size()));
  }

  Linear<B> linear(const naive::Dense& dense, WeightLayout layout) const {
    naive::Rows<double> weight = dense.weight;
    if (layout == WeightLayout::out_in) {
      weight.assign(dense.weight[0].size(), std::vector<double>(dense.weight.size()));
      for (std::size_t i = 0; i < dense.weight.size(); ++i) {
        for (std::size_t j = 0; j < weight.size(); ++j) weight[j][i] = dense.weight[i][j];
      }
    }
    if (dense.bias.empty()) return {weights(weight), layout};
    return {weights(weight), layout, row(dense.bias)};
  }

  template <class Norm>
  Norm norm(const naive::Norm& n) const {
    if constexpr (std::is_same_v<Norm, LayerNorm<B>>) {
      return {row(n.gain), row(n.bias), model_.settings.epsilon};
    } else {
      return {row(n.gain), model_.settings.epsilon};
    }
  }

  template <class Positions>
  CausalSelfAttention<B, Positions> attention(const naive::Block& b, WeightLayout layout) const {
    const naive::Settings& s = model_.settings;
    naive::Dense qkv = b.query;
    for (const naive::Dense* part : {&b.key, &b.value}) {
      for (std::size_t i = 0; i < qkv.weight.size(); ++i) {
        qkv.weight[i].insert(qkv.weight[i].end(), part->weight[i].begin(), part->weight[i].end());
      }
      qkv.bias.insert(qkv.bias.end(), part->bias.begin(), part->bias.end());
    }
    const double scale = 1 / std::sqrt(static_cast<double>(s.head_width));
    return {linear(qkv, layout), linear(b.output, layout),
            AttentionShape{s.heads, s.key_heads, s.head_width, scale, s.window},
            positions<Positions>()};
  }

  template <class Positions>
  Positions positions() const {
    const naive::Settings& s = model_.settings;
    if constexpr (std::is_same_v<Positions, LearnedPositions>) {
      return {};
    } else {
      return Positions::from_angles(
          backend_, rotary_angles(s.positions, s.rotary_width, s.rope_theta), s.positions);
    }
  }

  /// The MLP that the model was made with.
  AnyMlp<B> mlp(const naive::Block& b, WeightLayout layout) const {
    if (model_.settings.gated) {
      return GatedLinearUnitMlp<B, Silu>(linear(b.gate, layout), linear(b.up, layout),
                                         linear(b.down, layout));
    }
    if (model_.settings.activation == "gelu") {
      return DenseMlp<B, GeluErf>(linear(b.up, layout), linear(b.down, layout));
    }
    return DenseMlp<B, GeluTanh>(linear(b.up, layout), linear(b.down, layout));
  }

  ModelConfig config() const {
    const naive::Settings& s = model_.settings;
    ModelConfig c;
    c.family = s.root_mean_square    ? Family::llama
               : s.rotary_width == 0 ? Family::gpt2
                                     : Family::gpt_neox;
    c.name = "tiny";
    c.vocabulary = s.vocabulary;
    c.width = s.width;
    c.layers = s.layers;
    c.heads = s.heads;
    c.key_heads = s.key_heads;
    c.head_width = s.head_width;
    c.hidden = s.hidden;
    c.positions = s.positions;
    c.rotary_width = s.rotary_width;
    c.parallel_residual = s.parallel;
    c.tied_head = s.tied;
    return c;
  }

  /// make_mlp(block, layout) gives the block's policy.
  template <class Model, class Positions, class MakeMlp>
  Model transformer(WeightLayout layout, MakeMlp&& make_mlp) const {
    using Norm = typename Model::Norm;
    typename Model::Parts parts{.config = config(),
                                .embedding = weights(model_.embedding),
                                .position_table = {},
                                .blocks = {},
                                .final_norm = norm<Norm>(model_.final_norm),
                                .head = {}};
    if (!model_.position_table.empty()) parts.position_table = weights(model_.position_table);
    if (!model_.settings.tied) parts.head = linear(model_.head, WeightLayout::out_in);
    for (const naive::Block& b : model_.blocks) {
      parts.blocks.emplace_back(norm<Norm>(b.attention_norm), attention<Positions>(b, layout),
                                norm<Norm>(b.mlp_norm), make_mlp(b, layout));
    }
    return Model(std::move(parts));
  }

  /// Whatever the family.
  AnyTransformer<B> any() const {
    using Any = AnyTransformer<B>;
    using Mlp = AnyMlp<B>;
    using Rotary = RotaryPositions<B>;
    constexpr WeightLayout in_out = WeightLayout::in_out, out_in = WeightLayout::out_in;
    const auto own = [this](const naive::Block& b, WeightLayout l) { return mlp(b, l); };
    const naive::Settings& s = model_.settings;
    if (s.root_mean_square) {
      return Any(transformer<Transformer<B, LlamaBlock<B, Mlp>>, Rotary>(out_in, own));
    }
    if (s.rotary_width == 0) {
      return Any(transformer<Transformer<B, Gpt2Block<B, Mlp>>, LearnedPositions>(in_out, own));
    }
    if (s.parallel)
      return Any(transformer<Transformer<B, GptNeoXBlock<B, Mlp>>, Rotary>(out_in, own));
    using Sequential = GptNeoXBlock<B, Mlp, SequentialResidual>;
    return Any(transformer<Transformer<B, Sequential>, Rotary>(out_in, own));
  }

 private:
  B& backend_;
  const naive::Model& model_;
};

/// Sequences of random tokens.
inline std::vector<std::vector<int>> random_sequences(int vocabulary,
                                                      const std::vector<int>& lengths) {
  RandomStream random(6);
  std::vector<std::vector<int>> sequences;
  for (const int length : lengths) {
    sequences.emplace_back();
    for (int i = 0; i < length; ++i) {
      sequences.back().push_back(
          static_cast<int>(random.below(static_cast<std::uint64_t>(vocabulary))));
    }
  }
  return sequences;
}

template <class B>
PackedBatch<B> pack(B& backend, const std::vector<std::vector<int>>& sequences) {
  std::vector<TokenId> tokens;
  std::vector<Index> offsets{0};
  for (const std::vector<int>& sequence : sequences) {
    tokens.insert(tokens.end(), sequence.begin(), sequence.end());
    offsets.push_back(static_cast<Index>(tokens.size()));
  }
  return {backend, tokens, offsets};
}

}  // namespace wanamaker_test
