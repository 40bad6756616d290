// The published procedure's own ridge fit of one layer of a trained model, compared with ours by
// what the two maps predict on the fit data.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "surrogate_data.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/io/third_party/json.hpp"
#include "wanamaker/surrogate/co_moment_collector.hpp"
#include "wanamaker/surrogate/prediction_distance.hpp"
#include "wanamaker/surrogate/ridge.hpp"
#include "wanamaker/text/tokenizer.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Blas = BlasBackend<double>;
constexpr Index layer = 3;

struct Batches {
  std::vector<TokenId> tokens;
  std::vector<Index> offsets{0};
};

/// Rows [0, 500) of the text with their line feeds, blank ones left out, each cut at 256 tokens.
Batches fit_rows(const Tokenizer& tokenizer, const std::filesystem::path& text, Index wanted) {
  std::ifstream in(text, std::ios::binary);
  Batches rows;
  std::string line;
  while (static_cast<Index>(rows.tokens.size()) < wanted && std::getline(in, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::vector<TokenId> ids = tokenizer.encode(line + "\n");
    ids.resize(std::min<std::size_t>(ids.size(), 256));
    rows.tokens.insert(rows.tokens.end(), ids.begin(), ids.end());
    rows.offsets.push_back(static_cast<Index>(rows.tokens.size()));
  }
  return rows;
}

/// Inputs and outputs of the layer's MLP as float, as a model in single precision has them.
struct Activations {
  Index width = 0;
  std::vector<float> x{};
  std::vector<float> y{};

  void on_mlp_input(Index l, ConstMatrixView<double> rows) { keep(l, rows, x); }
  void on_mlp_output(Index l, ConstMatrixView<double> rows) { keep(l, rows, y); }

  CoMoments moments(GramPrecision precision) const {
    PlainBackend<float> backend;
    Workspace<PlainBackend<float>> workspace(backend);
    const Index n = static_cast<Index>(x.size()) / width;
    CoMoments moments(width, width, precision);
    moments.add<PlainBackend<float>>(backend, ConstMatrixView<float>(x.data(), n, width),
                                     ConstMatrixView<float>(y.data(), n, width), workspace);
    return moments;
  }

 private:
  void keep(Index l, ConstMatrixView<double> rows, std::vector<float>& values) {
    if (l != layer) return;
    width = rows.cols;
    for (Index i = 0; i < rows.rows; ++i) {
      for (Index j = 0; j < width; ++j) values.push_back(static_cast<float>(rows(i, j)));
    }
  }
};

/// Blocks 0 … layer; what comes after changes nothing.
template <class Observer>
void run_to_layer(Blas& backend, const AnyTransformer<Blas>& model, const PackedBatch<Blas>& batch,
                  Workspace<Blas>& workspace, Observer& observer) {
  auto residual = make_matrix(backend, batch.rows(), model.config().width);
  model.visit([&](const auto& m) {
    m.embed(backend, batch, residual.view());
    for (Index l = 0; l <= layer; ++l) {
      m.block(l).forward(backend, l, batch, residual.view(), workspace, observer);
    }
  });
}

template <class Observer>
void run_rows(Blas& backend, const AnyTransformer<Blas>& model, const Batches& rows,
              Observer& observer) {
  Workspace<Blas> workspace(backend);
  for (std::size_t s = 0; s + 1 < rows.offsets.size(); s += 8) {
    const std::size_t end = std::min(s + 8, rows.offsets.size() - 1);
    std::vector<Index> offsets;
    for (std::size_t i = s; i <= end; ++i) offsets.push_back(rows.offsets[i] - rows.offsets[s]);
    const auto tokens = std::span(rows.tokens)
                            .subspan(static_cast<std::size_t>(rows.offsets[s]),
                                     static_cast<std::size_t>(offsets.back()));
    run_to_layer(backend, model, PackedBatch<Blas>(backend, tokens, offsets), workspace, observer);
  }
}

CoMoments collect_layer(Blas& backend, const AnyTransformer<Blas>& model, const Batches& rows,
                        Index limit) {
  CoMomentCollector<Blas> collector(backend, model.layers(), model.config().width,
                                    {.layers = {layer}, .row_limit = limit});
  run_rows(backend, model, rows, collector);
  collector.finish();
  return collector.moments(layer);
}

}  // namespace

/// What float products do to a fit of a trained layer: docs/surrogates.md quotes these figures.
TEST_CASE("blocked products move a trained layer's predictions by no more than is documented") {
  const auto data = shared_data();
  if (!data) return;
  const std::filesystem::path folder = *data / "models" / "books-gpt2";
  Blas backend;
  const AnyTransformer<Blas> model = load_model(backend, folder);
  Activations activations;
  run_rows(backend, model,
           fit_rows(Tokenizer::from_folder(folder), *data / "wikitext" / "wiki.test.raw", 10000),
           activations);
  const CoMoments exact = activations.moments(GramPrecision::exact);
  const CoMoments blocked = activations.moments(GramPrecision::blocked);
  for (const RidgeOptions& options : {RidgeOptions{0.01, LambdaScale::absolute}, RidgeOptions{}}) {
    const auto fit = RidgeSurrogate::fit(exact, options);
    const auto rough = RidgeSurrogate::fit(blocked, options);
    const double distance = prediction_distance(rough.map(), fit.map(), exact);
    const double r2_lost = explained(fit.map(), exact).r2 - explained(rough.map(), exact).r2;
    MESSAGE("lambda " << fit.report().lambda << ": condition " << fit.report().condition
                      << ", predictions move by " << distance << ", R2 "
                      << fit.report().in_sample.r2 << " falls by " << r2_lost
                      << ", solved by Cholesky: "
                      << (rough.report().method == RidgeMethod::cholesky));
    CHECK(distance < 1e-4);
    CHECK(std::abs(r2_lost) < 1e-8);
  }
}

TEST_CASE("the published fit of a trained model's layer is reproduced") {
  const auto data = shared_data();
  if (!data) return;
  const std::filesystem::path folder = *data / "models" / "books-gpt2";
  const auto tensors =
      SafetensorsFile::open(*data / "reference" / "intermediate_books_gpt2_layer3.safetensors");
  std::ifstream in(*data / "reference" / "intermediate_books_gpt2.json");
  const nlohmann::json published = nlohmann::json::parse(in).at("float64_one_thread");
  const auto published_values = [&](const std::string& name) {
    return tensors.read<double>("float64_one_thread." + name);
  };

  Blas backend;
  const AnyTransformer<Blas> model = load_model(backend, folder);
  const Batches rows =
      fit_rows(Tokenizer::from_folder(folder), *data / "wikitext" / "wiki.test.raw", 10000);
  CHECK(rows.tokens.size() == 10105);
  const CoMoments moments = collect_layer(backend, model, rows, 10000);
  const auto fit = RidgeSurrogate::fit(moments, {0.01, LambdaScale::absolute});

  // Both run in double. Activations agree to about 1e-13; directions of size √0.01 = 0.1 or less,
  // against 10³ for the largest, are where a fit could carry that 10⁴ times as far, at most.
  CHECK(all_close(moments.mean_x(), published_values("x_mean"), 1e-10, 1e-10));
  CHECK(all_close(moments.mean_y(), published_values("y_mean"), 1e-10, 1e-10));
  const Index d = moments.inputs();
  const AffineMap expected{d, d, published_values("W"), published_values("b")};
  CHECK(prediction_distance(fit.map(), expected, moments) < 1e-10);
  CHECK(std::abs(fit.report().in_sample.r2 - published.at("fit_r2").get<double>()) < 1e-9);
  CHECK(fit.report().method == RidgeMethod::cholesky);
  double norm = 0;
  for (const double w : fit.map().weight) norm += w * w;
  CHECK(std::abs(std::sqrt(norm) - published.at("W_norm").get<double>()) < 1e-8);

  // In single precision the published map itself moves by more than that.
  const AffineMap in_float{d, d, tensors.read<double>("float32.W"),
                           tensors.read<double>("float32.b")};
  MESSAGE("predictions differ by "
          << prediction_distance(fit.map(), expected, moments) << ", those of the float32 pass by "
          << prediction_distance(in_float, expected, moments) << "; condition "
          << fit.report().condition);
  CHECK(prediction_distance(in_float, expected, moments) < 1e-4);

  // A LayerNorm's output lies in a subspace: without a penalty one direction has no size.
  const auto bare = RidgeSurrogate::fit(moments, {0.0, LambdaScale::absolute});
  CHECK(bare.report().rank == d - 1);
}
