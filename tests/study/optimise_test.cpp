// The search for a cheaper model: planted layers and blocks are found, tables of costs decide, and
// what is refitted is what a compound run fits.
#include "wanamaker/study/optimise.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "planted_model.hpp"
#include "wanamaker/study/compound.hpp"
#include "wanamaker/train/initialise.hpp"

namespace {

using namespace wanamaker_test;

// All units stay above 0 for any normalised input, whose length is √12 and little more, so that the
// MLP is affine; its output has no part that is the same everywhere.
DenseMlp<B, Relu> open_relu_mlp(B& backend, PlantedModel& planted) {
  const std::vector<double> up_bias(24, 30.0);
  Linear<B> up = planted.linear(12, 24, 1.0), down = planted.linear(24, 12, 0.2);
  up.bias() = matrix_from_host<double>(backend, up_bias.data(), 1, 24);
  for (Index j = 0; j < 12; ++j) {
    double sum = 0;
    for (Index i = 0; i < 24; ++i) sum += 30.0 * down.weight().view()(i, j);
    down.bias().view()(0, j) = -sum;
  }
  return {std::move(up), std::move(down)};
}

// A model, documents that it wrote itself, and splits of them.
struct OptimiseBench {
  B backend{};
  PlantedModel planted;
  AnyTransformer<B> model;
  TokenizedCorpus corpus;
  Splits splits = some_splits(120);
  Workspace<B> workspace{backend};

  template <class Mlps>
  explicit OptimiseBench(Mlps&& mlps, double context = 1)
      : planted(backend, context),
        model(planted.make(mlps(backend, planted))),
        corpus(sampled_corpus(backend, model, 120, 24)) {}

  OptimiseInput<B> input(OptimiseOptions options, std::vector<Index> ranks = {3}) {
    OptimiseInput<B> in{planted_study(backend, model, corpus, splits, workspace, 24),
                        std::move(options)};
    in.study.options.ranks = std::move(ranks);
    return in;
  }
};

std::vector<AnyMlp<B>> two_open_of_four(B& backend, PlantedModel& planted) {
  std::vector<AnyMlp<B>> mlps = dense_mlps(planted, 4);
  mlps[1] = AnyMlp<B>(open_relu_mlp(backend, planted));
  mlps[3] = AnyMlp<B>(open_relu_mlp(backend, planted));
  return mlps;
}

const OptimisePath& searched_path(const OptimiseResult& result, const std::string& name) {
  for (const OptimisePath& path : result.paths) {
    if (path.name == name) return path;
  }
  FAIL("no path " << name);
  return result.paths.front();
}

std::string changes_of(const OptimisePoint& point) {
  std::string text;
  for (const BlockChange& c : point.changes) text += std::to_string(c.layer) + ":" + c.now + " ";
  return text;
}

const OptimisePoint& point_chosen(const OptimisePath& path) {
  REQUIRE(path.chosen.has_value());
  return path.points[static_cast<std::size_t>(*path.chosen)];
}

// A table in which the named policies have a cost and all else that is needed has `other`.
CostTable costs_by_name(const std::map<std::string, double>& named, double other, Index layers) {
  CostTable table{.kind = CostKind::decode, .batch = 1, .layers = layers, .width = 12};
  for (const char* name :
       {"mlp", "affine", "rank-3", "gate-0.25", "gate-0.5", "gate-0.75", "rest", "block"}) {
    table.parts[name] = other;
  }
  for (const auto& [name, cost] : named) table.parts[name] = cost;
  return table;
}

}  // namespace

TEST_CASE("exactly the layers that were planted affine are replaced") {
  OptimiseBench bench(two_open_of_four);
  // No rank below the full one: a map that loses elsewhere may gain on one small select split.
  const OptimiseResult result = run_optimise(bench.input(
      {.cost = CostKind::parameters, .max_loss_percent = 0.01, .steps_beyond = 2}, {12}));
  const OptimisePath& path = result.paths.front();
  CHECK(path.name == "policies");
  CHECK(path.chosen == Index{1});
  const OptimisePoint& chosen = point_chosen(path);
  CHECK(changes_of(chosen) == "1:affine 3:affine ");
  // λ of 1e-12 of the mean square leaves an error of about that size in the maps.
  CHECK(std::abs(chosen.comparison.delta_percent) < 1e-6);
  CHECK(chosen.verdict == NonInferiorityVerdict::non_inferior);
  // 12·24 + 24 + 24·12 + 12 numbers of an MLP, 12·12 + 12 of a map.
  CHECK(chosen.parameters == bench.model.parameters() - 2 * (612 - 156));
  CHECK(chosen.cost == chosen.parameters);
  CHECK(result.cost == bench.model.parameters());
  CHECK(result.weight_bytes == 8 * bench.model.parameters());
  CHECK(chosen.weight_bytes == 8 * chosen.parameters);
  REQUIRE(path.points.size() == 4);  // and two that lose more
  for (std::size_t i = 0; i < path.points.size(); ++i) {
    const OptimisePoint& point = path.points[i];
    CHECK(point.within == (i < 2));
    CHECK(point.cost < (i == 0 ? result.cost : path.points[i - 1].cost));
    CHECK(point.cost_fraction == doctest::Approx(point.cost / result.cost).epsilon(1e-14));
  }
}

TEST_CASE("where nothing costs less, nothing is chosen") {
  OptimiseBench bench(two_open_of_four);
  OptimiseOptions options{.max_loss_percent = 5};
  options.costs = costs_by_name({{"block", 0}, {"mlp", 1}}, 2, 4);
  const OptimiseResult result = run_optimise(bench.input(options));
  REQUIRE(result.paths.size() == 4);
  for (const OptimisePath& path : result.paths) {
    CHECK(path.points.empty());
    CHECK_FALSE(path.chosen.has_value());
  }
}

TEST_CASE("the table of costs decides which policy is taken") {
  OptimiseBench bench(two_open_of_four);
  OptimiseOptions options{.max_loss_percent = 400, .shares = {0.5}};
  options.costs = costs_by_name({{"mlp", 10}, {"gate-0.5", 4}, {"rest", 3}, {"block", 12}}, 11, 4);
  const OptimiseResult result = run_optimise(bench.input(options));
  const OptimisePath& path = result.paths.front();
  REQUIRE(path.points.size() == 4);  // one gate for each layer; maps are dearer
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(path.points[i].cost == 3 + 4 * 12 - 6 * static_cast<double>(i + 1));
    for (const BlockChange& change : path.points[i].changes) {
      CHECK(change.now == "gate-0.5");
      // Half of the select split's positions, of which there are 690 in 30 documents: documents
      // whose tokens stick together leave half of them with a standard deviation of 0.09.
      CHECK(std::abs(*change.routed - 0.5) < 0.3);
    }
  }
  CHECK(searched_path(result, "low-rank").points.empty());
}

TEST_CASE("the same table of costs gives the same result") {
  OptimiseBench bench(two_open_of_four);
  OptimiseOptions options{.max_loss_percent = 3, .shares = {0.5}};
  options.costs = costs_by_name({{"mlp", 10}, {"affine", 2}, {"gate-0.5", 6}}, 1, 4);
  const OptimiseResult first = run_optimise(bench.input(options));
  const OptimiseResult second = run_optimise(bench.input(options));
  for (std::size_t p = 0; p < first.paths.size(); ++p) {
    REQUIRE(first.paths[p].points.size() == second.paths[p].points.size());
    for (std::size_t i = 0; i < first.paths[p].points.size(); ++i) {
      CHECK(first.paths[p].points[i].nll_sum == second.paths[p].points[i].nll_sum);
      CHECK(first.paths[p].points[i].move == second.paths[p].points[i].move);
    }
  }
}

TEST_CASE("with all layers replaced, maps are those that a compound run fits in sequence") {
  OptimiseBench bench([](B&, PlantedModel& planted) { return dense_mlps(planted, 3); });
  const OptimiseResult result =
      run_optimise(bench.input({.cost = CostKind::parameters, .max_loss_percent = 1e6}, {12}));
  const OptimisePoint& last = result.paths.front().points.back();
  CHECK(changes_of(last) == "0:affine 1:affine 2:affine ");
  const StudyInput<B> study = bench.input({}).study;
  const CompoundResult compound =
      run_compound(study, {.greedy_linear = false, .greedy_gate = false});
  for (const CompoundVariant& variant : compound.variants) {
    if (variant.name != "sequential-linear") continue;
    CHECK(last.select_nll_sum == variant.select_nll_sum);
    CHECK(last.nll_sum == variant.nll_sum);
    CHECK(last.comparison.delta_percent == variant.comparison.delta_percent);
  }
}

TEST_CASE("a block that does nothing is the one to leave out") {
  OptimiseBench bench(
      [](B&, PlantedModel& planted) {
        std::vector<AnyMlp<B>> mlps = dense_mlps(planted, 4);
        mlps[2] = AnyMlp<B>(ZeroMlp<B>{});
        return mlps;
      },
      0);  // attention writes nothing
  const OptimiseResult result =
      run_optimise(bench.input({.cost = CostKind::parameters, .max_loss_percent = 1e-6}));
  const OptimisePath& dropped = searched_path(result, "drop-blocks");
  CHECK(changes_of(point_chosen(dropped)) == "2:left-out ");
  CHECK(point_chosen(dropped).comparison.delta_nats == 0);
  const OptimisePath& linear = searched_path(result, "linear-blocks");
  CHECK(changes_of(linear.points.front()) == "2:linear ");
  CHECK(std::abs(linear.points.front().comparison.delta_percent) < 1e-6);
}

TEST_CASE("a cache of the blocks that run goes on as if all were read at once") {
  OptimiseBench bench([](B&, PlantedModel& planted) { return dense_mlps(planted, 3); });
  B& backend = bench.backend;
  BlockEdits<B> edits;
  const AnyMlp<B> map(AffineMlp<B>(bench.planted.linear(12, 12, 0.2)));
  edits.leave_out(0, &map);
  edits.leave_out(2);
  CHECK(edits.runs_before(3) == 1);
  const std::vector<TokenId> ids{3, 1, 4, 1, 5, 9};
  const auto stream_of = [&](const PackedBatch<B>& batch) {
    const matrix_t<B> stream = make_matrix(backend, batch.rows(), 12);
    const MatrixView<double> view{const_cast<double*>(stream.view().data), batch.rows(), 12};
    bench.model.embed(backend, batch, view);
    forward_blocks(backend, bench.model, edits, 0, 3, batch, view, bench.workspace);
    const double* last = view.row(batch.rows() - 1);
    return std::vector<double>(last, last + 12);
  };
  ModelConfig config = bench.model.config();
  config.layers = 1;
  KeyValueCache<B> cache(backend, config, 1, 6);
  stream_of(PackedBatch<B>(backend, std::span(ids).first(4), cache));
  stream_of(PackedBatch<B>(backend, std::span(ids).subspan(4, 1), cache));
  const auto in_steps = stream_of(PackedBatch<B>(backend, std::span(ids).subspan(5), cache));
  // Sums of 12 and 24 products in another order.
  CHECK(all_close(in_steps, stream_of(PackedBatch<B>(backend, ids)), 1e-12, 1e-12));
}

TEST_CASE("a table of costs has every policy, measured or counted") {
  OptimiseBench bench([](B&, PlantedModel& planted) { return dense_mlps(planted, 2); });
  const std::vector<LayerPolicy> policies{
      {PolicyKind::affine, 0, 0}, {PolicyKind::low_rank, 3, 0}, {PolicyKind::gate, 0, 0.25}};
  for (const CostKind kind : {CostKind::prefill, CostKind::decode}) {
    const CostTable table =
        cost_table(bench.backend, bench.model, bench.workspace, kind, 2, policies, 1);
    for (const char* part : {"rest", "block", "mlp", "affine", "rank-3", "gate-0.25"}) {
      CHECK(std::isfinite(table.at(part)));
      CHECK(table.at(part) >= 0);
    }
    CHECK(table.tokens == (kind == CostKind::prefill ? 32 : 16));
    CHECK_THROWS_AS(table.at("rank-4"), ProtocolError);
  }
  const CostTable counted =
      cost_table(bench.backend, bench.model, bench.workspace, CostKind::parameters, 1, policies);
  CHECK(counted.at("mlp") == 612);
  CHECK(counted.at("affine") == 156);
  CHECK(counted.at("rank-3") == 2 * 3 * 12 + 12);
  CHECK(counted.at("gate-0.25") == 13 + 156 + 612);
  CHECK(counted.at("rest") + 2 * counted.at("block") == bench.model.parameters());
  OptimiseOptions options{.costs = counted};
  CHECK_THROWS_AS(run_optimise(bench.input(options)), ProtocolError);
}

TEST_CASE("the chosen model heals, and is written as it computes") {
  B backend;
  const ModelConfig config =
      model_config({.vocabulary = 40, .width = 12, .layers = 3, .heads = 2, .positions = 32});
  AnyTransformer<B> model = make_model(backend, config);
  initialise(backend, model, 3);
  const TokenizedCorpus corpus = random_corpus(160, 24, 40), other = random_corpus(6, 20, 40);
  Splits splits = some_splits(120);
  for (Index d = 120; d < 160; ++d) splits.train.documents.push_back(d);
  Workspace<B> workspace(backend);
  OptimiseInput<B> in{planted_study(backend, model, corpus, splits, workspace, 24)};
  in.study.options.ranks = {3};
  in.options.max_loss_percent = 50;
  in.options.shares = {0.5};
  in.options.costs =
      costs_by_name({{"mlp", 10}, {"affine", 9.5}, {"rank-3", 9}, {"gate-0.5", 5}}, 20, 3);
  in.options.heal = {.tokens = 4 * 12 * 30, .window = 12, .sequences = 4, .rate = 3e-3};
  in.other = &other;
  const TemporaryFolder folder;
  double difference = -1;
  in.on_model = [&](AnyTransformer<B>& own) {
    const std::vector<TokenId> ids = corpus.documents[2].ids;
    difference = export_optimised(backend, own, ids, folder.path(), workspace);
    CHECK(has_gated_layers(folder.path()));
    AnyTransformer<B> loaded = load_model(backend, folder.path());
    install_gates(backend, loaded, read_gated_layers(folder.path()));
    const auto losses =
        sequence_losses(backend, loaded, std::span<const TokenId>(ids), {}, workspace);
    // Files hold doubles; maps act through GELU, exact but for rounding.
    CHECK(all_close(losses, read_check_vectors(folder.path()).nats, 1e-9, 1e-9));
  };
  const OptimiseResult result = run_optimise(in);
  REQUIRE(result.paths.front().chosen.has_value());
  CHECK(difference >= 0);
  CHECK(difference < 1e-9);
  REQUIRE(result.healed.has_value());
  CHECK(result.healed->steps == 30);
  CHECK(result.healed->tokens == 4 * 12 * 30);
  CHECK(result.healed->last_loss < result.healed->first_loss);
  CHECK(result.healed->other.has_value());
  CHECK(result.paths.front().other->documents == 6);
  CHECK(result.speeds.size() >= 2);
}

TEST_CASE("impossible settings of a search are refused") {
  OptimiseBench bench([](B&, PlantedModel& planted) { return dense_mlps(planted, 1); });
  const auto id_of = [&](OptimiseOptions options) -> std::string {
    try {
      run_optimise(bench.input(options));
    } catch (const ProtocolError& error) {
      return std::string(error.id());
    }
    return "";
  };
  CHECK(id_of({.batch = 0}) == "optimise/options");
  CHECK(id_of({.max_loss_percent = -1}) == "optimise/options");
  CHECK(id_of({.shares = {1.0}}) == "optimise/options");
  CHECK(id_of({.heal = {.tokens = 10}}) == "optimise/options");
  OptimiseOptions options;
  options.costs = costs_by_name({}, 1, 2);
  CHECK(id_of(options) == "optimise/other-costs");
  options.costs = costs_by_name({}, 1, 1);
  options.costs->parts.erase("affine");
  CHECK(id_of(options) == "optimise/no-cost");
}
