// An affine path and a narrow MLP in the place of a model's own MLP, in the very form that MLP has,
// so that stock runtimes run it.
#pragma once

#include "wanamaker/gate/hybrid_mlp.hpp"
#include "wanamaker/surrogate/stock_replacement.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Makes the model's own MLP compute affine(x) + narrow(x), its widths and layout kept; the narrow
/// MLP is of its kind. `scale`: as stock_mlp's, of dense MLPs. Throws ShapeError
/// ("shape/stock-hidden") where the own one has fewer than 2d + k hidden units (d + k for gated
/// linear units), k the narrow one's, and DataError ("model/no-stock-form") for another kind.
template <Backend B>
void act_as(B& backend, AnyMlp<B>& mlp, const HybridMlp<AffineMlp<B>, AnyMlp<B>>& hybrid,
            double scale) {
  detail::act_as_sum<B>(backend, mlp, detail::map_of(backend, hybrid.affine().map()),
                        &hybrid.narrow(), scale);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
