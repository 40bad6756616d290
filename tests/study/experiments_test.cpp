// Gate curves and compound replacement on planted models: against the sweep, against models changed
// by hand, and what is stored, resumed and repeated.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planted_model.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/report/result_json.hpp"
#include "wanamaker/report/result_reading.hpp"
#include "wanamaker/study/compound.hpp"
#include "wanamaker/study/gate_curve.hpp"
#include "wanamaker/study/paper_sweep.hpp"
#include "wanamaker/study/sweep.hpp"

namespace {

using namespace wanamaker_test;

// A model, texts and everything else that a run needs.
struct Bench {
  explicit Bench(Index documents = 48, ExecutorRef executor = {})
      : backend(executor),
        planted(backend),
        corpus(random_corpus(documents, 30, PlantedModel::vocabulary)),
        splits(some_splits(documents)),
        workspace(backend) {}

  StudyInput<B> input(const AnyTransformer<B>& model, Ladder ladder = Ladder::quick,
                      std::vector<Index> layers = {}) {
    StudyInput<B> in = planted_study(backend, model, corpus, splits, workspace, 30, ladder);
    in.options.layers = std::move(layers);
    return in;
  }

  AnyMlp<B> affine() { return AnyMlp<B>(AffineMlp<B>(planted.linear(12, 12, 0.5))); }
  // Affine too, but as wide and as dear as a dense MLP.
  AnyMlp<B> wide_affine() {
    return AnyMlp<B>(
        DenseMlp<B, Identity>(planted.linear(12, 24, 0.5), planted.linear(24, 12, 0.5)));
  }
  AnyMlp<B> dense(double scale = 1) {
    return AnyMlp<B>(
        DenseMlp<B, GeluTanh>(planted.linear(12, 24, 1.0), planted.linear(24, 12, scale)));
  }
  EvaluationSet report() const {
    return make_evaluation_set(corpus, splits.report.documents, {.window = 30, .stride = 30});
  }
  // Co-moments of one layer of a model, changed or not, on the fit split.
  CoMoments moments(const AnyTransformer<B>& model, Index layer) {
    CoMomentCollector<B> collector(backend, model.layers(), 12, {.layers = {layer}});
    collect_set(backend, model,
                make_evaluation_set(corpus, splits.fit.documents, {.window = 30, .stride = 30}),
                collector, workspace);
    return collector.moments(layer);
  }
  AnyMlp<B> ridge(const AnyTransformer<B>& model, Index layer) {
    return AnyMlp<B>(RidgeSurrogate::fit(moments(model, layer), {.lambda = 1e-12}).to_mlp(backend));
  }
  double report_loss(const AnyTransformer<B>& model) {
    return sum_of(run_losses(backend, model, report(), workspace));
  }

  B backend;
  PlantedModel planted;
  TokenizedCorpus corpus;
  Splits splits;
  Workspace<B> workspace;
};

std::vector<AnyMlp<B>> list_of(AnyMlp<B> a, AnyMlp<B> b, AnyMlp<B> c) {
  std::vector<AnyMlp<B>> mlps;
  mlps.push_back(std::move(a));
  mlps.push_back(std::move(b));
  mlps.push_back(std::move(c));
  return mlps;
}

const CompoundVariant& compound(const CompoundResult& result, const std::string& name) {
  for (const CompoundVariant& v : result.variants) {
    if (v.name == name) return v;
  }
  FAIL("no variant " << name);
  return result.variants.front();
}

const GateCurve& curve(const CurveLayer& layer, const std::string& gate) {
  for (const GateCurve& c : layer.curves) {
    if (c.gate == gate) return c;
  }
  FAIL("no curve " << gate);
  return layer.curves.front();
}

CurvePoint point(double share, double nats, double select_percent) {
  CurvePoint p{.target = share, .select_delta_percent = select_percent};
  p.result.fraction_linear = share;
  p.result.comparison.delta_nats = nats;
  return p;
}

TEST_CASE("areas and operating points by hand") {
  // Trapezoids: 0.5·(0 + 0.2)/2 + 0.5·(0.2 + 1)/2 = 0.05 + 0.3.
  GateCurve gate{.gate = "gate-logistic", .points = {point(0.5, 0.2, 0.9), point(1, 1, 3)}};
  // The straight line: 1/2. The reference: 0.5·0 + 0.5·(0 + 1)/2 = 0.25.
  GateCurve random{.gate = "random", .points = {point(0.5, 0.5, 2), point(1, 1, 3)}};
  GateCurve oracle{.gate = "oracle", .points = {point(0.5, 0, 0), point(1, 1, 3)}};
  CHECK(operating_point_of(gate, 1) == 0);
  CHECK(operating_point_of(gate, 5) == 1);
  CHECK_FALSE(operating_point_of(random, 1).has_value());
  std::vector<GateCurve> curves{gate, random, oracle};
  compare_curves(curves);
  CHECK(std::abs(curves[0].area_nats - 0.35) < 1e-15);
  CHECK(std::abs(curves[0].area_below_random - 0.15) < 1e-15);
  CHECK(std::abs(*curves[0].share_of_oracle - 0.6) < 1e-14);
  CHECK(*curves[2].share_of_oracle == 1);
}

TEST_CASE("curves end where the sweep's linear map is, and hold its gate where the threshold is") {
  Bench bench(96);
  const AnyTransformer<B> model =
      bench.planted.make(list_of(bench.dense(), bench.dense(), bench.affine()));
  StudyInput<B> input = bench.input(model);
  input.options.gate_fraction = 0.5;
  const SweepResult sweep = run_sweep(input);
  const GateCurveResult curves = run_gate_curve(input, {.fractions = {0.75, 0.25, 0.5}});
  REQUIRE(curves.layers.size() == 3);
  for (std::size_t l = 0; l < 3; ++l) {
    const VariantResult& ridge = variant(sweep.layers[l], "ridge");
    for (const GateCurve& c : curves.layers[l].curves) {
      CHECK(c.points.back().result.nll_sum == ridge.nll_sum);
      CHECK(c.points.back().result.fraction_linear == 1.0);
      for (std::size_t i = 0; i + 1 < c.points.size(); ++i) {
        CHECK(c.points[i].target < c.points[i + 1].target);
      }
    }
    // The same gate, the same threshold from the same split: the same losses.
    const VariantResult& gate = variant(sweep.layers[l], "gate-logistic");
    const GateCurve& own = curve(curves.layers[l], "gate-logistic");
    REQUIRE(own.points.size() == 4);
    CHECK(own.points[1].result.nll_sum == gate.nll_sum);
    CHECK(own.points[1].result.threshold == gate.threshold);
    CHECK(own.points[1].result.flops_fraction_mlp == gate.flops_fraction_mlp);
    // Scores of the random gate are independent of everything: binomial, five deviations.
    const double n = static_cast<double>(sweep.baseline.tokens);
    for (const CurvePoint& p : curve(curves.layers[l], "random").points) {
      if (p.target == 1) continue;
      const double deviation = std::sqrt(p.target * (1 - p.target) * 2 / n);
      CHECK(std::abs(*p.result.fraction_linear - p.target) < 5 * deviation);
    }
  }
  CHECK(error_id([&] {
          run_gate_curve(input, {.fractions = {0.5, 1.0}});
        }) == "protocol/bad-fraction");
  CHECK(error_id([&] {
          run_gate_curve(input, {.gates = {"random", "gate-logistics"}});
        }) == "protocol/unknown-gate");
}

TEST_CASE(
    "curves are of the gates that are named, those of the full ladder too; each alone is as in "
    "it") {
  Bench bench(96);
  const AnyTransformer<B> model =
      bench.planted.make(list_of(bench.dense(), bench.affine(), bench.affine()));
  const StudyInput<B> input = bench.input(model, Ladder::full, {0});
  const GateCurveResult full = run_gate_curve(input, {.fractions = {0.5}});
  std::vector<std::string> names;
  for (const GateCurve& c : full.layers[0].curves) names.push_back(c.gate);
  std::vector<std::string> expected = ladder_gate_names();
  expected.push_back("oracle");
  CHECK(names == expected);
  const StudyInput<B> quick = bench.input(model, Ladder::quick, {0});
  const GateCurveResult named =
      run_gate_curve(quick, {.fractions = {0.5}, .gates = {"gate-bottleneck-3", "gate-pca-2"}});
  REQUIRE(named.layers[0].curves.size() == 3);
  CHECK(named.layers[0].curves[0].gate == "gate-pca-2");
  CHECK(curve(named.layers[0], "gate-bottleneck-3").points[0].result.nll_sum ==
        curve(full.layers[0], "gate-bottleneck-3").points[0].result.nll_sum);
}

TEST_CASE("all at once is the model with its MLPs replaced by hand, alone and in sequence") {
  Bench bench;
  const auto make = [] {
    Bench fresh;  // the same weights each time
    return fresh.planted.make(dense_mlps(fresh.planted, 3));
  };
  const AnyTransformer<B> model = make();
  const CompoundResult result = run_compound(bench.input(model, Ladder::surrogates), {});

  AnyTransformer<B> alone = make();
  for (Index l = 0; l < 3; ++l) alone.mlp(l) = bench.ridge(model, l);
  // Sums over the same rows, blocked alike: the bound leaves room for another order of blocks.
  const auto same = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); };
  CHECK(same(compound(result, "naive-linear").nll_sum, bench.report_loss(alone)));

  AnyTransformer<B> sequence = make();
  for (Index l = 0; l < 3; ++l) sequence.mlp(l) = bench.ridge(sequence, l);
  CHECK(same(compound(result, "sequential-linear").nll_sum, bench.report_loss(sequence)));
  // Else the two could not be told apart.
  CHECK_FALSE(same(bench.report_loss(alone), bench.report_loss(sequence)));

  const CompoundVariant& naive = compound(result, "naive-linear");
  CHECK(naive.fraction_linear == doctest::Approx(1).epsilon(1e-15));
  const double dense = model.mlp(0).cost(1).flops;
  CHECK(naive.flops_fraction_mlp ==
        doctest::Approx(alone.mlp(0).cost(1).flops / dense).epsilon(1e-14));
}

TEST_CASE("one layer at once is the sweep's layer") {
  Bench bench(96);
  const AnyTransformer<B> model = bench.planted.make(dense_mlps(bench.planted, 3));
  const StudyInput<B> input = bench.input(model, Ladder::quick, {1});
  const SweepResult sweep = run_sweep(input);
  const CompoundResult result = run_compound(input, {});
  const auto same = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); };
  const LayerResult& layer = sweep.layers.front();
  CHECK(same(compound(result, "mean").nll_sum, variant(layer, "mean").nll_sum));
  for (const char* name : {"naive-linear", "sequential-linear", "greedy-linear-1"}) {
    CHECK(same(compound(result, name).nll_sum, variant(layer, "ridge").nll_sum));
  }
  const VariantResult& gate = variant(layer, "gate-logistic");
  for (const char* name : {"naive-gate", "sequential-gate", "greedy-gate-1"}) {
    const CompoundVariant& v = compound(result, name);
    CHECK(same(v.nll_sum, gate.nll_sum));
    CHECK(3 * v.fraction_linear == doctest::Approx(*gate.fraction_linear).epsilon(1e-12));
    CHECK(v.flops_fraction_total == doctest::Approx(*gate.flops_fraction_total).epsilon(1e-12));
  }
  CHECK(same(compound(result, "naive-random").nll_sum, variant(layer, "random").nll_sum));
}

TEST_CASE("the greedy path takes what costs nothing first") {
  Bench bench;
  const AnyTransformer<B> model =
      bench.planted.make(list_of(bench.wide_affine(), bench.dense(2), bench.wide_affine()));
  bench.corpus = sampled_corpus(bench.backend, model, 48, 30);
  const CompoundResult result = run_compound(bench.input(model, Ladder::surrogates), {});
  const CompoundVariant& two = compound(result, "greedy-linear-2");
  std::vector<Index> chosen = two.layers;
  std::sort(chosen.begin(), chosen.end());
  CHECK(chosen == std::vector<Index>{0, 2});
  // λ is 1e-12 of the mean square: what two exact maps lose is of that order.
  CHECK(std::abs(two.comparison.delta_percent) < 1e-6);
  CHECK(compound(result, "greedy-linear-3").comparison.delta_percent > 1);
  CHECK(compound(result, "greedy-linear-3").layers.back() == 1);
  CHECK(result.chosen == "greedy-linear-2");
}

TEST_CASE("a greedy path stops at its FLOP budget") {
  Bench bench;
  const AnyTransformer<B> model = bench.planted.make(dense_mlps(bench.planted, 3));
  const double share = bench.affine().cost(1).flops / model.mlp(0).cost(1).flops;
  const CompoundOptions two_thirds{.flop_budget = (1 + 2 * share) / 3 + 1e-9};
  const CompoundResult result = run_compound(bench.input(model, Ladder::surrogates), two_thirds);
  CHECK(result.variants.back().name == "greedy-linear-2");
  CHECK(result.variants.back().flops_fraction_mlp <= two_thirds.flop_budget);
}

TEST_CASE("the frontier and the cheapest within a limit, by hand") {
  const auto make = [](const char* name, double flops, double loss, double percent) {
    CompoundVariant v{.name = name};
    v.flops_fraction_total = flops;
    v.select_nll_sum = loss;
    v.select_delta_percent = percent;
    return v;
  };
  std::vector<CompoundVariant> variants{make("a", 0.9, 10, 0.5), make("b", 0.8, 12, 0.9),
                                        make("c", 0.85, 13, 0.95), make("d", 0.5, 30, 9)};
  mark_frontier(variants);
  CHECK(variants[0].on_frontier);
  CHECK(variants[1].on_frontier);
  CHECK_FALSE(variants[2].on_frontier);
  CHECK(variants[3].on_frontier);
  CHECK(cheapest_within(variants, 1) == "b");
  CHECK_FALSE(cheapest_within(variants, 0.1).has_value());
}

// Parts as a file would hold them.
template <class Key, class Result, class FromJson>
Checkpoint<Key, Result> kept_in(std::map<Key, std::string>& parts, FromJson from_json,
                                Key (*key_of)(const Result&)) {
  return {
      [&parts, from_json](const Key& key) -> std::optional<Result> {
        const auto part = parts.find(key);
        if (part == parts.end()) return std::nullopt;
        return from_json(parse_json(part->second, "part"), "part");
      },
      [&parts, key_of](const Result& result) { parts[key_of(result)] = json_of(result).dump(); }};
}

// Runs, and keeps the first `count` parts only, as after an interruption; runs again.
template <class Key, class Run, class Make>
void check_resumes(Run&& run, Make&& checkpoint) {
  const std::string whole = run({}).dump();
  std::map<Key, std::string> all;
  CHECK(run(checkpoint(all)).dump() == whole);
  REQUIRE(all.size() > 1);
  for (std::size_t count = 1; count <= all.size(); ++count) {
    std::map<Key, std::string> some;
    for (const auto& [key, part] : all) {
      if (some.size() < count) some[key] = part;
    }
    CHECK(run(checkpoint(some)).dump() == whole);
    CHECK(some.size() == all.size());
  }
}

TEST_CASE("a resumed run gives what an uninterrupted one gives") {
  Bench bench;
  const AnyTransformer<B> model = bench.planted.make(dense_mlps(bench.planted, 2));
  const StudyInput<B> input = bench.input(model);
  check_resumes<Index>([&](const SweepCheckpoint& c) { return json_of(run_sweep(input, c)); },
                       [](std::map<Index, std::string>& parts) {
                         return kept_in<Index, LayerResult>(
                             parts, layer_result_from_json,
                             [](const LayerResult& r) { return r.layer; });
                       });
  const PaperFigures figures{.fit_rows = {0, 16},
                             .gate_rows = {16, 32},
                             .evaluation_rows = {32, 48},
                             .fit_tokens = 300,
                             .gate_tokens = 300,
                             .evaluation_tokens = 300};
  const PaperSets sets = paper_row_sets(bench.corpus, 30, figures);
  check_resumes<Index>(
      [&](const SweepCheckpoint& c) {
        return json_of(run_paper_sweep(bench.backend, model, sets, figures, Protocol{},
                                       input.options, input.executor, bench.workspace, {}, c));
      },
      [](std::map<Index, std::string>& parts) {
        return kept_in<Index, LayerResult>(parts, layer_result_from_json,
                                           [](const LayerResult& r) { return r.layer; });
      });
  check_resumes<Index>(
      [&](const GateCurveCheckpoint& c) { return json_of(run_gate_curve(input, {}, c)); },
      [](std::map<Index, std::string>& parts) {
        return kept_in<Index, CurveLayer>(parts, curve_layer_from_json,
                                          [](const CurveLayer& r) { return r.layer; });
      });
  check_resumes<std::string>(
      [&](const CompoundCheckpoint& c) { return json_of(run_compound(input, {}, c)); },
      [](std::map<std::string, std::string>& parts) {
        return kept_in<std::string, CompoundVariant>(
            parts, compound_variant_from_json, [](const CompoundVariant& r) { return r.name; });
      });
}

TEST_CASE("a run stops at the first question after it was asked to") {
  Bench bench;
  const AnyTransformer<B> model = bench.planted.make(dense_mlps(bench.planted, 2));
  for (const int allowed : {0, 1, 7, 40, 140}) {
    CAPTURE(allowed);
    int asked = 0;
    StudyInput<B> input = bench.input(model);
    input.progress.report = [&](std::string_view, Index, Index) { return asked++ < allowed; };
    CHECK_THROWS_AS(run_compound(input, {}), Cancelled);
    CHECK(asked == allowed + 1);
  }
}

TEST_CASE("results do not depend on the number of threads") {
  const auto json_with = [](ExecutorRef executor) {
    Bench bench(48, executor);
    const AnyTransformer<B> model = bench.planted.make(dense_mlps(bench.planted, 2));
    const StudyInput<B> input = bench.input(model);
    return json_of(run_sweep(input)).dump() + json_of(run_gate_curve(input, {})).dump() +
           json_of(run_compound(input, {})).dump();
  };
  const std::string serial = json_with(ExecutorRef{});
  for (const Index threads : {2, 3}) {
    ThreadPool pool(threads);
    CHECK(json_with(pool) == serial);
  }
}

}  // namespace
