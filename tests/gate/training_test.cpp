// Gradients through gated and hybrid policies: soft ones against central differences, hard ones
// against the definition of the straight-through estimator.
#include "nn/gradient_testing.hpp"
#include "nn/tiny_models.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/gate/any_gate.hpp"
#include "wanamaker/gate/backward.hpp"
#include "wanamaker/gate/random_gate.hpp"
#include "wanamaker/nn/backward/transformer.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

constexpr Index gated_width = 5, gated_rows = 7;

template <class B>
using Soft = GatedMlp<TrainableLogisticGate<B>, AffineMlp<B>, AnyMlp<B>>;

template <class B>
struct GatedParts {
  B backend{};
  RandomStream random{30};

  AffineMlp<B> affine() {
    return AffineMlp<B>(random_layer(backend, gated_width, gated_width, random));
  }
  AnyMlp<B> mlp() {
    return DenseMlp<B, GeluTanh>(random_layer(backend, gated_width, 8, random),
                                 random_layer(backend, 8, gated_width, random));
  }
  LinearScore score() {
    LinearScore s{{}, 0.3};
    for (Index j = 0; j < gated_width; ++j) s.weights.push_back(2 * random.uniform() - 1);
    return s;
  }
  TrainableLogisticGate<B> gate() { return {backend, score()}; }

  /// Rows are one sequence of these tokens.
  RowContext<B> context() {
    RowContext<B> rows;
    rows.tokens = {tokens.data(), gated_rows};
    return rows;
  }
  std::vector<TokenId> tokens = {3, 1, 4, 1, 5, 9, 2};
};

std::vector<std::string> names_of(const auto& list) {
  std::vector<std::string> names;
  for (const auto& p : list) names.push_back(p.name);
  return names;
}

double zero_penalty(ConstMatrixView<double>) {
  return 0;
}

}  // namespace

TEST_CASE_TEMPLATE("a soft blend's gradients equal central differences", B,
                   ReferenceBackend<double>, EigenBackend<double>, BlasBackend<double>) {
  GatedParts<B> p;
  Soft<B> own = Soft<B>::soft(p.gate(), p.affine(), p.mlp());
  CHECK(names_of(parameters<B>(own)) ==
        std::vector<std::string>{"gate.weight", "gate.bias", "surrogate.affine.weight",
                                 "surrogate.affine.bias", "up.weight", "up.bias", "down.weight",
                                 "down.bias"});
  CHECK(check_policy(p.backend, own, gated_rows, gated_width) == 8);
  AnyMlp<B> erased = trainable_mlp<B>(std::move(own));
  CHECK(check_policy(p.backend, erased, gated_rows, gated_width) == 8);
}

TEST_CASE("a fixed logistic gate passes gradients to its input and learns nothing") {
  using B = ReferenceBackend<double>;
  GatedParts<B> p;
  auto soft = GatedMlp<LogisticGate<B>, AffineMlp<B>, ZeroMlp<B>>::soft(
      LogisticGate<B>(p.backend, p.score()), p.affine(), {});
  CHECK(check_policy(p.backend, soft, gated_rows, gated_width) == 2);

  const LogisticGate<B> elsewhere(p.backend, p.score());
  const AffineMlp<B> affine = p.affine();
  auto borrowed =
      GatedMlp<GateReference<LogisticGate<B>>, MlpReference<AffineMlp<B>>, ZeroMlp<B>>::soft(
          GateReference(elsewhere), MlpReference(affine), {});
  CHECK(check_policy(p.backend, borrowed, gated_rows, gated_width) == 0);
}

TEST_CASE("a fixed bottleneck gate passes gradients to its input") {
  using B = ReferenceBackend<double>;
  GatedParts<B> p;
  BottleneckScore score{{p.score(), p.score(), p.score()}, {0.9, -1.4, 0.6}, 0.1};
  auto soft = GatedMlp<BottleneckGate<B>, AffineMlp<B>, ZeroMlp<B>>::soft(
      BottleneckGate<B>(p.backend, score), p.affine(), {});
  CHECK(check_policy(p.backend, soft, gated_rows, gated_width) == 2);
}

namespace {

/// Scores are the first features: as many as there are experts.
struct FeatureRouter {
  template <class B>
  void score(B& backend, const_matrix_view_t<B> x, const RowContext<B>&, MatrixView<double> scores,
             Workspace<B>&) const {
    ops::copy(backend, x.middle_cols(0, scores.cols), scores);
  }
  MlpCost cost(Index) const { return {}; }
};

}  // namespace

TEST_CASE("routed experts: each learns from its own rows") {
  using B = EigenBackend<double>;
  GatedParts<B> p;
  RoutedMlp<FeatureRouter, AffineMlp<B>, AnyMlp<B>, MeanMlp<B>, ZeroMlp<B>> routed(
      {}, p.affine(), p.mlp(), MeanMlp<B>(random_matrix(p.backend, 1, gated_width, p.random)), {});
  CHECK(names_of(parameters<B>(routed)) ==
        std::vector<std::string>{"experts.0.affine.weight", "experts.0.affine.bias",
                                 "experts.1.up.weight", "experts.1.up.bias",
                                 "experts.1.down.weight", "experts.1.down.bias", "experts.2.mean"});
  CHECK(check_policy(p.backend, routed, 12, gated_width) == 7);
  routed.counts().reset();
  const auto x = random_matrix(p.backend, 12, gated_width, p.random);
  const auto dy = random_matrix(p.backend, 12, gated_width, p.random);
  differentiate_policy<B>(p.backend, routed, x.view(), {}, dy.view());
  CHECK(routed.counts().total() == 12);
}

TEST_CASE("the sparsity weight adds the gradient of λ·mean(1 − g), times the loss's weight") {
  using B = ReferenceBackend<double>;
  GatedParts<B> p;
  Soft<B> soft = Soft<B>::soft(p.gate(), p.affine(), p.mlp());
  soft.set_sparsity_weight(3.5);
  Index heard = 0;
  soft.set_score_listener([&](Index, ConstVectorView<double> scores) { heard += scores.size; });
  const auto penalty = [&](ConstMatrixView<double> x) {
    Workspace<B> workspace(p.backend);
    std::vector<double> g(static_cast<std::size_t>(x.rows));
    soft.gate().score(p.backend, x, {}, {g.data(), x.rows}, workspace);
    double sum = 0;
    for (const double score : g) sum += 3.5 * (1 - score) / static_cast<double>(x.rows);
    return sum;
  };
  CHECK(check_policy(p.backend, soft, gated_rows, gated_width, 0, RowContext<B>{}, penalty) == 8);
  CHECK(heard == gated_rows);

  // Without any gradient from above, the penalty's is what is left: linear in the weight.
  const auto x = random_matrix(p.backend, gated_rows, gated_width, p.random);
  const auto nothing = make_matrix(p.backend, gated_rows, gated_width);
  const auto once = differentiate_policy<B>(p.backend, soft, x.view(), {}, nothing.view());
  const auto twice = differentiate_policy<B>(p.backend, soft, x.view(), {}, nothing.view(), 2);
  const auto slope = once.gradients.of(soft.gate().intercept());
  CHECK(slope(0, 0) < 0);
  CHECK(twice.gradients.of(soft.gate().intercept())(0, 0) == 2 * slope(0, 0));
}

TEST_CASE("a hard gate's paths get exact gradients, the gate those of the blend") {
  using B = ReferenceBackend<double>;
  GatedParts<B> p;
  Soft<B> hard = Soft<B>::hard(p.gate(), p.affine(), p.mlp(), 0.55);
  auto x = random_matrix(p.backend, gated_rows, gated_width, p.random);
  const auto dy = random_matrix(p.backend, gated_rows, gated_width, p.random);
  const auto result = differentiate_policy<B>(p.backend, hard, x.view(), {}, dy.view());

  Workspace<B> workspace(p.backend);
  const auto output_of = [&](const auto& policy) {
    auto y = make_matrix(p.backend, gated_rows, gated_width);
    mlp_forward<std::remove_cvref_t<decltype(policy)>, B>(policy, p.backend, x, {}, y, workspace);
    return y;
  };
  const auto dot = [&](Index i, const auto& y) {
    double sum = 0;
    for (Index j = 0; j < gated_width; ++j) sum += dy.view()(i, j) * y.view()(i, j);
    return sum;
  };
  // Held fixed: what the gate's score of each row is worth, dy·(s − m).
  const auto s = output_of(hard.surrogate());
  const auto m = output_of(hard.mlp());
  std::vector<double> worth;
  for (Index i = 0; i < gated_rows; ++i) worth.push_back(dot(i, s) - dot(i, m));
  const auto blend = [&] {
    std::vector<double> g(worth.size());
    hard.gate().score(p.backend, x, {}, {g.data(), gated_rows}, workspace);
    double sum = 0;
    for (std::size_t i = 0; i < g.size(); ++i) sum += g[i] * worth[i];
    return sum;
  };
  const auto routed = [&] {
    const auto y = output_of(hard);
    double sum = 0;
    for (Index i = 0; i < gated_rows; ++i) sum += dot(i, y);
    return sum;
  };
  routed();
  CHECK(hard.surrogate_rows() > 0);
  CHECK(hard.mlp_rows() > 0);
  for (const auto& q : parameters(hard, result.gradients)) {
    if (q.name.starts_with("gate.")) {
      check_gradient(blend, q.value, q.gradient, q.name);
    } else {
      check_gradient(routed, q.value, q.gradient, q.name);
    }
  }
  const auto both = [&] { return routed() + blend(); };
  check_gradient(both, x.view(), {const_cast<double*>(result.dx.data()), gated_rows, gated_width},
                 "x");
}

TEST_CASE("hard routing by a gate that learns nothing") {
  using B = EigenBackend<double>;
  GatedParts<B> p;
  auto hard = GatedMlp<RandomGate, AffineMlp<B>, AnyMlp<B>>::hard(RandomGate(0.5, 4), p.affine(),
                                                                  p.mlp(), 0.5);
  CHECK(check_policy(p.backend, hard, gated_rows, gated_width, 0, p.context(), zero_penalty) == 6);
  // Each path has seen its own rows only.
  hard.counts().reset();
  const auto x = random_matrix(p.backend, gated_rows, gated_width, p.random);
  differentiate_policy<B>(p.backend, hard, x.view(), p.context(), x.view());
  CHECK(hard.surrogate_rows() > 0);
  CHECK(hard.mlp_rows() > 0);
  CHECK(hard.counts().total() == gated_rows);
}

TEST_CASE("a hybrid of an affine path and a narrow MLP") {
  using B = ReferenceBackend<double>;
  GatedParts<B> p;
  HybridMlp<AffineMlp<B>, AnyMlp<B>> hybrid(p.affine(), p.mlp());
  CHECK(names_of(parameters<B>(hybrid)) ==
        std::vector<std::string>{"linear.affine.weight", "linear.affine.bias", "up.weight",
                                 "up.bias", "down.weight", "down.bias"});
  CHECK(check_policy(p.backend, hybrid, gated_rows, gated_width) == 6);
}

TEST_CASE("a soft gate without a backward pass is refused; what a gate learned can be read") {
  using B = ReferenceBackend<double>;
  GatedParts<B> p;
  const LinearScore score = p.score();
  auto soft = GatedMlp<AnyGate<B>, AffineMlp<B>, ZeroMlp<B>>::soft(
      AnyGate<B>(LogisticGate<B>(p.backend, score)), p.affine(), {});
  const auto x = make_matrix(p.backend, 2, gated_width);
  CHECK(error_id([&] { differentiate_policy<B>(p.backend, soft, x.view(), {}, x.view()); }) ==
        "training/gate-no-backward");

  const TrainableLogisticGate<B> gate(p.backend, score);
  CHECK(gate.linear_score(p.backend).weights == score.weights);
  CHECK(gate.linear_score(p.backend).bias == score.bias);
  const auto rows = random_matrix(p.backend, 4, gated_width, p.random);
  std::vector<double> own(4), fixed(4);
  Workspace<B> workspace(p.backend);
  gate.score(p.backend, rows, {}, {own.data(), 4}, workspace);
  LogisticGate<B>(p.backend, score).score(p.backend, rows, {}, {fixed.data(), 4}, workspace);
  CHECK(all_close(own, fixed, 1e-15, 0.0));
}

static_assert(
    check_gate<TrainableLogisticGate<ReferenceBackend<double>>, ReferenceBackend<double>>());

TEST_CASE("gated layers in a model: names, gradients, and the same bits when recomputed") {
  using B = ReferenceBackend<double>;
  using Gated = GatedMlp<TrainableLogisticGate<B>, AffineMlp<B>, DenseMlp<B, GeluTanh>>;
  using Model = Transformer<B, Gpt2Block<B, Gated>>;
  B backend;
  RandomStream random(31);
  const naive::Model formulas = tiny_gpt2();
  const ModelMaker<B> maker(backend, formulas);
  const auto gated = [&](const naive::Block& b, WeightLayout layout) {
    LinearScore score{{}, -0.2};
    for (int j = 0; j < 12; ++j) score.weights.push_back(random.uniform() - 0.5);
    return Gated::soft({backend, score}, AffineMlp<B>(random_layer(backend, 12, 12, random)),
                       {maker.linear(b.up, layout), maker.linear(b.down, layout)});
  };
  Model model = maker.transformer<Model, LearnedPositions>(WeightLayout::in_out, gated);
  const PackedBatch<B> batch = pack(backend, random_sequences(31, {9, 1, 4}));
  const ScoredPositions scored = all_next_tokens(batch);
  Workspace<B> workspace(backend);
  const Gradients<B> kept(backend, model), again(backend, model);
  const double loss = loss_and_gradients(model, backend, batch, scored, kept, workspace);
  CHECK(loss ==
        loss_and_gradients(model, backend, batch, scored, again, workspace, {.recompute = true}));
  const auto plain_loss = [&] {
    auto residual = make_matrix(backend, batch.rows(), 12);
    model.forward(backend, batch, residual.view(), workspace);
    double sum = 0;
    for (const double nll : model.token_losses(backend, residual.view(), scored, workspace)) {
      sum += nll / static_cast<double>(scored.rows.size());
    }
    return sum;
  };
  int in_gates = 0;
  for (const auto& q : parameters(model, kept)) {
    const auto other = again.of(q.value.data);
    CHECK(std::equal(other.data, other.data + other.size(), q.gradient.data));
    if (q.name.find("mlp") == std::string::npos) continue;
    check_gradient(plain_loss, q.value, q.gradient, q.name, 2);
    in_gates += q.name == "transformer.h.1.mlp.gate.weight" ? 1 : 0;
    in_gates += q.name == "transformer.h.1.mlp.surrogate.affine.weight" ? 1 : 0;
    in_gates += q.name == "transformer.h.1.mlp.c_fc.weight" ? 1 : 0;
  }
  CHECK(in_gates == 3);
}
