// Reads a model with gates, as `study export --replace gate-logistic` writes it, and lets them
// decide at every word: in brackets, those that a linear map served in the place of a layer's MLP.
// Usage: route_at_run_time FOLDER (docs/gates.md has the layout of its files)
#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/gate/gated_layers.hpp"
#include "wanamaker/io/check_vectors.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/text/tokenizer.hpp"

using namespace wanamaker;
using B = EigenBackend<float>;

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: route_at_run_time FOLDER\n";
    return 2;
  }
  const std::string folder = argv[1];
  B backend;
  Workspace<B> workspace(backend);
  AnyTransformer<B> model = load_model(backend, folder);
  const Tokenizer tokenizer = Tokenizer::from_folder(folder);
  // Ids, and the losses that the study measured with the very model that it wrote.
  const CheckVectors check = read_check_vectors(folder);

  // The folder's model is whole; a gate goes before each MLP that the file of gates names.
  for (const GatedLayer& layer : read_gated_layers(folder)) {
    AnyMlp<B>& mlp = model.mlp(layer.layer);
    StoredGatedMlp<B> policy = gated_mlp(backend, layer, std::move(mlp));
    policy.set_listener([&](Index number, ConstVectorView<TokenId> to_map) {
      std::cout << "layer " << number << ":";
      for (Index i = 0; i < to_map.size; ++i) {
        const auto word = tokenizer.token_bytes(check.ids[static_cast<std::size_t>(i)]);
        std::cout << (to_map[i] == 1 ? "[" : "") << word << (to_map[i] == 1 ? "]" : "");
      }
      std::cout << "\n";
    });
    mlp = AnyMlp<B>(std::move(policy));
  }

  const PackedBatch<B> batch(backend, check.ids);
  const matrix_view_t<B> stream = workspace.matrix(batch.rows(), model.config().width);
  model.forward(backend, batch, stream, workspace);
  const double difference = largest_difference(
      model.token_losses(backend, stream, all_next_tokens(batch), workspace), check.nats);
  std::cout << "largest difference from the study's losses: " << difference << " nats\n";
  return difference < 1e-3 ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
