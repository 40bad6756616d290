// The suite that every backend passes, over the backend on a device in float.
#include "backend/conformance.hpp"
#include "cuda/cuda_testing.hpp"
#include "wanamaker/core/half.hpp"

namespace {

using namespace wanamaker;  // half is qualified: CUDA has one in the global namespace
namespace conformance = wanamaker_test::conformance;

using Backends =
    conformance::types<std::tuple<CublasBackend<float, wanamaker::half>>,
                       std::tuple<CublasBackend<float>, CublasBackend<float, wanamaker::half>,
                                  CublasBackend<float, wanamaker::bfloat16>>>;

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("float backends on a device conform", B, device_float_conforms) {
  B backend = wanamaker_test::small_backend<B>();
  conformance::everything(backend);
}
TEST_CASE_TEMPLATE_APPLY(device_float_conforms, Backends);
