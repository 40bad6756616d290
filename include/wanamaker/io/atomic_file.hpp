// Files that appear complete or not at all: written beside the target, flushed to the disk,
// renamed.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/mapped_file.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline constexpr std::string_view writable_folder = "a writable folder with enough space";

/// Writes all bytes to a descriptor; `path` is named in the FileError.
inline void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& path) {
  constexpr std::size_t largest_piece = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ::ssize_t written =
        ::write(descriptor, bytes.data(), std::min(bytes.size(), largest_piece));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error(errno, path, "cannot write", writable_folder);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Whether the open file still has this name.
inline bool is_in_place(const FileDescriptor& file, const std::filesystem::path& path) {
  struct ::stat held {
  }, named{};
  return ::fstat(file.get(), &held) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

inline constexpr std::string_view partial_prefix = ".wanamaker-partial-";

/// Removes what killed processes left of their writing: partial files that nobody holds locked.
/// What cannot be listed or removed stays.
inline void remove_abandoned_partial_files(const std::filesystem::path& folder) {
  std::error_code fault;
  std::filesystem::directory_iterator entry(folder, fault);
  for (const std::filesystem::directory_iterator end; !fault && entry != end;
       entry.increment(fault)) {
    const std::filesystem::path& path = entry->path();
    if (!path.filename().string().starts_with(partial_prefix)) continue;
    const FileDescriptor file = open_descriptor(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!file.valid() || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    // Its writer may have finished meanwhile, and another taken the name.
    if (is_in_place(file, path)) ::unlink(path.c_str());
  }
}

/// Locks a file that was just created. False where another process looked at it meanwhile, and may
/// have taken it for an abandoned one. A file system without locks is no fault: on such a one
/// nothing is taken for abandoned either.
inline bool keep_from_removal(const FileDescriptor& file) {
  struct ::stat status {};
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  return ::fstat(file.get(), &status) == 0 && status.st_nlink > 0;
}

}  // namespace detail

/// Streams bytes into a temporary file in the target's folder; `commit` moves it to the target in
/// one step. Without `commit`, or when anything fails, the target stays as it was and the temporary
/// file is removed; one that a killed process left is removed by the next writing into the folder.
/// A target that is a symbolic link is replaced, not followed. Throws FileError.
class AtomicFile {
 public:
  /// Creates the temporary file, so that an unusable folder is reported before any work is done.
  explicit AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
    refuse_special_target();
    detail::remove_abandoned_partial_files(folder());
    create_temporary();
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile() { remove_temporary(); }

  void write(std::string_view bytes) {
    if (buffer_.size() + bytes.size() > buffer_limit) flush();
    if (bytes.size() > buffer_limit) {
      detail::write_all(file_.get(), bytes, target_);
    } else {
      buffer_ += bytes;
    }
  }
  void write(std::span<const std::byte> bytes) {
    write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

  /// Flushes to the disk and moves the file into place. Call once, last.
  void commit() {
    flush();
    // EINVAL: a file system without such a flush.
    if (::fsync(file_.get()) != 0 && errno != EINVAL) fail(errno, "cannot flush to the disk");
    // Closing gives the lock up, so a second descriptor keeps it until the file has its name.
    const detail::FileDescriptor lock(::dup(file_.get()));
    if (const int code = file_.close(); code != 0) fail(code, "cannot finish writing");
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno, "cannot move into place");
    temporary_.clear();
    synchronize_folder();
  }

 private:
  static constexpr std::size_t buffer_limit = std::size_t{1} << 16;

  [[noreturn]] void fail(int code, std::string_view what) const {
    detail::throw_file_error(code, target_, what, detail::writable_folder);
  }

  std::filesystem::path folder() const {
    return target_.has_parent_path() ? target_.parent_path() : std::filesystem::path(".");
  }

  /// A rename would replace a device or a pipe by a file, silently.
  void refuse_special_target() const {
    struct ::stat status {};
    if (::stat(target_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
      detail::throw_not_regular(target_, status.st_mode);
    }
    if (!target_.has_filename()) fail(EISDIR, "cannot create");
  }

  void create_temporary() {
    for (int attempt = 0;; ++attempt) {
      std::filesystem::path candidate =
          folder() / (std::string(detail::partial_prefix) + std::to_string(::getpid()) + "-" +
                      std::to_string(attempt));
      file_ = detail::open_descriptor(candidate, O_WRONLY | O_CREAT | O_EXCL, 0666);
      // A name may be taken by another thread: try the next one.
      if (!file_.valid() && (errno != EEXIST || attempt >= 1000)) fail(errno, "cannot create");
      if (!file_.valid() || !detail::keep_from_removal(file_)) continue;
      temporary_ = std::move(candidate);
      return;
    }
  }

  void flush() {
    detail::write_all(file_.get(), buffer_, target_);
    buffer_.clear();
  }

  void remove_temporary() noexcept {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  /// Makes the rename itself durable. Not every file system can, and the file is complete already,
  /// so failure is no error.
  void synchronize_folder() const {
    const detail::FileDescriptor descriptor =
        detail::open_descriptor(folder(), O_RDONLY | O_DIRECTORY);
    if (descriptor.valid()) ::fsync(descriptor.get());
  }

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  detail::FileDescriptor file_;
  std::string buffer_;
};

/// Writes a whole file in one step: readers see the old content or the new, never a part.
/// Throws FileError (missing, unwritable or full folder; target that is no regular file).
inline void write_atomically(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
