// What a probe run asks and what it finds: which part of an MLP's input says where its nonlinearity
// is needed?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wanamaker/stats/auc.hpp"
#include "wanamaker/study/sweep_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Settings of run_probe.
struct ProbeOptions {
  double C = 1;             ///< inverse penalty of the logistic regressions and the small MLPs
  Index mlp_units = 6;      ///< of the small MLPs' hidden layer
  Index positions = 25000;  ///< of each split at most, evenly spread: the rest is not looked at
  DocumentBootstrapOptions bootstrap{};
};

/// One set of features, fitted to the label δ ≤ 0 on the gate split, judged on the report split.
struct ProbeScore {
  std::string name{};
  Index features = 0;
  std::optional<AucEstimate> auc{};  ///< missing where the report split has one class
  DocumentInterval interval{};       ///< of the AUC, documents redrawn
  /// AUC less that of the table of labels by token, on the same draws of documents.
  std::optional<double> above_token_table{};
  DocumentInterval above_token_table_interval{};
  std::string note{};  ///< how the fit ended, where it did not converge
};

/// How one kind of part looks at the MLP's input, first positions of sequences left out.
struct PartSummary {
  std::string name{};
  std::optional<double> mean_norm{};
  std::optional<double> length_share{};  ///< of the input's squared length; the shares add up to 1
  std::optional<double> gate_share{};  ///< of the variance along the gate `input`; they add up to 1
};

/// One layer: which part of the input tells where the map does.
struct ProbeLayer {
  Index layer = 0;
  double r2 = 0;
  double lambda = 0;
  std::vector<LambdaTrial> lambda_trials{};
  double positive_share = 0;  ///< of report positions with δ ≤ 0
  std::vector<ProbeScore> probes{};
  std::vector<PartSummary> parts{};
  std::optional<double> token_context_cosine{};  ///< mean over positions
};

/// What run_probe found.
struct ProbeResult : StudyHeader {
  Index positions = 0;  ///< that were looked at of each split, at most
  std::vector<ProbeLayer> layers{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
