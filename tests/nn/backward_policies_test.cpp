// Every MLP policy of nn, behind AnyMlp: gradients against central differences on every backend.
#include "nn/gradient_testing.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/nn/backward/any_mlp.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

constexpr Index policy_width = 6, policy_hidden = 9;

/// y = c·x∘x, with c learned: a policy of a user, which keeps nothing.
template <class B>
struct SquareMlp {
  matrix_t<B> c;

  void forward(const_matrix_view_t<B> x, matrix_view_t<B> y) const {
    for (Index i = 0; i < x.rows; ++i) {
      for (Index j = 0; j < x.cols; ++j) y(i, j) = c.data()[j] * x(i, j) * x(i, j);
    }
  }
  void backward(BackwardPass<B>& pass, const_matrix_view_t<B> x, const RowContext<B>&,
                const_matrix_view_t<B> dy, matrix_view_t<B> dx) const {
    const matrix_view_t<B> dc = pass.gradients.of(c);
    for (Index i = 0; i < x.rows; ++i) {
      for (Index j = 0; j < x.cols; ++j) {
        dx(i, j) = 2 * c.data()[j] * x(i, j) * dy(i, j);
        if (dc.size() > 0) dc(0, j) += x(i, j) * x(i, j) * dy(i, j);
      }
    }
  }
  void parameters(const ParameterCollector<B>& collector) { collector.vector("c", c); }
  MlpCost cost(Index) const { return {}; }
};

struct UntrainableMlp {
  void forward(ConstMatrixView<double>, MatrixView<double>) const {}
  MlpCost cost(Index) const { return {}; }
};

template <class B>
struct Policies {
  B backend{};
  RandomStream random{20};

  Linear<B> layer(Index inputs, Index outputs, bool has_bias = true) {
    // Either layout, in turn.
    layout = layout == WeightLayout::in_out ? WeightLayout::out_in : WeightLayout::in_out;
    return random_layer(backend, inputs, outputs, random, layout, has_bias);
  }
  template <class Activation>
  AnyMlp<B> dense() {
    return DenseMlp<B, Activation>(layer(policy_width, policy_hidden),
                                   layer(policy_hidden, policy_width));
  }
  template <class Activation>
  AnyMlp<B> gated(bool has_bias) {
    return GatedLinearUnitMlp<B, Activation>(layer(policy_width, policy_hidden, has_bias),
                                             layer(policy_width, policy_hidden, has_bias),
                                             layer(policy_hidden, policy_width, has_bias));
  }
  int check(AnyMlp<B> mlp) { return check_policy(backend, mlp, 5, policy_width); }

  WeightLayout layout = WeightLayout::in_out;
};

}  // namespace

TEST_CASE_TEMPLATE("policies' gradients equal central differences", B, ReferenceBackend<double>,
                   EigenBackend<double>, BlasBackend<double>) {
  Policies<B> p;
  CHECK(p.check(p.template dense<GeluTanh>()) == 4);
  CHECK(p.check(p.template dense<GeluErf>()) == 4);
  CHECK(p.check(p.template dense<Silu>()) == 4);
  CHECK(p.check(p.template dense<Relu>()) == 4);
  CHECK(p.check(p.template gated<Silu>(false)) == 3);
  CHECK(p.check(p.template gated<GeluTanh>(true)) == 6);
  CHECK(p.check(p.template gated<GeluErf>(true)) == 6);
  CHECK(p.check(p.template gated<Relu>(true)) == 6);
  CHECK(p.check(AffineMlp<B>(p.layer(policy_width, policy_width))) == 2);
  CHECK(p.check(LowRankMlp<B>(p.layer(policy_width, 2, false), p.layer(2, policy_width))) == 3);
  CHECK(p.check(MeanMlp<B>(random_matrix(p.backend, 1, policy_width, p.random))) == 1);
  CHECK(p.check(ZeroMlp<B>()) == 0);
  CHECK(p.check(trainable_mlp<B>(
            SquareMlp<B>{random_matrix(p.backend, 1, policy_width, p.random)})) == 1);
}

TEST_CASE("hidden layers of more rows than are computed at a time") {
  Policies<EigenBackend<double>> p;
  AnyMlp<EigenBackend<double>> dense = p.dense<GeluTanh>();
  CHECK(check_policy(p.backend, dense, 1030, policy_width, 2) == 4);
  AnyMlp<EigenBackend<double>> gated = p.gated<Silu>(true);
  CHECK(check_policy(p.backend, gated, 1030, policy_width, 2) == 6);
}

TEST_CASE("a policy without a backward pass is refused with its mend") {
  using B = ReferenceBackend<double>;
  AnyMlp<B> mlp{UntrainableMlp{}};
  B backend;
  CHECK(error_id([&] { parameters<B>(mlp); }) == "training/no-backward");
  AnyMlp<B> other{SquareMlp<B>{make_matrix(backend, 1, 2)}};
  CHECK(error_id([&] { parameters<B>(other); }) == "training/no-backward");
}

TEST_CASE("an array that is shared is listed once, an empty one not at all") {
  using B = ReferenceBackend<double>;
  B backend;
  auto shared = make_matrix(backend, 2, 3), other = make_matrix(backend, 1, 3);
  ParameterList<B> list;
  const ParameterCollector<B> collector(list);
  collector.within("a").matrix("weight", shared);
  collector.within("b").matrix("weight", shared);
  collector.within("b").vector("bias", other);
  collector.vector("nothing", {});
  REQUIRE(list.size() == 2);
  CHECK(list[0].name == "a.weight");
  CHECK(list[0].decays);
  CHECK(list[1].name == "b.bias");
  CHECK(!list[1].decays);
}

TEST_CASE("a tape that is not taken as it was kept is an error") {
  Tape<ReferenceBackend<double>> tape;
  CHECK(error_id([&] { tape.take(); }) == "training/tape");
  tape.keep({});
  CHECK(error_id([&] { tape.check_taken(); }) == "training/tape");
  tape.truncate(0);
  CHECK(error_id([&] { tape.check_taken(); }) == "");
}

TEST_CASE("activations: derivatives against central differences, and where they are not smooth") {
  const auto check = [](auto activation, double u) {
    const double expected = central_difference([&] { return activation(u); }, u);
    CHECK(std::abs(activation.derivative(u) - expected) <= 1e-10);
  };
  for (const double u : {-30.0, -5.0, -1.3, -0.2, 0.0, 0.4, 1.0, 3.7, 20.0}) {
    CAPTURE(u);
    check(GeluTanh{}, u);
    check(GeluErf{}, u);
    check(Silu{}, u);
    check(Identity{}, u);
    if (u != 0) check(Relu{}, u);
  }
  CHECK(Relu{}.derivative(0.0) == 0);
}
