#include "commands.hpp"

#include <algorithm>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "console.hpp"
#include "run.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/report/result_json.hpp"
#include "wanamaker/report/result_tables.hpp"
#include "wanamaker/report/side_by_side.hpp"
#include "wanamaker/report/summary.hpp"
#include "wanamaker/study/paper_protocol.hpp"
#include "writing.hpp"

namespace study {

namespace fs = std::filesystem;
using wanamaker::Index;

namespace {

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

// Where --check-finite asks for it: a run whose losses are not finite says where that began.
void check_finite(Run& run, const wanamaker::EvaluationSet& set) {
  if (run.options.check_finite) run.engine->check_finite(set, run.progress.callback());
}

wanamaker::PerplexityResult perplexity_of_run(Run& run, const wanamaker::ReportSplit& report) {
  const Stopwatch watch;
  const wanamaker::EvaluationSet set =
      wanamaker::make_evaluation_set(run.texts.corpus, report.documents, run.rule);
  check_finite(run, set);
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
  check_finite(run, sets.evaluation);
  return resumable(run, "sweep", [&](RunState& state) {
    return run.engine->paper_sweep(sets, protocol, sweep_options(run.options),
                                   run.progress.callback(), state.for_sweep());
  });
}

wanamaker::SweepResult rigorous_sweep_of_run(Run& run) {
  const LayerTask task = layer_task(run);
  const std::vector<Index>& reported = task.splits.report.documents;
  check_finite(run, wanamaker::make_evaluation_set(run.texts.corpus, reported, run.rule));
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
    measure_routing(run, sweep);
  });
  for (const fs::path& out : outs) remove_states(out);
  std::cout << "\n" << wanamaker::perplexity_table(perplexities).aligned();
  if (!is_rigorous) std::cout << "The other experiments have no published procedure here.\n";
  std::cout << "Everything measured is in " << options.out.string() << "/.\n";
  write_report(options.out);
}

}  // namespace study
