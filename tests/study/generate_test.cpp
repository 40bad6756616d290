// Writing on: against the formulas, where it stops, and what stands in while it writes.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "nn/tiny_models.hpp"
#include "planted_model.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/gate/gated_mlp.hpp"
#include "wanamaker/gate/rule_gates.hpp"
#include "wanamaker/study/generate_study.hpp"

namespace {

using namespace wanamaker_test;
using Naive = ReferenceBackend<double>;
using Ids = std::vector<TokenId>;

const GenerationOptions greedy_thirty{.tokens = 30, .sampling = {.temperature = 0}};

Ids some_ids(int vocabulary, int length) {
  const std::vector<int> ids = random_sequences(vocabulary, {length}).front();
  return {ids.begin(), ids.end()};
}

/// The most probable ids by the formulas, each from a run over everything before it.
Ids greedy_by_formulas(const naive::Model& formulas, const Ids& prompt, int count) {
  std::vector<int> tokens(prompt.begin(), prompt.end());
  for (int t = 0; t < count; ++t) {
    std::vector<double> logits = naive::forward<double>(formulas, tokens).logits.back();
    logits.resize(static_cast<std::size_t>(formulas.settings.vocabulary));
    const auto best = std::max_element(logits.begin(), logits.end());
    tokens.push_back(static_cast<int>(best - logits.begin()));
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()), tokens.end()};
}

}  // namespace

TEST_CASE("greedy writing takes the most probable ids by the formulas, in every family") {
  Naive backend;
  for (const naive::Model& formulas : {tiny_gpt2(), tiny_neox(true), tiny_neox(false),
                                       tiny_llama(true, 0), tiny_llama(false, 3)}) {
    const auto model = ModelMaker<Naive>(backend, formulas).any();
    const Ids prompt = some_ids(formulas.settings.vocabulary, 5);
    const Generation text = generate(backend, model, prompt, greedy_thirty);
    CHECK(text.ids == greedy_by_formulas(formulas, prompt, 30));
    CHECK(text.stop == StopReason::tokens);
  }
}

TEST_CASE("a prompt of several pieces is read as a whole") {
  Naive backend;
  naive::Settings settings = tiny_llama(true, 0).settings;
  settings.positions = 700;
  settings.window = 300;
  const naive::Model formulas = random_model(settings, true);
  const auto model = ModelMaker<Naive>(backend, formulas).any();
  const Ids prompt = some_ids(settings.vocabulary, 600);
  Workspace<Naive> workspace(backend);
  const PackedBatch<Naive> batch(backend, prompt);
  auto residual = make_matrix(backend, 600, settings.width);
  auto logits = make_matrix(backend, 600, model.logit_columns());
  model.forward(backend, batch, residual.view(), workspace);
  model.logits(backend, residual.view(), logits.view(), workspace);
  const MlpOverrides<Naive> none;
  Decoder<Naive> decoder(backend, model, none, workspace, 600);
  const auto read = decoder.read(prompt);
  const double* last = logits.view().row(599);
  CHECK(std::vector<double>(read.begin(), read.end()) ==
        std::vector<double>(last, last + settings.vocabulary));
  CHECK(decoder.length() == 600);
}

TEST_CASE("writing stops at an end of text, at the tokens asked for, or at the last position") {
  Naive backend;
  const naive::Model formulas = tiny_gpt2();
  const auto model = ModelMaker<Naive>(backend, formulas).any();
  const Ids prompt = some_ids(31, 5);
  const Ids written = generate(backend, model, prompt, greedy_thirty).ids;
  GenerationOptions options = greedy_thirty;
  const TokenId end = written[12];
  const auto first = std::find(written.begin(), written.end(), end);
  options.ends = {31, end};
  const Generation ended = generate(backend, model, prompt, options);
  CHECK(ended.stop == StopReason::end_of_text);
  CHECK(ended.ids == Ids(written.begin(), first + 1));
  CHECK(std::string(name_of(ended.stop)) == "end-of-text");

  // 80 positions: the last one's token is not read itself.
  options = {.tokens = 1000};
  for (const int length : {80, 79, 75}) {
    const Generation full = generate(backend, model, some_ids(31, length), options);
    CHECK(full.stop == StopReason::positions);
    CHECK(static_cast<int>(full.ids.size()) == 81 - length);
  }
  options.tokens = 6;
  CHECK(generate(backend, model, some_ids(31, 75), options).stop == StopReason::tokens);
  options.tokens = 1;
  CHECK(generate(backend, model, some_ids(31, 80), options).stop == StopReason::tokens);
}

TEST_CASE("a seed gives one text, whatever is asked for after it") {
  Naive backend;
  const naive::Model formulas = tiny_neox(true);
  const auto model = ModelMaker<Naive>(backend, formulas).any();
  const Ids prompt = some_ids(29, 4);
  GenerationOptions options{.tokens = 40, .sampling = {.temperature = 2, .seed = 3}};
  const Ids written = generate(backend, model, prompt, options).ids;
  CHECK(generate(backend, model, prompt, options).ids == written);
  options.tokens = 25;
  CHECK(generate(backend, model, prompt, options).ids ==
        Ids(written.begin(), written.begin() + 25));
  options.sampling.seed = 4;
  CHECK(generate(backend, model, prompt, options).ids !=
        Ids(written.begin(), written.begin() + 25));
}

TEST_CASE("every token is told of as it is drawn, and telling may end it") {
  Naive backend;
  const naive::Model formulas = tiny_neox(false);
  const auto model = ModelMaker<Naive>(backend, formulas).any();
  const Ids prompt = some_ids(29, 4);
  Workspace<Naive> workspace(backend);
  Ids told;
  const auto write = [&](std::size_t most) {
    told.clear();
    return generate(backend, model, prompt, greedy_thirty, {}, workspace, [&](TokenId id) {
      told.push_back(id);
      if (told.size() == most) throw Cancelled();
    });
  };
  CHECK(write(100).ids == told);
  CHECK_THROWS_AS(write(7), Cancelled);
  CHECK(told.size() == 7);
}

TEST_CASE("what cannot be written on is refused, by id") {
  Naive backend;
  const naive::Model formulas = tiny_gpt2();
  const auto model = ModelMaker<Naive>(backend, formulas).any();
  const auto with = [&](const Ids& prompt, const GenerationOptions& options) {
    return error_id([&] { generate(backend, model, prompt, options); });
  };
  CHECK(with({1}, {.tokens = 1}) == "");
  CHECK(with({}, {}) == "data/empty-prompt");
  CHECK(with(Ids(81, 1), {}) == "protocol/prompt-too-long");
  CHECK(with({1}, {.tokens = 0}) == "protocol/no-tokens");
  CHECK(with({1}, {.sampling = {.temperature = -1}}) == "protocol/sampling");
  CHECK(with({31}, {}) == "data/token-outside-vocabulary");
}

TEST_CASE("losses of a continuation are the formulas'") {
  Naive backend;
  for (const naive::Model& formulas : {tiny_gpt2(), tiny_llama(false, 3)}) {
    const auto model = ModelMaker<Naive>(backend, formulas).any();
    const std::vector<int> all = random_sequences(formulas.settings.vocabulary, {81}).front();
    const Ids prompt(all.begin(), all.begin() + 60), ids(all.begin() + 60, all.end() - 1);
    const std::vector<double> nll =
        naive::forward<double>(formulas, {all.begin(), all.end() - 1}).nll;
    Workspace<Naive> workspace(backend);
    CHECK(all_close(continuation_losses(backend, model, prompt, ids, workspace),
                    std::vector<double>(nll.begin() + 59, nll.end()), 1e-11, 0));
    CHECK(continuation_losses(backend, model, prompt, Ids{}, workspace).empty());
    // The last id has no position of its own and needs none.
    const Ids longer(all.begin() + 60, all.end());
    CHECK(continuation_losses(backend, model, prompt, longer, workspace).size() == 21);
  }
}

// ---------------------------------------------------------------- replacements

namespace {

/// A planted model, documents and their splits.
struct Writing {
  B backend;
  PlantedModel planted{backend};
  TokenizedCorpus corpus = random_corpus(48, 30, PlantedModel::vocabulary);
  Splits splits = some_splits(48);
  Workspace<B> workspace{backend};
  Ids prompt{3, 1, 4, 1, 5};

  /// Layer 1 is an affine map, the others are not.
  AnyTransformer<B> model() {
    std::vector<AnyMlp<B>> mlps = dense_mlps(planted, 3);
    mlps[1] = AnyMlp<B>(AffineMlp<B>(planted.linear(12, 12, 0.5)));
    return planted.make(std::move(mlps));
  }
  StudyInput<B> input(const AnyTransformer<B>& model, std::vector<Index> layers) {
    StudyInput<B> in{.backend = backend,
                     .model = model,
                     .corpus = corpus,
                     .splits = splits,
                     .workspace = workspace,
                     .rule = {.window = 30, .stride = 30},
                     .options = quick_options(Ladder::quick)};
    in.options.layers = std::move(layers);
    return in;
  }
};

GenerateOptions beside(const std::string& replacement) {
  return {.generation = {.tokens = 20, .sampling = {.temperature = 0.8, .seed = 5}},
          .replacement = replacement_named(replacement).value(),
          .beside = true};
}

}  // namespace

TEST_CASE("a map in the place of an affine MLP writes the same text, zero does not") {
  Writing w;
  const AnyTransformer<B> model = w.model();
  const GenerateResult ridge = run_generate(w.input(model, {1}), w.prompt, beside("ridge"));
  REQUIRE(ridge.texts.size() == 2);
  CHECK(ridge.texts[0].name == "original");
  CHECK(ridge.texts[1].name == "ridge");
  CHECK(ridge.texts[0].generation.ids == ridge.texts[1].generation.ids);
  CHECK(common_ids(ridge.texts[0], ridge.texts[1]) == 20);
  CHECK(ridge.texts[1].positions == 24);
  REQUIRE(ridge.texts[1].replaced.size() == 1);
  CHECK(ridge.texts[1].replaced[0].layer == 1);
  CHECK(ridge.texts[1].replaced[0].fraction_linear == 1);
  CHECK(ridge.texts[1].fraction_linear == 1.0 / 3);
  CHECK(ridge.texts[0].replaced.empty());
  CHECK(ridge.fit_documents == 12);
  CHECK(ridge.fit_tokens == 360);
  CHECK(mean_nats(ridge.texts[0]) == mean_nats(ridge.texts[1]));

  // Nothing is fitted, so nothing is read.
  w.corpus.documents.clear();
  w.splits = {};
  const GenerateResult zero = run_generate(w.input(model, {1}), w.prompt, beside("zero"));
  CHECK(zero.texts[0].generation.ids == ridge.texts[0].generation.ids);
  CHECK(zero.texts[1].generation.ids != ridge.texts[0].generation.ids);
  CHECK(zero.fit_documents == 0);
}

TEST_CASE("stand-ins write what the model with its MLPs changed writes") {
  Writing w;
  const AnyTransformer<B> model = w.model();
  Writing other;  // with the same seeds
  AnyTransformer<B> changed = other.model();
  changed.mlp(0) = ZeroMlp<B>{};
  changed.mlp(2) = ZeroMlp<B>{};
  const GenerateOptions options = beside("zero");
  const GenerateResult result = run_generate(w.input(model, {0, 2}), w.prompt, options);
  CHECK(result.texts[1].generation.ids ==
        generate(w.backend, changed, w.prompt, options.generation).ids);
  CHECK(result.texts[1].fraction_linear == 2.0 / 3);
  // The losses are by the model as it is.
  CHECK(result.texts[1].nats == continuation_losses(w.backend, model, w.prompt,
                                                    result.texts[1].generation.ids, w.workspace));
  CHECK(mean_nats(result.texts[1]) > mean_nats(result.texts[0]));
}

TEST_CASE("a gate that routes all or nothing writes what the map or the model writes") {
  Writing w;
  const AnyTransformer<B> model = w.model();
  const GenerateResult map = run_generate(w.input(model, {0, 2}), w.prompt, beside("ridge"));
  const auto gated = [&](double fraction) {
    StudyInput<B> in = w.input(model, {0, 2});
    in.options.gate_fraction = fraction;
    return run_generate(in, w.prompt, beside("gate-logistic"));
  };
  const GenerateResult all = gated(1), none = gated(0), half = gated(0.5);
  CHECK(all.texts[1].name == "gate-logistic");
  CHECK(all.gate_documents == 12);
  CHECK(all.texts[1].generation.ids == map.texts[1].generation.ids);
  CHECK(none.texts[1].generation.ids == map.texts[0].generation.ids);
  CHECK(map.texts[0].generation.ids != map.texts[1].generation.ids);
  CHECK(none.texts[1].fraction_linear == 0);
  for (const ReplacedLayer& layer : half.texts[1].replaced) {
    const double routed = layer.fraction_linear * static_cast<double>(half.texts[1].positions);
    CHECK(std::abs(routed - std::round(routed)) < 1e-9);
    CHECK(routed > 0);
    CHECK(routed < 24);
  }
}

TEST_CASE("every replacement is known by the name that it has") {
  std::vector<std::string> names{"none", "zero", "mean", "ridge", "rank-1", "rank-37"};
  for (const std::string& gate : ladder_gate_names()) {
    if (gate != "random") names.push_back(gate);
  }
  for (const std::string& name : names) {
    CAPTURE(name);
    REQUIRE(replacement_named(name).has_value());
    CHECK(name_of(*replacement_named(name)) == name);
  }
  for (const char* name : {"", "random", "oracle", "rank-", "rank-0", "rank--1", "rank-2x",
                           "rank-+2", "rank-99999999999999999999", "gate", "gate-pca-3", "Ridge"}) {
    CAPTURE(name);
    CHECK(!replacement_named(name).has_value());
  }
}

TEST_CASE("a low rank loses nothing where the map has no more, and more where it has") {
  Writing w;
  const AnyTransformer<B> model = w.model();  // layer 1: a map of rank 12
  const auto ids = [&](const std::string& name) {
    return run_generate(w.input(model, {1}), w.prompt, beside(name)).texts[1].generation.ids;
  };
  const Ids whole = ids("ridge");
  CHECK(ids("rank-12") == whole);
  CHECK(ids("rank-1") != whole);
  CHECK(error_id([&] { ids("rank-13"); }) == "shape/rank");
}

TEST_CASE("gates of the ladder write: the map's text at share 1, the model's at 0") {
  Writing w;
  const AnyTransformer<B> model = w.model();
  const auto written = [&](const std::string& name, double fraction) {
    StudyInput<B> in = w.input(model, {2});
    in.options.gate_fraction = fraction;
    return run_generate(in, w.prompt, beside(name)).texts;
  };
  const GenerateResult map = run_generate(w.input(model, {2}), w.prompt, beside("ridge"));
  for (const std::string name : {"first-position", "norm-rule", "token-table", "gate-cost",
                                 "gate-delta", "gate-pca-2", "gate-bottleneck-3"}) {
    CAPTURE(name);
    const auto all = written(name, 1), none = written(name, 0);
    CHECK(all[1].name == name);
    CHECK(all[1].generation.ids == map.texts[1].generation.ids);
    CHECK(none[1].generation.ids == map.texts[0].generation.ids);
    CHECK(all[1].replaced[0].fraction_linear == 1);
    CHECK(none[1].replaced[0].fraction_linear == 0);
  }
}

TEST_CASE("without a replacement the model alone writes; its layers are not asked for") {
  Writing w;
  const AnyTransformer<B> model = w.model();
  std::vector<std::pair<std::string, TokenId>> told;
  const GenerateOptions options{.generation = {.tokens = 4}};
  const GenerateResult result =
      run_generate(w.input(model, {99}), w.prompt, options,
                   [&](const std::string& text, TokenId id) { told.emplace_back(text, id); });
  REQUIRE(result.texts.size() == 1);
  REQUIRE(told.size() == 4);
  CHECK(told[3] == std::pair(std::string("original"), result.texts[0].generation.ids[3]));
  CHECK(result.prompt == w.prompt);
  w.prompt.back() = 6;
  const GenerateResult other = run_generate(w.input(model, {}), w.prompt, options);
  CHECK(other.protocol.token_ids_hash != result.protocol.token_ids_hash);
  CHECK(error_id([&] { run_generate(w.input(model, {99}), w.prompt, beside("zero")); }) ==
        "protocol/no-such-layer");
}
