// Who runs the pieces of a parallel loop: the caller, serially; a pool (thread_pool.hpp); or the
// host program's own scheduler. The library starts no thread that the caller did not ask for.
#pragma once

#include <concepts>
#include <type_traits>

#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// `run(n, f)` calls f(0) … f(n - 1), each once, in any order and on any threads, and returns when
/// all are done; an exception thrown by a piece reaches the caller. `concurrency()` is how many
/// pieces may run at once (a hint; results never depend on it).
template <class E>
concept Executor = requires(E& e, Index n, void (*f)(Index)) {
  e.run(n, f);
  { e.concurrency() } -> std::convertible_to<Index>;
};

/// Runs the pieces one after the other on the calling thread.
struct SerialExecutor {
  template <class F>
  void run(Index n, F&& f) const {
    for (Index i = 0; i < n; ++i) f(i);
  }
  Index concurrency() const { return 1; }
};

/// A reference to any executor, so that a backend's type does not depend on it. Does not own.
class ExecutorRef {
 public:
  /// Serial.
  ExecutorRef() = default;

  template <Executor E>
  requires(!std::same_as<E, ExecutorRef>) ExecutorRef(E& executor)
      : executor_(&executor),
        run_([](void* e, Index n, Piece piece) { static_cast<E*>(e)->run(n, piece); }),
        concurrency_(static_cast<Index>(executor.concurrency())) {}

  Index concurrency() const { return concurrency_; }

  template <class F>
  void run(Index n, F&& f) const {
    if (n <= 1 || run_ == nullptr) {
      for (Index i = 0; i < n; ++i) f(i);
      return;
    }
    // The address of f, whatever its operator&; <memory> would take longer than all of this header.
    run_(executor_, n,
         Piece{const_cast<char*>(&reinterpret_cast<const char&>(f)), [](void* context, Index i) {
                 (*static_cast<std::remove_reference_t<F>*>(context))(i);
               }});
  }

 private:
  struct Piece {
    void* context;
    void (*call)(void*, Index);
    void operator()(Index i) const { call(context, i); }
  };

  void* executor_ = nullptr;
  void (*run_)(void*, Index, Piece) = nullptr;
  Index concurrency_ = 1;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
