#include <cstdio>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/nn/perplexity.hpp"
#include "wanamaker/text/tokenizer.hpp"
int main() {
  wanamaker::EigenBackend<float> backend;
  const char* folder = "examples/data/models/books-gpt2";
  auto model = wanamaker::load_model(backend, folder);
  const auto ids = wanamaker::Tokenizer::from_folder(folder).encode("He opened the door.");
  std::printf("whole model: perplexity %.1f\n", wanamaker::perplexity(backend, model, ids));
  model.mlp(0) = wanamaker::ZeroMlp<wanamaker::EigenBackend<float>>{};
  std::printf("without its first MLP: %.1f\n", wanamaker::perplexity(backend, model, ids));
}
