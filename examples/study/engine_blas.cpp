#include "engine_on.hpp"
#include "wanamaker/backend/blas.hpp"

namespace study {

namespace {

std::unique_ptr<Engine> make_engine(const std::filesystem::path& model,
                                    wanamaker::ExecutorRef executor) {
  using Backend = wanamaker::BlasBackend<float>;
  return std::make_unique<EngineOn<Backend>>(
      Backend(executor), model, executor, std::string("float, ") + wanamaker::BlasGemm::library());
}

const EngineRegistration registration("blas", make_engine);

}  // namespace

bool has_blas() {
  return std::string(wanamaker::BlasGemm::library()) != "Eigen";
}

}  // namespace study
