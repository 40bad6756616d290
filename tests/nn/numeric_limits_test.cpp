// Numbers at the ends of their range: where a NaN or an infinity arises is named, and what is
// finite by its formulas stays finite, however large, small or many its numbers are.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "nn/tiny_models.hpp"
#include "testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/nn/finite_observer.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;
using FloatBackend = EigenBackend<float>;

const double infinite_value = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// What a watched pass of three tokens says; empty where all is finite.
std::string fault_of_pass(const naive::Model& formulas) {
  FloatBackend backend;
  const AnyTransformer<FloatBackend> model = ModelMaker<FloatBackend>(backend, formulas).any();
  Workspace<FloatBackend> workspace(backend);
  const auto batch = pack(backend, {{1, 5, 2}});
  auto residual = make_matrix(backend, 3, model.config().width);
  try {
    model.forward(backend, batch, residual.view(), workspace,
                  FiniteObserver<FloatBackend>(backend, "batch 4"));
  } catch (const NumericalError& error) {
    CHECK(error.id() == "numeric/non-finite-activation");
    return error.what();
  }
  return "";
}

/// The pass of a model that `poison` has changed.
template <class Poison>
std::string poisoned(naive::Model formulas, Poison&& poison) {
  poison(formulas);
  return fault_of_pass(formulas);
}

/// NLL of every next token of one sequence.
std::vector<double> losses_of(const naive::Model& formulas, const std::vector<int>& tokens) {
  FloatBackend backend;
  const AnyTransformer<FloatBackend> model = ModelMaker<FloatBackend>(backend, formulas).any();
  Workspace<FloatBackend> workspace(backend);
  const auto batch = pack(backend, {tokens});
  auto residual = make_matrix(backend, batch.rows(), model.config().width);
  model.forward(backend, batch, residual.view(), workspace);
  return model.token_losses(backend, residual.view(), all_next_tokens(batch), workspace);
}

void scale_rows(naive::Rows<double>& rows, double factor) {
  for (std::vector<double>& row : rows) {
    for (double& value : row) value *= factor;
  }
}

const std::vector<int> some_tokens{3, 1, 4, 1, 5, 9, 2, 6};

}  // namespace

TEST_CASE("the layer and the component where a value first is not finite are named") {
  static_assert(check_observer<FiniteObserver<FloatBackend>, FloatBackend>());
  CHECK(fault_of_pass(tiny_gpt2()) == "");
  const auto begins = [](const std::string& fault, const std::string& start) {
    INFO(fault);
    CHECK(fault.starts_with(start));
  };
  const naive::Model whole = tiny_gpt2();
  begins(poisoned(whole, [](auto& m) { m.embedding[5][7] = infinite_value; }),
         "layer 0, residual stream, row 1, column 7 of batch 4: ");
  begins(poisoned(whole, [](auto& m) { m.blocks[0].value.bias[3] = not_a_number; }),
         "layer 0, attention heads, row 0, column 3");
  begins(poisoned(whole, [](auto& m) { m.blocks[0].output.bias[2] = -infinite_value; }),
         "layer 0, attention output, row 0, column 2");
  begins(poisoned(whole, [](auto& m) { m.blocks[1].mlp_norm.bias[4] = infinite_value; }),
         "layer 1, MLP input, row 0, column 4");
  begins(poisoned(whole, [](auto& m) { m.blocks[1].down.bias[11] = not_a_number; }),
         "layer 1, MLP output, row 0, column 11");
  // Finite weights, and the sum of two finite parts that float does not hold.
  begins(poisoned(whole,
                  [](auto& m) {
                    m.blocks[1].output.bias[6] = 3e38;
                    m.blocks[1].down.bias[6] = 3e38;
                  }),
         "layer 2, residual stream, row 0, column 6");
}

TEST_CASE("extreme logits have finite losses: those of the formulas") {
  for (const double gain : {1e6, 1e30, 1e-30, 1e-42}) {
    CAPTURE(gain);
    naive::Model formulas = tiny_gpt2();
    for (double& g : formulas.final_norm.gain) g *= gain;
    for (double& b : formulas.final_norm.bias) b *= gain;
    const naive::Trace<double> expected = naive::forward<double>(formulas, some_tokens);
    // Differences of logits that float has to 1e-5 of the largest.
    double largest = 0;
    for (const std::vector<double>& row : expected.logits) {
      for (const double logit : row) largest = std::max(largest, std::abs(logit));
    }
    CHECK(all_close(losses_of(formulas, some_tokens), expected.nll, 1e-5, 1e-5 * largest));
  }
}

TEST_CASE("embeddings below the smallest normal number are no trouble") {
  naive::Model formulas = tiny_llama(true, 0);
  scale_rows(formulas.embedding, 1e-40);
  CHECK(fault_of_pass(formulas) == "");
  const naive::Trace<double> expected = naive::forward<double>(formulas, some_tokens);
  CHECK(all_close(losses_of(formulas, some_tokens), expected.nll, 1e-4, 1e-4));
}

TEST_CASE("a vocabulary of 262,144 tokens, its last one included") {
  const int vocabulary = 1 << 18;
  const naive::Model formulas = random_model({.vocabulary = vocabulary,
                                              .width = 4,
                                              .layers = 1,
                                              .heads = 1,
                                              .key_heads = 1,
                                              .head_width = 4,
                                              .hidden = 4,
                                              .positions = 8,
                                              .tied = true},
                                             true);
  const std::vector<int> tokens{0, vocabulary - 1, 100000, vocabulary - 1, 1};
  const naive::Trace<double> expected = naive::forward<double>(formulas, tokens);
  CHECK(all_close(losses_of(formulas, tokens), expected.nll, 1e-5, 1e-5));
}
