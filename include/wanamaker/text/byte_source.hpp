// Bytes that come one after the other: from a file, from standard input, from memory.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/mapped_file.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A stream of bytes, read once.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;
  /// Writes bytes to the beginning of `to`, which is not empty. Their number; 0 only at the end.
  virtual std::size_t read(std::span<char> to) = 0;
};

/// The path that stands for standard input.
inline constexpr std::string_view standard_input_path = "-";

inline bool is_standard_input(const std::filesystem::path& path) {
  return path.native() == standard_input_path;
}

/// What messages call a file.
inline std::string name_of_input(const std::filesystem::path& path) {
  return is_standard_input(path) ? "standard input" : path.string();
}

/// Bytes of an open file. Throws FileError where reading fails.
class DescriptorSource final : public ByteSource {
 public:
  /// `name` is that in messages.
  DescriptorSource(detail::FileDescriptor file, std::string name)
      : file_(std::move(file)), name_(std::move(name)) {}

  std::size_t read(std::span<char> to) override {
    ::ssize_t count;
    do {
      count = ::read(file_.get(), to.data(), to.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) detail::throw_file_error(errno, name_, "cannot read", "a readable file");
    return static_cast<std::size_t>(count);
  }

 private:
  detail::FileDescriptor file_;
  std::string name_;
};

/// Bytes in memory, which must outlive the object; at most `piece` of them at a time.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes, std::size_t piece = std::size_t{1} << 16)
      : bytes_(bytes), piece_(piece) {}

  std::size_t read(std::span<char> to) override {
    const std::size_t count = std::min({to.size(), piece_, bytes_.size()});
    std::copy_n(bytes_.data(), count, to.data());
    bytes_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view bytes_;
  std::size_t piece_;
};

/// Another source with a look at what comes next.
class PeekableSource final : public ByteSource {
 public:
  explicit PeekableSource(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  /// The next `count` bytes, fewer only before the end; valid until the next call.
  std::string_view peek(std::size_t count) {
    char piece[4096];
    while (ahead_.size() < count) {
      const std::size_t wanted = std::min(sizeof piece, count - ahead_.size());
      const std::size_t got = source_->read(std::span(piece, wanted));
      if (got == 0) break;
      ahead_.append(piece, got);
    }
    return std::string_view(ahead_).substr(0, count);
  }

  std::size_t read(std::span<char> to) override {
    if (ahead_.empty()) return source_->read(to);
    const std::size_t count = std::min(to.size(), ahead_.size());
    std::copy_n(ahead_.data(), count, to.data());
    ahead_.erase(0, count);
    return count;
  }

 private:
  std::unique_ptr<ByteSource> source_;
  std::string ahead_;
};

/// A regular file that is not empty, or standard input for "-". Throws FileError.
inline std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path) {
  const std::string name = name_of_input(path);
  if (!is_standard_input(path)) {
    return std::make_unique<DescriptorSource>(detail::open_regular_file(path).descriptor, name);
  }
  detail::FileDescriptor copy(::dup(STDIN_FILENO));
  if (!copy.valid()) detail::throw_file_error(errno, name, "cannot open", "an open input");
  return std::make_unique<DescriptorSource>(std::move(copy), name);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
