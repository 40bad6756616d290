// What a compound run asks and what it finds: many layers replaced at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wanamaker/stats/non_inferiority.hpp"
#include "wanamaker/study/sweep_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Settings of run_compound besides those of a sweep.
struct CompoundOptions {
  /// The greedy choice stops when the MLPs take at most this share of their FLOPs; 0: it goes on
  /// through all layers.
  double flop_budget = 0;
  /// The chosen variant may cost so many per cent of perplexity on the select split; the margin of
  /// the test of non-inferiority on the report split.
  double max_loss_percent = 1;
  bool greedy_linear = true;  ///< run the greedy path of linear maps
  bool greedy_gate = true;    ///< and that of gates
};

/// A model with several layers replaced, compared with the full model. Shares of FLOPs are of the
/// whole model.
struct CompoundVariant {
  std::string name{};
  std::vector<Index> layers{};  ///< that are replaced; of a greedy path in the order of choice
  double select_nll_sum = 0;    ///< nats, on the select split, by which variants are chosen
  double select_delta_percent = 0;
  double nll_sum = 0;  ///< nats, on the report split
  double perplexity = 0;
  PairedComparison comparison{};
  /// Is the loss below max_loss_percent? One-sided, at 5 %, on the report split.
  NonInferiorityVerdict verdict = NonInferiorityVerdict::no_interval;
  std::optional<Index> documents_needed{};  ///< to show it with probability 0.8
  /// Share of all (layer, scored position) pairs of the model that have the surrogate.
  double fraction_linear = 0;
  double flops_fraction_mlp = 1;
  double flops_fraction_total = 1;
  bool on_frontier = false;  ///< no other variant has both fewer FLOPs and a lower select loss
};

/// What run_compound found.
struct CompoundResult : StudyHeader {
  double flop_budget = 0;
  double max_loss_percent = 1;
  std::vector<CompoundVariant> variants{};
  /// The fewest FLOPs within max_loss_percent on the select split; missing where there is none.
  std::optional<std::string> chosen{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
