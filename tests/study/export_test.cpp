// Exported models: what is read back computes what the maps computed, in every family.
#include <fstream>
#include <string>
#include <vector>

#include "planted_model.hpp"
#include "wanamaker/study/export_model.hpp"
#include "wanamaker/train/initialise.hpp"
#include "wanamaker/train/model_shape.hpp"

namespace {

using namespace wanamaker_test;

ModelConfig exported_shape(Family family, bool is_parallel = true) {
  return model_config({.family = family,
                       .vocabulary = 40,
                       .width = 12,
                       .layers = 3,
                       .heads = 2,
                       .positions = 32,
                       .hidden = family == Family::llama ? 20 : 30,
                       .parallel_residual = is_parallel});
}

/// A model with random documents and splits of them.
struct ExportBench {
  explicit ExportBench(const ModelConfig& config) : model(make_model(backend, config)) {
    initialise(backend, model, 3);
    // Larger than at the start of training: MLPs that matter.
    for (const auto& p : parameters<B>(model)) {
      for (Index i = 0; i < p.value.size(); ++i) p.value.data[i] *= p.decays ? 12 : 1;
    }
  }

  ExportResult run(const std::string& replacement, const std::filesystem::path& folder,
                   bool as_float16 = false) {
    SweepOptions options = quick_options(Ladder::surrogates);
    options.layers = {0, 2};
    const StudyInput<B> input{
        backend, model, corpus, splits, workspace, {.window = 16, .stride = 16}, {}, options};
    return run_export(input, model,
                      {.replacement = *replacement_named(replacement), .as_float16 = as_float16},
                      folder);
  }

  B backend{};
  AnyTransformer<B> model;
  Workspace<B> workspace{backend};
  TokenizedCorpus corpus = random_corpus(12, 24, 40);
  Splits splits = some_splits(12);
};

std::vector<double> losses_of(B& backend, const AnyTransformer<B>& model,
                              const std::vector<TokenId>& ids) {
  Workspace<B> workspace(backend);
  return sequence_losses(backend, model, std::span<const TokenId>(ids), {}, workspace);
}

}  // namespace

TEST_CASE("an exported model of any family computes what the maps in it compute") {
  for (const ModelConfig& config :
       {exported_shape(Family::gpt2), exported_shape(Family::gpt_neox),
        exported_shape(Family::gpt_neox, false), exported_shape(Family::llama)}) {
    for (const char* replacement : {"ridge", "rank-2", "mean", "zero"}) {
      CAPTURE(config.name);
      CAPTURE(replacement);
      ExportBench bench(config);
      const std::vector<TokenId>& ids = bench.corpus.documents.front().ids;
      const std::vector<double> original = losses_of(bench.backend, bench.model, ids);
      const TemporaryFolder folder;
      const ExportResult result = bench.run(replacement, folder.path());
      CHECK(result.layers == std::vector<Index>{0, 2});
      CHECK(result.check.ids == ids);
      // Exact but for rounding: some ε of the activations' size, which is about 10.
      CHECK(result.largest_difference < 1e-11);
      const AnyTransformer<B> loaded = load_model(bench.backend, folder.path());
      const std::vector<double> again = losses_of(bench.backend, loaded, ids);
      CHECK(largest_difference(again, result.check.nats) < 1e-11);
      CHECK(largest_difference(original, result.check.nats) > 0.01);
      const CheckVectors check = read_check_vectors(folder.path());
      CHECK(check.ids == result.check.ids);
      CHECK(check.nats == result.check.nats);
      CHECK(loaded.parameters() >= bench.model.parameters() * 0.999);
    }
  }
}

TEST_CASE("check vectors are of the weights in the file, rounded or not") {
  for (const Family family : {Family::gpt2, Family::llama}) {
    ExportBench bench(exported_shape(family));
    const TemporaryFolder folder;
    const ExportResult result = bench.run("ridge", folder.path(), true);
    CHECK(result.scale == StockScale::for_half);
    CHECK(result.largest_difference > 1e-9);
    const AnyTransformer<B> loaded = load_model(bench.backend, folder.path());
    const std::vector<double> again = losses_of(bench.backend, loaded, result.check.ids);
    CHECK(largest_difference(again, result.check.nats) < 1e-11);
  }
}

TEST_CASE("what stock runtimes cannot have is refused before anything is written") {
  ExportBench bench(exported_shape(Family::gpt2));
  const TemporaryFolder folder;
  CHECK(error_id([&] { bench.run("gate-logistic", folder.path()); }) == "protocol/not-stock");
  ModelConfig narrow = exported_shape(Family::gpt2);
  narrow.hidden = 23;
  ExportBench narrow_bench(narrow);
  CHECK(error_id([&] { narrow_bench.run("ridge", folder.path()); }) == "shape/stock-hidden");
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("check vectors that are none are refused") {
  const TemporaryFolder folder;
  const auto id = [&](const std::string& text) {
    std::ofstream(folder / check_vectors_file) << text;
    return error_id([&] { read_check_vectors(folder.path()); });
  };
  const std::string head = R"({"format": "wanamaker/check/1", )";
  CHECK(id(head + R"("ids": [1, 2], "nats": [0.5]})") == "");
  for (const char* rest :
       {R"("ids": [1, 2], "nats": []})", R"("ids": [1], "nats": []})", R"("ids": [1, 2]})",
        R"("ids": [1, -2], "nats": [0.5]})", R"("ids": [1, 4294967296], "nats": [0.5]})",
        R"("ids": [1, 2], "nats": ["a"]})", R"("ids": [1, 2.5], "nats": [0.5]})"}) {
    CAPTURE(rest);
    CHECK(id(head + rest) == "check/malformed");
  }
  CHECK(id(R"([1, 2])") == "check/malformed");
  CHECK(id(R"({"ids": [1, 2], "nats": [0.5]})") == "check/malformed");
  CHECK(id("{") == "json/syntax");
}
