// One run at a time in a folder.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/mapped_file.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Keeps a folder to one holder as long as it lives, among all processes and threads, by a locked
/// file `.wanamaker-lock` in it. The system gives the lock up when a process ends, however it ends:
/// a file that a killed one left locks nothing. Where the file system has no locks, nothing is kept
/// apart. Throws FileError: `file/in-use` where another holds the folder, and what the system
/// refuses.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder) : path_(folder / ".wanamaker-lock") {
    // Between opening and locking, who held it may have removed the file: then it locks nothing.
    do {
      file_ = detail::open_descriptor(path_, O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
      if (!file_.valid()) fail();
      if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) refuse();
        return;
      }
    } while (!detail::is_in_place(file_, path_));
    write_holder();
  }
  FolderLock(FolderLock&&) noexcept = default;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock() {
    if (file_.valid()) ::unlink(path_.c_str());
  }

 private:
  [[noreturn]] void fail() const {
    detail::throw_file_error(errno, path_, "cannot create", detail::writable_folder);
  }

  [[noreturn]] void refuse() const {
    throw FileError({.id = "file/in-use",
                     .where = path_.parent_path().string(),
                     .what = "another run writes into this folder",
                     .expected = "a folder for each run",
                     .found = "process " + holder(),
                     .mend = "wait for it, or choose another folder"});
  }

  /// For the message alone, so that a full disk does not matter.
  void write_holder() const {
    const std::string process = std::to_string(::getpid());
    if (::ftruncate(file_.get(), 0) != 0) return;
    [[maybe_unused]] const ::ssize_t written = ::write(file_.get(), process.data(), process.size());
  }

  std::string holder() const {
    char text[20];
    const ::ssize_t size = ::read(file_.get(), text, sizeof text);
    return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : "unknown";
  }

  std::filesystem::path path_;
  detail::FileDescriptor file_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
