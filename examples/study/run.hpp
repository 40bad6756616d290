// One command on one model: what it works on, and how its results are kept.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "checkpoint.hpp"
#include "console.hpp"
#include "engine.hpp"
#include "inputs.hpp"
#include "options.hpp"
#include "routing.hpp"
#include "wanamaker/io/json_writing.hpp"

namespace study {

/// Everything that a command needs for one model.
struct Run {
  const Options& options;
  wanamaker::ExecutorRef executor;
  ProgressLine& progress;
  std::filesystem::path folder;
  std::unique_ptr<Engine> engine;          ///< of the commands on costs, and of `all` at first
  std::unique_ptr<RoutingEngine> routing;  ///< of those on the routing decision, and of `all` then
  Texts texts;
  wanamaker::WindowRule rule;
  wanamaker::Protocol protocol;
  std::filesystem::path out;

  /// The engine that there is.
  const LoadedModel& model() const {
    if (engine) return *engine;
    return *routing;
  }
};

/// Calls f(run) for each model; results of several models lie in folders of their own.
void for_each_model(const Options& options, const std::function<void(Run&)>& f);

/// Throws where the texts' tokens are not the model's.
void check_tokens(const Texts& texts, const Run& run);

/// False for a published procedure, which reads its rows itself, and for what writes with nothing
/// fitted.
bool needs_texts(const Options& options);

wanamaker::SweepOptions sweep_options(const Options& options);

/// True for probe, transfer, clusters, features, marginal and forensics.
bool is_about_routing(const std::string& command);

/// The same splits for every experiment, whether or not it needs all of them.
wanamaker::Splits splits_of(const Run& run);

/// What an experiment on layers is given.
LayerTask layer_task(const Run& run);

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// COMMAND.json, COMMAND.csv and COMMAND.times.json, and COMMAND.svg where there is a picture. Then
/// the parts that were kept are no longer needed; `all` keeps them until everything is done, so
/// that it takes up what was finished before an interruption.
void write_results(const Run& run, const std::string& command, const wanamaker::OrderedJson& result,
                   const std::string& csv, const Stopwatch& watch, const std::string& svg = "");

/// COMMAND.times.json alone; `more`: keys beside seconds and threads.
void write_times(const std::filesystem::path& out, const std::string& command,
                 const Options& options, const Stopwatch& watch,
                 const wanamaker::OrderedJson& more = wanamaker::OrderedJson::object());

/// Everything that stored parts depend on; the layers that are asked for are among it only where
/// one part depends on another.
std::string settings_hash(const Run& run, const std::string& command);

std::filesystem::path state_file(const std::filesystem::path& out, const std::string& command);

/// Of everything that `all` runs.
void remove_states(const std::filesystem::path& out);

/// run_with(state), whose parts are kept in OUT/COMMAND.state.json until write_results.
template <class RunWith>
auto resumable(const Run& run, const std::string& command, RunWith&& run_with) {
  RunState state(state_file(run.out, command), settings_hash(run, command), run.options.resume);
  return run_with(state);
}

}  // namespace study
