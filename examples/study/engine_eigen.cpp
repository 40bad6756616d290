#include "engine_on.hpp"
#include "wanamaker/backend/eigen.hpp"

namespace study {

namespace {

std::unique_ptr<Engine> make_engine(const std::filesystem::path& model,
                                    wanamaker::ExecutorRef executor) {
  using Backend = wanamaker::EigenBackend<float>;
  return std::make_unique<EngineOn<Backend>>(Backend(executor), model, executor, "float, Eigen");
}

const EngineRegistration registration("eigen", make_engine);

}  // namespace

}  // namespace study
