// The functors of the backward operations: as kernels.hpp, one row by one team.
#pragma once

#include "wanamaker/backend/activations.hpp"
#include "wanamaker/core/matrix_view.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace kernels {

/// y += x per row, converted.
template <class T, class U = T>
struct AddToRow {
  ConstMatrixView<U> x;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const U* in = x.row(i);
    T* out = y.row(i);
    team.each(y.cols, [=](Index j) { out[j] += static_cast<T>(in[j]); });
  }
};

/// Of y = x̂∘gain + bias with x̂ = (x − mean)·s, s = 1/√(variance + ε), and e = dy∘gain:
/// dx += s·(e − mean(e) − x̂·mean(e∘x̂)); dy ← dy∘x̂, whose sum over rows is the gain's gradient.
template <class T>
struct LayerNormBackwardRow {
  ConstMatrixView<T> x;
  ConstVectorView<T> gain;
  double epsilon;
  MatrixView<T> dy;
  MatrixView<T> dx;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* in = x.row(i);
    const T* g = gain.data;
    T* d_out = dy.row(i);
    T* d_in = dx.row(i);
    const Index d = x.cols;
    const double width = static_cast<double>(d);
    const double mean = team.template sum<double>(d, [=](Index j) { return in[j]; }) / width;
    const double variance = team.template sum<double>(d, [=](Index j) {
      const double centred = static_cast<double>(in[j]) - mean;
      return centred * centred;
    }) / width;
    const T scale = static_cast<T>(1.0 / std::sqrt(variance + epsilon));
    const T centre = static_cast<T>(mean);
    const T level = static_cast<T>(
        team.template sum<double>(d, [=](Index j) { return d_out[j] * g[j]; }) / width);
    const T slope = static_cast<T>(team.template sum<double>(d, [=](Index j) {
      return d_out[j] * g[j] * ((in[j] - centre) * scale);
    }) / width);
    team.each(d, [=](Index j) {
      const T normed = (in[j] - centre) * scale;
      d_in[j] += scale * (d_out[j] * g[j] - level - normed * slope);
      d_out[j] *= normed;
    });
  }
};

/// Of y = x̂∘gain with x̂ = x·s, s = 1/√(mean(x²) + ε), and e = dy∘gain:
/// dx += s·(e − x̂·mean(e∘x̂)); dy ← dy∘x̂, whose sum over rows is the gain's gradient.
template <class T>
struct RmsNormBackwardRow {
  ConstMatrixView<T> x;
  ConstVectorView<T> gain;
  double epsilon;
  MatrixView<T> dy;
  MatrixView<T> dx;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* in = x.row(i);
    const T* g = gain.data;
    T* d_out = dy.row(i);
    T* d_in = dx.row(i);
    const Index d = x.cols;
    const double width = static_cast<double>(d);
    const double square = team.template sum<double>(
        d, [=](Index j) { return static_cast<double>(in[j]) * static_cast<double>(in[j]); });
    const T scale = static_cast<T>(1.0 / std::sqrt(square / width + epsilon));
    const T slope = static_cast<T>(team.template sum<double>(d, [=](Index j) {
      return d_out[j] * g[j] * (in[j] * scale);
    }) / width);
    team.each(d, [=](Index j) {
      const T normed = in[j] * scale;
      d_in[j] += scale * (d_out[j] * g[j] - normed * slope);
      d_out[j] *= normed;
    });
  }
};

/// Of h = activation(u): dh ← dh∘activation'(u), the gradient of u; u ← activation(u), which the
/// next weight's gradient needs.
template <class T, class Activation>
struct ActivationBackwardRow {
  Activation activation;
  MatrixView<T> u;
  MatrixView<T> dh;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    T* in = u.row(i);
    T* d = dh.row(i);
    const Activation f = activation;
    team.each(u.cols, [=](Index j) {
      const T value = in[j];
      in[j] = f(value);
      d[j] *= f.derivative(value);
    });
  }
};

/// h = activation(u) per row.
template <class T, class Activation>
struct ActivationRow {
  ConstMatrixView<T> u;
  Activation activation;
  MatrixView<T> h;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* in = u.row(i);
    T* out = h.row(i);
    const Activation f = activation;
    team.each(h.cols, [=](Index j) { out[j] = f(in[j]); });
  }
};

/// Of p = activation(gate)∘up: gate ← dp∘up∘activation'(gate) and up ← dp∘activation(gate), their
/// gradients; dp ← p, which the next weight's gradient needs.
template <class T, class Activation>
struct GatedProductBackwardRow {
  Activation activation;
  MatrixView<T> gate;
  MatrixView<T> up;
  MatrixView<T> dp;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    T* g = gate.row(i);
    T* u = up.row(i);
    T* d = dp.row(i);
    const Activation f = activation;
    team.each(gate.cols, [=](Index j) {
      const T before = g[j];
      const T value = f(before);
      const T factor = u[j];
      g[j] = d[j] * factor * f.derivative(before);
      u[j] = d[j] * value;
      d[j] = value * factor;
    });
  }
};

/// The transposed rotation of RotaryRow, in place on a gradient.
template <class T>
struct RotaryBackwardRow {
  ConstMatrixView<T> cosines;
  ConstMatrixView<T> sines;
  ConstVectorView<TokenId> positions;
  Index heads;
  Index head_width;
  MatrixView<T> dx;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const Index pairs = cosines.cols;
    const T* c = cosines.row(positions[i]);
    const T* s = sines.row(positions[i]);
    for (Index h = 0; h < heads; ++h) {
      T* first = dx.row(i) + h * head_width;
      T* second = first + pairs;
      team.each(pairs, [=](Index j) {
        const T a = first[j];
        const T b = second[j];
        first[j] = a * c[j] + b * s[j];
        second[j] = b * c[j] - a * s[j];
      });
    }
  }
};

/// Of p = softmax(s), scaled by what the scores were: dp ← scale·p∘(dp − Σ p∘dp). Where p is 0,
/// because a key is not seen, so is the gradient.
template <class T>
struct SoftmaxBackwardRow {
  ConstMatrixView<T> p;
  T scale;
  MatrixView<T> dp;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* in = p.row(i);
    T* d = dp.row(i);
    const T factor = scale;
    const T mean = team.template sum<T>(p.cols, [=](Index j) { return in[j] * d[j]; });
    team.each(p.cols, [=](Index j) { d[j] = factor * in[j] * (d[j] - mean); });
  }
};

/// y[target[g]] += Σ x[order[r]] over the rows r of group g, in their order: targets are distinct,
/// so groups may run at once.
template <class T>
struct ScatterAddGroup {
  ConstMatrixView<T> x;
  ConstVectorView<TokenId> order;
  ConstVectorView<TokenId> first;
  ConstVectorView<TokenId> target;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index g, const RowTeam& team) const {
    T* out = y.row(target[g]);
    for (TokenId r = first[g]; r < first[g + 1]; ++r) {
      const T* in = x.row(order[r]);
      team.each(y.cols, [=](Index j) { out[j] += in[j]; });
    }
  }
};

/// nll[i] as TokenLossRow; logits ← weight·(softmax(logits) − onehot(target)), its gradient times
/// weight; 0 beyond the vocabulary.
template <class T>
struct TokenLossBackwardRow {
  MatrixView<T> logits;
  ConstVectorView<TokenId> targets;
  Index vocabulary;
  double weight;
  VectorView<double> nll;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    T* row = logits.row(i);
    const Index target = targets[i];
    const double own = static_cast<double>(row[target]);  // before any member overwrites it
    const T top = team.template max<T>(vocabulary, row[0], [=](Index j) { return row[j]; });
    team.each(vocabulary, [=](Index j) { row[j] = exponential_of_nonpositive(row[j] - top); });
    const double sum = team.template sum<double>(vocabulary, [=](Index j) { return row[j]; });
    if (team.leader()) nll[i] = std::log(sum) + (static_cast<double>(top) - own);
    const T scale = static_cast<T>(weight / sum);
    const T one = static_cast<T>(weight);
    team.each(vocabulary,
              [=](Index j) { row[j] = j == target ? scale * row[j] - one : scale * row[j]; });
    T* padding = row + vocabulary;
    team.each(logits.cols - vocabulary, [=](Index j) { padding[j] = T(0); });
  }
};

/// Of a student's logits z and a teacher's t, with q = softmax(z), at temperature τ q_τ =
/// softmax(z/τ) and p_τ = softmax(t/τ): nll[i] = −log q[target], divergence[i] = τ²·Σ p_τ·log
/// (p_τ/q_τ); z ← weight·((1 − share)·(q − onehot(target)) + share·τ·(q_τ − p_τ)). 0 beyond the
/// vocabulary. Hinton, Vinyals & Dean 2015.
template <class T>
struct DistillationRow {
  MatrixView<T> logits;
  ConstMatrixView<T> teacher;
  ConstVectorView<TokenId> targets;
  Index vocabulary;
  double weight;
  double share;
  double temperature;
  VectorView<double> nll;
  VectorView<double> divergence;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    T* z = logits.row(i);
    const T* t = teacher.row(i);
    const Index target = targets[i];
    const T cool = static_cast<T>(1.0 / temperature);
    const T z_top = team.template max<T>(vocabulary, z[0], [=](Index j) { return z[j]; });
    const T t_top = team.template max<T>(vocabulary, t[0], [=](Index j) { return t[j]; });
    const double own = static_cast<double>(z_top) - static_cast<double>(z[target]);
    const double z_sum =
        team.template sum<double>(vocabulary, [=](Index j) { return exponential(z[j] - z_top); });
    const double q_sum = team.template sum<double>(
        vocabulary, [=](Index j) { return exponential((z[j] - z_top) * cool); });
    const double p_sum = team.template sum<double>(
        vocabulary, [=](Index j) { return exponential((t[j] - t_top) * cool); });
    const double gap = team.template sum<double>(vocabulary, [=](Index j) {
      return exponential((t[j] - t_top) * cool) * (((t[j] - t_top) - (z[j] - z_top)) * cool);
    });
    if (team.leader()) {
      nll[i] = std::log(z_sum) + own;
      divergence[i] = temperature * temperature * (gap / p_sum + std::log(q_sum) - std::log(p_sum));
    }
    const T hard = static_cast<T>(weight * (1 - share));
    const T hard_scale = static_cast<T>(weight * (1 - share) / z_sum);
    const T q_scale = static_cast<T>(weight * share * temperature / q_sum);
    const T p_scale = static_cast<T>(weight * share * temperature / p_sum);
    team.each(vocabulary, [=](Index j) {
      const T soft = q_scale * exponential((z[j] - z_top) * cool) -
                     p_scale * exponential((t[j] - t_top) * cool);
      const T own_part = hard_scale * exponential(z[j] - z_top);
      z[j] = soft + (j == target ? own_part - hard : own_part);
    });
    T* padding = z + vocabulary;
    team.each(logits.cols - vocabulary, [=](Index j) { padding[j] = T(0); });
  }
};

}  // namespace kernels
}  // namespace wanamaker::inline WANAMAKER_ABI
