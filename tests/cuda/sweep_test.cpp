// A whole sweep on a device: maps, gates and losses are those of the reference.
#include "wanamaker/study/sweep.hpp"

#include <string>
#include <vector>

#include "cuda/cuda_testing.hpp"
#include "nn/tiny_models.hpp"
#include "study/planted_model.hpp"
#include "wanamaker/backend/reference.hpp"

namespace {

using namespace wanamaker_test;

SweepResult sweep_on(auto& backend, Ladder ladder) {
  using Own = std::remove_reference_t<decltype(backend)>;
  const naive::Model formulas = tiny_gpt2();
  const AnyTransformer<Own> model = ModelMaker<Own>(backend, formulas).any();
  const TokenizedCorpus corpus = random_corpus(24, 20, formulas.settings.vocabulary);
  const Splits splits = some_splits(24);
  Workspace<Own> workspace(backend);
  SweepOptions options = quick_options(ladder);
  options.rhos = {1e-4, 1e-2};
  options.ranks = {3};
  return run_sweep(StudyInput<Own>{.backend = backend,
                                   .model = model,
                                   .corpus = corpus,
                                   .splits = splits,
                                   .workspace = workspace,
                                   .rule = {.window = 20, .stride = 20},
                                   .options = options});
}

}  // namespace

TEST_CASE("a sweep on a device finds what the reference finds") {
  ReferenceBackend<double> reference;
  auto device = small_backend<CublasBackend<double>>();
  const SweepResult expected = sweep_on(reference, Ladder::full);
  const SweepResult actual = sweep_on(device, Ladder::full);
  // Roundings of sums of some hundred products, made larger by the maps' conditions of some 1e4.
  constexpr double relative = 1e-8;
  const auto close = [](double a, double e) { return std::abs(a - e) <= relative * std::abs(e); };
  CHECK(close(actual.baseline.nll_sum, expected.baseline.nll_sum));
  REQUIRE(actual.layers.size() == expected.layers.size());
  for (std::size_t l = 0; l < expected.layers.size(); ++l) {
    CHECK(close(actual.layers[l].r2, expected.layers[l].r2));
    CHECK(actual.layers[l].lambda_trials.size() == 2);
    REQUIRE(actual.layers[l].variants.size() == expected.layers[l].variants.size());
    for (std::size_t v = 0; v < expected.layers[l].variants.size(); ++v) {
      const VariantResult& own = actual.layers[l].variants[v];
      CAPTURE(own.name);
      CHECK(own.name == expected.layers[l].variants[v].name);
      CHECK(close(own.nll_sum, expected.layers[l].variants[v].nll_sum));
      CHECK(own.fraction_linear == expected.layers[l].variants[v].fraction_linear);
    }
  }
}
