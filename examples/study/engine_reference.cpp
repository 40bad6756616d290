#include "engine_on.hpp"
#include "wanamaker/backend/reference.hpp"

namespace study {

namespace {

std::unique_ptr<Engine> make_engine(const std::filesystem::path& model,
                                    wanamaker::ExecutorRef executor) {
  using Backend = wanamaker::ReferenceBackend<double>;
  return std::make_unique<EngineOn<Backend>>(Backend(), model, executor, "double, naive loops");
}

const EngineRegistration registration("reference", make_engine);

}  // namespace

}  // namespace study
