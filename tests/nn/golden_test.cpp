// Forward passes against recorded float64 outputs of the reference implementation (golden models),
// and against the trained models' recorded losses. Every sequence on its own, and all in one batch.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/io/model_loader.hpp"

namespace {

using namespace wanamaker;

// Compares every observed stage of some sequences of one packed batch with the recorded ones. The
// allowed error is `tolerance` times the largest recorded magnitude of the stage.
template <class B>
class StageChecker {
 public:
  StageChecker(const SafetensorsFile& expected, std::vector<int> sequences,
               std::span<const Index> offsets, double tolerance)
      : expected_(expected),
        sequences_(std::move(sequences)),
        offsets_(offsets.begin(), offsets.end()),
        tolerance_(tolerance) {}

  void on_residual(Index layer, const_matrix_view_t<B> r) { check("resid", layer, r); }
  void on_attention_output(Index layer, const_matrix_view_t<B> a) { check("attn_out", layer, a); }
  void on_mlp_input(Index layer, const_matrix_view_t<B> x) { check("mlp_in", layer, x); }
  void on_mlp_output(Index layer, const_matrix_view_t<B> y) { check("mlp_out", layer, y); }

  void check(const std::string& stage, Index layer, const_matrix_view_t<B> all) {
    for (std::size_t s = 0; s < sequences_.size(); ++s) {
      const std::string k = "_" + std::to_string(sequences_[s]);
      const std::string key = layer < 0 ? stage + k : stage + k + "_" + std::to_string(layer);
      const std::vector<double> want = expected_.read<double>(key);
      const auto own = all.middle_rows(offsets_[s], offsets_[s + 1] - offsets_[s]);
      REQUIRE(static_cast<std::size_t>(own.size()) == want.size());
      double largest = 0;
      double worst = 0;
      for (Index i = 0; i < own.rows; ++i) {
        for (Index j = 0; j < own.cols; ++j) {
          const double w = want[static_cast<std::size_t>(i * own.cols + j)];
          largest = std::max(largest, std::abs(w));
          const double error = std::abs(static_cast<double>(own(i, j)) - w);
          worst = error <= worst ? worst : error;  // NaN stays, and fails below
        }
      }
      CHECK_MESSAGE(worst <= tolerance_ * largest, key << ": " << worst << " of " << largest);
      ++checked_;
    }
  }
  int checked() const { return checked_; }

 private:
  const SafetensorsFile& expected_;
  std::vector<int> sequences_;
  std::vector<Index> offsets_;
  double tolerance_;
  int checked_ = 0;
};

template <class B>
void check_batch(B& backend, const AnyTransformer<B>& model, const SafetensorsFile& expected,
                 const std::vector<std::vector<TokenId>>& ids, const std::vector<int>& sequences,
                 double tolerance) {
  std::vector<TokenId> tokens;
  std::vector<Index> offsets{0};
  for (const int k : sequences) {
    const auto& own = ids[static_cast<std::size_t>(k)];
    tokens.insert(tokens.end(), own.begin(), own.end());
    offsets.push_back(static_cast<Index>(tokens.size()));
  }
  Workspace<B> workspace(backend);
  const PackedBatch<B> batch(backend, tokens, offsets);
  auto residual = make_matrix(backend, batch.rows(), model.config().width);
  StageChecker<B> checker(expected, sequences, offsets, tolerance);
  model.forward(backend, batch, residual.view(), workspace, checker);
  auto logits = make_matrix(backend, batch.rows(), model.logit_columns());
  model.logits(backend, residual.view(), logits.view(), workspace);
  checker.check("logits", -1, logits.view());
  CHECK(checker.checked() ==
        static_cast<int>(sequences.size()) * (4 * static_cast<int>(model.layers()) + 2));

  const std::vector<double> losses =
      model.token_losses(backend, residual.view(), all_next_tokens(batch), workspace);
  std::vector<double> want;
  for (const int k : sequences) {
    const auto own = expected.read<double>("nll_" + std::to_string(k));
    want.insert(want.end(), own.begin(), own.end());
  }
  CHECK(wanamaker_test::all_close(losses, want, tolerance, 4 * tolerance));
}

template <class B>
void check_golden_models(B backend, double tolerance) {
  for (const char* name : {"tiny-gpt2", "tiny-neox", "tiny-neox-sequential", "tiny-llama"}) {
    const auto folder = wanamaker_test::shared_data("golden/" + std::string(name));
    if (!folder) return;
    CAPTURE(name);
    const AnyTransformer<B> model = load_model(backend, *folder);
    const SafetensorsFile expected = SafetensorsFile::open(*folder / "expected.safetensors");
    const auto ids = parse_json_file(*folder / "ids.json").get<std::vector<std::vector<TokenId>>>();
    for (const std::vector<int>& sequences :
         {std::vector<int>{0}, {1}, {2}, {2, 0, 1}, {0, 1, 2}}) {
      check_batch(backend, model, expected, ids, sequences, tolerance);
    }
  }
}

TEST_CASE("golden models in double, reference and Eigen") {
  check_golden_models(ReferenceBackend<double>(), 1e-10);
  check_golden_models(EigenBackend<double>(), 1e-10);
}

TEST_CASE("golden models in float") {
  // Sums of up to k = 32 + 128 products in each of 3 layers and the head, each off by at most k·eps
  // of its largest term: 4·160·eps of the largest magnitude.
  const double tolerance = 4 * 160 * 0x1p-23;
  check_golden_models(EigenBackend<float>(), tolerance);
}

TEST_CASE("trained models: losses, residuals and MLPs of the first 256 tokens") {
  for (const char* name : {"books-gpt2", "books-neox"}) {
    const auto folder = wanamaker_test::shared_data("models/" + std::string(name));
    if (!folder) return;
    CAPTURE(name);
    using B = EigenBackend<float>;
    B backend;
    const AnyTransformer<B> model = load_model(backend, *folder);
    const SafetensorsFile expected = SafetensorsFile::open(*folder / "expected.safetensors");
    std::vector<TokenId> ids;
    for (const std::int64_t id : expected.read_integers("ids")) {
      ids.push_back(static_cast<TokenId>(id));
    }
    Workspace<B> workspace(backend);
    const PackedBatch<B> batch(backend, ids);
    auto residual = make_matrix(backend, batch.rows(), model.config().width);
    model.forward(backend, batch, residual.view(), workspace);
    const auto losses =
        model.token_losses(backend, residual.view(), all_next_tokens(batch), workspace);
    // As above with k = 192 + 768 in 6 layers; the recorded values are float32 themselves.
    const double tolerance = 7 * 960 * 0x1p-23;
    CHECK(wanamaker_test::all_close(losses, expected.read<double>("nll"), tolerance, tolerance));
  }
}

TEST_CASE("the models that come with the program: float agrees with naive double") {
  for (const char* name : {"books-gpt2", "books-neox"}) {
    const std::string folder = std::string(WANAMAKER_EXAMPLES_DATA) + "/models/" + name;
    CAPTURE(name);
    const std::vector<TokenId> ids{17, 300, 4000, 5, 5, 1234, 42, 2048, 77, 1000, 3, 999};
    const auto losses_with = [&](auto backend) {
      using B = decltype(backend);
      const AnyTransformer<B> model = load_model(backend, folder);
      Workspace<B> workspace(backend);
      const PackedBatch<B> batch(backend, ids);
      auto residual = make_matrix(backend, batch.rows(), model.config().width);
      model.forward(backend, batch, residual.view(), workspace);
      return model.token_losses(backend, residual.view(), all_next_tokens(batch), workspace);
    };
    const double tolerance = 7 * 960 * 0x1p-23;
    CHECK(wanamaker_test::all_close(losses_with(EigenBackend<float>()),
                                    losses_with(ReferenceBackend<double>()), tolerance, tolerance));
  }
}

}  // namespace
