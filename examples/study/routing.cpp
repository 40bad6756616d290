#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "run.hpp"
#include "wanamaker/core/error.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/report/forensics_pages.hpp"
#include "wanamaker/report/marginal_map_svg.hpp"
#include "wanamaker/report/position_json.hpp"
#include "wanamaker/report/result_json.hpp"
#include "wanamaker/report/routing_findings.hpp"
#include "wanamaker/report/routing_pictures.hpp"
#include "wanamaker/report/routing_tables.hpp"
#include "wanamaker/text/tokenizer.hpp"

namespace study {

using wanamaker::Index;

namespace {

// What is printed of a result.
struct Shown {
  std::string headline;
  std::string table;
  std::string finding;
};

// Spellings of the vocabulary by id; none where all texts are ready ids.
std::vector<std::string> spellings_of(const Run& run) {
  std::vector<std::string> spellings;
  if (run.texts.tokenizer_size == 0) return spellings;
  const auto tokenizer = wanamaker::Tokenizer::of_model(run.folder);
  for (Index id = 0; id < run.model().config().vocabulary; ++id) {
    const auto token = static_cast<wanamaker::TokenId>(id);
    spellings.emplace_back(tokenizer.has_token(token) ? tokenizer.token_bytes(token) : "");
  }
  return spellings;
}

wanamaker::DocumentBootstrapOptions bootstrap_of(const Options& options) {
  return {.resamples = options.routing.resamples, .seed = options.seed};
}

// Splits within the documents of one text, numbered as in the corpus of all.
wanamaker::Splits splits_within(const Run& run, const TextRange& range) {
  const auto all = split_candidates(run.texts.corpus);
  const std::vector<wanamaker::SplitCandidate> own(all.begin() + range.first,
                                                   all.begin() + range.end);
  wanamaker::Splits splits = wanamaker::make_splits(own, run.options.tokens, run.options.seed);
  const auto shift = [&range](std::vector<Index>& documents) {
    for (Index& document : documents) document += range.first;
  };
  shift(splits.train.documents);
  shift(splits.fit.documents);
  shift(splits.gate.documents);
  shift(splits.select.documents);
  shift(splits.report.documents);
  return splits;
}

// One part for each text. `all`, which was asked for more than this, takes them as one where some
// text has too few documents to be dealt.
std::vector<CorpusPart> corpus_parts(const Run& run) {
  const std::vector<TextRange> ranges = text_ranges(run.options, run.texts.corpus);
  if (ranges.size() < 2) return {{ranges.empty() ? "text" : ranges[0].name, splits_of(run)}};
  try {
    std::vector<CorpusPart> parts;
    for (const TextRange& range : ranges) parts.push_back({range.name, splits_within(run, range)});
    return parts;
  } catch (const wanamaker::ProtocolError&) {
    if (run.options.command != "all") throw;
    return {{"all texts", splits_of(run)}};
  }
}

Shown probe_of_run(Run& run) {
  const Stopwatch watch;
  const LayerTask task = layer_task(run);
  const wanamaker::ProbeOptions options{.positions = run.options.routing.probe_positions,
                                        .bootstrap = bootstrap_of(run.options)};
  const wanamaker::ProbeResult result = resumable(run, "probe", [&](RunState& state) {
    return run.routing->probe(task, options, state.for_probe());
  });
  write_results(run, "probe", wanamaker::json_of(result), wanamaker::probe_csv(result).csv(), watch,
                wanamaker::probe_svg(result));
  return {wanamaker::probe_headline(result), wanamaker::probe_table(result).aligned(),
          wanamaker::probe_finding(result)};
}

Shown transfer_of_run(Run& run) {
  const Stopwatch watch;
  const LayerTask task = layer_task(run);
  const wanamaker::TransferOptions options{.lists = {.least_count = run.options.routing.least_count,
                                                     .intervals = bootstrap_of(run.options)}};
  const wanamaker::TransferResult result = resumable(run, "transfer", [&](RunState& state) {
    return run.routing->transfer(task, corpus_parts(run), options, state.for_transfer());
  });
  write_results(run, "transfer", wanamaker::json_of(result), wanamaker::transfer_csv(result).csv(),
                watch, wanamaker::transfer_svg(result));
  return {wanamaker::transfer_headline(result), wanamaker::transfer_table(result).aligned(),
          wanamaker::transfer_finding(result)};
}

Shown clusters_of_run(Run& run) {
  const Stopwatch watch;
  const LayerTask task = layer_task(run);
  const RoutingFlags& flags = run.options.routing;
  const wanamaker::ClustersOptions options{.clusters = flags.clusters,
                                           .components = flags.components};
  const wanamaker::ClustersResult result = resumable(run, "clusters", [&](RunState& state) {
    return run.routing->clusters(task, options, state.for_clusters());
  });
  write_results(run, "clusters", wanamaker::json_of(result),
                wanamaker::clusters_csv(result, spellings_of(run)).csv(), watch,
                wanamaker::clusters_svg(result));
  return {wanamaker::clusters_headline(result), wanamaker::clusters_table(result).aligned(),
          wanamaker::clusters_finding(result)};
}

Shown features_of_run(Run& run) {
  const Stopwatch watch;
  const LayerTask task = layer_task(run);
  const RoutingFlags& flags = run.options.routing;
  wanamaker::FeaturesOptions options{.spellings = spellings_of(run),
                                     .bootstrap = bootstrap_of(run.options)};
  options.folds = std::min(flags.folds, static_cast<Index>(task.splits.report.documents.size()));
  options.trees.rounds = flags.rounds;
  const wanamaker::FeaturesResult result = resumable(run, "features", [&](RunState& state) {
    return run.routing->features(task, options, state.for_features());
  });
  write_results(run, "features", wanamaker::json_of(result), wanamaker::features_csv(result).csv(),
                watch, wanamaker::features_svg(result));
  return {wanamaker::features_headline(result), wanamaker::features_table(result).aligned(),
          wanamaker::features_finding(result)};
}

// Costs that a sweep has measured already.
wanamaker::SweepCheckpoint layers_of(const wanamaker::SweepResult& sweep) {
  return {[&sweep](Index layer) -> std::optional<wanamaker::LayerResult> {
            for (const wanamaker::LayerResult& l : sweep.layers) {
              if (l.layer == layer) return l;
            }
            return std::nullopt;
          },
          {}};
}

Shown marginal_of_run(Run& run, const wanamaker::SweepResult* sweep) {
  const Stopwatch watch;
  const LayerTask task = layer_task(run);
  const RoutingFlags& flags = run.options.routing;
  const wanamaker::MarginalOptions options{.exact_positions = flags.exact_positions,
                                           .integrated_steps = flags.path_steps,
                                           .map_positions = flags.map_positions,
                                           .least_count = flags.least_count};
  const wanamaker::MarginalResult result = resumable(run, "marginal", [&](RunState& state) {
    return run.routing->marginal(
        task, options,
        {sweep == nullptr ? state.for_sweep() : layers_of(*sweep), state.for_gates_of_delta()});
  });
  const std::vector<std::string> spellings = spellings_of(run);
  if (options.map_positions > 0) {
    wanamaker::write_atomically(run.out / "marginal-map.svg",
                                wanamaker::marginal_map_svg(result, spellings));
  }
  write_results(run, "marginal", wanamaker::json_of(result),
                wanamaker::marginal_csv(result, spellings).csv(), watch,
                wanamaker::marginal_svg(result));
  return {wanamaker::marginal_headline(result), wanamaker::marginal_table(result).aligned(),
          wanamaker::marginal_finding(result)};
}

// Colours where people look on, unless they asked for none (no-color.org).
bool shows_colours() {
  const char* refused = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (refused == nullptr || *refused == '\0');
}

std::string forensics_finding(const Run& run, const wanamaker::ForensicsResult& result,
                              const std::vector<std::string>& spellings) {
  const std::string page = (run.out / "forensics.html").string();
  if (run.options.command == "all") return "texts to read are in " + page + ".\n";
  const bool colours = shows_colours();
  std::string text =
      colours ? "\nUnderlined: to the linear map. Orange: it costs; blue: it helps.\n"
              : "\n[in brackets]: left to the MLP. + where the map costs most, − where it helps.\n";
  for (const wanamaker::ForensicsLayer& layer : result.layers) {
    text += wanamaker::forensics_text(result, layer, spellings, colours);
  }
  return text + "\nThe page with all passages: " + page + "\n";
}

Shown forensics_of_run(Run& run) {
  const Stopwatch watch;
  const LayerTask task = layer_task(run);
  const RoutingFlags& flags = run.options.routing;
  const std::vector<std::string> spellings = spellings_of(run);
  const wanamaker::ForensicsOptions options{.passages = flags.passages,
                                            .positions = flags.positions,
                                            .least_count = flags.least_count,
                                            .spellings = spellings};
  const wanamaker::ForensicsResult result = resumable(run, "forensics", [&](RunState& state) {
    return run.routing->forensics(task, options, state.for_forensics());
  });
  wanamaker::write_atomically(run.out / "forensics.html",
                              wanamaker::forensics_html(result, spellings));
  write_results(run, "forensics", wanamaker::json_of(result),
                wanamaker::forensics_csv(result, spellings).csv(), watch);
  return {wanamaker::forensics_headline(result),
          wanamaker::forensics_table(result, spellings).aligned(),
          forensics_finding(run, result, spellings)};
}

Shown routing_of_run(Run& run, const std::string& command, const wanamaker::SweepResult* sweep) {
  if (command == "probe") return probe_of_run(run);
  if (command == "transfer") return transfer_of_run(run);
  if (command == "clusters") return clusters_of_run(run);
  if (command == "features") return features_of_run(run);
  if (command == "forensics") return forensics_of_run(run);
  return marginal_of_run(run, sweep);
}

// The experiment's sentences; why there are none where the texts do not allow it.
void print_finding(Run& run, const std::string& command, const wanamaker::SweepResult* sweep) {
  std::string finding;
  try {
    finding = routing_of_run(run, command, sweep).finding;
  } catch (const wanamaker::ProtocolError& error) {
    finding = std::string("left out: ") + error.what() + "\n";
  } catch (const wanamaker::DataError& error) {
    finding = std::string("left out: ") + error.what() + "\n";
  }
  run.progress.clear();
  std::cout << command << ": " << finding;
}

}  // namespace

void run_routing(const Options& options) {
  for_each_model(options, [&](Run& run) {
    const Shown shown = routing_of_run(run, options.command, nullptr);
    run.progress.clear();
    std::cout << "\n" << shown.headline << "\n" << shown.table << shown.finding;
  });
}

void measure_routing(Run& run, const wanamaker::SweepResult& sweep) {
  run.engine.reset();  // one copy of the model at a time
  run.routing = make_routing_engine(run.folder, run.executor);
  const bool same_costs =
      run.options.ladder != "surrogates" && run.protocol.arithmetic == run.routing->arithmetic();
  run.protocol.arithmetic = run.routing->arithmetic();
  std::cout << "\nWhere the decision lives:\n";
  for (const char* command :
       {"probe", "transfer", "clusters", "features", "marginal", "forensics"}) {
    print_finding(run, command, same_costs ? &sweep : nullptr);
  }
}

}  // namespace study
