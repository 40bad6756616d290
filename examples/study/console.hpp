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

/// One line that is rewritten a few times a second, with the time that is left; where standard
/// error is no terminal, a line at the beginning of every stage and every minute.
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
  /// Stages of training have pieces of that many tokens: their tokens a second are shown.
  void set_training_tokens(wanamaker::Index tokens) { training_tokens_ = tokens; }

 private:
  using Clock = std::chrono::steady_clock;

  void show(std::string_view stage, wanamaker::Index done, wanamaker::Index total);
  void begin(std::string_view stage, wanamaker::Index done, Clock::time_point now);
  std::string pace(wanamaker::Index done, wanamaker::Index total, Clock::time_point now) const;

  bool quiet_;
  bool terminal_;
  bool shown_ = false;
  std::string title_;
  wanamaker::Index training_tokens_ = 0;
  std::string stage_;
  Clock::time_point stage_start_{};
  wanamaker::Index stage_first_ = 0;  // pieces that were done when the stage began
  Clock::time_point last_shown_{};
};

}  // namespace study
