// Executors: every piece once, exceptions arrive, calls nest and compete.
#include "wanamaker/core/executor.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "testing.hpp"
#include "wanamaker/core/sanitizers.hpp"
#include "wanamaker/core/thread_pool.hpp"

namespace {

using namespace wanamaker;

/// The host program's own scheduler: here, last piece first.
struct BackwardsExecutor {
  Index calls = 0;
  template <class F>
  void run(Index n, F&& f) {
    ++calls;
    for (Index i = n; i-- > 0;) f(i);
  }
  Index concurrency() const { return 7; }
};

/// How often each of n pieces ran.
template <class E>
std::vector<int> visits(E&& executor, Index n) {
  std::vector<std::atomic<int>> counted(static_cast<std::size_t>(n));
  executor.run(n, [&](Index i) { ++counted[static_cast<std::size_t>(i)]; });
  return {counted.begin(), counted.end()};
}

bool all_ones(const std::vector<int>& counts) {
  for (const int c : counts) {
    if (c != 1) return false;
  }
  return true;
}

}  // namespace

static_assert(Executor<SerialExecutor> && Executor<ThreadPool> && Executor<ExecutorRef>);
static_assert(Executor<BackwardsExecutor> && !Executor<int>);

TEST_CASE("every piece runs exactly once, whatever the number of threads and pieces") {
  for (const Index threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    CHECK(pool.concurrency() == threads);
    for (const Index n : {0, 1, 2, 3, 17, 1000}) {
      CHECK(all_ones(visits(pool, n)));
      CHECK(all_ones(visits(ExecutorRef(pool), n)));
    }
    // Many short calls: a worker that wakes late must not run a piece of the next call.
    for (int repeat = 0; repeat < 2000; ++repeat) {
      std::atomic<Index> sum{0};
      pool.run(3, [&](Index i) { sum += i + 1; });
      REQUIRE(sum == 6);
    }
  }
  CHECK(all_ones(visits(SerialExecutor{}, 5)));
  CHECK(all_ones(visits(ExecutorRef(), 5)));
  CHECK(ThreadPool(0).concurrency() == 1);
}

TEST_CASE("run returns only after all pieces are done") {
  ThreadPool pool(3);
  for (int repeat = 0; repeat < 300; ++repeat) {
    std::vector<int> done(50, 0);  // not atomic: run's return must order the writes before the read
    pool.run(50, [&](Index i) { done[static_cast<std::size_t>(i)] = 1; });
    REQUIRE(all_ones(done));
  }
}

TEST_CASE("the threads of a pool work at the same time") {
  // Two pieces that wait for each other can only finish on two threads.
  ThreadPool pool(2);
  std::atomic<int> arrived{0};
  pool.run(2, [&](Index) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  CHECK(arrived == 2);
}

TEST_CASE("an exception of any piece reaches the caller, and the pool stays usable") {
  ThreadPool pool(3);
  for (const Index bad : {0, 1, 57, 99}) {
    std::string message;
    try {
      pool.run(100, [&](Index i) {
        if (i == bad) throw std::runtime_error("piece " + std::to_string(i));
      });
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    CHECK(message == "piece " + std::to_string(bad));
    CHECK(all_ones(visits(pool, 20)));
  }
  CHECK_THROWS_AS(pool.run(64, [](Index) { throw 1; }), int);
  CHECK_THROWS_AS(ExecutorRef(pool).run(64, [](Index) { throw 1; }), int);
  CHECK_THROWS_AS(SerialExecutor{}.run(2, [](Index) { throw 1; }), int);
  CHECK(all_ones(visits(pool, 20)));
}

TEST_CASE("a run inside a piece runs there, serially") {
  ThreadPool pool(3);
  ThreadPool other(2);
  std::atomic<int> inner{0};
  std::atomic<bool> moved{false};
  pool.run(8, [&](Index) {
    const std::thread::id here = std::this_thread::get_id();
    const auto piece = [&](Index) {
      ++inner;
      if (std::this_thread::get_id() != here) moved = true;
    };
    pool.run(5, piece);
    other.run(5, piece);
  });
  CHECK(inner == 8 * 10);
  CHECK(!moved);
  CHECK(all_ones(visits(pool, 20)));
}

TEST_CASE("several threads may use one pool") {
  ThreadPool pool(3);
  std::atomic<Index> total{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 100; ++repeat) {
        pool.run(11, [&](Index i) { total += i; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(total == 4 * 100 * 55);
}

TEST_CASE("the host program's executor runs the pieces of a reference to it") {
  BackwardsExecutor own;
  const ExecutorRef reference(own);
  CHECK(reference.concurrency() == 7);
  std::vector<Index> order;
  reference.run(4, [&](Index i) { order.push_back(i); });
  CHECK(order == std::vector<Index>{3, 2, 1, 0});
  CHECK(own.calls == 1);
  reference.run(1, [&](Index i) { order.push_back(i); });
  CHECK(own.calls == 1);  // one piece is not worth a call
  CHECK(order.back() == 0);
}

TEST_CASE("functors that cannot be copied and const functors run") {
  struct Piece {
    std::atomic<int>& count;
    explicit Piece(std::atomic<int>& c) : count(c) {}
    Piece(const Piece&) = delete;
    void operator()(Index) const { ++count; }
  };
  std::atomic<int> count{0};
  const Piece piece(count);
  ThreadPool pool(2);
  pool.run(10, piece);
  ExecutorRef(pool).run(10, piece);
  pool.run(10, Piece(count));
  CHECK(count == 30);
}

// Sanitizers need address space of their own.
#if !WANAMAKER_SANITIZED
TEST_CASE("a thread that the system refuses is an error, and those started before it end") {
  // Room for about two stacks more than the process has now.
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  if (!(statm >> pages)) return;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  rlimit tight = before;
  tight.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{24} << 20);
  REQUIRE(setrlimit(RLIMIT_AS, &tight) == 0);
  const std::string id = wanamaker_test::error_id([] { ThreadPool pool(200); });
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(id == "backend/no-thread");
}
#endif
