// Whole training runs: a tiny GPT-2 beside transformers' recorded losses, models of every family by
// shape, what they begin with, and what they learn.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/train/initialise.hpp"
#include "wanamaker/train/model_loss.hpp"
#include "wanamaker/train/model_shape.hpp"
#include "wanamaker/train/trainer.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

/// tests/reference/training_curve.py has the same.
struct RecordedTraining {
  static constexpr Index window = 32, sequences = 4, steps = 200;
  static constexpr std::size_t token_count = 4000;

  static std::uint32_t mixed(std::uint64_t n) {
    auto x = static_cast<std::uint32_t>(n * 2654435761u + 12345u);
    x ^= x >> 15;
    x *= 2246822519u;
    return x ^ (x >> 13);
  }

  static std::vector<TokenId> tokens() {
    std::vector<TokenId> result{0};
    for (std::uint64_t i = 1; i < token_count; ++i) {
      result.push_back((5 * result.back() + 3 + static_cast<TokenId>(mixed(i) % 3)) % 64);
    }
    return result;
  }

  static TrainingBatch batch(const std::vector<TokenId>& text, Index step) {
    TrainingBatch batch{.offsets = {0}};
    for (Index s = 0; s < sequences; ++s) {
      const std::size_t begin = mixed(static_cast<std::uint64_t>(7 * step + s)) %
                                (token_count - static_cast<std::size_t>(window));
      for (std::size_t i = begin; i < begin + static_cast<std::size_t>(window); ++i) {
        batch.scored.rows.push_back(static_cast<TokenId>(batch.tokens.size()));
        batch.tokens.push_back(text[i]);
        batch.scored.targets.push_back(text[i + 1]);
      }
      batch.offsets.push_back(static_cast<Index>(batch.tokens.size()));
    }
    return batch;
  }

  template <class B>
  static void set_weights(const ParameterList<B>& list) {
    std::uint64_t number = 0;
    for (const Parameter<B>& p : list) {
      if (!p.decays) continue;
      ++number;
      for (Index i = 0; i < p.value.size(); ++i) {
        const double share = mixed(100000 * number + static_cast<std::uint64_t>(i)) / 0x1p32;
        p.value.data[i] = static_cast<scalar_t<B>>(0.08 * (share - 0.5));
      }
    }
  }

  static TrainerOptions options() {
    return {.steps = steps,
            .schedule = {.peak = 5e-3, .warm_up = 20, .steps = steps, .floor = 0.1}};
  }
};

constexpr ModelShape recorded_shape{
    .vocabulary = 64, .width = 32, .layers = 2, .heads = 2, .positions = 32};

// The family's own type: all four behind AnyTransformer take long to compile for one more backend.
template <class B>
std::vector<double> train_as_recorded() {
  B backend;
  detail::ZeroWeights<B> zeros(backend);
  auto model = detail::load_gpt2<B>(zeros, model_config(recorded_shape));
  initialise(backend, model, 1);
  const Gradients<B> gradients(backend, model);
  const ParameterList<B> list = parameters<B>(model, gradients);
  RecordedTraining::set_weights(list);
  Trainer<B> trainer(backend, list, RecordedTraining::options());
  const std::vector<TokenId> text = RecordedTraining::tokens();
  trainer.run([&](Index step) { return RecordedTraining::batch(text, step); },
              ModelLoss(backend, model, gradients));
  std::vector<double> losses;
  for (const TrainingStep& step : trainer.curve()) losses.push_back(step.loss);
  return losses;
}

using FloatBackend = EigenBackend<float>;

/// Losses of 30 steps of a small model on text in which each token follows from the one before.
LossCurve train_family(const ModelConfig& config, bool recompute = false) {
  FloatBackend backend;
  AnyTransformer<FloatBackend> model = make_model(backend, config);
  initialise(backend, model, 5);
  const Gradients<FloatBackend> gradients(backend, model);
  Trainer<FloatBackend> trainer(
      backend, parameters<FloatBackend>(model, gradients),
      {.steps = 30, .schedule = {.peak = 1e-2, .warm_up = 5, .steps = 30}, .accumulation = 2});
  std::vector<TokenId> text(300);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<TokenId>(i * i % 29);
  return trainer.run(WindowSampler(text, 16, 2, 3),
                     ModelLoss(backend, model, gradients, {.recompute = recompute}));
}

constexpr ModelShape small_shape(Family family, Index key_heads = 0) {
  return {.family = family,
          .vocabulary = 29,
          .width = 24,
          .layers = 2,
          .heads = 4,
          .positions = 16,
          .key_heads = key_heads};
}

const Parameter<FloatBackend>& named(const ParameterList<FloatBackend>& list, const char* name) {
  for (const auto& p : list) {
    if (p.name == name) return p;
  }
  FAIL("no parameter " << name);
  return list.front();
}

double deviation_of(const Parameter<FloatBackend>& p) {
  double sum = 0;
  for (Index i = 0; i < p.value.size(); ++i) sum += std::pow(double{p.value.data[i]}, 2);
  return std::sqrt(sum / static_cast<double>(p.value.size()));
}

}  // namespace

TEST_CASE("200 steps follow the losses that transformers recorded") {
  const Json record = parse_json_file(std::filesystem::path(WANAMAKER_SOURCE_DIR) /
                                      "tests/reference/training_curve.json");
  const auto expected = record.at("losses").get<std::vector<double>>();
  REQUIRE(expected.size() == 200);
  // The record has 12 decimals; roundings of double grow with the steps.
  CHECK(all_close(train_as_recorded<EigenBackend<double>>(), expected, 0, 1e-9));
  CHECK(all_close(train_as_recorded<FloatBackend>(), expected, 0, 1e-3));
}

TEST_CASE("models of every family are made by shape, and learn") {
  const Index neox_parameters = 2 * 29 * 24 + 2 * (12 * 24 * 24 + 13 * 24) + 2 * 24;
  ModelShape sequential = small_shape(Family::gpt_neox);
  sequential.parallel_residual = false;
  const Index llama_hidden = 64;  // 8 · 24/3, a multiple of 16 already
  const Index llama_parameters =
      29 * 24 + 2 * (24 * 24 * 2 + 2 * 24 * 12 + 3 * 24 * llama_hidden + 2 * 24) + 24;
  const std::pair<ModelShape, Index> cases[] = {
      {small_shape(Family::gpt2), (29 + 16) * 24 + 2 * (12 * 24 * 24 + 13 * 24) + 2 * 24},
      {small_shape(Family::gpt_neox), neox_parameters},
      {sequential, neox_parameters},
      {small_shape(Family::llama, 2), llama_parameters}};
  for (const auto& [shape, parameter_count] : cases) {
    FloatBackend backend;
    const ModelConfig config = model_config(shape);
    const std::string name = config.name;
    CAPTURE(name);
    CHECK(make_model(backend, config).parameters() == static_cast<double>(parameter_count));
    const LossCurve curve = train_family(config);
    CHECK(std::abs(curve.front().loss - std::log(29.0)) < 0.1);
    CHECK(curve.back().loss < 2.5);
  }
}

TEST_CASE("recomputed activations give the same curve") {
  const ModelConfig config = model_config(small_shape(Family::gpt_neox));
  CHECK(loss_curve_csv(train_family(config)) == loss_curve_csv(train_family(config, true)));
}

TEST_CASE("initial values have the deviations that are said, by seed and name") {
  ModelShape shape{.family = Family::gpt_neox,
                   .vocabulary = 211,
                   .width = 64,
                   .layers = 3,
                   .heads = 2,
                   .positions = 8};
  FloatBackend backend;
  AnyTransformer<FloatBackend> parallel = make_model(backend, model_config(shape));
  shape.parallel_residual = false;
  AnyTransformer<FloatBackend> twin = make_model(backend, model_config(shape));
  AnyTransformer<FloatBackend> other = make_model(backend, model_config(shape));
  initialise(backend, parallel, 8);
  initialise(backend, twin, 8);
  initialise(backend, other, 9);
  const auto list = parameters<FloatBackend>(parallel);
  const auto twin_list = parameters<FloatBackend>(twin);
  const auto other_list = parameters<FloatBackend>(other);
  // The deviation of n draws is off by 1/√(2n); 5 times that at most.
  const auto has_deviation = [&](const char* name, double deviation) {
    const auto& p = named(list, name);
    const double allowed = 5 / std::sqrt(2.0 * static_cast<double>(p.value.size()));
    CHECK(std::abs(deviation_of(p) / deviation - 1) < allowed);
  };
  has_deviation("gpt_neox.embed_in.weight", 0.02);
  has_deviation("embed_out.weight", 0.02);
  has_deviation("gpt_neox.layers.1.attention.query_key_value.weight", 0.02);
  has_deviation("gpt_neox.layers.2.mlp.dense_h_to_4h.weight", 0.02);
  has_deviation("gpt_neox.layers.2.mlp.dense_4h_to_h.weight", 0.02 / std::sqrt(6.0));
  has_deviation("gpt_neox.layers.0.attention.dense.weight", 0.02 / std::sqrt(6.0));
  CHECK(deviation_of(named(list, "gpt_neox.layers.0.input_layernorm.weight")) == 1);
  CHECK(deviation_of(named(list, "gpt_neox.layers.0.input_layernorm.bias")) == 0);
  CHECK(deviation_of(named(list, "gpt_neox.layers.0.attention.dense.bias")) == 0);
  REQUIRE(list.size() == twin_list.size());
  int differing = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto n = static_cast<std::size_t>(list[i].value.size());
    const auto* own = list[i].value.data;
    CHECK(std::equal(own, own + n, twin_list[i].value.data));
    differing += std::equal(own, own + n, other_list[i].value.data) ? 0 : 1;
  }
  CHECK(differing == 2 + 3 * 4);
  CHECK(named(list, "gpt_neox.embed_in.weight").value.data[0] !=
        named(list, "embed_out.weight").value.data[0]);
}

TEST_CASE("frozen groups stay as they were while the rest learns") {
  FloatBackend backend;
  AnyTransformer<FloatBackend> model = make_model(backend, model_config(small_shape(Family::gpt2)));
  initialise(backend, model, 5);
  const ParameterSelection frozen("embeddings,attention:1");
  const Gradients<FloatBackend> gradients(backend, model, frozen);
  const auto list = parameters<FloatBackend>(model, gradients);
  std::vector<std::vector<float>> before;
  for (const auto& p : list) before.emplace_back(p.value.data, p.value.data + p.value.size());
  Trainer<FloatBackend> trainer(backend, list, {.steps = 2});
  const std::vector<TokenId> text = {1, 4, 2, 8, 5, 7, 1, 4, 2, 8, 5, 7, 1, 4, 2, 8, 5, 7};
  trainer.run(WindowSampler(text, 12, 2, 3), ModelLoss(backend, model, gradients));
  for (std::size_t i = 0; i < list.size(); ++i) {
    CAPTURE(list[i].name);
    const bool same = std::equal(before[i].begin(), before[i].end(), list[i].value.data);
    CHECK(same == frozen(list[i].name));
  }
}

TEST_CASE("shapes that no model has are refused") {
  const auto refused = [](auto change) {
    ModelShape shape = small_shape(Family::llama);
    change(shape);
    return error_id([&] { model_config(shape); });
  };
  CHECK(refused([](ModelShape&) {}) == "");
  CHECK(refused([](ModelShape& s) { s.heads = 0; }) == "training/shape");
  CHECK(refused([](ModelShape& s) { s.heads = 5; }) == "training/shape");
  CHECK(refused([](ModelShape& s) { s.heads = 8; }) == "training/shape");  // heads of 3 entries
  CHECK(refused([](ModelShape& s) { s.key_heads = 3; }) == "training/shape");
  CHECK(refused([](ModelShape& s) { s.vocabulary = -1; }) == "training/shape");
  CHECK(refused([](ModelShape& s) { s.family = Family::gpt2, s.key_heads = 2; }) ==
        "training/shape");
}
