// study: how much of a transformer's MLP nonlinearity is needed.
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include "commands.hpp"
#include "console.hpp"
#include "run.hpp"
#include "wanamaker/core/error.hpp"

namespace {

int run(const study::Options& options) {
  if (options.command == "tokenize") study::run_tokenize(options);
  if (options.command == "perplexity") study::run_perplexity(options);
  if (options.command == "sweep") study::run_sweep(options);
  if (options.command == "gate-curve") study::run_gate_curve(options);
  if (options.command == "compound") study::run_compound(options);
  if (options.command == "generate") study::run_generate(options);
  if (options.command == "pretrain") study::run_pretrain(options);
  if (study::is_from_scratch(options.command)) study::run_from_scratch(options);
  if (study::is_finetuning(options.command)) study::run_finetuning(options);
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

}  // namespace

int main(int argc, char** argv) {
  study::Options options;
  if (const std::optional<int> code = study::parse_command_line(argc, argv, options)) return *code;
  try {
    study::catch_interrupts();
    return run(options);
  } catch (const wanamaker::Cancelled& stop) {
    std::cerr << "study: " << (can_resume(options.command) ? stop.what() : "interrupted") << '\n';
    return 130;
  } catch (const std::bad_alloc&) {
    std::cerr << "study: out of memory; use fewer tokens or a smaller model\n";
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "study: " << error.what() << '\n';
    return 1;
  }
}
