// A model as a Hugging Face folder: config.json and model.safetensors, the inverse of load_model.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/core/error.hpp"
#include "wanamaker/core/half.hpp"
#include "wanamaker/io/model_config_writing.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/io/safetensors_writer.hpp"
#include "wanamaker/nn/any_transformer.hpp"
#include "wanamaker/nn/backward/transformer.hpp"
#include "wanamaker/nn/parameters.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// A tensor as the file is to have it, on the host.
template <class T>
struct HostTensor {
  std::string name;
  Shape shape;
  std::vector<T> values;

  Index rows() const { return shape.front(); }
  Index cols() const { return shape.size() > 1 ? shape.back() : 1; }
};

template <class B>
HostTensor<scalar_t<B>> host_tensor(B& backend, const Parameter<B>& p) {
  HostTensor<scalar_t<B>> tensor{p.name, {p.value.rows, p.value.cols}, {}};
  if (!p.decays) tensor.shape = {p.value.size()};
  tensor.values.resize(static_cast<std::size_t>(p.value.size()));
  for (Index row = 0; row < p.value.rows; ++row) {
    backend.copy_to_host(p.value.row(row), p.value.cols, tensor.values.data() + row * p.value.cols);
  }
  return tensor;
}

template <class T>
HostTensor<T> transposed_tensor(const HostTensor<T>& tensor) {
  HostTensor<T> result{tensor.name, {tensor.cols(), tensor.rows()}, {}};
  for (Index j = 0; j < tensor.cols(); ++j) {
    for (Index i = 0; i < tensor.rows(); ++i) {
      result.values.push_back(tensor.values[static_cast<std::size_t>(i * tensor.cols() + j)]);
    }
  }
  return result;
}

/// Rows first … first + count − 1 under another name.
template <class T>
HostTensor<T> rows_of(const HostTensor<T>& tensor, std::string name, Index first, Index count) {
  HostTensor<T> result{std::move(name), tensor.shape, {}};
  result.shape.front() = count;
  const auto begin = tensor.values.begin() + first * tensor.cols();
  result.values.assign(begin, begin + count * tensor.cols());
  return result;
}

/// Row order[i] of the result is row i of the tensor: undoes rows_in_order.
template <class T>
void undo_row_order(HostTensor<T>& tensor, const std::vector<Index>& order) {
  const Index cols = tensor.cols();
  std::vector<T> values(tensor.values.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto begin = tensor.values.begin() + static_cast<Index>(i) * cols;
    std::copy(begin, begin + cols, values.begin() + order[i] * cols);
  }
  tensor.values = std::move(values);
}

/// One parameter as the family's files have it: one tensor, or q, k and v apart.
template <class T>
void append_in_file_form(HostTensor<T> tensor, const ModelConfig& c, bool gpt2_transposed,
                         std::vector<HostTensor<T>>& tensors) {
  const auto has = [&](std::string_view part) {
    return tensor.name.find(part) != std::string::npos;
  };
  if (c.family == Family::gpt2 && gpt2_transposed && tensor.shape.size() == 2 &&
      (has(".attn.") || has(".mlp."))) {
    tensor = transposed_tensor(tensor);
  }
  if (c.family == Family::gpt_neox && has(".query_key_value.")) {
    undo_row_order(tensor, fused_row_order(c.heads, c.head_width));
  }
  const std::size_t fused = tensor.name.find("qkv_proj");
  if (c.family != Family::llama || fused == std::string::npos) {
    return tensors.push_back(std::move(tensor));
  }
  Index first = 0;
  for (const char part : {'q', 'k', 'v'}) {
    const Index count = (part == 'q' ? c.heads : c.key_heads) * c.head_width;
    std::string name = tensor.name;
    name.replace(fused, 3, std::string(1, part));
    tensors.push_back(rows_of(tensor, std::move(name), first, count));
    first += count;
  }
}

/// Throws DataError unless every MLP is the family's own: files have no names for others.
template <class B>
void check_mlps_writable(const ModelConfig& c, const ParameterList<B>& list) {
  const ParameterNames names = parameter_names(c.family);
  const auto prefix = std::string(names.blocks) + ".";
  std::set<std::string> expected, found;
  for (Index l = 0; l < c.layers; ++l) {
    for (const std::string_view module : {names.mlp_gate, names.mlp_up, names.mlp_down}) {
      if (module == names.mlp_gate && c.family != Family::llama) continue;
      const std::string name = prefix + std::to_string(l) + ".mlp." + std::string(module) + ".";
      expected.insert(name + "weight");
      if (c.mlp_bias) expected.insert(name + "bias");
    }
  }
  for (const Parameter<B>& p : list) {
    if (p.name.find(".mlp.") == std::string::npos) continue;
    const bool has_size = !p.decays || p.value.size() == c.width * c.hidden;
    found.insert(has_size ? p.name : p.name + " of another size");
  }
  if (found == expected) return;
  throw_unwritable_model(c, "MLPs that its family does not have cannot be written",
                         std::to_string(expected.size()) + " arrays of MLPs by their names",
                         std::to_string(found.size()) + ", some of other names or sizes");
}

template <class B>
bool has_transposed_weights(const AnyTransformer<B>& model) {
  return model.layers() > 0 && model.visit([](const auto& m) {
    return m.block(0).attention().qkv().layout() == WeightLayout::out_in;
  });
}

template <class T>
std::vector<half> half_values(const HostTensor<T>& tensor, const ModelConfig& c) {
  std::vector<half> values;
  for (const T value : tensor.values) {
    values.push_back(half(static_cast<float>(value)));
    if (std::isfinite(static_cast<float>(values.back()))) continue;
    throw NumericalError({.id = "model/storage-overflow",
                          .where = c.name + ", tensor " + in_quotes(tensor.name),
                          .what = "a weight is too large for 16-bit storage",
                          .found = std::to_string(value),
                          .mend = "store weights as float"});
  }
  return values;
}

}  // namespace detail

/// Writes FOLDER/config.json and FOLDER/model.safetensors, each atomically; weights as float16, or
/// as the backend's scalar. Throws DataError for models that such files cannot hold (an MLP of
/// another kind, scaled rotary positions), NumericalError for weights beyond float16, FileError.
/// `config`: the model's own, or one that says of biases what has been added to its MLPs since.
template <Backend B>
void write_model(const std::filesystem::path& folder, B& backend, AnyTransformer<B>& model,
                 const ModelConfig& config, bool as_float16) {
  using T = scalar_t<B>;
  const ParameterList<B> list = parameters<B>(model);
  detail::check_mlps_writable<B>(config, list);
  OrderedJson json = model_config_json(config);
  json["dtype"] = as_float16 ? "float16" : std::is_same_v<T, float> ? "float32" : "float64";
  std::vector<detail::HostTensor<T>> tensors;
  const bool is_transposed = detail::has_transposed_weights(model);
  backend.synchronize();
  for (const Parameter<B>& p : list) {
    detail::append_in_file_form(detail::host_tensor(backend, p), config, is_transposed, tensors);
  }
  std::vector<std::vector<half>> narrow;
  narrow.reserve(tensors.size());
  std::vector<TensorToWrite> files;
  for (const detail::HostTensor<T>& tensor : tensors) {
    if (as_float16) {
      narrow.push_back(detail::half_values(tensor, config));
      files.push_back(tensor_to_write<half>(tensor.name, narrow.back(), tensor.shape));
    } else {
      files.push_back(tensor_to_write<T>(tensor.name, tensor.values, tensor.shape));
    }
  }
  write_safetensors(folder / "model.safetensors", std::move(files), {{"format", "pt"}});
  write_json(folder / "config.json", json);
}

/// The same for a model as it was made or read.
template <Backend B>
void write_model(const std::filesystem::path& folder, B& backend, AnyTransformer<B>& model,
                 bool as_float16 = true) {
  const ModelConfig config = model.config();
  write_model(folder, backend, model, config, as_float16);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
