// Looking single numbers up by row, in the backend's memory.
#pragma once

#include "wanamaker/core/matrix_view.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace kernels {

/// to[i] = from[index[i]].
template <class T>
struct GatherElement {
  ConstVectorView<T> from;
  ConstVectorView<TokenId> index;
  VectorView<T> to;
  WANAMAKER_KERNEL void operator()(Index i) const { to[i] = from[index[i]]; }
};

}  // namespace kernels
}  // namespace wanamaker::inline WANAMAKER_ABI
