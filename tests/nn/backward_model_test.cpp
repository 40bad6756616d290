// Loss and gradients of whole models: central differences on ragged batches, recomputation, frozen
// parameters, accumulation, observers, distillation, and what is refused.
#include <map>

#include "nn/gradient_testing.hpp"
#include "nn/tiny_models.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/nn/backward/transformer.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;
using Oracle = ReferenceBackend<double>;

double mean_of(const std::vector<double>& losses) {
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum / static_cast<double>(losses.size());
}

/// Of one family and with its own MLP, which compiles sooner than all.
template <class B>
using LlamaModel = Transformer<B, LlamaBlock<B>>;
template <class B>
using NeoXModel = Transformer<B, GptNeoXBlock<B>>;

using SequentialModel =
    Transformer<Oracle, GptNeoXBlock<Oracle, AnyMlp<Oracle>, SequentialResidual>>;

template <class Model, class B>
Model tiny_model_of(const ModelMaker<B>& maker) {
  constexpr WeightLayout out_in = WeightLayout::out_in;
  if constexpr (std::is_same_v<Model, AnyTransformer<B>>) {
    return maker.any();
  } else if constexpr (std::is_same_v<Model, SequentialModel>) {
    return maker.template transformer<Model, RotaryPositions<B>>(
        out_in, [&](const naive::Block& block, WeightLayout l) { return maker.mlp(block, l); });
  } else if constexpr (std::is_same_v<Model, LlamaModel<B>>) {
    return maker.template transformer<Model, RotaryPositions<B>>(
        out_in, [&](const naive::Block& block, WeightLayout layout) {
          return GatedLinearUnitMlp<B, Silu>(maker.linear(block.gate, layout),
                                             maker.linear(block.up, layout),
                                             maker.linear(block.down, layout));
        });
  } else {
    return maker.template transformer<Model, RotaryPositions<B>>(
        out_in, [&](const naive::Block& block, WeightLayout layout) {
          return DenseMlp<B, GeluErf>(maker.linear(block.up, layout),
                                      maker.linear(block.down, layout));
        });
  }
}

/// A model, a ragged batch for it, and the loss by the plain forward pass.
template <class B, class Model = AnyTransformer<B>>
struct Training {
  B& backend;
  Model model;
  PackedBatch<B> batch;
  ScoredPositions scored;
  Workspace<B> workspace;

  Training(B& b, const naive::Model& formulas, const std::vector<int>& lengths = {9, 1, 6})
      : backend(b),
        model(tiny_model_of<Model>(ModelMaker<B>(b, formulas))),
        batch(pack(b, random_sequences(formulas.settings.vocabulary, lengths))),
        scored(all_next_tokens(batch)),
        workspace(b) {}

  double plain_loss() {
    auto residual = make_matrix(backend, batch.rows(), model.config().width);
    model.forward(backend, batch, residual.view(), workspace);
    return mean_of(model.token_losses(backend, residual.view(), scored, workspace));
  }
  double run(const Gradients<B>& gradients, const LossOptions& options = {}) {
    return loss_and_gradients(model, backend, batch, scored, gradients, workspace, options);
  }
  Gradients<B> gradients(const LossOptions& options = {}) {
    Gradients<B> all(backend, model);
    run(all, options);
    return all;
  }
  /// Names and values of all gradients.
  std::map<std::string, std::vector<scalar_t<B>>> named(const Gradients<B>& all) {
    std::map<std::string, std::vector<scalar_t<B>>> result;
    for (const auto& p : parameters(model, all)) {
      result[p.name].assign(p.gradient.data, p.gradient.data + p.gradient.size());
    }
    return result;
  }
};

std::vector<naive::Model> trained_families() {
  return {tiny_gpt2(), tiny_neox(true), tiny_neox(false), tiny_llama(true, 4),
          tiny_llama(false, 0)};
}

/// Counts the products and their flops.
struct ProductCounter : Oracle {
  Index* products;
  explicit ProductCounter(Index& count) : products(&count) {}
  template <class A, class W>
  void gemm(Operand<A> a, Operand<W> b, double alpha, double beta, MatrixView<double> c) const {
    ++*products;
    Oracle::gemm(a, b, alpha, beta, c);
  }
};

}  // namespace

template <>
struct wanamaker::backend_traits<ProductCounter> : wanamaker::HostBackendTraits<double> {};

TEST_CASE("models' gradients equal central differences on ragged batches") {
  Oracle backend;
  for (const naive::Model& formulas : trained_families()) {
    Training<Oracle> t(backend, formulas);
    const Gradients<Oracle> gradients(backend, t.model);
    CHECK(all_close(std::vector<double>{t.run(gradients)}, std::vector<double>{t.plain_loss()},
                    1e-14, 0.0));
    for (const auto& p : parameters(t.model, gradients)) {
      check_gradient([&] { return t.plain_loss(); }, p.value, p.gradient, p.name, 2);
    }
  }
}

TEST_CASE("attention over more than one block of queries, with and without a window") {
  using B = EigenBackend<double>;
  B backend;
  for (const int window : {0, 30}) {
    CAPTURE(window);
    Training<B, LlamaModel<B>> t(backend, tiny_llama(true, window), {75, 3});
    const Gradients<B> gradients(backend, t.model);
    t.run(gradients);
    for (const auto& p : parameters(t.model, gradients)) {
      if (p.name.find("qkv_proj") == std::string::npos) continue;
      check_gradient([&] { return t.plain_loss(); }, p.value, p.gradient, p.name, 3);
    }
  }
}

TEST_CASE_TEMPLATE("every backend gives the reference's gradients", B, EigenBackend<double>,
                   BlasBackend<double>) {
  // Sums of up to 80 products in each of some 10 layers, forward and back: 4·10·80·eps of the
  // largest magnitude, which is about 1.
  constexpr double tolerance = 4 * 10 * 80 * 0x1p-52;
  Oracle oracle;
  B backend;
  Training<Oracle> expected(oracle, tiny_llama(true, 4), {70, 1, 17});
  Training<B, LlamaModel<B>> actual(backend, tiny_llama(true, 4), {70, 1, 17});
  const auto want = expected.named(expected.gradients());
  const auto have = actual.named(actual.gradients());
  REQUIRE(want.size() == have.size());
  for (const auto& entry : want) {
    CAPTURE(entry.first);
    CHECK(all_close(have.at(entry.first), entry.second, 0.0, tolerance));
  }
}

TEST_CASE("gradients in float are those in double within rounding") {
  // As above with eps of float, and 2 ulp of each elementary function within it.
  constexpr double tolerance = 4 * 10 * 80 * 0x1p-23;
  Oracle oracle;
  EigenBackend<float> backend;
  Training<Oracle> expected(oracle, tiny_llama(true, 4));
  Training<EigenBackend<float>, LlamaModel<EigenBackend<float>>> actual(backend,
                                                                        tiny_llama(true, 4));
  const auto want = expected.named(expected.gradients());
  for (const auto& entry : actual.named(actual.gradients())) {
    CAPTURE(entry.first);
    const std::vector<double>& expected_values = want.at(entry.first);
    double largest = 0;
    for (const double v : expected_values) largest = std::max(largest, std::abs(v));
    CHECK(all_close(entry.second, expected_values, 0.0, tolerance * largest));
  }
}

TEST_CASE("recomputed blocks give the same bits, from less memory") {
  Oracle backend;
  for (const naive::Model& formulas : trained_families()) {
    Training<Oracle> kept(backend, formulas, {30, 5});
    Training<Oracle> again(backend, formulas, {30, 5});
    const Gradients<Oracle> a(backend, kept.model), b(backend, again.model);
    CHECK(kept.run(a) == again.run(b, {.recompute = true}));
    CHECK(kept.named(a) == again.named(b));
  }
  using B = EigenBackend<double>;
  B eigen;
  const std::vector<int> long_batch(7, 75);
  Training<B, LlamaModel<B>> kept(eigen, tiny_llama(true, 0), long_batch);
  Training<B, LlamaModel<B>> again(eigen, tiny_llama(true, 0), long_batch);
  CHECK(kept.named(kept.gradients()) == again.named(again.gradients({.recompute = true})));
  CHECK(again.workspace.capacity_bytes() < kept.workspace.capacity_bytes());
}

TEST_CASE("gradients do not depend on the number of threads") {
  ThreadPool pool(3);
  using B = EigenBackend<float>;
  B serial, threaded{ExecutorRef(pool)};
  Training<B, LlamaModel<B>> one(serial, tiny_llama(true, 4), {75, 60, 33});
  Training<B, LlamaModel<B>> three(threaded, tiny_llama(true, 4), {75, 60, 33});
  CHECK(one.named(one.gradients()) == three.named(three.gradients()));
}

TEST_CASE("gradients add up, and the weight scales them") {
  Oracle backend;
  Training<Oracle> t(backend, tiny_gpt2());
  const Gradients<Oracle> once = t.gradients();
  const Gradients<Oracle> sum(backend, t.model);
  t.run(sum, {.weight = 0.25});
  t.run(sum, {.weight = 0.75});
  const auto expected = t.named(once);
  for (const auto& [name, values] : t.named(sum)) {
    CHECK(all_close(values, expected.at(name), 0.0, 1e-14));
  }
  sum.clear(backend);
  for (const auto& [name, values] : t.named(sum)) {
    CHECK(std::all_of(values.begin(), values.end(), [](double v) { return v == 0; }));
  }
}

TEST_CASE("what is frozen has no gradient and costs no product; the others' stay as they are") {
  Index products = 0;
  ProductCounter backend(products);
  Training<ProductCounter, NeoXModel<ProductCounter>> t(backend, tiny_neox(true));
  const Gradients<ProductCounter> all = t.gradients();
  const Index with_all = products;
  const auto expected = t.named(all);

  products = 0;
  const Gradients<ProductCounter> some(backend, t.model, [](const std::string& name) {
    return name.find("mlp.dense_h_to_4h.weight") != std::string::npos;
  });
  t.run(some);
  CHECK(products == with_all - t.model.layers());
  int frozen = 0;
  for (const auto& p : parameters(t.model, some)) {
    frozen += p.frozen ? 1 : 0;
    CHECK(p.frozen == p.name.ends_with("dense_h_to_4h.weight"));
    CHECK((p.gradient.size() == 0) == p.frozen);
    if (p.frozen) continue;
    CHECK(std::equal(expected.at(p.name).begin(), expected.at(p.name).end(), p.gradient.data));
  }
  CHECK(frozen == t.model.layers());

  // The pass ends above blocks of which nothing is trained.
  products = 0;
  const Gradients<ProductCounter> last(backend, t.model, [](const std::string& name) {
    return name != "gpt_neox.layers.1.mlp.dense_4h_to_h.weight";
  });
  CHECK(last.first_layer() == 1);
  t.run(last);
  const Index down_to_last = products;
  products = 0;
  const Gradients<ProductCounter> first(backend, t.model, [](const std::string& name) {
    return name != "gpt_neox.layers.0.mlp.dense_4h_to_h.weight";
  });
  t.run(first);
  CHECK(down_to_last < products);
}

TEST_CASE("a tied head is named once and gathers both gradients") {
  Oracle backend;
  Training<Oracle> t(backend, tiny_gpt2());
  int embeddings = 0;
  double counted = 0;
  for (const auto& p : parameters<Oracle>(t.model)) {
    embeddings += p.name == "transformer.wte.weight" ? 1 : 0;
    counted += static_cast<double>(p.value.size());
    CHECK(p.name != "lm_head.weight");
    CHECK(p.decays == (p.name.ends_with("weight") && p.name.find("ln_") == std::string::npos));
  }
  CHECK(embeddings == 1);
  CHECK(counted == t.model.parameters());
}

namespace {

/// Gradients of MLP outputs and of the streams, as they pass by.
struct GradientObserver {
  std::map<Index, std::vector<double>> mlp, residual;
  Index forward_calls = 0;
  void on_mlp_output(Index, const_matrix_view_t<Oracle>) { ++forward_calls; }
  void on_mlp_output_gradient(Index layer, const_matrix_view_t<Oracle> d) {
    mlp[layer].assign(d.data, d.data + d.size());
  }
  void on_residual_gradient(Index layer, const_matrix_view_t<Oracle> d) {
    residual[layer].assign(d.data, d.data + d.size());
  }
};

/// The model's own MLP plus a shift of one entry of its output.
struct ShiftedMlp {
  const AnyMlp<Oracle>* mlp;
  Index row, column;
  const double* shift;
  void forward(Oracle& backend, const_matrix_view_t<Oracle> x, const RowContext<Oracle>& rows,
               matrix_view_t<Oracle> y, Workspace<Oracle>& workspace) const {
    mlp->forward(backend, x, rows, y, workspace);
    y(row, column) += *shift;
  }
  MlpCost cost(Index) const { return {}; }
};

}  // namespace

TEST_CASE("an observer sees the gradient of the summed loss at every MLP output") {
  Oracle backend;
  for (const bool recompute : {false, true}) {
    Training<Oracle, SequentialModel> t(backend, tiny_neox(false));
    // Nothing needs a gradient, but the observer wants them of all layers.
    const Gradients<Oracle> none(backend, t.model, [](const std::string&) { return true; });
    GradientObserver seen;
    const double n = static_cast<double>(t.scored.rows.size());
    loss_and_gradients(t.model, t.backend, t.batch, t.scored, none, t.workspace,
                       {.weight = n, .recompute = recompute}, seen);
    CHECK(seen.forward_calls == 2);
    CHECK(seen.residual.size() == 3);
    const Index d = t.model.config().width;
    for (const Index layer : {Index{0}, Index{1}}) {
      AnyMlp<Oracle> own = std::move(t.model.block(layer).mlp());
      double shift = 0;
      for (const Index row : {Index{0}, Index{4}, Index{12}}) {
        t.model.block(layer).mlp() = AnyMlp<Oracle>(ShiftedMlp{&own, row, 3, &shift});
        const double expected = central_difference([&] { return n * t.plain_loss(); }, shift);
        CHECK(std::abs(seen.mlp.at(layer)[static_cast<std::size_t>(row * d + 3)] - expected) <=
              1e-9 * std::max(1.0, std::abs(expected)));
      }
      t.model.block(layer).mlp() = std::move(own);
    }
  }
}

TEST_CASE("distillation: its loss by definition, its gradients by central differences") {
  Oracle backend;
  Training<Oracle, SequentialModel> t(backend, tiny_neox(false));
  const naive::Model other = tiny_neox(true);
  const NeoXModel<Oracle> teacher =
      tiny_model_of<NeoXModel<Oracle>>(ModelMaker<Oracle>(backend, other));
  const ops::DistillationMix mix{.share = 0.7, .temperature = 1.5};

  const auto log_softmax = [&](const auto& model, double temperature) {
    auto residual = make_matrix(backend, t.batch.rows(), model.config().width);
    model.forward(backend, t.batch, residual.view(), t.workspace);
    auto logits = make_matrix(backend, t.batch.rows(), model.logit_columns());
    model.logits(backend, residual.view(), logits.view(), t.workspace);
    std::vector<std::vector<double>> result;
    for (const TokenId row : t.scored.rows) {
      const double* z = logits.view().row(row);
      double sum = 0;
      for (Index v = 0; v < 29; ++v) sum += std::exp(z[v] / temperature);
      result.emplace_back();
      for (Index v = 0; v < 29; ++v) result.back().push_back(z[v] / temperature - std::log(sum));
    }
    return result;
  };
  const auto divergence = [&] {
    const auto p = log_softmax(teacher, 1.5), q = log_softmax(t.model, 1.5);
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      for (std::size_t v = 0; v < 29; ++v) sum += std::exp(p[i][v]) * (p[i][v] - q[i][v]);
    }
    return 1.5 * 1.5 * sum / static_cast<double>(p.size());
  };

  const Gradients<Oracle> gradients(backend, t.model);
  const DistillationLosses losses = distillation_loss_and_gradients(
      t.model, teacher, backend, t.batch, t.scored, gradients, t.workspace, mix);
  CHECK(std::abs(losses.nll - t.plain_loss()) <= 1e-13);
  CHECK(std::abs(losses.divergence - divergence()) <= 1e-13);
  CHECK(std::abs(losses.total - (0.3 * losses.nll + 0.7 * losses.divergence)) <= 1e-15);
  for (const auto& p : parameters(t.model, gradients)) {
    check_gradient([&] { return 0.3 * t.plain_loss() + 0.7 * divergence(); }, p.value, p.gradient,
                   p.name, 2);
  }

  // From itself a model learns nothing but the text.
  const Gradients<Oracle> own(backend, t.model);
  const DistillationLosses self =
      distillation_loss_and_gradients(t.model, t.model, backend, t.batch, t.scored, own,
                                      t.workspace, {.share = 1, .temperature = 2});
  CHECK(std::abs(self.divergence) <= 1e-15);
  for (const auto& [name, values] : t.named(own)) {
    CHECK(all_close(values, std::vector<double>(values.size(), 0.0), 0.0, 1e-15));
  }
}

TEST_CASE("impossible requests are refused with their mend") {
  Oracle backend;
  Training<Oracle, SequentialModel> t(backend, tiny_neox(false));
  const Gradients<Oracle> gradients(backend, t.model);
  const auto id_with = [&](const PackedBatch<Oracle>& batch, const ScoredPositions& scored) {
    return error_id(
        [&] { loss_and_gradients(t.model, backend, batch, scored, gradients, t.workspace); });
  };
  CHECK(id_with(t.batch, {}) == "data/nothing-to-score");
  CHECK(id_with(t.batch, {{3, 3}, {1, 1}}) == "shape/scored-rows");
  CHECK(id_with(t.batch, {{99}, {1}}) == "shape/scored-rows");
  CHECK(id_with(t.batch, {{1}, {99}}) == "data/token-outside-vocabulary");

  const std::vector<TokenId> tokens = {1, 2, 3};
  KeyValueCache<Oracle> cache(backend, t.model.config(), 1, 8);
  const PackedBatch<Oracle> begins(backend, tokens, cache);
  auto residual = make_matrix(backend, 3, t.model.config().width);
  t.model.forward(backend, begins, residual.view(), t.workspace);
  const PackedBatch<Oracle> goes_on(backend, tokens, cache);
  CHECK(id_with(goes_on, {{1}, {1}}) == "training/cached-batch");

  naive::Model smaller = tiny_neox(false);
  smaller.settings.vocabulary = 27;
  const SequentialModel other =
      tiny_model_of<SequentialModel>(ModelMaker<Oracle>(backend, smaller));
  const auto distil = [&](const SequentialModel& teacher, ops::DistillationMix mix) {
    return error_id([&] {
      distillation_loss_and_gradients(t.model, teacher, backend, t.batch, t.scored, gradients,
                                      t.workspace, mix);
    });
  };
  CHECK(distil(other, {}) == "training/distillation");
  CHECK(distil(t.model, {.share = 1.5}) == "training/distillation");
  CHECK(distil(t.model, {.temperature = 0}) == "training/distillation");
}
