// The suite over the host backends in float, whatever format their weights have.
#include "backend/conformance.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/core/half.hpp"

namespace {

using namespace wanamaker;  // bfloat16 is qualified: OpenBLAS has one in the global namespace
namespace conformance = wanamaker_test::conformance;

using Backends =
    conformance::types<std::tuple<EigenBackend<float, half>>,
                       std::tuple<EigenBackend<float>, EigenBackend<float, half>,
                                  EigenBackend<float, wanamaker::bfloat16>, BlasBackend<float>>>;

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("float backends conform", B, float_backends_conform) {
  conformance::host_everything<B>();
}
TEST_CASE_TEMPLATE_APPLY(float_backends_conform, Backends);

TEST_CASE_TEMPLATE_DEFINE("float backends give the same bytes on any number of threads", B,
                          float_backends_repeat) {
  conformance::same_on_any_threads<B>();
}
TEST_CASE_TEMPLATE_APPLY(float_backends_repeat, Backends);
