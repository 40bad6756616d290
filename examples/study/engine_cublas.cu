#include <string>

#include "engine_on.hpp"
#include "wanamaker/backend/cublas.hpp"

namespace study {

namespace {

std::unique_ptr<Engine> make_engine(const std::filesystem::path& model,
                                    wanamaker::ExecutorRef executor) {
  using Backend = wanamaker::CublasBackend<float>;
  Backend backend;
  const std::string arithmetic =
      std::string("float, cuBLAS, ") + wanamaker::name_of(backend.math());
  return std::make_unique<EngineOn<Backend>>(std::move(backend), model, executor, arithmetic);
}

const EngineRegistration registration("cublas", make_engine);

}  // namespace

}  // namespace study
