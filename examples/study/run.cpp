#include "run.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "commands.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/report/result_json.hpp"
#include "wanamaker/report/text_table.hpp"
#include "writing.hpp"

namespace study {

namespace fs = std::filesystem;
using wanamaker::Index;

Index thread_count(const Options& options) {
  if (options.threads > 0) return options.threads;
  return std::max<Index>(1, static_cast<Index>(std::thread::hardware_concurrency()));
}

EngineMaker engine_maker(const Options& options) {
  const std::string fitting = has_blas() || !engines().contains("eigen") ? "blas" : "eigen";
  const auto found = engines().find(options.backend.empty() ? fitting : options.backend);
  if (found != engines().end()) return found->second;
  std::string names;
  for (const auto& [name, maker] : engines()) names += (names.empty() ? "" : ", ") + name;
  throw wanamaker::BackendError({.id = "backend/unknown",
                                 .where = "--backend",
                                 .what = "no such backend in this build",
                                 .expected = names,
                                 .found = options.backend,
                                 .mend = options.backend == "cublas"
                                             ? "build study with CUDA and cublas among "
                                               "WANAMAKER_STUDY_BACKENDS, or choose one of these"
                                             : "choose one of these"});
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

wanamaker::FolderLock lock_folder(const fs::path& folder) {
  make_folder(folder);
  return wanamaker::FolderLock(folder);
}

std::optional<wanamaker::FolderLock> lock_part(const Options& options, const fs::path& folder) {
  if (folder == options.out) return std::nullopt;
  return lock_folder(folder);
}

bool needs_texts(const Options& options) {
  if (options.command != "generate") {
    return options.protocol == "rigorous" || options.command != "sweep";
  }
  return replacement_of(options).is_fitted();
}

void check_tokens(const Texts& texts, const Run& run) {
  const wanamaker::Index vocabulary = run.model().config().vocabulary;
  wanamaker::check_tokenizer_size(texts.tokenizer_size, vocabulary, run.folder.string());
  wanamaker::check_ids(texts.corpus, vocabulary);
}

void for_each_model(const Options& options, const std::function<void(Run&)>& f) {
  wanamaker::ThreadPool pool(thread_count(options));
  const EngineMaker make_engine = engine_maker(options);
  const std::vector<fs::path> folders = model_folders(options);
  ProgressLine progress(options.quiet);
  progress.set_title(options.command);
  const wanamaker::Progress report = progress.callback();
  report("reading texts", 0, 1);
  wanamaker::Corpus corpus = needs_texts(options) ? read_documents(options) : wanamaker::Corpus{};
  for (const fs::path& folder : folders) {
    const fs::path out = folders.size() > 1 ? options.out / folder.filename() : options.out;
    const std::optional<wanamaker::FolderLock> lock = lock_part(options, out);
    progress.set_title(folder.filename().string());
    report("loading the model", 0, 1);
    Run run{options, pool, progress, folder, {}, {}, {}, {}, {}, out};
    if (is_about_routing(options.command)) {
      run.routing = make_routing_engine(folder, pool);
    } else {
      run.engine = make_engine(folder, pool);
    }
    run.rule = window_rule(options, run.model().config());
    if (needs_texts(options)) {
      const bool are_passages = options.format == "lambada" && options.command == "perplexity";
      run.texts = are_passages ? encode_passages(corpus, folder, run.rule, pool, report)
                               : encode_documents(corpus, folder, pool, report);
      if (&folder == &folders.back()) corpus = {};  // the ids are enough from here on
      check_tokens(run.texts, run);
    }
    run.protocol = make_protocol(options, run.rule, run.texts, run.model().arithmetic());
    f(run);
  }
}

void write_results(const Run& run, const std::string& command, const wanamaker::OrderedJson& result,
                   const std::string& csv, const Stopwatch& watch, const std::string& svg) {
  wanamaker::write_json(run.out / (command + ".json"), result);
  wanamaker::write_atomically(run.out / (command + ".csv"), csv);
  if (!svg.empty()) wanamaker::write_atomically(run.out / (command + ".svg"), svg);
  write_times(run.out, command, run.options, watch);
  std::error_code ignored;
  if (run.options.command != "all") fs::remove(state_file(run.out, command), ignored);
}

void write_times(const fs::path& out, const std::string& command, const Options& options,
                 const Stopwatch& watch, const wanamaker::OrderedJson& more) {
  wanamaker::OrderedJson times{{"schema", "wanamaker/1"},
                               {"command", command},
                               {"seconds", watch.seconds()},
                               {"threads", thread_count(options)}};
  times.update(more);
  wanamaker::write_json(out / (command + ".times.json"), times);
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
  const RoutingFlags& r = o.routing;
  if (is_about_routing(command)) {
    for (const Index n :
         {r.resamples, r.clusters, r.components, r.folds, r.rounds, r.least_count}) {
      hash.update_number(static_cast<std::uint64_t>(n));
    }
  }
  if (command == "compound") hash.update_field(o.layers);
  add_model_files(hash, run.folder);
  return hash.hex();
}

bool is_about_routing(const std::string& command) {
  return command == "probe" || command == "transfer" || command == "clusters" ||
         command == "features" || command == "marginal" || command == "forensics";
}

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
  for (const char* command : {"sweep", "gate-curve", "compound", "probe", "transfer", "clusters",
                              "features", "marginal", "forensics"}) {
    fs::remove(state_file(out, command), ignored);
  }
}

}  // namespace study
