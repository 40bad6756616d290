// Marginal δ: against models changed by hand at one row, central differences of a blend, and the
// change that a path adds up to.
#include "wanamaker/residual/marginal_delta.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/gradient_testing.hpp"
#include "nn/tiny_models.hpp"
#include "testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/residual/marginal_agreement.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;
using MarginalBackend = EigenBackend<double>;

/// The MLP `own`, but (1 − t)·own + t·other at the rows marked.
struct BlendAtRows {
  const AnyMlp<MarginalBackend>* own;
  const AnyMlp<MarginalBackend>* other;
  const std::vector<double>* shares;

  void forward(MarginalBackend& backend, ConstMatrixView<double> x,
               const RowContext<MarginalBackend>& rows, MatrixView<double> y,
               Workspace<MarginalBackend>& workspace) const {
    const Workspace<MarginalBackend>::Frame frame(workspace);
    const MatrixView<double> z = workspace.matrix(y.rows, y.cols);
    own->forward(backend, x, rows, y, workspace);
    other->forward(backend, x, rows, z, workspace);
    for (Index i = 0; i < y.rows; ++i) {
      const double t = (*shares)[static_cast<std::size_t>(i)];
      for (Index j = 0; j < y.cols; ++j) y(i, j) = (1 - t) * y(i, j) + t * z(i, j);
    }
  }
  MlpCost cost(Index) const { return {}; }
};

/// A tiny model beside its twin, whose MLP at one layer is a blend.
struct MarginalBench {
  MarginalBackend backend;
  AnyTransformer<MarginalBackend> model;
  AnyTransformer<MarginalBackend> twin;
  PackedBatch<MarginalBackend> batch;
  ScoredPositions scored;
  Workspace<MarginalBackend> workspace;
  std::vector<AnyMlp<MarginalBackend>> maps{};
  std::vector<std::vector<double>> shares{};  // of each layer's rows

  explicit MarginalBench(const naive::Model& formulas, ExecutorRef executor = {})
      : backend(executor),
        model(ModelMaker<MarginalBackend>(backend, formulas).any()),
        twin(ModelMaker<MarginalBackend>(backend, formulas).any()),
        batch(pack(backend, random_sequences(formulas.settings.vocabulary, {9, 1, 6}))),
        scored(all_next_tokens(batch)),
        workspace(backend),
        shares(static_cast<std::size_t>(model.layers()),
               std::vector<double>(static_cast<std::size_t>(batch.rows()))) {
    RandomStream random(3);
    const Index width = model.config().width;
    for (Index l = 0; l < model.layers(); ++l) {
      maps.emplace_back(AffineMlp<MarginalBackend>(random_layer(backend, width, width, random)));
    }
  }

  MarginalDelta<MarginalBackend> marginal(Index patch_rows = 2048) {
    std::vector<LayerStandIn<MarginalBackend>> stand_ins;
    for (Index l = 0; l < model.layers(); ++l) {
      stand_ins.push_back({l, &maps[static_cast<std::size_t>(l)]});
    }
    return {backend, model, stand_ins, workspace, patch_rows};
  }
  /// Summed NLL of the twin with the layer blended.
  double loss_with(Index layer) {
    const std::size_t at = static_cast<std::size_t>(layer);
    twin.mlp(layer) =
        AnyMlp<MarginalBackend>(BlendAtRows{&model.mlp(layer), &maps[at], &shares[at]});
    auto stream = make_matrix(backend, batch.rows(), model.config().width);
    const MatrixView<double> view = stream.view();
    twin.forward(backend, batch, view, workspace);
    double sum = 0;
    for (const double loss : twin.token_losses(backend, view, scored, workspace)) sum += loss;
    return sum;
  }
  /// Every row of the layer; no row of the others.
  void set_shares(Index layer, double share) {
    for (std::vector<double>& own : shares) std::fill(own.begin(), own.end(), 0.0);
    std::vector<double>& own = shares[static_cast<std::size_t>(layer)];
    std::fill(own.begin(), own.end(), share);
  }
  double loss_with_row(Index layer, Index row, double share) {
    set_shares(layer, 0.0);
    shares[static_cast<std::size_t>(layer)][static_cast<std::size_t>(row)] = share;
    return loss_with(layer);
  }
};

std::vector<naive::Model> marginal_families() {
  return {tiny_gpt2(), tiny_neox(true), tiny_neox(false), tiny_llama(false, 4)};
}

std::vector<Index> every_row(const MarginalDelta<MarginalBackend>& marginal) {
  std::vector<Index> rows(static_cast<std::size_t>(marginal.rows()));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<Index>(i);
  return rows;
}

// Losses sum to about 40 nats of some hundred roundings each: 1e-11 is beyond what they leave.
constexpr double loss_round_off = 1e-11;

TEST_CASE("an exact patch is the model with its MLP changed at one row, on every family") {
  for (const naive::Model& formulas : marginal_families()) {
    MarginalBench bench(formulas);
    auto marginal = bench.marginal();
    marginal.begin(bench.batch, bench.scored);
    PatchWork work;
    for (Index l = 0; l < bench.model.layers(); ++l) {
      const std::vector<double> found = marginal.exact(l, every_row(marginal), work);
      const double before = bench.loss_with_row(l, 0, 0.0);
      CHECK(std::abs(marginal.loss() - before) < loss_round_off);
      std::vector<double> expected;
      for (const Index row : every_row(marginal)) {
        expected.push_back(bench.loss_with_row(l, row, 1.0) - before);
      }
      CHECK(all_close(found, expected, 0.0, loss_round_off));
    }
  }
}

TEST_CASE("first order is the derivative of a blend at one row, on every family") {
  for (const naive::Model& formulas : marginal_families()) {
    MarginalBench bench(formulas);
    auto marginal = bench.marginal();
    marginal.begin(bench.batch, bench.scored);
    for (Index l = 0; l < bench.model.layers(); ++l) {
      std::vector<double> expected;
      double largest = 1;
      for (const Index row : every_row(marginal)) {
        double step = 0;
        expected.push_back(
            16 * central_difference([&] { return bench.loss_with_row(l, row, step / 16); }, step));
        largest = std::max(largest, std::abs(expected.back()));
      }
      // In sixteenths of its step h the difference is off by (h/16)⁴·f⁽⁵⁾/30, 5e-13 for a fifth
      // derivative of 1e6, which the large changes here have, and by 16·3e-13·|L| = 2e-10 from
      // rounding, L about 40 nats.
      CHECK(all_close(marginal.first_order(l), expected, 0.0, 1e-9 * largest));
      CHECK(std::abs(expected[0]) > 1e-4);
    }
  }
}

TEST_CASE("what nothing is scored after has no δ; a row's δ counts scored positions from it on") {
  MarginalBench bench(tiny_gpt2());
  auto marginal = bench.marginal();
  marginal.begin(bench.batch, bench.scored);
  PatchWork work;
  for (const Index row : {8, 9, 15}) {  // last rows of the sequences of 9, 1 and 6
    CHECK(marginal.first_order(0)[static_cast<std::size_t>(row)] == 0);
    CHECK(marginal.exact(0, std::vector<Index>{row}, work)[0] == 0);
  }
  // As with overlapping windows: only the end of the first sequence is scored.
  bench.scored = {{6, 7}, {1, 2}};
  marginal.begin(bench.batch, bench.scored);
  const double before = bench.loss_with_row(1, 0, 0.0);
  for (const Index row : {0, 6, 7, 10}) {
    const double expected = bench.loss_with_row(1, row, 1.0) - before;
    CHECK(std::abs(marginal.exact(1, std::vector<Index>{row}, work)[0] - expected) <
          loss_round_off);
  }
  CHECK(marginal.first_order(1)[10] == 0);
}

// E(n) = a/n² + b/n⁴ + … for the midpoint rule, so (4·E(2n) − E(n))/3 = O(n⁻⁴).
void check_second_order(double coarse, double fine, double exact) {
  const double at_n = coarse - exact;
  const double at_2n = fine - exact;
  CHECK(std::abs(at_n) > 1e-8);  // far from round-off
  CHECK(std::abs(4 * at_2n - at_n) / 3 < 0.1 * std::abs(at_2n));
}

TEST_CASE("integrated gradients tend to the exact δ of a row, and of all rows together") {
  MarginalBench bench(tiny_gpt2());
  auto marginal = bench.marginal();
  marginal.begin(bench.batch, bench.scored);
  PatchWork work;
  for (Index l = 0; l < bench.model.layers(); ++l) {
    for (const Index row : {0, 3, 11}) {
      std::vector<std::uint8_t> moves(static_cast<std::size_t>(marginal.rows()));
      moves[static_cast<std::size_t>(row)] = 1;
      const std::size_t at = static_cast<std::size_t>(row);
      const double exact = marginal.exact(l, std::vector<Index>{row}, work)[0];
      const std::vector<double> coarse = marginal.integrated(l, 32, moves);
      const std::vector<double> fine = marginal.integrated(l, 64, moves);
      check_second_order(coarse[at], fine[at], exact);
      CHECK(coarse[at == 0 ? 1 : 0] == 0);
    }
    const auto total = [&](Index steps) {
      double sum = 0;
      for (const double d : marginal.integrated(l, steps)) sum += d;
      return sum;
    };
    check_second_order(total(32), total(64), marginal.joint(l));
    bench.set_shares(l, 1.0);
    const double replaced = bench.loss_with(l);
    CHECK(std::abs(marginal.joint(l) - (replaced - marginal.loss())) < loss_round_off);
  }
}

TEST_CASE("one gradient from the middle is the gradient of the whole pass") {
  MarginalBench bench(tiny_neox(true));
  struct Seen {
    Index layer;
    std::vector<double> stream{};
    std::vector<double> gradient{};
    void on_residual(Index l, ConstMatrixView<double> r) {
      if (l == layer) stream.assign(r.data, r.data + r.size());
    }
    void on_residual_gradient(Index l, ConstMatrixView<double> d) {
      if (l == layer) gradient.assign(d.data, d.data + d.size());
    }
  };
  const Gradients<MarginalBackend> none(bench.backend, bench.model,
                                        [](const std::string&) { return true; });
  for (Index layer = 0; layer <= bench.model.layers(); ++layer) {
    Seen whole{layer};
    Seen part{layer};
    const double loss = loss_and_gradients(bench.model, bench.backend, bench.batch, bench.scored,
                                           none, bench.workspace, {}, whole);
    const ConstMatrixView<double> stream(whole.stream.data(), bench.batch.rows(),
                                         bench.model.config().width);
    CHECK(loss_and_gradients_from(bench.model, bench.backend, layer, bench.batch, stream,
                                  bench.scored, none, bench.workspace, {}, part) == loss);
    CHECK(whole.gradient.size() == whole.stream.size());
    CHECK(part.gradient == whole.gradient);
  }
  CHECK_THROWS_AS(loss_and_gradients_from(bench.model, bench.backend, 3, bench.batch,
                                          ConstMatrixView<double>(nullptr, bench.batch.rows(), 12),
                                          bench.scored, none, bench.workspace),
                  ShapeError);
}

TEST_CASE("patches cost what they are said to, and do not depend on how many run together") {
  MarginalBench bench(tiny_llama(true, 0));
  auto many = bench.marginal();
  auto few = bench.marginal(10);
  many.begin(bench.batch, bench.scored);
  few.begin(bench.batch, bench.scored);
  const std::vector<Index> rows{0, 8, 2, 12};
  PatchWork work;
  PatchWork work_of_few;
  const std::vector<double> found = many.exact(1, rows, work);
  CHECK(all_close(few.exact(1, rows, work_of_few), found, 0.0, loss_round_off));
  CHECK(work.patches == 4);
  CHECK(work.passes == 1);
  CHECK(work_of_few.passes == 4);
  CHECK(work.block_rows == 9 + 9 + 9 + 6);         // one of three blocks is above layer 1
  CHECK(work.scored_rows == 8 + 0 + 6 + 3);        // positions from the row on
  CHECK(work.naive_block_rows == 3 * (27 + 6));    // whole passes
  CHECK(work.naive_scored_rows == 8 + 8 + 8 + 5);  // and all scored
  PatchWork both = work;
  both.add(work_of_few);
  CHECK(both.patches == 8);
}

TEST_CASE("marginal δ is the same for one thread and for two, and says what is wrong") {
  ThreadPool pool(2);
  MarginalBench one(tiny_gpt2());
  MarginalBench two(tiny_gpt2(), pool);
  auto a = one.marginal();
  auto b = two.marginal();
  a.begin(one.batch, one.scored);
  b.begin(two.batch, two.scored);
  PatchWork work;
  for (Index l = 0; l < 2; ++l) {
    CHECK(a.first_order(l) == b.first_order(l));
    CHECK(a.integrated(l, 2) == b.integrated(l, 2));
    CHECK(a.exact(l, every_row(a), work) == b.exact(l, every_row(b), work));
  }
  CHECK_THROWS_AS(a.exact(0, std::vector<Index>{16}, work), ShapeError);
  CHECK_THROWS_AS(a.exact(0, std::vector<Index>{-1}, work), ShapeError);
  CHECK_THROWS_AS(a.integrated(0, 0), ProtocolError);
  CHECK_THROWS_AS(a.integrated(0, 1, std::vector<std::uint8_t>(3)), ShapeError);
  CHECK_THROWS_AS(
      (MarginalDelta<MarginalBackend>(one.backend, one.model, {{2, &one.maps[0]}}, one.workspace)),
      ShapeError);
}

TEST_CASE("agreement by hand") {
  const std::vector<double> exact{1, -2, 0.1, -0.1, 4};
  const std::vector<double> estimate{2, -1, -0.1, -0.1, -3};
  const MarginalAgreement found = marginal_agreement(estimate, exact);
  CHECK(found.positions == 5);
  CHECK(found.large == 2);  // above the median 1: −2 and 4
  CHECK(*found.large_same_sign == 0.5);
  CHECK(*found.same_sign == doctest::Approx(3.0 / 5).epsilon(1e-15));
  // Ranks of exact: 4 1 3 2 5; of the estimate: 5 2 3.5 3.5 1: r = −0.5/(√10·√9.5)
  CHECK(*found.spearman == doctest::Approx(-0.5 / std::sqrt(95.0)).epsilon(1e-14));
  CHECK(*found.slope == doctest::Approx((2 + 2 - 0.01 + 0.01 - 12) / 21.02).epsilon(1e-14));
  CHECK(!marginal_agreement({}, {}).same_sign);
}

}  // namespace
