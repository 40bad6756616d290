// The emulated device's insides, shared by its sources.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "emulation.hpp"

struct CUstream_st {
  std::deque<std::function<void()>> work{};
};
struct CUevent_st {
  CUstream_st* stream = nullptr;
  bool is_pending = false;
};

namespace cuda_emulation {

/// Everything that is one for the process. All members under `mutex`.
class Device {
 public:
  static Device& get();

  std::recursive_mutex mutex{};

  /// The status that a call is made to fail with, or 0.
  int injected(const std::string& call);
  void inject(const std::string& call, int status, int after);
  void clear_injections();
  std::size_t calls_of(const std::string& call) { return calls_[call]; }

  void* allocate(std::size_t bytes);
  /// False where it is no live allocation.
  bool free(void* memory);
  std::size_t live() const { return live_.size(); }
  bool contains(const void* address) const;
  /// Whether [first, first + bytes) lies in one live allocation.
  bool is_within_allocation(const void* first, std::size_t bytes) const;

  void fault(const std::string& what);
  std::vector<std::string> take_faults();
  bool has_news() const { return has_news_; }

  /// Runs what a stream has queued, up to the first element after which `stop` says so; then looks
  /// at all guards. A status other than success where a fault has been found.
  cudaError_t run(CUstream_st& stream, const std::function<bool()>& stop);

  CUstream_st& stream_of(cudaStream_t stream) {
    return stream == nullptr ? default_stream_ : *stream;
  }

 private:
  struct Block {
    std::size_t bytes;  // asked for
    std::size_t size;   // with guards, in pages
  };
  struct Injection {
    int status;
    int after;
  };

  Device();
  void set_accessible(bool accessible);
  void fill_fresh();
  void check_guards(char* memory, const Block& block);
  void check_all_guards();

  char* region_ = nullptr;
  std::size_t used_ = 0;
  std::map<char*, Block> live_{};
  std::map<std::size_t, std::vector<char*>> free_{};  // by size
  std::vector<char*> fresh_{};                        // allocated, not yet filled
  std::map<std::string, Injection> injections_{};
  std::map<std::string, std::size_t> calls_{};
  std::vector<std::string> faults_{};
  bool has_news_ = false;
  CUstream_st default_stream_{};
};

/// A block's threads as fibers.
void run_block(unsigned threads, const std::function<void()>& thread);
unsigned threads_per_block();

}  // namespace cuda_emulation
