// What is planned beside what is done: token passes counted in the MLPs of a real sweep.
#include "wanamaker/study/plan_work.hpp"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "planted_model.hpp"
#include "wanamaker/study/gate_curve.hpp"
#include "wanamaker/study/sweep.hpp"

namespace {

using namespace wanamaker_test;

// Counts the rows that it is given, and is not linear.
struct CountingMlp {
  double* rows;

  void forward(ConstMatrixView<double> x, MatrixView<double> y) const {
    *rows += static_cast<double>(x.rows);
    for (Index i = 0; i < x.rows; ++i) {
      for (Index j = 0; j < x.cols; ++j) y(i, j) = std::tanh(x(i, j) + 0.5 * x(i, 0));
    }
  }
  MlpCost cost(Index) const { return {1, 1, 1}; }
};

constexpr Index planned_layers = 3, planned_documents = 40, planned_length = 24;

/// Rows that the MLPs see while `run` runs on a study.
template <class Run>
double counted(const SweepOptions& options, Run&& run) {
  B backend;
  PlantedModel planted(backend);
  double rows = 0;
  std::vector<AnyMlp<B>> mlps;
  for (Index l = 0; l < planned_layers; ++l) mlps.emplace_back(CountingMlp{&rows});
  const AnyTransformer<B> model = planted.make(std::move(mlps));
  const TokenizedCorpus corpus =
      random_corpus(planned_documents, planned_length, PlantedModel::vocabulary);
  Workspace<B> workspace(backend);
  const Splits splits = some_splits(planned_documents);
  StudyInput<B> input = planted_study(backend, model, corpus, splits, workspace, planned_length);
  input.options = options;
  run(input);
  return rows;
}

PlannedStudy planned(const SweepOptions& options) {
  const double tokens = planned_length * planned_documents / 4;
  PlannedStudy study{.model = {.width = PlantedModel::width, .layers = planned_layers},
                     .tokens = {tokens, tokens, tokens, tokens},
                     .window = planned_length,
                     .layers = options.layers,
                     .ladder = options.ladder,
                     .rhos = static_cast<Index>(options.rhos.size())};
  if (study.layers.empty()) study.layers = {0, 1, 2};
  return study;
}

}  // namespace

TEST_CASE("a sweep runs the token passes that are planned for it") {
  for (const Ladder ladder : {Ladder::surrogates, Ladder::quick, Ladder::full}) {
    for (const std::vector<double>& rhos :
         std::array<std::vector<double>, 2>{{{1e-6}, {1e-6, 1e-3, 1}}}) {
      for (const std::vector<Index>& chosen :
           std::array<std::vector<Index>, 3>{{{}, {1}, {0, 2}}}) {
        SweepOptions options = quick_options(ladder);
        options.rhos = rhos;
        options.layers = chosen;
        CAPTURE(static_cast<int>(ladder));
        CAPTURE(rhos.size());
        CAPTURE(chosen.size());
        CHECK(sweep_work(planned(options)).passes.block_tokens ==
              counted(options, [](const auto& input) { run_sweep(input); }));
      }
    }
  }
}

TEST_CASE(
    "curves run at most the token passes that are planned, and all where no share is missed") {
  for (const std::vector<double>& rhos :
       std::array<std::vector<double>, 2>{{{1e-6}, {1e-6, 1e-3, 1}}}) {
    SweepOptions options = quick_options(Ladder::quick);
    options.rhos = rhos;
    const auto run = [&](const std::vector<std::string>& gates) {
      return counted(options, [&](const auto& input) {
        run_gate_curve(input, {.fractions = {0.25, 0.75}, .gates = gates});
      });
    };
    // Scores of these have no ties.
    CHECK(run({"random", "gate-delta"}) ==
          gate_curve_work(planned(options), 2, 2).passes.block_tokens);
    // The first position is one of 24: neither share can be met.
    CHECK(run({"first-position"}) <= gate_curve_work(planned(options), 1, 2).passes.block_tokens);
  }
}

TEST_CASE("a model's cost from its shape") {
  // GPT-2 124M: 85 million parameters in blocks, 38.6 in the embedding, 0.8 in positions (Radford
  // et al. 2019; norms and biases, 0.1 %, are left out).
  const ModelConfig gpt2{.family = Family::gpt2,
                         .vocabulary = 50257,
                         .width = 768,
                         .layers = 12,
                         .heads = 12,
                         .key_heads = 12,
                         .head_width = 64,
                         .hidden = 3072,
                         .positions = 1024,
                         .tied_head = true};
  const ModelCost cost = model_cost(gpt2, 1024);
  CHECK(cost.parameters == doctest::Approx(124.4e6).epsilon(0.002));
  CHECK(cost.block_parameters == 12 * 768.0 * 768.0);
  CHECK(cost.head_flops == 2 * 768.0 * 50257.0);
  // 2 a weight, and 4·d for each of the (1024 + 1)/2 pairs that a token has on average.
  CHECK(cost.block_flops == doctest::Approx(2 * 12 * 768.0 * 768.0 + 4 * 768 * 512.5));
}

TEST_CASE("more devices share products and streams, not weights") {
  SweepOptions options;
  options.layers = {0, 1, 2};
  PlannedStudy study = planned(options);
  study.model.heads = study.model.key_heads = 2;
  study.model.head_width = 6;
  study.model.hidden = 24;
  study.model.vocabulary = 32;
  const MachineRates one{1e12, 1e11, 1e11, 1e9, 1};
  MachineRates four = one;
  four.count = 4;
  const PlannedWork work = sweep_work(study);
  const WorkCost a = work_cost(study, work, one, 4, 4, 64);
  const WorkCost b = work_cost(study, work, four, 4, 4, 64);
  CHECK(b.product_seconds == doctest::Approx(a.product_seconds / 4));
  CHECK(b.stream_bytes == doctest::Approx(a.stream_bytes / 4));
  CHECK(b.weight_bytes == a.weight_bytes);
  CHECK(a.flops == b.flops);
  CHECK(a.seconds() > 0);
}
