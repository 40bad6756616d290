#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.hpp"
#include "console.hpp"
#include "finetuning.hpp"
#include "run.hpp"
#include "tuning_texts.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/report/optimise_json.hpp"
#include "wanamaker/report/optimise_report.hpp"

namespace study {

namespace fs = std::filesystem;
using wanamaker::Index;

namespace {

std::optional<wanamaker::CostTable> recorded_costs(const fs::path& file) {
  if (file.empty()) return std::nullopt;
  const wanamaker::Json times = wanamaker::parse_json_file(file);
  const auto costs = times.find("costs");
  return wanamaker::cost_table_from_json(costs == times.end() ? times : *costs, file.string());
}

wanamaker::OptimiseOptions optimise_options(const Options& options,
                                            const wanamaker::ModelConfig& config,
                                            const fs::path& model) {
  const OptimiseFlags& flags = options.optimise;
  wanamaker::OptimiseOptions optimise{.cost = *wanamaker::cost_kind_named(flags.cost),
                                      .batch = flags.batch,
                                      .max_loss_percent = options.max_loss,
                                      .shares = flags.shares,
                                      .steps_beyond = flags.beyond,
                                      .costs = recorded_costs(flags.costs)};
  if (flags.heal_tokens == 0) return optimise;
  optimise.heal = {.tokens = flags.heal_tokens,
                   .window = training_window(options, config),
                   .rate = flags.heal_rate,
                   .separator = separator_of(config, model),
                   .seed = options.seed};
  return optimise;
}

// One model's search.
class Optimising {
 public:
  Optimising(const Options& options, const TuningTexts& texts, const fs::path& model,
             wanamaker::ExecutorRef executor, const wanamaker::Progress& progress)
      : options_(options), model_path_(model), model_(load_tunable_model(model, executor)) {
    rule_ = window_rule(options, model_->config());
    own_ = encode_for(model_->config(), model, texts.trained, executor, progress);
    if (!texts.other) return;
    const Texts other = encode_for(model_->config(), model, *texts.other, executor, progress);
    other_ = chosen_documents(other.corpus, some_documents(other.corpus, options));
  }

  wanamaker::OptimiseResult run(const std::function<fs::path()>& folder_of,
                                const wanamaker::Progress& progress) {
    wanamaker::SplitBudgets tokens = options_.tokens;
    tokens.train = options_.optimise.heal_tokens;
    return model_->optimise(
        {{own_.corpus, wanamaker::make_splits(split_candidates(own_.corpus), tokens, options_.seed),
          rule_, make_protocol(options_, rule_, own_, model_->arithmetic()),
          sweep_options(options_), progress},
         other_ ? &*other_ : nullptr,
         optimise_options(options_, model_->config(), model_path_),
         folder_of});
  }

 private:
  const Options& options_;
  fs::path model_path_;
  std::unique_ptr<TunableModel> model_;
  wanamaker::WindowRule rule_{};
  Texts own_;
  std::optional<wanamaker::TokenizedCorpus> other_;
};

// The texts of another domain are the technical corpus, or the first where that is worked on.
Options with_other_text(Options options) {
  std::vector<fs::path>& others = options.finetune.other_texts;
  if (options.texts.empty() || !others.empty()) return options;
  const std::vector<fs::path> ours = default_text_files();
  const bool is_own = std::any_of(options.texts.begin(), options.texts.end(), [&](const auto& t) {
    return t.filename() == ours.back().filename();
  });
  others = {is_own ? ours.front() : ours.back()};
  return options;
}

void write_optimise(const fs::path& out, const Options& options,
                    const wanamaker::OptimiseResult& result, const Stopwatch& watch) {
  wanamaker::write_json(out / "optimise.json", wanamaker::json_of(result));
  wanamaker::write_atomically(out / "optimise.csv", wanamaker::optimise_csv(result).csv());
  wanamaker::write_atomically(out / "optimise.svg", wanamaker::optimise_svg(result));
  write_times(out, "optimise", options, watch, wanamaker::times_json_of(result));
}

void print_optimise(const wanamaker::OptimiseResult& result, const fs::path& folder) {
  std::cout << wanamaker::optimise_headline(result) << "\n\n"
            << wanamaker::optimise_table(result).aligned() << wanamaker::healing_text(result)
            << "\nEvery step, by cost; chosen on the select split, measured on the report split:\n"
            << wanamaker::frontier_table(result).aligned();
  if (!result.paths.front().chosen) return;
  if (!result.exported) {
    std::cout << "\nNot written: this model's MLPs are too narrow to act as linear maps.\n";
  } else if (result.exported->has_gates) {
    std::cout << "\n"
              << folder.string() << "/: the chosen model, its gates in a file beside, for "
              << "this library.\n";
  } else {
    std::cout << "\n" << folder.string() << "/: the chosen model, as other runtimes load it.\n";
  }
}

}  // namespace

void run_optimise(const Options& options) {
  wanamaker::ThreadPool pool(thread_count(options));
  ProgressLine progress(options.quiet);
  const TuningTexts texts = read_tuning_texts(with_other_text(options));
  const std::vector<fs::path> models = model_folders(options);
  for (const fs::path& model : models) {
    const Stopwatch watch;
    const fs::path out = models.size() > 1 ? options.out / model.filename() : options.out;
    const std::optional<wanamaker::FolderLock> lock = lock_part(options, out);
    progress.set_title(model.filename().string());
    Optimising optimising(options, texts, model, pool, progress.callback());
    const fs::path folder = out / "model";
    const auto made_folder = [&] {
      make_folder(folder);
      copy_tokenizer_files(model, folder);
      return folder;
    };
    const wanamaker::OptimiseResult result = optimising.run(made_folder, progress.callback());
    progress.clear();
    write_optimise(out, options, result, watch);
    print_optimise(result, folder);
  }
}

}  // namespace study
