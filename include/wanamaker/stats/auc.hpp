// The area under the ROC curve: how well a score separates two classes, with its uncertainty.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/checks.hpp"
#include "wanamaker/stats/document_bootstrap.hpp"
#include "wanamaker/stats/ranks.hpp"
#include "wanamaker/stats/running_moments.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// An estimated AUC. The standard error takes positions for independent: within documents they are
/// not, see auc_document_interval.
struct AucEstimate {
  double auc = 0.5;  ///< P(score of a positive > score of a negative) + ½ P(equal)
  Index positives = 0;
  Index negatives = 0;
  std::optional<double> standard_error{};  ///< DeLong's; missing below two of either class
};

namespace detail {

/// Scores of one class, in the order of the input.
inline std::vector<double> scores_of_class(std::span<const double> scores,
                                           std::span<const std::uint8_t> labels,
                                           std::uint8_t label) {
  std::vector<double> chosen;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (labels[i] == label) chosen.push_back(scores[i]);
  }
  return chosen;
}

/// For each member of a class the share of the other class ranked below it: (rank among all − rank
/// in its class) / size of the other class. These are DeLong's structural components.
inline RunningMoments placements(std::span<const double> ranks_of_all,
                                 std::span<const double> scores,
                                 std::span<const std::uint8_t> labels, std::uint8_t label) {
  const std::vector<double> own_ranks = average_ranks(scores_of_class(scores, labels, label));
  const double others = static_cast<double>(scores.size() - own_ranks.size());
  RunningMoments moments;
  std::size_t next = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (labels[i] == label) moments.add((ranks_of_all[i] - own_ranks[next++]) / others);
  }
  return moments;
}

}  // namespace detail

/// AUC by ranks (Mann and Whitney 1947), ties counting half: (Σ ranks of positives − p (p + 1)/2) /
/// (p q) for p positives, q negatives; se² = var(placements of positives) / p + var(placements of
/// negatives) / q (DeLong, DeLong and Clarke-Pearson 1988; by midranks as Sun and Xu 2014). Missing
/// where a class is absent. Throws ShapeError ("stats/length-mismatch"), DataError
/// ("stats/non-finite", "stats/label").
inline std::optional<AucEstimate> area_under_roc(std::span<const double> scores,
                                                 std::span<const std::uint8_t> labels) {
  detail::check_labels(labels, scores.size(), "area_under_roc(labels)");
  const std::vector<double> ranks = average_ranks(scores);
  const RunningMoments positives = detail::placements(ranks, scores, labels, 1);
  const RunningMoments negatives = detail::placements(ranks, scores, labels, 0);
  if (positives.count() == 0 || negatives.count() == 0) return std::nullopt;
  AucEstimate estimate{
      .auc = *positives.mean(), .positives = positives.count(), .negatives = negatives.count()};
  const std::optional<double> positive_error = positives.standard_error();
  const std::optional<double> negative_error = negatives.standard_error();
  if (positive_error && negative_error) {
    estimate.standard_error = std::hypot(*positive_error, *negative_error);
  }
  return estimate;
}

namespace detail {

/// Positions in ascending order of score, with what a resample needs of each.
struct RankedPosition {
  std::size_t document = 0;
  bool positive = false;
  bool ends_tie = true;  ///< the last of the positions with its score
};

inline std::vector<RankedPosition> rank_positions(std::span<const double> scores,
                                                  std::span<const std::uint8_t> labels,
                                                  std::span<const Index> documents) {
  const std::vector<std::size_t> order = ascending_order(scores);
  std::vector<RankedPosition> ranked(order.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::size_t i = order[place];
    const bool last = place + 1 == order.size() || scores[order[place + 1]] != scores[i];
    ranked[place] = {static_cast<std::size_t>(documents[i]), labels[i] == 1, last};
  }
  return ranked;
}

/// AUC where position i counts weights[document of i] times; missing where a class is absent.
inline std::optional<double> weighted_auc(std::span<const RankedPosition> ranked,
                                          std::span<const double> weights) {
  double wins = 0;
  double negatives = 0;
  double positives = 0;
  double tied_negatives = 0;
  double tied_positives = 0;
  for (const RankedPosition& position : ranked) {
    (position.positive ? tied_positives : tied_negatives) += weights[position.document];
    if (!position.ends_tie) continue;
    wins += tied_positives * (negatives + 0.5 * tied_negatives);
    negatives += tied_negatives;
    positives += tied_positives;
    tied_negatives = 0;
    tied_positives = 0;
  }
  if (positives == 0 || negatives == 0) return std::nullopt;
  return wins / (positives * negatives);
}

}  // namespace detail

/// The interval of the AUC when whole documents are drawn with replacement: positions of one
/// document are alike, so this is wider than DeLong's where they are. `documents` names the
/// document of each position, from 0. Throws as area_under_roc, and DataError ("stats/document",
/// "stats/probability"), ProtocolError ("stats/resamples").
inline DocumentInterval auc_document_interval(std::span<const double> scores,
                                              std::span<const std::uint8_t> labels,
                                              std::span<const Index> documents,
                                              const DocumentBootstrapOptions& options = {},
                                              const ExecutorRef& executor = {}) {
  detail::check_labels(labels, scores.size(), "auc_document_interval(labels)");
  detail::check_same_length(scores.size(), documents.size(), "auc_document_interval(documents)");
  detail::check_finite(scores, "auc_document_interval(scores)");
  const std::vector<detail::RankedPosition> ranked =
      detail::rank_positions(scores, labels, documents);
  return document_interval(
      documents,
      [&](std::span<const double> weights) { return detail::weighted_auc(ranked, weights); },
      "auc_document_interval", options, executor);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
