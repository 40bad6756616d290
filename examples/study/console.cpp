#include "console.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>

#include "wanamaker/core/error.hpp"

namespace study {

namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int signal) {
  if (interrupted != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  interrupted = 1;
}

std::string duration_text(double seconds) {
  char buffer[32];
  const long whole = static_cast<long>(seconds + 0.5);
  std::snprintf(buffer, sizeof buffer, "%ld:%02ld", whole / 60, whole % 60);
  return buffer;
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}

bool is_interrupted() {
  return interrupted != 0;
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
    if (!quiet_ && !stage.empty()) show(stage, done, total);
    return !is_interrupted();
  }};
}

void ProgressLine::show(std::string_view stage, wanamaker::Index done, wanamaker::Index total) {
  const Clock::time_point now = Clock::now();
  const bool is_new = stage != stage_;
  if (is_new) {
    stage_ = stage;
    stage_start_ = now;
    if (!terminal_) std::fprintf(stderr, "%s: %s\n", title_.c_str(), stage_.c_str());
  }
  const bool due = is_new || now - last_shown_ > std::chrono::milliseconds(200);
  if (!terminal_ || !due) return;
  last_shown_ = now;
  const double elapsed = std::chrono::duration<double>(now - stage_start_).count();
  std::string left;
  if (done > 0 && elapsed > 1.0) {
    left = ", " +
           duration_text(elapsed * static_cast<double>(total - done) / static_cast<double>(done)) +
           " left";
  }
  std::fprintf(stderr, "\r\033[K%s: %s %td/%td%s", title_.c_str(), stage_.c_str(), done, total,
               left.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace study
