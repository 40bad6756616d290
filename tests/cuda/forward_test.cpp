// Whole models on a device: every family's forward pass against its formulas, in double and in
// float with weights in half, and a cache of keys and values.
#include <cmath>
#include <span>
#include <vector>

#include "cuda/cuda_testing.hpp"
#include "nn/tiny_models.hpp"
#include "wanamaker/core/half.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

/// Final stream and losses of a batch of ragged sequences.
struct DeviceOutputs {
  std::vector<double> residual;
  std::vector<double> losses;
};

template <class B>
std::vector<double> values_of(B& backend, const_matrix_view_t<B> m) {
  std::vector<scalar_t<B>> values(static_cast<std::size_t>(m.size()));
  backend.copy_to_host(m.data, m.size(), values.data());
  return {values.begin(), values.end()};
}

template <class B>
DeviceOutputs run_family(B& backend, const naive::Model& formulas,
                         const std::vector<std::vector<int>>& sequences) {
  const AnyTransformer<B> model = ModelMaker<B>(backend, formulas).any();
  const PackedBatch<B> batch = pack(backend, sequences);
  Workspace<B> workspace(backend);
  auto residual = make_matrix(backend, batch.rows(), model.config().width);
  model.forward(backend, batch, residual.view(), workspace);
  return {values_of<B>(backend, residual.view()),
          model.token_losses(backend, residual.view(), all_next_tokens(batch), workspace)};
}

double value_of(double expected) {
  return expected;
}
double value_of(const naive::Uncertain& expected) {
  return expected.value;
}
/// Allowed: 1e-11 of the largest magnitude in double, ten standard deviations in float.
double allowed(double, double largest) {
  return 1e-11 * largest;
}
double allowed(const naive::Uncertain& expected, double) {
  return 10 * std::sqrt(expected.variance);
}

/// Compares as many of `actual`, from `at` on, as `expected` has.
template <class T>
void check_values(const std::vector<double>& actual, std::size_t& at,
                  const std::vector<T>& expected, double largest) {
  REQUIRE(at + expected.size() <= actual.size());
  for (const T& e : expected) {
    const double a = actual[at++];
    CHECK((a == value_of(e) || std::abs(a - value_of(e)) <= allowed(e, largest)));
  }
}

template <class T>
double largest_of(const naive::Rows<T>& rows) {
  double largest = 0;
  for (const auto& row : rows) {
    for (const T& v : row) largest = std::max(largest, std::abs(value_of(v)));
  }
  return largest;
}

template <class B, class T>
void check_families() {
  B backend = small_backend<B>();
  for (const naive::Model& formulas : {tiny_gpt2(), tiny_neox(true), tiny_neox(false),
                                       tiny_llama(true, 0), tiny_llama(false, 3)}) {
    const auto sequences = random_sequences(formulas.settings.vocabulary, {5, 1, 70, 13});
    const DeviceOutputs actual = run_family(backend, formulas, sequences);
    std::size_t value = 0, loss = 0;
    for (const std::vector<int>& sequence : sequences) {
      const naive::Trace<T> expected = naive::forward<T>(formulas, sequence);
      const naive::Rows<T>& stream = expected.residual.back();
      for (const auto& row : stream) {
        check_values(actual.residual, value, row, largest_of(stream));
      }
      check_values(actual.losses, loss, expected.nll, largest_of(naive::Rows<T>(1, expected.nll)));
    }
    CHECK(value == actual.residual.size());
    CHECK(loss == actual.losses.size());
  }
}

}  // namespace

TEST_CASE("every family on a device equals its formulas in double") {
  check_families<CublasBackend<double>, double>();
}

TEST_CASE("every family on a device equals its formulas in float with weights in half") {
  check_families<CublasBackend<float, wanamaker::half>, naive::Uncertain>();
}

TEST_CASE("a cache on a device goes on as if all had been read at once") {
  using B = CublasBackend<double>;
  B backend = small_backend<B>();
  const naive::Model formulas = tiny_llama(true, 0);
  const AnyTransformer<B> model = ModelMaker<B>(backend, formulas).any();
  const auto sequence = random_sequences(formulas.settings.vocabulary, {20}).front();
  const std::vector<TokenId> tokens(sequence.begin(), sequence.end());
  const std::span<const TokenId> all(tokens);
  Workspace<B> workspace(backend);
  const auto last_row = [&](const PackedBatch<B>& batch) {
    auto residual = make_matrix(backend, batch.rows(), model.config().width);
    model.forward(backend, batch, residual.view(), workspace);
    return values_of<B>(backend, residual.view().middle_rows(batch.rows() - 1, 1));
  };
  const std::vector<double> expected = last_row(PackedBatch<B>(backend, all));
  KeyValueCache<B> cache(backend, model.config(), 1, 20);
  last_row(PackedBatch<B>(backend, all.subspan(0, 12), cache));
  const std::vector<double> continued = last_row(PackedBatch<B>(backend, all.subspan(12), cache));
  CHECK(all_close(continued, expected, 1e-11, 1e-11));
}
