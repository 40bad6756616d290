// A fiber is begun by ucontext and switched by setjmp, which asks nothing of the system; under the
// address sanitizer by ucontext alone, which it follows.
#undef _FORTIFY_SOURCE  // would take a jump to another stack for an attack

#include <setjmp.h>
#include <ucontext.h>

#include <memory>
#include <vector>

#include "device.hpp"
#include "wanamaker/core/sanitizers.hpp"

namespace cuda_emulation {

namespace {

constexpr std::size_t stack_bytes = std::size_t{256} << 10;

// The thread sanitizer does not follow fibers.
#if defined(__SANITIZE_THREAD__)
constexpr bool has_fibers = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool has_fibers = false;
#else
constexpr bool has_fibers = true;
#endif
#else
constexpr bool has_fibers = true;
#endif

// Where execution goes on: a stack and a place on it.
struct Place {
  ucontext_t context{};
  jmp_buf jump{};
};

#if WANAMAKER_SANITIZED
void go(Place& from, Place& to, bool) {
  swapcontext(&from.context, &to.context);
}
#else
void go(Place& from, Place& to, bool is_new) {
  if (_setjmp(from.jump) != 0) return;
  if (is_new) setcontext(&to.context);
  _longjmp(to.jump, 1);
}
#endif

// A thread of a block: its stack, where it is, and the barrier that it waits at.
struct Fiber {
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
  Place place{};
  bool is_new = true;
  bool is_done = true;
  const char* barrier_file = nullptr;
  int barrier_line = 0;
};

// One for each thread of the host that runs blocks.
struct Scheduler {
  std::vector<std::unique_ptr<Fiber>> fibers{};
  Place place{};
  Fiber* running = nullptr;
  const std::function<void()>* thread = nullptr;
};

Scheduler& scheduler() {
  static thread_local Scheduler own;
  return own;
}

// What a fiber does: one block's thread after the other.
void work() {
  for (;;) {
    Scheduler& s = scheduler();
    (*s.thread)();
    s.running->is_done = true;
    go(s.running->place, s.place, false);
  }
}

void make_new(Fiber& fiber) {
  getcontext(&fiber.place.context);
  fiber.place.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.place.context.uc_stack.ss_size = stack_bytes;
  fiber.place.context.uc_link = nullptr;
  makecontext(&fiber.place.context, work, 0);
  fiber.is_new = true;
}

void resume(Scheduler& s, unsigned lane) {
  s.running = s.fibers[lane].get();
  threadIdx = {lane, 0, 0};
  const bool is_new = s.running->is_new;
  s.running->is_new = false;
  go(s.place, s.running->place, is_new);
  s.running = nullptr;
}

// Whether all threads stand at one barrier, or all are done.
bool are_together(const Scheduler& s, unsigned threads) {
  const Fiber& first = *s.fibers[0];
  for (unsigned lane = 1; lane < threads; ++lane) {
    const Fiber& fiber = *s.fibers[lane];
    const bool together = fiber.is_done == first.is_done &&
                          (first.is_done || (fiber.barrier_file == first.barrier_file &&
                                             fiber.barrier_line == first.barrier_line));
    if (!together) return false;
  }
  return true;
}

unsigned& most_threads() {
  static unsigned most = 4;
  return most;
}

}  // namespace

void run_block(unsigned threads, const std::function<void()>& thread) {
  Scheduler& s = scheduler();
  s.thread = &thread;
  while (s.fibers.size() < threads) {
    s.fibers.push_back(std::make_unique<Fiber>());
    make_new(*s.fibers.back());
  }
  for (unsigned lane = 0; lane < threads; ++lane) s.fibers[lane]->is_done = false;
  for (bool rising = true; !s.fibers[0]->is_done; rising = !rising) {
    for (unsigned i = 0; i < threads; ++i) resume(s, rising ? i : threads - 1 - i);
    if (are_together(s, threads)) continue;
    Device::get().fault("threads of a block wait at different barriers, or not all of them do");
    for (unsigned lane = 0; lane < threads; ++lane) make_new(*s.fibers[lane]);
    return;  // on a device, too, there would be no way on
  }
}

void wait_at_barrier(const char* file, int line) {
  Scheduler& s = scheduler();
  if (s.running == nullptr) return;  // a block of one thread
  s.running->barrier_file = file;
  s.running->barrier_line = line;
  go(s.running->place, s.place, false);
}

unsigned threads_per_block() {
  return has_fibers ? most_threads() : 1;
}

void set_threads_per_block(unsigned most) {
  most_threads() = most;
}

}  // namespace cuda_emulation
