// The study's gated layer: a surrogate where the gate says that it suffices, the MLP elsewhere.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "wanamaker/gate/cost_model.hpp"
#include "wanamaker/gate/gate.hpp"
#include "wanamaker/gate/routing.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace kernels {

/// choices[i] = scores[i] > threshold: 1 the surrogate, 0 the MLP. NaN goes to the MLP.
struct AboveThreshold {
  ConstVectorView<double> scores;
  double threshold;
  VectorView<TokenId> choices;
  WANAMAKER_KERNEL void operator()(Index i) const { choices[i] = scores[i] > threshold ? 1 : 0; }
};

/// y = (1 − g)·mlp + g·surrogate per row; y may be either.
template <class T>
struct MixRow {
  ConstVectorView<double> scores;
  ConstMatrixView<T> surrogate;
  ConstMatrixView<T> mlp;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T g = static_cast<T>(scores[i]);
    const T* s = surrogate.row(i);
    const T* m = mlp.row(i);
    T* out = y.row(i);
    team.each(y.cols, [=](Index j) { out[j] = (T(1) - g) * m[j] + g * s[j]; });
  }
};

/// y = surrogate where score > threshold, else mlp, per row; y may be either.
template <class T>
struct SelectRow {
  ConstVectorView<double> scores;
  double threshold;
  ConstMatrixView<T> surrogate;
  ConstMatrixView<T> mlp;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* in = scores[i] > threshold ? surrogate.row(i) : mlp.row(i);
    T* out = y.row(i);
    team.each(y.cols, [=](Index j) { out[j] = in[j]; });
  }
};

}  // namespace kernels

namespace ops {

/// What a hard gate gives, from both outputs where they are at hand anyway: y[i] ← surrogate[i]
/// where scores[i] > threshold, else mlp[i]; all [T × d], scores [T], y may be either.
template <Backend B>
void select_outputs(B& backend, ConstVectorView<double> scores, double threshold,
                    const_matrix_view_t<B> surrogate, const_matrix_view_t<B> mlp,
                    matrix_view_t<B> y) {
  check_size(scores, y.rows, "select_outputs: scores");
  check_shape(surrogate, y.rows, y.cols, "select_outputs: surrogate");
  check_shape(mlp, y.rows, y.cols, "select_outputs: mlp");
  backend.for_each_row(y.rows,
                       kernels::SelectRow<scalar_t<B>>{scores, threshold, surrogate, mlp, y});
}

/// What a soft gate gives: y[i] ← (1 − g_i)·mlp[i] + g_i·surrogate[i].
template <Backend B>
void mix_outputs(B& backend, ConstVectorView<double> g, const_matrix_view_t<B> surrogate,
                 const_matrix_view_t<B> mlp, matrix_view_t<B> y) {
  check_size(g, y.rows, "mix_outputs: g");
  check_shape(surrogate, y.rows, y.cols, "mix_outputs: surrogate");
  check_shape(mlp, y.rows, y.cols, "mix_outputs: mlp");
  backend.for_each_row(y.rows, kernels::MixRow<scalar_t<B>>{g, surrogate, mlp, y});
}

}  // namespace ops

/// With g = P(the surrogate suffices): hard, y = f̂(x) where score > threshold, else MLP(x), each
/// path run on its own rows only; soft, y = (1 − g)·MLP(x) + g·f̂(x), both paths on all rows.
template <class G, class Surrogate, class Mlp>
class GatedMlp {
 public:
  /// Hard routing of rows with score > threshold.
  static GatedMlp hard(G gate, Surrogate surrogate, Mlp mlp, double threshold) {
    return GatedMlp(std::move(gate), std::move(surrogate), std::move(mlp), threshold);
  }

  /// A blend. Throws ProtocolError ("gate/not-a-probability") for a gate whose scores are not in
  /// [0, 1].
  static GatedMlp soft(G gate, Surrogate surrogate, Mlp mlp) {
    if (!wanamaker::scores_are_probabilities(gate)) {
      throw ProtocolError({.id = "gate/not-a-probability",
                           .where = "GatedMlp::soft",
                           .what = "the gate's scores are not probabilities",
                           .expected = "a gate with scores in [0, 1]",
                           .mend = "use hard routing, or a logistic gate"});
    }
    return GatedMlp(std::move(gate), std::move(surrogate), std::move(mlp), std::nullopt);
  }

  /// x, y [T × d].
  template <Backend B>
  void forward(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows, matrix_view_t<B> y,
               Workspace<B>& workspace) const {
    const typename Workspace<B>::Frame frame(workspace);
    const VectorView<double> scores = workspace.template vector<double>(x.rows);
    gate_.score(backend, x, rows, scores, workspace);
    if (threshold_) {
      route(backend, x, rows, scores, y, workspace);
    } else {
      blend(backend, x, rows, scores, y, workspace);
    }
  }

  /// Gate and MLP for every token: what is taken where nothing is routed. See cost_per_token.
  MlpCost cost(Index tokens) const {
    const MlpCost gate = gate_.cost(tokens);
    const MlpCost surrogate = surrogate_.cost(tokens);
    const MlpCost mlp = mlp_.cost(tokens);
    return {gate.flops + (threshold_ ? 0.0 : surrogate.flops) + mlp.flops,
            gate.weight_bytes + surrogate.weight_bytes + mlp.weight_bytes,
            gate.parameters + surrogate.parameters + mlp.parameters};
  }

  /// The parts' costs, from which those at any routed fraction and batch follow.
  GatedCost cost_per_token() const { return {gate_.cost(1), surrogate_.cost(1), mlp_.cost(1)}; }

  bool is_hard() const { return threshold_.has_value(); }
  /// Missing for a soft gate.
  std::optional<double> threshold() const { return threshold_; }
  const G& gate() const { return gate_; }
  G& gate() { return gate_; }
  const Surrogate& surrogate() const { return surrogate_; }
  Surrogate& surrogate() { return surrogate_; }
  const Mlp& mlp() const { return mlp_; }
  Mlp& mlp() { return mlp_; }

  /// λ of the penalty λ·mean(1 − g) that training adds to the loss, for this layer: it rewards
  /// tokens that skip the MLP. 0: none.
  double sparsity_weight() const { return sparsity_weight_; }
  void set_sparsity_weight(double weight) { sparsity_weight_ = weight; }

  /// Called with (layer, scores [T] in the backend's memory) of every forward pass of training
  /// through a gate that gradients flow through.
  using ScoreListener = std::function<void(Index layer, ConstVectorView<double> scores)>;
  void set_score_listener(ScoreListener listener) { score_listener_ = std::move(listener); }
  const ScoreListener& score_listener() const { return score_listener_; }

  /// Rows routed to the surrogate and to the MLP since the last reset; a soft gate counts none.
  Index surrogate_rows() const { return counts_.rows(1); }
  Index mlp_rows() const { return counts_.rows(0); }
  double fraction_linear() const { return counts_.fraction(1); }
  const RoutingCounts& counts() const { return counts_; }
  void set_listener(RoutingListener listener) { listener_ = std::move(listener); }

 private:
  GatedMlp(G gate, Surrogate surrogate, Mlp mlp, std::optional<double> threshold)
      : gate_(std::move(gate)),
        surrogate_(std::move(surrogate)),
        mlp_(std::move(mlp)),
        threshold_(threshold) {}

  template <Backend B>
  void route(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows,
             ConstVectorView<double> scores, matrix_view_t<B> y, Workspace<B>& workspace) const {
    const VectorView<TokenId> choices = workspace.template vector<TokenId>(x.rows);
    backend.for_each(x.rows, kernels::AboveThreshold{scores, *threshold_, choices});
    if (listener_) listener_(rows.layer, choices);
    const RowGroups<2> groups = detail::group_rows<2>(backend, choices, workspace);
    detail::run_on_rows(mlp_, backend, x, rows, groups.rows_of(0), y, workspace);
    detail::run_on_rows(surrogate_, backend, x, rows, groups.rows_of(1), y, workspace);
    counts_.add(0, groups.rows_of(0).size);
    counts_.add(1, groups.rows_of(1).size);
  }

  template <Backend B>
  void blend(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows,
             ConstVectorView<double> scores, matrix_view_t<B> y, Workspace<B>& workspace) const {
    const matrix_view_t<B> linear = workspace.matrix(y.rows, y.cols);
    mlp_forward(surrogate_, backend, x, rows, linear, workspace);
    mlp_forward(mlp_, backend, x, rows, y, workspace);
    ops::mix_outputs<B>(backend, scores, linear, y, y);
  }

  G gate_;
  Surrogate surrogate_;
  Mlp mlp_;
  std::optional<double> threshold_;
  RoutingCounts counts_{2};
  RoutingListener listener_{};
  double sparsity_weight_ = 0;
  ScoreListener score_listener_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
