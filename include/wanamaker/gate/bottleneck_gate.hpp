// The gate that the published text describes: d → b → 1 with ReLU.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/core/math.hpp"
#include "wanamaker/gate/gate.hpp"
#include "wanamaker/gate/linear_score.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// z(x) = Σ_k out_k·max(0, hidden_k(x)) + bias.
struct BottleneckScore {
  std::vector<LinearScore> hidden{};  ///< [b], of raw features
  std::vector<double> out{};          ///< [b]
  double bias = 0;

  /// b·d + 2b + 1.
  Index parameters() const {
    Index count = 1;
    for (const LinearScore& unit : hidden) count += static_cast<Index>(unit.weights.size()) + 2;
    return count;
  }
};

namespace kernels {

/// scores[i] = logistic(Σ_k out_k·max(0, x_i·hidden_k + shift_k) + bias), summed in double.
template <class T>
struct BottleneckRow {
  ConstMatrixView<T> x;
  ConstMatrixView<double> hidden;  // [b × d]
  ConstVectorView<double> shift;   // [b]
  ConstVectorView<double> out;     // [b]
  double bias;
  VectorView<double> scores;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* row = x.row(i);
    double z = bias;
    for (Index k = 0; k < hidden.rows; ++k) {
      const double* w = hidden.row(k);
      const double h = shift[k] + team.template sum<double>(x.cols, [=](Index j) {
        return static_cast<double>(row[j]) * w[j];
      });
      z += h > 0 ? out[k] * h : 0.0;
    }
    if (team.leader()) scores[i] = logistic(z);
  }
};

}  // namespace kernels

/// g(x) = 1/(1 + e^−z(x)).
template <class B>
class BottleneckGate {
 public:
  BottleneckGate(B& backend, BottleneckScore score) : score_(std::move(score)) {
    std::vector<double> weights;
    std::vector<double> shifts;
    for (const LinearScore& unit : score_.hidden) {
      weights.insert(weights.end(), unit.weights.begin(), unit.weights.end());
      shifts.push_back(unit.bias);
    }
    hidden_ = detail::backend_copy(backend, weights);
    shift_ = detail::backend_copy(backend, shifts);
    out_ = detail::backend_copy(backend, score_.out);
  }

  /// b.
  Index units() const { return out_.size(); }
  /// d.
  Index width() const { return units() > 0 ? hidden_.size() / units() : 0; }

  /// scores [T] of x [T × d]. Throws ShapeError where x is not as wide as the gate.
  void score(B& backend, const_matrix_view_t<B> x, const RowContext<B>&, VectorView<double> scores,
             Workspace<B>&) const {
    check_shape(x, x.rows, width(), "BottleneckGate::score: x");
    check_size(scores, x.rows, "BottleneckGate::score: scores");
    backend.for_each_row(x.rows, kernels::BottleneckRow<scalar_t<B>>{x, hidden(), shift(), out(),
                                                                     score_.bias, scores});
  }

  bool scores_are_probabilities() const { return true; }
  double natural_threshold() const { return 0.5; }

  MlpCost cost(Index tokens) const {
    const double parameters = static_cast<double>(score_.parameters());
    const double products = static_cast<double>(hidden_.size() + out_.size());
    return {2.0 * products * static_cast<double>(tokens), parameters * sizeof(double), parameters};
  }

  const BottleneckScore& bottleneck_score() const { return score_; }
  /// [b × d], [b] and [b] in the backend's memory.
  ConstMatrixView<double> hidden() const { return {hidden_.data(), units(), width()}; }
  ConstVectorView<double> shift() const { return {shift_.data(), units()}; }
  ConstVectorView<double> out() const { return {out_.data(), units()}; }

 private:
  BottleneckScore score_;
  buffer_t<B, double> hidden_{};
  buffer_t<B, double> shift_{};
  buffer_t<B, double> out_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
