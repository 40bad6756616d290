// Scratch memory: frames nest, live views never overlap, nothing is allocated in steady state, and
// growing needs do not add up.
#include "wanamaker/backend/workspace.hpp"

#include <cstdint>
#include <vector>

#include "counting_backend.hpp"
#include "testing.hpp"
#include "wanamaker/backend/generic.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/core/random.hpp"

namespace {

using namespace wanamaker;
using wanamaker_test::CountingBackend;
using Frame = Workspace<CountingBackend>::Frame;
constexpr Index megabyte = Index{1} << 20;

struct Stamped {
  VectorView<std::uint64_t> view;
  std::uint64_t stamp;
};

/// Takes views of random sizes in nested frames; every live view must keep its stamp.
class RandomWalk {
 public:
  RandomWalk(Workspace<CountingBackend>& workspace, std::uint64_t seed)
      : workspace_(workspace), random_(seed) {}

  void descend(int depth) {
    const Frame frame(workspace_);
    const std::size_t live_before = live_.size();
    const std::uint64_t steps = 1 + random_.below(5);
    for (std::uint64_t step = 0; step < steps; ++step) {
      if (depth > 0 && random_.below(2) == 0) {
        descend(depth - 1);
      } else {
        take();
      }
      check();
    }
    live_.resize(live_before);
  }
  bool good() const { return good_; }

 private:
  void take() {
    // From nothing to three chunks' worth.
    const std::uint64_t most = std::uint64_t{1} << random_.below(20);
    const Index n = static_cast<Index>(random_.below(most));
    const Stamped taken{workspace_.vector<std::uint64_t>(n), random_()};
    good_ = good_ && reinterpret_cast<std::uintptr_t>(taken.view.data) % 64 == 0;
    for (Index i = 0; i < n; ++i) taken.view[i] = taken.stamp;
    live_.push_back(taken);
  }
  void check() {
    for (const Stamped& s : live_) {
      if (s.view.empty()) continue;
      good_ = good_ && s.view[0] == s.stamp && s.view[s.view.size - 1] == s.stamp;
    }
  }

  Workspace<CountingBackend>& workspace_;
  RandomStream random_;
  std::vector<Stamped> live_;
  bool good_ = true;
};

}  // namespace

TEST_CASE("a frame gives its memory back, the enclosing one keeps its own") {
  int allocations = 0;
  CountingBackend backend(allocations);
  Workspace<CountingBackend> workspace(backend);
  const Frame outer(workspace);
  const auto kept = workspace.matrix(2, 3);
  kept(1, 2) = 7;
  double* inner_memory = nullptr;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Frame inner(workspace);
    const auto m = workspace.matrix(4, 5);
    CHECK((m.rows == 4 && m.cols == 5 && m.contiguous()));
    if (repeat == 0) inner_memory = m.data;
    CHECK(m.data == inner_memory);
    CHECK(m.data >= kept.data + 6);
    std::fill_n(m.data, 20, 1.0);
  }
  CHECK(kept(1, 2) == 7);
  CHECK(allocations == 1);
}

TEST_CASE("views that live at the same time never overlap") {
  int allocations = 0;
  CountingBackend backend(allocations);
  Workspace<CountingBackend> workspace(backend);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomWalk walk(workspace, seed);
    walk.descend(4);
    CHECK(walk.good());
  }
}

TEST_CASE("the same walk again allocates less and less, in the end nothing") {
  int allocations = 0;
  CountingBackend backend(allocations);
  Workspace<CountingBackend> workspace(backend);
  for (int pass = 0; pass < 10; ++pass) {
    allocations = 0;
    for (std::uint64_t seed = 0; seed < 5; ++seed) RandomWalk(workspace, seed).descend(3);
  }
  CHECK(allocations == 0);
}

TEST_CASE("long rows of scratch matrices lie an odd number of cache lines apart") {
  int allocations = 0;
  CountingBackend backend(allocations);
  Workspace<CountingBackend> workspace(backend);
  for (const Index cols : {1, 127, 128, 129, 512, 1000, 1024, 4096}) {
    const Frame frame(workspace);
    const auto m = workspace.matrix(3, cols);
    CAPTURE(cols);
    CHECK(m.cols == cols);
    CHECK(m.stride >= cols);
    CHECK(m.stride <= cols + 16);
    if (cols < 128) CHECK(m.stride == cols);
    if (cols >= 128) CHECK(m.stride % 16 == 8);  // doubles: a line is 8
    CHECK(workspace.matrix(1, cols).stride == cols);
    CHECK(workspace.vector<double>(1).data >= m.data + 3 * m.stride);
  }
}

TEST_CASE("needs that grow step by step do not add up") {
  int allocations = 0;
  CountingBackend backend(allocations);
  Workspace<CountingBackend> workspace(backend);
  for (Index size = megabyte; size <= 20 * megabyte; size += megabyte / 2) {
    const Frame frame(workspace);
    workspace.vector<char>(size);
  }
  CHECK(workspace.capacity_bytes() <= static_cast<std::size_t>(21 * megabyte));
}

TEST_CASE("attention holds the scores of 64 queries, not of all") {
  int allocations = 0;
  CountingBackend backend(allocations);
  const Index n = 900, heads = 4;
  auto x = make_matrix(backend, n, heads), out = make_matrix(backend, n, heads);
  Workspace<CountingBackend> workspace(backend);
  const std::vector<AttentionSpan> spans{{0, n, 0, n}};
  allocations = 0;
  ops::causal_attention<CountingBackend>(backend, x.view(), x.view(), x.view(), spans,
                                         {heads, heads, 1, 1.0, 0}, out.view(), workspace);
  CHECK(allocations == 1);
  CHECK(workspace.capacity_bytes() == static_cast<std::size_t>(heads * 64 * n * 8));
}
