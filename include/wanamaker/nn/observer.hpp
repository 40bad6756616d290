// Watching a forward pass. An observer is any object; only the members that it has are called:
//   on_residual(layer, r)          the stream entering block `layer`; layer = L after the last
//   on_attention_heads(layer, h)   the heads side by side, before the output projection
//   on_attention_output(layer, a)  before it is added to the stream
//   on_mlp_input(layer, x)         after the norm
//   on_mlp_output(layer, y)        before it is added to the stream
// and, on the way back (nn/backward/transformer.hpp):
//   on_mlp_output_gradient(layer, d), on_residual_gradient(layer, d)
// All views are [T × d], that of heads [T × heads·head_width], in the backend's memory, and live
// only during the call. docs/policies/observer.md has laws and an example.
#pragma once

#include "wanamaker/backend/backend.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Sees nothing, costs nothing.
struct NoObserver {};

/// Has at least one of the members above. A pass takes any object and calls what it finds, so a
/// member with a slip in its name or arguments is never called: check_observer tells.
template <class O, class B>
concept Observer = requires(O& o, Index layer, const_matrix_view_t<B> v) {
  o.on_residual(layer, v);
}
|| requires(O& o, Index layer, const_matrix_view_t<B> v) {
  o.on_attention_heads(layer, v);
}
|| requires(O& o, Index layer, const_matrix_view_t<B> v) {
  o.on_attention_output(layer, v);
}
|| requires(O& o, Index layer, const_matrix_view_t<B> v) {
  o.on_mlp_input(layer, v);
}
|| requires(O& o, Index layer, const_matrix_view_t<B> v) {
  o.on_mlp_output(layer, v);
}
|| requires(O& o, Index layer, const_matrix_view_t<B> v) {
  o.on_mlp_output_gradient(layer, v);
}
|| requires(O& o, Index layer, const_matrix_view_t<B> v) {
  o.on_residual_gradient(layer, v);
};

/// True for an observer that sees something; for anything else a static_assert says what it needs.
template <class O, class B>
consteval bool check_observer() {
  static_assert(Observer<O, B>,
                "wanamaker: an observer needs a member such as on_mlp_input(layer, x) taking "
                "(Index, const_matrix_view_t<B>) (docs/policies/observer.md)");
  return true;
}

namespace detail {

template <class Observer, class View>
void notify_residual(Observer& observer, Index layer, View view) {
  if constexpr (requires { observer.on_residual(layer, view); }) observer.on_residual(layer, view);
}
template <class Observer, class View>
void notify_attention_heads(Observer& observer, Index layer, View view) {
  if constexpr (requires { observer.on_attention_heads(layer, view); }) {
    observer.on_attention_heads(layer, view);
  }
}
template <class Observer, class View>
void notify_attention_output(Observer& observer, Index layer, View view) {
  if constexpr (requires { observer.on_attention_output(layer, view); }) {
    observer.on_attention_output(layer, view);
  }
}
template <class Observer, class View>
void notify_mlp_input(Observer& observer, Index layer, View view) {
  if constexpr (requires { observer.on_mlp_input(layer, view); }) {
    observer.on_mlp_input(layer, view);
  }
}
template <class Observer, class View>
void notify_mlp_output(Observer& observer, Index layer, View view) {
  if constexpr (requires { observer.on_mlp_output(layer, view); }) {
    observer.on_mlp_output(layer, view);
  }
}

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
