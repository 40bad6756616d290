// The program around all targets: wanamaker_fuzz TARGET FOLDER [libFuzzer's options] writes the
// target's seeds into the folder and fuzzes from what is there; wanamaker_fuzz --list names the
// targets.
#include <sanitizer/allocator_interface.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <typeinfo>

#include "fuzz/fuzzing.hpp"

namespace {

using namespace wanamaker_test;

FuzzTarget chosen;

/// Live bytes of the heap, counted while an input is read.
class CountedHeap {
 public:
  static void watch(std::size_t limit) {
    held_ = 0;
    limit_ = limit;
    is_watched_ = true;
  }
  static void rest() { is_watched_ = false; }

  static void on_allocation(const volatile void*, std::size_t size) {
    if (!is_watched_) return;
    held_ += static_cast<std::ptrdiff_t>(size);
    if (held_ <= static_cast<std::ptrdiff_t>(limit_)) return;
    rest();
    std::fprintf(stderr, "%zd bytes at once, of %zu allowed, in an allocation of %zu\n",
                 held_.load(), limit_, size);
    finding("more memory than the target's bound");
  }
  static void on_release(const volatile void* block) {
    if (!is_watched_ || block == nullptr) return;
    held_ -=
        static_cast<std::ptrdiff_t>(__sanitizer_get_allocated_size(const_cast<const void*>(block)));
  }

 private:
  static inline std::atomic<std::ptrdiff_t> held_{0};
  static inline std::size_t limit_ = 0;
  static inline std::atomic<bool> is_watched_{false};
};

/// Seconds of the processor that this process has taken: other programs do not count.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void check_message(const wanamaker::Error& error) {
  const std::string_view message = error.what();
  must_hold(message.find('\n') == message.npos, "a message of several lines");
  must_hold(!error.id().empty(), "an error without an id");
  must_hold(message.size() < 4096, "a message of more than 4096 bytes");
}

void read(std::string_view input) {
  try {
    chosen.read(input);
  } catch (const wanamaker::Error& error) {
    check_message(error);
  } catch (const std::exception& foreign) {
    CountedHeap::rest();
    std::fprintf(stderr, "%s: %s\n", typeid(foreign).name(), foreign.what());
    finding("an exception that is not the library's own");
  }
}

[[noreturn]] void list_targets() {
  for (const FuzzTarget& target : fuzz_targets()) std::printf("%s\n", target.name.c_str());
  std::exit(0);
}

void choose_target(const std::string& name) {
  for (const FuzzTarget& target : fuzz_targets()) {
    if (target.name == name) chosen = target;
  }
  if (chosen.read != nullptr) return;
  std::fprintf(stderr, "no target %s; wanamaker_fuzz --list names them\n", name.c_str());
  std::exit(2);
}

void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::size_t number = 0;
  for (const std::string& seed : chosen.seeds()) {
    write_bytes(folder / ("seed-" + std::to_string(number++)), seed);
  }
}

}  // namespace

/// Called by libFuzzer before it reads its arguments: takes the target's name out of them.
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  char** const words = *arguments;
  if (*count == 2 && std::string_view(words[1]) == "--list") list_targets();
  if (*count < 3) {
    std::fprintf(stderr, "usage: wanamaker_fuzz TARGET FOLDER|FILE… [OPTION…]\n");
    std::exit(2);
  }
  choose_target(words[1]);
  std::copy(words + 2, words + *count + 1, words + 1);
  --*count;
  if (!std::filesystem::is_regular_file(words[1])) write_seeds(words[1]);
  __sanitizer_install_malloc_and_free_hooks(CountedHeap::on_allocation, CountedHeap::on_release);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input = with_repetitions({reinterpret_cast<const char*>(data), size});
  const FuzzBounds& bounds = chosen.bounds;
  const double begin = processor_seconds();
  CountedHeap::watch(bounds.memory_beside + bounds.memory_factor * input.size());
  read(input);
  CountedHeap::rest();
  const double mib = static_cast<double>(input.size()) / 1048576.0;
  const double taken = processor_seconds() - begin;
  if (taken > bounds.seconds + bounds.seconds_each_mib * mib) {
    std::fprintf(stderr, "%.1f s for %zu bytes\n", taken, input.size());
    finding("more time than the target's bound");
  }
  return 0;
}
