// The logistic gate as a trainable layer: its direction and intercept are parameters of the model.
#pragma once

#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/core/math.hpp"
#include "wanamaker/gate/gate.hpp"
#include "wanamaker/gate/linear_score.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace kernels {

/// scores[i] = 1/(1 + e^−(x_i·weight + intercept)), summed in double.
template <class T>
struct LogisticScoreRow {
  ConstMatrixView<T> x;
  ConstVectorView<T> weight;
  ConstVectorView<T> intercept;
  VectorView<double> scores;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* row = x.row(i);
    const T* w = weight.data;
    const double z = team.template sum<double>(
        x.cols, [=](Index j) { return static_cast<double>(row[j]) * static_cast<double>(w[j]); });
    if (team.leader()) scores[i] = logistic(z + static_cast<double>(intercept[0]));
  }
};

}  // namespace kernels

/// g(x) = 1/(1 + e^−(x·w + b)), as LogisticGate, with w and b in the backend's scalar, where an
/// optimiser can change them. Its backward pass: gate/backward.hpp.
template <class B>
class TrainableLogisticGate {
 public:
  /// Begins at a fitted score, or at {{0, …, 0}, b}: the same g for every token.
  TrainableLogisticGate(B& backend, const LinearScore& score)
      : weight_(row(backend, score.weights)), intercept_(row(backend, {score.bias})) {}

  /// scores [T] of x [T × d]. Throws ShapeError where x is not as wide as the gate.
  void score(B& backend, const_matrix_view_t<B> x, const RowContext<B>&, VectorView<double> scores,
             Workspace<B>&) const {
    check_shape(x, x.rows, weight_.cols(), "TrainableLogisticGate::score: x");
    check_size(scores, x.rows, "TrainableLogisticGate::score: scores");
    backend.for_each_row(x.rows, kernels::LogisticScoreRow<scalar_t<B>>{
                                     x, weight_.vector(), intercept_.vector(), scores});
  }
  bool scores_are_probabilities() const { return true; }
  double natural_threshold() const { return 0.5; }

  MlpCost cost(Index tokens) const {
    const double d = static_cast<double>(weight_.cols());
    return {2.0 * d * static_cast<double>(tokens), (d + 1) * sizeof(scalar_t<B>), d + 1};
  }

  /// w [1 × d].
  const matrix_t<B>& weight() const { return weight_; }
  matrix_t<B>& weight() { return weight_; }
  /// b [1 × 1].
  const matrix_t<B>& intercept() const { return intercept_; }
  matrix_t<B>& intercept() { return intercept_; }

  /// What was learned, for a LogisticGate and for files.
  LinearScore linear_score(B& backend) const {
    const auto weights = detail::host_copy(backend, weight_.vector());
    const auto intercept = detail::host_copy(backend, intercept_.vector());
    return {std::vector<double>(weights.begin(), weights.end()),
            static_cast<double>(intercept.front())};
  }

 private:
  static matrix_t<B> row(B& backend, const std::vector<double>& values) {
    std::vector<scalar_t<B>> converted;
    for (const double v : values) converted.push_back(static_cast<scalar_t<B>>(v));
    return matrix_from_host<scalar_t<B>>(backend, converted.data(), 1,
                                         static_cast<Index>(converted.size()));
  }

  matrix_t<B> weight_;
  matrix_t<B> intercept_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
