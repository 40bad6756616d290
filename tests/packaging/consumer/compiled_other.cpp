// Backends that wanamaker::compiled does not hold work with it, too; what it holds is not here.
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/nn/perplexity.hpp"

double perplexity_in_double(const char* folder, const std::vector<wanamaker::TokenId>& ids) {
  wanamaker::ReferenceBackend<double> backend;
  const auto model = wanamaker::load_model(backend, folder);
  return wanamaker::perplexity(backend, model, ids);
}
