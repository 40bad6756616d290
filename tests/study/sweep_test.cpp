// The sweep on planted models, on the published procedure's reference, and its work and
// determinism.
#include "wanamaker/study/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "planted_model.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/report/result_json.hpp"
#include "wanamaker/report/result_reading.hpp"
#include "wanamaker/study/paper_sweep.hpp"
#include "wanamaker/text/rows.hpp"

namespace {

using namespace wanamaker_test;

// y = W x + b where direction·x <= 0, and something wild where it is positive.
struct PlantedGateMlp {
  std::vector<double> direction;
  std::vector<double> weight;  // [d × d]
  std::vector<double> kick;    // [d]

  void forward(ConstMatrixView<double> x, MatrixView<double> y) const {
    const Index d = x.cols;
    for (Index i = 0; i < x.rows; ++i) {
      double side = 0;
      for (Index j = 0; j < d; ++j) side += direction[static_cast<std::size_t>(j)] * x(i, j);
      for (Index k = 0; k < d; ++k) {
        double sum = side > 0 ? kick[static_cast<std::size_t>(k)] * std::sin(40 * side) : 0.0;
        for (Index j = 0; j < d; ++j) sum += weight[static_cast<std::size_t>(j * d + k)] * x(i, j);
        y(i, k) = sum;
      }
    }
  }
  MlpCost cost(Index) const { return {}; }
};

TEST_CASE("an affine MLP costs nothing to linearise, and cannot be left out") {
  B backend;
  PlantedModel planted(backend);
  std::vector<AnyMlp<B>> mlps;
  mlps.emplace_back(AffineMlp<B>(planted.linear(12, 12, 0.5)));
  mlps.emplace_back(
      DenseMlp<B, GeluTanh>(planted.linear(12, 24, 1.0), planted.linear(24, 12, 1.0)));
  const AnyTransformer<B> model = planted.make(std::move(mlps));
  const TokenizedCorpus corpus = random_corpus(80, 24, PlantedModel::vocabulary);
  Workspace<B> workspace(backend);
  const Splits splits = some_splits(80);
  const SweepResult result = run_sweep(StudyInput<B>{.backend = backend,
                                                     .model = model,
                                                     .corpus = corpus,
                                                     .splits = splits,
                                                     .workspace = workspace,
                                                     .rule = {.window = 24, .stride = 24},
                                                     .options = quick_options(Ladder::full)});
  REQUIRE(result.layers.size() == 2);
  const LayerResult& affine = result.layers[0];
  // λ = 1e-12 of the mean square leaves an error of about that size in the map, and δ of it.
  CHECK(std::abs(variant(affine, "ridge").comparison.delta_percent) < 1e-6);
  CHECK(affine.r2 > 1 - 1e-10);
  // The weights are random: taking the MLP away may help as well as harm.
  CHECK(std::abs(variant(affine, "mean").comparison.delta_percent) > 1);
  CHECK(std::abs(variant(affine, "zero").comparison.delta_percent) > 1);
  CHECK(std::abs(variant(result.layers[1], "ridge").comparison.delta_percent) > 1e-3);
  for (const LayerResult& layer : result.layers) {
    for (const char* name :
         {"random", "first-position", "norm-rule", "token-table", "gate-logistic", "gate-cost",
          "gate-delta", "gate-pca-2", "gate-pca-6", "gate-pca-12", "gate-bottleneck-1",
          "gate-bottleneck-3", "gate-bottleneck-6", "oracle", "oracle-best"}) {
      CHECK(variant(layer, name).fraction_linear.has_value());
    }
    // The whole result survives JSON, so that a resumed sweep equals an uninterrupted one.
    const std::string once = json_of(layer).dump();
    LayerResult stored = layer_result_from_json(parse_json(once, "layer"), "layer");
    for (std::size_t v = 0; v < stored.variants.size(); ++v) {
      stored.variants[v].p_holm = layer.variants[v].p_holm;
      stored.variants[v].p_bh = layer.variants[v].p_bh;
    }
    CHECK(json_of(stored).dump() == once);
  }
}

TEST_CASE("a gate finds the planted direction") {
  B backend;
  PlantedModel planted(backend);
  RandomStream stream(3);
  PlantedGateMlp mlp;
  for (Index j = 0; j < 12; ++j) {
    mlp.direction.push_back(stream.normal());
    mlp.kick.push_back(3 * stream.normal());
  }
  for (Index j = 0; j < 144; ++j) mlp.weight.push_back(0.3 * stream.normal());
  std::vector<AnyMlp<B>> mlps;
  mlps.emplace_back(mlp);
  const AnyTransformer<B> model = planted.make(std::move(mlps));
  // The surrogate is the planted affine part; what a gate has to find is where it suffices. The
  // label is whether the MLP's kick is absent, which decides δ.
  const TokenizedCorpus corpus = random_corpus(200, 30, PlantedModel::vocabulary);
  Workspace<B> workspace(backend);
  std::vector<Index> documents;
  for (Index d = 0; d < 200; ++d) documents.push_back(d);
  const EvaluationSet set = make_evaluation_set(corpus, documents, {.window = 30, .stride = 30});
  LayerPass<B> pass(backend, model, set, workspace);
  const std::vector<double> baseline = run_losses(backend, model, set, workspace);
  const AnyMlp<B> affine(AffineMlp<B>(Linear<B>(
      matrix_from_host<double>(backend, mlp.weight.data(), 12, 12), WeightLayout::in_out)));
  const GateData<B> data =
      collect_gate_data(backend, pass, affine, baseline, PlantedModel::width, workspace);
  std::vector<std::uint8_t> labels;
  for (const double delta : data.delta) labels.push_back(std::abs(delta) < 1e-9 ? 1 : 0);
  const LogisticGate<B> gate = fit_logistic_gate(backend, data.inputs.view(), labels).gate;
  // Inputs come out of a LayerNorm: the direction is determined within the centred subspace.
  double mean = 0;
  for (const double x : mlp.direction) mean += x / 12;
  const std::vector<double>& found = gate.linear_score().weights;
  double found_mean = 0;
  for (const double x : found) found_mean += x / 12;
  double dot = 0, a = 0, b = 0;
  for (std::size_t j = 0; j < 12; ++j) {
    const double x = mlp.direction[j] - mean;
    const double y = found[j] - found_mean;
    dot += x * y;
    a += x * x;
    b += y * y;
  }
  CHECK(-dot / std::sqrt(a * b) > 0.99);
}

namespace {

// y = W x where direction·x <= 0; where it is positive, k is added or taken away by sin(40·side):
// no affine map follows that, and it has no part along one.
struct PlantedSignMlp {
  std::vector<double> direction, weight, kick;

  double side(const double* x) const {
    return std::inner_product(direction.begin(), direction.end(), x, 0.0);
  }
  double sign(double side) const { return side <= 0 ? 0 : std::sin(40 * side) > 0 ? 1 : -1; }

  void forward(ConstMatrixView<double> x, MatrixView<double> y) const {
    for (Index i = 0; i < x.rows; ++i) {
      const double factor = sign(side(x.row(i)));
      for (Index k = 0; k < x.cols; ++k) {
        double sum = factor * kick[static_cast<std::size_t>(k)];
        for (Index j = 0; j < x.cols; ++j) {
          sum += weight[static_cast<std::size_t>(j * x.cols + k)] * x(i, j);
        }
        y(i, k) = sum;
      }
    }
  }
  MlpCost cost(Index) const { return {}; }
};

/// Normal, without mean; without a part along `other` where one is given.
std::vector<double> centred_direction(RandomStream& stream, const std::vector<double>& other = {}) {
  std::vector<double> v;
  for (int j = 0; j < 12; ++j) v.push_back(stream.normal());
  const double mean = std::accumulate(v.begin(), v.end(), 0.0) / 12;
  for (double& x : v) x -= mean;
  if (other.empty()) return v;
  const auto dot = [&](const std::vector<double>& a) {
    return std::inner_product(a.begin(), a.end(), other.begin(), 0.0);
  };
  const double part = dot(v) / dot(other);
  for (std::size_t j = 0; j < v.size(); ++j) v[j] -= part * other[j];
  return v;
}

/// The MLP input of layer 0 at each document's last token, as side(x).
std::vector<double> last_sides(B& backend, const AnyTransformer<B>& model,
                               const TokenizedCorpus& corpus, const PlantedSignMlp& mlp,
                               Workspace<B>& workspace) {
  std::vector<TokenId> ids;
  std::vector<Index> offsets{0};
  for (const TokenizedDocument& d : corpus.documents) {
    ids.insert(ids.end(), d.ids.begin(), d.ids.end());
    offsets.push_back(static_cast<Index>(ids.size()));
  }
  struct Observer {
    const PlantedSignMlp& mlp;
    const std::vector<Index>& offsets;
    std::vector<double>& sides;
    void on_mlp_input(Index, ConstMatrixView<double> x) const {
      for (std::size_t d = 1; d < offsets.size(); ++d) {
        sides.push_back(mlp.side(x.row(offsets[d] - 1)));
      }
    }
  };
  std::vector<double> sides;
  const typename Workspace<B>::Frame frame(workspace);
  const PackedBatch<B> batch(backend, ids, offsets);
  const MatrixView<double> residual = workspace.matrix(batch.rows(), PlantedModel::width);
  model.forward(backend, batch, residual, workspace, Observer{mlp, offsets, sides});
  return sides;
}

/// Tokens by how much the kick raises their logits.
std::vector<TokenId> tokens_by_kick(const AnyTransformer<B>& model, const PlantedSignMlp& mlp) {
  std::vector<std::pair<double, TokenId>> order;
  model.visit([&](const auto& m) {
    for (Index t = 0; t < m.embedding().rows(); ++t) {
      const double* row = m.embedding().view().row(t);
      order.emplace_back(std::inner_product(mlp.kick.begin(), mlp.kick.end(), row, 0.0),
                         static_cast<TokenId>(t));
    }
  });
  std::sort(order.begin(), order.end());
  std::vector<TokenId> tokens;
  for (const auto& item : order) tokens.push_back(item.second);
  return tokens;
}

/// Documents in which the kick predicts: after it come tokens whose logits it raises, after its
/// opposite those that it lowers, and either by chance where the MLP is affine.
TokenizedCorpus kicked_corpus(B& backend, const AnyTransformer<B>& model, const PlantedSignMlp& mlp,
                              Index documents, Index tokens, Workspace<B>& workspace) {
  const std::vector<TokenId> order = tokens_by_kick(model, mlp);
  TokenizedCorpus corpus = random_corpus(documents, 1, static_cast<Index>(order.size()));
  RandomStream stream(17);
  for (Index t = 1; t < tokens; ++t) {
    const std::vector<double> sides = last_sides(backend, model, corpus, mlp, workspace);
    for (std::size_t d = 0; d < sides.size(); ++d) {
      const double sign = mlp.sign(sides[d]);
      const bool raised = sign == 0 ? stream.uniform() < 0.5 : sign > 0;
      const std::size_t pick = stream.below(order.size() / 4);
      corpus.documents[d].ids.push_back(raised ? order[order.size() - 1 - pick] : order[pick]);
    }
  }
  return corpus;
}

double cosine(const std::vector<double>& a, std::vector<double> b) {
  const double mean = std::accumulate(b.begin(), b.end(), 0.0) / static_cast<double>(b.size());
  for (double& x : b) x -= mean;
  const auto dot = [](const std::vector<double>& x, const std::vector<double>& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  };
  return dot(a, b) / std::sqrt(dot(a, a) * dot(b, b));
}

}  // namespace

// The label is that δ of the fitted map is not positive: never on the far side, where the kick
// helps, and by chance on the other. Inputs have no other structure, since there is no context and
// the vocabulary is large, so the gate's direction is the plane's normal (Li & Duan 1989), up to
// the error of 10,500 rows, about √(12/10,500) divided by the slope of the label's probability.
TEST_CASE("a gate finds the planted direction from the sweep's own map and labels") {
  B backend;
  PlantedModel planted(backend, 0, 2000);
  RandomStream stream(3);
  PlantedSignMlp mlp{.direction = centred_direction(stream), .weight = {}, .kick = {}};
  mlp.kick = centred_direction(stream, mlp.direction);
  const double length =
      std::sqrt(std::inner_product(mlp.kick.begin(), mlp.kick.end(), mlp.kick.begin(), 0.0));
  for (double& x : mlp.kick) x /= length;
  for (Index j = 0; j < 144; ++j) mlp.weight.push_back(0.3 * stream.normal());
  std::vector<AnyMlp<B>> mlps;
  mlps.emplace_back(mlp);
  const AnyTransformer<B> model = planted.make(std::move(mlps));
  Workspace<B> workspace(backend);
  const TokenizedCorpus corpus = kicked_corpus(backend, model, mlp, 2400, 8, workspace);
  Splits splits;
  for (Index d = 0; d < 2400; ++d) {
    (d % 8 == 0   ? splits.fit.documents
     : d % 8 == 1 ? splits.select.documents
     : d % 8 == 2 ? splits.report.documents
                  : splits.gate.documents)
        .push_back(d);
  }
  splits = Splits::checked(splits);
  const StudyInput<B> input{.backend = backend,
                            .model = model,
                            .corpus = corpus,
                            .splits = splits,
                            .workspace = workspace,
                            .rule = {.window = 8, .stride = 8},
                            .options = quick_options(Ladder::quick)};
  LayerStudy<B> study(input, {.gate = true, .select = true, .report = false});
  const SweepContext<B> c = study.context();
  std::vector<LambdaTrial> trials;
  const AnyMlp<B> map(choose_ridge(c, study.moments(0), trials).fit.to_mlp(backend));
  const GateData<B> data =
      collect_gate_data(backend, *c.gate->pass, map, c.gate->baseline, 12, workspace);
  const DeltaLabels labels = labels_at_most(data.delta, 0);
  const LogisticGate<B> gate = fit_logistic_gate(backend, data.inputs.view(), labels.labels).gate;
  CHECK(data.delta.size() == 10500);
  CHECK(-cosine(mlp.direction, gate.linear_score().weights) > 0.99);
}

// y = W x + b, and at one token something wild that no affine map can follow.
struct PlantedTailMlp {
  std::vector<double> weight;  // [d × d]
  std::vector<double> kick;    // [d]

  void forward(B&, ConstMatrixView<double> x, const RowContext<B>& rows, MatrixView<double> y,
               Workspace<B>&) const {
    for (Index i = 0; i < x.rows; ++i) {
      const double wild = rows.tokens[i] == 7 ? std::sin(1000 * x(i, 0)) : 0.0;
      for (Index k = 0; k < x.cols; ++k) {
        double sum = wild * kick[static_cast<std::size_t>(k)];
        for (Index j = 0; j < x.cols; ++j) {
          sum += weight[static_cast<std::size_t>(j * x.cols + k)] * x(i, j);
        }
        y(i, k) = sum;
      }
    }
  }
  MlpCost cost(Index) const { return {}; }
};

TEST_CASE("a planted heavy tail is found by the distribution of δ") {
  B backend;
  PlantedModel planted(backend);
  RandomStream stream(3);
  PlantedTailMlp mlp;
  for (Index j = 0; j < 12; ++j) mlp.kick.push_back(6 * stream.normal());
  for (Index j = 0; j < 144; ++j) mlp.weight.push_back(0.3 * stream.normal());
  std::vector<AnyMlp<B>> mlps;
  mlps.emplace_back(mlp);
  const AnyTransformer<B> model = planted.make(std::move(mlps));
  const TokenizedCorpus corpus = random_corpus(200, 30, PlantedModel::vocabulary);
  const Splits splits = some_splits(200);
  Workspace<B> workspace(backend);
  const SweepResult result = run_sweep(StudyInput<B>{.backend = backend,
                                                     .model = model,
                                                     .corpus = corpus,
                                                     .splits = splits,
                                                     .workspace = workspace,
                                                     .rule = {.window = 30, .stride = 30},
                                                     .options = quick_options(Ladder::surrogates)});
  // One position in 40 has the token: 2.5 % hold nearly all of the cost, the rest next to none.
  const DistributionSummary& delta = result.layers.front().delta;
  const auto value = [](const std::vector<SummaryValue>& list, double at) {
    for (const SummaryValue& v : list) {
      if (v.at == at) return v.value.value();
    }
    FAIL("no value at " << at);
    return 0.0;
  };
  CHECK(value(delta.top_share, 0.05) > 0.5);
  CHECK(value(delta.share_below, 0.05) > 0.5);
}

TEST_CASE("variants run only what follows their layer, and share one prefix") {
  B backend;
  PlantedModel planted(backend);
  const AnyTransformer<B> model = planted.make(dense_mlps(planted, 4));
  const TokenizedCorpus corpus = random_corpus(6, 20, PlantedModel::vocabulary);
  const std::vector<Index> documents{0, 1, 2, 3, 4, 5};
  const EvaluationSet set =
      make_evaluation_set(corpus, documents, {.window = 20, .stride = 20}, 40);
  Workspace<B> workspace(backend);
  LayerPass<B> pass(backend, model, set, workspace);
  const Index batches = static_cast<Index>(set.batches.size());
  const std::vector<double> baseline = run_losses(backend, model, set, workspace);
  std::vector<double> losses(baseline.size());
  Index expected = 0;
  for (Index layer = 0; layer < 4; ++layer) {
    pass.advance([&](const MlpSite<B>& site) {
      pass.losses_with(site, site.mlp_output, losses);
      pass.losses_with(site, site.mlp_output, losses);
    });
    expected += 2 * batches * (4 - layer - 1);
    CHECK(pass.work().variant_blocks == expected);
    // The model's own MLP output gives the model's own losses, to the last bit.
    CHECK(losses == baseline);
  }
  CHECK(pass.work().prefix_blocks == 4 * batches);
  CHECK(pass.work().variants == 8 * batches);
}

TEST_CASE("at the last layer a routing chooses among losses that are known") {
  B backend;
  PlantedModel planted(backend);
  const AnyTransformer<B> model = planted.make(dense_mlps(planted, 2));
  const TokenizedCorpus corpus = random_corpus(6, 20, PlantedModel::vocabulary);
  const std::vector<Index> documents{0, 1, 2, 3, 4, 5};
  Workspace<B> workspace(backend);
  const auto split = walk_split(
      backend, model, make_evaluation_set(corpus, documents, {.window = 20, .stride = 20}, 40),
      workspace, Progress{}, "split");
  const SweepOptions options;
  const ExecutorRef executor;
  const SweepContext<B> context{backend, model, options, executor, workspace};
  const AnyMlp<B> affine(AffineMlp<B>(planted.linear(12, 12, 0.5)));
  std::vector<double> linear(split->baseline.size());
  for (Index layer = 0; layer < 2; ++layer) {
    std::vector<double> measured(linear.size()), run(linear.size());
    const Index before = split->pass->work().variants;
    split->pass->advance([&](const MlpSite<B>& site) {
      const typename Workspace<B>::Frame frame(workspace);
      measure_policy(context, affine, site, *split->pass, linear);
      const auto matrix = [&] { return workspace.matrix(site.mlp_input.rows, 12); };
      const MatrixView<double> surrogate = matrix(), output = matrix();
      affine.forward(backend, site.mlp_input, site.rows, surrogate, workspace);
      const VectorView<double> scores = workspace.template vector<double>(site.mlp_input.rows);
      for (Index i = 0; i < scores.size; ++i) scores[i] = i % 3 == 0 ? 0.7 : 0.2;
      measure_selected(context, site, *split, scores, 0.5, surrogate, linear, measured);
      ops::select_outputs<B>(backend, scores, 0.5, surrogate, site.mlp_output, output);
      split->pass->losses_with(site, output, run);
    });
    // The same, to the last bit, as running what follows, for which the last layer has no need.
    CHECK(measured == run);
    CHECK(measured != linear);
    CHECK(measured != split->baseline);
    const Index batches = static_cast<Index>(split->set.batches.size());
    CHECK(split->pass->work().variants - before == (layer == 0 ? 3 : 2) * batches);
  }
}

TEST_CASE("the published procedure's reference: baseline, linear and gated perplexities") {
  const auto shared = wanamaker_test::shared_data("reference");
  if (!shared) return;
  const std::filesystem::path data = shared->parent_path();
  const std::filesystem::path folder = data / "models" / "books-gpt2";
  const auto tokenizer = Tokenizer::from_folder(folder);
  TokenizedCorpus rows;
  for (const std::string& row : read_rows(data / "wikitext" / "wiki.test.raw")) {
    TokenizedDocument document;
    if (!is_blank(row)) document.ids = tokenizer.encode(row, "row");
    rows.documents.push_back(std::move(document));
  }
  using F = BlasBackend<float>;
  F backend;
  const AnyTransformer<F> model = load_model(backend, folder);
  Workspace<F> workspace(backend);
  SweepOptions options;
#ifndef NDEBUG
  options.layers = {3};  // all of them where the compiler optimises
#endif
  options.intervals.resamples = 200;
  const SweepResult result =
      run_paper_sweep(backend, model, paper_row_sets(rows, model.config().positions),
                      PaperFigures{}, Protocol{}, options, ExecutorRef{}, workspace);
  const Json reference = parse_json_file(data / "reference" / "scale_test_books_gpt2.json");
  const Json exact = parse_json_file(data / "reference" / "intermediate_books_gpt2.json");
  const Json& sums = exact["float64_one_thread"];
  CHECK(result.baseline.tokens == sums["eval_count"].get<Index>());
  // Float forward passes: 3e-9 of the sum is what the reference itself shows between precisions.
  CHECK(std::abs(result.baseline.nll_sum / sums["baseline_nll_sum"].get<double>() - 1) < 1e-7);
  const auto close = [](double ours, double theirs) {
    return std::abs(ours - theirs) <= std::max(0.011, 2e-4 * theirs);
  };
  CHECK(close(result.baseline.perplexity, reference["baseline_ppl"].get<double>()));
  for (const LayerResult& layer : result.layers) {
    CAPTURE(layer.layer);
    const PaperLayer& paper = *layer.paper;
    const Json& published = reference["layers"][std::to_string(layer.layer)];
    CHECK(close(paper.all_linear_ppl, published["all_linear_ppl"].get<double>()));
    REQUIRE(paper.gates.size() == published["gates"].size());
    for (std::size_t g = 0; g < paper.gates.size(); ++g) {
      const Json& theirs = published["gates"][g];
      CHECK(paper.gates[g].name == theirs["name"].get<std::string>());
      CHECK(paper.gates[g].params == theirs["params"].get<double>());
      CHECK(std::abs(paper.gates[g].ppl / theirs["ppl"].get<double>() - 1) < 0.003);
      CHECK(std::abs(paper.gates[g].pct_linear - theirs["pct_linear"].get<double>()) < 2);
    }
    if (layer.layer != 3) continue;
    // The plain gate against the problem solved tightly.
    CHECK(std::abs(paper.gates[0].ppl - sums["tight_gated_ppl"].get<double>()) < 0.01);
  }
}

}  // namespace
