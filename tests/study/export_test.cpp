// Exported models: what is read back computes what the maps computed, in every family.
#include <fstream>
#include <string>
#include <vector>

#include "planted_model.hpp"
#include "wanamaker/embed/artefact.hpp"
#include "wanamaker/gate/stock_hybrid.hpp"
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

/// Random weights and biases [inputs × outputs], in either layout.
Linear<B> random_linear(B& backend, RandomStream& random, Index inputs, Index outputs,
                        WeightLayout layout) {
  const auto matrix = [&](Index rows, Index cols) {
    std::vector<double> values;
    for (Index i = 0; i < rows * cols; ++i) values.push_back(random.normal());
    return matrix_from_host<double>(backend, values.data(), rows, cols);
  };
  auto weight = layout == WeightLayout::in_out ? matrix(inputs, outputs) : matrix(outputs, inputs);
  return {std::move(weight), layout, matrix(1, outputs)};
}

/// An affine path and `hidden` units of the family's own kind beside it.
using Hybrid = HybridMlp<AffineMlp<B>, AnyMlp<B>>;
Hybrid dense_hybrid(B& backend, Index width, Index hidden) {
  RandomStream random(9);
  Linear<B> map = random_linear(backend, random, width, width, WeightLayout::in_out);
  Linear<B> up = random_linear(backend, random, width, hidden, WeightLayout::out_in);
  Linear<B> down = random_linear(backend, random, hidden, width, WeightLayout::in_out);
  return {AffineMlp<B>(std::move(map)),
          AnyMlp<B>(DenseMlp<B, GeluTanh>(std::move(up), std::move(down)))};
}
Hybrid gated_hybrid(B& backend, Index width, Index hidden) {
  RandomStream random(9);
  Linear<B> map = random_linear(backend, random, width, width, WeightLayout::in_out);
  Linear<B> gate = random_linear(backend, random, width, hidden, WeightLayout::out_in);
  Linear<B> up = random_linear(backend, random, width, hidden, WeightLayout::in_out);
  Linear<B> down = random_linear(backend, random, hidden, width, WeightLayout::out_in);
  return {AffineMlp<B>(std::move(map)),
          AnyMlp<B>(GatedLinearUnitMlp<B, Silu>(std::move(gate), std::move(up), std::move(down)))};
}

/// Losses with the hybrid in layer 1, and of what is read back where its MLP acts as it.
void check_hybrid_export(ExportBench& bench, Hybrid hybrid) {
  const std::vector<TokenId>& ids = bench.corpus.documents.front().ids;
  act_as(bench.backend, bench.model.mlp(1), hybrid, StockScale::for_float);
  ModelConfig config = bench.model.config();
  if (give_mlps_zero_biases(bench.backend, bench.model)) config.mlp_bias = true;
  const TemporaryFolder folder;
  write_model(folder.path(), bench.backend, bench.model, config, false);
  const AnyTransformer<B> loaded = load_model(bench.backend, folder.path());
  const std::vector<double> again = losses_of(bench.backend, loaded, ids);
  bench.model.mlp(1) = AnyMlp<B>(std::move(hybrid));
  const std::vector<double> own = losses_of(bench.backend, bench.model, ids);
  CHECK(largest_difference(again, own) < 1e-11);
  bench.model.mlp(1) = AnyMlp<B>(ZeroMlp<B>{});
  CHECK(largest_difference(losses_of(bench.backend, bench.model, ids), own) > 0.01);
}

}  // namespace

TEST_CASE("an affine path and a narrow MLP are one ordinary MLP in the file, where it has room") {
  ExportBench dense(exported_shape(Family::gpt2));  // 30 hidden units, width 12
  check_hybrid_export(dense, dense_hybrid(dense.backend, 12, 6));
  ExportBench gated(exported_shape(Family::llama));  // 20
  check_hybrid_export(gated, gated_hybrid(gated.backend, 12, 8));
  const auto refusal = [](ExportBench& bench, const Hybrid& hybrid) {
    return error_id([&] { act_as(bench.backend, bench.model.mlp(0), hybrid, 1); });
  };
  CHECK(refusal(dense, dense_hybrid(dense.backend, 12, 7)) == "shape/stock-hidden");
  CHECK(refusal(gated, gated_hybrid(gated.backend, 12, 9)) == "shape/stock-hidden");
  CHECK(refusal(gated, dense_hybrid(gated.backend, 12, 2)) == "model/no-stock-form");
  CHECK(refusal(dense, gated_hybrid(dense.backend, 12, 2)) == "model/no-stock-form");
}

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

TEST_CASE("a model with gates is read back and routes what it routed, in every family") {
  for (const ModelConfig& config :
       {exported_shape(Family::gpt2), exported_shape(Family::gpt_neox, false),
        exported_shape(Family::llama)}) {
    for (const char* gate : {"gate-logistic", "gate-delta"}) {
      CAPTURE(config.name);
      CAPTURE(gate);
      ExportBench bench(config);
      const std::vector<TokenId>& ids = bench.corpus.documents.front().ids;
      const std::vector<double> original = losses_of(bench.backend, bench.model, ids);
      const TemporaryFolder folder;
      const ExportResult result = bench.run(gate, folder.path());
      CHECK(result.largest_difference < 1e-11);
      AnyTransformer<B> loaded = load_model(bench.backend, folder.path());
      CHECK(losses_of(bench.backend, loaded, ids) == original);
      install_gates(bench.backend, loaded, read_gated_layers(folder.path()));
      const CheckVectors check = read_check_vectors(folder.path());
      CHECK(losses_of(bench.backend, loaded, ids) == check.nats);
      for (const Index layer : {0, 2}) {
        // Alone, with the MLP that the folder's weights make, it passes its own check vectors.
        CHECK(load_gated_mlp(bench.backend, folder.path(), layer, 1e-11).mlp_rows() == 0);
        // Both paths were taken, and to the same tokens as in the model that was written.
        const auto& gated = *loaded.mlp(layer).get<StoredGatedMlp<B>>();
        CHECK(gated.surrogate_rows() > 0);
        CHECK(gated.mlp_rows() > 0);
        CHECK(gated.surrogate_rows() ==
              bench.model.mlp(layer).get<StoredGatedMlp<B>>()->surrogate_rows());
      }
      CHECK(loaded.mlp(1).get<StoredGatedMlp<B>>() == nullptr);
    }
  }
}

TEST_CASE("what files have no form for is refused before anything is written") {
  ExportBench bench(exported_shape(Family::gpt2));
  const TemporaryFolder folder;
  CHECK(error_id([&] { bench.run("gate-bottleneck-3", folder.path()); }) == "protocol/not-stock");
  CHECK(error_id([&] { bench.run("token-table", folder.path()); }) == "protocol/not-stock");
  ModelConfig narrow = exported_shape(Family::gpt2);
  narrow.hidden = 23;
  ExportBench narrow_bench(narrow);
  CHECK(error_id([&] { narrow_bench.run("ridge", folder.path()); }) == "shape/stock-hidden");
  for (const auto& [layer, width] : {std::pair<Index, Index>{3, 12}, {1, 11}}) {
    const auto size = static_cast<std::size_t>(width);
    const GatedLayer foreign{
        layer,
        {std::vector<double>(size), 0},
        {width, width, std::vector<double>(size * size), std::vector<double>(size)}};
    CHECK(error_id([&, own = foreign] { install_gates(bench.backend, bench.model, {own}); }) ==
          "gate/malformed-file");
  }
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
