// Affine maps that act through the MLPs of trained models: exact but for rounding.
#include "wanamaker/surrogate/stock_mlp.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/core/random.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

constexpr Index stock_inputs = 5, stock_outputs = 7, stock_rows = 9;

AffineMap random_map(std::uint64_t seed) {
  RandomStream random(seed, 1);
  AffineMap map{stock_inputs, stock_outputs, {}, {}};
  for (Index i = 0; i < stock_inputs * stock_outputs; ++i) map.weight.push_back(random.normal());
  for (Index j = 0; j < stock_outputs; ++j) map.bias.push_back(random.normal());
  return map;
}

/// Largest |y − (xW + b)|/(|x|·|W| + |b|) over random rows, among them 0, tiny and huge ones.
template <class B, class Mlp>
double worst_error(B& backend, const Mlp& mlp, const AffineMap& map) {
  using T = scalar_t<B>;
  RandomStream random(4, 2);
  std::vector<T> x;
  for (Index t = 0; t < stock_rows; ++t) {
    const double size = t == 0 ? 0 : std::pow(10.0, static_cast<double>(t) - 5);
    for (Index i = 0; i < stock_inputs; ++i) x.push_back(static_cast<T>(size * random.normal()));
  }
  const matrix_t<B> input = matrix_from_host<T>(backend, x.data(), stock_rows, stock_inputs);
  matrix_t<B> output = make_matrix(backend, stock_rows, stock_outputs);
  Workspace<B> workspace(backend);
  mlp.forward(backend, input.view(), {}, output.view(), workspace);
  double worst = 0;
  for (Index t = 0; t < stock_rows; ++t) {
    for (Index j = 0; j < stock_outputs; ++j) {
      double y = map.bias[static_cast<std::size_t>(j)], size = std::abs(y);
      for (Index i = 0; i < stock_inputs; ++i) {
        const double term = static_cast<double>(input.view()(t, i)) * map.weight_view()(i, j);
        y += term;
        size += std::abs(term);
      }
      worst = std::max(worst, std::abs(static_cast<double>(output.view()(t, j)) - y) / size);
    }
  }
  return worst;
}

// φ of either sign errs by a few ε·|s·u|, weights and sums by ε each: 2d + 8 roundings at most,
// and 8 more for the logistic or error function.
template <class T>
constexpr double stock_bound = (2 * stock_inputs + 16) * double{std::numeric_limits<T>::epsilon()};

template <class B, class Activation>
void check_dense(double scale) {
  B backend;
  const AffineMap map = random_map(3);
  for (const WeightLayout layout : {WeightLayout::in_out, WeightLayout::out_in}) {
    for (const Index hidden : {2 * stock_inputs, 2 * stock_inputs + 3}) {
      const auto mlp = stock_mlp<Activation>(backend, map, hidden, layout, scale);
      CAPTURE(Activation::name);
      CAPTURE(hidden);
      CHECK(mlp.up().outputs() == hidden);
      CHECK(mlp.up().layout() == layout);
      CHECK(mlp.down().outputs() == stock_outputs);
      CHECK(worst_error(backend, mlp, map) < stock_bound<scalar_t<B>>);
    }
  }
  CHECK(error_id([&] {
          stock_mlp<Activation>(backend, map, 2 * stock_inputs - 1, WeightLayout::in_out);
        }) == "shape/stock-hidden");
}

template <class B, class Activation>
void check_gated() {
  B backend;
  const AffineMap map = random_map(5);
  for (const WeightLayout layout : {WeightLayout::in_out, WeightLayout::out_in}) {
    const auto mlp = stock_gated_mlp<Activation>(backend, map, stock_inputs + 2, layout);
    CHECK(mlp.gate().has_bias());
    CHECK(worst_error(backend, mlp, map) < stock_bound<scalar_t<B>>);
  }
  CHECK(error_id([&] {
          stock_gated_mlp<Activation>(backend, map, stock_inputs - 1, WeightLayout::in_out);
        }) == "shape/stock-hidden");
}

}  // namespace

TEST_CASE("an affine map acts through the MLP of any family, at any scale") {
  for (const double scale : {1.0, StockScale::for_half, StockScale::for_float}) {
    check_dense<ReferenceBackend<double>, GeluTanh>(scale);
    check_dense<ReferenceBackend<double>, GeluErf>(scale);
    check_dense<ReferenceBackend<double>, Silu>(scale);
    check_dense<ReferenceBackend<double>, Relu>(scale);
    check_dense<EigenBackend<float>, GeluTanh>(scale);
    check_dense<EigenBackend<float>, GeluErf>(scale);
  }
}

TEST_CASE("an affine map acts through a gated linear unit whose gate its bias holds") {
  check_gated<ReferenceBackend<double>, Silu>();
  check_gated<ReferenceBackend<double>, GeluTanh>();
  check_gated<EigenBackend<float>, Silu>();
}
