// What a fit results in: something that becomes an MLP policy on any backend.
// docs/policies/surrogate.md has the laws and the smallest example.
#pragma once

#include <concepts>

#include "wanamaker/nn/mlp_policy.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {
template <class S, class B>
concept BecomesMlp = requires(const S& surrogate, B& backend) {
  { surrogate.to_mlp(backend) } -> MlpPolicy<B>;
};
template <class S>
concept HasParameterCount = requires(const S& surrogate) {
  { surrogate.parameters() } -> std::convertible_to<Index>;
};
}  // namespace detail

/// to_mlp(backend) makes an MLP policy that maps x [T × d] to f̂(x) [T × d] in the backend's memory;
/// parameters() is how many numbers it has. A surrogate itself is in host memory, in double.
template <class S, class B>
concept Surrogate = Backend<B> && detail::BecomesMlp<S, B> && detail::HasParameterCount<S>;

/// True for a surrogate; for anything else a static_assert names what is missing.
template <class S, class B>
consteval bool check_surrogate() {
  static_assert(detail::BecomesMlp<S, B>,
                "wanamaker: a surrogate needs to_mlp(backend) const returning an MLP policy "
                "(docs/policies/surrogate.md)");
  static_assert(detail::HasParameterCount<S>,
                "wanamaker: a surrogate needs parameters() const returning a count "
                "(docs/policies/surrogate.md)");
  return true;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
