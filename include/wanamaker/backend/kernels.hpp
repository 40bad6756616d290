// The functors behind the generic operations: trivially copyable structs of raw views that run
// unchanged on hosts and devices, one row by one team.
#pragma once

#include "wanamaker/backend/activations.hpp"
#include "wanamaker/core/half.hpp"
#include "wanamaker/core/matrix_view.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace kernels {

/// y = (x − mean)/√(variance + ε)·gain + bias per row; variance with divisor d, sums in double.
template <class T>
struct LayerNormRow {
  ConstMatrixView<T> x;
  ConstVectorView<T> gain;
  ConstVectorView<T> bias;
  double epsilon;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* in = x.row(i);
    T* out = y.row(i);
    const Index d = x.cols;
    const double mean =
        team.template sum<double>(d, [=](Index j) { return in[j]; }) / static_cast<double>(d);
    const double variance = team.template sum<double>(d, [=](Index j) {
      const double centred = static_cast<double>(in[j]) - mean;
      return centred * centred;
    }) / static_cast<double>(d);
    const T scale = static_cast<T>(1.0 / std::sqrt(variance + epsilon));
    const T centre = static_cast<T>(mean);
    const T* g = gain.data;
    const T* b = bias.data;
    team.each(d, [=](Index j) { out[j] = (in[j] - centre) * scale * g[j] + b[j]; });
  }
};

/// y = x/√(mean(x²) + ε)·gain per row, sums in double.
template <class T>
struct RmsNormRow {
  ConstMatrixView<T> x;
  ConstVectorView<T> gain;
  double epsilon;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* in = x.row(i);
    T* out = y.row(i);
    const double square = team.template sum<double>(
        x.cols, [=](Index j) { return static_cast<double>(in[j]) * static_cast<double>(in[j]); });
    const T scale = static_cast<T>(1.0 / std::sqrt(square / static_cast<double>(x.cols) + epsilon));
    const T* g = gain.data;
    team.each(x.cols, [=](Index j) { out[j] = in[j] * scale * g[j]; });
  }
};

/// y = activation(y + bias) per row; an empty bias adds nothing.
template <class T, class Activation>
struct BiasActivationRow {
  ConstVectorView<T> bias;
  Activation activation;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    T* row = y.row(i);
    const T* b = bias.data;
    const Activation f = activation;
    if (b == nullptr) {
      team.each(y.cols, [=](Index j) { row[j] = f(row[j]); });
    } else {
      team.each(y.cols, [=](Index j) { row[j] = f(row[j] + b[j]); });
    }
  }
};

/// y = activation(g) ∘ u per row: the heart of a gated linear unit.
template <class T, class Activation>
struct GatedProductRow {
  ConstMatrixView<T> gate;
  ConstMatrixView<T> up;
  Activation activation;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* g = gate.row(i);
    const T* u = up.row(i);
    T* out = y.row(i);
    const Activation f = activation;
    team.each(y.cols, [=](Index j) { out[j] = f(g[j]) * u[j]; });
  }
};

/// a + b.
struct Sum {
  template <class T>
  WANAMAKER_KERNEL T operator()(T a, T b) const {
    return a + b;
  }
};
/// a − b.
struct Difference {
  template <class T>
  WANAMAKER_KERNEL T operator()(T a, T b) const {
    return a - b;
  }
};
/// a · b.
struct Product {
  template <class T>
  WANAMAKER_KERNEL T operator()(T a, T b) const {
    return a * b;
  }
};

/// y = combine(a, b) entry by entry; y may be a or b.
template <class T, class Combine>
struct CombineRow {
  ConstMatrixView<T> a;
  ConstMatrixView<T> b;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* left = a.row(i);
    const T* right = b.row(i);
    T* out = y.row(i);
    team.each(y.cols, [=](Index j) { out[j] = Combine{}(left[j], right[j]); });
  }
};

/// y = x per row, converted.
template <class T, class U>
struct CopyRow {
  ConstMatrixView<U> x;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const U* in = x.row(i);
    T* out = y.row(i);
    team.each(y.cols,
              [=](Index j) { out[j] = static_cast<T>(static_cast<ConversionStep<T>>(in[j])); });
  }
};

/// Every row of y = one vector.
template <class T>
struct BroadcastRow {
  ConstVectorView<T> x;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* in = x.data;
    T* out = y.row(i);
    team.each(y.cols, [=](Index j) { out[j] = in[j]; });
  }
};

/// Every entry of y = one value.
template <class T>
struct FillRow {
  T value;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    T* out = y.row(i);
    const T v = value;
    team.each(y.cols, [=](Index j) { out[j] = v; });
  }
};

/// y[i] = table[index[i]], converted from the table's storage.
template <class T, class W>
struct GatherRow {
  ConstMatrixView<W> table;
  ConstVectorView<TokenId> index;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const W* in = table.row(index[i]);
    T* out = y.row(i);
    team.each(y.cols, [=](Index j) { out[j] = static_cast<T>(in[j]); });
  }
};

/// y[i] += table[index[i]], converted from the table's storage.
template <class T, class W>
struct GatherAddRow {
  ConstMatrixView<W> table;
  ConstVectorView<TokenId> index;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const W* in = table.row(index[i]);
    T* out = y.row(i);
    team.each(y.cols, [=](Index j) { out[j] += static_cast<T>(in[j]); });
  }
};

/// y[index[i]] = x[i]; indices are distinct.
template <class T>
struct ScatterRow {
  ConstMatrixView<T> x;
  ConstVectorView<TokenId> index;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* in = x.row(i);
    T* out = y.row(index[i]);
    team.each(x.cols, [=](Index j) { out[j] = in[j]; });
  }
};

/// Rotary positions in place on `heads` heads of a row: pairs (j, j + r/2) of a head's first r
/// entries turn by the angle position·θ_j, whose cosines and sines are tabulated by position
/// [positions × r/2]. Su et al. 2021, in the half-split layout of GPT-NeoX and Llama.
template <class T>
struct RotaryRow {
  ConstMatrixView<T> cosines;
  ConstMatrixView<T> sines;
  ConstVectorView<TokenId> positions;
  Index heads;
  Index head_width;
  MatrixView<T> x;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const Index pairs = cosines.cols;
    const T* c = cosines.row(positions[i]);
    const T* s = sines.row(positions[i]);
    for (Index h = 0; h < heads; ++h) {
      T* first = x.row(i) + h * head_width;
      T* second = first + pairs;
      team.each(pairs, [=](Index j) {
        const T a = first[j];
        const T b = second[j];
        first[j] = a * c[j] - b * s[j];
        second[j] = b * c[j] + a * s[j];
      });
    }
  }
};

/// Causal softmax in place. Row i of `scores` belongs to query `first_query + i % queries` of its
/// item; it sees keys [lowest, query + past], all other entries become 0.
template <class T>
struct CausalSoftmaxRow {
  MatrixView<T> scores;
  Index queries;
  Index first_query;
  Index past;
  Index window;  // keys a query sees at most, itself included; 0: all

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const Index last = first_query + i % queries + past;
    const Index lowest = window > 0 && last + 1 > window ? last + 1 - window : 0;
    const Index n = last + 1 - lowest;
    T* row = scores.row(i) + lowest;
    const T top = team.template max<T>(n, row[0], [=](Index j) { return row[j]; });
    team.each(n, [=](Index j) { row[j] = exponential_of_nonpositive(row[j] - top); });
    const T scale = T(1) / team.template sum<T>(n, [=](Index j) { return row[j]; });
    team.each(n, [=](Index j) { row[j] *= scale; });
    T* all = scores.row(i);
    team.each(lowest, [=](Index j) { all[j] = T(0); });
    T* after = row + n;
    team.each(scores.cols - last - 1, [=](Index j) { after[j] = T(0); });
  }
};

/// nll[i] = log Σ_v e^{logits[i, v]} − logits[i, target[i]], in nats; sums in double. Only the
/// first `vocabulary` columns count (padded heads have more).
template <class T>
struct TokenLossRow {
  ConstMatrixView<T> logits;
  ConstVectorView<TokenId> targets;
  Index vocabulary;
  VectorView<double> nll;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* row = logits.row(i);
    const T top = team.template max<T>(vocabulary, row[0], [=](Index j) { return row[j]; });
    const double sum = team.template sum<double>(
        vocabulary, [=](Index j) { return exponential_of_nonpositive(row[j] - top); });
    const double loss =
        std::log(sum) + (static_cast<double>(top) - static_cast<double>(row[targets[i]]));
    if (team.leader()) nll[i] = loss;
  }
};

/// ranks[i] = how many of the first `vocabulary` columns come before target[i] by falling logit, of
/// equal ones by column: 0 where the target is the (first) largest.
template <class T>
struct TargetRankRow {
  ConstMatrixView<T> logits;
  ConstVectorView<TokenId> targets;
  Index vocabulary;
  VectorView<double> ranks;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* row = logits.row(i);
    const Index target = targets[i];
    const T own = row[target];
    const double before = team.template sum<double>(vocabulary, [=](Index j) {
      return row[j] > own || (row[j] == own && j < target) ? 1.0 : 0.0;
    });
    if (team.leader()) ranks[i] = before;
  }
};

}  // namespace kernels
}  // namespace wanamaker::inline WANAMAKER_ABI
