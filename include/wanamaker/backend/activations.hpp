// Activation functions as stateless functors for host and device. Each names itself as
// configuration files do.
#pragma once

#include "wanamaker/core/math.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// f(u) = u.
struct Identity {
  static constexpr const char* name = "identity";
  template <class T>
  WANAMAKER_KERNEL T operator()(T u) const {
    return u;
  }
};

/// GELU in its tanh form, u·(1 + tanh(√(2/π)(u + 0.044715u³)))/2, which equals
/// u·logistic(2√(2/π)(u + 0.044715u³)). Hendrycks & Gimpel 2016; configuration names gelu_new,
/// gelu_fast, gelu_pytorch_tanh.
struct GeluTanh {
  static constexpr const char* name = "gelu_tanh";
  template <class T>
  WANAMAKER_KERNEL T operator()(T u) const {
    const T inner = T(1.5957691216057308) * (u + T(0.044715) * u * u * u);
    return u * logistic(inner);
  }
};

/// GELU, exact: u·Φ(u). Configuration name gelu.
struct GeluErf {
  static constexpr const char* name = "gelu";
  template <class T>
  WANAMAKER_KERNEL T operator()(T u) const {
    return u * normal_distribution(u);
  }
};

/// SiLU (swish): u·logistic(u).
struct Silu {
  static constexpr const char* name = "silu";
  template <class T>
  WANAMAKER_KERNEL T operator()(T u) const {
    return u * logistic(u);
  }
};

/// max(u, 0); NaN stays NaN.
struct Relu {
  static constexpr const char* name = "relu";
  template <class T>
  WANAMAKER_KERNEL T operator()(T u) const {
    return u < T(0) ? T(0) : u;
  }
};

}  // namespace wanamaker::inline WANAMAKER_ABI
