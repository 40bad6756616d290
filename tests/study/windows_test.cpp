// Windows and batches: what is run and what is scored.
#include "wanamaker/study/windows.hpp"

#include <algorithm>
#include <set>

#include "testing.hpp"
#include "wanamaker/core/random.hpp"

namespace {

using namespace wanamaker;
using wanamaker_test::error_id;

TokenizedCorpus corpus_of(const std::vector<Index>& lengths) {
  TokenizedCorpus corpus;
  TokenId next = 0;
  for (const Index length : lengths) {
    TokenizedDocument document;
    for (Index i = 0; i < length; ++i) document.ids.push_back(next++);
    corpus.documents.push_back(std::move(document));
  }
  return corpus;
}

std::vector<Index> all_documents(const TokenizedCorpus& corpus) {
  std::vector<Index> numbers;
  for (std::size_t i = 0; i < corpus.documents.size(); ++i) {
    numbers.push_back(static_cast<Index>(i));
  }
  return numbers;
}

TEST_CASE("windows by hand") {
  CHECK(windows_of(10, {.window = 4, .stride = 4}) ==
        std::vector<Window>{{0, 4, 1}, {4, 4, 1}, {8, 2, 1}});
  CHECK(windows_of(10, {.window = 4, .stride = 2}) ==
        std::vector<Window>{{0, 4, 1}, {2, 4, 2}, {4, 4, 2}, {6, 4, 2}});
  CHECK(windows_of(5, {.window = 4, .stride = 3, .bos = TokenId{9}}) ==
        std::vector<Window>{{0, 3, 0}, {3, 2, 0}});
  CHECK(windows_of(10, {.window = 8, .stride = 8, .truncation = 3}) ==
        std::vector<Window>{{0, 3, 1}});
  CHECK(windows_of(0, {.window = 4, .stride = 4}).empty());
}

TEST_CASE("every token is scored at most once, and with overlap or BOS all but the first are") {
  RandomStream random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const Index tokens = static_cast<Index>(random.below(200));
    const bool bos = random.below(2) == 1;
    const Index window = 2 + static_cast<Index>(random.below(40));
    const Index room = window - (bos ? 1 : 0);
    const Index stride = 1 + static_cast<Index>(random.below(static_cast<std::uint64_t>(room)));
    WindowRule rule{.window = window, .stride = stride};
    if (bos) rule.bos = TokenId{7};
    std::vector<int> scored(static_cast<std::size_t>(tokens), 0);
    for (const Window& w : windows_of(tokens, rule)) {
      CHECK(w.length >= 1);
      CHECK(w.length <= room);
      CHECK(w.begin + w.length <= tokens);
      CHECK(w.first_scored >= (bos ? 0 : 1));
      for (Index i = w.first_scored; i < w.length; ++i) {
        ++scored[static_cast<std::size_t>(w.begin + i)];
      }
    }
    for (std::size_t i = 0; i < scored.size(); ++i) {
      const bool opens_window =
          !bos && static_cast<Index>(i) % stride == 0 && (stride == window || i == 0);
      CHECK(scored[i] == (opens_window ? 0 : 1));
    }
  }
}

TEST_CASE("batches hold each scored token once, in document order, predicted from its left") {
  const TokenizedCorpus corpus = corpus_of({1, 5, 17, 2, 40});
  for (const bool bos : {false, true}) {
    WindowRule rule{.window = 8, .stride = 5};
    if (bos) rule.bos = TokenId{1000};
    const EvaluationSet set = make_evaluation_set(corpus, all_documents(corpus), rule, 16);
    Index losses = 0;
    std::vector<TokenId> targets;
    for (const EvaluationBatch& batch : set.batches) {
      CHECK(batch.first_loss == losses);
      CHECK(static_cast<Index>(batch.tokens.size()) <= 16 + 8);
      for (std::size_t i = 0; i < batch.scored.rows.size(); ++i) {
        const auto row = static_cast<std::size_t>(batch.scored.rows[i]);
        REQUIRE(row + 1 < batch.tokens.size());
        CHECK(batch.tokens[row + 1] == batch.scored.targets[i]);
        // The row before lies in the same window.
        CHECK(!std::binary_search(batch.offsets.begin(), batch.offsets.end(),
                                  static_cast<Index>(row + 1)));
        targets.push_back(batch.scored.targets[i]);
      }
      losses += static_cast<Index>(batch.scored.rows.size());
    }
    CHECK(losses == set.scored());
    CHECK(std::is_sorted(targets.begin(), targets.end()));
    CHECK(std::set<TokenId>(targets.begin(), targets.end()).size() == targets.size());
    CHECK(losses == (bos ? 65 : 60));
  }
}

TEST_CASE("the hash tells token ids, borders and scored positions apart") {
  const TokenizedCorpus corpus = corpus_of({5, 17});
  const auto documents = all_documents(corpus);
  const std::string base =
      token_ids_hash(make_evaluation_set(corpus, documents, {.window = 8, .stride = 8}));
  CHECK(base == token_ids_hash(make_evaluation_set(corpus, documents, {.window = 8, .stride = 8})));
  CHECK(base != token_ids_hash(make_evaluation_set(corpus, documents, {.window = 8, .stride = 4})));
  CHECK(base != token_ids_hash(make_evaluation_set(corpus, documents, {.window = 9, .stride = 9})));
  CHECK(base != token_ids_hash(make_evaluation_set(corpus_of({6, 16}), documents,
                                                   {.window = 8, .stride = 8})));
}

TEST_CASE("impossible rules and empty texts are refused") {
  CHECK(error_id([] { windows_of(5, {.window = 1, .stride = 1}); }) == "protocol/window");
  CHECK(error_id([] { windows_of(5, {.window = 4, .stride = 0}); }) == "protocol/window");
  CHECK(error_id([] { windows_of(5, {.window = 4, .stride = 5}); }) == "protocol/window");
  CHECK(error_id([] { windows_of(5, {.window = 4, .stride = 4, .bos = TokenId{0}}); }) ==
        "protocol/window");
  const TokenizedCorpus single = corpus_of({1, 1});
  CHECK(error_id([&] {
          make_evaluation_set(single, all_documents(single), {.window = 4, .stride = 4});
        }) == "data/nothing-to-score");
}

TEST_CASE("ten thousand documents of one token: scored after a BOS token, else nothing to add") {
  const std::vector<Index> ones(10000, 1);
  const TokenizedCorpus corpus = corpus_of(ones);
  const EvaluationSet set =
      make_evaluation_set(corpus, all_documents(corpus), {.window = 4, .stride = 3, .bos = 7});
  CHECK(set.scored() == 10000);
  CHECK(set.document_offsets.size() == 10001);
  for (const EvaluationBatch& batch : set.batches) {
    CHECK(batch.tokens.size() <= 2 * 2048);  // a BOS token for each
    for (const TokenId row : batch.scored.rows) {
      if (batch.tokens[static_cast<std::size_t>(row)] != 7) FAIL("row " << row << " is no BOS");
    }
  }
  // Beside one that has something to predict they change nothing.
  std::vector<Index> mixed = ones;
  mixed.push_back(5);
  const TokenizedCorpus with_one = corpus_of(mixed);
  const EvaluationSet scored =
      make_evaluation_set(with_one, all_documents(with_one), {.window = 4, .stride = 2});
  CHECK(scored.scored() == 4);
  CHECK(scored.batches.back().scored.targets == std::vector<TokenId>{10001, 10002, 10003, 10004});
}

TEST_CASE("a document of two million tokens: each but the first is scored once, in batches") {
  constexpr Index length = 2000000;
  const TokenizedCorpus corpus = corpus_of({length});
  const EvaluationSet set =
      make_evaluation_set(corpus, all_documents(corpus), {.window = 1024, .stride = 512});
  CHECK(set.scored() == length - 1);
  TokenId next = 1;
  for (const EvaluationBatch& batch : set.batches) {
    if (batch.tokens.size() > 2048) FAIL("a batch of " << batch.tokens.size() << " tokens");
    for (std::size_t i = 0; i < batch.scored.targets.size(); ++i) {
      const auto row = static_cast<std::size_t>(batch.scored.rows[i]);
      const bool fits = batch.scored.targets[i] == next && batch.tokens[row] == next - 1;
      if (!fits) FAIL("token " << next << " is missing, or not predicted from the one before");
      ++next;
    }
  }
  CHECK(next == length);
}

}  // namespace
