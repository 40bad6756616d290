// What the search for a cheaper model has at hand, and how every model on a path is measured.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/study/block_edits.hpp"
#include "wanamaker/study/layer_study.hpp"
#include "wanamaker/study/measured_costs.hpp"
#include "wanamaker/study/optimise_result.hpp"
#include "wanamaker/study/routed_counts.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A model on a path: what is changed, what was found, and the policies that the changes refer to.
template <class B>
struct FoundModel {
  BlockEdits<B> edits{};
  std::vector<std::shared_ptr<const void>> policies{};
  OptimisePoint point{};
};

namespace detail {

/// One change that could come next.
struct OptimiseMove {
  Index layer = 0;
  std::string now{};
  double saved = 0;        ///< by the table
  double select_nats = 0;  ///< the loss after it
};

/// Is `a` the better move from a model with the loss `nats`? What loses nothing comes first, then
/// what saves most for what it loses; of equal ones what saves more, then what loses less.
inline bool is_better(const OptimiseMove& a, const OptimiseMove& b, double nats) {
  const double lost_a = a.select_nats - nats, lost_b = b.select_nats - nats;
  const bool free_a = lost_a <= 0, free_b = lost_b <= 0;
  if (free_a != free_b) return free_a;
  const double worth_a = free_a ? a.saved : a.saved * lost_b;
  const double worth_b = free_a ? b.saved : b.saved * lost_a;
  if (worth_a != worth_b) return worth_a > worth_b;
  return a.saved != b.saved ? a.saved > b.saved : lost_a < lost_b;
}

/// The best of the moves that stay within `budget`; where none does, the best of all. Null where
/// there is none.
inline const OptimiseMove* best_move(const std::vector<OptimiseMove>& moves, double nats,
                                     double budget) {
  const OptimiseMove* best = nullptr;
  for (const OptimiseMove& move : moves) {
    const bool fits = move.select_nats <= budget;
    const bool best_fits = best != nullptr && best->select_nats <= budget;
    if (best == nullptr || (fits && !best_fits) ||
        (fits == best_fits && is_better(move, *best, nats))) {
      best = &move;
    }
  }
  return best;
}

template <class B>
class OptimiseMeasure {
 public:
  OptimiseMeasure(const LayerStudy<B>& study, const OptimiseOptions& options,
                  const CostTable& costs, RoutedCounts<B>& counts)
      : study_(study), c_(study.context()), options_(options), costs_(costs), counts_(counts) {}

  const LayerStudy<B>& study() const { return study_; }
  const SweepContext<B>& context() const { return c_; }
  const OptimiseOptions& options() const { return options_; }
  const CostTable& costs() const { return costs_; }
  RoutedCounts<B>& counts() { return counts_; }
  const Progress& progress() const { return study_.input().progress; }

  /// Σ NLL on the select split of the model as it is, and the most that the budget allows.
  double select_baseline() const { return sum_of(c_.select->baseline); }
  double select_budget() const {
    const auto scored = static_cast<double>(c_.select->baseline.size());
    return select_baseline() + scored * nats_of_percent(options_.max_loss_percent);
  }
  double select_nats(const BlockEdits<B>& edits) {
    return sum_of(losses_of(edits, c_.select->set, "select split", false));
  }
  double select_percent(double nats) const {
    const auto scored = static_cast<double>(c_.select->baseline.size());
    return percent_of_nats((nats - select_baseline()) / scored);
  }

  /// Fills in what is known of a point from its changes and its edits.
  void measure(FoundModel<B>& found) {
    OptimisePoint& point = found.point;
    point.cost = cost_of(costs_, point.changes);
    point.cost_fraction = point.cost / cost_of(costs_, {});
    point.parameters = parameters_of(c_.model, found.edits);
    point.weight_bytes = weight_bytes_of(found.edits);
    point.select_nll_sum = select_nats(found.edits);
    point.select_delta_percent = select_percent(point.select_nll_sum);
    point.within = point.select_nll_sum <= select_budget();
    const std::vector<double> losses = losses_of(found.edits, c_.report->set, point.move, true);
    describe_routing(point);
    point.nll_sum = sum_of(losses);
    point.perplexity = perplexity_of(point.nll_sum / static_cast<double>(losses.size()));
    compare(losses, point.comparison, point.verdict);
  }

  /// Losses on the report split against the original's.
  void compare(const std::vector<double>& losses, PairedComparison& comparison,
               NonInferiorityVerdict& verdict) const {
    const PairedSums sums =
        sum_by_document(c_.report->baseline, losses, c_.report->set.document_offsets);
    comparison = compare_paired(sums, c_.options.intervals, c_.executor);
    verdict = test_non_inferiority(sums, {.percent = options_.max_loss_percent},
                                   c_.options.intervals, c_.executor)
                  .verdict;
  }

  std::vector<double> losses_of(const BlockEdits<B>& edits, const EvaluationSet& set,
                                const std::string& stage, bool counted) {
    counts_.reset();
    std::vector<double> losses = run_losses_with(
        c_.backend, c_.model, edits, set, c_.workspace, progress(), stage,
        [&](const EvaluationBatch& batch) { counts_.set_batch(counted ? &batch : nullptr); });
    counts_.set_batch(nullptr);
    return losses;
  }

  double weight_bytes_of(const BlockEdits<B>& edits) const {
    double policies = 0, bytes = 0;
    for (Index l = 0; l < c_.model.layers(); ++l) {
      const AnyMlp<B>* policy = edits.runs(l) ? &edits.mlps().mlp(c_.model, l) : edits.map_at(l);
      if (policy == nullptr) continue;
      policies += policy->cost(1).parameters;
      bytes += policy->cost(1).weight_bytes;
    }
    return bytes + (parameters_of(c_.model, edits) - policies) * sizeof(storage_t<B>);
  }

 private:
  // After the report split was run.
  void describe_routing(OptimisePoint& point) const {
    const auto scored = static_cast<double>(c_.report->baseline.size());
    for (BlockChange& change : point.changes) {
      if (!change.now.starts_with("gate-")) continue;
      change.routed = static_cast<double>(counts_.routed(change.layer)) / scored;
    }
  }

  const LayerStudy<B>& study_;
  SweepContext<B> c_;
  const OptimiseOptions& options_;
  const CostTable& costs_;
  RoutedCounts<B>& counts_;
};

/// Points from `next()` until it gives none, or as many as are wanted lie outside the budget.
template <class B, class Next>
std::vector<FoundModel<B>> follow_path(Index steps_beyond, Next&& next) {
  std::vector<FoundModel<B>> path;
  Index beyond = 0;
  while (std::optional<FoundModel<B>> found = next()) {
    const bool within = found->point.within;
    if (!within && steps_beyond == 0) break;
    path.push_back(std::move(*found));
    if (!within && ++beyond == steps_beyond) break;
  }
  return path;
}

}  // namespace detail

}  // namespace wanamaker::inline WANAMAKER_ABI
