// What the commands of `study` have in common on the command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "wanamaker/core/index.hpp"
#include "wanamaker/study/splits.hpp"
#include "wanamaker/text/corpus.hpp"

namespace study {

/// What `pretrain` alone has.
struct PretrainFlags {
  std::string family = "gpt2";
  bool sequential = false;
  std::string tokenizer;
  wanamaker::Index vocabulary = 4096;
  wanamaker::Index width = 192;
  wanamaker::Index depth = 6;
  wanamaker::Index heads = 6;
  wanamaker::Index hidden = 0;
  wanamaker::Index key_heads = 0;
  wanamaker::Index window = 256;
  wanamaker::Index batch = 8;
  wanamaker::Index accumulation = 1;
  wanamaker::Index steps = 1000;
  wanamaker::Index warm_up = 100;
  wanamaker::Index checkpoint_every = 100;
  double learning_rate = 1e-3;
  double decay = 0.1;
  double clip = 1;
  bool recompute = false;
  std::string mlp;
  double sparsity = 0.02;
  wanamaker::Index sparsity_warm_up = 100;
};

/// What `budgets` and `twins` alone have.
struct BudgetFlags {
  std::vector<std::uint64_t> seeds{1, 2, 3};
  std::vector<std::string> named;
  std::vector<std::string> own;
  double routed = 0.5;
  double tolerance = 1;
  double margin = 1;
  double rho = 1e-6;
  bool keep_models = false;
};

/// What the experiments on the routing decision have.
struct RoutingFlags {
  wanamaker::Index resamples = 2000;
  wanamaker::Index probe_positions = 25000;
  wanamaker::Index clusters = 20;
  wanamaker::Index components = 50;
  wanamaker::Index folds = 5;
  wanamaker::Index rounds = 100;
  wanamaker::Index least_count = 5;
  wanamaker::Index exact_positions = 200;
  wanamaker::Index path_steps = 0;
  wanamaker::Index map_positions = 180;
  wanamaker::Index passages = 3;
  wanamaker::Index positions = 200;
};

/// What `progressive`, `two-phase` and `control` alone have.
struct FinetuneFlags {
  std::vector<std::uint64_t> seeds{1, 2, 3};
  std::vector<std::filesystem::path> other_texts;
  std::filesystem::path lambada;
  std::string order = "middle";
  wanamaker::Index train_tokens = 200000;
  wanamaker::Index between_steps = 50;
  wanamaker::Index final_steps = 200;
  wanamaker::Index adapt_steps = 200;
  wanamaker::Index gate_steps = 200;
  wanamaker::Index window = 0;
  wanamaker::Index batch = 4;
  wanamaker::Index accumulation = 1;
  wanamaker::Index warm_up = 10;
  wanamaker::Index sparsity_warm_up = 50;
  double learning_rate = 3e-4;
  double gate_rate = 1e-2;
  double decay = 0.01;
  double clip = 1;
  double sparsity = 0.02;
  double rho = 1e-6;
  double margin = 1;
  bool recompute = false;
  bool export_models = false;
};

/// What `optimise` alone has.
struct OptimiseFlags {
  std::string cost = "decode";
  wanamaker::Index batch = 1;
  std::vector<double> shares{0.25, 0.5, 0.75};
  wanamaker::Index beyond = 2;
  wanamaker::Index heal_tokens = 0;
  double heal_rate = 1e-4;
  std::filesystem::path costs;
};

/// What `plan` alone has. Figures of one device; the defaults are the data sheet's of an H100
/// (SXM).
struct PlanFlags {
  wanamaker::Index gpus = 0;
  double tflops = 67;
  double double_tflops = 34;
  double bandwidth = 3350;
  double memory = 80;
  double efficiency = 0.6;
  double weight_bytes = 4;
};

/// Values of the common options; defaults are what a run without options does.
struct Options {
  std::string command;
  std::string model = "default";
  std::vector<std::filesystem::path> texts;
  std::filesystem::path out = "study-results";
  std::string protocol = "rigorous";
  std::string layers;
  std::string format = "auto";
  std::string field;
  std::string detokenise = "none";
  std::string backend;
  wanamaker::Index window = 0;
  wanamaker::Index stride = 0;
  wanamaker::Index truncation = 0;
  wanamaker::Index threads = 0;
  wanamaker::Index separator = -1;
  wanamaker::Index resamples = 10000;
  wanamaker::SplitBudgets tokens{.fit = 100000, .gate = 50000, .select = 20000, .report = 100000};
  std::vector<double> rhos{1e-8, 1e-6, 1e-4, 1e-2};
  std::vector<wanamaker::Index> ranks;
  std::string ladder = "full";
  double gate_fraction = -1;
  double gate_flops = -1;
  std::vector<double> fractions;
  double max_loss = 1;
  double flop_budget = 0;
  std::string greedy = "gate";
  std::vector<std::string> gates;
  bool resume = false;
  std::uint64_t seed = 0;
  std::optional<std::string> prompt;
  std::string prompt_file;
  wanamaker::Index new_tokens = 100;
  double temperature = 1;
  wanamaker::Index top_k = 0;
  double top_p = 1;
  std::string replace;
  bool beside = false;
  std::string dtype = "float32";
  bool gguf = false;
  std::filesystem::path exported;
  double tolerance = 1e-3;
  PretrainFlags pretrain;
  BudgetFlags budgets;
  RoutingFlags routing;
  FinetuneFlags finetune;
  OptimiseFlags optimise;
  PlanFlags plan;
  std::vector<std::filesystem::path> compared;
  bool anyway = false;
  bool check_finite = false;
  bool bos = false;
  bool quick = false;
  bool quiet = false;
};

/// Is it progressive, two-phase or control?
bool is_finetuning(const std::string& command);
/// Is it budgets or twins?
bool is_from_scratch(const std::string& command);

/// "0,3-5" to {0, 3, 4, 5}; empty: all layers. Throws wanamaker::ProtocolError.
std::vector<wanamaker::Index> parse_layers(const std::string& text);

/// Parses the command line. Prints help or a usage error itself; then the exit code is returned.
std::optional<int> parse_command_line(int argc, char** argv, Options& options);

}  // namespace study
