// A regular file, mapped read-only into memory.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/file_error.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// Owns a file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor = -1) noexcept : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  int get() const noexcept { return descriptor_; }
  bool valid() const noexcept { return descriptor_ >= 0; }
  /// Closes now; 0 or the error, which may be that of an earlier, delayed write.
  int close() noexcept { return ::close(std::exchange(descriptor_, -1)) == 0 ? 0 : errno; }

 private:
  int descriptor_;
};

/// `open` that is repeated when a signal interrupts it.
inline FileDescriptor open_descriptor(const std::filesystem::path& path, int flags,
                                      ::mode_t mode = 0) {
  int descriptor;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode);
  } while (descriptor < 0 && errno == EINTR);
  return FileDescriptor(descriptor);
}

inline std::string_view file_kind(::mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISREG(mode) ? "a regular file" : "a device";
}

[[noreturn]] inline void throw_not_regular(const std::filesystem::path& path, ::mode_t mode) {
  throw FileError({.id = S_ISDIR(mode) ? "file/is-a-folder" : "file/not-regular",
                   .where = path.string(),
                   .what = "cannot use this file",
                   .expected = "a regular file",
                   .found = std::string(file_kind(mode)),
                   .mend = "give the path of a regular file"});
}

/// A file that is open for reading, and its size at that time.
struct OpenFile {
  FileDescriptor descriptor;
  std::size_t size = 0;
};

/// Opens a regular file that is not empty. Throws FileError for anything else.
inline OpenFile open_regular_file(const std::filesystem::path& path) {
  // O_NONBLOCK: to open a pipe must fail below, not wait for its writer.
  FileDescriptor file = open_descriptor(path, O_RDONLY | O_NONBLOCK);
  if (!file.valid()) throw_file_error(errno, path, "cannot open", "a readable file");
  struct ::stat status {};
  if (::fstat(file.get(), &status) != 0) {
    throw_file_error(errno, path, "cannot inspect", "a readable file");
  }
  if (!S_ISREG(status.st_mode)) throw_not_regular(path, status.st_mode);
  if (status.st_size <= 0) {
    throw FileError({.id = "file/empty",
                     .where = path.string(),
                     .what = "empty file",
                     .expected = "at least one byte",
                     .found = "0 bytes",
                     .mend = "write or download the file again"});
  }
  return {std::move(file), static_cast<std::size_t>(status.st_size)};
}

}  // namespace detail

/// Read-only mapping of a whole regular file. The bytes stay valid for the life of the object; a
/// file that another program shortens meanwhile kills the process on access, as every mapping does.
/// Throws FileError for what is missing, unreadable, empty, or not a regular file.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path) : path_(path) {
    const detail::OpenFile file = detail::open_regular_file(path);
    size_ = file.size;
    void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.descriptor.get(), 0);
    if (data == MAP_FAILED) detail::throw_file_error(errno, path, "cannot map", "a readable file");
    data_ = static_cast<const std::byte*>(data);
  }
  MappedFile(MappedFile&& other) noexcept
      : path_(std::move(other.path_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  }

  const std::filesystem::path& path() const noexcept { return path_; }
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  /// The bytes as characters.
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(data_), size_}; }

  /// Tells the system that bytes [offset, offset + length) are not needed soon, so that their pages
  /// no longer count as this process's memory. A hint: the bytes stay readable.
  void release(std::size_t offset, std::size_t length) const noexcept {
    if (length == 0 || offset >= size_) return;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t begin = offset / page * page;
    const std::size_t end = offset + std::min(length, size_ - offset);
    ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
  }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
