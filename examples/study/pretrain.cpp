#include <algorithm>
#include <iomanip>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>

#include "commands.hpp"
#include "console.hpp"
#include "engine.hpp"
#include "from_scratch.hpp"
#include "inputs.hpp"
#include "pretraining.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/report/pretrain_report.hpp"
#include "wanamaker/text/tokenizer.hpp"
#include "wanamaker/text/tokenizer_json_writing.hpp"
#include "wanamaker/train/model_shape.hpp"

namespace study {

namespace fs = std::filesystem;
using wanamaker::Index;

namespace {

wanamaker::Family family_of(const Options& options) {
  if (options.pretrain.family == "gpt2") return wanamaker::Family::gpt2;
  if (options.pretrain.family == "llama") return wanamaker::Family::llama;
  return wanamaker::Family::gpt_neox;
}

}  // namespace

wanamaker::Splits deal_documents(const wanamaker::Corpus& corpus, const Options& options,
                                 Index fit_tokens) {
  std::vector<wanamaker::SplitCandidate> candidates;
  Index total = 0;
  for (const wanamaker::Document& document : corpus.documents) {
    const Index tokens = document.has_text() ? (document.byte_count() + 3) / 4
                                             : static_cast<Index>(document.ids().size());
    wanamaker::Corpus one;
    one.documents.push_back(document);
    candidates.push_back({one.content_hash(), tokens});
    total += tokens;
  }
  const Index fit = std::min(fit_tokens, total / 4);
  // Two documents at least are measured, which of long books is more than was asked for.
  for (Index report = std::max<Index>(1, std::min(options.tokens.report, total / 4));;
       report *= 2) {
    try {
      return wanamaker::make_splits(
          candidates, {.train = total - fit - report, .fit = fit, .report = report}, options.seed);
    } catch (const wanamaker::ProtocolError&) {
      if (report > total / 4) throw;
    }
  }
}

void copy_tokenizer(const fs::path& from, const fs::path& to) {
  const fs::path folder = fs::is_directory(from) ? from : from.parent_path();
  const fs::path file = fs::is_directory(from) ? folder / "tokenizer.json" : from;
  wanamaker::write_atomically(to / "tokenizer.json", wanamaker::MappedFile(file).text());
  const fs::path config = folder / "tokenizer_config.json";
  if (!fs::exists(config)) return;
  wanamaker::write_atomically(to / "tokenizer_config.json", wanamaker::MappedFile(config).text());
}

void prepare_tokenizer(const Options& options, const wanamaker::Corpus& corpus,
                       const wanamaker::TrainSplit& train, const fs::path& model,
                       const wanamaker::Progress& progress) {
  if (!options.pretrain.tokenizer.empty()) return copy_tokenizer(options.pretrain.tokenizer, model);
  const wanamaker::TokenizerDefinition definition = wanamaker::train_tokenizer(
      corpus, train, {.vocabulary_size = options.pretrain.vocabulary}, progress);
  wanamaker::write_tokenizer_json(model / "tokenizer.json", definition);
  wanamaker::write_json(model / "tokenizer_config.json",
                        {{"tokenizer_class", "PreTrainedTokenizerFast"},
                         {"bos_token", *definition.bos},
                         {"eos_token", *definition.eos},
                         {"model_max_length", options.pretrain.window}});
}

wanamaker::ModelConfig config_of(const Options& options, const wanamaker::Tokenizer& tokenizer) {
  const PretrainFlags& flags = options.pretrain;
  wanamaker::ModelConfig config =
      wanamaker::model_config({.family = family_of(options),
                               .vocabulary = tokenizer.vocabulary_size(),
                               .width = flags.width,
                               .layers = flags.depth,
                               .heads = flags.heads,
                               .positions = flags.window,
                               .hidden = flags.hidden,
                               .key_heads = flags.key_heads,
                               .parallel_residual = !flags.sequential});
  config.bos = tokenizer.bos_id();
  if (tokenizer.eos_id()) config.eos = {*tokenizer.eos_id()};
  return config;
}

wanamaker::PretrainOptions training_of(const Options& options,
                                       const wanamaker::Tokenizer& tokenizer) {
  const PretrainFlags& flags = options.pretrain;
  const std::optional<wanamaker::TokenId> end = tokenizer.eos_id();
  if (!end) {
    throw wanamaker::DataError({.id = "training/no-separator",
                                .where = "--tokenizer",
                                .what = "the tokenizer has no token that ends a text",
                                .expected = "eos_token in tokenizer_config.json, or <|endoftext|>",
                                .mend = "name one, or leave --tokenizer out to train a tokenizer"});
  }
  wanamaker::PretrainOptions pretrain{.window = flags.window,
                                      .sequences = flags.batch,
                                      .separator = *end,
                                      .seed = options.seed,
                                      .recompute = flags.recompute,
                                      .sparsity = {flags.sparsity, flags.sparsity_warm_up}};
  pretrain.training = {.steps = flags.steps,
                       .optimiser = {.decay = flags.decay},
                       .schedule = {.peak = flags.learning_rate,
                                    .warm_up = std::min(flags.warm_up, flags.steps),
                                    .steps = flags.steps},
                       .largest_norm = flags.clip,
                       .accumulation = flags.accumulation,
                       .checkpoint_every = flags.checkpoint_every};
  return pretrain;
}

void check_fresh_or_resumed(const Options& options, const fs::path& checkpoints) {
  if (options.resume || !fs::exists(checkpoints) || fs::is_empty(checkpoints)) return;
  throw wanamaker::ProtocolError({.id = "training/checkpoint-exists",
                                  .where = checkpoints.string(),
                                  .what = "there are checkpoints of an earlier run",
                                  .mend = "add --resume to go on, or use another --out"});
}

namespace {

// What the written model, in float16, says of the documents that were kept apart.
wanamaker::PerplexityResult measure_held_out(const Options& options, const Texts& texts,
                                             const wanamaker::ReportSplit& report,
                                             const fs::path& model, wanamaker::ExecutorRef executor,
                                             const wanamaker::Progress& progress) {
  const std::unique_ptr<Engine> engine = engine_maker(options)(model, executor);
  const wanamaker::WindowRule rule = window_rule(options, engine->config());
  const wanamaker::EvaluationSet set =
      wanamaker::make_evaluation_set(texts.corpus, report.documents, rule);
  wanamaker::Protocol protocol = make_protocol(options, rule, texts, engine->arithmetic());
  protocol.token_ids_hash = wanamaker::token_ids_hash(set);
  return engine->perplexity(texts.corpus, set, protocol, progress);
}

void write_pretrain(const fs::path& out, const wanamaker::PretrainResult& result) {
  wanamaker::write_atomically(out / "pretrain.csv", wanamaker::loss_curve_csv(result.curve));
  wanamaker::write_atomically(out / "pretrain.svg",
                              wanamaker::loss_curve_svg(result.curve, "Training loss"));
  wanamaker::write_json(out / "pretrain.json", wanamaker::json_of(result));
}

std::string decimals(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

void print_pretrain(const wanamaker::PretrainResult& result, const fs::path& model) {
  std::cout << decimals(result.model.parameters / 1e6, 2) << " million parameters, "
            << result.curve.size() << " steps, " << result.tokens << " tokens seen of "
            << result.corpus_tokens << " in " << result.documents << " documents\n";
  std::cout << "unseen documents: perplexity " << decimals(result.held_out->perplexity, 2);
  if (result.held_out->bits_per_byte) {
    std::cout << ", " << decimals(*result.held_out->bits_per_byte, 4) << " bits per byte";
  }
  std::cout << "\n";
  for (const wanamaker::LayerState& layer : result.gated) {
    std::cout << "layer " << layer.layer << ": " << decimals(100 * *layer.fraction_linear, 1)
              << " % of unseen positions have the map alone\n";
  }
  if (result.plan.empty() || wanamaker::is_stock(result.plan)) {
    std::cout << "The model is in " << model.string() << "/.\n";
  } else {
    std::cout << "Files of models have no gates that were learned: the weights are in "
              << (model.parent_path() / "checkpoints").string() << "/.\n";
  }
}

// Empty where --mlp is not given.
wanamaker::MlpPlan plan_of(const Options& options, const wanamaker::ModelConfig& config) {
  if (options.pretrain.mlp.empty()) return {};
  const wanamaker::MlpPlan plan = wanamaker::parse_mlp_plan(options.pretrain.mlp, config);
  if (!wanamaker::is_to_solve(plan)) return plan;
  throw wanamaker::DataError({.id = "training/mlp-open",
                              .where = "--mlp",
                              .what = "a size is left open, and there is no budget to solve it for",
                              .expected = "a number for every size",
                              .found = wanamaker::text_of(plan),
                              .mend = "write a number, or use study budgets --arm"});
}

// Of the documents kept apart, by the model's settings.
void add_held_out(const Options& options, const Texts& texts, const wanamaker::ReportSplit& report,
                  PretrainTask& task) {
  const wanamaker::WindowRule rule = window_rule(options, task.config);
  task.held_out = wanamaker::make_evaluation_set(texts.corpus, report.documents, rule);
  task.protocol = make_protocol(options, rule, texts, training_arithmetic());
  task.protocol.token_ids_hash = wanamaker::token_ids_hash(task.held_out);
}

}  // namespace

void run_pretrain(const Options& options) {
  wanamaker::ThreadPool pool(thread_count(options));
  const fs::path model = options.out / "model", checkpoints = options.out / "checkpoints";
  make_folder(model);
  make_folder(checkpoints);
  check_fresh_or_resumed(options, checkpoints);
  ProgressLine progress(options.quiet);
  progress.set_title("pretrain");
  const wanamaker::Corpus corpus = read_documents(options);
  const wanamaker::Splits splits = deal_documents(corpus, options);
  prepare_tokenizer(options, corpus, splits.train, model, progress.callback());
  const wanamaker::Tokenizer tokenizer = wanamaker::Tokenizer::from_folder(model);
  const wanamaker::ModelConfig config = config_of(options, tokenizer);
  const wanamaker::MlpPlan plan = plan_of(options, config);
  const Texts texts = encode_documents(corpus, model, pool, progress.callback());
  PretrainTask task{.corpus = texts.corpus,
                    .train = splits.train,
                    .config = config,
                    .options = training_of(options, tokenizer),
                    .checkpoints = checkpoints,
                    .model = model,
                    .progress = progress.callback()};
  task.options.plan = plan;
  progress.set_training_tokens(task.options.tokens_of_a_step());
  if (!plan.empty()) add_held_out(options, texts, splits.report, task);
  wanamaker::PretrainResult result = pretrain(task, pool);
  if (plan.empty()) {
    result.held_out =
        measure_held_out(options, texts, splits.report, model, pool, progress.callback());
  }
  progress.clear();
  if (result.resumption && !result.resumption->fault.empty()) {
    std::cerr << "study: went on from the checkpoint before the newest: "
              << result.resumption->fault << "\n";
  }
  write_pretrain(options.out, result);
  print_pretrain(result, model);
}

}  // namespace study
