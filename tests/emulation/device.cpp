#include "device.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace cuda_emulation {

namespace {

constexpr std::size_t region_bytes = std::size_t{1} << 36;
constexpr std::size_t page = 4096;
constexpr std::size_t guard_bytes = 256;
constexpr unsigned char guard_value = 0xA5;
constexpr unsigned char poison_value = 0xFF;  // NaN in every format, −1 as an integer

bool all_are(const char* first, std::size_t n, unsigned char value) {
  return std::all_of(first, first + n,
                     [value](char c) { return static_cast<unsigned char>(c) == value; });
}

}  // namespace

Device& Device::get() {
  static Device device;
  return device;
}

Device::Device() {
  void* region =
      mmap(nullptr, region_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) std::abort();
  region_ = static_cast<char*>(region);
}

int Device::injected(const std::string& call) {
  ++calls_[call];
  const auto at = injections_.find(call);
  if (at == injections_.end() || at->second.after-- > 0) return 0;
  const int status = at->second.status;
  injections_.erase(at);
  return status;
}

void Device::inject(const std::string& call, int status, int after) {
  injections_[call] = {status, after};
}

void Device::clear_injections() {
  injections_.clear();
}

void Device::set_accessible(bool accessible) {
  if (mprotect(region_, used_, accessible ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) std::abort();
}

void* Device::allocate(std::size_t bytes) {
  if (bytes > region_bytes / 2) return nullptr;
  // Few sizes, so that memory is used again: protecting it takes time by the page.
  const std::size_t size = std::bit_ceil(std::max(bytes + 2 * guard_bytes, page));
  std::vector<char*>& reusable = free_[size];
  char* block = nullptr;
  if (!reusable.empty()) {
    block = reusable.back();
    reusable.pop_back();
  } else {
    if (used_ + size > region_bytes) return nullptr;
    block = region_ + used_;
    used_ += size;
  }
  live_[block + guard_bytes] = {bytes, size};
  fresh_.push_back(block + guard_bytes);
  return block + guard_bytes;
}

// Put off until the memory may be touched anyway, since each change of that takes long.
void Device::fill_fresh() {
  for (char* memory : std::exchange(fresh_, {})) {
    const Block& block = live_.at(memory);
    std::memset(memory - guard_bytes, guard_value, guard_bytes);
    std::memset(memory, poison_value, block.bytes);
    std::memset(memory + block.bytes, guard_value, guard_bytes);
  }
}

bool Device::free(void* memory) {
  const auto at = live_.find(static_cast<char*>(memory));
  if (at == live_.end()) return false;
  check_guards(at->first, at->second);
  std::memset(at->first, poison_value, at->second.bytes);
  free_[at->second.size].push_back(at->first - guard_bytes);
  live_.erase(at);
  return true;
}

bool Device::contains(const void* address) const {
  const char* p = static_cast<const char*>(address);
  return p >= region_ && p < region_ + region_bytes;
}

bool Device::is_within_allocation(const void* first, std::size_t bytes) const {
  char* p = const_cast<char*>(static_cast<const char*>(first));
  auto at = live_.upper_bound(p);
  if (at == live_.begin()) return false;
  --at;
  return p + bytes <= at->first + at->second.bytes;
}

void Device::fault(const std::string& what) {
  std::fprintf(stderr, "emulated device: %s\n", what.c_str());
  faults_.push_back(what);
  has_news_ = true;
}

std::vector<std::string> Device::take_faults() {
  has_news_ = false;
  return std::exchange(faults_, {});
}

void Device::check_guards(char* memory, const Block& block) {
  if (all_are(memory - guard_bytes, guard_bytes, guard_value) &&
      all_are(memory + block.bytes, guard_bytes, guard_value)) {
    return;
  }
  fault("something was written beside an allocation of " + std::to_string(block.bytes) + " bytes");
  std::memset(memory - guard_bytes, guard_value, guard_bytes);
  std::memset(memory + block.bytes, guard_value, guard_bytes);
}

void Device::check_all_guards() {
  for (const auto& [memory, block] : live_) check_guards(memory, block);
}

cudaError_t Device::run(CUstream_st& stream, const std::function<bool()>& stop) {
  if (!stream.work.empty()) {
    set_accessible(true);
    fill_fresh();
    while (!stream.work.empty() && !stop()) {
      const std::function<void()> next = std::move(stream.work.front());
      stream.work.pop_front();
      next();
    }
    check_all_guards();
    set_accessible(false);
  }
  return std::exchange(has_news_, false) ? cudaErrorIllegalAddress : cudaSuccess;
}

void fail(const std::string& call, int status, int after) {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  device.inject(call, status, after);
}

void fail_nothing() {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  device.clear_injections();
}

std::vector<std::string> take_faults() {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  return device.take_faults();
}

std::size_t live_allocations() {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  return device.live();
}

std::size_t calls_of(const std::string& call) {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  return device.calls_of(call);
}

// The system refuses to read for a write what the process may not read.
bool is_readable(const void* address) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const bool readable = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return readable;
}

// Words that have the value of an address on this machine, and none of the device's, point to host
// memory: no index, count or number of our kernels' is as large as the least of them and no
// floating-point number of usual size as small as the largest. Mapped ones only.
void check_parameter(const void* bytes, std::size_t size) {
  Device& device = Device::get();
  const std::lock_guard lock(device.mutex);
  const char* p = static_cast<const char*>(bytes);
  for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= size; at += sizeof(std::uintptr_t)) {
    std::uintptr_t word = 0;
    std::memcpy(&word, p + at, sizeof(word));
    const bool is_address = word >= std::uintptr_t{1} << 40 && word < std::uintptr_t{1} << 47;
    void* const start = reinterpret_cast<void*>(word / page * page);
    unsigned char mapped = 0;
    if (!is_address || device.contains(start) || mincore(start, page, &mapped) != 0) continue;
    device.fault("a kernel was handed a pointer to memory of the host");
  }
}

}  // namespace cuda_emulation
