// Marginal δ over a report split: against the sweep's joint losses, sums over groups, the test of
// the writers by hand, and what does not depend on threads.
#include "wanamaker/study/marginal.hpp"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planted_model.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/report/marginal_map_svg.hpp"
#include "wanamaker/report/position_json.hpp"
#include "wanamaker/report/routing_reading.hpp"
#include "wanamaker/study/sweep.hpp"

namespace {

using namespace wanamaker_test;

// Two open MLPs of which the second is affine, so that its linear map is itself.
struct MarginalStudy {
  B backend;
  PlantedModel planted;
  AnyTransformer<B> model;
  TokenizedCorpus corpus;
  Splits splits;
  Workspace<B> workspace;

  explicit MarginalStudy(ExecutorRef executor = {}, Index documents = 32)
      : backend(executor),
        planted(backend),
        model(planted.make(mlps(planted))),
        corpus(random_corpus(documents, 30, PlantedModel::vocabulary)),
        splits(some_splits(documents)),
        workspace(backend) {}

  static std::vector<AnyMlp<B>> mlps(PlantedModel& planted) {
    std::vector<AnyMlp<B>> list = dense_mlps(planted, 1);
    list.emplace_back(AffineMlp<B>(planted.linear(12, 12, 0.5)));
    return list;
  }
  StudyInput<B> input(Index window = 30) {
    return planted_study(backend, model, corpus, splits, workspace, window);
  }
};

TEST_CASE("marginal δ: joint sums are the sweep's, groups add up, an affine layer has none") {
  MarginalStudy bench;
  const StudyInput<B> input = bench.input();
  const MarginalResult result = run_marginal(
      input, {.exact_positions = 40, .integrated_steps = 8, .map_positions = 35, .shown = 3});
  const SweepResult sweep = run_sweep(input);
  REQUIRE(result.layers.size() == 2);
  for (std::size_t l = 0; l < 2; ++l) {
    const MarginalLayer& layer = result.layers[l];
    const VariantResult& ridge = variant(sweep.layers[l], "ridge");
    CHECK(std::abs(layer.joint_sum - (ridge.nll_sum - sweep.baseline.nll_sum)) < 1e-9);
    CHECK(layer.writer.linear_percent == ridge.comparison.delta_percent);
    Index positions = 0;
    double sum = 0;
    for (const MarginalGroup& group : layer.groups) {
      positions += group.positions;
      sum += group.delta_sum;
    }
    CHECK(positions == sweep.baseline.tokens);
    CHECK(std::abs(sum - layer.first_order_sum) < 1e-9);
    CHECK(layer.groups[0].positions == 8);  // one window for each report document
    CHECK(layer.patches.size() == 40);
    CHECK(layer.agreement.positions == 40);
    CHECK(layer.map.size() == 35);
    CHECK(layer.tokens.size() == 3);
    CHECK(!layer.statement.empty());
  }
  const MarginalLayer& open = result.layers[0];
  CHECK(*open.agreement.spearman > 0.5);
  CHECK(*open.integrated_agreement->spearman > 0.5);
  // The midpoint rule's error falls with the square of its steps; one step is first order at ½.
  CHECK(std::abs(*open.integrated_sum - open.joint_sum) <
        0.2 * std::abs(open.first_order_sum - open.joint_sum));
  for (const PatchedPosition& patch : result.layers[1].patches) {
    CHECK(std::abs(patch.exact) < 1e-6);
    CHECK(std::abs(patch.first_order) < 1e-6);
  }
  CHECK(result.map_positions[0].place == 0);
  CHECK(result.map_positions[29].place == 0);
  CHECK(result.map_positions[29].document == 1);
  CHECK(result.patch_cost.patches == 80);
  // 30 rows through one block above layer 0, none above layer 1; two blocks in whole passes.
  CHECK(result.patch_cost.block_rows_per_patch == 15);
  CHECK(result.patch_cost.naive_block_rows_per_patch == 60);
}

TEST_CASE("marginal δ does not depend on threads, nor on a sweep that was stored") {
  MarginalStudy bench;
  const MarginalOptions options{.exact_positions = 10, .map_positions = 5};
  std::vector<LayerResult> kept;
  std::vector<GatesOfDelta> gates;
  const MarginalCheckpoint store{
      .costs = {.load = {}, .save = [&](const LayerResult& layer) { kept.push_back(layer); }},
      .gates = {.load = {}, .save = [&](const GatesOfDelta& layer) { gates.push_back(layer); }}};
  const std::string json = json_of(run_marginal(bench.input(20), options, store)).dump();
  CHECK(json.find("nan") == std::string::npos);
  CHECK(json.find("\"command\":\"marginal\"") != std::string::npos);
  CHECK(kept.size() == 2);
  const auto from = [](const auto& parts) {
    return [&parts](Index layer) { return std::optional(parts[static_cast<std::size_t>(layer)]); };
  };
  // What is stored of gates is read back from JSON, as a run that goes on does.
  for (GatesOfDelta& own : gates) own = gates_of_delta_from_json(Json(json_of(own)), "kept");
  const auto run_again = [&](const MarginalCheckpoint& load) {
    return json_of(run_marginal(bench.input(20), options, load)).dump();
  };
  CHECK(run_again({.costs = {.load = from(kept), .save = {}}}) == json);
  CHECK(run_again({.costs = {}, .gates = {.load = from(gates), .save = {}}}) == json);
  ThreadPool pool(2);
  MarginalStudy other(pool);
  CHECK(json_of(run_marginal(other.input(20), options)).dump() == json);
}

// δ of a gate's labels to first order against one exact patch for each scored position, and the
// labels' share: what the layer's gates learned from.
TEST_CASE("marginal δ at a layer's site is that of exact patches where the change is small") {
  MarginalStudy bench;
  const StudyInput<B> input = bench.input(15);
  LayerStudy<B> study(input, {});
  study.walk_to(0);
  const SweepContext<B> context = study.context();
  const AnyMlp<B>& own = bench.model.mlp(0);
  // The MLP with its output a little larger: first order is then exact up to the square of that.
  constexpr double more = 1e-6;
  const auto larger = [&](const MlpSite<B>& site) {
    matrix_t<B> y = make_matrix(bench.backend, site.mlp_output.rows, site.mlp_output.cols);
    own.forward(bench.backend, site.mlp_input, site.rows, y.view(), bench.workspace);
    for (Index i = 0; i < y.size(); ++i) y.data()[i] *= more;
    return y;
  };
  Index compared = 0;
  context.gate->pass->visit([&](const MlpSite<B>& site) {
    if (site.batch != 0) return;
    const matrix_t<B> change = larger(site);
    const Index width = change.cols();
    matrix_t<B> stream = make_matrix(bench.backend, change.rows(), width);
    ops::add<B>(bench.backend, site.carry, site.mlp_output, stream.view());
    const std::vector<double> first =
        first_order_from<B>(bench.backend, bench.model, 0, site.packed, stream.view(),
                            change.view(), site.tokens.scored, bench.workspace);
    const auto loss_at = [&](Index row, double share) {
      const typename Workspace<B>::Frame frame(bench.workspace);
      const MatrixView<double> moved = bench.workspace.matrix(change.rows(), width);
      for (Index i = 0; i < change.size(); ++i) moved.data[i] = stream.data()[i];
      for (Index j = 0; j < width; ++j)
        moved.row(row)[j] += share * change.view().row(row)[j] / more;
      bench.model.forward_from(bench.backend, 1, site.packed, moved, bench.workspace);
      double sum = 0;
      for (const double loss :
           bench.model.token_losses(bench.backend, moved, site.tokens.scored, bench.workspace)) {
        sum += loss;
      }
      return sum;
    };
    for (Index row = 0; row < change.rows(); row += 7) {
      constexpr double h = 1e-4;
      const double slope = (loss_at(row, h) - loss_at(row, -h)) / (2 * h);
      CHECK(std::abs(first[static_cast<std::size_t>(row)] / more - slope) < 1e-5);
      ++compared;
    }
  });
  CHECK(compared > 10);
}

TEST_CASE(
    "gates by joint and by marginal δ: an affine layer has no costs, an open one equal shares") {
  MarginalStudy bench;
  const MarginalResult result = run_marginal(bench.input(), {.exact_positions = 1});
  const GatesOfDelta& open = result.layers[0].gates;
  const GatesOfDelta& affine = result.layers[1].gates;
  CHECK(open.positions == 8 * 29);
  CHECK(open.layer == 0);
  CHECK(*open.spearman > 0);
  CHECK(std::abs(open.joint.fraction_linear - open.marginal.fraction_linear) < 0.15);
  CHECK(open.joint.comparison.delta_percent == result.layers[0].writer.logistic_percent);
  CHECK(open.joint.comparison.delta_nats + open.difference.delta_nats ==
        doctest::Approx(open.marginal.comparison.delta_nats).epsilon(1e-9));
  CHECK(std::abs(affine.joint.comparison.delta_nats) < 1e-9);
  CHECK(std::abs(affine.marginal.comparison.delta_nats) < 1e-9);
}

TEST_CASE("the map has a cell for every layer and position, with what it says") {
  MarginalResult result;
  result.model.name = "planted";
  result.map_positions = {{0, 0, 1}, {0, 1, 2}, {1, 0, 1}};
  result.layers.resize(2);
  result.layers[0].map = {1, -2, 0.0005};
  result.layers[1] = {.layer = 7, .map = {0, 0.5, -1e-9}};
  const std::vector<std::string> spellings{"", "the", " <b"};
  const std::string svg = marginal_map_svg(result, spellings);
  const auto count = [&](const std::string& part) {
    int found = 0;
    for (std::size_t at = svg.find(part); at != svg.npos; at = svg.find(part, at + 1)) ++found;
    return found;
  };
  CHECK(count("<rect") == 6);
  CHECK(count("class=\"begin\"") == 2);
  CHECK(count("class=\"loss\" fill-opacity=\"1\"") == 1);
  CHECK(count("class=\"gain\" fill-opacity=\"1\"") == 1);
  CHECK(count("layer 7") == 3);
  CHECK(count("&lt;b") > 0);
  CHECK(count("<b") == 0);
  result.map_positions.clear();
  CHECK(marginal_map_svg(result, spellings).empty());
}

WriterFigures writer_layer(bool writes, bool catastrophic) {
  return {.first_norm_ratio = writes ? 50.0 : 1.0,
          .is_writer = writes,
          .is_catastrophic = catastrophic,
          .linear_percent = catastrophic ? 500.0 : 2.0,
          .first_position_percent = 3,
          .norm_rule_percent = 1,
          .logistic_percent = 2};
}

TEST_CASE("are catastrophic layers those that write? by hand") {
  std::vector<WriterFigures> layers(10, writer_layer(false, false));
  layers.push_back(writer_layer(true, true));
  layers.push_back(writer_layer(true, true));
  const WriterTest holds = test_writers(layers, 100);
  CHECK(holds.both == 2);
  // 1 of the 66 pairs of 12 layers.
  CHECK(holds.p_value == doctest::Approx(1.0 / 66).epsilon(1e-12));
  CHECK(holds.verdict == WriterVerdict::holds);
  CHECK(holds.norm_rule_better == 2);
  CHECK(holds.saved_by_first == 2);
  CHECK(*holds.spearman == doctest::Approx(1).epsilon(1e-12));

  layers[10] = writer_layer(true, false);
  layers[11] = writer_layer(true, false);
  layers[0] = writer_layer(false, true);
  layers[1] = writer_layer(false, true);
  const WriterTest apart = test_writers(layers, 100);
  CHECK(apart.p_value == doctest::Approx(1).epsilon(1e-12));
  CHECK(apart.least_p_value == doctest::Approx(1.0 / 66).epsilon(1e-12));
  CHECK(apart.verdict == WriterVerdict::does_not_hold);

  const std::vector<WriterFigures> two{writer_layer(true, true), writer_layer(false, false)};
  CHECK(test_writers(two, 100).p_value == doctest::Approx(0.5).epsilon(1e-12));
  CHECK(test_writers(two, 100).verdict == WriterVerdict::cannot_be_decided);
  CHECK(test_writers({}, 100).verdict == WriterVerdict::cannot_be_decided);
  // Hypergeometric by hand: at least 2 of 3 drawn from 7 with 3 marked: (3·4 + 1)/35.
  CHECK(overlap_p_value(7, 3, 3, 2) == doctest::Approx(13.0 / 35).epsilon(1e-12));
}

}  // namespace
