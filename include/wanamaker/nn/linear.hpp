// A dense layer, y = activation(x·W + b), in either layout that files have.
#pragma once

#include <utility>

#include "wanamaker/backend/generic.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// How a weight lies in memory: in_out [d × h] (GPT-2's Conv1D, surrogates), out_in [h × d]
/// (PyTorch's Linear). Neither is transposed on loading: products take both.
enum class WeightLayout { in_out, out_in };

/// Weights in the backend's storage format, bias in its scalar.
template <class B>
class Linear {
 public:
  using Scalar = scalar_t<B>;

  Linear() = default;
  /// weight [d × h] or [h × d] by `layout`; bias [1 × h] or empty. Throws ShapeError.
  Linear(weight_matrix_t<B> weight, WeightLayout layout, matrix_t<B> bias = {})
      : weight_(std::move(weight)), bias_(std::move(bias)), layout_(layout) {
    if (!bias_.empty()) check_size(bias_.vector(), outputs(), "Linear: bias");
  }

  Index inputs() const { return layout_ == WeightLayout::in_out ? weight_.rows() : weight_.cols(); }
  Index outputs() const {
    return layout_ == WeightLayout::in_out ? weight_.cols() : weight_.rows();
  }
  bool has_bias() const { return !bias_.empty(); }
  WeightLayout layout() const { return layout_; }
  const weight_matrix_t<B>& weight() const { return weight_; }
  weight_matrix_t<B>& weight() { return weight_; }
  const matrix_t<B>& bias() const { return bias_; }
  matrix_t<B>& bias() { return bias_; }

  /// The weight as a right factor [d × h].
  Operand<storage_t<B>> factor() const { return {weight_.view(), layout_ == WeightLayout::out_in}; }

  /// y ← activation(x·W + b); x [T × d], y [T × h].
  template <class Activation = Identity>
  void forward(B& backend, const_matrix_view_t<B> x, matrix_view_t<B> y,
               Activation activation = {}) const {
    ops::linear(backend, x, factor(), bias_view(), y, activation);
  }

  Index parameters() const { return weight_.size() + bias_.size(); }
  /// Multiplications and additions for `tokens` rows.
  double flops(Index tokens) const {
    return 2.0 * static_cast<double>(tokens) * static_cast<double>(weight_.size());
  }
  double weight_bytes() const {
    return static_cast<double>(weight_.size()) * sizeof(storage_t<B>) +
           static_cast<double>(bias_.size()) * sizeof(Scalar);
  }

 private:
  ConstVectorView<Scalar> bias_view() const {
    return bias_.empty() ? ConstVectorView<Scalar>{} : bias_.vector();
  }

  weight_matrix_t<B> weight_{};
  matrix_t<B> bias_{};
  WeightLayout layout_ = WeightLayout::in_out;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
