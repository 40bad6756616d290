// Last words of passages: accuracy and perplexity against logits looked at one passage at a time.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "planted_model.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/nn/mlp.hpp"
#include "wanamaker/study/perplexity.hpp"

using namespace wanamaker_test;

namespace {

/// Logits that follow a sequence, as numbers.
std::vector<double> logits_after(B& backend, const AnyTransformer<B>& model,
                                 const std::vector<TokenId>& ids) {
  Workspace<B> workspace(backend);
  const typename Workspace<B>::Frame frame(workspace);
  const std::vector<Index> offsets{0, static_cast<Index>(ids.size())};
  const PackedBatch<B> batch(backend, ids, offsets);
  const auto residual = workspace.matrix(batch.rows(), model.config().width);
  const auto logits = workspace.matrix(batch.rows(), model.logit_columns());
  model.embed(backend, batch, residual);
  forward_blocks(backend, model, MlpOverrides<B>{}, 0, model.layers(), batch, residual, workspace);
  model.logits(backend, residual, logits, workspace);
  const double* last = logits.row(batch.rows() - 1);
  return {last, last + model.config().vocabulary};
}

double loss_of(const std::vector<double>& logits, TokenId target) {
  double sum = 0;
  for (const double x : logits) sum += std::exp(x);
  return std::log(sum) - logits[static_cast<std::size_t>(target)];
}

}  // namespace

TEST_CASE("last words: all of a word's tokens must be the model's choice, losses are summed") {
  B backend;
  PlantedModel planted(backend);
  std::vector<AnyMlp<B>> mlps;
  for (int layer = 0; layer < 2; ++layer) mlps.emplace_back(ZeroMlp<B>{});
  const AnyTransformer<B> model = planted.make(std::move(mlps));
  RandomStream random(91);
  TokenizedCorpus corpus;
  std::vector<Index> targets;
  double hits = 0, nll = 0;
  constexpr std::size_t passages = 30;
  for (std::size_t p = 0; p < passages; ++p) {
    std::vector<TokenId> ids;
    for (std::uint64_t n = 3 + random.below(8); n-- > 0;) {
      ids.push_back(static_cast<TokenId>(random.below(PlantedModel::vocabulary)));
    }
    targets.push_back(1 + static_cast<Index>(random.below(3)));
    bool hit = true;
    for (Index t = 0; t < targets.back(); ++t) {
      const std::vector<double> logits = logits_after(backend, model, ids);
      const auto top = std::max_element(logits.begin(), logits.end()) - logits.begin();
      // Mostly the model's choice, now and then its neighbour.
      const auto next =
          static_cast<TokenId>(random.below(4) == 0 ? (top + 1) % PlantedModel::vocabulary : top);
      hit = hit && next == static_cast<TokenId>(top);
      nll += loss_of(logits, next);
      ids.push_back(next);
    }
    hits += hit ? 1 : 0;
    corpus.documents.push_back({.ids = ids});
  }
  REQUIRE(hits > 3);
  REQUIRE(hits < passages - 3);
  std::vector<Index> documents(passages);
  for (std::size_t i = 0; i < passages; ++i) documents[i] = static_cast<Index>(i);
  const EvaluationSet set =
      make_evaluation_set(corpus, documents, {.window = 20, .stride = 20}, 50);
  Workspace<B> workspace(backend);
  const PerplexityResult result =
      measure_last_words(backend, model, corpus, targets, set, Protocol{}, workspace);
  REQUIRE(result.last_words.has_value());
  CHECK(result.last_words->passages == static_cast<Index>(passages));
  CHECK(result.last_words->accuracy == hits / passages);
  CHECK(all_close(std::vector<double>{std::log(result.last_words->perplexity)},
                  std::vector<double>{nll / passages}, 1e-12, 0));
  // Besides, all tokens are measured as ever.
  const PerplexityResult plain =
      measure_perplexity(backend, model, corpus, set, Protocol{}, workspace);
  CHECK(plain.nll_sum == result.nll_sum);
  CHECK(!plain.last_words.has_value());
  const EvaluationSet cut =
      make_evaluation_set(corpus, documents, {.window = 20, .stride = 20, .truncation = 2});
  CHECK(error_id([&] {
          measure_last_words(backend, model, corpus, targets, cut, Protocol{}, workspace);
        }) == "protocol/last-word-not-scored");
}
