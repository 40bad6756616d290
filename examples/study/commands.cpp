#include "commands.hpp"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <numeric>
#include <sstream>
#include <thread>

#include "checkpoint.hpp"
#include "console.hpp"
#include "engine.hpp"
#include "inputs.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/report/result_json.hpp"
#include "wanamaker/report/result_tables.hpp"
#include "wanamaker/report/side_by_side.hpp"
#include "wanamaker/report/summary.hpp"
#include "wanamaker/study/paper_protocol.hpp"
#include "writing.hpp"

namespace study {

namespace fs = std::filesystem;
using wanamaker::Index;

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

namespace {

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

// A published procedure reads its rows itself; what writes needs texts only to fit what stands in.
bool needs_texts(const Options& options) {
  if (options.command != "generate") {
    return options.protocol == "rigorous" || options.command != "sweep";
  }
  return replacement_of(options).is_fitted();
}

// Throws where the texts' tokens are not the model's.
void check_tokens(const Texts& texts, const Run& run) {
  const wanamaker::Index vocabulary = run.engine->config().vocabulary;
  wanamaker::check_tokenizer_size(texts.tokenizer_size, vocabulary, run.folder.string());
  wanamaker::check_ids(texts.corpus, vocabulary);
}

// Calls f(run) for each model; results of several models lie in folders of their own.
void for_each_model(const Options& options, const std::function<void(Run&)>& f) {
  wanamaker::ThreadPool pool(thread_count(options));
  const EngineMaker make_engine = engine_maker(options);
  const std::vector<fs::path> folders = model_folders(options);
  wanamaker::Corpus corpus = needs_texts(options) ? read_documents(options) : wanamaker::Corpus{};
  ProgressLine progress(options.quiet);
  for (const fs::path& folder : folders) {
    const fs::path out = folders.size() > 1 ? options.out / folder.filename() : options.out;
    make_folder(out);
    progress.set_title(folder.filename().string());
    Run run{options, pool, progress, folder, make_engine(folder, pool), {}, {}, {}, out};
    run.rule = window_rule(options, run.engine->config());
    if (needs_texts(options)) {
      const bool are_passages = options.format == "lambada" && options.command == "perplexity";
      run.texts = are_passages
                      ? encode_passages(corpus, folder, run.rule, pool, progress.callback())
                      : encode_documents(corpus, folder, pool, progress.callback());
      if (&folder == &folders.back()) corpus = {};  // the ids are enough from here on
      check_tokens(run.texts, run);
    }
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

wanamaker::PerplexityResult perplexity_of_run(Run& run, const wanamaker::ReportSplit& report) {
  const Stopwatch watch;
  const wanamaker::EvaluationSet set =
      wanamaker::make_evaluation_set(run.texts.corpus, report.documents, run.rule);
  wanamaker::Protocol protocol = run.protocol;
  protocol.token_ids_hash = wanamaker::token_ids_hash(set);
  const Texts& texts = run.texts;
  const wanamaker::PerplexityResult result =
      texts.last_word_tokens.empty()
          ? run.engine->perplexity(texts.corpus, set, protocol, run.progress.callback())
          : run.engine->last_words(texts.corpus, texts.last_word_tokens, set, protocol,
                                   run.progress.callback());
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
  if (options.gate_flops >= 0) sweep.gate_flops = options.gate_flops;
  sweep.intervals.resamples = options.resamples;
  sweep.intervals.seed = options.seed;
  sweep.seed = options.seed;
  return sweep;
}

// What a run read its model from: small files by their contents, weights by size and time.
void add_model_files(wanamaker::Sha256& hash, const fs::path& model) {
  constexpr std::uintmax_t small = 1 << 20;
  std::vector<fs::path> files;
  if (!fs::is_directory(model)) files.push_back(model);  // a GGUF file
  if (files.empty()) {
    for (const auto& entry : fs::directory_iterator(model)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    hash.update_field(file.filename().string()).update_number(fs::file_size(file));
    if (fs::file_size(file) <= small) {
      std::ifstream bytes(file, std::ios::binary);
      std::ostringstream content;
      content << bytes.rdbuf();
      hash.update_field(content.str());
    } else {
      hash.update_number(
          static_cast<std::uint64_t>(fs::last_write_time(file).time_since_epoch().count()));
    }
  }
}

// Everything that stored parts depend on; the layers that are asked for are among it only where
// one part depends on another.
std::string settings_hash(const Run& run, const std::string& command) {
  wanamaker::Sha256 hash;
  hash.update_field(command).update_field(wanamaker::protocol_hash(run.protocol));
  const Options& o = run.options;
  for (const Index n :
       {o.tokens.fit, o.tokens.gate, o.tokens.select, o.tokens.report, o.resamples}) {
    hash.update_number(static_cast<std::uint64_t>(n));
  }
  const auto add_numbers = [&hash](const std::vector<double>& values) {
    hash.update_number(values.size());
    for (const double x : values) hash.update_field(wanamaker::exact_text(x));
  };
  add_numbers(o.rhos);
  add_numbers(o.fractions);
  add_numbers({o.gate_fraction, o.gate_flops, o.max_loss, o.flop_budget});
  for (const Index r : o.ranks) hash.update_field(std::to_string(r));
  for (const std::string& gate : o.gates) hash.update_field(gate);
  hash.update_field(o.ladder).update_field(o.greedy);
  if (command == "compound") hash.update_field(o.layers);
  add_model_files(hash, run.folder);
  return hash.hex();
}

// The same splits for every experiment, whether or not it needs all of them.
wanamaker::Splits splits_of(const Run& run) {
  return wanamaker::make_splits(split_candidates(run.texts.corpus), run.options.tokens,
                                run.options.seed);
}

LayerTask layer_task(const Run& run) {
  return {run.texts.corpus,
          needs_texts(run.options) ? splits_of(run) : wanamaker::Splits{},
          run.rule,
          run.protocol,
          sweep_options(run.options),
          run.progress.callback()};
}

fs::path state_file(const fs::path& out, const std::string& command) {
  return out / (command + ".state.json");
}

void remove_states(const fs::path& out) {
  std::error_code ignored;
  for (const char* command : {"sweep", "gate-curve", "compound"}) {
    fs::remove(state_file(out, command), ignored);
  }
}

// run_with(state), whose parts are kept in OUT/COMMAND.state.json until it is done; `all` keeps
// them until everything is, so that it takes up what was finished before an interruption.
template <class RunWith>
auto resumable(const Run& run, const std::string& command, RunWith&& run_with) {
  RunState state(state_file(run.out, command), settings_hash(run, command), run.options.resume);
  auto result = run_with(state);
  if (run.options.command != "all") state.finish();
  return result;
}

wanamaker::SweepResult paper_sweep_of_run(Run& run) {
  const bool stream = run.options.protocol == "paper-stream";
  const auto read = stream ? read_stream : read_rows_as_documents;
  const Texts rows = read(run.options, run.folder, run.executor, run.progress.callback());
  const Index positions = run.engine->config().positions;
  const wanamaker::PaperFigures figures;
  check_tokens(rows, run);
  wanamaker::Protocol& protocol = run.protocol;
  protocol = make_protocol(run.options, run.rule, rows, run.engine->arithmetic());
  protocol.join_rule = stream ? "rows that are not blank joined by a blank line, in chunks"
                              : "each row on its own, blank rows skipped";
  protocol.window = protocol.stride = protocol.truncation = std::min(figures.truncation, positions);
  protocol.faults = wanamaker::paper_faults(stream);
  const wanamaker::PaperSets sets = stream ? wanamaker::paper_stream_sets(rows.corpus, positions)
                                           : wanamaker::paper_row_sets(rows.corpus, positions);
  return resumable(run, "sweep", [&](RunState& state) {
    return run.engine->paper_sweep(sets, protocol, sweep_options(run.options),
                                   run.progress.callback(), state.for_sweep());
  });
}

wanamaker::SweepResult rigorous_sweep_of_run(Run& run) {
  const LayerTask task = layer_task(run);
  return resumable(run, "sweep",
                   [&](RunState& state) { return run.engine->sweep(task, state.for_sweep()); });
}

wanamaker::SweepResult sweep_of_run(Run& run) {
  const Stopwatch watch;
  const wanamaker::SweepResult result =
      run.options.protocol == "rigorous" ? rigorous_sweep_of_run(run) : paper_sweep_of_run(run);
  write_results(run, "sweep", wanamaker::json_of(result), wanamaker::sweep_csv(result).csv(),
                watch);
  return result;
}

wanamaker::GateCurveResult gate_curve_of_run(Run& run) {
  const Stopwatch watch;
  wanamaker::CurveOptions options{.max_loss_percent = run.options.max_loss};
  if (!run.options.fractions.empty()) options.fractions = run.options.fractions;
  options.gates = run.options.gates;
  const LayerTask task = layer_task(run);
  const wanamaker::GateCurveResult result = resumable(run, "gate-curve", [&](RunState& state) {
    return run.engine->gate_curve(task, options, state.for_gate_curve());
  });
  write_results(run, "gate-curve", wanamaker::json_of(result),
                wanamaker::gate_curve_csv(result).csv(), watch);
  return result;
}

wanamaker::CompoundResult compound_of_run(Run& run) {
  const Stopwatch watch;
  const wanamaker::CompoundOptions options{.flop_budget = run.options.flop_budget,
                                           .max_loss_percent = run.options.max_loss,
                                           .greedy_linear = run.options.greedy != "none",
                                           .greedy_gate = run.options.greedy == "gate"};
  const LayerTask task = layer_task(run);
  const wanamaker::CompoundResult result = resumable(run, "compound", [&](RunState& state) {
    return run.engine->compound(task, options, state.for_compound());
  });
  write_results(run, "compound", wanamaker::json_of(result), wanamaker::compound_csv(result).csv(),
                watch);
  return result;
}

// Writes on from the prompt, onto the terminal where one text is written.
wanamaker::GenerateResult generate_of_run(Run& run, const std::string& prompt) {
  const Stopwatch watch;
  const auto tokenizer = wanamaker::Tokenizer::of_model(run.folder);
  const wanamaker::ModelConfig& config = run.engine->config();
  const std::vector<wanamaker::TokenId> ids = prompt_ids(run.options, prompt, tokenizer, config);
  const wanamaker::GenerateOptions options = generate_options(run.options, tokenizer, config);
  wanamaker::check_generation(config, ids, options.generation);
  run.protocol.tokenizer_hash = tokenizer.content_hash();
  std::cout << wanamaker::terminal_text(prompt) << (options.beside ? "\n\n" : "") << std::flush;
  TextWriter writer(tokenizer, options.generation.ends, !options.beside);
  wanamaker::GenerateResult result = run.engine->generate(
      layer_task(run), ids, options, [&](const std::string& text, wanamaker::TokenId id) {
        run.progress.clear();
        writer.add(text, id);
      });
  for (wanamaker::WrittenText& text : result.texts) text.text = writer.finish(text.name);
  if (!options.beside) std::cout << "\n";
  result.prompt_text = prompt;
  write_results(run, "generate", wanamaker::json_of(result), wanamaker::generate_csv(result).csv(),
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
  print_token_ids(options, model_folders(options).front(), pool, progress.callback());
}

void run_perplexity(const Options& options) {
  std::vector<wanamaker::PerplexityResult> results;
  for_each_model(options, [&](Run& run) {
    results.push_back(perplexity_of_run(run, measured_documents(run)));
  });
  std::cout << wanamaker::perplexity_table(results).aligned();
}

void run_sweep(const Options& options) {
  for_each_model(options, [&](Run& run) { print_sweep(sweep_of_run(run)); });
}

void run_gate_curve(const Options& options) {
  for_each_model(options, [&](Run& run) {
    const wanamaker::GateCurveResult result = gate_curve_of_run(run);
    std::cout << "\n"
              << wanamaker::gate_curve_headline(result) << "\n"
              << wanamaker::gate_curve_table(result).aligned();
  });
}

void run_compound(const Options& options) {
  for_each_model(options, [&](Run& run) {
    const wanamaker::CompoundResult result = compound_of_run(run);
    std::cout << "\n"
              << wanamaker::compound_headline(result) << "\n"
              << wanamaker::compound_table(result).aligned() << wanamaker::compound_choice(result)
              << "\n";
  });
}

void run_generate(const Options& options) {
  const std::string prompt = read_prompt(options);
  const bool several = model_folders(options).size() > 1;
  for_each_model(options, [&](Run& run) {
    if (several) std::cout << "\n" << run.folder.filename().string() << ":\n\n";
    print_generate(generate_of_run(run, prompt));
  });
}

void run_all(const Options& options) {
  std::vector<wanamaker::PerplexityResult> perplexities;
  std::vector<fs::path> outs;
  const bool is_rigorous = options.protocol == "rigorous";
  for_each_model(options, [&](Run& run) {
    const wanamaker::ReportSplit report =
        is_rigorous ? splits_of(run).report : measured_documents(run);
    perplexities.push_back(perplexity_of_run(run, report));
    outs.push_back(run.out);
    const wanamaker::SweepResult sweep = sweep_of_run(run);
    if (!is_rigorous) return print_sweep(sweep);
    const wanamaker::GateCurveResult curves = gate_curve_of_run(run);
    std::cout << "\n" << wanamaker::summary_text(sweep, curves, compound_of_run(run));
  });
  for (const fs::path& out : outs) remove_states(out);
  std::cout << "\n" << wanamaker::perplexity_table(perplexities).aligned();
  if (!is_rigorous) std::cout << "gate-curve and compound have no published procedure.\n";
  std::cout << "Everything measured is in " << options.out.string() << "/.\n";
  write_report(options.out);
}

}  // namespace study
