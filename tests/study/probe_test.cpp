// Probes of the routing decision on planted models: a δ of the token, and one of the position.
#include "wanamaker/study/probe.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "planted_model.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/report/result_json.hpp"

namespace {

using namespace wanamaker_test;

// A tiny GPT-2 of one layer without attention, whose MLP reads one half of the stream: that which
// tokens write, or that which positions write.
class HalfReader {
 public:
  HalfReader(B& backend, bool reads_tokens) : backend_(backend), reads_tokens_(reads_tokens) {}

  AnyTransformer<B> make() {
    using Model = AnyTransformer<B>::Model;
    ModelConfig config{.name = "half-reader",
                       .vocabulary = PlantedModel::vocabulary,
                       .width = 12,
                       .layers = 1,
                       .heads = 2,
                       .key_heads = 2,
                       .head_width = 6,
                       .hidden = 24,
                       .positions = 32,
                       .tied_head = true};
    Model::Parts parts{.config = config,
                       .embedding = cut(PlantedModel::vocabulary, 12, 1.0, 0, 6),
                       .position_table = cut(32, 12, 1.0, 6, 12),
                       .blocks = {},
                       .final_norm = norm(),
                       .head = {}};
    const Index first = reads_tokens_ ? 0 : 6;
    // Drawn one after the other: compilers evaluate arguments in different orders.
    Linear<B> down = linear(24, 12, 4.0);
    Linear<B> up = rows_cut(12, 24, 3.0, first);
    AnyMlp<B> mlp(DenseMlp<B, GeluTanh>(std::move(up), std::move(down)));
    parts.blocks.emplace_back(
        norm(),
        CausalSelfAttention<B, AnyPositions<B>>(linear(12, 36, 0), linear(12, 12, 0),
                                                AttentionShape{2, 2, 6, 1 / std::sqrt(6.0), 0},
                                                LearnedPositions{}),
        norm(), std::move(mlp));
    return AnyTransformer<B>(Model(std::move(parts)));
  }

 private:
  // Columns outside [first, end) are 0.
  matrix_t<B> cut(Index rows, Index cols, double scale, Index first, Index end) {
    std::vector<double> values(static_cast<std::size_t>(rows * cols));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Index column = static_cast<Index>(i) % cols;
      const double drawn = scale * stream_.normal();
      values[i] = column >= first && column < end ? drawn : 0.0;
    }
    return matrix_from_host<double>(backend_, values.data(), rows, cols);
  }
  // Rows outside [first, first + 6) are 0.
  Linear<B> rows_cut(Index inputs, Index outputs, double scale, Index first) {
    std::vector<double> values(static_cast<std::size_t>(inputs * outputs));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Index row = static_cast<Index>(i) / outputs;
      const double drawn = scale * stream_.normal();
      values[i] = row >= first && row < first + 6 ? drawn : 0.0;
    }
    return {matrix_from_host<double>(backend_, values.data(), inputs, outputs),
            WeightLayout::in_out, cut(1, outputs, 1.0, 0, outputs)};
  }
  Linear<B> linear(Index inputs, Index outputs, double scale) {
    return {cut(inputs, outputs, scale, 0, outputs), WeightLayout::in_out,
            cut(1, outputs, scale, 0, outputs)};
  }
  LayerNorm<B> norm() {
    const std::vector<double> ones(12, 1.0);
    return {matrix_from_host<double>(backend_, ones.data(), 1, 12), cut(1, 12, 0.0, 0, 12), 1e-5};
  }

  B& backend_;
  bool reads_tokens_;
  RandomStream stream_{71};
};

ProbeResult probe_half_reader(bool reads_tokens, ExecutorRef executor = {}, Index documents = 240,
                              Index positions = 100000) {
  B backend(executor);
  const AnyTransformer<B> model = HalfReader(backend, reads_tokens).make();
  const TokenizedCorpus corpus = sampled_corpus(backend, model, documents, 30);
  const Splits splits = some_splits(documents);
  Workspace<B> workspace(backend);
  const StudyInput<B> input = planted_study(backend, model, corpus, splits, workspace);
  return run_probe(input, {.positions = positions, .bootstrap = {.resamples = 200}});
}

const ProbeScore& probe(const ProbeLayer& layer, const std::string& name) {
  for (const ProbeScore& p : layer.probes) {
    if (p.name == name) return p;
  }
  FAIL("no probe " << name);
  return layer.probes.front();
}

// Intervals are of 60 documents of 29 positions; what they compare is some of their widths apart.
TEST_CASE("a δ of the token is found in the token's part and in the table of labels") {
  const ProbeLayer layer = probe_half_reader(true).layers.at(0);
  CHECK(layer.probes.size() == 12);
  CHECK(probe(layer, "token").interval.interval->low > 0.52);
  CHECK(probe(layer, "token-label-table").interval.interval->low > 0.52);
  CHECK(std::abs(probe(layer, "context").auc->auc - 0.5) < 0.04);
  CHECK(probe(layer, "context").above_token_table_interval.interval->high < 0);
  CHECK(!probe(layer, "token-label-table").above_token_table);
  CHECK(probe(layer, "input-mlp").interval.interval->low > 0.52);
  CHECK(std::abs(probe(layer, "context-mlp").auc->auc - 0.5) < 0.04);
  CHECK(probe(layer, "published-interaction").features == PlantedModel::width);
  CHECK(probe(layer, "published-norm").features == 1);
}

TEST_CASE("positions are spread evenly, by hand") {
  CHECK(evenly_spread(10, 4) == std::vector<Index>{0, 2, 5, 7});
  CHECK(evenly_spread(3, 9) == std::vector<Index>{0, 1, 2});
  CHECK(evenly_spread(0, 5).empty());
  const std::vector<int> values{7, 8, 9};
  CHECK(detail::chosen_of(values, {0, 2}) == std::vector<int>{7, 9});
}

TEST_CASE("the published forms of an input, by hand") {
  B backend;
  Workspace<B> workspace(backend);
  const typename Workspace<B>::Frame frame(workspace);
  const std::vector<double> x{3, 4, 1, -2}, e{1, 2, -1, 3};
  const auto form = [&](detail::PublishedForm wanted) {
    auto input = matrix_from_host<double>(backend, x.data(), 2, 2);
    const auto raw = matrix_from_host<double>(backend, e.data(), 2, 2);
    const MatrixView<double> result =
        detail::in_form<B>(backend, wanted, input.view(), raw.view(), workspace);
    return std::vector<double>(result.data, result.data + result.size());
  };
  CHECK(form(detail::PublishedForm::none) == x);
  CHECK(form(detail::PublishedForm::context) == std::vector<double>{2, 2, 2, -5});
  CHECK(form(detail::PublishedForm::interaction) == std::vector<double>{2, 4, -2, -15});
  CHECK(form(detail::PublishedForm::norm) == std::vector<double>{5, std::sqrt(5.0)});
}

TEST_CASE("a δ of the position is found in the context and not in the token") {
  const ProbeLayer layer = probe_half_reader(false).layers.at(0);
  CHECK(probe(layer, "position").auc->auc == probe(layer, "context").auc->auc);
  CHECK(probe(layer, "context").interval.interval->low > 0.55);
  CHECK(probe(layer, "context-mlp").interval.interval->low > 0.55);
  CHECK(probe(layer, "context").above_token_table_interval.interval->low > 0.02);
  CHECK(
      *probe(layer, "context").above_token_table ==
      doctest::Approx(probe(layer, "context").auc->auc - probe(layer, "token-label-table").auc->auc)
          .epsilon(1e-12));
}

TEST_CASE("probes do not depend on threads; their parts add up; results are JSON without NaN") {
  const ProbeResult result = probe_half_reader(true, {}, 48);
  ThreadPool pool(3);
  const std::string json = json_of(result).dump();
  CHECK(json_of(probe_half_reader(true, pool, 48)).dump() == json);
  CHECK(json.find("nan") == std::string::npos);
  CHECK(json.find("\"command\":\"probe\"") != std::string::npos);
  double lengths = 0;
  double shares = 0;
  for (const PartSummary& part : result.layers.at(0).parts) {
    lengths += part.length_share.value();
    shares += part.gate_share.value();
  }
  CHECK(std::abs(lengths - 1) < 1e-12);
  CHECK(std::abs(shares - 1) < 1e-10);
  // 12 documents of 29 positions are all that there are.
  CHECK(json_of(probe_half_reader(true, {}, 48, 12 * 29).layers[0]).dump() ==
        json_of(result.layers[0]).dump());
  const ProbeResult few = probe_half_reader(true, {}, 48, 20);
  CHECK(probe(few.layers[0], "token-table").features <= 20);
  CHECK(probe(result.layers[0], "token-table").features > 20);
  CHECK(few.positions == 20);
  // Attention writes nothing.
  CHECK(*result.layers[0].parts[2].mean_norm == 0);
  CHECK(probe(result.layers[0], "attention").auc->auc == 0.5);
}

}  // namespace
