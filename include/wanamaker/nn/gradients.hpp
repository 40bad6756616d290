// Where the gradients of a model's parameters live: beside the model, found by the address of the
// parameter.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include "wanamaker/nn/parameters.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// One zeroed array for every parameter that is not frozen, in one piece of memory. Backward passes
/// add to them; what is frozen has none and costs neither memory nor products. Made for a model as
/// it is: make another where a policy was replaced or other parameters are to be frozen.
template <class B>
class Gradients {
 public:
  using Scalar = scalar_t<B>;

  /// For all parameters of a model or of a component.
  template <class Model>
  Gradients(B& backend, Model& model)
      : Gradients(backend, model, [](const std::string&) { return false; }) {}

  /// For those whose name is_frozen(name) is not true of.
  template <class Model, class IsFrozen>
  Gradients(B& backend, Model& model, IsFrozen&& is_frozen) {
    ParameterList<B> list = wanamaker::parameters<B>(model);
    std::erase_if(list, [&](const Parameter<B>& p) { return is_frozen(p.name); });
    Index size = 0;
    for (const Parameter<B>& p : list) {
      size += padded(p.value.size());
      first_layer_ = std::min(first_layer_, p.layer);
    }
    memory_ = backend.template allocate<Scalar>(size);
    size_ = size;
    Scalar* next = memory_.data();
    for (const Parameter<B>& p : list) {
      views_.emplace(p.value.data, matrix_view_t<B>(next, p.value.rows, p.value.cols));
      next += padded(p.value.size());
    }
  }

  /// The gradient of the parameter at `value`; empty where it is frozen or no parameter.
  matrix_view_t<B> of(const Scalar* value) const {
    const auto found = views_.find(value);
    return found == views_.end() ? matrix_view_t<B>{} : found->second;
  }
  /// The same for an owning matrix.
  template <class Matrix>
  requires requires(const Matrix& m) { m.data(); }
  matrix_view_t<B> of(const Matrix& value) const { return of(value.data()); }

  /// The lowest layer that has a gradient (Parameter::layer): backward passes end there.
  Index first_layer() const { return first_layer_; }

  /// All gradients as one row, the gaps between them (always 0) included: for norms and clearing.
  matrix_view_t<B> all() const { return {const_cast<Scalar*>(memory_.data()), 1, size_}; }

  /// Sets all to 0.
  void clear(B& backend) const {
    const Index width = 4096;
    const Index rows = size_ / width;
    const matrix_view_t<B> flat = all();
    backend.for_each_row(rows, kernels::FillRow<Scalar>{Scalar(0), {flat.data, rows, width}});
    backend.for_each_row(1, kernels::FillRow<Scalar>{
                                Scalar(0), flat.middle_cols(rows * width, size_ - rows * width)});
  }

 private:
  // Each begins on a boundary of 64 bytes.
  static Index padded(Index size) { return (size + 15) / 16 * 16; }

  buffer_t<B, Scalar> memory_{};
  Index size_ = 0;
  Index first_layer_ = std::numeric_limits<Index>::max();
  std::unordered_map<const Scalar*, matrix_view_t<B>> views_{};
};

/// The learned arrays of a model with their gradients; those without one are marked as frozen.
template <class B, class Model>
ParameterList<B> parameters(Model& model, const Gradients<B>& gradients) {
  ParameterList<B> list = parameters<B>(model);
  for (Parameter<B>& p : list) {
    p.gradient = gradients.of(p.value.data);
    p.frozen = p.gradient.size() == 0;
  }
  return list;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
