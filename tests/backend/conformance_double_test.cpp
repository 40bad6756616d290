// The suite over the host backends in double.
#include "backend/conformance.hpp"
#include "wanamaker/backend/blas.hpp"

namespace {

using namespace wanamaker;
namespace conformance = wanamaker_test::conformance;

using Backends = conformance::types<std::tuple<BlasBackend<double>>,
                                    std::tuple<EigenBackend<double>, BlasBackend<double>>>;

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("double backends conform", B, double_backends_conform) {
  conformance::host_everything<B>();
}
TEST_CASE_TEMPLATE_APPLY(double_backends_conform, Backends);

TEST_CASE_TEMPLATE_DEFINE("double backends give the same bytes on any number of threads", B,
                          double_backends_repeat) {
  conformance::same_on_any_threads<B>();
}
TEST_CASE_TEMPLATE_APPLY(double_backends_repeat, Backends);
