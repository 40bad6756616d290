// For nvcc: a GPT-2 of CublasBackend<float> beside one of ReferenceBackend<double>. Compiled and
// linked wherever nvcc is; where there is a device, too, run: ends with 0 if the losses are the
// same, with 77 where there is no device.
#include <cmath>
#include <cstdio>
#include <vector>

#include "wanamaker/backend/cublas.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/nn/families.hpp"
#include "wanamaker/nn/transformer.hpp"

namespace {

using namespace wanamaker;

constexpr Index width = 32, hidden = 128, vocabulary = 101, positions = 160, layers = 2;

template <class B>
class RandomGpt2 {
 public:
  using Model = Transformer<B, Gpt2Block<B>>;

  explicit RandomGpt2(B& backend) : backend_(backend) {}

  Model make() {
    ModelConfig config;
    config.vocabulary = vocabulary;
    config.width = width;
    config.layers = layers;
    config.positions = positions;
    config.tied_head = true;
    typename Model::Parts parts{.config = config,
                                .embedding = matrix(vocabulary, width, 1.0),
                                .position_table = matrix(positions, width, 0.1),
                                .blocks = {},
                                .final_norm = norm(),
                                .head = {}};
    for (Index l = 0; l < layers; ++l) {
      parts.blocks.emplace_back(
          norm(),
          CausalSelfAttention<B, LearnedPositions>(linear(width, 3 * width), linear(width, width),
                                                   AttentionShape{4, 4, 8, 0.35, 0}, {}),
          norm(), DenseMlp<B, GeluTanh>(linear(width, hidden), linear(hidden, width)));
    }
    return Model(std::move(parts));
  }

 private:
  matrix_t<B> matrix(Index rows, Index cols, double scale) {
    std::vector<scalar_t<B>> values;
    for (Index i = 0; i < rows * cols; ++i) {
      values.push_back(static_cast<scalar_t<B>>(static_cast<float>(scale * random_.normal())));
    }
    return matrix_from_host<scalar_t<B>>(backend_, values.data(), rows, cols);
  }
  Linear<B> linear(Index inputs, Index outputs) {
    return {matrix(inputs, outputs, 0.2), WeightLayout::in_out, matrix(1, outputs, 0.2)};
  }
  LayerNorm<B> norm() { return {matrix(1, width, 1.0), matrix(1, width, 0.1), 1e-5}; }

  B& backend_;
  RandomStream random_{3};
};

template <class B>
std::vector<double> losses_on(B& backend) {
  const auto model = RandomGpt2<B>(backend).make();
  std::vector<TokenId> tokens;
  for (Index i = 0; i < 150; ++i) tokens.push_back(static_cast<TokenId>(i * i % vocabulary));
  const PackedBatch<B> batch(backend, tokens, std::vector<Index>{0, 130, 131, 150});
  Workspace<B> workspace(backend);
  auto residual = make_matrix(backend, batch.rows(), width);
  model.forward(backend, batch, residual.view(), workspace);
  return model.token_losses(backend, residual.view(), all_next_tokens(batch), workspace);
}

}  // namespace

int main() try {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("compiled, not run: no device");
    return 77;
  }
  CublasBackend<float> device;
  ReferenceBackend<double> reference;
  const std::vector<double> expected = losses_on(reference), actual = losses_on(device);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    worst = std::fmax(worst, std::abs(actual[i] - expected[i]));
  }
  std::printf("%zu losses, largest difference %g nats\n", expected.size(), worst);
  return worst < 1e-3 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
