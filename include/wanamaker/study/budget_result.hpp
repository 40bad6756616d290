// Models from scratch that spend one budget in different ways: what is asked and what is found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wanamaker/study/pretrain.hpp"
#include "wanamaker/train/mlp_budget.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// How models from scratch are trained and compared.
struct BudgetOptions {
  std::vector<std::uint64_t> seeds{1, 2, 3};  ///< of initial values and of the windows' order
  PretrainOptions training{};                 ///< seed and plan are the arms'
  double routed = 0.5;  ///< share that a learned gate is taken to route, when FLOPs are solved
  double tolerance_percent = 1;  ///< of the uniform MLPs' FLOPs: one arm serves both budgets within
  double margin_percent = 1;  ///< "not worse than uniform": at most so many per cent of perplexity
  double rho = 1e-6;          ///< of the maps' ridge, where layers are linearised
  PairedOptions intervals{};
};

/// A model that is trained with every seed.
struct BudgetArm {
  std::string name{};
  MlpPlan plan{};  ///< every size known
  bool parallel_residual = true;
  std::vector<BudgetKind> budgets{};  ///< of the control, which it has as much of
};

/// A plan with a name, where a size may be left open: "?".
struct NamedPlan {
  std::string name{};
  std::string plan{};
};

/// What an experiment trains; the first arm is the control of all others.
struct BudgetPlan {
  std::string command{};
  std::vector<BudgetArm> arms{};
  bool linearises = false;  ///< measure what linearising each layer alone costs, in every model
};

/// An arm as it came out.
struct BudgetArmResult {
  BudgetArm arm{};
  double parameters = 0;                    ///< of the whole model
  PlannedCost mlps{};                       ///< gates taken to route the options' share
  double parameters_deviation_percent = 0;  ///< of the MLPs, from the control's
  double flops_deviation_percent = 0;
};

/// What linearising one layer alone costs, as the median over layers, in models with two residual
/// topologies.
struct TopologyFinding {
  std::string treated{};
  std::string control{};
  std::vector<double> treated_percent{};  ///< of each seed
  std::vector<double> control_percent{};
  std::vector<double> difference_percent{};  ///< treated − control, percentage points
  std::optional<Interval> interval{};        ///< of the mean difference; Student's t over seeds
  ContrastVerdict verdict = ContrastVerdict::undecided;  ///< better: cheaper to linearise
};

/// What was trained, and what can be said of it.
struct BudgetResult {
  std::string command{};
  Protocol protocol{};
  ModelSummary model{};  ///< the control
  BudgetOptions options{};
  Index train_documents = 0;
  Index train_tokens = 0;
  std::vector<EvaluatedText> texts{};
  std::vector<BudgetArmResult> arms{};
  std::vector<ArmRun> runs{};
  std::vector<FinetuneComparison> comparisons{};
  std::vector<TreatedVerdict> verdicts{};  ///< gains and kept are against the control
  std::vector<TopologyFinding> topology{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
