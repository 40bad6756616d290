// Mapped files and atomic writing, with a system that refuses.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io_testing.hpp"
#include "testing.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/io/folder_lock.hpp"
#include "wanamaker/io/mapped_file.hpp"

using wanamaker::AtomicFile;
using wanamaker::FolderLock;
using wanamaker::MappedFile;
using wanamaker::write_atomically;
using namespace wanamaker_test;

namespace {

/// Limits how long a file may grow, so that a write fails in the middle as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    previous_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &previous_);
    rlimit limit = previous_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, previous_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit previous_{};
  void (*previous_handler_)(int) = nullptr;
};

}  // namespace

TEST_CASE("a mapped file has the file's bytes") {
  const TemporaryFolder folder;
  const std::string content("a\0b\xff", 4);
  write_bytes(folder / "f", content);
  MappedFile file(folder / "f");
  CHECK(file.text() == content);
  CHECK(file.bytes().size() == 4);
  MappedFile moved(std::move(file));
  CHECK(moved.text() == content);
  write_bytes(folder / "g", "other");
  moved = MappedFile(folder / "g");
  CHECK(moved.text() == "other");
  CHECK(moved.path() == folder / "g");
}

TEST_CASE("what is no readable regular file is refused, and nothing hangs") {
  const TemporaryFolder folder;
  write_bytes(folder / "empty", "");
  write_bytes(folder / "file", "x");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const auto id = [](const std::filesystem::path& path) {
    return error_id([&] { MappedFile file(path); });
  };
  CHECK(id(folder / "absent") == "file/missing");
  CHECK(id(folder.path()) == "file/is-a-folder");
  CHECK(id(folder / "pipe") == "file/not-regular");
  CHECK(id("/dev/null") == "file/not-regular");
  CHECK(id(folder / "empty") == "file/empty");
  CHECK(id(folder / "file" / "below") == "file/not-a-folder");
  CHECK(id(folder / std::string(300, 'n')) == "file/bad-name");
  CHECK(id("") == "file/missing");
  if (::geteuid() != 0) {
    ::chmod((folder / "file").c_str(), 0);
    CHECK(id(folder / "file") == "file/permission");
  }
}

TEST_CASE("released pages leave memory and stay readable") {
  const TemporaryFolder folder;
  constexpr std::size_t size = std::size_t{64} << 20;
  write_bytes(folder / "f", "x");
  std::filesystem::resize_file(folder / "f", size);
  const MappedFile file(folder / "f");
  const auto touch = [&file] {
    unsigned sum = 0;
    for (std::size_t i = 0; i < size; i += 4096) sum += static_cast<unsigned>(file.bytes()[i]);
    return sum;
  };
  CHECK(touch() == 'x');
  const long before = resident_bytes();
  file.release(1, size);  // any offset; beyond the end is cut off
  if (before > 0) CHECK(before - resident_bytes() > long{32} << 20);
  CHECK(touch() == 'x');
  file.release(size, 1);
  file.release(size + 4096, 1);
  file.release(0, 0);
}

TEST_CASE("an atomic write replaces the whole file and leaves nothing beside it") {
  const TemporaryFolder folder;
  write_atomically(folder / "f", "first");
  write_atomically(folder / "f", "second, longer");
  CHECK(read_bytes(folder / "f") == "second, longer");
  write_atomically(folder / "f", "");
  CHECK(read_bytes(folder / "f").empty());
  CHECK(names_in(folder.path()).size() == 1);
}

TEST_CASE("an atomic write gives the permissions of any new file") {
  const TemporaryFolder folder;
  const mode_t mask = ::umask(0027);
  write_atomically(folder / "f", "x");
  ::umask(mask);
  struct stat status {};
  REQUIRE(::stat((folder / "f").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0640);
}

TEST_CASE("pieces of any size are written in order") {
  const TemporaryFolder folder;
  wanamaker::RandomStream random(1);
  std::string expected;
  AtomicFile file(folder / "f");
  for (int i = 0; i < 60; ++i) {
    const std::string piece(random.below(i % 5 == 0 ? 200'000 : 300),
                            static_cast<char>('a' + i % 26));
    file.write(piece);
    expected += piece;
  }
  file.commit();
  CHECK(read_bytes(folder / "f") == expected);
}

TEST_CASE("without commit the old file stays") {
  const TemporaryFolder folder;
  write_bytes(folder / "f", "old");
  {
    AtomicFile file(folder / "f");
    file.write(std::string(100'000, 'x'));
    CHECK(names_in(folder.path()).size() == 2);
  }
  CHECK(read_bytes(folder / "f") == "old");
  CHECK(names_in(folder.path()).size() == 1);
}

TEST_CASE("an unusable place is an error before anything is written") {
  const TemporaryFolder folder;
  write_bytes(folder / "file", "x");
  std::filesystem::create_directory(folder / "folder");
  const auto id = [](const std::filesystem::path& path) {
    return error_id([&] { AtomicFile file(path); });
  };
  CHECK(id(folder / "absent" / "f") == "file/missing");
  CHECK(id(folder / "file" / "f") == "file/not-a-folder");
  CHECK(id(folder / "folder") == "file/is-a-folder");
  CHECK(id(folder / "absent" / "") == "file/is-a-folder");
  CHECK(id("") == "file/is-a-folder");
  CHECK(names_in(folder.path()).size() == 2);
}

TEST_CASE("a device or a pipe is not replaced by a file") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(error_id([&] { write_atomically(folder / "pipe", "x"); }) == "file/not-regular");
  // By a link: a fault here must not cost the machine its device.
  std::filesystem::create_symlink("/dev/full", folder / "device");
  CHECK(error_id([&] { write_atomically(folder / "device", "x"); }) == "file/not-regular");
  struct stat status {};
  REQUIRE(::stat((folder / "pipe").c_str(), &status) == 0);
  CHECK(S_ISFIFO(status.st_mode));
  CHECK(std::filesystem::is_symlink(folder / "device"));
  CHECK(names_in(folder.path()).size() == 2);
}

TEST_CASE("a full disk is an error that keeps the old file and leaves nothing behind") {
  const TemporaryFolder folder;
  write_bytes(folder / "f", "old");
  for (const std::size_t size : {std::size_t{20'000}, std::size_t{500'000}}) {
    const FileSizeLimit limit(10'000);
    CHECK(error_id([&] { write_atomically(folder / "f", std::string(size, 'x')); }) == "file/full");
  }
  CHECK(read_bytes(folder / "f") == "old");
  CHECK(names_in(folder.path()).size() == 1);
}

TEST_CASE("a full device is reported in words") {
  const auto full = wanamaker::detail::open_descriptor("/dev/full", O_WRONLY);
  if (!full.valid()) return;
  try {
    wanamaker::detail::write_all(full.get(), "x", "out/sweep.json");
    FAIL("no error");
  } catch (const wanamaker::FileError& error) {
    CHECK(error.id() == "file/full");
    const std::string message = error.what();
    CHECK(message.starts_with("out/sweep.json: cannot write: expected a writable folder"));
    CHECK(message.find("No space left on device; make room") != std::string::npos);
  }
}

TEST_CASE("what a killed process left is removed, what another writes or owns is not") {
  const TemporaryFolder folder;
  const std::string left = ".wanamaker-partial-" + std::to_string(::getpid()) + "-0";
  write_bytes(folder / left, "left");
  write_bytes(folder / ".wanamaker-partial-1-0", "left");
  write_bytes(folder / "own", "own");
  std::filesystem::create_symlink("own", folder / ".wanamaker-partial-2-0");
  AtomicFile other(folder / "other");
  write_atomically(folder / "f", "x");
  CHECK(read_bytes(folder / "f") == "x");
  other.write("y");
  other.commit();
  CHECK(read_bytes(folder / "other") == "y");
  CHECK(read_bytes(folder / "own") == "own");
  CHECK_FALSE(std::filesystem::exists(folder / left));
  CHECK(names_in(folder.path()).size() == 4);  // the link stays
}

TEST_CASE("a folder has one holder at a time, whichever process it is in") {
  const TemporaryFolder folder;
  const auto take = [&folder] { return error_id([&] { FolderLock second(folder.path()); }); };
  {
    const FolderLock lock(folder.path());
    CHECK(take() == "file/in-use");
    CHECK_THROWS_WITH_AS(FolderLock(folder.path()),
                         doctest::Contains(std::to_string(::getpid()).c_str()),
                         wanamaker::FileError);
  }
  CHECK(names_in(folder.path()).empty());
  // As a killed process leaves it: nobody holds the file.
  write_bytes(folder / ".wanamaker-lock", "12345");
  CHECK(take() == "");
  CHECK(error_id([&] { FolderLock lock(folder / "absent"); }) == "file/missing");
}

TEST_CASE("threads that want one folder have it one after the other") {
  const TemporaryFolder folder;
  std::atomic<int> holders{0}, most{0}, taken{0};
  const auto hold = [&] {
    for (int i = 0; i < 200; ++i) {
      try {
        const FolderLock lock(folder.path());
        most = std::max(most.load(), ++holders);
        ++taken;
        --holders;
      } catch (const wanamaker::FileError&) {
      }
    }
  };
  std::thread first(hold), second(hold);
  first.join();
  second.join();
  CHECK(most == 1);
  CHECK(taken > 0);
}

TEST_CASE("writers of one file at the same time each write a whole file") {
  const TemporaryFolder folder;
  std::vector<std::thread> writers;
  for (char c = 'a'; c < 'e'; ++c) {
    writers.emplace_back([&folder, c] {
      // One took another's file for abandoned where its lock ended before it had its name.
      for (int i = 0; i < 50; ++i) write_atomically(folder / "f", std::string(70'000, c));
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string content = read_bytes(folder / "f");
  CHECK(content.size() == 70'000);
  CHECK(content == std::string(70'000, content[0]));
  CHECK(names_in(folder.path()).size() == 1);
}
