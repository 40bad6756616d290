// Models from scratch at equal budgets: which are trained, that pairs are pairs, that an arm like
// the control differs by nothing, and that threads and interruptions change no byte.
#include "wanamaker/study/budgets.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planted_model.hpp"
#include "report/json_schema.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/report/budget_report.hpp"

namespace {

using namespace wanamaker_test;
namespace fs = std::filesystem;

constexpr TokenId budget_vocabulary = 20;

ModelConfig budget_config() {
  return model_config({.family = Family::gpt_neox,
                       .vocabulary = budget_vocabulary,
                       .width = 8,
                       .layers = 4,
                       .heads = 2,
                       .positions = 16,
                       .hidden = 32});
}

/// Documents in which a token is mostly followed by its successor.
TokenizedCorpus budget_corpus() {
  TokenizedCorpus corpus;
  RandomStream stream(31);
  for (Index d = 0; d < 12; ++d) {
    TokenizedDocument document{.name = "document " + std::to_string(d), .index = d};
    TokenId last = 0;
    for (int i = 0; i < 20; ++i) {
      const bool follows = stream.below(4) != 0;
      last = follows ? (last + 1) % budget_vocabulary
                     : static_cast<TokenId>(stream.below(budget_vocabulary));
      document.ids.push_back(last);
    }
    corpus.documents.push_back(std::move(document));
  }
  return corpus;
}

BudgetOptions budget_options() {
  BudgetOptions options{.seeds = {4, 5}};
  options.training.window = 8;
  options.training.sequences = 2;
  options.training.training = {
      .steps = 6, .schedule = {.peak = 1e-2, .warm_up = 1, .steps = 6}, .checkpoint_every = 2};
  options.training.sparsity = {.weight = 1e-3, .warm_up = 2};
  options.intervals.resamples = 100;
  return options;
}

/// Texts and everything else that an experiment needs.
struct BudgetBench {
  explicit BudgetBench(ExecutorRef executor = {}) : backend(executor), workspace(backend) {
    for (Index d = 0; d < 12; ++d) {
      (d < 6   ? splits.train.documents
       : d < 8 ? splits.fit.documents
               : splits.report.documents)
          .push_back(d);
    }
  }

  BudgetInput<B> input() {
    return {.backend = backend,
            .config = config,
            .corpus = corpus,
            .splits = splits,
            .workspace = workspace,
            .rule = {.window = 16, .stride = 16},
            .options = budget_options(),
            .executor = backend.executor()};
  }

  B backend;
  ModelConfig config = budget_config();
  TokenizedCorpus corpus = budget_corpus();
  Splits splits{};
  Workspace<B> workspace;
};

BudgetPlan small_plan(const ModelConfig& config) {
  return budgets_plan(config,
                      {{"same", "all:dense"},
                       {"thin-middle", "ends:dense:?,middle:dense:16"},
                       {"routed-middle", "middle:gated:?"},
                       {"less", "middle:zero"}},
                      budget_options());
}

const ArmRun& budget_run(const BudgetResult& result, const std::string& arm, std::uint64_t seed) {
  return *std::find_if(result.runs.begin(), result.runs.end(),
                       [&](const ArmRun& run) { return run.arm == arm && run.seed == seed; });
}

std::vector<std::string> names_of(const BudgetPlan& plan) {
  std::vector<std::string> names;
  for (const BudgetArm& arm : plan.arms) names.push_back(arm.name);
  return names;
}

/// What docs/results.schema.json has against the result's file.
std::string schema_fault(const BudgetResult& result) {
  const std::string schema = std::string(WANAMAKER_SOURCE_DIR) + "/docs/results.schema.json";
  return JsonSchema(parse_json_file(schema))
      .fault(parse_json(json_of(result).dump(), result.command));
}

/// A run of three layers whose linearising costs so many per cent each.
ArmRun planted_costs(const std::string& arm, std::uint64_t seed, const std::vector<double>& costs) {
  const auto point = [](std::string stage, double nll) {
    FinetunePoint result{.stage = std::move(stage)};
    result.texts = {{unseen_text, {4, 6}, {0.4 * nll, 0.6 * nll}, {}}};
    return result;
  };
  ArmRun run{arm, seed, {point("trained", 20)}};
  for (std::size_t l = 0; l < costs.size(); ++l) {
    run.points.push_back(
        point("linear-" + std::to_string(l), 20 + 10 * std::log1p(costs[l] / 100)));
  }
  return run;
}

}  // namespace

// d = 8, h = 32, four layers: tests/train/planned_model_test.cpp has the sizes by hand.
TEST_CASE("plans are solved for both budgets, by one arm where one serves both") {
  const ModelConfig config = budget_config();
  const BudgetPlan plan = small_plan(config);
  CHECK(names_of(plan) == std::vector<std::string>{"uniform", "same", "thin-middle",
                                                   "routed-middle-parameters",
                                                   "routed-middle-flops", "less"});
  const std::vector<BudgetKind> both{BudgetKind::parameters, BudgetKind::flops};
  CHECK(plan.arms[1].budgets == both);
  CHECK(plan.arms[2].budgets == both);
  CHECK(text_of(plan.arms[2].plan) == "0:dense:48,1-2:dense:16,3:dense:48");
  CHECK(plan.arms[3].budgets == std::vector<BudgetKind>{BudgetKind::parameters});
  CHECK(text_of(plan.arms[3].plan) == "0:dense:32,1-2:gated:27,3:dense:32");
  CHECK(plan.arms[4].budgets == std::vector<BudgetKind>{BudgetKind::flops});
  CHECK(text_of(plan.arms[4].plan) == "0:dense:32,1-2:gated:59,3:dense:32");
  CHECK(plan.arms[5].budgets.empty());
  // Every way that has a name meets its budgets within the tolerance.
  for (const BudgetArm& arm : budgets_plan(config, usual_budget_plans(config), {}).arms) {
    CAPTURE(arm.name);
    const PlannedCost target = planned_cost(config, dense_plan(config), 0.5);
    const PlannedCost cost = planned_cost(config, arm.plan, 0.5);
    for (const BudgetKind kind : arm.budgets) {
      CHECK(std::abs(cost.of(kind) / target.of(kind) - 1) < 0.02);
    }
    CHECK(arm.budgets.empty() == (arm.name == "uniform"));
  }
  for (const std::string name : {"uniform", "a/b", ""}) {
    CHECK_THROWS_AS(budgets_plan(config, {{name, "all:dense"}}, {}), DataError);
  }
  CHECK_THROWS_AS(twins_plan(model_config(
                      {.vocabulary = 9, .width = 8, .layers = 1, .heads = 1, .positions = 8})),
                  ProtocolError);
}

TEST_CASE("an arm like the control differs by nothing, others by the pairs of their documents") {
  BudgetBench bench;
  const BudgetInput<B> input = bench.input();
  const BudgetResult result = run_budgets(input, small_plan(bench.config));
  const std::string headline = budgets_headline(result);
  CHECK(headline.starts_with("same at equal parameters and FLOPs: undecided against uniform, "));
  CHECK(result.runs.size() == 12);
  CHECK(schema_fault(result) == "");
  for (const FinetuneComparison& c : result.comparisons) {
    CAPTURE(text_of(c.contrast.treated));
    std::vector<double> expected;
    for (const std::uint64_t seed : {std::uint64_t{4}, std::uint64_t{5}}) {
      const ArmRun& own = budget_run(result, c.contrast.treated.arm, seed);
      const ArmRun& control = budget_run(result, "uniform", seed);
      const TextLosses& a = own.points.back().texts.front();
      const TextLosses& b = control.points.back().texts.front();
      CHECK(own.points.back().stage == c.contrast.treated.stage);
      CHECK(a.tokens == b.tokens);
      expected.push_back((a.nll_sum() - b.nll_sum()) / static_cast<double>(a.token_sum()));
    }
    CHECK(all_close(c.delta_nats, expected, 0, 1e-12));
    if (c.contrast.treated.arm == "same") {
      CHECK(c.delta_nats == std::vector<double>{0, 0});
      CHECK(c.documents.delta_percent == 0);
      CHECK(c.flops_ratio == 1);
    } else {
      CHECK(c.delta_nats.front() != 0);
    }
  }
  const ArmRun& uniform = budget_run(result, "uniform", 4);
  CHECK(uniform.points.front().tokens == 6 * 2 * 8);
  CHECK(uniform.points.front().flops_fraction_total == 1);
  CHECK(uniform.points.front().losses != budget_run(result, "uniform", 5).points.front().losses);
  CHECK(uniform.points.front().losses == budget_run(result, "same", 4).points.front().losses);
  CHECK(budgets_svg(result).find("routed-middle-flops") != std::string::npos);
  CHECK(budget_arms_table(result).csv().find("1-2:gated:27") != std::string::npos);
}

TEST_CASE("learned routing is evaluated hard, at the FLOPs that it really takes") {
  BudgetBench bench;
  BudgetInput<B> input = bench.input();
  std::vector<std::string> seen;
  input.on_model = [&](const BudgetArm& arm, std::uint64_t seed, AnyTransformer<B>& model) {
    seen.push_back(arm.name + std::to_string(seed));
    CHECK(model.config().parallel_residual);
  };
  const BudgetPlan plan =
      budgets_plan(bench.config, {{"routed", "middle:gated:27"}}, input.options);
  const BudgetResult result = run_budgets(input, plan);
  CHECK(seen == std::vector<std::string>{"uniform4", "routed4", "uniform5", "routed5"});
  const ArmRun& run = budget_run(result, "routed", 4);
  REQUIRE(run.points.size() == 2);
  const FinetunePoint &soft = run.points[0], &hard = run.points[1];
  CHECK(soft.stage == "soft");
  CHECK(hard.stage == "hard");
  CHECK(soft.losses.size() == 6);
  CHECK(hard.losses.empty());
  CHECK(soft.texts.front().nll != hard.texts.front().nll);
  REQUIRE(hard.layers.size() == 2);
  // By hand, FLOPs of a token: dense 32·s, map 128, gate 16; uniform 4·1024.
  double flops = 2 * 1024;
  bool is_mixed = false;
  for (const LayerState& state : hard.layers) {
    const double f = state.fraction_linear.value();
    // Four documents with 15 + 3 scored positions each.
    CHECK(std::abs(72 * f - std::round(72 * f)) < 1e-9);
    is_mixed = is_mixed || (f > 0 && f < 1);
    flops += 16 + f * 128 + (1 - f) * 27 * 32;
  }
  CHECK(is_mixed);
  CHECK(budgets_headline(result).find("as it routed, its MLPs took ") != std::string::npos);
  CHECK(std::abs(hard.flops_fraction_mlp - flops / 4096) < 1e-12);
  CHECK(std::abs(soft.flops_fraction_mlp - (2 * 1024 + 2 * (16 + 128 + 27 * 32)) / 4096.0) < 1e-12);
}

TEST_CASE("a gate that routes less than was expected is beyond its budget of FLOPs") {
  BudgetBench bench;
  BudgetInput<B> input = bench.input();
  input.options.routed = 0.9;
  const BudgetPlan plan = budgets_plan(bench.config, {{"routed", "middle:gated:?"}}, input.options);
  REQUIRE(plan.arms.size() == 3);
  const BudgetResult result = run_budgets(input, plan);
  REQUIRE(result.comparisons.size() == 2);
  CHECK(result.comparisons[0].contrast.kind == ControlKind::equal_parameters);
  CHECK(result.comparisons[1].contrast.kind == ControlKind::other_budget);
  CHECK(budget_run(result, "routed-flops", 4).points.back().flops_fraction_mlp > 1.01);
  input.options.routed = 1;
  CHECK_THROWS_AS(budgets_plan(bench.config, {{"routed", "middle:gated:?"}}, input.options),
                  DataError);
}

TEST_CASE("budgets are the same for one thread and two, and after lost parts and a stop") {
  const auto json_with = [](ExecutorRef executor, const FinetuneCheckpoint& stored,
                            const std::optional<fs::path>& folder = {}, Index stop_at = -1) {
    BudgetBench bench(executor);
    BudgetInput<B> input = bench.input();
    input.checkpoints = folder;
    input.progress = {[stop_at](std::string_view, Index done, Index) { return done != stop_at; }};
    return json_of(run_budgets(input, small_plan(bench.config), stored)).dump();
  };
  std::map<std::string, std::string> parts;
  const auto part_of = [](const std::string& arm, std::uint64_t seed) {
    return arm + " " + std::to_string(seed);
  };
  const FinetuneCheckpoint stored{
      .load = [&](const ArmKey& key) -> std::optional<ArmRun> {
        const auto part = parts.find(part_of(key.arm, key.seed));
        if (part == parts.end()) return std::nullopt;
        return arm_run_from_json(parse_json(part->second, "part"), "part");
      },
      .save = [&](const ArmRun& run) { parts[part_of(run.arm, run.seed)] = json_of(run).dump(); }};
  const std::string once = json_with({}, {});
  const TemporaryFolder folder;
  // The fifth model, at its fourth step.
  CHECK_THROWS_AS(json_with({}, stored, folder.path(), 4 * 6 + 3), Cancelled);
  CHECK(parts.size() == 4);
  CHECK(fs::exists(folder / "routed-middle-flops-seed-4" / "checkpoint.safetensors"));
  CHECK_FALSE(fs::exists(folder / "uniform-seed-4"));
  ThreadPool pool(2);
  CHECK(json_with(pool, stored, folder.path()) == once);
  CHECK(parts.size() == 12);
  CHECK(fs::is_empty(folder.path()));
  CHECK(parts.erase("same 5") == 1);
  CHECK(json_with(pool, stored) == once);
}

TEST_CASE("twins differ in their topology alone, and their layers' maps are measured") {
  BudgetBench bench;
  const BudgetInput<B> input = bench.input();
  const BudgetResult result = run_budgets(input, twins_plan(bench.config));
  REQUIRE(result.arms.size() == 2);
  CHECK(result.arms[1].parameters == result.arms[0].parameters);
  CHECK_FALSE(result.arms[1].arm.parallel_residual);
  CHECK(budget_run(result, "parallel", 4).points.front().losses !=
        budget_run(result, "sequential", 4).points.front().losses);
  REQUIRE(result.topology.size() == 1);
  const TopologyFinding& finding = result.topology.front();
  for (std::size_t s = 0; s < 2; ++s) {
    std::vector<double> percents;
    for (const FinetuneComparison& c : result.comparisons) {
      const bool is_linear = c.contrast.treated.stage.starts_with("linear-");
      if (!is_linear || c.contrast.treated.arm != "sequential") continue;
      percents.push_back(100 * std::expm1(c.delta_nats[s]));
    }
    REQUIRE(percents.size() == 4);
    std::sort(percents.begin(), percents.end());
    CHECK(std::abs(finding.treated_percent[s] - 0.5 * (percents[1] + percents[2])) < 1e-9);
  }
  CHECK(budgets_headline(result).starts_with("sequential against parallel: "));
  CHECK(schema_fault(result) == "");
}

TEST_CASE("the topologies' difference is that of median layers, over seeds") {
  const std::vector<ArmRun> runs{planted_costs("a", 1, {1, 5, 3}), planted_costs("b", 1, {2, 2, 9}),
                                 planted_costs("a", 2, {4, 4, 4}),
                                 planted_costs("b", 2, {40, 7, 6})};
  const TopologyFinding finding =
      wanamaker::detail::topology_finding(runs, "b", "a", {1, 2}, 3, 0.95);
  CHECK(all_close(finding.treated_percent, std::vector<double>{2, 7}, 1e-9, 0));
  CHECK(all_close(finding.control_percent, std::vector<double>{3, 4}, 1e-9, 0));
  CHECK(all_close(finding.difference_percent, std::vector<double>{-1, 3}, 1e-9, 0));
  // Mean 1, standard error 2, t of one degree 12.7062.
  REQUIRE(finding.interval);
  CHECK(std::abs(finding.interval->high - (1 + 2 * 12.7062)) < 1e-3);
  CHECK(finding.verdict == ContrastVerdict::undecided);
  const auto verdict = [](double first, double second) {
    const std::vector<ArmRun> two{planted_costs("a", 1, {50}), planted_costs("b", 1, {first}),
                                  planted_costs("a", 2, {50}), planted_costs("b", 2, {second})};
    return wanamaker::detail::topology_finding(two, "b", "a", {1, 2}, 1, 0.95).verdict;
  };
  CHECK(verdict(10, 11) == ContrastVerdict::better);
  CHECK(verdict(90, 91) == ContrastVerdict::worse);
}
