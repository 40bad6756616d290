// An affine path and a narrow MLP in the place of a model's own MLP, in the very form that MLP has,
// so that stock runtimes run it.
#pragma once

#include "wanamaker/gate/hybrid_mlp.hpp"
#include "wanamaker/surrogate/stock_replacement.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Makes the model's own MLP compute affine(x) + narrow(x), its widths and layout kept; the narrow
/// MLP is of its kind. Throws ShapeError ("shape/stock-hidden") where the own one has fewer than
/// 2d + k hidden units, k the narrow one's, and DataError ("model/no-stock-form") for another kind.
template <Backend B, class Activation>
void act_as(B& backend, AnyMlp<B>& mlp,
            const HybridMlp<AffineMlp<B>, DenseMlp<B, Activation>>& hybrid, double scale) {
  const auto* own = mlp.template get<DenseMlp<B, Activation>>();
  if (own == nullptr) detail::throw_no_stock_form("a dense MLP with the narrow one's activation");
  const NarrowMlp narrow{.up = detail::map_of(backend, hybrid.narrow().up()),
                         .down = detail::map_of(backend, hybrid.narrow().down())};
  mlp = stock_mlp<Activation>(backend, detail::map_of(backend, hybrid.affine().map()),
                              own->up().outputs(), own->up().layout(), scale, narrow);
}

/// The same for gated linear units; at least d + k hidden units. Files have biases in all layers or
/// in none: give_mlps_zero_biases.
template <Backend B, class Activation>
void act_as(B& backend, AnyMlp<B>& mlp,
            const HybridMlp<AffineMlp<B>, GatedLinearUnitMlp<B, Activation>>& hybrid) {
  const auto* own = mlp.template get<GatedLinearUnitMlp<B, Activation>>();
  if (own == nullptr) {
    detail::throw_no_stock_form("a gated linear unit with the narrow one's activation");
  }
  const NarrowMlp narrow{.gate = detail::map_of(backend, hybrid.narrow().gate()),
                         .up = detail::map_of(backend, hybrid.narrow().up()),
                         .down = detail::map_of(backend, hybrid.narrow().down())};
  mlp = stock_gated_mlp<Activation>(backend, detail::map_of(backend, hybrid.affine().map()),
                                    own->up().outputs(), own->up().layout(), narrow);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
