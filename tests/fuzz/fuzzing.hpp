// What the fuzz targets share: their list, the bounds that an input must keep, properties that must
// hold, files of given bytes, and bytes that lead to large inputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "testing.hpp"

namespace wanamaker_test {

/// What one input may cost; more is a finding. Of memory the heap counts, while the input is read.
struct FuzzBounds {
  std::size_t memory_factor = 16;                    ///< bytes for each byte of the input
  std::size_t memory_beside = std::size_t{1} << 20;  ///< bytes, whatever the input
  double seconds = 2;                                ///< of the processor, whatever the input
  double seconds_each_mib = 8;                       ///< and for each 2²⁰ bytes of it
};

/// A reader under test. A crash, a sanitizer's finding, an exception that is no wanamaker::Error, a
/// property that does not hold and a bound that is not kept are findings.
struct FuzzTarget {
  std::string name{};
  void (*read)(std::string_view input) = nullptr;
  std::vector<std::string> (*seeds)() = nullptr;  ///< small valid inputs
  FuzzBounds bounds{};
};

/// All targets, in the order of the sources.
inline std::vector<FuzzTarget>& fuzz_targets() {
  static std::vector<FuzzTarget> targets;
  return targets;
}

/// Puts a target on the list.
struct FuzzRegistration {
  explicit FuzzRegistration(FuzzTarget target) { fuzz_targets().push_back(std::move(target)); }
};

/// Ends the process with a finding.
[[noreturn]] inline void finding(const char* what) {
  std::fprintf(stderr, "wanamaker_fuzz: %s\n", what);
  std::abort();
}

/// A property of what was read.
inline void must_hold(bool holds, const char* property) {
  if (!holds) finding(property);
}

/// The file of this name with these bytes, in a folder that is removed at the end.
inline std::filesystem::path fuzz_file(const std::string& name, std::string_view bytes) {
  static const TemporaryFolder folder;
  write_bytes(folder / name, std::string(bytes));
  return folder / name;
}

/// The parts of an input between NUL bytes; exactly `count`, the last ones empty where it has
/// fewer.
inline std::vector<std::string> fuzz_parts(std::string_view input, std::size_t count) {
  std::vector<std::string> parts;
  while (parts.size() + 1 < count) {
    const std::size_t end = std::min(input.find('\0'), input.size());
    parts.emplace_back(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  parts.emplace_back(input);
  return parts;
}

/// Inputs that take quadratic time or memory have to be large to be seen, and a fuzzer's are small.
/// So FE part FF n stands for 2ⁿ parts (n modulo 16), up to 256 KiB in all; these two bytes occur
/// in no text.
inline std::string with_repetitions(std::string_view input) {
  constexpr std::size_t largest = std::size_t{1} << 18;
  std::string result;
  while (!input.empty()) {
    const std::size_t begin = std::min(input.find('\xfe'), input.size());
    const std::size_t end = std::min(input.find('\xff', begin), input.size());
    const std::size_t next = std::min(end + 2, input.size());
    const bool repeats = end + 1 < input.size();
    result += input.substr(0, repeats ? begin : input.size());
    if (!repeats) break;
    const std::string_view part = input.substr(begin + 1, end - begin - 1);
    const std::size_t wanted = std::size_t{1} << (static_cast<unsigned char>(input[end + 1]) & 15u);
    const std::size_t room = (largest - std::min(largest, result.size())) / (part.size() + 1);
    for (std::size_t i = std::min(wanted, room); i > 0; --i) result += part;
    input.remove_prefix(next);
  }
  return result;
}

}  // namespace wanamaker_test
