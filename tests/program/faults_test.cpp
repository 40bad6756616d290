// Long runs and what befalls them: kills at any moment, full disks, folders that vanish or belong
// to another run. Nothing half-written is ever visible, and what is resumed ends as if nothing had
// been. WANAMAKER_KILLS says how many kills each kind of run gets (2).
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "program/study_process.hpp"
#include "testing.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/io/safetensors.hpp"

#ifdef WANAMAKER_STUDY

namespace {

namespace fs = std::filesystem;
using namespace wanamaker_test;
using namespace std::chrono_literals;
using Milliseconds = std::chrono::milliseconds;

const fs::path data = WANAMAKER_EXAMPLES_DATA;

const std::vector<std::string> few_tokens{"--model",         (data / "models/books-gpt2").string(),
                                          "--fit-tokens",    "400",
                                          "--gate-tokens",   "300",
                                          "--select-tokens", "200",
                                          "--report-tokens", "200",
                                          "--truncate",      "40",
                                          "--rho",           "1e-3"};

/// A command that writes files into a folder.
struct LongRun {
  std::string command;
  std::vector<std::string> options;
  fs::path text;
  bool resumes = true;  // or begins again

  std::vector<std::string> arguments(const fs::path& out, bool again) const {
    std::vector<std::string> all{command, "--quiet",    "--threads", "1",
                                 "--out", out.string(), "--text",    text.string()};
    all.insert(all.end(), options.begin(), options.end());
    if (again && resumes) all.push_back("--resume");
    return all;
  }
  int finish(const fs::path& out, bool again) const {
    return wait_for(start_study(arguments(out, again)));
  }
  /// One string for the shell.
  std::string line(const fs::path& out, bool again) const {
    std::string all;
    for (const std::string& a : arguments(out, again)) all += wanamaker_test::quoted(a) + " ";
    return all;
  }
};

std::vector<std::string> with(std::vector<std::string> options,
                              const std::vector<std::string>& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

LongRun sweep_run() {
  return {"sweep", with(few_tokens, {"--layers", "3-5", "--ladder", "quick", "--resamples", "100"}),
          data / "narrative.txt"};
}

LongRun export_run() {
  return {"export", with(few_tokens, {"--layers", "3"}), data / "narrative.txt", false};
}

/// Training from nothing, on documents in `folder`.
LongRun pretrain_run(const fs::path& folder) {
  const fs::path texts = folder / "texts";
  fs::create_directories(texts);
  const std::string narrative = read_bytes(data / "narrative.txt");
  for (std::size_t i = 0; i < 6; ++i) {
    write_bytes(texts / (std::to_string(i) + ".txt"), narrative.substr(i * 1000, 1000));
  }
  return {"pretrain",
          {"--quick", "--width", "16", "--depth", "1", "--heads", "2", "--window", "16",
           "--vocabulary", "270", "--steps", "30", "--warm-up", "2", "--checkpoint-every", "2",
           "--report-tokens", "400"},
          texts};
}

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with(".");
}

/// What no run writes twice alike: its seconds.
bool has_times(const fs::path& path) {
  return path.filename().string().ends_with(".times.json");
}

/// Names of the visible files, in whatever folders.
std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && !is_hidden(entry.path())) {
      files.push_back(fs::relative(entry.path(), folder));
    }
  }
  return files;
}

/// Every visible file is whole: as it is in the end, or readable to its last byte where it is
/// replaced on the way.
void check_whole_files(const fs::path& out, const fs::path& finished) {
  for (const fs::path& file : files_of(out)) {
    CAPTURE(file.string());
    if (file.extension() == ".json") {
      CHECK_NOTHROW(wanamaker::parse_json_file(out / file));
    } else if (file.extension() == ".safetensors") {
      CHECK_NOTHROW(wanamaker::SafetensorsFile::open(out / file));
    } else {
      CHECK(read_bytes(out / file) == read_bytes(finished / file));
    }
  }
}

/// The same files with the same bytes, and nothing left beside them.
void check_same(const fs::path& out, const fs::path& finished) {
  CHECK(files_of(out).size() == files_of(finished).size());
  for (const fs::path& file : files_of(finished)) {
    CAPTURE(file.string());
    if (!has_times(file)) CHECK(read_bytes(out / file) == read_bytes(finished / file));
  }
  for (const auto& entry : fs::recursive_directory_iterator(out)) {
    CAPTURE(entry.path().string());
    CHECK_FALSE(is_hidden(entry.path()));
  }
}

int kills_wanted() {
  const char* asked = std::getenv("WANAMAKER_KILLS");
  return asked == nullptr ? 2 : std::atoi(asked);
}

int end_after(const LongRun& run, const fs::path& out, bool again, Milliseconds delay, int signal) {
  const pid_t child = start_study(run.arguments(out, again));
  std::this_thread::sleep_for(delay);
  ::kill(child, signal);
  return wait_for(child);
}

/// Kills runs and what resumes them until so many were killed alive; each ends as the whole one.
void kill_at_random(const LongRun& run, const fs::path& folder) {
  const fs::path whole = folder / "whole";
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(run.finish(whole, false) == 0);
  const auto length =
      std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - start);
  wanamaker::RandomStream random(9);
  int killed = 0, rounds = 0;
  for (; killed < kills_wanted(); ++rounds) {
    const fs::path out = folder / std::to_string(rounds);
    for (int i = 0; i < 3; ++i) {
      const Milliseconds delay(random.below(static_cast<std::uint64_t>(length.count()) + 1));
      const int code = end_after(run, out, i > 0, delay, SIGKILL);
      check_whole_files(out, whole);
      if (code != 1000 + SIGKILL) break;
      ++killed;
    }
    REQUIRE(run.finish(out, true) == 0);
    check_same(out, whole);
    fs::remove_all(out);
  }
  MESSAGE(run.command << ": killed " << killed << " times in " << rounds << " runs");
}

bool comes_true(pid_t child, const std::function<bool()>& condition) {
  while (!condition()) {
    if (has_ended(child)) return condition();
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

/// A run that waits for its text on standard input, with all it needs before already done.
class WaitingRun {
 public:
  explicit WaitingRun(const LongRun& run, const fs::path& out) {
    LongRun waiting = run;
    waiting.text = "-";
    REQUIRE(::pipe2(pipe_, O_CLOEXEC) == 0);
    child_ = start_study(waiting.arguments(out, false), pipe_[0]);
    REQUIRE(comes_true(child_, [&] { return fs::exists(out / ".wanamaker-lock"); }));
  }
  ~WaitingRun() {
    for (const int end : pipe_) ::close(end);
  }
  WaitingRun(const WaitingRun&) = delete;
  WaitingRun& operator=(const WaitingRun&) = delete;

  pid_t child() const { return child_; }
  /// The text comes; how the run ends.
  int go_on() {
    const std::string text = "He opened the door and went in. She said nothing for a while.\n";
    REQUIRE(::write(pipe_[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::close(std::exchange(pipe_[1], -1));
    return wait_for(child_);
  }
  int kill() {
    ::kill(child_, SIGKILL);
    return wait_for(child_);
  }

 private:
  int pipe_[2] = {-1, -1};
  pid_t child_ = -1;
};

}  // namespace

TEST_CASE("a sweep, a training and an export, killed again and again, end as without that") {
  const TemporaryFolder folder;
  for (const LongRun& run : {sweep_run(), pretrain_run(folder.path()), export_run()}) {
    CAPTURE(run.command);
    const TemporaryFolder own;
    kill_at_random(run, own.path());
  }
}

TEST_CASE("SIGTERM ends a training with its state saved, whatever the clock says afterwards") {
  const TemporaryFolder folder;
  LongRun run = pretrain_run(folder.path());
  REQUIRE(run.finish(folder / "whole", false) == 0);
  for (const int signal : {SIGTERM, SIGINT}) {
    const fs::path out = folder / std::to_string(signal);
    const fs::path checkpoint = out / "checkpoints/checkpoint.safetensors";
    const pid_t child = start_study(run.arguments(out, false));
    REQUIRE(comes_true(child, [&] { return fs::exists(checkpoint); }));
    ::kill(child, signal);
    CHECK(wait_for(child) == 130);
    CHECK_FALSE(fs::exists(out / "pretrain.json"));
    // As if the clock had been put back, and forward, by ten years.
    fs::last_write_time(checkpoint, fs::file_time_type::clock::now() +
                                        std::chrono::hours(signal == SIGTERM ? 87660 : -87660));
    CHECK(run.finish(out, true) == 0);
    check_same(out, folder / "whole");
  }
}

TEST_CASE("results that cannot be written cost nothing of what was measured") {
  const TemporaryFolder folder;
  const LongRun run = sweep_run();
  const fs::path out = folder / "out";
  REQUIRE(run.finish(folder / "whole", false) == 0);
  fs::create_directories(out / "sweep.csv");
  check_refused(run_study(run.line(out, false)), {"sweep.csv", "file/"});
  CHECK(wanamaker::parse_json_file(out / "sweep.state.json").at("parts").size() == 3);
  fs::remove(out / "sweep.csv");
  CHECK(run.finish(out, true) == 0);
  check_same(out, folder / "whole");
}

TEST_CASE("a disk that fills during a training is one line, and the training goes on later") {
  const TemporaryFolder folder;
  const LongRun run = pretrain_run(folder.path());
  const fs::path out = folder / "out";
  REQUIRE(run.finish(folder / "whole", false) == 0);
  // A limit on the size of files, in kilobytes, is what a program sees of it, for root too.
  for (const char* kilobytes : {"1", "40"}) {
    CAPTURE(std::string(kilobytes));
    check_refused(run_study(run.line(out, true), "/dev/null",
                            std::string("trap '' XFSZ; ulimit -f ") + kilobytes + "; "),
                  {"file/full"});
    check_whole_files(out, folder / "whole");
  }
  CHECK(run.finish(out, true) == 0);
  check_same(out, folder / "whole");
}

TEST_CASE("an output folder in which nothing may be written is refused before any work") {
  const TemporaryFolder folder;
  const fs::path out = folder / "out";
  fs::create_directory(out);
  fs::permissions(out, fs::perms::owner_read | fs::perms::owner_exec);
  // Root may write there all the same, unless it gives that right up.
  std::string before;
  if (::geteuid() == 0) {
    before = "setpriv --bounding-set -dac_override ";
    if (std::system((before + "true 2>/dev/null").c_str()) != 0) {
      MESSAGE("skipped: root cannot give up its rights here");
      return;
    }
  }
  LongRun run = sweep_run();
  run.text = folder / "absent.txt";  // would be refused, too, if it came to that
  check_refused(run_study(run.line(out, false), "/dev/null", before), {"out", "file/permission"});
}

TEST_CASE("the second of two runs in one folder is refused; a killed one leaves no lock") {
  const TemporaryFolder folder;
  const LongRun run = sweep_run();
  const fs::path out = folder / "out";
  WaitingRun first(run, out);
  check_refused(run_study(run.line(out, false)),
                {"file/in-use", "process " + std::to_string(first.child())});
  CHECK(run.finish(folder / "other", false) == 0);
  CHECK(first.kill() == 1000 + SIGKILL);
  CHECK(run.finish(out, false) == 0);
}

TEST_CASE("a model that vanishes between start and reading is one clear line") {
  const TemporaryFolder folder;
  const fs::path model = folder / "model", errors = folder / "errors";
  fs::copy(data / "models/books-gpt2", model);
  LongRun run = sweep_run();
  run.options[1] = model.string();
  const int standard_error = ::dup(STDERR_FILENO);
  const int captured = ::open(errors.c_str(), O_WRONLY | O_CREAT, 0600);
  ::dup2(captured, STDERR_FILENO);
  WaitingRun waiting(run, folder / "out");
  ::dup2(standard_error, STDERR_FILENO);
  for (const int descriptor : {standard_error, captured}) ::close(descriptor);
  fs::remove_all(model);
  check_refused({waiting.go_on(), read_bytes(errors)}, {model.string(), "file/missing"});
}

TEST_CASE("an output folder that vanishes during a run is an error, not a crash") {
  const TemporaryFolder folder;
  const fs::path out = folder / "out";
  const LongRun run = pretrain_run(folder.path());
  const pid_t child = start_study(run.arguments(out, false));
  REQUIRE(comes_true(child, [&] { return fs::exists(out / "checkpoints"); }));
  fs::rename(out, folder / "elsewhere");
  CHECK(wait_for(child) == 1);
  check_whole_files(folder / "elsewhere", folder / "elsewhere");
}

TEST_CASE("a name that the file system cannot have is one short line") {
  const Outcome outcome = run_study("report " + std::string(5000, 'm'));
  check_refused(outcome, {"mmm", "file/bad-name"});
  CHECK(outcome.errors.size() < 400);
}

TEST_CASE("nothing asks what time it is: a clock that jumps changes nothing") {
  for (const char* part : {"include", "examples"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(WANAMAKER_SOURCE_DIR) / part)) {
      if (!entry.is_regular_file() || entry.path().string().find("/data/") != std::string::npos) {
        continue;
      }
      CAPTURE(entry.path().string());
      const std::string source = read_bytes(entry.path());
      for (const char* clock : {"system_clock", "high_resolution_clock", "gettimeofday",
                                "clock_gettime", "<ctime>", "file_clock"}) {
        CHECK(source.find(clock) == std::string::npos);
      }
    }
  }
}

#endif
