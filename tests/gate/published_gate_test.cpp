// The published procedure's gates on a real model: layer 3 of books-gpt2 from its weights and its
// text, against exact values stored beside it (../shared/data/reference/README.md).
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gate/gate_testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/gate/logistic_gate.hpp"
#include "wanamaker/gate/pca_gate.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/io/safetensors.hpp"
#include "wanamaker/text/rows.hpp"
#include "wanamaker/text/tokenizer.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using B = EigenBackend<float>;
constexpr Index layer = 3;
constexpr std::size_t positions = 25000;

/// Adds layer 3's MLP input of every token but the last, which predicts nothing.
void add_inputs(B& backend, const AnyTransformer<B>& model, const PackedBatch<B>& batch,
                Workspace<B>& workspace, std::vector<float>& inputs) {
  const Workspace<B>::Frame frame(workspace);
  const Index width = model.config().width;
  const MatrixView<float> residual = workspace.matrix(batch.rows(), width);
  const MatrixView<float> carry = workspace.matrix(batch.rows(), width);
  const MatrixView<float> input = workspace.matrix(batch.rows(), width);
  model.embed(backend, batch, residual);
  model.visit([&](const auto& m) {
    for (Index l = 0; l < layer; ++l) m.block(l).forward(backend, l, batch, residual, workspace);
    m.block(layer).attend(backend, layer, batch, residual, carry, input, workspace);
  });
  inputs.insert(inputs.end(), input.data, input.data + (batch.rows() - 1) * width);
}

std::vector<float> gate_inputs(const std::filesystem::path& data, const Json& reference) {
  B backend;
  const std::filesystem::path folder = data / "models" / "books-gpt2";
  const AnyTransformer<B> model = load_model(backend, folder);
  const Tokenizer tokenizer = Tokenizer::from_folder(folder);
  const std::vector<std::string> rows = read_rows(data / "wikitext" / "wiki.test.raw");
  Workspace<B> workspace(backend);
  std::vector<float> inputs;
  for (const Json& row : reference.at("rows").at("train")) {
    std::vector<TokenId> ids = tokenizer.encode(rows.at(row[0].get<std::size_t>()));
    REQUIRE(ids.size() == row[1].get<std::size_t>());
    ids.resize(std::min<std::size_t>(ids.size(), 256));
    add_inputs(backend, model, PackedBatch<B>(backend, ids), workspace, inputs);
  }
  inputs.resize(positions * static_cast<std::size_t>(model.config().width));
  return inputs;
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

void check_plain_gate(const StoredPass& stored, ConstMatrixView<float> x,
                      const std::vector<std::uint8_t>& labels) {
  B backend;
  const LogisticFit fit = fit_logistic_regression(backend, x, labels);
  CHECK(fit.report.converged());
  // Inputs are float here and there, with roundings of their own.
  CHECK(all_close(fit.scaling.mean, stored.values("scaler_mean"), 0, 1e-5));
  CHECK(all_close(fit.scaling.scale, stored.values("scaler_scale"), 1e-5, 0));
  CHECK(std::abs(fit.report.objective - stored.number("tight_gate_objective")) < 1e-3);
  // The reference's own float and double passes agree to 5e-5.
  CHECK(all_close(fit.coefficients, stored.values("tight_coef"), 0, 2e-4));
  CHECK(all_close(std::vector{fit.intercept}, stored.values("tight_intercept"), 0, 2e-4));
  const std::vector<double> g = scores_of(LogisticGate<B>(backend, fit.folded()), backend, x);
  CHECK(std::abs(percent_above_half(g) - stored.number("tight_gate_predict_linear_pct")) < 0.02);
  CHECK(std::abs(percent_right(g, labels) - 100 * stored.number("tight_gate_accuracy")) < 0.02);
}

/// PCA-2, -6 and -12 as the script's log has them, to its digits.
void check_pca_gates(ConstMatrixView<float> x, const std::vector<double>& delta,
                     const std::vector<std::uint8_t>& labels) {
  B backend;
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

TEST_CASE("the published gates of a real layer") {
  const auto data = shared_data();
  if (!data || !shared_data("reference/intermediate_books_gpt2.json")) return;
  const StoredPass stored(*data / "reference");
  const std::vector<float> x = gate_inputs(*data, stored.numbers);
  const std::vector<double> delta = stored.values("delta");
  const DeltaLabels labels = published_labels(delta);
  CHECK(std::abs(100 * labels.negative_delta_share - stored.number("beneficial_pct")) < 1e-9);
  check_plain_gate(stored, view_of(x, 192), labels.labels);
  check_pca_gates(view_of(x, 192), delta, labels.labels);
}
