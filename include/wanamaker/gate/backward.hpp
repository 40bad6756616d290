// Backward passes of gates and of the policies that they route: soft blends exactly, hard ones
// straight through.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

#include "wanamaker/gate/bottleneck_gate.hpp"
#include "wanamaker/gate/gated_mlp.hpp"
#include "wanamaker/gate/hybrid_mlp.hpp"
#include "wanamaker/gate/linear_gate.hpp"
#include "wanamaker/gate/references.hpp"
#include "wanamaker/gate/routed_mlp.hpp"
#include "wanamaker/gate/trainable_gate.hpp"
#include "wanamaker/nn/backward/any_mlp.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace kernels {

/// Of y = (1 − c)·mlp + c·surrogate, with c = g, or 1 where a hard gate's g > threshold and else 0:
/// d_surrogate = c·dy, d_mlp = (1 − c)·dy, d_scores[i] = dy·(surrogate − mlp) − penalty.
template <class T>
struct MixBackwardRow {
  ConstVectorView<double> scores;
  bool is_hard;
  double threshold;
  double penalty;
  ConstMatrixView<T> surrogate;
  ConstMatrixView<T> mlp;
  ConstMatrixView<T> dy;
  MatrixView<T> d_surrogate;
  MatrixView<T> d_mlp;
  VectorView<double> d_scores;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* s = surrogate.row(i);
    const T* m = mlp.row(i);
    const T* d = dy.row(i);
    T* ds = d_surrogate.row(i);
    T* dm = d_mlp.row(i);
    const double chosen = scores[i] > threshold ? 1.0 : 0.0;
    const T c = static_cast<T>(is_hard ? chosen : scores[i]);
    team.each(dy.cols, [=](Index j) {
      ds[j] = c * d[j];
      dm[j] = (T(1) - c) * d[j];
    });
    const double slope = team.template sum<double>(dy.cols, [=](Index j) {
      return static_cast<double>(d[j]) * (static_cast<double>(s[j]) - static_cast<double>(m[j]));
    });
    if (team.leader()) d_scores[i] = slope - penalty;
  }
};

/// dz[i] = d_scores[i]·g(1 − g) with g = scores[i] for a logistic link, d_scores[i] for none.
template <class T>
struct LinkBackward {
  ConstVectorView<double> scores;
  ConstVectorView<double> d_scores;
  bool is_logistic;
  MatrixView<T> dz;  // [T × 1]
  WANAMAKER_KERNEL void operator()(Index i) const {
    const double slope = is_logistic ? scores[i] * (1 - scores[i]) : 1.0;
    dz(i, 0) = static_cast<T>(d_scores[i] * slope);
  }
};

/// dx += dz[i]·weight per row.
template <class T, class W>
struct AddOuterRow {
  ConstMatrixView<T> dz;  // [T × 1]
  ConstVectorView<W> weight;
  MatrixView<T> dx;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T d = dz(i, 0);
    const W* w = weight.data;
    T* out = dx.row(i);
    team.each(dx.cols, [=](Index j) { out[j] += d * static_cast<T>(w[j]); });
  }
};

/// Of scores = logistic(z) with z of BottleneckRow: dx += dz·Σ_k out_k·hidden_k over the units that
/// are above 0, dz = d_score·g(1 − g).
template <class T>
struct BottleneckBackwardRow {
  ConstMatrixView<T> x;
  ConstMatrixView<double> hidden;
  ConstVectorView<double> shift;
  ConstVectorView<double> out;
  ConstVectorView<double> scores;
  ConstVectorView<double> d_scores;
  MatrixView<T> dx;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* row = x.row(i);
    T* d = dx.row(i);
    const double dz = d_scores[i] * scores[i] * (1 - scores[i]);
    for (Index k = 0; k < hidden.rows; ++k) {
      const double* w = hidden.row(k);
      const double h = shift[k] + team.template sum<double>(x.cols, [=](Index j) {
        return static_cast<double>(row[j]) * w[j];
      });
      const double slope = h > 0 ? dz * out[k] : 0.0;
      team.each(x.cols, [=](Index j) { d[j] += static_cast<T>(slope * w[j]); });
    }
  }
};

}  // namespace kernels

/// Of g = logistic(x·w + b), dz = d_scores·g(1 − g): dw += Σ_i dz_i·x_i, db += Σ_i dz_i,
/// dx_i += dz_i·w. scores, d_scores [T], x, dx [T × d].
template <class B>
void backward(const TrainableLogisticGate<B>& gate, BackwardPass<B>& pass, const_matrix_view_t<B> x,
              const RowContext<B>&, ConstVectorView<double> scores,
              ConstVectorView<double> d_scores, matrix_view_t<B> dx) {
  using T = scalar_t<B>;
  const typename Workspace<B>::Frame frame(pass.workspace);
  const matrix_view_t<B> dz = pass.workspace.matrix(x.rows, 1);
  pass.backend.for_each(x.rows, kernels::LinkBackward<T>{scores, d_scores, true, dz});
  pass.backend.for_each_row(x.rows, kernels::AddOuterRow<T, T>{dz, gate.weight().vector(), dx});
  const matrix_view_t<B> d_weight = pass.gradients.of(gate.weight());
  if (d_weight.size() > 0) ops::add_weight_gradient<B>(pass.backend, x, dz, true, d_weight);
  const matrix_view_t<B> d_intercept = pass.gradients.of(gate.intercept());
  if (d_intercept.size() > 0) {
    ops::add_column_sums<B>(pass.backend, dz, d_intercept, pass.workspace);
  }
}
template <class B>
void collect_parameters(TrainableLogisticGate<B>& gate, const ParameterCollector<B>& collector) {
  collector.vector("weight", gate.weight());
  collector.vector("bias", gate.intercept());
}

/// The same through a fixed linear gate: dx alone.
template <class B, class Link>
void backward(const LinearGate<B, Link>& gate, BackwardPass<B>& pass, const_matrix_view_t<B> x,
              const RowContext<B>&, ConstVectorView<double> scores,
              ConstVectorView<double> d_scores, matrix_view_t<B> dx) {
  using T = scalar_t<B>;
  static_assert(std::same_as<Link, LogisticLink> || std::same_as<Link, IdentityLink>);
  const typename Workspace<B>::Frame frame(pass.workspace);
  const matrix_view_t<B> dz = pass.workspace.matrix(x.rows, 1);
  pass.backend.for_each(
      x.rows, kernels::LinkBackward<T>{scores, d_scores, std::same_as<Link, LogisticLink>, dz});
  pass.backend.for_each_row(x.rows, kernels::AddOuterRow<T, double>{dz, gate.weights(), dx});
}

/// Through a fixed bottleneck gate: dx alone.
template <class B>
void backward(const BottleneckGate<B>& gate, BackwardPass<B>& pass, const_matrix_view_t<B> x,
              const RowContext<B>&, ConstVectorView<double> scores,
              ConstVectorView<double> d_scores, matrix_view_t<B> dx) {
  pass.backend.for_each_row(
      x.rows, kernels::BottleneckBackwardRow<scalar_t<B>>{x, gate.hidden(), gate.shift(),
                                                          gate.out(), scores, d_scores, dx});
}

namespace detail {

template <class G, class B>
concept HasGateBackwardMember = requires(const G& gate, BackwardPass<B>& pass,
                                         const_matrix_view_t<B> x, const RowContext<B>& rows,
                                         ConstVectorView<double> scores, matrix_view_t<B> dx) {
  gate.backward(pass, x, rows, scores, scores, dx);
};
template <class G, class B>
concept HasGateBackwardFunction = requires(const G& gate, BackwardPass<B>& pass,
                                           const_matrix_view_t<B> x, const RowContext<B>& rows,
                                           ConstVectorView<double> scores, matrix_view_t<B> dx) {
  backward(gate, pass, x, rows, scores, scores, dx);
};

}  // namespace detail

/// A gate that gradients flow through: backward(pass, x, rows, scores, d_scores, dx) adds to
/// dx [T × d] and to pass.gradients; parameters(collector) names what it learns, if anything.
template <class G, class B>
concept TrainableGate =
    detail::HasGateBackwardMember<G, B> || detail::HasGateBackwardFunction<G, B>;

/// Calls either form of a gate's backward.
template <class G, class B>
requires TrainableGate<G, B>
void gate_backward(const G& gate, BackwardPass<B>& pass, const_matrix_view_t<B> x,
                   const RowContext<B>& rows, ConstVectorView<double> scores,
                   ConstVectorView<double> d_scores, matrix_view_t<B> dx) {
  if constexpr (detail::HasGateBackwardMember<G, B>) {
    gate.backward(pass, x, rows, scores, d_scores, dx);
  } else {
    backward(gate, pass, x, rows, scores, d_scores, dx);
  }
}

/// Through a gate that lives elsewhere.
template <class G, class B>
requires TrainableGate<G, B>
void backward(const GateReference<G>& reference, BackwardPass<B>& pass, const_matrix_view_t<B> x,
              const RowContext<B>& rows, ConstVectorView<double> scores,
              ConstVectorView<double> d_scores, matrix_view_t<B> dx) {
  gate_backward(reference.gate(), pass, x, rows, scores, d_scores, dx);
}

namespace detail {

[[noreturn]] inline void throw_gate_without_gradient() {
  throw ProtocolError({.id = "training/gate-no-backward",
                       .where = "GatedMlp, soft",
                       .what = "the gate has no backward pass, and its scores depend on the input",
                       .expected = "a linear gate, or one with a member backward",
                       .mend = "use TrainableLogisticGate, or route hard (docs/policies/gate.md)"});
}

template <class B, class G>
void collect_gate(G& gate, const ParameterCollector<B>& collector) {
  if constexpr (requires { gate.parameters(collector); }) {
    gate.parameters(collector);
  } else if constexpr (requires { collect_parameters(gate, collector); }) {
    collect_parameters(gate, collector);
  }
}

/// As run_on_rows, keeping the rows and what the policy keeps of them.
template <class Policy, class B>
void run_on_rows_taped(const Policy& policy, BackwardPass<B>& pass, const_matrix_view_t<B> x,
                       const RowContext<B>& rows, ConstVectorView<TokenId> index,
                       matrix_view_t<B> y) {
  if (index.empty()) return;
  const matrix_view_t<B> own_x = pass.workspace.matrix(index.size, x.cols);
  const matrix_view_t<B> own_y = pass.workspace.matrix(index.size, y.cols);
  ops::gather_rows<B>(pass.backend, x, index, own_x);
  mlp_forward_taped<Policy, B>(policy, pass, own_x,
                               gather_context(pass.backend, rows, index, pass.workspace), own_y);
  ops::scatter_rows<B>(pass.backend, own_y, index, y);
  pass.tape.keep(own_x);
}
template <class Policy, class B>
void backward_on_rows(const Policy& policy, BackwardPass<B>& pass, const RowContext<B>& rows,
                      ConstVectorView<TokenId> index, const_matrix_view_t<B> dy,
                      matrix_view_t<B> dx) {
  if (index.empty()) return;
  const matrix_view_t<B> own_x = pass.tape.take();
  const typename Workspace<B>::Frame frame(pass.workspace);
  const matrix_view_t<B> own_dy = pass.workspace.matrix(index.size, dy.cols);
  const matrix_view_t<B> own_dx = pass.workspace.matrix(index.size, dx.cols);
  ops::gather_rows<B>(pass.backend, dy, index, own_dy);
  mlp_backward<Policy, B>(policy, pass, own_x,
                          gather_context(pass.backend, rows, index, pass.workspace), own_dy,
                          own_dx);
  ops::scatter_rows<B>(pass.backend, own_dx, index, dx);
}

/// Rows that a hard gate leaves to the MLP (0) and those that it routes to the surrogate (1).
template <class Gated, class B>
RowGroups<2> routed_rows(const Gated& gated, BackwardPass<B>& pass, const_matrix_view_t<B> x,
                         const RowContext<B>& rows) {
  const VectorView<double> scores = pass.workspace.template vector<double>(x.rows);
  const VectorView<TokenId> choices = pass.workspace.template vector<TokenId>(x.rows);
  gated.gate().score(pass.backend, x, rows, scores, pass.workspace);
  pass.backend.for_each(x.rows, kernels::AboveThreshold{scores, *gated.threshold(), choices});
  return group_rows<2>(pass.backend, choices, pass.workspace);
}

/// A hard gate that nothing is learned through: every path on its own rows only.
template <class Gated, class B>
void forward_routed(const Gated& gated, BackwardPass<B>& pass, const_matrix_view_t<B> x,
                    const RowContext<B>& rows, matrix_view_t<B> y) {
  const RowGroups<2> groups = routed_rows(gated, pass, x, rows);
  run_on_rows_taped(gated.mlp(), pass, x, rows, groups.rows_of(0), y);
  run_on_rows_taped(gated.surrogate(), pass, x, rows, groups.rows_of(1), y);
  if (pass.is_repetition) return;
  for (std::size_t path = 0; path < 2; ++path) gated.counts().add(path, groups.rows_of(path).size);
}
template <class Gated, class B>
void backward_routed(const Gated& gated, BackwardPass<B>& pass, const_matrix_view_t<B> x,
                     const RowContext<B>& rows, const_matrix_view_t<B> dy, matrix_view_t<B> dx) {
  const typename Workspace<B>::Frame frame(pass.workspace);
  const RowGroups<2> groups = routed_rows(gated, pass, x, rows);
  backward_on_rows(gated.surrogate(), pass, rows, groups.rows_of(1), dy, dx);
  backward_on_rows(gated.mlp(), pass, rows, groups.rows_of(0), dy, dx);
}

/// Through both paths and the gate, soft or straight through.
template <class Gated, class B>
void backward_blended(const Gated& gated, BackwardPass<B>& pass, const_matrix_view_t<B> x,
                      const RowContext<B>& rows, const_matrix_view_t<B> dy, matrix_view_t<B> dx) {
  const matrix_view_t<B> mlp = pass.tape.take();
  const matrix_view_t<B> surrogate = pass.tape.take();
  const typename Workspace<B>::Frame frame(pass.workspace);
  const VectorView<double> scores = pass.workspace.template vector<double>(x.rows);
  const VectorView<double> d_scores = pass.workspace.template vector<double>(x.rows);
  const matrix_view_t<B> d_surrogate = pass.workspace.matrix(dy.rows, dy.cols);
  const matrix_view_t<B> d_mlp = pass.workspace.matrix(dy.rows, dy.cols);
  gated.gate().score(pass.backend, x, rows, scores, pass.workspace);
  const double penalty = pass.weight * gated.sparsity_weight() / static_cast<double>(x.rows);
  pass.backend.for_each_row(x.rows, kernels::MixBackwardRow<scalar_t<B>>{
                                        scores, gated.is_hard(), gated.threshold().value_or(0),
                                        penalty, surrogate, mlp, dy, d_surrogate, d_mlp, d_scores});
  mlp_backward(gated.mlp(), pass, x, rows, const_matrix_view_t<B>(d_mlp), dx);
  const matrix_view_t<B> d_in = pass.workspace.matrix(dx.rows, dx.cols);
  mlp_backward(gated.surrogate(), pass, x, rows, const_matrix_view_t<B>(d_surrogate), d_in);
  ops::add_to<B>(pass.backend, d_in, dx);
  gate_backward(gated.gate(), pass, x, rows, ConstVectorView<double>(scores),
                ConstVectorView<double>(d_scores), dx);
}

}  // namespace detail

/// Both paths on every row: what was not chosen is needed for the gate's gradient. A hard gate
/// without a backward pass runs each path on its own rows.
template <class G, class Surrogate, class Mlp, class B>
void forward_taped(const GatedMlp<G, Surrogate, Mlp>& gated, BackwardPass<B>& pass,
                   const_matrix_view_t<B> x, const RowContext<B>& rows, matrix_view_t<B> y) {
  if constexpr (!TrainableGate<G, B>) {
    if (gated.is_hard()) return detail::forward_routed(gated, pass, x, rows, y);
  }
  const matrix_view_t<B> surrogate = pass.workspace.matrix(y.rows, y.cols);
  const matrix_view_t<B> mlp = pass.workspace.matrix(y.rows, y.cols);
  mlp_forward_taped(gated.surrogate(), pass, x, rows, surrogate);
  mlp_forward_taped(gated.mlp(), pass, x, rows, mlp);
  const typename Workspace<B>::Frame frame(pass.workspace);
  const VectorView<double> scores = pass.workspace.template vector<double>(x.rows);
  gated.gate().score(pass.backend, x, rows, scores, pass.workspace);
  if (gated.score_listener() && !pass.is_repetition) gated.score_listener()(rows.layer, scores);
  if (gated.is_hard()) {
    ops::select_outputs<B>(pass.backend, scores, *gated.threshold(), surrogate, mlp, y);
  } else {
    ops::mix_outputs<B>(pass.backend, scores, surrogate, mlp, y);
  }
  pass.tape.keep(surrogate);
  pass.tape.keep(mlp);
}

/// Soft, y = (1 − g)·m + g·s: ds = g·dy, dm = (1 − g)·dy, dg_i = dy_i·(s_i − m_i), and through the
/// gate. Hard: dy goes to the path that was chosen, and to the gate as if the output were the soft
/// blend (straight through: Bengio, Léonard & Courville 2013); a gate without a backward pass, such
/// as a random one, gets none. With a sparsity weight λ, dg_i −= λ/T: the gradient of λ·mean(1 −
/// g). Throws ProtocolError ("training/gate-no-backward") for a soft gate without a backward pass.
template <class G, class Surrogate, class Mlp, class B>
void backward(const GatedMlp<G, Surrogate, Mlp>& gated, BackwardPass<B>& pass,
              const_matrix_view_t<B> x, const RowContext<B>& rows, const_matrix_view_t<B> dy,
              matrix_view_t<B> dx) {
  if constexpr (!TrainableGate<G, B>) {
    if (!gated.is_hard()) detail::throw_gate_without_gradient();
    return detail::backward_routed(gated, pass, x, rows, dy, dx);
  } else {
    detail::backward_blended(gated, pass, x, rows, dy, dx);
  }
}

/// The MLP's names stay what they were; the others are within "gate" and "surrogate".
template <class G, class Surrogate, class Mlp, class B>
void collect_parameters(GatedMlp<G, Surrogate, Mlp>& gated,
                        const ParameterCollector<B>& collector) {
  detail::collect_gate(gated.gate(), collector.within("gate"));
  detail::collect(gated.surrogate(), collector.within("surrogate"));
  detail::collect(gated.mlp(), collector);
}

/// Of y = affine(x) + narrow(x).
template <class Affine, class Narrow, class B>
void forward_taped(const HybridMlp<Affine, Narrow>& hybrid, BackwardPass<B>& pass,
                   const_matrix_view_t<B> x, const RowContext<B>& rows, matrix_view_t<B> y) {
  const matrix_view_t<B> curved = pass.workspace.matrix(y.rows, y.cols);
  mlp_forward_taped(hybrid.narrow(), pass, x, rows, curved);
  mlp_forward_taped(hybrid.affine(), pass, x, rows, y);
  ops::add_to<B>(pass.backend, curved, y);
}
template <class Affine, class Narrow, class B>
void backward(const HybridMlp<Affine, Narrow>& hybrid, BackwardPass<B>& pass,
              const_matrix_view_t<B> x, const RowContext<B>& rows, const_matrix_view_t<B> dy,
              matrix_view_t<B> dx) {
  mlp_backward(hybrid.affine(), pass, x, rows, dy, dx);
  const typename Workspace<B>::Frame frame(pass.workspace);
  const matrix_view_t<B> d_in = pass.workspace.matrix(dx.rows, dx.cols);
  mlp_backward(hybrid.narrow(), pass, x, rows, dy, d_in);
  ops::add_to<B>(pass.backend, d_in, dx);
}
/// The narrow MLP's names are an MLP's; the affine path's are within "linear".
template <class Affine, class Narrow, class B>
void collect_parameters(HybridMlp<Affine, Narrow>& hybrid, const ParameterCollector<B>& collector) {
  detail::collect(hybrid.affine(), collector.within("linear"));
  detail::collect(hybrid.narrow(), collector);
}

namespace detail {

/// f(integral_constant e) for 0 … k − 1, or backwards.
template <std::size_t... E, class F>
void for_each_expert(std::index_sequence<E...>, bool backwards, F&& f) {
  constexpr std::size_t k = sizeof...(E);
  if (backwards) {
    (f(std::integral_constant<std::size_t, k - 1 - E>{}), ...);
  } else {
    (f(std::integral_constant<std::size_t, E>{}), ...);
  }
}

}  // namespace detail

/// Every expert on its own rows. The router's choice is fixed: no gradient reaches it.
template <class Router, class... Experts, class B>
void forward_taped(const RoutedMlp<Router, Experts...>& routed, BackwardPass<B>& pass,
                   const_matrix_view_t<B> x, const RowContext<B>& rows, matrix_view_t<B> y) {
  const auto choices = routed.choose(pass.backend, x, rows, pass.workspace);
  const auto groups = detail::group_rows<sizeof...(Experts)>(pass.backend, choices, pass.workspace);
  detail::for_each_expert(std::index_sequence_for<Experts...>{}, false, [&](auto e) {
    detail::run_on_rows_taped(routed.template expert<e>(), pass, x, rows, groups.rows_of(e), y);
    if (!pass.is_repetition) routed.counts().add(e, groups.rows_of(e).size);
  });
}
template <class Router, class... Experts, class B>
void backward(const RoutedMlp<Router, Experts...>& routed, BackwardPass<B>& pass,
              const_matrix_view_t<B> x, const RowContext<B>& rows, const_matrix_view_t<B> dy,
              matrix_view_t<B> dx) {
  const typename Workspace<B>::Frame frame(pass.workspace);
  const auto choices = routed.choose(pass.backend, x, rows, pass.workspace);
  const auto groups = detail::group_rows<sizeof...(Experts)>(pass.backend, choices, pass.workspace);
  detail::for_each_expert(std::index_sequence_for<Experts...>{}, true, [&](auto e) {
    detail::backward_on_rows(routed.template expert<e>(), pass, rows, groups.rows_of(e), dy, dx);
  });
}
template <class Router, class... Experts, class B>
void collect_parameters(RoutedMlp<Router, Experts...>& routed,
                        const ParameterCollector<B>& collector) {
  detail::for_each_expert(std::index_sequence_for<Experts...>{}, false, [&](auto e) {
    detail::collect(routed.template expert<e>(),
                    collector.within("experts").within(std::to_string(e)));
  });
}

/// Through a policy that lives elsewhere: its parameters are listed where it lives.
template <class Policy, class B>
void forward_taped(const MlpReference<Policy>& reference, BackwardPass<B>& pass,
                   const_matrix_view_t<B> x, const RowContext<B>& rows, matrix_view_t<B> y) {
  mlp_forward_taped(reference.policy(), pass, x, rows, y);
}
template <class Policy, class B>
void backward(const MlpReference<Policy>& reference, BackwardPass<B>& pass,
              const_matrix_view_t<B> x, const RowContext<B>& rows, const_matrix_view_t<B> dy,
              matrix_view_t<B> dx) {
  mlp_backward(reference.policy(), pass, x, rows, dy, dx);
}
template <class Policy, class B>
void collect_parameters(MlpReference<Policy>&, const ParameterCollector<B>&) {}

}  // namespace wanamaker::inline WANAMAKER_ABI
