// Fine-tuning experiments on tiny models: what a recipe does to a model, what training takes, and
// that arms are comparable, resumable and the same for any number of threads.
#include "wanamaker/study/finetune.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planted_model.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/report/finetune_report.hpp"
#include "wanamaker/report/finetune_tables.hpp"
#include "wanamaker/study/export_arm.hpp"
#include "wanamaker/train/initialise.hpp"

namespace {

using namespace wanamaker_test;

constexpr Index tuned_width = 8;
constexpr TokenId tuned_vocabulary = 20;
constexpr Index tuned_layers = 3;

ModelConfig tuned_config() {
  return model_config({.vocabulary = tuned_vocabulary,
                       .width = tuned_width,
                       .layers = tuned_layers,
                       .heads = 2,
                       .positions = 16});
}

/// Documents in which a token is mostly followed by its successor.
TokenizedCorpus successor_corpus(Index documents, std::uint64_t seed) {
  TokenizedCorpus corpus;
  RandomStream stream(seed);
  const auto any = [&] { return static_cast<TokenId>(stream.below(tuned_vocabulary)); };
  for (Index d = 0; d < documents; ++d) {
    TokenizedDocument document{.name = "document " + std::to_string(d), .index = d};
    document.ids.push_back(any());
    while (document.ids.size() < 24) {
      const bool follows = stream.below(4) != 0;
      document.ids.push_back(follows ? (document.ids.back() + 1) % tuned_vocabulary : any());
    }
    corpus.documents.push_back(std::move(document));
  }
  return corpus;
}

/// Passages of one window whose last word has one token or two.
PassageCorpus tuning_passages() {
  PassageCorpus passages{.corpus = successor_corpus(5, 23)};
  for (TokenizedDocument& document : passages.corpus.documents) {
    document.ids.resize(12);
    passages.target_tokens.push_back(1 + document.index % 2);
  }
  return passages;
}

Splits tuning_splits(Index documents) {
  Splits splits;
  for (Index d = 0; d < documents; ++d) {
    (d % 4 == 0   ? splits.train.documents
     : d % 4 == 1 ? splits.fit.documents
     : d % 4 == 2 ? splits.select.documents
                  : splits.report.documents)
        .push_back(d);
  }
  return Splits::checked(splits);
}

FinetuneOptions tuning_options() {
  FinetuneOptions options;
  options.recipes = {.layers = {1, 0, 2},
                     .between_steps = 2,
                     .final_steps = 4,
                     .adapt_steps = 5,
                     .gate_steps = 5,
                     .rate = 3e-3,
                     .gate_rate = 0.5,
                     .sparsity = 0.05,
                     .sparsity_warm_up = 2};
  options.seeds = {4, 5};
  options.window = 10;
  options.sequences = 2;
  options.warm_up = 1;
  options.intervals.resamples = 100;
  return options;
}

/// A model, texts and everything else that an experiment needs.
struct TuningBench {
  explicit TuningBench(ExecutorRef executor = {})
      : backend(executor), model(make_model(backend, tuned_config())), workspace(backend) {
    initialise(backend, model, 3);
    // Far enough from 0 for layers to matter.
    for (const Parameter<B>& p : parameters<B>(model)) {
      for (Index i = 0; p.decays && i < p.value.size(); ++i) p.value.data[i] *= 12;
    }
  }

  FinetuneInput<B> input(FinetuneOptions options = tuning_options()) {
    return {.backend = backend,
            .model = model,
            .corpus = corpus,
            .splits = splits,
            .workspace = workspace,
            .other = &other,
            .last_words = asks_last_words ? &passages : nullptr,
            .rule = {.window = 16, .stride = 16},
            .options = std::move(options),
            .executor = backend.executor()};
  }
  std::vector<double> losses(const std::vector<Index>& documents) {
    return run_losses(backend, model,
                      make_evaluation_set(corpus, documents, {.window = 16, .stride = 16}),
                      workspace);
  }

  B backend;
  AnyTransformer<B> model;
  TokenizedCorpus corpus = successor_corpus(48, 21);
  TokenizedCorpus other = successor_corpus(6, 22);
  PassageCorpus passages = tuning_passages();
  bool asks_last_words = false;
  Splits splits = tuning_splits(48);
  Workspace<B> workspace;
};

/// An arm run by itself, with the model that it leaves.
struct LoneArm {
  LoneArm(TuningBench& bench, Recipe recipe, FinetuneOptions options = tuning_options())
      : input(bench.input(std::move(options))),
        texts(input),
        arm{"arm", std::move(recipe)},
        runner(input, texts, arm, 4),
        run(runner.run()) {}

  FinetuneInput<B> input;
  wanamaker::detail::FinetuneTexts<B> texts;
  Arm arm;
  ArmRunner<B> runner;
  ArmRun run;
};

std::vector<double> values_of(AnyTransformer<B>& model, std::string_view part) {
  std::vector<double> values;
  for (const Parameter<B>& p : parameters<B>(model)) {
    if (p.name.find(part) == p.name.npos) continue;
    values.insert(values.end(), p.value.data, p.value.data + p.value.size());
  }
  return values;
}

/// Values of the model as it was given, of a model that an arm left.
std::vector<double> values_of(const ArmModel<B>& arm, std::string_view part) {
  return values_of(const_cast<ArmModel<B>&>(arm).model(), part);
}

const FinetunePoint& stage_of(const ArmRun& run, const std::string& stage) {
  for (const FinetunePoint& point : run.points) {
    if (point.stage == stage) return point;
  }
  FAIL("no stage " << stage);
  return run.points.front();
}

/// Sums of `documents` equally long pieces.
std::vector<double> tuning_document_sums(const std::vector<double>& losses, std::size_t documents) {
  const std::size_t length = losses.size() / documents;
  std::vector<double> sums(documents);
  for (std::size_t i = 0; i < losses.size(); ++i) sums[i / length] += losses[i];
  return sums;
}

AffineMlp<B> tuning_map(B& backend, RandomStream& stream) {
  std::vector<double> values(tuned_width * tuned_width);
  for (double& value : values) value = 0.3 * stream.normal();
  return AffineMlp<B>(Linear<B>(matrix_from_host(backend, values.data(), tuned_width, tuned_width),
                                WeightLayout::in_out, make_matrix(backend, 1, tuned_width)));
}

/// Which rows have w·x > 0 at layer 1's MLP.
struct TuningGateSpy {
  std::vector<double> w;
  std::vector<bool> is_above;

  void on_mlp_input(Index layer, ConstMatrixView<double> x) {
    if (layer != 1) return;
    is_above.clear();
    for (Index i = 0; i < x.rows; ++i) {
      double z = 0;
      for (Index j = 0; j < x.cols; ++j) z += w[static_cast<std::size_t>(j)] * x(i, j);
      is_above.push_back(z > 0);
    }
  }
};

FinetunePlan whole_plan() {
  return control_plan(tuning_options().recipes);
}

}  // namespace

TEST_CASE("layers from the middle outwards") {
  CHECK(middle_outwards({3}) == std::vector<Index>{3});
  CHECK(middle_outwards({4, 2, 3}) == std::vector<Index>{3, 2, 4});
  CHECK(middle_outwards({1, 2, 3, 4}) == std::vector<Index>{2, 3, 1, 4});
  CHECK(middle_outwards({9, 0, 5, 6, 7}) == std::vector<Index>{6, 5, 7, 0, 9});
}

TEST_CASE("the weight of sparsity rises to its value") {
  const Stage stage{.sparsity = 0.6, .sparsity_warm_up = 3};
  CHECK(stage.sparsity_at(0) == 0.6 * 1.0 / 3.0);
  CHECK(stage.sparsity_at(1) == 0.6 * 2.0 / 3.0);
  CHECK(stage.sparsity_at(2) == 0.6);
  CHECK(stage.sparsity_at(9) == 0.6);
}

TEST_CASE("an arm without steps is the untouched model, and no arm changes that") {
  TuningBench bench;
  const std::vector<double> before = values_of(bench.model, "");
  const std::vector<double> losses = bench.losses(bench.splits.report.documents);
  const std::size_t documents = bench.splits.report.documents.size();
  const LoneArm untouched(bench, untouched_recipe());
  const LoneArm tuned(bench, plain_recipe(5, 1e-2));
  CHECK(values_of(bench.model, "") == before);
  CHECK(values_of(untouched.runner.model(), "") == before);
  CHECK(values_of(tuned.runner.model(), "") != before);

  const FinetunePoint& point = untouched.run.points.front();
  CHECK(point.steps == 0);
  CHECK(point.tokens == 0);
  CHECK(point.training_flops == 0);
  CHECK(point.flops_fraction_total == 1);
  REQUIRE(point.texts.size() == 3);
  CHECK(point.texts[0].text == unseen_text);
  CHECK(point.texts[0].nll == tuning_document_sums(losses, documents));
}

TEST_CASE("plain fine-tuning lowers the loss of what it trains on") {
  TuningBench bench;
  const LoneArm tuned(bench, plain_recipe(60, 1e-2));
  const LoneArm untouched(bench, untouched_recipe());
  const FinetunePoint& point = tuned.run.points.front();
  CHECK(*point.last_loss < *point.first_loss - 0.1);
  CHECK(point.texts[1].nll_sum() < untouched.run.points.front().texts[1].nll_sum());
  CHECK(point.tokens == 60 * 20);
}

TEST_CASE("progressively linearised layers are their maps, frozen as they were fitted") {
  TuningBench bench;
  const RecipeOptions options = tuning_options().recipes;
  Recipe recipe = progressive_recipe(options);
  recipe.pop_back();
  const LoneArm arm(bench, recipe);
  const ArmModel<B>& left = arm.runner.model();
  for (Index l = 0; l < tuned_layers; ++l) {
    CHECK(left.form(l) == LayerForm::affine);
    CHECK(left.model().mlp(l).get<AffineMlp<B>>() != nullptr);
  }
  CHECK(std::abs(stage_of(arm.run, "final").fraction_linear - 1) < 1e-15);
  CHECK(stage_of(arm.run, "layer-1").fraction_linear == 1.0 / 3);

  // The first map was fitted in the model as it was given.
  CoMomentCollector<B> collector(bench.backend, tuned_layers, tuned_width, {.layers = {1}});
  collect_set(bench.backend, bench.model, arm.texts.fit(), collector, bench.workspace);
  const auto fit = RidgeSurrogate::fit(collector.moments(1), {.lambda = 1e-6});
  CHECK(values_of(left, "h.1.mlp.affine.weight") == fit.map().weight);
  CHECK(values_of(left, "h.1.mlp.affine.bias") == fit.map().bias);
  // What is not frozen has moved.
  CHECK(values_of(left, "attn") != values_of(bench.model, "attn"));
}

TEST_CASE("phase 2 restores the MLPs as they were before phase 1") {
  TuningBench bench;
  Recipe recipe = two_phase_recipe(tuning_options().recipes);
  recipe.resize(2);
  const LoneArm arm(bench, recipe);
  CHECK(values_of(arm.runner.model(), "mlp.c_") == values_of(bench.model, "mlp.c_"));
  CHECK(values_of(arm.runner.model(), "attn") != values_of(bench.model, "attn"));
  CHECK(stage_of(arm.run, "full").flops_fraction_mlp == 1);
  CHECK(stage_of(arm.run, "full").training_flops == stage_of(arm.run, "adapted").training_flops);
}

TEST_CASE("phase 2 trains gates and nothing else; a constant gate stays constant") {
  TuningBench bench;
  const Recipe two_phase = two_phase_recipe(tuning_options().recipes);
  const LoneArm adapted(bench, {two_phase.front()});
  const LoneArm gated(bench, two_phase);
  for (const char* part : {"attn", "wte", "ln_"}) {
    CHECK(values_of(gated.runner.model(), part) == values_of(adapted.runner.model(), part));
  }
  CHECK(values_of(gated.runner.model(), "mlp.gate.weight") !=
        std::vector<double>(tuned_layers * tuned_width));

  const LoneArm constant(bench, with_constant_gates(two_phase));
  CHECK(values_of(constant.runner.model(), "mlp.gate.weight") ==
        std::vector<double>(tuned_layers * tuned_width));
  for (const LayerState& state : constant.run.points.back().layers) {
    CHECK(*state.constant != 0.5);
    CHECK_FALSE(state.fraction_linear);
  }
}

TEST_CASE("what hard gates and random routing send to maps is counted") {
  TuningBench bench;
  const FinetuneInput<B> input = bench.input();
  const EvaluationSet set =
      make_evaluation_set(bench.corpus, bench.splits.report.documents, input.rule);
  ArmModel<B> arm(bench.backend, bench.model, 9);
  RandomStream stream(6);
  arm.set_map(1, tuning_map(bench.backend, stream));
  arm.set_form(1, LayerForm::soft_gate);
  std::vector<double> w;
  for (const Parameter<B>& p : parameters<B>(arm.model())) {
    if (p.name.find("h.1.mlp.gate.weight") == p.name.npos) continue;
    for (Index j = 0; j < p.value.size(); ++j) w.push_back(p.value.data[j] = stream.normal());
  }
  REQUIRE(w.size() == tuned_width);

  const auto routed = [&] {
    arm.counts().reset();
    run_losses_with(bench.backend, arm.model(), MlpOverrides<B>{}, set, bench.workspace, {}, "",
                    [&](const EvaluationBatch& batch) { arm.counts().set_batch(&batch); });
    return arm.counts().routed(1);
  };
  arm.set_form(1, LayerForm::hard_gate);
  // By hand: w·x > 0 at the scored rows. Layer 1's input does not depend on its own form.
  Index by_hand = 0;
  Index drawn = 0;
  TuningGateSpy spy{w, {}};
  for (const EvaluationBatch& batch : set.batches) {
    const Workspace<B>::Frame frame(bench.workspace);
    const PackedBatch<B> packed(bench.backend, batch.tokens, batch.offsets);
    const MatrixView<double> stream_of = bench.workspace.matrix(packed.rows(), tuned_width);
    bench.model.forward(bench.backend, packed, stream_of, bench.workspace, spy);
    const std::vector<double> scores = RandomGate(0.3, 9).draw(batch.tokens, batch.offsets, 1);
    for (const TokenId row : batch.scored.rows) {
      by_hand += spy.is_above[static_cast<std::size_t>(row)] ? 1 : 0;
      drawn += scores[static_cast<std::size_t>(row)] > 1 - 0.3 ? 1 : 0;
    }
  }
  CHECK(by_hand > 0);
  CHECK(by_hand < set.scored());
  CHECK(routed() == by_hand);
  arm.set_rate(1, 0.3);
  arm.set_form(1, LayerForm::random_routing);
  CHECK(drawn > 0);
  CHECK(routed() == drawn);
  arm.set_form(1, LayerForm::mlp);
  CHECK(values_of(arm.model(), "") == values_of(bench.model, ""));
  CHECK_THROWS_AS(arm.set_form(2, LayerForm::affine), ProtocolError);
}

TEST_CASE("FLOPs of training are those counted by hand") {
  // 2 windows of 10: 20 rows, 110 pairs of query and key. A token's products forward: attention
  // 2·(8·24 + 8·8) = 512, MLP 2·2·8·32 = 1024, map 2·8·8 = 128, head 2·8·20 = 320; scores 32 a
  // pair.
  TuningBench bench;
  ArmModel<B> arm(bench.backend, bench.model, 1);
  const double scores = 3 * 110 * 32;
  const double plain = 20 * (3 * (512 + 1024) + 320);
  const StepFlops whole = step_flops(arm, parameters<B>(arm.model()), 10, 2);
  CHECK(whole.forward == plain + scores);
  CHECK(whole.input_gradients == plain + 2.5 * scores);
  CHECK(whole.weight_gradients == plain);
  CHECK(whole.repeated == 0);
  CHECK(step_flops(arm, parameters<B>(arm.model()), 10, 2, true).repeated ==
        plain - 20 * 320 + scores);

  RandomStream stream(6);
  arm.set_map(2, tuning_map(bench.backend, stream));
  arm.set_form(2, LayerForm::affine);
  const Gradients<B> gradients(bench.backend, arm.model(), ParameterSelection(rule_of_maps));
  const StepFlops linear = step_flops(arm, parameters<B>(arm.model(), gradients), 10, 2);
  CHECK(linear.forward == plain + scores - 20 * (1024 - 128));
  CHECK(linear.weight_gradients == plain - 20 * 1024);

  // Of a gate alone in the last layer: nothing goes back below it, both paths are run.
  arm.set_form(2, LayerForm::soft_gate);
  const ParameterSelection gates(rule_of_gates);
  const Gradients<B> of_gates(bench.backend, arm.model(),
                              [&](const std::string& name) { return !gates(name); });
  const StepFlops gated = step_flops(arm, parameters<B>(arm.model(), of_gates), 10, 2);
  CHECK(gated.forward == plain + scores + 20 * (128 + 16));
  CHECK(gated.input_gradients == 20 * (512 + 1024 + 128 + 16 + 320) + 2.5 * scores / 3);
  CHECK(gated.weight_gradients == 20 * 16);
}

TEST_CASE("controls have as many tokens, or as many FLOPs to half a step") {
  TuningBench bench;
  const FinetuneInput<B> input = bench.input();
  const FinetuneResult result = run_finetune(input, whole_plan());
  ArmModel<B> plain(bench.backend, bench.model, 1);
  const double step = step_flops(plain, parameters<B>(plain.model()), 10, 2).total();
  Index compared = 0;
  for (const FinetuneComparison& c : result.comparisons) {
    CAPTURE(text_of(c.contrast.treated));
    const FinetunePoint& treated = wanamaker::detail::point_of(result.runs, c.contrast.treated, 4);
    const FinetunePoint& control = wanamaker::detail::point_of(result.runs, c.contrast.control, 4);
    CHECK(c.delta_nats.size() == 2);
    if (c.contrast.kind == ControlKind::equal_tokens) {
      CHECK(treated.tokens == control.tokens);
      CHECK(treated.tokens == 10 * 20);
    }
    if (c.contrast.kind == ControlKind::equal_flops) {
      CHECK(std::abs(treated.training_flops - control.training_flops) <= 0.5 * step);
      CHECK(c.flops_ratio == treated.training_flops / control.training_flops);
    }
    ++compared;
  }
  CHECK(compared == 3 * (5 + 2 * 6));  // texts; contrasts of progressive and of two gated arms
  CHECK(result.verdicts.size() == 3);
  const std::string headline = finetune_headline(result);
  CHECK(
      headline.starts_with(result.model.name + ", progressive/final: better than its controls: "));
  CHECK_FALSE(json_of(result).dump().empty());
}

TEST_CASE("last words are scored as one token each, and their hits are counted") {
  TuningBench bench;
  bench.asks_last_words = true;
  const LoneArm untouched(bench, untouched_recipe());
  const TextLosses& words = untouched.run.points.front().texts.back();
  CHECK(words.text == last_words_text);
  const std::vector<Index> all{0, 1, 2, 3, 4};
  const auto measured = measure_last_words(
      bench.backend, bench.model, bench.passages.corpus, bench.passages.target_tokens,
      make_evaluation_set(bench.passages.corpus, all, untouched.input.rule), {}, bench.workspace);
  CHECK(words.perplexity() == measured.last_words->perplexity);
  CHECK(*words.accuracy() == measured.last_words->accuracy);
  CHECK(words.tokens == std::vector<Index>(5, 1));
  CHECK_FALSE(untouched.run.points.front().texts.front().accuracy());

  // By hand: hits of two seeds against one; differences 0.5, 1, 0, of mean 0.5 and standard error
  // 0.5/√3; t of two degrees is 4.30265.
  const auto run = [](const char* arm, std::uint64_t seed, std::vector<double> hits) {
    FinetunePoint point{.stage = "end"};
    point.texts = {{last_words_text, {1, 1, 1}, {2, 2, 2}, std::move(hits)}};
    return ArmRun{arm, seed, {point}};
  };
  const std::vector<ArmRun> runs{run("a", 4, {1, 1, 0}), run("a", 5, {0, 1, 0}),
                                 run("b", 4, {0, 0, 0})};
  const FinetuneOptions options = tuning_options();
  const FinetuneComparison compared =
      FinetuneComparisons(runs, comparison_options(options))
          .compare({{"a", "end"}, {"b", "end"}, ControlKind::untouched}, last_words_text);
  REQUIRE(compared.accuracy);
  CHECK(compared.accuracy->treated == 0.5 * (2.0 / 3) + 0.5 * (1.0 / 3));
  CHECK(compared.accuracy->control == 0);
  CHECK(std::abs(compared.accuracy->interval->high - (0.5 + 4.30265 * 0.5 / std::sqrt(3))) < 1e-5);
}

TEST_CASE("training losses of all steps are kept, drawn and listed") {
  TuningBench bench;
  const FinetuneInput<B> input = bench.input();
  FinetunePlan plan = progressive_plan(tuning_options().recipes);
  const FinetuneResult result = run_finetune(input, plan);
  const FinetunePoint& point =
      wanamaker::detail::point_of(result.runs, {"progressive", "final"}, 5);
  CHECK(point.losses.size() == 4);
  CHECK(*point.first_loss ==
        (point.losses[0] + point.losses[1] + point.losses[2] + point.losses[3]) / 4);
  const std::string csv = finetune_losses_csv(result.runs).csv();
  CHECK(csv.find("progressive,5,final,7," + exact_text(point.losses[0])) != csv.npos);
  const auto mean = wanamaker::detail::mean_losses(result.runs, "progressive");
  REQUIRE(mean.size() == 10);
  const FinetunePoint& other =
      wanamaker::detail::point_of(result.runs, {"progressive", "final"}, 4);
  CHECK(mean[9] == 0.5 * (point.losses[3] + other.losses[3]));
  const auto smooth = wanamaker::detail::smoothed("", {1, 2, 6}, 2);
  CHECK(smooth.x == std::vector<double>{2, 3});
  CHECK(smooth.y == std::vector<double>{1.5, 4});
  CHECK(finetune_svg(result).find("plain-10") != std::string::npos);
  const std::string points = finetune_points_table(result.runs).aligned();
  CHECK(points.find("progressive/layer-1") != points.npos);
  CHECK(finetune_gap_table(result).csv().find("linear/linear") != std::string::npos);
  const std::string table = finetune_table(result.comparisons).csv();
  // Against the untouched model, equal tokens, full, untuned, equal FLOPs, and a header.
  CHECK(std::count(table.begin(), table.end(), '\n') == 6);
  CHECK(finetune_csv(result.comparisons).csv().find(",other,") != std::string::npos);
}

TEST_CASE("a point against itself differs by nothing") {
  TuningBench bench;
  const LoneArm tuned(bench, plain_recipe(3, 1e-2));
  const LoneArm untouched(bench, untouched_recipe());
  std::vector<ArmRun> runs{tuned.run, untouched.run};
  runs[0].arm = "tuned";
  runs[1].arm = "untouched";
  const FinetuneOptions options = tuning_options();
  const FinetuneComparisons comparisons(runs, comparison_options(options));
  const PointName point{"tuned", "tuned"};
  const FinetuneComparison same = comparisons.compare({point, point, {}}, unseen_text);
  CHECK(same.documents.delta_nats == 0);
  CHECK(same.verdict == ContrastVerdict::undecided);
  const TextGap gap = comparisons.gap(point);
  CHECK(gap.trained_nats != gap.unseen_nats);
  CHECK(gap.gap_nats == gap.trained_nats - gap.unseen_nats);
  REQUIRE(gap.interval);
  CHECK(gap.interval->low < gap.gap_nats);
  CHECK_THROWS_AS(comparisons.gap({"tuned", "hard"}), ProtocolError);
}

TEST_CASE("verdicts need both intervals on one side") {
  PairedComparison documents;
  documents.ci_low_percent = -3;
  documents.ci_high_percent = -1;
  using wanamaker::detail::contrast_verdict;
  CHECK(contrast_verdict(documents, Interval{-2, -1}) == ContrastVerdict::better);
  CHECK(contrast_verdict(documents, Interval{-2, 1}) == ContrastVerdict::undecided);
  CHECK(contrast_verdict(documents, std::nullopt) == ContrastVerdict::undecided);
  documents.ci_low_percent = 1;
  documents.ci_high_percent = 3;
  CHECK(contrast_verdict(documents, Interval{1, 2}) == ContrastVerdict::worse);
  // By hand: deltas 0.01 and 0.03, mean 0.02, standard error 0.01, t of one degree 12.7062.
  const auto interval = wanamaker::detail::seed_interval({0.01, 0.03}, 0.95);
  REQUIRE(interval);
  CHECK(std::abs(interval->low - 100 * std::expm1(0.02 - 0.127062)) < 1e-4);
  CHECK_FALSE(wanamaker::detail::seed_interval({0.01}, 0.95));
}

TEST_CASE("fine-tuning is the same for one thread and two, and after a resumption") {
  const auto json_with = [](ExecutorRef executor, const FinetuneCheckpoint& checkpoint) {
    TuningBench bench(executor);
    bench.asks_last_words = true;
    const FinetuneInput<B> input = bench.input();
    return json_of(run_finetune(input, whole_plan(), checkpoint)).dump();
  };
  std::map<std::string, std::string> parts;
  std::size_t loaded = 0;
  const auto name_of_part = [](const std::string& arm, std::uint64_t seed) {
    return arm + " " + std::to_string(seed);
  };
  const FinetuneCheckpoint checkpoint{
      .load = [&](const ArmKey& key) -> std::optional<ArmRun> {
        const auto part = parts.find(name_of_part(key.arm, key.seed));
        if (part == parts.end()) return std::nullopt;
        ++loaded;
        return arm_run_from_json(parse_json(part->second, "part"), "part");
      },
      .save =
          [&](const ArmRun& run) { parts[name_of_part(run.arm, run.seed)] = json_of(run).dump(); }};
  const std::string once = json_with({}, checkpoint);
  CHECK(loaded == 0);
  // Some parts are lost, among them one whose rates others need.
  CHECK(parts.erase("joint 5") == 1);
  CHECK(parts.erase("progressive 4") == 1);
  CHECK(parts.erase("joint-random 5") == 1);
  const std::size_t kept = parts.size();
  ThreadPool pool(2);
  CHECK(json_with(pool, checkpoint) == once);
  CHECK(loaded == kept);
}

TEST_CASE("impossible experiments are refused") {
  TuningBench bench;
  FinetuneOptions options = tuning_options();
  options.seeds = {4, 4};
  CHECK_THROWS_AS(run_finetune(bench.input(options), whole_plan()), ProtocolError);
  options = tuning_options();
  options.recipes.layers = {3};
  CHECK_THROWS_AS(run_finetune(bench.input(options), whole_plan()), ProtocolError);
  options.recipes.layers = {};
  CHECK_THROWS_AS(run_finetune(bench.input(options), whole_plan()), ProtocolError);
  CHECK_THROWS_AS(LoneArm(bench, {{.name = "none", .frozen = "*", .steps = 1, .rate = 1e-3}}),
                  ProtocolError);
}

TEST_CASE("fine-tuned models are read back as what they were, linear or gated") {
  TuningBench bench;
  const FinetuneOptions options = tuning_options();
  const std::vector<TokenId>& text = bench.corpus.documents.front().ids;
  const std::vector<TokenId> ids(text.begin(), text.begin() + 16);
  for (const bool is_gated : {false, true}) {
    FinetuneInput<B> input = bench.input(options);
    const Arm arm{
        "arm", is_gated ? two_phase_recipe(options.recipes) : progressive_recipe(options.recipes)};
    const wanamaker::detail::FinetuneTexts<B> texts(input);
    const TemporaryFolder folder;
    Index written = 0;
    std::vector<double> own;
    input.on_point = [&](const std::string&, std::uint64_t seed, const FinetunePoint& point,
                         ArmModel<B>& model) {
      if (point.stage == "soft") {
        CHECK(error_id([&] {
                export_arm(bench.backend, model, ids, folder.path(), bench.workspace);
              }) == "protocol/not-stock");
      }
      if (point.stage != "final" && point.stage != "hard") return;
      CHECK(seed == 4);
      const std::vector<double> before = values_of(model.model(), ".");
      CHECK(export_arm(bench.backend, model, ids, folder.path(), bench.workspace) < 1e-11);
      CHECK(values_of(model.model(), ".") == before);
      own = sequence_losses(bench.backend, model.model(), std::span<const TokenId>(ids), {},
                            bench.workspace);
      ++written;
    };
    ArmRunner<B>(input, texts, arm, 4).run();
    CHECK(written == 1);
    AnyTransformer<B> loaded = load_model(bench.backend, folder.path());
    CHECK(has_gated_layers(folder.path()) == is_gated);
    if (is_gated) {
      CHECK(read_gated_layers(folder.path()).size() == 3);
      install_gates(bench.backend, loaded, read_gated_layers(folder.path()));
    }
    const std::vector<double> again =
        sequence_losses(bench.backend, loaded, std::span<const TokenId>(ids), {}, bench.workspace);
    CHECK(largest_difference(again, own) < 1e-11);
    CHECK(largest_difference(
              again, sequence_losses(bench.backend, bench.model, std::span<const TokenId>(ids), {},
                                     bench.workspace)) > 1e-3);
  }
}

TEST_CASE("layers in the order of what they cost alone") {
  TuningBench bench;
  const FinetuneInput<B> input = bench.input();
  const std::vector<Index> order = order_by_cost(input, {0, 1, 2});
  std::vector<double> costs;
  for (const Index layer : order) {
    RecipeOptions options;
    options.layers = {layer};
    const LoneArm alone(bench, linear_recipe(options));
    MlpOverrides<B> overrides;
    overrides.set(layer, &alone.runner.model().model().mlp(layer));
    costs.push_back(
        sum_of(run_losses_with(bench.backend, bench.model, overrides, alone.texts.select(),
                               bench.workspace, {}, "", [](const EvaluationBatch&) {})));
  }
  REQUIRE(costs.size() == 3);
  CHECK(costs[0] < costs[1]);
  CHECK(costs[1] < costs[2]);
}
