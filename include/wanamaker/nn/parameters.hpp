// The learned arrays of a model as one uniform list: what optimisers, checkpoints and freezing work
// on. Names are those of Hugging Face's state dicts.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "wanamaker/nn/config.hpp"
#include "wanamaker/nn/linear.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// One learned array: views into the model's memory and into that of its gradient. A vector is one
/// row. A frozen parameter has an empty gradient.
template <class B>
struct Parameter {
  std::string name{};
  bool decays = false;          ///< matrices decay; biases and gains of norms do not
  matrix_view_t<B> value{};     ///< the model's own memory
  matrix_view_t<B> gradient{};  ///< of the same shape; empty where frozen
  bool frozen = false;
  Index layer = 0;  ///< of its block; −1 before the blocks, the number of blocks after them
};

/// In the model's order, every array once: a tied head is its embedding.
template <class B>
using ParameterList = std::vector<Parameter<B>>;

/// True for a backend whose models can be trained; for another a static_assert says why not.
template <class B>
consteval bool check_trainable() {
  static_assert(std::is_same_v<scalar_t<B>, storage_t<B>>,
                "wanamaker: training needs weights stored in the type that is computed in, float "
                "or double: 16-bit weights would lose most updates (docs/training.md)");
  return true;
}

/// What a family calls its modules.
struct ParameterNames {
  std::string_view embedding = "embedding";
  std::string_view position_table = "position_table";
  std::string_view blocks = "blocks";  ///< followed by the layer's number
  std::string_view attention_norm = "attention_norm";
  std::string_view qkv = "attention.qkv";
  std::string_view attention_output = "attention.output";
  std::string_view mlp_norm = "mlp_norm";
  std::string_view mlp_gate = "gate";  ///< within "mlp"
  std::string_view mlp_up = "up";
  std::string_view mlp_down = "down";
  std::string_view final_norm = "final_norm";
  std::string_view head = "head";
};

/// Names as Hugging Face has them. Fused projections are one parameter, rows (GPT-2: columns) in
/// the order q, k, v of all heads: "…self_attn.qkv_proj" of the Llama family stands for q_proj,
/// k_proj and v_proj, one below the other; "…attention.query_key_value" of GPT-NeoX has the file's
/// rows in that order, not by head.
inline ParameterNames parameter_names(Family family) {
  if (family == Family::gpt2) {
    return {"transformer.wte",
            "transformer.wpe",
            "transformer.h",
            "ln_1",
            "attn.c_attn",
            "attn.c_proj",
            "ln_2",
            "c_gate",
            "c_fc",
            "c_proj",
            "transformer.ln_f",
            "lm_head"};
  }
  if (family == Family::gpt_neox) {
    return {"gpt_neox.embed_in",
            "gpt_neox.position_table",
            "gpt_neox.layers",
            "input_layernorm",
            "attention.query_key_value",
            "attention.dense",
            "post_attention_layernorm",
            "dense_gate",
            "dense_h_to_4h",
            "dense_4h_to_h",
            "gpt_neox.final_layer_norm",
            "embed_out"};
  }
  return {"model.embed_tokens",
          "model.position_table",
          "model.layers",
          "input_layernorm",
          "self_attn.qkv_proj",
          "self_attn.o_proj",
          "post_attention_layernorm",
          "gate_proj",
          "up_proj",
          "down_proj",
          "model.norm",
          "lm_head"};
}

/// What a component adds its parameters to: knows the prefix of its names. An array that several
/// components share is listed once, under its first name.
template <class B>
class ParameterCollector {
 public:
  explicit ParameterCollector(ParameterList<B>& list, ParameterNames names = {},
                              std::string prefix = {}, Index layer = 0)
      : list_(&list), names_(names), prefix_(std::move(prefix)), layer_(layer) {
    static_assert(check_trainable<B>());
  }

  const ParameterNames& names() const { return names_; }
  /// The same list under a family's names.
  ParameterCollector named(const ParameterNames& names) const {
    return ParameterCollector(*list_, names, prefix_, layer_);
  }
  /// The same list for parameters of block `layer`.
  ParameterCollector at_layer(Index layer) const {
    return ParameterCollector(*list_, names_, prefix_, layer);
  }
  /// For the parts of a module: names become PREFIX.MODULE.NAME.
  ParameterCollector within(std::string_view module) const {
    return ParameterCollector(*list_, names_, prefix_ + std::string(module) + ".", layer_);
  }

  /// An array that decays. Empty ones are left out.
  void matrix(std::string_view name, matrix_view_t<B> value) const { add(name, value, true); }
  /// A bias or a gain [1 × n], which does not decay. Empty ones are left out.
  void vector(std::string_view name, matrix_view_t<B> value) const { add(name, value, false); }
  /// NAME.weight and NAME.bias.
  void linear(std::string_view name, Linear<B>& layer) const {
    const ParameterCollector own = within(name);
    own.matrix("weight", layer.weight());
    own.vector("bias", layer.bias());
  }

 private:
  void add(std::string_view name, matrix_view_t<B> value, bool decays) const {
    const bool is_listed = std::any_of(list_->begin(), list_->end(), [&](const Parameter<B>& p) {
      return p.value.data == value.data;
    });
    if (value.size() == 0 || is_listed) return;
    list_->push_back({prefix_ + std::string(name), decays, value, {}, false, layer_});
  }

  ParameterList<B>* list_;
  ParameterNames names_;
  std::string prefix_;
  Index layer_;
};

namespace detail {

/// A component's own member `parameters(collector)`, or the library's collect_parameters for it.
template <class Component, class B>
void collect(Component& component, const ParameterCollector<B>& collector) {
  if constexpr (requires { component.parameters(collector); }) {
    component.parameters(collector);
  } else {
    collect_parameters(component, collector);
  }
}

}  // namespace detail

/// The learned arrays of a model or of a component, without gradients: parameters<B>(model). The
/// views hold until the model ends or one of its policies is replaced.
template <class B, class Model>
ParameterList<B> parameters(Model& model) {
  ParameterList<B> list;
  detail::collect(model, ParameterCollector<B>(list));
  return list;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
