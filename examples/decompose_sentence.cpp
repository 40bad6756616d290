// What the MLP of one layer reads, word by word: how much of its input comes from the token itself,
// how much from attention and from earlier MLPs.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/residual/decomposition.hpp"
#include "wanamaker/text/tokenizer.hpp"

using namespace wanamaker;
using B = EigenBackend<float>;

/// ⟨a, b⟩ of one row of each.
double inner(const_matrix_view_t<B> a, const_matrix_view_t<B> b, Index row) {
  return std::inner_product(a.row(row), a.row(row) + a.cols, b.row(row), 0.0);
}

int main() try {
  const std::string folder = WANAMAKER_EXAMPLES_DATA "/models/books-gpt2";
  B backend;
  Workspace<B> workspace(backend);
  const AnyTransformer<B> model = load_model(backend, folder);
  const Tokenizer tokenizer = Tokenizer::from_folder(folder);
  const std::vector<TokenId> ids = tokenizer.encode("He opened the door and went in.");
  const PackedBatch<B> batch(backend, ids);
  const auto matrix = [&] { return make_matrix(backend, batch.rows(), model.config().width); };

  // It watches an ordinary forward pass and keeps what each part added to the residual stream.
  ResidualDecomposition<B> parts(backend, model);
  auto stream = matrix(), total = matrix(), share = matrix();
  parts.begin(batch);
  model.forward(backend, batch, stream, workspace, parts);

  // Seen through the norm before the MLP, the parts' contributions add up to what the MLP reads.
  const Index layer = 3;
  const std::vector<PartGroup> groups = parts_by_kind(parts.parts_before_mlp(layer));
  parts.sum_first(parts.mlp_parts(layer), total);
  parts.contribution(layer, total, total);
  for (Index i = 0; i < batch.rows(); ++i) {
    std::cout << std::setw(8) << tokenizer.token_bytes(ids[static_cast<std::size_t>(i)]) << ":";
    for (const PartGroup& group : groups) {
      parts.contribution(layer, group.parts, share);
      std::cout << "  " << group.name << " " << std::setw(3)
                << std::lround(100 * inner(share, total, i) / inner(total, total, i)) << " %";
    }
    std::cout << "\n";
  }
  // Nothing is left over: summed in the model's order, the parts are the stream, bit for bit.
  parts.sum_first(parts.stream_parts(model.layers()), total);
  return std::equal(total.data(), total.data() + total.size(), stream.data()) ? 0 : 1;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
