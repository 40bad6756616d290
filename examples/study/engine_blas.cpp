#include "engine_on.hpp"
#include "wanamaker/backend/blas.hpp"

namespace study {

std::unique_ptr<Engine> make_blas_engine(const std::filesystem::path& model,
                                         wanamaker::ExecutorRef executor) {
  using Backend = wanamaker::BlasBackend<float>;
  return std::make_unique<EngineOn<Backend>>(
      Backend(executor), model, executor, std::string("float, ") + wanamaker::BlasGemm::library());
}

bool has_blas() {
  return std::string(wanamaker::BlasGemm::library()) != "Eigen";
}

}  // namespace study
