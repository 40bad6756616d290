// When does a bottleneck gate begin to fit noise? Loss and AUC on held-out documents against steps
// of training, for one layer of a model: what BottleneckOptions::max_iterations is chosen by.
//   bottleneck_steps MODEL_FOLDER WIKITEXT [LAYER]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <vector>

#include "wanamaker/backend/blas.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/gate/bottleneck_training.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/stats/auc.hpp"
#include "wanamaker/study/layer_delta.hpp"
#include "wanamaker/study/layer_study.hpp"
#include "wanamaker/text/corpus.hpp"
#include "wanamaker/text/tokenizer.hpp"

namespace {

using namespace wanamaker;
using B = BlasBackend<float>;

// Articles in their order: 2 to fit the map, 3 for gates, 1 between, 4 held out.
Splits some_splits() {
  Splits splits;
  splits.fit.documents = {0, 1};
  splits.gate.documents = {2, 3, 4};
  splits.select.documents = {5};
  splits.report.documents = {6, 7, 8, 9};
  return Splits::checked(splits);
}

struct HeldOut {
  double loss = 0;  // nats a label
  double auc = 0;
};

HeldOut judge(B& backend, const BottleneckScore& score, const GateData<B>& data,
              std::span<const std::uint8_t> labels) {
  std::vector<double> logits(labels.size(), score.bias);
  for (std::size_t k = 0; k < score.hidden.size(); ++k) {
    const auto unit = detail::linear_scores<B>(backend, score.hidden[k], data.inputs.view());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      logits[i] += score.out[k] * std::max(0.0, unit[i]);
    }
  }
  HeldOut found{.auc = area_under_roc(logits, labels)->auc};
  for (std::size_t i = 0; i < logits.size(); ++i) {
    found.loss += std::log1p(std::exp(labels[i] == 1 ? -logits[i] : logits[i]));
  }
  found.loss /= static_cast<double>(logits.size());
  return found;
}

void print_steps(B& backend, const GateData<B>& gate, const GateData<B>& held_out) {
  const DeltaLabels own = labels_at_most(gate.delta, 0);
  const DeltaLabels unseen = labels_at_most(held_out.delta, 0);
  const double n = static_cast<double>(own.labels.size());
  std::printf("%.0f gate positions, %zu held out\nunits steps fitted held-out AUC\n", n,
              unseen.labels.size());
  for (const Index units : {1, 3, 6}) {
    for (const Index steps : {5, 10, 20, 40, 60, 120}) {
      const auto fit = fit_bottleneck_gate(backend, gate.inputs.view(), own.labels, {},
                                           {.units = units, .max_iterations = steps});
      const HeldOut found = judge(backend, fit.gate.bottleneck_score(), held_out, unseen.labels);
      std::printf("%5td %5td %6.4f %8.4f %.4f\n", units, steps, fit.report.objective / n,
                  found.loss, found.auc);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "bottleneck_steps MODEL_FOLDER WIKITEXT [LAYER]\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const Index layer = argc > 3 ? std::atol(argv[3]) : 3;
  ThreadPool pool(2);
  B backend(pool);
  const AnyTransformer<B> model = load_model(backend, folder);
  const Tokenizer tokenizer = Tokenizer::from_folder(folder);
  const TokenizedCorpus corpus =
      tokenize(read_corpus(std::filesystem::path(argv[2])), &tokenizer, pool);
  const Splits splits = some_splits();
  Workspace<B> workspace(backend);
  const Index window = model.config().positions;
  const StudyInput<B> input{.backend = backend,
                            .model = model,
                            .corpus = corpus,
                            .splits = splits,
                            .workspace = workspace,
                            .rule = {.window = window, .stride = window},
                            .executor = pool};
  LayerStudy<B> study(input, {});
  study.walk_to(layer);
  const SweepContext<B> context = study.context();
  std::vector<LambdaTrial> trials;
  const AnyMlp<B> map(choose_ridge(context, study.moments(layer), trials).fit.to_mlp(backend));
  const Index width = model.config().width;
  const GateData<B> gate =
      collect_gate_data_here(backend, *context.gate->pass, map, width, workspace);
  const GateData<B> held_out =
      collect_gate_data_here(backend, *context.report->pass, map, width, workspace);
  print_steps(backend, gate, held_out);
  return 0;
}
