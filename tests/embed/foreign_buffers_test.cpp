// Policies on a host program's buffers compute what loops in double do, write nothing else,
// allocate nothing, and refuse what is no buffer.
#include <limits>
#include <string>
#include <thread>

#include "embed_testing.hpp"
#include "wanamaker/core/sanitizers.hpp"
#if WANAMAKER_SANITIZED
#include <sanitizer/allocator_interface.h>
#endif

namespace {

using namespace wanamaker_test;

using GatedByHand = GatedMlp<DeltaRegressionGate<EmbedBackend>, AffineMlp<EmbedBackend>,
                             DenseMlp<EmbedBackend, Relu>>;

GatedByHand gated_of(EmbedBackend& backend, const PlainLayer& plain) {
  return GatedByHand::hard(gate_of(backend, plain), affine_of(backend, plain),
                           dense_of(backend, plain), 0);
}

/// An executor of a host program: it says that it has three threads, and goes backwards.
struct BackwardsExecutor {
  Index runs = 0;
  template <class F>
  void run(Index n, F&& f) {
    ++runs;
    for (Index i = n; i-- > 0;) f(i);
  }
  Index concurrency() const { return 3; }
};

template <class T>
void check_foreign_rows(Index rows, Index width, Index stride, Index offset) {
  CAPTURE(rows);
  CAPTURE(stride);
  BackwardsExecutor executor;
  EmbedBackend backend{ExecutorRef(executor)};
  Workspace<EmbedBackend> workspace(backend);
  const PlainLayer plain(width);
  const GatedByHand gated = gated_of(backend, plain);
  HostRows<T> x(rows, width, stride, offset), y(rows, width, stride + 1, offset + 1);
  const Numbers values = short_numbers(9, rows * width);
  x.fill(values);
  run_foreign(backend, gated, ConstMatrixView<T>(x.view), y.view, workspace);
  std::vector<double> scores(static_cast<std::size_t>(rows));
  score_foreign(backend, gated.gate(), x.view, VectorView<double>(scores.data(), rows), workspace);
  for (Index i = 0; i < rows; ++i) {
    const double* const row = values.data() + i * width;
    const Numbers expected = plain(row);
    double largest = 1;
    for (const double v : expected) largest = std::max(largest, std::abs(v));
    const double tolerance = embed_tolerance<T>(width) * largest;
    CHECK(all_close(y.row(i), expected, 0, tolerance));
    CHECK(std::abs(scores[static_cast<std::size_t>(i)] - plain.score(row)) < 1e-12);
  }
  CHECK(y.touched() <= rows * width);
  CHECK(gated.surrogate_rows() + gated.mlp_rows() == rows);
  if (rows > 128) CHECK(executor.runs > 0);
}

std::string refusal_of_rows(ConstMatrixView<float> x, MatrixView<float> y) {
  EmbedBackend backend;
  Workspace<EmbedBackend> workspace(backend);
  const AffineMlp<EmbedBackend> map = affine_of(backend, PlainLayer(2));
  return error_id([&] { run_foreign(backend, map, x, y, workspace); });
}

#if WANAMAKER_SANITIZED
thread_local Index allocations = 0;
void count_allocation(const volatile void*, std::size_t) {
  ++allocations;
}
void ignore_release(const volatile void*) {}
#endif

}  // namespace

TEST_CASE("every type of element, stride and number of rows gives what loops in double give") {
  for (const Index rows : {0, 1, 2, 17, 131}) {
    check_foreign_rows<float>(rows, 5, 5, 0);
    check_foreign_rows<float>(rows, 5, 9, 3);
    check_foreign_rows<half>(rows, 5, 7, 1);
    check_foreign_rows<bfloat16>(rows, 5, 5, 1);
    check_foreign_rows<double>(rows, 5, 6, 2);
  }
}

TEST_CASE("columns of one buffer may be input and others output") {
  EmbedBackend backend;
  Workspace<EmbedBackend> workspace(backend);
  const PlainLayer plain(2);
  const AffineMlp<EmbedBackend> map = affine_of(backend, plain);
  std::vector<float> memory(3 * 5, 0.5f);
  const MatrixView<float> x(memory.data() + 3, 3, 2, 5), y(memory.data(), 3, 2, 5);
  run_foreign(backend, map, x, y, workspace);
  const Numbers halves(2, 0.5);
  for (Index i = 0; i < 3; ++i) {
    CHECK(all_close(Numbers{y(i, 0), y(i, 1)}, plain.linear(halves.data()), 0, 1e-6));
    CHECK(x(i, 0) == 0.5f);
    CHECK(memory[static_cast<std::size_t>(5 * i + 2)] == 0.5f);
  }
}

TEST_CASE("what is no buffer of the right shape is refused") {
  std::vector<float> memory(24, 1.0f), other(24, 1.0f);
  float* const x = memory.data();
  float* const y = other.data();
  constexpr Index huge = std::numeric_limits<Index>::max();
  CHECK(refusal_of_rows({x, 3, 2}, {y, 3, 2}) == "");
  CHECK(refusal_of_rows({nullptr, 0, 2}, {nullptr, 0, 2}) == "");
  CHECK(refusal_of_rows({nullptr, 3, 2}, {y, 3, 2}) == "embed/pointer");
  CHECK(refusal_of_rows({x, 3, 2}, {nullptr, 3, 2}) == "embed/pointer");
  CHECK(refusal_of_rows({reinterpret_cast<float*>(reinterpret_cast<char*>(x) + 2), 3, 2},
                        {y, 3, 2}) == "embed/pointer");
  CHECK(refusal_of_rows({x, -1, 2}, {y, -1, 2}) == "embed/shape");
  CHECK(refusal_of_rows({x, 3, -2}, {y, 3, -2}) == "embed/shape");
  CHECK(refusal_of_rows({nullptr, 3, 0}, {nullptr, 3, 0}) == "embed/shape");
  CHECK(refusal_of_rows({x, 3, 2, 1}, {y, 3, 2}) == "embed/shape");
  CHECK(refusal_of_rows({x, 3, 2, -2}, {y, 3, 2}) == "embed/shape");
  CHECK(refusal_of_rows({x, huge, 2}, {y, huge, 2}) == "embed/shape");
  CHECK(refusal_of_rows({x, 3, 2, huge}, {y, 3, 2}) == "embed/shape");
  CHECK(refusal_of_rows({x, 3, 2}, {y, 4, 2}) == "shape/matrix");
  CHECK(refusal_of_rows({x, 3, 3}, {y, 3, 3}) == "shape/product");
  CHECK(refusal_of_rows({x, 3, 2}, {x, 3, 2}) == "embed/overlap");
  CHECK(refusal_of_rows({x, 3, 2}, {x + 5, 3, 2}) == "embed/overlap");
  CHECK(refusal_of_rows({x, 3, 2, 5}, {x + 1, 3, 2, 5}) == "embed/overlap");
  CHECK(refusal_of_rows({x, 3, 2, 5}, {x + 3, 3, 2, 6}) == "embed/overlap");
  CHECK(refusal_of_rows({x, 3, 2}, {x + 6, 3, 2}) == "");
}

TEST_CASE("a host program's own MLP is the full path, called with its own rows only") {
  EmbedBackend backend;
  Workspace<EmbedBackend> workspace(backend);
  const PlainLayer plain(5);
  Index rows_seen = 0;
  const auto host = [&](ConstMatrixView<float> x, MatrixView<float> y) {
    rows_seen += x.rows;
    for (Index i = 0; i < x.rows; ++i) {
      const Numbers row(x.row(i), x.row(i) + x.cols);
      const Numbers answer = plain.mlp(row.data());
      for (Index j = 0; j < y.cols; ++j) {
        y(i, j) = static_cast<float>(answer[static_cast<std::size_t>(j)]);
      }
    }
  };
  using Host = ForeignMlp<decltype(host)>;
  static_assert(check_mlp_policy<Host, EmbedBackend>());
  const auto gated =
      GatedMlp<DeltaRegressionGate<EmbedBackend>, AffineMlp<EmbedBackend>, Host>::hard(
          gate_of(backend, plain), affine_of(backend, plain), Host(host, {100, 200, 50}), 0);
  CHECK(gated.mlp().cost(3).flops == 300);
  CHECK(gated.mlp().cost(3).weight_bytes == 200);
  HostRows<float> x(40, 5, 8, 0), y(40, 5, 5, 0);
  const Numbers values = short_numbers(11, 200);
  x.fill(values);
  run_foreign(backend, gated, x.view, y.view, workspace);
  for (Index i = 0; i < 40; ++i) {
    CHECK(all_close(y.row(i), plain(values.data() + 5 * i), 1e-5, 1e-5));
  }
  CHECK(rows_seen == gated.mlp_rows());
  CHECK(rows_seen > 0);
  CHECK(rows_seen < 40);
}

TEST_CASE("once workspace and backend have grown no batch allocates, whatever it routes") {
#if WANAMAKER_SANITIZED
  EmbedBackend backend;
  Workspace<EmbedBackend> workspace(backend);
  // Wide enough that Eigen would not pack a product's factors on the stack.
  const PlainLayer plain(288);
  const GatedByHand gated = gated_of(backend, plain);
  constexpr Index most = 130;
  reserve_workspace(backend, gated, most, 288, workspace);
  const std::size_t reserved = workspace.capacity_bytes();
  HostRows<half> x(most, 288, 288, 0), y(most, 288, 288, 0);
  HostRows<float> wide_x(most, 288, 288, 0), wide_y(most, 288, 288, 0);
  const Numbers values = short_numbers(12, most * 288);
  x.fill(values);
  wide_x.fill(values);
  REQUIRE(__sanitizer_install_malloc_and_free_hooks(count_allocation, ignore_release) != 0);
  int* volatile const counted_one = new int(1);  // volatile: the compiler leaves out other pairs
  delete counted_one;
  CHECK(allocations > 0);
  allocations = 0;
  for (const Index rows : {1, 2, 130}) {
    run_foreign(backend, gated, x.view.middle_rows(0, rows), y.view.middle_rows(0, rows),
                workspace);
    run_foreign(backend, gated, wide_x.view.middle_rows(0, rows), wide_y.view.middle_rows(0, rows),
                workspace);
  }
  const Index counted = allocations;
  CHECK(counted == 0);
  CHECK(workspace.capacity_bytes() == reserved);
  CHECK(gated.mlp_rows() > 0);
  CHECK(gated.surrogate_rows() > 0);
#else
  MESSAGE("not counted: only sanitizers report every allocation");
#endif
}

TEST_CASE("threads share a policy, each with a backend and a workspace of its own") {
  const PlainLayer plain(8);
  EmbedBackend owner;
  const GatedByHand gated = gated_of(owner, plain);
  const Numbers values = short_numbers(13, 64 * 8);
  const auto answers = [&] {
    EmbedBackend backend;
    Workspace<EmbedBackend> workspace(backend);
    HostRows<float> x(64, 8, 8, 0), y(64, 8, 8, 0);
    x.fill(values);
    for (int i = 0; i < 20; ++i) run_foreign(backend, gated, x.view, y.view, workspace);
    return y.memory;
  };
  const std::vector<float> expected = answers();
  std::vector<std::vector<float>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&] { result = answers(); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) CHECK(result == expected);
}
