// The customisation points from outside: a foreign backend and a foreign policy, each of at most 70
// lines, carry a whole model. (tests/backend holds the backend to the conformance suite.)
#include "nn/tiny_models.hpp"
#include "outsider/outsider_backend.hpp"
#include "outsider/outsider_mlp.hpp"
#include "testing.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/nn/backward/transformer.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;
using outsider::LoopBackend;
using outsider::OneLayerMlp;

int lines_of(const std::string& file) {
  const std::string text =
      read_bytes(std::string(WANAMAKER_SOURCE_DIR) + "/tests/outsider/" + file);
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

/// Losses of a batch of three sequences.
template <class Model, class B>
std::vector<double> losses_of(B& backend, const Model& model,
                              const std::vector<std::vector<int>>& sequences) {
  const PackedBatch<B> batch = pack(backend, sequences);
  Workspace<B> workspace(backend);
  auto residual = make_matrix(backend, batch.rows(), model.config().width);
  model.forward(backend, batch, residual.view(), workspace);
  return model.token_losses(backend, residual.view(), all_next_tokens(batch), workspace);
}

/// |actual − value| within ten deviations for every number.
bool within_deviations(const std::vector<double>& actual,
                       const std::vector<naive::Uncertain>& expected) {
  bool good = actual.size() == expected.size();
  for (std::size_t i = 0; good && i < actual.size(); ++i) {
    good = std::abs(actual[i] - expected[i].value) <= 10 * std::sqrt(expected[i].variance);
  }
  return good;
}

/// The foreign backend with weights in the type that it computes in, which training needs.
struct TrainingLoopBackend : LoopBackend {};

}  // namespace

template <>
struct wanamaker::backend_traits<TrainingLoopBackend> : wanamaker::HostBackendTraits<float> {};

static_assert(check_backend<LoopBackend>());
static_assert(check_mlp_policy<OneLayerMlp, LoopBackend>());

TEST_CASE("a complete foreign backend and a foreign policy fit in 70 lines each") {
  for (const char* file : {"outsider_backend.hpp", "outsider_mlp.hpp"}) {
    CHECK(lines_of(file) > 20);
    CHECK(lines_of(file) <= 70);
  }
}

TEST_CASE("models of two families run on a foreign backend, weights in half") {
  for (const naive::Model& formulas : {tiny_gpt2(), tiny_llama(true, 0)}) {
    LoopBackend backend;
    const auto sequences = random_sequences(formulas.settings.vocabulary, {70, 1, 9});
    std::vector<naive::Uncertain> expected;
    for (const std::vector<int>& sequence : sequences) {
      const auto own = naive::forward<naive::Uncertain>(formulas, sequence).nll;
      expected.insert(expected.end(), own.begin(), own.end());
    }
    const auto model = ModelMaker<LoopBackend>(backend, formulas).any();
    CHECK(within_deviations(losses_of(backend, model, sequences), expected));
  }
}

TEST_CASE("a foreign policy stands in a block, by its type and type-erased") {
  LoopBackend backend;
  const naive::Model formulas = tiny_gpt2();
  std::vector<float> weight(12 * 12);
  RandomStream random(3);
  for (float& w : weight) w = static_cast<float>(random.uniform() - 0.5);
  const OneLayerMlp policy(weight, 12);
  const auto sequences = random_sequences(31, {20, 5});
  const ModelMaker<LoopBackend> maker(backend, formulas);
  const auto with = [&](auto mlp_of) {
    using Mlp = decltype(mlp_of());
    using Model = Transformer<LoopBackend, Gpt2Block<LoopBackend, Mlp>>;
    const Model model = maker.transformer<Model, LearnedPositions>(
        WeightLayout::in_out, [&](const naive::Block&, WeightLayout) { return mlp_of(); });
    return losses_of(backend, model, sequences);
  };
  const std::vector<double> own = with([&] { return policy; });
  CHECK(own == with([&] { return AnyMlp<LoopBackend>(policy); }));
  CHECK(own != with([&] { return ZeroMlp<LoopBackend>(); }));
  CHECK(policy.cost(3).flops == 3.0 * 2 * 144);
}

TEST_CASE("a foreign policy gives what its formula says") {
  const OneLayerMlp policy({1, 2, -3, 4}, 2);
  std::vector<float> x{1, 1, 2, -1}, y(4);
  policy.forward(ConstMatrixView<float>(x.data(), 2, 2), MatrixView<float>(y.data(), 2, 2));
  CHECK(y == std::vector<float>{0, 6, 5, 0});
}

TEST_CASE("a foreign backend trains a model with a foreign policy") {
  using B = TrainingLoopBackend;
  using Model = Transformer<B, Gpt2Block<B, OneLayerMlp>>;
  B backend;
  const naive::Model formulas = tiny_gpt2();
  RandomStream random(3);
  std::vector<float> weight(12 * 12);
  for (float& w : weight) w = static_cast<float>(random.uniform() - 0.5);
  Model model = ModelMaker<B>(backend, formulas)
                    .transformer<Model, LearnedPositions>(
                        WeightLayout::in_out,
                        [&](const naive::Block&, WeightLayout) { return OneLayerMlp(weight, 12); });
  const PackedBatch<B> batch = pack(backend, random_sequences(31, {20, 5}));
  Workspace<B> workspace(backend);
  const Gradients<B> gradients(backend, model);
  const ParameterList<B> list = parameters(model, gradients);
  CHECK(std::count_if(list.begin(), list.end(), [](const auto& p) {
          return p.name.ends_with("mlp.one_layer") && !p.frozen;
        }) == 2);
  // Going down the gradient by a little changes the loss by −step·‖gradient‖², to first order.
  const auto loss = [&] {
    return loss_and_gradients(model, backend, batch, all_next_tokens(batch), gradients, workspace);
  };
  const double before = loss();
  double square = 0;
  constexpr float step = 1e-3f;
  for (const Parameter<B>& p : list) {
    for (Index e = 0; e < p.value.size(); ++e) {
      square += static_cast<double>(p.gradient.data[e]) * static_cast<double>(p.gradient.data[e]);
      p.value.data[e] -= step * p.gradient.data[e];
    }
  }
  const double change = loss() - before;
  CHECK(change < -0.9 * static_cast<double>(step) * square);
  CHECK(change > -1.1 * static_cast<double>(step) * square);
}
