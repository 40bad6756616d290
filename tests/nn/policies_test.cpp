// MLP policies against their formulas, and what they say that they cost.
#include <memory>

#include "nn/tiny_models.hpp"
#include "testing.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/core/half.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;
using B = ReferenceBackend<double>;
using Rows = naive::Rows<double>;

/// Dense layers of one tiny MLP and inputs for it, more rows than a policy computes at a time.
struct Fixture {
  B backend;
  naive::Model model;
  RandomStream random{8};
  Rows inputs = random_rows(random, 1030, 10);

  explicit Fixture(bool has_bias) : model(tiny_llama(has_bias, 0)) {}

  Linear<B> linear(const naive::Dense& dense, WeightLayout layout = WeightLayout::in_out) {
    return ModelMaker<B>(backend, model).linear(dense, layout);
  }
  const naive::Block& block() const { return model.blocks.front(); }

  /// Outputs of a policy for `inputs`; y is NaN before.
  template <class P>
  Rows outputs(const P& policy) {
    static_assert(check_mlp_policy<P, B>());
    const Index n = static_cast<Index>(inputs.size());
    const auto x = ModelMaker<B>(backend, model).weights(inputs);
    auto y = make_matrix(backend, n, 10);
    std::fill_n(y.data(), y.size(), std::nan(""));
    Workspace<B> workspace(backend);
    mlp_forward(policy, backend, x.view(), RowContext<B>{}, y.view(), workspace);
    Rows rows;
    for (Index i = 0; i < n; ++i) rows.emplace_back(y.view().row(i), y.view().row(i) + 10);
    return rows;
  }
};

template <class F>
Rows mapped(const Rows& inputs, F&& f) {
  Rows outputs;
  for (const std::vector<double>& x : inputs) outputs.push_back(f(x));
  return outputs;
}

bool close(const Rows& actual, const Rows& expected) {
  bool good = actual.size() == expected.size();
  for (std::size_t i = 0; good && i < actual.size(); ++i) {
    good = all_close(actual[i], expected[i], 1e-12, 1e-12);
  }
  return good;
}

bool costs(const MlpCost& cost, double flops, double weight_bytes, double parameters) {
  return cost.flops == flops && cost.weight_bytes == weight_bytes && cost.parameters == parameters;
}

constexpr int d = 10, h = 14;

}  // namespace

TEST_CASE("a dense MLP is activation(x·W₁ + b₁)·W₂ + b₂, in either layout") {
  for (const bool has_bias : {false, true}) {
    for (const WeightLayout layout : {WeightLayout::in_out, WeightLayout::out_in}) {
      Fixture f(has_bias);
      const DenseMlp<B, GeluTanh> policy(f.linear(f.block().up, layout),
                                         f.linear(f.block().down, layout));
      naive::Settings s = f.model.settings;
      s.gated = false;
      s.activation = "gelu_tanh";
      CHECK(close(f.outputs(policy),
                  mapped(f.inputs, [&](const auto& x) { return naive::mlp(s, f.block(), x); })));
      const double parameters = 2 * d * h + (has_bias ? d + h : 0);
      CHECK(costs(policy.cost(7), 7.0 * 2 * 2 * d * h, 8 * parameters, parameters));
    }
  }
}

TEST_CASE("a gated linear unit is (activation(x·W_g) ∘ x·W_u)·W_d") {
  for (const bool has_bias : {false, true}) {
    Fixture f(has_bias);
    const GatedLinearUnitMlp<B, Silu> policy(f.linear(f.block().gate), f.linear(f.block().up),
                                             f.linear(f.block().down));
    CHECK(close(f.outputs(policy), mapped(f.inputs, [&](const auto& x) {
                  return naive::mlp(f.model.settings, f.block(), x);
                })));
    const double parameters = 3 * d * h + (has_bias ? 2 * h + d : 0);
    CHECK(costs(policy.cost(7), 7.0 * 2 * 3 * d * h, 8 * parameters, parameters));
  }
}

TEST_CASE("surrogate policies: affine, low rank, mean, zero") {
  Fixture f(true);
  RandomStream random(9);
  const naive::Dense map = random_dense(random, d, d, true);
  const AffineMlp<B> affine(f.linear(map));
  CHECK(close(f.outputs(affine), mapped(f.inputs, map)));
  CHECK(costs(affine.cost(3), 3.0 * 2 * d * d, 8.0 * (d * d + d), d * d + d));

  const naive::Dense down = random_dense(random, d, 3, false);
  const naive::Dense up = random_dense(random, 3, d, true);
  const LowRankMlp<B> low_rank(f.linear(down), f.linear(up));
  CHECK(low_rank.rank() == 3);
  CHECK(close(f.outputs(low_rank), mapped(f.inputs, [&](const auto& x) { return up(down(x)); })));
  CHECK(costs(low_rank.cost(3), 3.0 * 2 * 2 * d * 3, 8.0 * (2 * d * 3 + d), 2 * d * 3 + d));

  const std::vector<double> mean = random_values(random, d);
  const MeanMlp<B> constant(ModelMaker<B>(f.backend, f.model).row(mean));
  CHECK(f.outputs(constant) == Rows(f.inputs.size(), mean));
  CHECK(costs(constant.cost(3), 0, 8.0 * d, d));

  CHECK(f.outputs(ZeroMlp<B>{}) == Rows(f.inputs.size(), std::vector<double>(d, 0.0)));
  CHECK(costs(ZeroMlp<B>{}.cost(3), 0, 0, 0));
}

TEST_CASE("rows are independent: a permuted input gives the permuted output") {
  Fixture f(true);
  const GatedLinearUnitMlp<B, Silu> policy(f.linear(f.block().gate), f.linear(f.block().up),
                                           f.linear(f.block().down));
  Rows expected = f.outputs(policy);
  std::rotate(f.inputs.begin(), f.inputs.begin() + 300, f.inputs.end());
  std::rotate(expected.begin(), expected.begin() + 300, expected.end());
  CHECK(f.outputs(policy) == expected);
}

namespace {

/// The form of two arguments, and of no copy.
struct TwiceMlp {
  std::unique_ptr<int> marker = std::make_unique<int>(7);
  void forward(ConstMatrixView<double> x, MatrixView<double> y) const {
    for (Index i = 0; i < x.rows; ++i) {
      for (Index j = 0; j < x.cols; ++j) y(i, j) = 2 * x(i, j);
    }
  }
  MlpCost cost(Index tokens) const { return {static_cast<double>(tokens), 2, 3}; }
};

/// The full form: the layer and the position of each row.
struct PositionMlp {
  template <class Backend>
  void forward(Backend&, const_matrix_view_t<Backend> x, const RowContext<Backend>& rows,
               matrix_view_t<Backend> y, Workspace<Backend>&) const {
    for (Index i = 0; i < x.rows; ++i) {
      for (Index j = 0; j < x.cols; ++j) {
        y(i, j) = static_cast<double>(rows.layer * 100 + rows.positions[i]);
      }
    }
  }
  MlpCost cost(Index) const { return {}; }
};

}  // namespace

TEST_CASE("AnyMlp runs either form, passes costs on and gives the policy back") {
  Fixture f(false);
  const AnyMlp<B> twice{TwiceMlp{}};
  CHECK(f.outputs(twice) == mapped(f.inputs, [](std::vector<double> x) {
          for (double& v : x) v *= 2;
          return x;
        }));
  CHECK(costs(twice.cost(5), 5, 2, 3));
  REQUIRE(twice.get<TwiceMlp>() != nullptr);
  CHECK(*twice.get<TwiceMlp>()->marker == 7);
  CHECK(twice.get<PositionMlp>() == nullptr);
  CHECK(AnyMlp<B>().get<TwiceMlp>() == nullptr);
  static_assert(MlpPolicy<AnyMlp<B>, B> && !std::is_copy_constructible_v<AnyMlp<B>>);
}

TEST_CASE("a policy is told where its rows come from") {
  B backend;
  const naive::Model formulas = tiny_gpt2();
  using Model = Transformer<B, Gpt2Block<B, PositionMlp>>;
  const Model model = ModelMaker<B>(backend, formulas)
                          .transformer<Model, LearnedPositions>(
                              WeightLayout::in_out,
                              [](const naive::Block&, WeightLayout) { return PositionMlp{}; });
  struct Outputs {
    std::vector<double> first_column;
    void on_mlp_output(Index, ConstMatrixView<double> y) {
      for (Index i = 0; i < y.rows; ++i) first_column.push_back(y(i, 0));
    }
  } outputs;
  const auto batch = pack(backend, {{1, 2, 3}, {4, 5}});
  Workspace<B> workspace(backend);
  auto residual = make_matrix(backend, 5, 12);
  model.forward(backend, batch, residual.view(), workspace, outputs);
  CHECK(outputs.first_column == std::vector<double>{0, 1, 2, 0, 1, 100, 101, 102, 100, 101});
}

TEST_CASE("weights in half count two bytes, biases as the scalar") {
  using Narrow = ReferenceBackend<float, half>;
  Narrow backend;
  const naive::Model formulas = tiny_gpt2();
  const naive::Block& block = formulas.blocks.front();
  const ModelMaker<Narrow> maker(backend, formulas);
  const DenseMlp<Narrow, GeluTanh> policy(maker.linear(block.up, WeightLayout::in_out),
                                          maker.linear(block.down, WeightLayout::in_out));
  CHECK(policy.cost(0).weight_bytes == 2.0 * 2 * 12 * 20 + 4.0 * (12 + 20));
}
