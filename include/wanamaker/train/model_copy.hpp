// A second model with the same values, to be changed and trained while the first stays as it is.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/core/error.hpp"
#include "wanamaker/nn/backward/transformer.hpp"
#include "wanamaker/train/model_shape.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

template <class B>
bool same_parameter(const Parameter<B>& a, const Parameter<B>& b) {
  return a.name == b.name && a.value.rows == b.value.rows && a.value.cols == b.value.cols;
}

/// Copies the values of one list to the other. Throws ProtocolError where they differ in names or
/// shapes.
template <Backend B>
void copy_values(B& backend, const ParameterList<B>& from, const ParameterList<B>& to) {
  bool same = from.size() == to.size();
  for (std::size_t i = 0; same && i < from.size(); ++i) same = same_parameter(from[i], to[i]);
  if (!same) {
    throw ProtocolError({.id = "training/model-copy",
                         .where = "copy_model",
                         .what = "the model is not what its configuration describes",
                         .expected = std::to_string(to.size()) + " parameters of the family",
                         .found = std::to_string(from.size()) + ", or others",
                         .mend = "copy a model before its policies are replaced"});
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    ops::copy<B>(backend, from[i].value, to[i].value);
  }
}

}  // namespace detail

/// Copies every parameter of `from` into the upper left corner of that of the same name in `to`,
/// where there is one, which must be as large at least; the rest of `to` stays.
template <Backend B>
void copy_parameters_by_name(B& backend, AnyTransformer<B>& from, AnyTransformer<B>& to) {
  std::map<std::string, matrix_view_t<B>> places;
  for (const Parameter<B>& p : parameters<B>(to)) places.emplace(p.name, p.value);
  for (const Parameter<B>& p : parameters<B>(from)) {
    const auto place = places.find(p.name);
    if (place == places.end()) continue;
    const matrix_view_t<B> rows = place->second.middle_rows(0, p.value.rows);
    ops::copy<B>(backend, p.value, rows.middle_cols(0, p.value.cols));
  }
}

/// A model of the same configuration with the same parameters, in memory of its own. Throws
/// ProtocolError ("training/model-copy") where policies of the model were replaced by others.
template <Backend B>
AnyTransformer<B> copy_model(B& backend, const AnyTransformer<B>& model) {
  AnyTransformer<B> copy = make_model(backend, model.config());
  // Parameters are listed as views that could be written to; these are read alone.
  auto& source = const_cast<AnyTransformer<B>&>(model);
  detail::copy_values<B>(backend, parameters<B>(source), parameters<B>(copy));
  return copy;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
