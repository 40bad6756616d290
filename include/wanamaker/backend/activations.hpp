// Activation functions as stateless functors for host and device, each with its derivative. Each
// names itself as configuration files do.
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
  template <class T>
  WANAMAKER_KERNEL T derivative(T) const {
    return T(1);
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
  /// With z = 2√(2/π)(u + 0.044715u³) and s = logistic(z): s + u·s·(1 − s)·dz/du.
  template <class T>
  WANAMAKER_KERNEL T derivative(T u) const {
    const T inner = T(1.5957691216057308) * (u + T(0.044715) * u * u * u);
    const T s = logistic(inner);
    const T slope = T(1.5957691216057308) * (T(1) + T(3 * 0.044715) * u * u);
    return s + u * s * (T(1) - s) * slope;
  }
};

/// GELU, exact: u·Φ(u). Configuration name gelu.
struct GeluErf {
  static constexpr const char* name = "gelu";
  template <class T>
  WANAMAKER_KERNEL T operator()(T u) const {
    return u * normal_distribution(u);
  }
  /// Φ(u) + u·φ(u), φ the standard normal density.
  template <class T>
  WANAMAKER_KERNEL T derivative(T u) const {
    const T density = T(0.39894228040143268) * exponential(T(-0.5) * u * u);
    return normal_distribution(u) + u * density;
  }
};

/// SiLU (swish): u·logistic(u).
struct Silu {
  static constexpr const char* name = "silu";
  template <class T>
  WANAMAKER_KERNEL T operator()(T u) const {
    return u * logistic(u);
  }
  /// s·(1 + u·(1 − s)), s = logistic(u).
  template <class T>
  WANAMAKER_KERNEL T derivative(T u) const {
    const T s = logistic(u);
    return s * (T(1) + u * (T(1) - s));
  }
};

/// max(u, 0); NaN stays NaN. The derivative at 0 is 0.
struct Relu {
  static constexpr const char* name = "relu";
  template <class T>
  WANAMAKER_KERNEL T operator()(T u) const {
    return u < T(0) ? T(0) : u;
  }
  template <class T>
  WANAMAKER_KERNEL T derivative(T u) const {
    return u <= T(0) ? T(0) : T(1);
  }
};

}  // namespace wanamaker::inline WANAMAKER_ABI
