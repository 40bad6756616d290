// How well a gate tells the positions where its surrogate suffices from the others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "wanamaker/stats/auc.hpp"
#include "wanamaker/stats/calibration.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Of scores on positions that the gate was not fitted on.
struct GateAssessment {
  std::optional<AucEstimate> auc{};          ///< missing where labels have one class
  DocumentInterval auc_interval{};           ///< over resampled documents; empty without them
  std::optional<Calibration> calibration{};  ///< of probabilities only
};

/// What assess_gate is to know of the scores, and how it resamples.
struct AssessmentOptions {
  bool scores_are_probabilities = false;
  Index calibration_bins = 10;
  DocumentBootstrapOptions bootstrap{};
};

/// AUC of the scores against labels (1: the surrogate suffices), its interval where `documents`
/// names each position's document, and the calibration of scores that are probabilities. Throws as
/// area_under_roc, auc_document_interval and calibrate.
inline GateAssessment assess_gate(std::span<const double> scores,
                                  std::span<const std::uint8_t> labels,
                                  std::span<const Index> documents = {},
                                  const AssessmentOptions& options = {},
                                  const ExecutorRef& executor = {}) {
  GateAssessment assessment{.auc = area_under_roc(scores, labels)};
  if (!documents.empty()) {
    assessment.auc_interval =
        auc_document_interval(scores, labels, documents, options.bootstrap, executor);
  }
  if (options.scores_are_probabilities) {
    assessment.calibration = calibrate(scores, labels, options.calibration_bins);
  }
  return assessment;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
