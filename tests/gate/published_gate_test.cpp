// The published procedure's δ and gates on a real model: layer 3 of books-gpt2 from its weights and
// its text, against exact values stored beside it (../shared/data/reference/README.md).
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gate/gate_testing.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/gate/gated_mlp.hpp"
#include "wanamaker/gate/logistic_gate.hpp"
#include "wanamaker/gate/pca_gate.hpp"
#include "wanamaker/gate/references.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/io/safetensors.hpp"
#include "wanamaker/surrogate/ridge.hpp"
#include "wanamaker/text/rows.hpp"
#include "wanamaker/text/tokenizer.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using RowsBackend = BlasBackend<float>;
constexpr Index published_layer = 3;
constexpr std::size_t positions = 25000;

/// The model and the rows of text that the reference names, each cut at 256 tokens.
class PublishedRows {
 public:
  PublishedRows(const std::filesystem::path& data, const Json& reference)
      : rows_(reference.at("rows")),
        model_(load_model(backend_, data / "models" / "books-gpt2")),
        tokenizer_(Tokenizer::from_folder(data / "models" / "books-gpt2")),
        text_(read_rows(data / "wikitext" / "wiki.test.raw")) {}

  RowsBackend& backend() { return backend_; }
  Index width() const { return model_.config().width; }
  const AnyMlp<RowsBackend>& mlp() const { return model_.mlp(published_layer); }

  /// f(batch, the stream that enters the layer) for every row of a set.
  template <class F>
  void visit(const std::string& set, F f) {
    for (const Json& row : rows_.at(set)) {
      std::vector<TokenId> ids = tokenizer_.encode(text_.at(row[0].get<std::size_t>()));
      REQUIRE(ids.size() == row[1].get<std::size_t>());
      ids.resize(std::min<std::size_t>(ids.size(), 256));
      const PackedBatch<RowsBackend> batch(backend_, ids);
      const Workspace<RowsBackend>::Frame frame(workspace_);
      const MatrixView<float> residual = workspace_.matrix(batch.rows(), width());
      model_.embed(backend_, batch, residual);
      model_.visit([&](const auto& m) {
        for (Index l = 0; l < published_layer; ++l) {
          m.block(l).forward(backend_, l, batch, residual, workspace_);
        }
      });
      f(batch, residual);
    }
  }

  /// Adds the layer's MLP input of every token but the last, which predicts nothing.
  void add_inputs(const PackedBatch<RowsBackend>& batch, ConstMatrixView<float> residual,
                  std::vector<float>& inputs) {
    const Workspace<RowsBackend>::Frame frame(workspace_);
    const MatrixView<float> carry = workspace_.matrix(batch.rows(), width());
    const MatrixView<float> input = workspace_.matrix(batch.rows(), width());
    model_.attend(backend_, published_layer, batch, residual, carry, input, workspace_);
    inputs.insert(inputs.end(), input.data, input.data + (batch.rows() - 1) * width());
  }

  /// Adds the losses of all tokens but the first, with a policy in the layer's place.
  void add_losses(const AnyMlp<RowsBackend>& policy, const PackedBatch<RowsBackend>& batch,
                  ConstMatrixView<float> residual, std::vector<double>& losses) {
    const Workspace<RowsBackend>::Frame frame(workspace_);
    const MatrixView<float> stream = workspace_.matrix(batch.rows(), width());
    ops::copy(backend_, residual, stream);
    model_.visit([&](const auto& m) {
      m.block(published_layer)
          .forward_with(policy, backend_, published_layer, batch, stream, workspace_);
    });
    model_.forward_from(backend_, published_layer + 1, batch, stream, workspace_);
    const std::vector<double> own =
        model_.token_losses(backend_, stream, all_next_tokens(batch), workspace_);
    losses.insert(losses.end(), own.begin(), own.end());
  }

  /// Losses of a set with a policy in the layer's place.
  std::vector<double> losses(const std::string& set, const AnyMlp<RowsBackend>& policy) {
    std::vector<double> all;
    visit(set, [&](const PackedBatch<RowsBackend>& batch, ConstMatrixView<float> residual) {
      add_losses(policy, batch, residual, all);
    });
    return all;
  }

 private:
  Json rows_;
  RowsBackend backend_{};
  AnyTransformer<RowsBackend> model_;
  Tokenizer tokenizer_;
  std::vector<std::string> text_;
  Workspace<RowsBackend> workspace_{backend_};
};

/// What the gates are fitted to: MLP inputs, and the cost of a surrogate, at the first 25,000
/// positions of the training rows.
struct GateTraining {
  std::vector<float> x{};
  std::vector<double> delta{};
};

GateTraining gate_training(PublishedRows& rows, const AnyMlp<RowsBackend>& surrogate) {
  GateTraining training;
  std::vector<double> full;
  std::vector<double> linear;
  rows.visit("train", [&](const PackedBatch<RowsBackend>& batch, ConstMatrixView<float> residual) {
    rows.add_inputs(batch, residual, training.x);
    rows.add_losses(rows.mlp(), batch, residual, full);
    rows.add_losses(surrogate, batch, residual, linear);
  });
  REQUIRE(full.size() >= positions);
  training.x.resize(positions * static_cast<std::size_t>(rows.width()));
  for (std::size_t i = 0; i < positions; ++i) training.delta.push_back(linear[i] - full[i]);
  return training;
}

double sum_of_values(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

double percent_above_half(const std::vector<double>& scores) {
  const auto above = std::count_if(scores.begin(), scores.end(), [](double g) { return g > 0.5; });
  return 100 * static_cast<double>(above) / static_cast<double>(scores.size());
}

double percent_right(const std::vector<double>& scores, const std::vector<std::uint8_t>& labels) {
  double right = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) right += (scores[i] > 0.5) == (labels[i] == 1);
  return 100 * right / static_cast<double>(scores.size());
}

/// Values of one pass of the reference program.
struct StoredPass {
  Json numbers;
  SafetensorsFile tensors;

  explicit StoredPass(const std::filesystem::path& folder)
      : numbers(parse_json_file(folder / "intermediate_books_gpt2.json")),
        tensors(SafetensorsFile::open(folder / "intermediate_books_gpt2_layer3.safetensors")) {}

  std::vector<double> values(const std::string& name) const {
    return tensors.read<double>("float32_one_thread." + name);
  }
  double number(const std::string& name) const {
    return numbers.at("float32_one_thread").at(name).get<double>();
  }
};

/// δ of every position, and its statistics. The reference's own float and double passes differ by
/// up to 5e-6 at a position and by 1e-6 of the standard deviation.
void check_delta(const StoredPass& stored, const std::vector<double>& delta) {
  CHECK(all_close(delta, stored.values("delta"), 0, 2e-5));
  const double n = static_cast<double>(delta.size());
  const double mean = sum_of_values(delta) / n;
  double square = 0;
  for (const double value : delta) square += (value - mean) * (value - mean);
  CHECK(std::abs(mean - stored.number("delta_mean")) < 1e-7);
  CHECK(std::abs(std::sqrt(square / n) / stored.number("delta_std") - 1) < 1e-5);
  CHECK(std::abs(sorted_quantile(sorted_copy(delta), 0.5) - stored.number("delta_median")) < 1e-6);
  CHECK(std::abs(100 * published_labels(delta).negative_delta_share -
                 stored.number("beneficial_pct")) < 0.02);
}

/// The gate on the labels of the stored δ: a label at the median may flip with a rounding.
LinearScore check_plain_gate(const StoredPass& stored, ConstMatrixView<float> x,
                             const std::vector<std::uint8_t>& labels) {
  RowsBackend backend;
  const LogisticFit fit = fit_logistic_regression(backend, x, labels);
  CHECK(fit.report.converged());
  // Inputs are float here and there, with roundings of their own.
  CHECK(all_close(fit.scaling.mean, stored.values("scaler_mean"), 0, 1e-5));
  CHECK(all_close(fit.scaling.scale, stored.values("scaler_scale"), 1e-5, 0));
  CHECK(std::abs(fit.report.objective - stored.number("tight_gate_objective")) < 1e-3);
  // The reference's own float and double passes agree to 5e-5.
  CHECK(all_close(fit.coefficients, stored.values("tight_coef"), 0, 2e-4));
  CHECK(all_close(std::vector{fit.intercept}, stored.values("tight_intercept"), 0, 2e-4));
  const std::vector<double> g =
      scores_of(LogisticGate<RowsBackend>(backend, fit.folded()), backend, x);
  CHECK(std::abs(percent_above_half(g) - stored.number("tight_gate_predict_linear_pct")) < 0.02);
  CHECK(std::abs(percent_right(g, labels) - 100 * stored.number("tight_gate_accuracy")) < 0.02);
  return fit.folded();
}

/// Sums of losses on the evaluation rows: the model, the surrogate everywhere, and where the gate
/// says so. 3e-9 is what the reference's precisions differ by.
void check_evaluation(const StoredPass& stored, PublishedRows& rows,
                      const AnyMlp<RowsBackend>& surrogate, const LinearScore& score) {
  const auto distance = [&](const std::vector<double>& losses, const std::string& name) {
    return std::abs(sum_of_values(losses) / stored.number(name) - 1);
  };
  const std::vector<double> full = rows.losses("eval", rows.mlp());
  CHECK(static_cast<double>(full.size()) == stored.number("eval_count"));
  CHECK(distance(full, "baseline_nll_sum") < 1e-7);
  CHECK(distance(rows.losses("eval", surrogate), "all_linear_nll_sum") < 1e-7);
  using Gated = GatedMlp<LogisticGate<RowsBackend>, MlpReference<AnyMlp<RowsBackend>>,
                         MlpReference<AnyMlp<RowsBackend>>>;
  const Gated gated =
      Gated::hard({rows.backend(), score}, MlpReference<AnyMlp<RowsBackend>>(surrogate),
                  MlpReference<AnyMlp<RowsBackend>>(rows.mlp()), 0.5);
  // A position whose g is a rounding from 0.5 may go the other way: it moves the sum by about 0.03.
  CHECK(distance(rows.losses("eval", AnyMlp<RowsBackend>(MlpReference<Gated>(gated))),
                 "tight_gated_nll_sum") < 2e-6);
  CHECK(std::abs(static_cast<double>(gated.surrogate_rows()) -
                 stored.number("tight_gated_linear_positions")) <= 3);
  CHECK(static_cast<double>(gated.counts().total()) == stored.number("tight_gated_positions"));
}

/// PCA-2, -6 and -12 as the script's log has them, to its digits.
void check_pca_gates(ConstMatrixView<float> x, const std::vector<double>& delta,
                     const std::vector<std::uint8_t>& labels) {
  RowsBackend backend;
  const std::vector<Index> counts{2, 6, 12};
  const std::vector<double> routed{45.6, 47.2, 44.4};
  const std::vector<double> accuracy{50.3, 52.6, 52.9};
  const auto gates = fit_pca_gates(backend, x, gate_moments(backend, x, delta), labels, counts);
  for (std::size_t k = 0; k < 3; ++k) {
    CAPTURE(counts[k]);
    CHECK(gates[k].report.converged());
    const std::vector<double> g = scores_of(gates[k].gate, backend, x);
    CHECK(std::abs(percent_above_half(g) - routed[k]) < 0.2);
    CHECK(std::abs(percent_right(g, labels) - accuracy[k]) < 0.1);
  }
}

}  // namespace

TEST_CASE("the published layer from weights and text: δ, gates, and what they cost") {
  const auto data = shared_data();
  if (!data || !shared_data("reference/intermediate_books_gpt2.json")) return;
  const StoredPass stored(*data / "reference");
  PublishedRows rows(*data, stored.numbers);
  const AffineMap map{rows.width(), rows.width(), stored.values("W"), stored.values("b")};
  const AnyMlp<RowsBackend> surrogate(RidgeSurrogate(map, {}).to_mlp(rows.backend()));
  const GateTraining training = gate_training(rows, surrogate);
  check_delta(stored, training.delta);
  const std::vector<double> delta = stored.values("delta");
  const DeltaLabels labels = published_labels(delta);
  CHECK(std::abs(100 * labels.negative_delta_share - stored.number("beneficial_pct")) < 1e-9);
  const auto x = view_of(training.x, rows.width());
  const LinearScore gate = check_plain_gate(stored, x, labels.labels);
  check_pca_gates(x, delta, labels.labels);
  check_evaluation(stored, rows, surrogate, gate);
}
