// A fitted map in the place of a model's own MLP, in the very form that MLP has, so that a file of
// the model looks like any other of its family.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/nn/any_transformer.hpp"
#include "wanamaker/surrogate/stock_mlp.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

template <class B>
std::vector<double> doubles_of(B& backend, const_matrix_view_t<B> matrix) {
  std::vector<double> result;
  for (Index i = 0; i < matrix.rows; ++i) {
    for (const auto value :
         host_copy(backend, ConstVectorView<scalar_t<B>>(matrix.row(i), matrix.cols))) {
      result.push_back(static_cast<double>(value));
    }
  }
  return result;
}

/// A layer [d × e] as a map; no bias is a bias of zeros.
template <class B>
AffineMap map_of(B& backend, const Linear<B>& layer) {
  AffineMap map{layer.inputs(), layer.outputs(), doubles_of<B>(backend, layer.weight().view()),
                zeros(layer.outputs())};
  if (layer.layout() == WeightLayout::out_in) {
    map.weight =
        transposed_copy(ConstMatrixView<double>(map.weight.data(), map.outputs, map.inputs));
  }
  if (layer.has_bias()) map.bias = doubles_of<B>(backend, layer.bias().view());
  return map;
}

/// W of (x·P)·Q + b is P·Q.
template <class B>
AffineMap map_of(B& backend, const LowRankMlp<B>& policy) {
  const AffineMap down = map_of(backend, policy.down());
  AffineMap map = map_of(backend, policy.up());
  const ConstMatrixView<double> q(map.weight.data(), map.inputs, map.outputs);
  std::vector<double> product = zeros(down.inputs * map.outputs);
  for (Index i = 0; i < down.inputs; ++i) {
    double* row = product.data() + i * map.outputs;
    for (Index k = 0; k < down.outputs; ++k) {
      const double p = down.weight_view()(i, k);
      for (Index j = 0; j < map.outputs; ++j) row[j] += p * q(k, j);
    }
  }
  return {down.inputs, map.outputs, std::move(product), std::move(map.bias)};
}

}  // namespace detail

/// What an affine, low-rank, mean or zero policy computes, as one map [width × width]; nothing for
/// any other policy.
template <class B>
std::optional<AffineMap> affine_map_of(B& backend, const AnyMlp<B>& policy, Index width) {
  if (const auto* affine = policy.template get<AffineMlp<B>>()) {
    return detail::map_of(backend, affine->map());
  }
  if (const auto* low_rank = policy.template get<LowRankMlp<B>>()) {
    return detail::map_of(backend, *low_rank);
  }
  AffineMap constant{width, width, detail::zeros(width * width), detail::zeros(width)};
  if (const auto* mean = policy.template get<MeanMlp<B>>()) {
    constant.bias = detail::doubles_of<B>(backend, mean->mean().view());
    return constant;
  }
  if (policy.template get<ZeroMlp<B>>() != nullptr) return constant;
  return std::nullopt;
}

namespace detail {

/// The first activation of those that files have for which f.operator()<Activation>() is true; is
/// there one?
template <class F>
bool some_activation(const F& f) {
  return f.template operator()<GeluTanh>() || f.template operator()<GeluErf>() ||
         f.template operator()<Silu>() || f.template operator()<Relu>();
}

/// The layer's own MLP where it is a P, and the narrow one, if any, is one too; else null.
template <class P, class B>
const P* own_beside(const AnyMlp<B>& mlp, const AnyMlp<B>* narrow) {
  const bool fits = narrow == nullptr || narrow->template get<P>() != nullptr;
  return fits ? mlp.template get<P>() : nullptr;
}

/// `narrow`: an MLP of the own one's kind that is added to the map, or none.
template <class Activation, class B>
bool act_as_dense(B& backend, AnyMlp<B>& mlp, const AffineMap& map, const AnyMlp<B>* narrow,
                  double scale) {
  using Own = DenseMlp<B, Activation>;
  const Own* own = own_beside<Own>(mlp, narrow);
  if (own == nullptr) return false;
  NarrowMlp more;
  if (narrow != nullptr) {
    const Own& added = *narrow->template get<Own>();
    more.up = map_of(backend, added.up());
    more.down = map_of(backend, added.down());
  }
  mlp = stock_mlp<Activation>(backend, map, own->up().outputs(), own->up().layout(), scale, more);
  return true;
}

template <class Activation, class B>
bool act_as_gated(B& backend, AnyMlp<B>& mlp, const AffineMap& map, const AnyMlp<B>* narrow) {
  using Own = GatedLinearUnitMlp<B, Activation>;
  const Own* own = own_beside<Own>(mlp, narrow);
  if (own == nullptr) return false;
  NarrowMlp more;
  if (narrow != nullptr) {
    const Own& added = *narrow->template get<Own>();
    more.gate = map_of(backend, added.gate());
    more.up = map_of(backend, added.up());
    more.down = map_of(backend, added.down());
  }
  mlp = stock_gated_mlp<Activation>(backend, map, own->up().outputs(), own->up().layout(), more);
  return true;
}

template <class B>
void act_as_sum(B& backend, AnyMlp<B>& mlp, const AffineMap& map, const AnyMlp<B>* narrow,
                double scale) {
  const bool done = some_activation([&]<class Activation>() {
    return act_as_dense<Activation>(backend, mlp, map, narrow, scale) ||
           act_as_gated<Activation>(backend, mlp, map, narrow);
  });
  if (done) return;
  throw DataError({.id = "model/no-stock-form",
                   .where = "act_as",
                   .what = "the MLP is of no kind that files of models have",
                   .expected = narrow == nullptr ? "a dense MLP or a gated linear unit"
                                                 : "an MLP of the narrow one's kind",
                   .found = "another policy",
                   .mend = "export the model as it was read"});
}

template <class B>
void give_zero_bias(B& backend, Linear<B>& layer) {
  if (layer.has_bias()) return;
  const std::vector<scalar_t<B>> none(static_cast<std::size_t>(layer.outputs()));
  layer.bias() = matrix_from_host<scalar_t<B>>(backend, none.data(), 1, layer.outputs());
}

template <class B, class Activation>
bool give_zero_biases(B& backend, AnyMlp<B>& mlp) {
  auto* own = mlp.template get<GatedLinearUnitMlp<B, Activation>>();
  if (own == nullptr) return false;
  for (Linear<B>* layer : {&own->gate(), &own->up(), &own->down()}) give_zero_bias(backend, *layer);
  return true;
}

}  // namespace detail

/// Makes the model's own MLP compute the map, with its kind, its widths and its layout kept
/// (stock_mlp, stock_gated_mlp). Throws what these throw, and DataError ("model/no-stock-form") for
/// an MLP that is no dense or gated one of nn.
template <Backend B>
void act_as(B& backend, AnyMlp<B>& mlp, const AffineMap& map, double scale) {
  detail::act_as_sum<B>(backend, mlp, map, nullptr, scale);
}

/// Biases of zero where the model's gated linear units have none: files have biases in all layers
/// or in none. Returns whether any MLP is a gated linear unit.
template <Backend B>
bool give_mlps_zero_biases(B& backend, AnyTransformer<B>& model) {
  bool any = false;
  for (Index l = 0; l < model.layers(); ++l) {
    AnyMlp<B>& mlp = model.mlp(l);
    any |= detail::some_activation(
        [&]<class Activation>() { return detail::give_zero_biases<B, Activation>(backend, mlp); });
  }
  return any;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
