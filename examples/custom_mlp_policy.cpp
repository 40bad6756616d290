// An MLP policy of one's own in a model that was read from files: the model's MLP, but silent at
// the first position of every sequence. How much of what later tokens read is made there?
#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/nn/perplexity.hpp"
#include "wanamaker/text/tokenizer.hpp"

using namespace wanamaker;
using B = EigenBackend<float>;

/// A policy has forward and cost (docs/policies/mlp.md). `rows` says where the rows come from; a
/// policy that does not care may have forward(x, y) alone.
struct SilentAtFirst {
  AnyMlp<B> mlp;

  void forward(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows, matrix_view_t<B> y,
               Workspace<B>& workspace) const {
    mlp.forward(backend, x, rows, y, workspace);
    for (Index i = 0; i < y.rows; ++i) {
      if (rows.positions[i] == 0) std::fill_n(y.row(i), y.cols, 0.0f);
    }
  }
  MlpCost cost(Index tokens) const { return mlp.cost(tokens); }
};
static_assert(check_mlp_policy<SilentAtFirst, B>());  // names in one sentence what is missing

int main() try {
  const std::string folder = WANAMAKER_EXAMPLES_DATA "/models/books-gpt2";
  B backend;
  AnyTransformer<B> model = load_model(backend, folder);
  const std::vector<TokenId> ids = Tokenizer::from_folder(folder).encode(
      "The old man looked at the sea, and then he said that he would go home.");
  const double whole = perplexity(backend, model, ids);
  for (Index layer = 0; layer < model.layers(); ++layer) {
    model.mlp(layer) = AnyMlp<B>(SilentAtFirst{std::move(model.mlp(layer))});
    const double silenced = perplexity(backend, model, ids);
    // Back again: the policy gives up the MLP that it was built around.
    AnyMlp<B> own = std::move(model.mlp(layer).get<SilentAtFirst>()->mlp);
    model.mlp(layer) = std::move(own);
    std::cout << "layer " << layer << ": perplexity " << whole << " becomes " << silenced << "\n";
    if (silenced == whole) return 1;  // later tokens attend to the first: something must change
  }
  return perplexity(backend, model, ids) == whole ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
