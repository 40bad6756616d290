// Kernels compiled for each instruction set that this machine has give what the formulas give,
// within the same derived tolerances: an ordinary build runs the widest, which a test on one
// machine would otherwise be the only one to see.
#include "wanamaker/backend/instruction_set.hpp"

#include <vector>

#include "backend/conformance.hpp"
#include "wanamaker/backend/reference.hpp"

namespace {

using namespace wanamaker;
namespace conformance = wanamaker_test::conformance;

struct Baseline {
  static bool is_here() { return true; }
  template <class F>
  static void run(Index begin, Index end, const F& f) {
    detail::run_range_baseline(begin, end, f);
  }
};

#if WANAMAKER_DETAIL_DISPATCH
struct Avx2 {
  static bool is_here() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
  template <class F>
  static void run(Index begin, Index end, const F& f) {
    detail::run_range_avx2(begin, end, f);
  }
};
struct Avx512 {
  static bool is_here() {
    return __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  template <class F>
  static void run(Index begin, Index end, const F& f) {
    detail::run_range_avx512(begin, end, f);
  }
};
using All = std::tuple<Baseline, Avx2, Avx512>;
#else
using All = std::tuple<Baseline>;
#endif

/// Naive products; kernels as one instruction set has them.
template <class Set>
struct SetBackend : ReferenceBackend<float> {
  template <class F>
  void for_each_row(Index rows, F f) const {
    Set::run(0, rows, [&f](Index i) { f(i, SerialRowTeam{}); });
  }
};

}  // namespace

template <class Set>
struct wanamaker::backend_traits<SetBackend<Set>> : wanamaker::HostBackendTraits<float> {};

TEST_CASE_TEMPLATE_DEFINE("kernels of every instruction set", Set, every_set) {
  if (!Set::is_here()) {
    MESSAGE("skipped: this machine has not these instructions");
    return;
  }
  SetBackend<Set> backend;
  SUBCASE("norms") conformance::norms(backend);
  SUBCASE("activations") conformance::activations(backend);
  SUBCASE("gated products") conformance::gated_products(backend);
  SUBCASE("attention") conformance::attentions(backend);
  SUBCASE("losses") conformance::losses(backend);
  SUBCASE("for_each_row") conformance::for_each_row(backend);
}
// Where sanitized, conformance_reference_test.cpp has the baseline.
using Sets = conformance::types<std::tuple<Baseline>, All>;
TEST_CASE_TEMPLATE_APPLY(every_set, Sets);

TEST_CASE("a range is visited once, in order") {
  for (const Index begin : {0, 3}) {
    for (const Index end : {0, 3, 20}) {
      std::vector<Index> visited;
      run_range(begin, end, [&visited](Index i) { visited.push_back(i); });
      std::vector<Index> expected;
      for (Index i = begin; i < end; ++i) expected.push_back(i);
      CHECK(visited == expected);
    }
  }
}
