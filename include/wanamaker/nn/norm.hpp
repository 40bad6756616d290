// Layer normalisation and root-mean-square normalisation with their learned gains.
#pragma once

#include <utility>

#include "wanamaker/backend/generic.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// y = (x − mean)/√(variance + ε)·gain + bias. Ba, Kiros & Hinton 2016.
template <class B>
class LayerNorm {
 public:
  LayerNorm() = default;
  /// gain, bias [1 × d].
  LayerNorm(matrix_t<B> gain, matrix_t<B> bias, double epsilon)
      : gain_(std::move(gain)), bias_(std::move(bias)), epsilon_(epsilon) {}

  /// x, y [T × d]; y may be x.
  void forward(B& backend, const_matrix_view_t<B> x, matrix_view_t<B> y) const {
    ops::layer_norm(backend, x, gain_.vector(), bias_.vector(), epsilon_, y);
  }

  const matrix_t<B>& gain() const { return gain_; }
  matrix_t<B>& gain() { return gain_; }
  const matrix_t<B>& bias() const { return bias_; }
  matrix_t<B>& bias() { return bias_; }
  double epsilon() const { return epsilon_; }
  Index parameters() const { return gain_.size() + bias_.size(); }

 private:
  matrix_t<B> gain_{};
  matrix_t<B> bias_{};
  double epsilon_ = 1e-5;
};

/// y = x/√(mean(x²) + ε)·gain. Zhang & Sennrich 2019.
template <class B>
class RmsNorm {
 public:
  RmsNorm() = default;
  /// gain [1 × d].
  RmsNorm(matrix_t<B> gain, double epsilon) : gain_(std::move(gain)), epsilon_(epsilon) {}

  /// x, y [T × d]; y may be x.
  void forward(B& backend, const_matrix_view_t<B> x, matrix_view_t<B> y) const {
    ops::rms_norm(backend, x, gain_.vector(), epsilon_, y);
  }

  const matrix_t<B>& gain() const { return gain_; }
  matrix_t<B>& gain() { return gain_; }
  double epsilon() const { return epsilon_; }
  Index parameters() const { return gain_.size(); }

 private:
  matrix_t<B> gain_{};
  double epsilon_ = 1e-6;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
