// study: how much of a transformer's MLP nonlinearity is needed.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <optional>
#include <string>

#include "commands.hpp"
#include "console.hpp"
#include "run.hpp"
#include "wanamaker/core/error.hpp"
#include "wanamaker/io/file_error.hpp"

namespace {

// Whether it writes results that a second run in the same folder would mix with its own.
bool measures(const std::string& command) {
  return command != "tokenize" && command != "verify" && command != "report" &&
         command != "compare" && command != "plan";
}

int run(const study::Options& options) {
  std::optional<wanamaker::FolderLock> lock;
  if (measures(options.command)) lock.emplace(study::lock_folder(options.out));
  if (options.command == "tokenize") study::run_tokenize(options);
  if (options.command == "perplexity") study::run_perplexity(options);
  if (options.command == "sweep") study::run_sweep(options);
  if (options.command == "gate-curve") study::run_gate_curve(options);
  if (options.command == "compound") study::run_compound(options);
  if (options.command == "generate") study::run_generate(options);
  if (options.command == "pretrain") study::run_pretrain(options);
  if (study::is_from_scratch(options.command)) study::run_from_scratch(options);
  if (study::is_finetuning(options.command)) study::run_finetuning(options);
  if (options.command == "optimise") study::run_optimise(options);
  if (options.command == "plan") study::run_plan(options);
  if (options.command == "report") study::run_report(options);
  if (study::is_about_routing(options.command)) study::run_routing(options);
  if (options.command == "export") study::run_export(options);
  if (options.command == "verify") study::run_verify(options);
  if (options.command == "compare") study::run_compare(options);
  if (options.command == "all") study::run_all(options);
  study::check_output_written();
  return 0;
}

// Whether a run that was interrupted can be taken up again.
bool can_resume(const std::string& command) {
  return command == "sweep" || command == "gate-curve" || command == "compound" ||
         command == "pretrain" || command == "all" || study::is_about_routing(command) ||
         study::is_finetuning(command) || study::is_from_scratch(command);
}

int fail(const std::string& message) {
  std::cerr << "study: " << message << '\n';
  return 1;
}

// A path that is long may be what is wrong with it.
std::string file_message(const std::filesystem::filesystem_error& error) {
  const std::string path = wanamaker::detail::shortened(error.path1().string());
  return one_line(wanamaker::detail::file_problem(error.code().value(), path, "cannot use this",
                                                  "a file or folder that is there"));
}

std::string memory_message() {
  return wanamaker::one_line(
      {.id = "backend/out-of-memory",
       .where = study::last_stage(),
       .what = "out of memory",
       .mend = "use fewer tokens (--fit-tokens, --report-tokens), a shorter --window, "
               "a smaller --batch, fewer --threads or a smaller model"});
}

// An allocation that failed says little without what it was for.
std::string message_of(const wanamaker::Error& error) {
  const std::string stage = study::last_stage();
  const bool is_about_memory = error.id() == "backend/out-of-memory" && !stage.empty();
  return (is_about_memory ? stage + ": " : "") + error.what();
}

// Parses and runs; what went wrong becomes one line and the exit code.
int run_safely(int argc, char** argv) {
  study::Options options;
  try {
    if (const std::optional<int> code = study::parse_command_line(argc, argv, options))
      return *code;
    study::catch_interrupts();
    return run(options);
  } catch (const wanamaker::Cancelled& stop) {
    std::cerr << "study: " << (can_resume(options.command) ? stop.what() : "interrupted") << '\n';
    return 130;
  } catch (const std::bad_alloc&) {
    return fail(memory_message());
  } catch (const wanamaker::Error& error) {
    return fail(message_of(error));
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(file_message(error));
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_safely(argc, argv);
  } catch (const std::bad_alloc&) {  // not even enough to say what for
    std::fputs("study: out of memory; use fewer --threads or free some memory\n", stderr);
    return 1;
  }
}
