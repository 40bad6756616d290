// The study program stopped in the middle, by Ctrl-C or killed, and resumed: the same result file,
// byte for byte, as without the interruption.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "program/study_process.hpp"
#include "testing.hpp"

namespace {

namespace fs = std::filesystem;
using namespace wanamaker_test;
using namespace std::chrono_literals;

struct Command {
  std::string name;
  std::vector<std::string> options;
  std::string state = name;  // whose state file is waited for
  std::vector<std::string> settings{"--ladder", "quick", "--resamples", "100"};
  std::string report_tokens = "400";
  bool trains = false;

  // The program's arguments for results in `out`.
  std::vector<std::string> arguments(const fs::path& out, bool resume) const {
    const fs::path data = WANAMAKER_EXAMPLES_DATA;
    std::vector<std::string> all{"--model",         (data / "models/books-gpt2").string(),
                                 "--text",          (data / "narrative.txt").string(),
                                 "--out",           out.string(),
                                 "--fit-tokens",    "1000",
                                 "--select-tokens", "400",
                                 "--report-tokens", report_tokens,
                                 "--truncate",      "40",
                                 "--rho",           "1e-3",
                                 "--threads",       "1"};
    all.insert(all.begin(), {name, "--quiet"});
    if (!trains) all.insert(all.end(), {"--gate-tokens", "800"});
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), settings.begin(), settings.end());
    if (resume) all.push_back("--resume");
    return all;
  }
};

pid_t start(const Command& command, const fs::path& out, bool resume) {
  return start_study(command.arguments(out, resume));
}

int run(const Command& command, const fs::path& out, bool resume) {
  return wait_for(start(command, out, resume));
}

// Sends the signal once the state file has been written `writes` times. Returns the exit code.
int interrupt_after(const Command& command, const fs::path& out, int writes, int signal) {
  const fs::path state = out / (command.state + ".state.json");
  const pid_t child = start(command, out, false);
  std::uintmax_t last = 0;
  for (int seen = 0; seen < writes && !has_ended(child); std::this_thread::sleep_for(2ms)) {
    std::error_code missing;
    const std::uintmax_t size = fs::file_size(state, missing);
    if (missing || size == last) continue;
    last = size;
    ++seen;
  }
  ::kill(child, signal);
  return wait_for(child);
}

int interrupt_at(const Command& command, const fs::path& out, std::chrono::milliseconds delay,
                 int signal) {
  const pid_t child = start(command, out, false);
  std::this_thread::sleep_for(delay);
  ::kill(child, signal);
  return wait_for(child);
}

const std::vector<Command> commands{
    {"sweep", {"--layers", "3-5"}},
    {"gate-curve", {"--layers", "4,5", "--fractions", "0.5", "--gates", "random,gate-logistic"}},
    {"compound", {"--layers", "4,5", "--greedy", "linear"}},
    {"probe", {"--layers", "4,5"}, "probe", {"--resamples", "100"}},
    {"transfer", {"--layers", "4,5"}, "transfer", {"--resamples", "100"}},
    {"clusters", {"--layers", "4,5"}, "clusters", {"--clusters", "5"}},
    {"features",
     {"--layers", "4,5"},
     "features",
     {"--resamples", "100", "--rounds", "3", "--folds", "3"},
     "6000"},  // of three documents or more
    {"marginal", {"--layers", "4,5"}, "marginal", {"--exact-positions", "5"}},
    {"forensics", {"--layers", "4,5"}, "forensics", {"--positions", "20"}},
    {"progressive",
     {"--layers", "5", "--between-steps", "1", "--final-steps", "1", "--train-window", "16",
      "--batch", "1", "--train-tokens", "1000", "--seeds", "1,2"},
     "progressive",
     {"--resamples", "100"},
     "400",
     true}};

}  // namespace

TEST_CASE("interrupted after some parts and resumed, a command writes the same file") {
  for (const Command& command : commands) {
    CAPTURE(command.name);
    const TemporaryFolder folder;
    const std::string result = command.name + ".json";
    REQUIRE(run(command, folder / "whole", false) == 0);
    const std::string whole = read_bytes(folder / "whole" / result);
    for (const int signal : {SIGINT, SIGKILL}) {
      const fs::path out = folder / ("interrupted-" + std::to_string(signal));
      const int code = interrupt_after(command, out, 1, signal);
      CHECK(code == (signal == SIGINT ? 130 : 1000 + SIGKILL));
      CHECK_FALSE(fs::exists(out / result));
      CHECK(run(command, out, true) == 0);
      CHECK(read_bytes(out / result) == whole);
      CHECK_FALSE(fs::exists(out / (command.name + ".state.json")));
    }
  }
}

TEST_CASE("killed at any moment and resumed, a command writes the same file") {
  const Command& command = commands.front();
  const TemporaryFolder folder;
  REQUIRE(run(command, folder / "whole", false) == 0);
  const std::string whole = read_bytes(folder / "whole" / "sweep.json");
  for (const auto delay : {0ms, 30ms, 150ms, 400ms, 900ms}) {
    CAPTURE(delay.count());
    const fs::path out = folder / ("killed-" + std::to_string(delay.count()));
    interrupt_at(command, out, delay, SIGKILL);
    CHECK(run(command, out, true) == 0);
    CHECK(read_bytes(out / "sweep.json") == whole);
  }
}

TEST_CASE("all takes up what it had finished before an interruption") {
  const Command all{"all",
                    {"--quick", "--layers", "4,5", "--fractions", "0.5", "--gates",
                     "random,gate-logistic", "--greedy", "none"},
                    "compound"};
  const TemporaryFolder folder;
  REQUIRE(run(all, folder / "whole", false) == 0);
  const fs::path out = folder / "interrupted";
  CHECK(interrupt_after(all, out, 1, SIGINT) == 130);
  CHECK(fs::exists(out / "sweep.state.json"));
  CHECK(fs::exists(out / "gate-curve.state.json"));
  CHECK(run(all, out, true) == 0);
  // features needs more documents than these.
  for (const char* command : {"perplexity", "sweep", "gate-curve", "compound", "probe", "transfer",
                              "clusters", "marginal", "forensics"}) {
    CAPTURE(command);
    const std::string result = std::string(command) + ".json";
    CHECK(read_bytes(out / result) == read_bytes(folder / "whole" / result));
    CHECK_FALSE(fs::exists(out / (std::string(command) + ".state.json")));
  }
}

TEST_CASE("a state of other settings is not taken up") {
  const Command& command = commands.front();
  const TemporaryFolder folder;
  interrupt_after(command, folder / "out", 1, SIGKILL);
  Command other = command;
  other.options.insert(other.options.end(), {"--seed", "1"});
  CHECK(run(other, folder / "out", true) == 1);
  CHECK(run(command, folder / "out", true) == 0);
}
