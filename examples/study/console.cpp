#include "console.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <system_error>
#include <thread>

#include "wanamaker/core/error.hpp"

namespace study {

namespace {

std::atomic<bool> interrupted{false};
std::string stage_of_run;  // of the main thread, as the callback

// Takes the signals, one after the other, for the whole process. The second one ends it.
void wait_for_interrupts(const sigset_t& signals) {
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (!interrupted.exchange(true)) continue;
    std::signal(signal, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    std::raise(signal);
  }
}

std::string duration_text(double seconds) {
  char buffer[32];
  const long whole = static_cast<long>(seconds + 0.5);
  std::snprintf(buffer, sizeof buffer, "%ld:%02ld", whole / 60, whole % 60);
  return buffer;
}

}  // namespace

// A thread of their own takes the signals, and no other thread does: a handler may not run on one
// that computes, since oneDNN's products move the stack into a buffer of a few pages, which what
// the kernel pushes for a handler overruns.
void catch_interrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // threads that are started later inherit it
  try {
    std::thread([signals] { wait_for_interrupts(signals); }).detach();
  } catch (const std::system_error& refusal) {
    throw wanamaker::BackendError({.id = "backend/no-thread",
                                   .where = "signals",
                                   .what = "the system refuses to start a thread",
                                   .expected = "one that waits for Ctrl-C",
                                   .found = refusal.what(),
                                   .mend = "allow more threads, or more memory for their stacks"});
  }
}

bool is_interrupted() {
  return interrupted;
}

std::string last_stage() {
  return stage_of_run;
}

void check_output_written() {
  std::cout.flush();
  if (std::cout) return;
  throw wanamaker::FileError({.id = "file/output-lost",
                              .where = "standard output",
                              .what = "could not be written to its end",
                              .mend = "free some space, or write elsewhere"});
}

ProgressLine::ProgressLine(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  clear();
}

wanamaker::Progress ProgressLine::callback() {
  return {[this](std::string_view stage, wanamaker::Index done, wanamaker::Index total) {
    if (!stage.empty() && stage != stage_of_run) stage_of_run = stage;
    if (!quiet_ && !stage.empty()) show(stage, done, total);
    return !is_interrupted();
  }};
}

void ProgressLine::begin(std::string_view stage, wanamaker::Index done, Clock::time_point now) {
  stage_ = stage;
  stage_start_ = now;
  stage_first_ = done;
  if (!terminal_) std::fprintf(stderr, "%s: %s\n", title_.c_str(), stage_.c_str());
}

// Tokens a second and the time that is left, as far as they can be told.
std::string ProgressLine::pace(wanamaker::Index done, wanamaker::Index total,
                               Clock::time_point now) const {
  const double elapsed = std::chrono::duration<double>(now - stage_start_).count();
  const double pieces = static_cast<double>(done - stage_first_);
  if (pieces <= 0 || elapsed <= 1.0) return "";
  std::string text;
  if (training_tokens_ > 0 && stage_.starts_with("training")) {
    const double tokens = pieces * static_cast<double>(training_tokens_);
    text = ", " + std::to_string(std::llround(tokens / elapsed)) + " tokens/s";
  }
  return text + ", " + duration_text(elapsed * static_cast<double>(total - done) / pieces) +
         " left";
}

void ProgressLine::show(std::string_view stage, wanamaker::Index done, wanamaker::Index total) {
  const Clock::time_point now = Clock::now();
  const bool is_new = stage != stage_;
  if (is_new) begin(stage, done, now);
  const Clock::duration pause = terminal_ ? Clock::duration(std::chrono::milliseconds(200))
                                          : Clock::duration(std::chrono::minutes(1));
  const bool is_due = is_new ? terminal_ : now - last_shown_ > pause;
  if (is_new || is_due) last_shown_ = now;
  if (!is_due) return;
  std::fprintf(stderr, "%s%s: %s %td/%td%s%s", terminal_ ? "\r\033[K" : "", title_.c_str(),
               stage_.c_str(), done, total, pace(done, total, now).c_str(), terminal_ ? "" : "\n");
  std::fflush(stderr);
  shown_ = terminal_;
}

void ProgressLine::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace study
