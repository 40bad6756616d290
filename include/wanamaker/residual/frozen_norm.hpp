// A normalisation with its statistics held fixed: for one position a linear map, so that it can be
// applied to each summand of its input alone.
#pragma once

#include "wanamaker/backend/generic.hpp"
#include "wanamaker/nn/any_parts.hpp"
#include "wanamaker/nn/norm.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace kernels {

/// scale = 1/√(mean((x − centre)²) + ε) per row, in double; centre is the row's mean, or 0 for a
/// root-mean-square norm.
template <class T>
struct NormScaleRow {
  ConstMatrixView<T> x;
  double epsilon;
  bool centred;
  VectorView<double> scale;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* in = x.row(i);
    const double d = static_cast<double>(x.cols);
    const double centre =
        centred ? team.template sum<double>(x.cols, [=](Index j) { return in[j]; }) / d : 0.0;
    const double square = team.template sum<double>(x.cols, [=](Index j) {
      const double deviation = static_cast<double>(in[j]) - centre;
      return deviation * deviation;
    });
    if (team.leader()) scale[i] = 1.0 / std::sqrt(square / d + epsilon);
  }
};

/// y = (c − mean(c))·scale·gain per row, without the mean for a root-mean-square norm.
template <class T>
struct FrozenNormRow {
  ConstMatrixView<T> c;
  ConstVectorView<T> gain;
  ConstVectorView<double> scale;
  bool centred;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* in = c.row(i);
    T* out = y.row(i);
    const T* g = gain.data;
    const double factor = scale[i];
    const double centre = centred
                              ? team.template sum<double>(c.cols, [=](Index j) { return in[j]; }) /
                                    static_cast<double>(c.cols)
                              : 0.0;
    team.each(c.cols, [=](Index j) {
      out[j] = static_cast<T>((static_cast<double>(in[j]) - centre) * factor *
                              static_cast<double>(g[j]));
    });
  }
};

}  // namespace kernels

/// A norm as data: y = (x − mean(x))·s·gain + bias with s = 1/√(variance + ε); a root-mean-square
/// norm has no mean and no bias. With s taken from one x and held fixed, the map without its bias
/// is linear, mean included. Views of the model's memory.
template <class B>
struct FrozenNorm {
  ConstVectorView<scalar_t<B>> gain{};
  ConstVectorView<scalar_t<B>> bias{};  ///< empty for a root-mean-square norm
  double epsilon = 0;
  bool centred = false;

  /// s of every row of x [T × d].
  void scales(B& backend, const_matrix_view_t<B> x, VectorView<double> scale) const {
    check_size(scale, x.rows, "FrozenNorm::scales: scale");
    backend.for_each_row(x.rows, kernels::NormScaleRow<scalar_t<B>>{x, epsilon, centred, scale});
  }

  /// y ← what the rows of c [T × d] contribute to the norm's output at the given scales; y may be
  /// c. Over summands of x these add up to norm(x) − bias.
  void contribution(B& backend, const_matrix_view_t<B> c, ConstVectorView<double> scale,
                    matrix_view_t<B> y) const {
    check_shape(y, c.rows, gain.size, "FrozenNorm::contribution: y");
    check_shape(c, scale.size, gain.size, "FrozenNorm::contribution: c");
    backend.for_each_row(c.rows, kernels::FrozenNormRow<scalar_t<B>>{c, gain, scale, centred, y});
  }
};

template <class B>
FrozenNorm<B> frozen_norm(const LayerNorm<B>& norm) {
  return {norm.gain().vector(), norm.bias().vector(), norm.epsilon(), true};
}
template <class B>
FrozenNorm<B> frozen_norm(const RmsNorm<B>& norm) {
  return {norm.gain().vector(), {}, norm.epsilon(), false};
}
template <class B>
FrozenNorm<B> frozen_norm(const AnyNorm<B>& norm) {
  return norm.visit([](const auto& own) { return frozen_norm(own); });
}

}  // namespace wanamaker::inline WANAMAKER_ABI
