// Puts the linear map that fits it best in the place of one layer's MLP, and measures on text that
// the fit has not seen what that costs, beside what taking the MLP out costs.
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/nn/perplexity.hpp"
#include "wanamaker/surrogate/co_moment_collector.hpp"
#include "wanamaker/surrogate/ridge.hpp"
#include "wanamaker/text/tokenizer.hpp"

using namespace wanamaker;
using B = EigenBackend<float>;

int main() try {
  const std::string folder = WANAMAKER_EXAMPLES_DATA "/models/books-gpt2";
  const std::string text = WANAMAKER_EXAMPLES_DATA "/narrative.txt";
  B backend;
  Workspace<B> workspace(backend);
  AnyTransformer<B> model = load_model(backend, folder);
  const std::vector<TokenId> ids =
      Tokenizer::from_folder(folder).encode(MappedFile(text).text(), text);
  const std::size_t window = 256;  // the model's positions
  const std::span<const TokenId> fitted_on = std::span(ids).first(24 * window);
  const std::span<const TokenId> held_out = std::span(ids).last(window);

  // An observer of ordinary forward passes sums x·xᵀ and x·yᵀ of the MLP's inputs x and outputs y:
  // all that the fit needs, whatever the text's length.
  const Index layer = 1, width = model.config().width;
  CoMomentCollector<B> collector(backend, model.layers(), width, {.layers = {layer}});
  for (std::size_t first = 0; first < fitted_on.size(); first += window) {
    const PackedBatch<B> batch(backend, fitted_on.subspan(first, window));
    const Workspace<B>::Frame frame(workspace);
    model.forward(backend, batch, workspace.matrix(batch.rows(), width), workspace, collector);
  }
  collector.finish();
  const RidgeSurrogate linear = RidgeSurrogate::fit(collector.moments(layer));

  const double whole = perplexity(backend, model, held_out);
  model.mlp(layer) = linear.to_mlp(backend);
  const double with_map = perplexity(backend, model, held_out);
  model.mlp(layer) = ZeroMlp<B>{};
  const double without = perplexity(backend, model, held_out);
  std::cout << "the map explains " << 100 * linear.report().in_sample.r2 << " % of the variance\n"
            << "perplexity as it is: " << whole << ", with the map: " << with_map
            << ", without the MLP: " << without << "\n";
  return with_map < without ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
