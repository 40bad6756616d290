// Progress on standard error, and Ctrl-C as a request to stop.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

#include "wanamaker/core/progress.hpp"

namespace study {

/// From now on SIGINT and SIGTERM ask the running command to stop; a second one ends at once.
/// Throws wanamaker::BackendError where the system refuses a thread.
void catch_interrupts();
bool is_interrupted();

/// What the newest callback of a ProgressLine said was going on; empty before the first.
std::string last_stage();

/// Throws wanamaker::FileError where standard output took less than it was given: a stream drops
/// what it could not write, so that a full device would pass for success.
void check_output_written();

/// One line that is rewritten a few times a second, with the time that is left; silent where
/// standard error is no terminal, except for stage changes.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// The callback for the library; asks to stop when interrupted.
  wanamaker::Progress callback();
  /// Removes the line; something else is to be shown.
  void clear();
  /// What stage names are prefixed with, such as the model.
  void set_title(std::string title) { title_ = std::move(title); }

 private:
  using Clock = std::chrono::steady_clock;

  void show(std::string_view stage, wanamaker::Index done, wanamaker::Index total);

  bool quiet_;
  bool terminal_;
  bool shown_ = false;
  std::string title_;
  std::string stage_;
  Clock::time_point stage_start_{};
  Clock::time_point last_shown_{};
};

}  // namespace study
