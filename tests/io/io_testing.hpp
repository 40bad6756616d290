// What the tests of file formats share: recorded values of the peers, checksums, damage.
#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "testing.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/io/third_party/json.hpp"

namespace wanamaker_test {

/// tests/reference/io_formats.json, made by io_formats.py.
inline const nlohmann::json& recorded_formats() {
  static const nlohmann::json recorded = [] {
    std::ifstream file(WANAMAKER_SOURCE_DIR "/tests/reference/io_formats.json");
    return nlohmann::json::parse(file);
  }();
  return recorded;
}

inline std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

/// CRC-32 (IEEE 802.3), as zlib.crc32; `crc` continues an earlier one.
inline std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t crc = 0) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> entries{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      entries[i] = i;
      for (int bit = 0; bit < 8; ++bit) {
        entries[i] = (entries[i] >> 1) ^ ((entries[i] & 1u) != 0 ? 0xedb88320u : 0u);
      }
    }
    return entries;
  }();
  crc = ~crc;
  for (const std::byte b : bytes) {
    crc = (crc >> 8) ^ table[(crc ^ static_cast<std::uint32_t>(b)) & 0xffu];
  }
  return ~crc;
}

inline std::uint32_t crc32_of_doubles(const std::vector<double>& values, std::uint32_t crc = 0) {
  return crc32(std::as_bytes(std::span(values)), crc);
}

/// Names in a folder, to see that nothing is left behind.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

/// Memory that this process holds now (0 where the system does not say).
inline long resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  long total = 0, resident = 0;
  statm >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

/// What a reader of untrusted bytes may do: succeed, or throw a wanamaker::Error whose message is
/// one line that names `path`. Returns whether it succeeded; anything else fails the test.
template <class F>
bool succeeds_or_names(const std::filesystem::path& path, F&& read) {
  try {
    read();
    return true;
  } catch (const wanamaker::Error& error) {
    const std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    CHECK(message.find(path.string()) != std::string::npos);
    CHECK(!error.id().empty());
    return false;
  }
}

/// Valid bytes, damaged: a few bytes overwritten, or a part cut off, repeated or inserted.
inline std::string damaged(std::string bytes, wanamaker::RandomStream& random) {
  // One draw a statement: the order of arguments is the compiler's choice.
  const auto kind = random.below(6);
  const auto at = static_cast<std::size_t>(random.below(bytes.size() + 1));
  const auto from = static_cast<std::size_t>(random.below(bytes.size() + 1));
  const auto length = static_cast<std::size_t>(random.below(40));
  if (kind == 0) return bytes.substr(0, at);
  if (kind == 1) return bytes.insert(at, 1, static_cast<char>(length));
  if (kind == 2) return bytes.erase(at, length / 4);
  if (kind == 3) return bytes.insert(at, bytes.substr(from, length));
  for (std::uint64_t flips = 1 + random.below(3); flips > 0 && !bytes.empty(); --flips) {
    char& byte = bytes[random.below(bytes.size())];
    // Half of the flips stay plausible: a digit or a bracket where one was.
    constexpr std::string_view plausible = "0123456789[]{}(),:\"'";
    byte = random.below(2) == 0 ? plausible[random.below(plausible.size())]
                                : static_cast<char>(random.below(256));
  }
  return bytes;
}

}  // namespace wanamaker_test
