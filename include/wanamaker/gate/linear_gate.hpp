// Gates that are a function of one linear score of the MLP's input: d + 1 numbers.
#pragma once

#include <string>
#include <utility>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/core/math.hpp"
#include "wanamaker/gate/gate.hpp"
#include "wanamaker/gate/linear_score.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// g = 1/(1 + e^−z), a probability.
struct LogisticLink {
  static constexpr bool is_probability = true;
  static constexpr double natural_threshold = 0.5;
  WANAMAKER_KERNEL double operator()(double z) const { return logistic(z); }
};

/// The score itself, for gates in other units; 0 is where they would change their mind.
struct IdentityLink {
  static constexpr bool is_probability = false;
  static constexpr double natural_threshold = 0.0;
  WANAMAKER_KERNEL double operator()(double z) const { return z; }
};

namespace kernels {

/// scores[i] = link(x_i·weights + bias), summed in double.
template <class T, class Link>
struct LinearScoreRow {
  ConstMatrixView<T> x;
  ConstVectorView<double> weights;
  double bias;
  Link link;
  VectorView<double> scores;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* row = x.row(i);
    const double* w = weights.data;
    const double z = bias + team.template sum<double>(x.cols, [=](Index j) {
      return static_cast<double>(row[j]) * w[j];
    });
    if (team.leader()) scores[i] = link(z);
  }
};

}  // namespace kernels

/// score = link(w·x + bias) in raw coordinates: whatever standardisation or projection it was
/// fitted with is folded in. Kept in double, since d + 1 numbers cost nothing.
template <class B, class Link>
class LinearGate {
 public:
  LinearGate(B& backend, LinearScore score)
      : score_(std::move(score)), weights_(detail::backend_copy(backend, score_.weights)) {}

  /// scores [T] of x [T × d]. Throws ShapeError where x is not as wide as the gate.
  void score(B& backend, const_matrix_view_t<B> x, const RowContext<B>&, VectorView<double> scores,
             Workspace<B>&) const {
    check_shape(x, x.rows, weights_.size(), "LinearGate::score: x");
    check_size(scores, x.rows, "LinearGate::score: scores");
    backend.for_each_row(x.rows, kernels::LinearScoreRow<scalar_t<B>, Link>{
                                     x, {weights_.data(), x.cols}, score_.bias, Link{}, scores});
  }

  bool scores_are_probabilities() const { return Link::is_probability; }
  double natural_threshold() const { return Link::natural_threshold; }

  MlpCost cost(Index tokens) const {
    const double d = static_cast<double>(weights_.size());
    return {2.0 * d * static_cast<double>(tokens), (d + 1) * sizeof(double), d + 1};
  }

  /// The d + 1 numbers, for files and for looking at the direction.
  const LinearScore& linear_score() const { return score_; }
  /// w [d] in the backend's memory.
  ConstVectorView<double> weights() const { return {weights_.data(), weights_.size()}; }

 private:
  LinearScore score_;
  buffer_t<B, double> weights_;
};

/// g(x) = 1/(1 + e^−(w·x + bias)): the published study's gate.
template <class B>
using LogisticGate = LinearGate<B, LogisticLink>;

/// score = −(predicted δ in nats): routes where the surrogate is predicted to help.
template <class B>
using DeltaRegressionGate = LinearGate<B, IdentityLink>;

}  // namespace wanamaker::inline WANAMAKER_ABI
