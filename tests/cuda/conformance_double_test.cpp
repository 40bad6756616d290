// The suite that every backend passes, over the backend on a device in double.
#include "backend/conformance.hpp"
#include "cuda/cuda_testing.hpp"

namespace {

using namespace wanamaker;
namespace conformance = wanamaker_test::conformance;

using Backends = std::tuple<CublasBackend<double>>;

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("double backends on a device conform", B, device_double_conforms) {
  B backend = wanamaker_test::small_backend<B>();
  conformance::everything(backend);
}
TEST_CASE_TEMPLATE_APPLY(device_double_conforms, Backends);
