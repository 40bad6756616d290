#include "engine_on.hpp"
#include "wanamaker/backend/reference.hpp"

namespace study {

std::unique_ptr<Engine> make_reference_engine(const std::filesystem::path& model,
                                              wanamaker::ExecutorRef executor) {
  using Backend = wanamaker::ReferenceBackend<double>;
  return std::make_unique<EngineOn<Backend>>(Backend(), model, executor, "double, naive loops");
}

}  // namespace study
