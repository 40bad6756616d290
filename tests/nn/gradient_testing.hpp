// Gradients against central differences, for any component on a host backend in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "testing.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/nn/backward/pass.hpp"

namespace wanamaker_test {

using namespace wanamaker;

/// df/dv by differences of fourth order at steps h = 2⁻¹⁰ and 2h: off by about h⁴·f⁽⁵⁾/30 ≈ 3e-14
/// of the function's scale, and by 1.5·eps·|f|/h ≈ 3e-13·|f| from rounding.
template <class F>
double central_difference(F&& f, double& v) {
  constexpr double h = 0x1p-10;
  const double at = v;
  const auto difference = [&](double step) {
    v = at + step;
    const double above = f();
    v = at - step;
    const double below = f();
    return above - below;
  };
  const double slope = (8 * difference(h) - difference(2 * h)) / (12 * h);
  v = at;
  return slope;
}

/// A backend's matrix of random values.
template <class B>
matrix_t<B> random_matrix(B& backend, Index rows, Index cols, RandomStream& random) {
  std::vector<scalar_t<B>> values(static_cast<std::size_t>(rows * cols));
  for (auto& v : values) v = static_cast<scalar_t<B>>(2 * random.uniform() - 1);
  return matrix_from_host<scalar_t<B>>(backend, values.data(), rows, cols);
}

template <class B>
Linear<B> random_layer(B& backend, Index inputs, Index outputs, RandomStream& random,
                       WeightLayout layout = WeightLayout::in_out, bool has_bias = true) {
  const bool in_out = layout == WeightLayout::in_out;
  auto weight =
      random_matrix(backend, in_out ? inputs : outputs, in_out ? outputs : inputs, random);
  if (!has_bias) return {std::move(weight), layout};
  return {std::move(weight), layout, random_matrix(backend, 1, outputs, random)};
}

/// Compares `count` entries of d (all for 0), spread over it, with central differences of f at
/// those of v; the error allowed is 1e-9 of the largest difference, or of 1.
template <class F>
void check_gradient(F&& f, MatrixView<double> v, MatrixView<double> d, const std::string& name,
                    Index count = 0) {
  CAPTURE(name);
  REQUIRE(v.rows == d.rows);
  REQUIRE(v.cols == d.cols);
  const Index stride = count == 0 ? 1 : std::max<Index>(1, v.size() / count);
  std::vector<double> expected, actual;
  double largest = 1;
  for (Index e = 0; e < v.size(); e += stride) {
    expected.push_back(central_difference(f, v(e / v.cols, e % v.cols)));
    actual.push_back(d(e / v.cols, e % v.cols));
    largest = std::max(largest, std::abs(expected.back()));
  }
  CHECK(all_close(actual, expected, 0.0, 1e-9 * largest));
}

/// What a policy's backward pass says of f = Σ dy∘policy(x).
template <class B>
struct PolicyGradients {
  matrix_t<B> y{}, dx{};
  Gradients<B> gradients;
};

template <class B, class P>
PolicyGradients<B> differentiate_policy(B& backend, P& policy, const_matrix_view_t<B> x,
                                        const RowContext<B>& rows, const_matrix_view_t<B> dy,
                                        double weight = 1) {
  PolicyGradients<B> result{make_matrix(backend, x.rows, x.cols),
                            make_matrix(backend, x.rows, x.cols), Gradients<B>(backend, policy)};
  std::fill_n(result.dx.data(), result.dx.size(), std::nan(""));
  Workspace<B> workspace(backend);
  BackwardPass<B> pass{backend, workspace, result.gradients, weight};
  mlp_forward_taped(policy, pass, x, rows, result.y.view());
  mlp_backward(policy, pass, x, rows, dy, result.dx.view());
  pass.tape.check_taken();
  return result;
}

/// Holds a policy's gradients to central differences of its plain forward pass, with `penalty()`
/// added. Returns how many arrays it learns.
template <class B, class P, class Penalty>
int check_policy(B& backend, P& policy, Index rows, Index width, Index entries,
                 const RowContext<B>& context, Penalty&& penalty) {
  RandomStream random(21);
  auto x = random_matrix(backend, rows, width, random);
  const auto dy = random_matrix(backend, rows, width, random);
  auto y = make_matrix(backend, rows, width);
  Workspace<B> workspace(backend);
  const auto objective = [&] {
    mlp_forward<P, B>(policy, backend, x, context, y, workspace);
    double sum = penalty(ConstMatrixView<double>(x));
    for (Index i = 0; i < y.size(); ++i) sum += y.data()[i] * dy.data()[i];
    return sum;
  };
  const auto result = differentiate_policy<B, P>(backend, policy, x, context, dy);
  objective();
  CHECK(all_close(std::vector<double>(result.y.data(), result.y.data() + y.size()),
                  std::vector<double>(y.data(), y.data() + y.size()), 1e-13, 1e-13));
  check_gradient(objective, x.view(),
                 matrix_view_t<B>(const_cast<double*>(result.dx.data()), rows, width), "x",
                 entries);
  const ParameterList<B> list = parameters(policy, result.gradients);
  for (const Parameter<B>& p : list) {
    check_gradient(objective, p.value, p.gradient, p.name, entries);
  }
  return static_cast<int>(list.size());
}
template <class B, class P>
int check_policy(B& backend, P& policy, Index rows, Index width, Index entries = 0) {
  return check_policy(backend, policy, rows, width, entries, RowContext<B>{},
                      [](ConstMatrixView<double>) { return 0.0; });
}

}  // namespace wanamaker_test
