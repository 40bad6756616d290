// A backend of one's own, the short way: your matrix product in the library's host backend, which
// cuts products into tiles, spreads these over your executor and brings everything else. Here it
// counts what it multiplies. A backend from nothing: tests/outsider/outsider_backend.hpp.
#include <cstdio>
#include <iterator>
#include <string>

#include "wanamaker/backend/host_backend.hpp"
#include "wanamaker/gate/cost_model.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/nn/perplexity.hpp"
#include "wanamaker/text/tokenizer.hpp"

using namespace wanamaker;

/// One serial product of a tile, C ← α·op(A)·op(B) + β·C: where your library would be called.
struct CountedLoops {
  static inline double flops = 0;

  template <class T>
  static void multiply(Operand<T> a, Operand<T> b, T alpha, T beta, MatrixView<T> c) {
    flops += 2.0 * static_cast<double>(c.rows * c.cols * a.cols());
    for (Index i = 0; i < c.rows; ++i) {
      for (Index j = 0; j < c.cols; ++j) c(i, j) = beta == T(0) ? T(0) : beta * c(i, j);
      for (Index k = 0; k < a.cols(); ++k) {
        const T factor = alpha * a(i, k);
        for (Index j = 0; j < c.cols; ++j) c(i, j) += factor * b(k, j);
      }
    }
  }
};

/// Float in computing and in storing.
struct LoopBackend : HostBackend<float, float, CountedLoops> {};
template <>
struct wanamaker::backend_traits<LoopBackend> : wanamaker::HostBackendTraits<float> {};
static_assert(check_backend<LoopBackend>());  // names in one sentence what is missing

int main() try {
  const std::string folder = WANAMAKER_EXAMPLES_DATA "/models/books-gpt2";
  LoopBackend backend;
  const AnyTransformer<LoopBackend> model = load_model(backend, folder);
  const auto ids = Tokenizer::from_folder(folder).encode("He opened the door.");
  // The figure that the library's own backend gives (quickstart.cpp).
  std::printf("whole model: perplexity %.1f\n", perplexity(backend, model, ids));

  // What it must have multiplied, by the formulas; a few attention scores are not worth a product.
  const Index tokens = std::ssize(ids);
  double mlps = 0;
  for (Index l = 0; l < model.layers(); ++l) mlps += model.mlp(l).cost(tokens).flops;
  const Index lengths[] = {tokens};
  const ModelFlops formulas = model_flops(model.config(), lengths, mlps, tokens - 1);
  const double least = formulas.total() - formulas.attention_scores;
  std::printf("%.1f MFLOP, by the formulas %.1f\n", 1e-6 * CountedLoops::flops, 1e-6 * least);
  return CountedLoops::flops >= least && CountedLoops::flops < 1.05 * least ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
