// Several threads at once: studies of different models on one pool, passes through one model, files
// and a tokenizer that are shared. Each gives what one thread gives alone.
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "study/planted_model.hpp"
#include "testing.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/io/safetensors.hpp"
#include "wanamaker/report/result_json.hpp"
#include "wanamaker/study/losses.hpp"
#include "wanamaker/study/sweep.hpp"
#include "wanamaker/text/tokenizer.hpp"

namespace {

using namespace wanamaker_test;

/// Runs all at once, each on a thread of its own.
void at_once(const std::vector<std::function<void()>>& tasks) {
  std::vector<std::thread> threads;
  for (const std::function<void()>& task : tasks) threads.emplace_back(task);
  for (std::thread& thread : threads) thread.join();
}

std::vector<AnyMlp<B>> two_mlps(PlantedModel& planted) {
  std::vector<AnyMlp<B>> mlps;
  for (int layer = 0; layer < 2; ++layer) {
    Linear<B> up = planted.linear(12, 24, 1.0);
    Linear<B> down = planted.linear(24, 12, 1.0);
    mlps.emplace_back(DenseMlp<B, GeluTanh>(std::move(up), std::move(down)));
  }
  return mlps;
}

/// A whole study of a model that `context` tells from others: its result as text.
std::string study_of(double context, ExecutorRef executor) {
  B backend(executor);
  PlantedModel planted(backend, context);
  const AnyTransformer<B> model = planted.make(two_mlps(planted));
  const TokenizedCorpus corpus = random_corpus(24, 20, PlantedModel::vocabulary);
  const Splits splits = some_splits(24);
  Workspace<B> workspace(backend);
  return json_of(run_sweep(planted_study(backend, model, corpus, splits, workspace))).dump();
}

}  // namespace

TEST_CASE("two studies of two models at once, on one pool, give what each gives alone") {
  ThreadPool pool(3);
  const std::string first = study_of(1, {}), second = study_of(0.5, {});
  CHECK(first != second);
  std::string first_again, second_again;
  at_once({[&] { first_again = study_of(1, pool); }, [&] { second_again = study_of(0.5, pool); }});
  CHECK(first_again == first);
  CHECK(second_again == second);
}

TEST_CASE("threads share one model, each with its own backend and workspace") {
  B maker;
  PlantedModel planted(maker);
  const AnyTransformer<B> model = planted.make(two_mlps(planted));
  const TokenizedCorpus corpus = random_corpus(20, 25, PlantedModel::vocabulary);
  const std::vector<Index> documents{0, 3, 7, 11, 19};
  const EvaluationSet set = make_evaluation_set(corpus, documents, {.window = 24, .stride = 12});
  const auto losses = [&](std::vector<double>& to) {
    B backend;
    Workspace<B> workspace(backend);
    to = run_losses(backend, model, set, workspace);
  };
  std::vector<double> alone, first, second;
  losses(alone);
  at_once({[&] { losses(first); }, [&] { losses(second); }});
  CHECK(first == alone);
  CHECK(second == alone);
}

TEST_CASE("threads share one open file of weights and one tokenizer") {
  const std::filesystem::path folder =
      std::filesystem::path(WANAMAKER_EXAMPLES_DATA) / "models/books-gpt2";
  const auto weights = SafetensorsFile::open(folder / "model.safetensors");
  const auto tokenizer = Tokenizer::from_folder(folder);
  const std::string text = "He opened the door, and went in. \"Who is there?\" 1234\n";
  const std::string tensor = weights.names().front();
  using Read = std::pair<std::vector<float>, std::vector<TokenId>>;
  const auto read = [&] {
    Read all{weights.read<float>(tensor), {}};
    for (int i = 0; i < 20; ++i) all.second = tokenizer.encode(text, "text");
    return all;
  };
  const Read alone = read();
  Read first, second;
  at_once({[&] { first = read(); }, [&] { second = read(); }});
  CHECK((first == alone));
  CHECK((second == alone));
}
