#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "checkpoint.hpp"
#include "commands.hpp"
#include "console.hpp"
#include "finetuning.hpp"
#include "inputs.hpp"
#include "run.hpp"
#include "tuning_texts.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/report/finetune_report.hpp"
#include "wanamaker/report/finetune_tables.hpp"
#include "wanamaker/report/text_table.hpp"

namespace study {

namespace fs = std::filesystem;
using wanamaker::Index;

namespace {

wanamaker::Corpus read_files(Options options, std::vector<fs::path> files) {
  options.texts = std::move(files);
  return read_documents(options);
}

}  // namespace

TuningTexts read_tuning_texts(const Options& options) {
  const FinetuneFlags& flags = options.finetune;
  std::vector<fs::path> texts = options.texts, others = flags.other_texts;
  if (texts.empty()) {
    texts = default_text_files();
    if (others.empty()) others = {texts.back()};
    texts.pop_back();
  }
  TuningTexts read{read_files(options, texts), {}, {}};
  if (!others.empty()) read.other = read_files(options, others);
  if (flags.lambada.empty()) return read;
  Options passages = options;
  passages.format = "lambada";
  passages.field.clear();
  read.passages = read_files(passages, {flags.lambada});
  return read;
}

std::vector<Index> some_documents(const wanamaker::TokenizedCorpus& corpus,
                                  const Options& options) {
  return wanamaker::make_splits(split_candidates(corpus), {.report = options.tokens.report},
                                options.seed)
      .report.documents;
}

wanamaker::TokenizedCorpus chosen_documents(const wanamaker::TokenizedCorpus& corpus,
                                            const std::vector<Index>& documents) {
  wanamaker::TokenizedCorpus chosen;
  for (const Index d : documents) {
    chosen.documents.push_back(corpus.documents[static_cast<std::size_t>(d)]);
  }
  return chosen;
}

Texts encode_for(const wanamaker::ModelConfig& config, const fs::path& model,
                 const wanamaker::Corpus& corpus, wanamaker::ExecutorRef executor,
                 const wanamaker::Progress& progress) {
  Texts texts = encode_documents(corpus, model, executor, progress);
  wanamaker::check_tokenizer_size(texts.tokenizer_size, config.vocabulary, model.string());
  wanamaker::check_ids(texts.corpus, config.vocabulary);
  return texts;
}

namespace {

wanamaker::PassageCorpus chosen_passages(const Texts& passages, const Options& options) {
  const std::vector<Index> documents = some_documents(passages.corpus, options);
  wanamaker::PassageCorpus chosen{.corpus = chosen_documents(passages.corpus, documents)};
  for (const Index d : documents) {
    chosen.target_tokens.push_back(passages.last_word_tokens[static_cast<std::size_t>(d)]);
  }
  return chosen;
}

}  // namespace

wanamaker::TokenId separator_of(const wanamaker::ModelConfig& config, const fs::path& model) {
  if (!config.eos.empty()) return config.eos.front();
  if (config.bos) return *config.bos;
  throw wanamaker::DataError({.id = "training/no-separator",
                              .where = model.string(),
                              .what = "the model names no token that ends a text",
                              .expected = "eos_token_id in config.json",
                              .mend = "add it"});
}

Index training_window(const Options& options, const wanamaker::ModelConfig& config) {
  constexpr Index longest_default = 128;
  const Index asked = options.finetune.window;
  const Index window = asked > 0 ? asked : std::min(config.positions, longest_default);
  if (window <= config.positions) return window;
  throw wanamaker::ProtocolError({.id = "protocol/window-too-long",
                                  .where = "--train-window",
                                  .what = "longer than the model's positions",
                                  .expected = "at most " + std::to_string(config.positions),
                                  .found = std::to_string(window),
                                  .mend = "use a shorter window"});
}

namespace {

wanamaker::FinetuneOptions finetune_options(const Options& options,
                                            const wanamaker::ModelConfig& config,
                                            const fs::path& model) {
  const FinetuneFlags& flags = options.finetune;
  wanamaker::FinetuneOptions finetune{.seeds = flags.seeds,
                                      .window = training_window(options, config),
                                      .sequences = flags.batch,
                                      .separator = separator_of(config, model),
                                      .recompute = flags.recompute,
                                      .warm_up = flags.warm_up,
                                      .rho = flags.rho,
                                      .margin_percent = flags.margin};
  finetune.recipes = {.layers = parse_layers(options.layers),
                      .between_steps = flags.between_steps,
                      .final_steps = flags.final_steps,
                      .adapt_steps = flags.adapt_steps,
                      .gate_steps = flags.gate_steps,
                      .rate = flags.learning_rate,
                      .gate_rate = flags.gate_rate,
                      .sparsity = flags.sparsity,
                      .sparsity_warm_up = flags.sparsity_warm_up};
  finetune.training = {.optimiser = {.decay = flags.decay},
                       .largest_norm = flags.clip,
                       .accumulation = flags.accumulation};
  finetune.intervals.resamples = options.resamples;
  finetune.intervals.seed = options.seed;
  return finetune;
}

void add_ids(wanamaker::Sha256& hash, const wanamaker::TokenizedCorpus* corpus) {
  if (corpus == nullptr) return;
  for (const wanamaker::SplitCandidate& document : split_candidates(*corpus)) {
    hash.update_field(document.content_hash);
  }
}

// Everything that an arm with one seed depends on; the seeds are not among it.
std::string settings_of(const FinetuneTask& task, const Options& options, const fs::path& model) {
  wanamaker::Sha256 hash;
  const FinetuneFlags& f = options.finetune;
  const wanamaker::FinetuneOptions& o = task.options;
  hash.update_field(wanamaker::protocol_hash(task.protocol));
  for (const Index n :
       {f.train_tokens, options.tokens.fit, options.tokens.select, options.tokens.report, o.window,
        o.sequences, o.warm_up, o.training.accumulation, f.between_steps, f.final_steps,
        f.adapt_steps, f.gate_steps, f.sparsity_warm_up}) {
    hash.update_number(static_cast<std::uint64_t>(n));
  }
  for (const double x : {f.learning_rate, f.gate_rate, f.decay, f.clip, f.sparsity, f.rho}) {
    hash.update_field(wanamaker::exact_text(x));
  }
  hash.update_field(options.layers).update_field(f.order);
  add_ids(hash, task.other);
  if (task.last_words != nullptr) add_ids(hash, &task.last_words->corpus);
  add_model_files(hash, model);
  return hash.hex();
}

void write_finetune(const fs::path& out, const wanamaker::FinetuneResult& result) {
  const std::string& command = result.command;
  wanamaker::write_atomically(out / (command + ".csv"),
                              wanamaker::finetune_csv(result.comparisons).csv());
  wanamaker::write_atomically(out / (command + "-losses.csv"),
                              wanamaker::finetune_losses_csv(result.runs).csv());
  wanamaker::write_atomically(out / (command + ".svg"), wanamaker::finetune_svg(result));
  wanamaker::write_json(out / (command + ".json"), wanamaker::json_of(result));
}

void print_finetune(const wanamaker::FinetuneResult& result, bool has_passages) {
  std::cout << wanamaker::finetune_headline(result)
            << "\nOn unseen text; below 0 the treated point is better. Intervals over documents "
               "and over seeds; tokens and FLOPs of training, treated over control:\n"
            << wanamaker::finetune_table(result.comparisons).aligned();
  if (has_passages) {
    std::cout
        << "\nLast words of passages:\n"
        << wanamaker::finetune_table(result.comparisons, wanamaker::last_words_text).aligned();
  }
  std::cout << "\nEvery stage, means over seeds: training so far, perplexity on each text, "
               "positions with maps alone, FLOPs to run it:\n"
            << wanamaker::finetune_points_table(result.runs).aligned()
            << "\nAgainst the untouched model, on documents that were trained on and on unseen "
               "ones:\n"
            << wanamaker::finetune_gap_table(result).aligned() << "\n";
}

// One model's experiment.
class Tuning {
 public:
  Tuning(const Options& options, const TuningTexts& texts, const fs::path& model,
         wanamaker::ExecutorRef executor, const wanamaker::Progress& progress)
      : options_(options), model_path_(model), model_(load_tunable_model(model, executor)) {
    rule_ = window_rule(options, model_->config());
    trained_ = encode_for(model_->config(), model, texts.trained, executor, progress);
    if (texts.other) {
      const Texts other = encode_for(model_->config(), model, *texts.other, executor, progress);
      other_ = chosen_documents(other.corpus, some_documents(other.corpus, options));
    }
    if (texts.passages) {
      passages_ = chosen_passages(
          encode_passages(*texts.passages, model, rule_, executor, progress), options);
      wanamaker::check_ids(passages_->corpus, model_->config().vocabulary);
    }
  }

  FinetuneTask task(const wanamaker::Progress& progress) const {
    return {.command = options_.command,
            .corpus = trained_.corpus,
            .other = other_ ? &*other_ : nullptr,
            .last_words = passages_ ? &*passages_ : nullptr,
            .splits = splits(),
            .rule = rule_,
            .protocol = make_protocol(options_, rule_, trained_, model_->arithmetic()),
            .options = finetune_options(options_, model_->config(), model_path_),
            .order = options_.finetune.order == "cost"    ? LayerOrder::cost
                     : options_.finetune.order == "given" ? LayerOrder::given
                                                          : LayerOrder::middle,
            .progress = progress};
  }

  TunableModel& model() { return *model_; }

 private:
  wanamaker::Splits splits() const {
    const wanamaker::SplitBudgets& tokens = options_.tokens;
    return wanamaker::make_splits(split_candidates(trained_.corpus),
                                  {.train = options_.finetune.train_tokens,
                                   .fit = tokens.fit,
                                   .select = tokens.select,
                                   .report = tokens.report},
                                  options_.seed);
  }

  const Options& options_;
  fs::path model_path_;
  std::unique_ptr<TunableModel> model_;
  wanamaker::WindowRule rule_{};
  Texts trained_;
  std::optional<wanamaker::TokenizedCorpus> other_;
  std::optional<wanamaker::PassageCorpus> passages_;
};

}  // namespace

void run_finetuning(const Options& options) {
  wanamaker::ThreadPool pool(thread_count(options));
  ProgressLine progress(options.quiet);
  const TuningTexts texts = read_tuning_texts(options);
  const std::vector<fs::path> models = model_folders(options);
  std::vector<RunState> states;
  for (const fs::path& model : models) {
    const Stopwatch watch;
    const fs::path out = models.size() > 1 ? options.out / model.filename() : options.out;
    const std::optional<wanamaker::FolderLock> lock = lock_part(options, out);
    progress.set_title(model.filename().string());
    Tuning tuning(options, texts, model, pool, progress.callback());
    FinetuneTask task = tuning.task(progress.callback());
    progress.set_training_tokens(task.options.tokens_of_a_step());
    if (options.finetune.export_models) {
      task.folder_of = [&](const std::string& arm) {
        const fs::path folder = out / (arm + "-model");
        make_folder(folder);
        copy_tokenizer_files(model, folder);
        return folder;
      };
    }
    states.emplace_back(out / (options.command + ".state.json"), settings_of(task, options, model),
                        options.resume);
    const wanamaker::FinetuneResult result =
        tuning.model().finetune(task, states.back().for_finetune());
    progress.clear();
    write_finetune(out, result);
    write_times(out, options.command, options, watch);
    print_finetune(result, texts.passages.has_value());
  }
  // Not before: an interruption while the second model is trained does not cost the first.
  for (RunState& state : states) state.finish();
}

}  // namespace study
