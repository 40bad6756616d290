// AdamW: steps by bias-corrected moments of the gradient, with weight decay apart from them
// (Kingma & Ba 2015; Loshchilov & Hutter 2019).
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/core/error.hpp"
#include "wanamaker/nn/parameters.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace kernels {

/// One step of AdamW on a row; see AdamW.
template <class T>
struct AdamWRow {
  MatrixView<T> value;
  ConstMatrixView<T> gradient;
  MatrixView<T> first;
  MatrixView<T> second;
  T gradient_scale;
  T first_share;   // 1 − β₁
  T second_decay;  // β₂
  T second_share;  // 1 − β₂
  T kept;          // 1 − η·λ
  T rate;          // η/(1 − β₁ᵗ)
  T root_scale;    // √(1 − β₂ᵗ)
  T epsilon;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    T* w = value.row(i);
    const T* gradients = gradient.row(i);
    T* m = first.row(i);
    T* v = second.row(i);
    const AdamWRow c = *this;
    team.each(value.cols, [=](Index j) {
      const T g = gradients[j] * c.gradient_scale;
      m[j] += c.first_share * (g - m[j]);
      v[j] = c.second_decay * v[j] + c.second_share * g * g;
      w[j] = c.kept * w[j] - c.rate * m[j] / (std::sqrt(v[j]) / c.root_scale + c.epsilon);
    });
  }
};

}  // namespace kernels

/// The rule's settings; a `State<B>` is a run of it. Step t = 1, 2, … with gradient g at rate η:
///   m ← β₁·m + (1 − β₁)·g,  v ← β₂·v + (1 − β₂)·g²,
///   w ← (1 − η·λ)·w − η·m̂/(√v̂ + ε),  m̂ = m/(1 − β₁ᵗ),  v̂ = v/(1 − β₂ᵗ);
/// λ is 0 for parameters that do not decay: biases and the gains of norms.
struct AdamW {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double decay = 0.1;  ///< λ

  template <class B>
  class State;
};

/// Throws DataError for settings with which the rule is not defined.
inline void check_optimiser(const AdamW& rule) {
  const bool fits = rule.beta1 >= 0 && rule.beta1 < 1 && rule.beta2 >= 0 && rule.beta2 < 1 &&
                    rule.epsilon > 0 && rule.decay >= 0 && std::isfinite(rule.epsilon) &&
                    std::isfinite(rule.decay);
  if (fits) return;
  throw DataError({.id = "training/optimiser",
                   .where = "AdamW",
                   .what = "impossible settings",
                   .expected = "0 <= β < 1, ε > 0, decay >= 0",
                   .found = "β₁ " + std::to_string(rule.beta1) + ", β₂ " +
                            std::to_string(rule.beta2) + ", ε " + std::to_string(rule.epsilon) +
                            ", decay " + std::to_string(rule.decay),
                   .mend = "correct the optimiser's settings"});
}

/// Moments of all parameters that are not frozen, in the backend's memory, and the steps done.
template <class B>
class AdamW::State {
 public:
  using Scalar = scalar_t<B>;

  State(B& backend, const ParameterList<B>& parameters) {
    for (const Parameter<B>& p : parameters) {
      const bool moves = !p.frozen;
      first_.push_back(make_matrix(backend, moves ? p.value.rows : 0, moves ? p.value.cols : 0));
      second_.push_back(make_matrix(backend, moves ? p.value.rows : 0, moves ? p.value.cols : 0));
    }
  }

  /// Steps done.
  Index step() const { return step_; }
  void set_step(Index step) { step_ = step; }
  /// Moments of a parameter, of its shape; empty where it is frozen.
  matrix_view_t<B> first_moment(std::size_t parameter) { return first_[parameter].view(); }
  const_matrix_view_t<B> first_moment(std::size_t parameter) const {
    return first_[parameter].view();
  }
  matrix_view_t<B> second_moment(std::size_t parameter) { return second_[parameter].view(); }
  const_matrix_view_t<B> second_moment(std::size_t parameter) const {
    return second_[parameter].view();
  }

  /// One step at rate `rate` with gradients times `gradient_scale`. `parameters` is the list that
  /// the state was made for. Throws ShapeError for another.
  void update(B& backend, const ParameterList<B>& parameters, const AdamW& rule, double rate,
              double gradient_scale = 1.0) {
    check_list(parameters);
    ++step_;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].frozen) continue;
      const auto row = row_of(rule, parameters[i], i, rate, gradient_scale);
      backend.for_each_row(parameters[i].value.rows, row);
    }
  }

 private:
  kernels::AdamWRow<Scalar> row_of(const AdamW& rule, const Parameter<B>& p, std::size_t i,
                                   double rate, double gradient_scale) {
    const auto t = static_cast<double>(step_);
    const double shrinking = p.decays ? rate * rule.decay : 0.0;
    return {.value = p.value,
            .gradient = p.gradient,
            .first = first_[i].view(),
            .second = second_[i].view(),
            .gradient_scale = static_cast<Scalar>(gradient_scale),
            .first_share = static_cast<Scalar>(1.0 - rule.beta1),
            .second_decay = static_cast<Scalar>(rule.beta2),
            .second_share = static_cast<Scalar>(1.0 - rule.beta2),
            .kept = static_cast<Scalar>(1.0 - shrinking),
            .rate = static_cast<Scalar>(rate / (1.0 - std::pow(rule.beta1, t))),
            .root_scale = static_cast<Scalar>(std::sqrt(1.0 - std::pow(rule.beta2, t))),
            .epsilon = static_cast<Scalar>(rule.epsilon)};
  }

  void check_list(const ParameterList<B>& parameters) const {
    bool same = parameters.size() == first_.size();
    for (std::size_t i = 0; same && i < parameters.size(); ++i) {
      const Parameter<B>& p = parameters[i];
      const bool fits = p.value.rows == first_[i].rows() && p.value.cols == first_[i].cols() &&
                        p.gradient.rows == p.value.rows && p.gradient.cols == p.value.cols;
      same = p.frozen ? first_[i].empty() : fits;
    }
    if (same) return;
    throw ShapeError({.id = "training/other-parameters",
                      .where = "AdamW::State::update",
                      .what = "not the parameters that the state was made for",
                      .expected = std::to_string(first_.size()) + " parameters of the same shapes",
                      .found = std::to_string(parameters.size()) + " parameters",
                      .mend = "make a state after models or freezing were changed"});
  }

  std::vector<matrix_t<B>> first_;
  std::vector<matrix_t<B>> second_;
  Index step_ = 0;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
