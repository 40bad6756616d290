// Training on a device: gradients, and steps of AdamW with a checkpoint between them, are those of
// the reference.
#include <cmath>
#include <string>
#include <vector>

#include "cuda/cuda_testing.hpp"
#include "nn/tiny_models.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/train/batches.hpp"
#include "wanamaker/train/model_loss.hpp"
#include "wanamaker/train/trainer.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

constexpr Index training_steps = 4;

/// All values that training changed, and the losses on the way.
struct Trained {
  std::vector<double> values;
  std::vector<double> losses;
};

/// `training_steps` steps, interrupted after two.
template <class B>
Trained train(B& backend) {
  const naive::Model formulas = tiny_llama(true, 4);
  AnyTransformer<B> model = ModelMaker<B>(backend, formulas).any();
  const Gradients<B> gradients(backend, model);
  const auto drawn = random_sequences(formulas.settings.vocabulary, {400}).front();
  const std::vector<TokenId> tokens(drawn.begin(), drawn.end());
  const WindowSampler sampler(tokens, 12, 3, 21);
  const TemporaryFolder folder;
  for (const Index steps : {Index{2}, training_steps}) {
    const TrainerOptions options{.steps = steps,
                                 .optimiser = {.decay = 0.01},
                                 .schedule = {.peak = 0.01, .warm_up = 1, .steps = training_steps},
                                 .accumulation = 2};
    Trainer<B> trainer(backend, parameters(model, gradients), options);
    trainer.resume({folder.path(), sampler.hash()});
    trainer.run(sampler, ModelLoss<B, AnyTransformer<B>>(backend, model, gradients));
    if (steps < training_steps) continue;
    Trained trained;
    for (const auto& point : trainer.curve()) trained.losses.push_back(point.loss);
    for (const auto& p : parameters(model, gradients)) {
      std::vector<scalar_t<B>> own(static_cast<std::size_t>(p.value.size()));
      backend.copy_to_host(p.value.data, p.value.size(), own.data());
      trained.values.insert(trained.values.end(), own.begin(), own.end());
    }
    return trained;
  }
  return {};
}

}  // namespace

TEST_CASE("a model trained on a device is the reference's") {
  ReferenceBackend<double> reference;
  auto device = small_backend<CublasBackend<double>>();
  const Trained expected = train(reference);
  const Trained actual = train(device);
  CHECK(expected.losses.size() == static_cast<std::size_t>(training_steps));
  // Gradients differ by roundings, some 1e-13 of the largest; a step of AdamW divides by their
  // size, so that those of 1e-4 of the largest differ by some 1e-9 of a step of 1e-2.
  CHECK(all_close(actual.losses, expected.losses, 1e-9, 0.0));
  CHECK(all_close(actual.values, expected.values, 0.0, 1e-9));
}
