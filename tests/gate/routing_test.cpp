// GatedProbe and routed MLPs: every path on its own rows only, and the same result as by
// definition.
#include <algorithm>
#include <numeric>
#include <vector>

#include "gate/gate_testing.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/gate/any_gate.hpp"
#include "wanamaker/gate/gated_mlp.hpp"
#include "wanamaker/gate/hybrid_mlp.hpp"
#include "wanamaker/gate/references.hpp"
#include "wanamaker/gate/routed_mlp.hpp"
#include "wanamaker/nn/any_mlp.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

/// Rows with everything that a RowContext holds, in a backend's memory (which tests can read).
template <class B>
struct Batch {
  using T = scalar_t<B>;
  std::vector<T> x;
  std::vector<T> residual;
  std::vector<TokenId> tokens;
  std::vector<TokenId> positions;
  std::vector<Index> offsets;
  Index width;

  Batch(Index rows, Index columns, std::uint64_t seed)
      : x(normal_values<T>(rows * columns, seed)),
        residual(normal_values<T>(rows * columns, seed + 1)),
        offsets{0, rows},
        width(columns) {
    for (Index i = 0; i < rows; ++i) {
      tokens.push_back(static_cast<TokenId>(7 * i + 3));
      positions.push_back(static_cast<TokenId>(i));
    }
  }

  Index rows() const { return static_cast<Index>(tokens.size()); }
  const_matrix_view_t<B> view() const { return {x.data(), rows(), width}; }
  RowContext<B> context() const {
    return {4,
            {tokens.data(), rows()},
            {positions.data(), rows()},
            offsets,
            {residual.data(), rows(), width}};
  }

  /// The rows in another order, as one would get them from another batch.
  Batch permuted(const std::vector<Index>& order) const {
    Batch other = *this;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t from = static_cast<std::size_t>(order[i]);
      other.tokens[i] = tokens[from];
      other.positions[i] = positions[from];
      const std::size_t d = static_cast<std::size_t>(width);
      std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(from * d), d,
                  other.x.begin() + static_cast<std::ptrdiff_t>(i * d));
      std::copy_n(residual.begin() + static_cast<std::ptrdiff_t>(from * d), d,
                  other.residual.begin() + static_cast<std::ptrdiff_t>(i * d));
    }
    return other;
  }
};

template <class Policy, class B>
std::vector<scalar_t<B>> run(const Policy& policy, B& backend, const Batch<B>& batch) {
  Workspace<B> workspace(backend);
  std::vector<scalar_t<B>> y(batch.x.size(), scalar_t<B>(-99));
  mlp_forward(policy, backend, batch.view(), batch.context(),
              matrix_view_t<B>(y.data(), batch.rows(), batch.width), workspace);
  return y;
}

const ProbeMlp& context_probe() {
  static const ProbeMlp probe{.factor = 2, .shift = 3, .adds_token = true};
  return probe;
}

ProbeMlp surrogate_probe() {
  return {.factor = -1};
}
ProbeMlp mlp_probe() {
  return {.factor = 2, .shift = 3, .adds_token = true};
}

using GatedProbe = GatedMlp<ColumnGate, ProbeMlp, ProbeMlp>;

/// A router that scores expert e by column e of x.
struct ColumnRouter {
  template <Backend B>
  void score(B&, const_matrix_view_t<B> x, const RowContext<B>&, MatrixView<double> scores,
             Workspace<B>&) const {
    for (Index i = 0; i < scores.rows; ++i) {
      for (Index e = 0; e < scores.cols; ++e) scores(i, e) = static_cast<double>(x(i, e));
    }
  }
  MlpCost cost(Index tokens) const { return {5.0 * static_cast<double>(tokens), 2, 2}; }
};

template <class B>
void check_hard_gate_row_by_row(B&& backend) {
  using Backend = std::remove_reference_t<B>;
  const Batch<Backend> batch(37, 5, 1);
  for (const double threshold : {-0.4, 0.0, 0.9}) {
    const GatedProbe gated = GatedProbe::hard({}, surrogate_probe(), mlp_probe(), threshold);
    const auto y = run(gated, backend, batch);
    const auto linear = run(surrogate_probe(), backend, batch);
    const auto curved = run(mlp_probe(), backend, batch);
    Index routed = 0;
    for (Index i = 0; i < batch.rows(); ++i) {
      const bool surrogate = static_cast<double>(batch.view()(i, 0)) > threshold;
      routed += surrogate ? 1 : 0;
      for (Index j = 0; j < batch.width; ++j) {
        const std::size_t k = static_cast<std::size_t>(i * batch.width + j);
        CHECK(y[k] == (surrogate ? linear[k] : curved[k]));
      }
    }
    CHECK(routed > 0);
    CHECK(routed < batch.rows());
    CHECK(*gated.surrogate().rows_seen == routed);
    CHECK(*gated.mlp().rows_seen == batch.rows() - routed);
    CHECK(*gated.mlp().calls == 1);
    CHECK(gated.surrogate_rows() == routed);
    CHECK(gated.mlp_rows() == batch.rows() - routed);
  }
}

}  // namespace

TEST_CASE("a hard gate runs each path on its own rows and no others") {
  check_hard_gate_row_by_row(ReferenceBackend<double>{});
  check_hard_gate_row_by_row(ReferenceBackend<float>{});
}

TEST_CASE("where memory is not the host's, choices are read back once a layer") {
  FarBackend<float> far;
  check_hard_gate_row_by_row(far);
  CHECK(far.copies_to_host == 3);
}

TEST_CASE("all rows one way: the other path is not even called, and no bit differs") {
  ReferenceBackend<float> backend;
  const Batch<ReferenceBackend<float>> batch(9, 4, 2);
  const GatedProbe none = GatedProbe::hard({}, surrogate_probe(), mlp_probe(), 1e9);
  CHECK(run(none, backend, batch) == run(mlp_probe(), backend, batch));
  CHECK(*none.surrogate().calls == 0);
  CHECK(none.fraction_linear() == 0);
  const GatedProbe all = GatedProbe::hard({}, surrogate_probe(), mlp_probe(), -1e9);
  CHECK(run(all, backend, batch) == run(surrogate_probe(), backend, batch));
  CHECK(*all.mlp().calls == 0);
  CHECK(all.fraction_linear() == 1);
}

TEST_CASE("one row, and no row at all") {
  ReferenceBackend<double> backend;
  const Batch<ReferenceBackend<double>> one(1, 3, 3);
  const GatedProbe gated = GatedProbe::hard({}, surrogate_probe(), mlp_probe(), 1e9);
  CHECK(run(gated, backend, one) == run(mlp_probe(), backend, one));
  const Batch<ReferenceBackend<double>> empty(0, 3, 3);
  CHECK(run(gated, backend, empty).empty());
  CHECK(*gated.mlp().calls == 1);
  CHECK(gated.counts().total() == 1);
}

TEST_CASE("a score that is no number goes to the MLP") {
  ReferenceBackend<double> backend;
  Batch<ReferenceBackend<double>> batch(3, 2, 4);
  batch.x[2] = std::nan("");
  const GatedProbe gated = GatedProbe::hard({}, surrogate_probe(), mlp_probe(), -1e9);
  run(gated, backend, batch);
  CHECK(gated.surrogate_rows() == 2);
  CHECK(gated.mlp_rows() == 1);
}

TEST_CASE("permuting the rows permutes the result") {
  ReferenceBackend<float> backend;
  const Batch<ReferenceBackend<float>> batch(23, 4, 5);
  std::vector<Index> order(23);
  std::iota(order.begin(), order.end(), Index{0});
  RandomStream stream(6);
  shuffle(order, stream);
  const GatedProbe gated = GatedProbe::hard({}, surrogate_probe(), mlp_probe(), 0.1);
  const auto y = run(gated, backend, batch);
  const auto permuted = run(gated, backend, batch.permuted(order));
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      CHECK(permuted[i * 4 + j] == y[static_cast<std::size_t>(order[i]) * 4 + j]);
    }
  }
}

TEST_CASE("a soft gate is the blend of its formula") {
  ReferenceBackend<double> backend;
  Batch<ReferenceBackend<double>> batch(11, 3, 7);
  for (std::size_t i = 0; i < batch.x.size(); i += 3) batch.x[i] = 1 / (1 + std::exp(-batch.x[i]));
  batch.x[0] = 0;
  batch.x[3] = 1;
  const GatedProbe gated = GatedProbe::soft({}, surrogate_probe(), mlp_probe());
  CHECK_FALSE(gated.is_hard());
  const auto y = run(gated, backend, batch);
  const auto linear = run(surrogate_probe(), backend, batch);
  const auto curved = run(mlp_probe(), backend, batch);
  std::vector<double> expected;
  for (std::size_t k = 0; k < y.size(); ++k) {
    const double g = batch.x[k / 3 * 3];
    expected.push_back((1 - g) * curved[k] + g * linear[k]);
  }
  CHECK(all_close(y, expected, 1e-15, 0));
  CHECK(y[1] == curved[1]);
  CHECK(y[4] == linear[4]);
  CHECK(*gated.mlp().rows_seen == 11);
  CHECK(gated.counts().total() == 0);
  CHECK(error_id([] {
          GatedProbe::soft({.probabilities = false}, surrogate_probe(), mlp_probe());
        }) == "gate/not-a-probability");
}

TEST_CASE("outputs at hand are selected and mixed as the policies do") {
  ReferenceBackend<float> backend;
  Batch<ReferenceBackend<float>> batch(14, 3, 8);
  for (std::size_t i = 0; i < batch.x.size(); i += 3) batch.x[i] = 1 / (1 + std::exp(-batch.x[i]));
  const auto linear = run(surrogate_probe(), backend, batch);
  const auto curved = run(mlp_probe(), backend, batch);
  const auto scores = scores_of(ColumnGate{}, backend, batch.view());
  std::vector<float> y(linear.size());
  const MatrixView<float> out(y.data(), 14, 3);
  const ConstVectorView<double> g(scores.data(), 14);
  ops::select_outputs(backend, g, 0.5, view_of(linear, 3), view_of(curved, 3), out);
  CHECK(y == run(GatedProbe::hard({}, surrogate_probe(), mlp_probe(), 0.5), backend, batch));
  ops::mix_outputs(backend, g, view_of(linear, 3), view_of(curved, 3), out);
  CHECK(y == run(GatedProbe::soft({}, surrogate_probe(), mlp_probe()), backend, batch));
}

TEST_CASE("three experts, each row to the largest score, the first of equal ones") {
  ReferenceBackend<double> backend;
  Batch<ReferenceBackend<double>> batch(40, 4, 9);
  for (std::size_t k = 0; k < batch.x.size(); ++k) batch.x[k] = std::round(2 * batch.x[k]);
  batch.x[4] = std::nan("");
  const RoutedMlp routed(ColumnRouter{}, ProbeMlp{.factor = 2}, context_probe(),
                         ProbeMlp{.factor = -3});
  using Routed = std::remove_const_t<decltype(routed)>;
  static_assert(Routed::experts == 3);
  static_assert(Router<ColumnRouter, ReferenceBackend<double>>);
  const auto y = run(routed, backend, batch);
  const std::vector<std::vector<double>> by_expert = {run(ProbeMlp{.factor = 2}, backend, batch),
                                                      run(context_probe(), backend, batch),
                                                      run(ProbeMlp{.factor = -3}, backend, batch)};
  std::vector<Index> counts(3, 0);
  for (std::size_t i = 0; i < 40; ++i) {
    std::size_t best = 0;
    const double* row = batch.x.data() + 4 * i;
    for (std::size_t e = 1; e < 3; ++e) {
      if (row[e] > row[best] || std::isnan(row[best])) best = e;
    }
    ++counts[best];
    for (std::size_t j = 0; j < 4; ++j) {
      const double expected = by_expert[best][4 * i + j];
      CHECK((y[4 * i + j] == expected || (std::isnan(expected) && std::isnan(y[4 * i + j]))));
    }
  }
  for (std::size_t e = 0; e < 3; ++e) CHECK(routed.counts().rows(e) == counts[e]);
  CHECK(*routed.expert<2>().rows_seen == counts[2]);
  CHECK(routed.counts().total() == 40);
  routed.counts().reset();
  CHECK(routed.counts().total() == 0);
  // Router, the dearest expert; bytes and parameters of all.
  CHECK(routed.cost(2).flops == 5 * 2 + 2 * 10 * 2);
  CHECK(routed.cost(2).weight_bytes == 2 + 3 * 7);
}

TEST_CASE("experts that ignore the context are spared its copy") {
  using B = ReferenceBackend<double>;
  static_assert(!needs_row_context<DenseMlp<B, Relu>>);
  static_assert(!needs_row_context<MlpReference<AffineMlp<B>>>);
  static_assert(needs_row_context<MlpReference<ProbeMlp>>);
  static_assert(needs_row_context<AnyMlp<B>>);
}

TEST_CASE("a listener sees every decision, before the paths run") {
  ReferenceBackend<double> backend;
  const Batch<ReferenceBackend<double>> batch(12, 3, 10);
  GatedProbe gated = GatedProbe::hard({}, surrogate_probe(), mlp_probe(), 0);
  std::vector<TokenId> seen;
  Index layer = -1;
  gated.set_listener([&](Index l, ConstVectorView<TokenId> choices) {
    layer = l;
    seen.assign(choices.data, choices.data + choices.size);
  });
  run(gated, backend, batch);
  CHECK(layer == 4);
  REQUIRE(seen.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) CHECK(seen[i] == (batch.x[3 * i] > 0 ? 1 : 0));
}

TEST_CASE("a gated layer nests in another, is erased and borrowed without a change") {
  using B = ReferenceBackend<double>;
  B backend;
  const Batch<B> batch(31, 4, 11);
  const ColumnGate inner_gate{.column = 1};
  const auto inner = [&] {
    return GatedProbe::hard(inner_gate, surrogate_probe(), mlp_probe(), 0);
  };
  const GatedMlp nested =
      GatedMlp<ColumnGate, ProbeMlp, GatedProbe>::hard({}, ProbeMlp{.factor = 5}, inner(), 0.2);
  const auto y = run(nested, backend, batch);
  const auto direct = run(inner(), backend, batch);
  const auto outer = run(ProbeMlp{.factor = 5}, backend, batch);
  for (std::size_t k = 0; k < y.size(); ++k) {
    CHECK(y[k] == (batch.x[k / 4 * 4] > 0.2 ? outer[k] : direct[k]));
  }
  const GatedProbe owner = inner();
  static_assert(check_mlp_policy<MlpReference<GatedProbe>, B>());
  CHECK(run(MlpReference<GatedProbe>(owner), backend, batch) == direct);
  CHECK(run(AnyMlp<B>(MlpReference<GatedProbe>(owner)), backend, batch) == direct);
  const AnyGate<B> any{ColumnGate{.column = 1}};
  static_assert(check_gate<AnyGate<B>, B>());
  CHECK(any.scores_are_probabilities());
  CHECK_FALSE(any.natural_threshold().has_value());
  CHECK(any.get<ColumnGate>() != nullptr);
  CHECK(any.get<GateReference<ColumnGate>>() == nullptr);
  CHECK(scores_of(any, backend, batch.view()) == scores_of(inner_gate, backend, batch.view()));
  CHECK(scores_of(GateReference<AnyGate<B>>(any), backend, batch.view()) ==
        scores_of(inner_gate, backend, batch.view()));
}

TEST_CASE("counts are shared by copies and safe to add from several threads") {
  const RoutingCounts counts(2);
  const RoutingCounts copy = counts;
  ThreadPool pool(4);
  pool.run(100, [&](Index i) { copy.add(static_cast<std::size_t>(i % 2), i); });
  CHECK(counts.rows(0) == 49 * 50);
  CHECK(counts.rows(1) == 50 * 50);
  CHECK(counts.fraction(1) == 2500.0 / 4950.0);
  CHECK(RoutingCounts(3).fraction(1) == 0);
}

TEST_CASE("an affine path and a narrow MLP add up") {
  using B = ReferenceBackend<double>;
  B backend;
  const Batch<B> batch(6, 3, 12);
  const HybridMlp hybrid(ProbeMlp{.factor = 4}, context_probe());
  static_assert(check_mlp_policy<HybridMlp<ProbeMlp, ProbeMlp>, B>());
  const auto affine = run(ProbeMlp{.factor = 4}, backend, batch);
  const auto narrow = run(context_probe(), backend, batch);
  std::vector<double> sum;
  for (std::size_t k = 0; k < affine.size(); ++k) sum.push_back(affine[k] + narrow[k]);
  CHECK(run(hybrid, backend, batch) == sum);
  CHECK(hybrid.cost(3).flops == 4 * 30 + 2 * 30);
  CHECK(hybrid.cost(3).parameters == 6);
}
