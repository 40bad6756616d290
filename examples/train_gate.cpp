// Trains a gate on one layer: where may a linear map stand in for the MLP, and what does it cost?
// Usage: train_gate [MODEL-FOLDER TEXT-FILE]
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/gate/backward.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/nn/perplexity.hpp"
#include "wanamaker/text/tokenizer.hpp"
#include "wanamaker/train/model_loss.hpp"
#include "wanamaker/train/trainer.hpp"

using namespace wanamaker;
using B = EigenBackend<float>;
using Gated = GatedMlp<TrainableLogisticGate<B>, AffineMlp<B>, AnyMlp<B>>;

int main(int argc, char** argv) try {
  const std::string folder = argc > 2 ? argv[1] : WANAMAKER_EXAMPLES_DATA "/models/books-gpt2";
  const std::string text = argc > 2 ? argv[2] : WANAMAKER_EXAMPLES_DATA "/narrative.txt";
  B backend;
  AnyTransformer<B> model = load_model(backend, folder);
  const std::vector<TokenId> ids =
      Tokenizer::from_folder(folder).encode(MappedFile(text).text(), text);
  const std::span<const TokenId> all = ids;
  const WindowSampler windows(all.first(all.size() - 400), 64, 4, 1);
  const auto held_out = all.last(128);  // never trained on
  std::cout << "perplexity as it is:  " << perplexity(backend, model, held_out) << "\n";

  // g = P(the linear map suffices), 0.5 at first; the map begins at 0; the MLP stays as it is.
  const Index layer = model.layers() - 2, d = model.config().width;
  AffineMlp<B> linear(
      Linear<B>(make_matrix(backend, d, d), WeightLayout::in_out, make_matrix(backend, 1, d)));
  TrainableLogisticGate<B> gate(backend, {std::vector<double>(static_cast<std::size_t>(d)), 0.0});
  Gated gated = Gated::soft(std::move(gate), std::move(linear), std::move(model.mlp(layer)));
  gated.set_sparsity_weight(0.02);  // what a token that skips the MLP may cost, in nats
  model.mlp(layer) = trainable_mlp<B>(std::move(gated));

  const Gradients<B> gradients(backend, model, [](const std::string& name) {
    return name.find(".gate.") == name.npos && name.find(".surrogate.") == name.npos;
  });
  Trainer<B> trainer(backend, parameters<B>(model, gradients),
                     {.steps = 30, .schedule = {.peak = 5e-3, .warm_up = 3, .steps = 30}});
  trainer.run(windows, ModelLoss(backend, model, gradients));
  std::cout << "loss, nats per token: " << trainer.curve().front().loss << " at first, "
            << trainer.curve().back().loss << " at last\n";

  // What was learned, with each token on one path only. The map has adapted to this text too,
  // so a claim needs a control (docs/training.md).
  Gated soft = std::move(*model.mlp(layer).get<Gated>());
  model.mlp(layer) = AnyMlp<B>(
      Gated::hard(std::move(soft.gate()), std::move(soft.surrogate()), std::move(soft.mlp()), 0.5));
  std::cout << "perplexity with gate: " << perplexity(backend, model, held_out)
            << ", linear: " << 100 * model.mlp(layer).get<Gated>()->fraction_linear() << " %\n";
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
