// What the tests of this layer share: parameters in the memory of a backend, and a model small
// enough to have its gradient by hand.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/backend.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/nn/parameters.hpp"
#include "wanamaker/train/batches.hpp"

namespace wanamaker_test {

/// Owns the values and gradients of a list of parameters.
template <class B>
class OwnedParameters {
 public:
  explicit OwnedParameters(B& backend) : backend_(&backend) {}

  /// Adds a parameter with these values [rows × cols] and a gradient of 0.
  void add(std::string name, bool decays, wanamaker::Index rows, wanamaker::Index cols,
           const std::vector<double>& values, bool frozen = false) {
    const std::vector<wanamaker::scalar_t<B>> own(values.begin(), values.end());
    memory_.push_back(wanamaker::matrix_from_host(*backend_, own.data(), rows, cols));
    const auto value = memory_.back().view();
    memory_.push_back(wanamaker::make_matrix(*backend_, frozen ? 0 : rows, frozen ? 0 : cols));
    list.push_back({std::move(name), decays, value, memory_.back().view(), frozen});
  }

  /// All values, one parameter after the other.
  std::vector<double> values() const {
    std::vector<double> all;
    for (const auto& p : list) {
      for (wanamaker::Index i = 0; i < p.value.rows; ++i) {
        for (wanamaker::Index j = 0; j < p.value.cols; ++j) {
          all.push_back(static_cast<double>(p.value(i, j)));
        }
      }
    }
    return all;
  }

  wanamaker::ParameterList<B> list{};

 private:
  B* backend_;
  std::vector<wanamaker::matrix_t<B>> memory_{};
};

/// logits = table[token] + bias, on the host: the loss is a mean of −log softmax(logits)[target].
/// The list holds table [V × V], then bias [1 × V].
template <class B>
double bigram_loss_and_gradients(const wanamaker::ParameterList<B>& list,
                                 const wanamaker::TrainingBatch& batch) {
  using T = wanamaker::scalar_t<B>;
  const auto& table = list[0];
  const auto& bias = list[1];
  const wanamaker::Index vocabulary = table.value.cols;
  const double share = 1.0 / static_cast<double>(batch.scored.targets.size());
  double loss = 0;
  for (std::size_t i = 0; i < batch.scored.targets.size(); ++i) {
    const auto token = batch.tokens[static_cast<std::size_t>(batch.scored.rows[i])];
    std::vector<double> e(static_cast<std::size_t>(vocabulary));
    double sum = 0;
    for (wanamaker::Index v = 0; v < vocabulary; ++v) {
      const double logit =
          static_cast<double>(table.value(token, v)) + static_cast<double>(bias.value(0, v));
      sum += e[static_cast<std::size_t>(v)] = std::exp(logit);
    }
    const auto target = static_cast<wanamaker::Index>(batch.scored.targets[i]);
    loss -= share * std::log(e[static_cast<std::size_t>(target)] / sum);
    for (wanamaker::Index v = 0; v < vocabulary; ++v) {
      const double slope =
          share * (e[static_cast<std::size_t>(v)] / sum - (v == target ? 1.0 : 0.0));
      if (!table.frozen) table.gradient(token, v) += static_cast<T>(slope);
      if (!bias.frozen) bias.gradient(0, v) += static_cast<T>(slope);
    }
  }
  return loss;
}

/// Tokens 0 … V − 1 of which each is mostly followed by its successor.
inline std::vector<wanamaker::TokenId> successor_tokens(wanamaker::TokenId vocabulary, int count) {
  wanamaker::RandomStream random(11);
  std::vector<wanamaker::TokenId> tokens{0};
  for (int i = 1; i < count; ++i) {
    const bool follows = random.below(4) != 0;
    const auto any =
        static_cast<wanamaker::TokenId>(random.below(static_cast<std::uint64_t>(vocabulary)));
    tokens.push_back(follows ? (tokens.back() + 1) % vocabulary : any);
  }
  return tokens;
}

template <class B>
OwnedParameters<B> bigram_parameters(B& backend, wanamaker::Index vocabulary) {
  OwnedParameters<B> parameters(backend);
  const auto n = static_cast<std::size_t>(vocabulary);
  std::vector<double> table(n * n);
  wanamaker::RandomStream random(12);
  for (double& value : table) value = 0.1 * random.normal();
  parameters.add("transformer.wte.weight", true, vocabulary, vocabulary, table);
  parameters.add("transformer.h.0.mlp.c_fc.bias", false, 1, vocabulary, std::vector<double>(n));
  return parameters;
}

}  // namespace wanamaker_test
