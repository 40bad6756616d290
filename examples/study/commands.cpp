#include "commands.hpp"

#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <numeric>
#include <thread>

#include "checkpoint.hpp"
#include "console.hpp"
#include "engine.hpp"
#include "inputs.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/report/result_json.hpp"
#include "wanamaker/report/result_tables.hpp"

namespace study {

namespace fs = std::filesystem;
using wanamaker::Index;

namespace {

Index thread_count(const Options& options) {
  if (options.threads > 0) return options.threads;
  return std::max<Index>(1, static_cast<Index>(std::thread::hardware_concurrency()));
}

EngineMaker engine_maker(const Options& options) {
  if (options.backend == "blas") return make_blas_engine;
  if (options.backend == "eigen") return make_eigen_engine;
  if (options.backend == "reference") return make_reference_engine;
  if (options.backend.empty()) return has_blas() ? make_blas_engine : make_eigen_engine;
  throw wanamaker::BackendError({.id = "backend/unknown",
                                 .where = "--backend",
                                 .what = "no such backend in this build",
                                 .expected = "eigen, blas or reference",
                                 .found = options.backend,
                                 .mend = "choose one of these"});
}

// Everything that a command needs for one model.
struct Run {
  const Options& options;
  wanamaker::ExecutorRef executor;
  ProgressLine& progress;
  fs::path folder;
  std::unique_ptr<Engine> engine;
  Texts texts;
  wanamaker::WindowRule rule;
  wanamaker::Protocol protocol;
  fs::path out;
};

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return;
  throw wanamaker::FileError({.id = "file/no-output-folder",
                              .where = folder.string(),
                              .what = "cannot make the output folder",
                              .expected = "a folder that can be written",
                              .found = error.message(),
                              .mend = "choose another --out"});
}

// Calls f(run) for each model; results of several models lie in folders of their own.
void for_each_model(const Options& options, const std::function<void(Run&)>& f) {
  wanamaker::ThreadPool pool(thread_count(options));
  const EngineMaker make_engine = engine_maker(options);
  const std::vector<fs::path> folders = model_folders(options);
  ProgressLine progress(options.quiet);
  for (const fs::path& folder : folders) {
    const fs::path out = folders.size() > 1 ? options.out / folder.filename() : options.out;
    make_folder(out);
    progress.set_title(folder.filename().string());
    Run run{options, pool, progress, folder, make_engine(folder, pool), {}, {}, {}, out};
    run.rule = window_rule(options, run.engine->config());
    run.texts = read_texts(options, folder, pool, progress.callback());
    wanamaker::check_ids(run.texts.corpus, run.engine->config().vocabulary);
    run.protocol = make_protocol(options, run.rule, run.texts, run.engine->arithmetic());
    f(run);
  }
}

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void write_results(const Run& run, const std::string& command, const wanamaker::OrderedJson& result,
                   const std::string& csv, const Stopwatch& watch) {
  wanamaker::write_json(run.out / (command + ".json"), result);
  wanamaker::write_atomically(run.out / (command + ".csv"), csv);
  wanamaker::write_json(run.out / (command + ".times.json"),
                        {{"schema", "wanamaker/1"},
                         {"command", command},
                         {"seconds", watch.seconds()},
                         {"threads", thread_count(run.options)}});
}

// As many documents as --report-tokens allows, chosen as the report split is.
wanamaker::ReportSplit measured_documents(const Run& run) {
  const auto candidates = split_candidates(run.texts.corpus);
  if (run.texts.corpus.token_count() > run.options.tokens.report) {
    try {
      return make_splits(candidates, {.report = run.options.tokens.report}, run.options.seed)
          .report;
    } catch (const wanamaker::ProtocolError&) {
      // One long document: it is measured whole.
    }
  }
  wanamaker::ReportSplit all;
  all.documents.resize(candidates.size());
  std::iota(all.documents.begin(), all.documents.end(), Index{0});
  return all;
}

wanamaker::PerplexityResult perplexity_of_run(Run& run) {
  const Stopwatch watch;
  const wanamaker::EvaluationSet set =
      wanamaker::make_evaluation_set(run.texts.corpus, measured_documents(run).documents, run.rule);
  run.protocol.token_ids_hash = wanamaker::token_ids_hash(set);
  const wanamaker::PerplexityResult result =
      run.engine->perplexity(run.texts.corpus, set, run.protocol, run.progress.callback());
  write_results(run, "perplexity", wanamaker::json_of(result),
                wanamaker::perplexity_csv(result).csv(), watch);
  return result;
}

wanamaker::SweepOptions sweep_options(const Options& options) {
  wanamaker::SweepOptions sweep;
  sweep.layers = parse_layers(options.layers);
  sweep.rhos = options.rhos;
  sweep.ranks = options.ranks;
  sweep.ladder = options.ladder == "full"    ? wanamaker::Ladder::full
                 : options.ladder == "quick" ? wanamaker::Ladder::quick
                                             : wanamaker::Ladder::surrogates;
  if (options.gate_fraction >= 0) sweep.gate_fraction = options.gate_fraction;
  sweep.intervals.resamples = options.resamples;
  sweep.intervals.seed = options.seed;
  sweep.seed = options.seed;
  return sweep;
}

// Everything that stored layers depend on; the layers that are asked for are not among it.
std::string settings_hash(const Run& run) {
  wanamaker::Sha256 hash;
  hash.update_field(wanamaker::protocol_hash(run.protocol));
  const Options& o = run.options;
  for (const Index n :
       {o.tokens.fit, o.tokens.gate, o.tokens.select, o.tokens.report, o.resamples}) {
    hash.update_number(static_cast<std::uint64_t>(n));
  }
  for (const double x : o.rhos) hash.update_field(wanamaker::exact_text(x));
  for (const Index r : o.ranks) hash.update_field(std::to_string(r));
  hash.update_field(o.ladder).update_field(wanamaker::exact_text(o.gate_fraction));
  for (const auto& entry : fs::directory_iterator(run.folder)) {
    if (!entry.is_regular_file()) continue;
    hash.update_field(entry.path().filename().string()).update_number(entry.file_size());
  }
  return hash.hex();
}

wanamaker::SweepResult paper_sweep_of_run(Run& run) {
  const bool stream = run.options.protocol == "paper-stream";
  const auto read = stream ? read_stream : read_rows_as_documents;
  const Texts rows = read(run.options, run.folder, run.executor, run.progress.callback());
  const Index positions = run.engine->config().positions;
  const wanamaker::PaperFigures figures;
  run.protocol.join_rule = stream ? "rows that are not blank joined by a blank line, in chunks"
                                  : "each row on its own, blank rows skipped";
  run.protocol.window = run.protocol.stride = run.protocol.truncation =
      std::min(figures.truncation, positions);
  run.protocol.corpus_hash = rows.corpus_hash;
  run.protocol.faults = wanamaker::paper_faults(stream);
  const wanamaker::PaperSets sets = stream ? wanamaker::paper_stream_sets(rows.corpus, positions)
                                           : wanamaker::paper_row_sets(rows.corpus, positions);
  return run.engine->paper_sweep(sets, run.protocol, sweep_options(run.options),
                                 run.progress.callback());
}

wanamaker::SweepResult rigorous_sweep_of_run(Run& run) {
  const wanamaker::SweepOptions sweep = sweep_options(run.options);
  wanamaker::SplitBudgets tokens = run.options.tokens;
  const bool has_gates = sweep.ladder != wanamaker::Ladder::surrogates;
  if (!has_gates) tokens.gate = 0;
  if (!has_gates && sweep.rhos.size() == 1) tokens.select = 0;
  const wanamaker::Splits splits =
      wanamaker::make_splits(split_candidates(run.texts.corpus), tokens, run.options.seed);
  SweepState state(run.out / "sweep.state.json", settings_hash(run), run.options.resume);
  wanamaker::SweepResult result =
      run.engine->sweep(run.texts.corpus, splits, run.rule, run.protocol, sweep,
                        run.progress.callback(), state.checkpoint());
  state.finish();
  return result;
}

wanamaker::SweepResult sweep_of_run(Run& run) {
  const Stopwatch watch;
  const wanamaker::SweepResult result =
      run.options.protocol == "rigorous" ? rigorous_sweep_of_run(run) : paper_sweep_of_run(run);
  write_results(run, "sweep", wanamaker::json_of(result), wanamaker::sweep_csv(result).csv(),
                watch);
  return result;
}

void print_sweep(const wanamaker::SweepResult& result) {
  std::cout << "\n"
            << wanamaker::sweep_headline(result) << "\n"
            << wanamaker::sweep_table(result).aligned();
  const wanamaker::TextTable gates = wanamaker::gate_table(result);
  if (!gates.empty()) std::cout << "\n" << gates.aligned();
}

}  // namespace

void run_tokenize(const Options& options) {
  wanamaker::ThreadPool pool(thread_count(options));
  ProgressLine progress(true);
  const Texts texts =
      read_texts(options, model_folders(options).front(), pool, progress.callback());
  for (const wanamaker::TokenizedDocument& document : texts.corpus.documents) {
    std::cout << wanamaker::OrderedJson{{"ids", document.ids}}.dump() << '\n';
  }
}

void run_perplexity(const Options& options) {
  std::vector<wanamaker::PerplexityResult> results;
  for_each_model(options, [&](Run& run) { results.push_back(perplexity_of_run(run)); });
  std::cout << wanamaker::perplexity_table(results).aligned();
}

void run_sweep(const Options& options) {
  for_each_model(options, [&](Run& run) { print_sweep(sweep_of_run(run)); });
}

void run_all(const Options& options) {
  std::vector<wanamaker::PerplexityResult> perplexities;
  for_each_model(options, [&](Run& run) {
    perplexities.push_back(perplexity_of_run(run));
    print_sweep(sweep_of_run(run));
  });
  std::cout << "\n"
            << wanamaker::perplexity_table(perplexities).aligned() << "\nResults are in "
            << options.out.string() << "/.\n";
}

}  // namespace study
