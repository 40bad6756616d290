// The study program run as a user runs it.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "testing.hpp"

namespace wanamaker_test {

/// For the shell.
inline std::string quoted(const std::filesystem::path& path) {
  return "'" + path.string() + "'";
}

/// How a run ended.
struct Outcome {
  int code = -1;  // of a signal: 1000 + its number
  std::string errors;
};

/// Runs `study ARGUMENTS`, its standard output in a file; `before`: what the shell does before.
inline Outcome run_study(const std::string& arguments,
                         const std::filesystem::path& output = "/dev/null",
                         const std::string& before = "") {
  const TemporaryFolder folder;
  const std::filesystem::path errors = folder / "errors";
  const std::string command = before + quoted(WANAMAKER_STUDY) + " " + arguments + " >" +
                              quoted(output) + " 2>" + quoted(errors);
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), read_bytes(errors)};
}

/// Starts `study ARGUMENTS` beside the test, its standard output nowhere.
inline pid_t start_study(const std::vector<std::string>& arguments, int input = STDIN_FILENO) {
  std::string program = WANAMAKER_STUDY;
  std::vector<char*> pointers{program.data()};
  for (const std::string& a : arguments) pointers.push_back(const_cast<char*>(a.c_str()));
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::dup2(input, STDIN_FILENO);
  ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
  ::execv(pointers.front(), pointers.data());
  ::_exit(127);
}

/// Exit code, or 1000 + the signal that ended it.
inline int wait_for(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

inline bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

/// Exit code 1 and one line, which has each of `parts`.
inline void check_refused(const Outcome& outcome, const std::vector<std::string>& parts) {
  INFO("standard error: ", outcome.errors);
  CHECK(outcome.code == 1);
  CHECK(std::count(outcome.errors.begin(), outcome.errors.end(), '\n') == 1);
  for (const std::string& part : parts) {
    INFO("looked for: ", part);
    CHECK(outcome.errors.find(part) != std::string::npos);
  }
}

}  // namespace wanamaker_test
