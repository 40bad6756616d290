// What the tests share: a comparer that names the worst element and fails on NaN, temporary
// folders, and the folder of shared data where it exists.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "wanamaker/core/error.hpp"

namespace wanamaker_test {

/// Passes iff |actual − expected| ≤ atol + rtol · |expected| for every element; NaN fails. Prints
/// the worst element. Both arguments: anything with size() and [].
template <class A, class B>
bool all_close(const A& actual, const B& expected, double rtol, double atol) {
  if (std::size(actual) != std::size(expected)) {
    std::printf("all_close: %zu elements against %zu\n", std::size(actual), std::size(expected));
    return false;
  }
  std::size_t worst = 0;
  double worst_excess = -1;
  for (std::size_t i = 0; i < std::size(actual); ++i) {
    const double a = static_cast<double>(actual[i]);
    const double e = static_cast<double>(expected[i]);
    const double error = a == e ? 0.0 : std::abs(a - e);
    const double allowed = atol + rtol * std::abs(e);
    const double excess =
        error <= allowed ? error - allowed : (std::isnan(error) ? HUGE_VAL : error - allowed);
    if (i == 0 || excess > worst_excess) {
      worst = i;
      worst_excess = excess;
    }
  }
  if (std::size(actual) == 0 || worst_excess <= 0) return true;
  std::printf("all_close: element %zu is %.17g, expected %.17g (rtol %g, atol %g)\n", worst,
              static_cast<double>(actual[worst]), static_cast<double>(expected[worst]), rtol, atol);
  return false;
}

/// A folder that is removed again.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "wanamaker-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Folder of shared data, or nothing (with a message) where it is missing: the test then returns.
inline std::optional<std::filesystem::path> shared_data(
    [[maybe_unused]] const std::string& part = "") {
#ifdef WANAMAKER_SHARED_DATA
  const std::filesystem::path path = std::filesystem::path(WANAMAKER_SHARED_DATA) / part;
  if (std::filesystem::exists(path)) return path;
#endif
  MESSAGE("skipped: shared data '" << part << "' is not here");
  return std::nullopt;
}

/// Runs f and returns the id of the wanamaker::Error that it throws ("" if none); checks that the
/// message is one line.
template <class F>
std::string error_id(F&& f) {
  try {
    f();
  } catch (const wanamaker::Error& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.id();
  }
  return "";
}

}  // namespace wanamaker_test
