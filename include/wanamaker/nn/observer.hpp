// Watching a forward pass. An observer is any object; only the members that it has are called:
//   on_residual(layer, r)          the stream entering block `layer`; layer = L after the last
//   on_attention_heads(layer, h)   the heads side by side, before the output projection
//   on_attention_output(layer, a)  before it is added to the stream
//   on_mlp_input(layer, x)         after the norm
//   on_mlp_output(layer, y)        before it is added to the stream
// All views are [T × d], that of heads [T × heads·head_width], in the backend's memory, and live
// only during the call.
#pragma once

#include "wanamaker/backend/backend.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Sees nothing, costs nothing.
struct NoObserver {};

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
