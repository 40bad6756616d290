// A simple pool of threads. Not among core.hpp: the standard's headers for threads take longer to
// compile than the rest of the layer.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A fixed number of threads, the calling one included. `run` may be called from several threads:
/// calls take turns; a call from inside a piece runs serially. Who waits for work, or for the last
/// piece, looks for it some tens of microseconds before it sleeps: waking a sleeper takes as long
/// as many a piece.
class ThreadPool {
 public:
  /// threads ≥ 1; threads − 1 workers are started. Throws BackendError where the system refuses
  /// one.
  explicit ThreadPool(Index threads) {
    try {
      for (Index i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
    } catch (const std::system_error& refusal) {
      stop();
      throw_no_thread(threads, refusal.what());
    }
  }
  ~ThreadPool() { stop(); }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  Index concurrency() const { return static_cast<Index>(workers_.size()) + 1; }

  template <class F>
  void run(Index n, F&& f) {
    if (n <= 1 || workers_.empty() || inside_piece()) {
      for (Index i = 0; i < n; ++i) f(i);
      return;
    }
    const std::lock_guard turn(turn_);
    Job job{[](void* context, Index i) { (*static_cast<std::remove_reference_t<F>*>(context))(i); },
            const_cast<void*>(static_cast<const void*>(std::addressof(f))), n};
    start(job);
    run_pieces(job);
    finish(job);
  }

 private:
  struct Job {
    void (*call)(void*, Index);
    void* context;
    Index pieces;
    std::atomic<Index> next{0};
    std::atomic<Index> active_workers{0};  // changed under mutex_
    std::exception_ptr failure{};          // guarded by mutex_
  };

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  [[noreturn]] void throw_no_thread(Index threads, const char* reason) const {
    throw BackendError({.id = "backend/no-thread",
                        .where = "ThreadPool",
                        .what = "the system refuses to start a thread",
                        .expected = std::to_string(threads) + " threads",
                        .found = std::to_string(workers_.size() + 1) + " (" + reason + ")",
                        .mend = "ask for fewer threads"});
  }

  static bool& inside_piece() {
    thread_local bool inside = false;
    return inside;
  }

  void start(Job& job) {
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      ++generation_;
    }
    wake_.notify_all();
  }

  void run_pieces(Job& job) {
    inside_piece() = true;
    try {
      for (Index i = job.next++; i < job.pieces; i = job.next++) job.call(job.context, i);
    } catch (...) {
      job.next = job.pieces;
      const std::lock_guard lock(mutex_);
      if (!job.failure) job.failure = std::current_exception();
    }
    inside_piece() = false;
  }

  // Gives the processor to whoever else wants it while `is_idle` holds, a limited number of times.
  template <class Idle>
  static void look_around(Idle is_idle) {
    constexpr int looks = 200;
    for (int i = 0; i < looks && is_idle(); ++i) std::this_thread::yield();
  }

  void finish(Job& job) {
    {
      // No worker may take the job up from here on: its memory is about to go.
      const std::lock_guard lock(mutex_);
      job_ = nullptr;
    }
    look_around([&job] { return job.active_workers != 0; });
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&job] { return job.active_workers == 0; });
    if (job.failure) std::rethrow_exception(job.failure);
  }

  void work() {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      lock.unlock();
      look_around([&] { return generation_ == seen && !stopping_; });
      lock.lock();
      if (job_ == nullptr) seen = generation_;
      wake_.wait(lock, [&] { return stopping_ || (job_ != nullptr && generation_ != seen); });
      if (stopping_) return;
      seen = generation_;
      Job& job = *job_;
      ++job.active_workers;
      lock.unlock();
      run_pieces(job);
      lock.lock();
      if (--job.active_workers == 0) done_.notify_all();
    }
  }

  std::mutex turn_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  Job* job_ = nullptr;
  std::atomic<std::uint64_t> generation_{0};  // changed under mutex_, as is stopping_
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
