#include <algorithm>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "from_scratch.hpp"
#include "inputs.hpp"
#include "pretraining.hpp"
#include "run.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/report/budget_report.hpp"

namespace study {

namespace fs = std::filesystem;
using wanamaker::Index;

namespace {

wanamaker::BudgetOptions budget_options(const Options& options,
                                        const wanamaker::Tokenizer& tokenizer) {
  const BudgetFlags& flags = options.budgets;
  wanamaker::BudgetOptions budget{.seeds = flags.seeds,
                                  .training = training_of(options, tokenizer),
                                  .routed = flags.routed,
                                  .tolerance_percent = flags.tolerance,
                                  .margin_percent = flags.margin,
                                  .rho = flags.rho};
  budget.intervals.resamples = options.resamples;
  budget.intervals.seed = options.seed;
  return budget;
}

wanamaker::NamedPlan own_arm(const std::string& text) {
  const std::size_t sign = text.find('=');
  if (sign != text.npos) return {text.substr(0, sign), text.substr(sign + 1)};
  throw wanamaker::DataError({.id = "training/own-arm",
                              .where = "--arm",
                              .what = "a model without a plan",
                              .expected = "NAME=PLAN",
                              .found = "'" + text + "'",
                              .mend = "write such as slim=ends:dense:?,middle:low-rank:16"});
}

// Those with names that were asked for, all where none were; then the user's own.
std::vector<wanamaker::NamedPlan> asked_plans(const BudgetFlags& flags,
                                              const wanamaker::ModelConfig& config) {
  std::vector<wanamaker::NamedPlan> plans;
  const std::set<std::string> asked(flags.named.begin(), flags.named.end());
  const bool only_own = asked.empty() && !flags.own.empty();
  for (wanamaker::NamedPlan& plan : wanamaker::usual_budget_plans(config)) {
    if (asked.count(plan.name) > 0 || (asked.empty() && !only_own)) plans.push_back(plan);
  }
  for (const std::string& text : flags.own) plans.push_back(own_arm(text));
  return plans;
}

wanamaker::BudgetPlan plan_of(const Options& options, const wanamaker::ModelConfig& config,
                              const wanamaker::BudgetOptions& budget) {
  if (options.command == "twins") return wanamaker::twins_plan(config);
  return wanamaker::budgets_plan(config, asked_plans(options.budgets, config), budget);
}

// Everything that stored models depend on; the seeds are not among it.
std::string settings_of(const BudgetTask& task) {
  wanamaker::Sha256 hash;
  hash.update_field(wanamaker::protocol_hash(task.protocol));
  hash.update_field(wanamaker::model_config_json(task.config).dump());
  for (const wanamaker::BudgetArm& arm : task.plan.arms) {
    hash.update_field(arm.name).update_field(wanamaker::text_of(arm.plan));
  }
  for (const std::vector<Index>* documents :
       {&task.splits.train.documents, &task.splits.fit.documents, &task.splits.report.documents}) {
    hash.update_number(documents->size());
    for (const Index d : *documents) hash.update_number(static_cast<std::uint64_t>(d));
  }
  const wanamaker::PretrainOptions& training = task.options.training;
  for (const Index n : {training.window, training.sequences, training.training.steps,
                        training.sparsity.warm_up, Index{training.recompute}}) {
    hash.update_number(static_cast<std::uint64_t>(n));
  }
  for (const double x : {training.sparsity.weight, task.options.rho}) {
    hash.update_field(wanamaker::exact_text(x));
  }
  return wanamaker::training_hash(training.training, hash.hex());
}

void write_budgets(const fs::path& out, const wanamaker::BudgetResult& result) {
  const std::string& command = result.command;
  wanamaker::write_atomically(out / (command + ".csv"),
                              wanamaker::finetune_csv(result.comparisons).csv());
  wanamaker::write_atomically(out / (command + "-losses.csv"),
                              wanamaker::finetune_losses_csv(result.runs).csv());
  wanamaker::write_atomically(out / (command + ".svg"), wanamaker::budgets_svg(result));
  wanamaker::write_json(out / (command + ".json"), wanamaker::json_of(result));
}

void print_budgets(const wanamaker::BudgetResult& result) {
  std::cout << wanamaker::budgets_headline(result)
            << "\nThe models; per cent off the uniform MLPs' parameters and FLOPs:\n"
            << wanamaker::budget_arms_table(result).aligned()
            << "\nOn unseen text; below 0 the first is better. Intervals over documents and over "
               "seeds; tokens and FLOPs of training, first over second:\n"
            << wanamaker::finetune_table(result.comparisons).aligned()
            << "\nMeans over seeds: training, perplexity on unseen text, positions with maps "
               "alone, FLOPs to run it:\n"
            << wanamaker::finetune_points_table(result.runs).aligned() << "\n";
}

// Each written model can be read by the other commands.
void add_tokenizers(const fs::path& models, const fs::path& tokenizer) {
  for (const auto& entry : fs::directory_iterator(models)) {
    if (entry.is_directory()) copy_tokenizer(tokenizer, entry.path());
  }
  std::cout << "The models are in " << models.string() << "/.\n";
}

}  // namespace

void run_from_scratch(const Options& given) {
  Options options = given;
  const bool are_twins = options.command == "twins";
  if (are_twins) options.pretrain.family = "gpt-neox";
  const Stopwatch watch;
  wanamaker::ThreadPool pool(thread_count(options));
  const fs::path tokenizer_folder = options.out / "tokenizer",
                 checkpoints = options.out / "checkpoints", models = options.out / "models";
  for (const fs::path& folder : {tokenizer_folder, checkpoints}) make_folder(folder);
  if (options.budgets.keep_models) make_folder(models);
  check_fresh_or_resumed(options, checkpoints);
  ProgressLine progress(options.quiet);
  progress.set_title(options.command);
  const wanamaker::Corpus corpus = read_documents(options);
  const wanamaker::Splits splits =
      deal_documents(corpus, options, are_twins ? options.tokens.fit : 0);
  prepare_tokenizer(options, corpus, splits.train, tokenizer_folder, progress.callback());
  const auto tokenizer = wanamaker::Tokenizer::from_folder(tokenizer_folder);
  const wanamaker::ModelConfig config = config_of(options, tokenizer);
  const wanamaker::BudgetOptions budget = budget_options(options, tokenizer);
  const wanamaker::BudgetPlan plan = plan_of(options, config, budget);
  const Texts texts = encode_documents(corpus, tokenizer_folder, pool, progress.callback());
  const wanamaker::WindowRule rule = window_rule(options, config);
  const BudgetTask task{.corpus = texts.corpus,
                        .splits = splits,
                        .config = config,
                        .plan = plan,
                        .options = budget,
                        .rule = rule,
                        .protocol = make_protocol(options, rule, texts, training_arithmetic()),
                        .checkpoints = checkpoints,
                        .models = options.budgets.keep_models ? models : fs::path(),
                        .progress = progress.callback()};
  progress.set_training_tokens(budget.training.tokens_of_a_step());
  RunState state(options.out / (options.command + ".state.json"), settings_of(task),
                 options.resume);
  const wanamaker::BudgetResult result = compare_budgets(task, pool, state.for_finetune());
  progress.clear();
  write_budgets(options.out, result);
  write_times(options.out, options.command, options, watch);
  print_budgets(result);
  if (options.budgets.keep_models) add_tokenizers(models, tokenizer_folder);
  state.finish();
}

}  // namespace study
