// The shape and settings of a model, independent of the file it came from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wanamaker/core/index.hpp"
#include "wanamaker/nn/rope_scaling.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

enum class Family { gpt2, gpt_neox, llama };
enum class ActivationKind { gelu_tanh, gelu_erf, silu, relu };

/// "gpt2", "gpt_neox", "llama".
constexpr const char* family_name(Family family) {
  switch (family) {
    case Family::gpt2:
      return "gpt2";
    case Family::gpt_neox:
      return "gpt_neox";
    case Family::llama:
      return "llama";
  }
  return "";
}

/// Everything that the forward pass depends on besides the weights. Lengths in elements.
struct ModelConfig {
  Family family = Family::gpt2;
  std::string name;
  Index vocabulary = 0;    ///< rows of the embedding, V
  Index width = 0;         ///< residual stream, d
  Index layers = 0;        ///< L
  Index heads = 0;         ///< query heads, H
  Index key_heads = 0;     ///< key and value heads; H without grouping
  Index head_width = 0;    ///< entries of one head; need not be d/H
  Index hidden = 0;        ///< MLP width, h
  Index positions = 0;     ///< longest window
  Index rotary_width = 0;  ///< rotated entries of a head; 0: learned positions
  double rope_theta = 10000.0;
  RopeScaling rope_scaling{};
  double norm_epsilon = 1e-5;
  ActivationKind activation = ActivationKind::gelu_tanh;
  bool parallel_residual = false;  ///< MLP reads the stream before attention was added
  bool tied_head = false;          ///< the head is the transposed embedding
  bool attention_bias = true;
  bool attention_output_bias = true;
  bool mlp_bias = true;
  bool scale_attention = true;          ///< scores divided by √head_width
  bool scale_by_inverse_layer = false;  ///< scores of layer ℓ divided by ℓ + 1
  Index sliding_window = 0;             ///< keys a query sees at most; 0: all
  std::optional<TokenId> bos{};
  std::vector<TokenId> eos{};  ///< each of these ends a text
};

}  // namespace wanamaker::inline WANAMAKER_ABI
