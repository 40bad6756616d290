// The suite over backends of plain loops: the reference, and an outsider's.
#include "backend/conformance.hpp"
#include "outsider/outsider_backend.hpp"
#include "wanamaker/backend/reference.hpp"

namespace {

using namespace wanamaker;
namespace conformance = wanamaker_test::conformance;

using Backends = conformance::types<
    std::tuple<ReferenceBackend<double>, outsider::LoopBackend>,
    std::tuple<ReferenceBackend<double>, ReferenceBackend<float>, outsider::LoopBackend>>;

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("backends of plain loops conform", B, loops_conform) {
  B backend;
  conformance::everything(backend);
}
TEST_CASE_TEMPLATE_APPLY(loops_conform, Backends);

TEST_CASE("generic operations refuse wrong shapes") {
  ReferenceBackend<double> backend;
  conformance::wrong_operations(backend);
}
