// The result of comparing a variant with the baseline on the same tokens.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/interval.hpp"
#include "wanamaker/stats/sign_test.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// How the interval of a PairedComparison was made.
enum class IntervalMethod {
  identical,   ///< the variant equals the baseline on every document: the interval is [0, 0]
  cluster_t,   ///< Student's t on the linearised ratio, m − 1 degrees of freedom
  percentile,  ///< percentile bootstrap over documents
  bca,         ///< bias-corrected and accelerated bootstrap over documents
};

/// The name of a method in result files.
constexpr std::string_view name_of(IntervalMethod method) {
  switch (method) {
    case IntervalMethod::identical:
      return "identical";
    case IntervalMethod::cluster_t:
      return "cluster-t";
    case IntervalMethod::percentile:
      return "percentile";
    case IntervalMethod::bca:
      return "bca";
  }
  return "";
}

/// Reasons to trust a PairedComparison less; a result lists each at most once.
enum class PairedWarning {
  one_document,
  few_documents,
  bootstrap_of_few_documents,
  documents_without_tokens,
  no_variation,
  dominant_document,
  bca_unavailable,
  percent_saturated,
};

/// One sentence for a report.
constexpr std::string_view describe(PairedWarning warning) {
  switch (warning) {
    case PairedWarning::one_document:
      return "only one document: no interval can be given";
    case PairedWarning::few_documents:
      return "fewer than 10 documents: the interval leans on their being alike";
    case PairedWarning::bootstrap_of_few_documents:
      return "bootstrap of fewer than 40 documents: the interval is too narrow";
    case PairedWarning::documents_without_tokens:
      return "documents without scored tokens were left out";
    case PairedWarning::no_variation:
      return "every document has the same difference per token: no interval can be given";
    case PairedWarning::dominant_document:
      return "one document holds more than half of the variance: the interval is unreliable";
    case PairedWarning::bca_unavailable:
      return "BCa is undefined here: the percentile interval stands alone";
    case PairedWarning::percent_saturated:
      return "the perplexity is beyond the range of double: the largest number stands in";
  }
  return "";
}

/// Δ of a variant against the baseline, paired by document. What cannot be known is missing, never
/// NaN. Intervals are in per cent of perplexity, at `level`.
struct PairedComparison {
  Index documents = 0;   ///< with at least one scored token
  Index tokens = 0;      ///< scored
  double level = 0.95;   ///< of all intervals here
  double null_nats = 0;  ///< what Δ is tested against

  double delta_nats = 0;                        ///< Δ = Σ d_i / Σ n_i, nats per token
  double delta_percent = 0;                     ///< 100 (exp(Δ) − 1)
  std::optional<double> baseline_perplexity{};  ///< where baseline sums were given
  std::optional<double> standard_error_nats{};  ///< of Δ, documents as clusters

  std::optional<IntervalMethod> method{};  ///< of the next four; missing where they are
  std::optional<double> ci_low_percent{};
  std::optional<double> ci_high_percent{};
  std::optional<double> p_value{};          ///< two-sided, for Δ = null
  std::optional<double> p_value_less{};     ///< one-sided, small where Δ < null
  std::optional<double> p_value_greater{};  ///< one-sided, small where Δ > null

  SignTest sign_test{};  ///< over documents, always against no difference

  std::optional<Interval> cluster_t_percent{};   ///< from 2 documents
  std::optional<Interval> percentile_percent{};  ///< where the bootstrap was run
  std::optional<Interval> bca_percent{};         ///< where the bootstrap was run

  /// For comparison only; they take tokens for independent and are too narrow or, unpaired, blind
  /// to the pairing and too wide.
  std::optional<Interval> naive_paired_percent{};
  std::optional<Interval> naive_unpaired_percent{};

  std::vector<PairedWarning> warnings{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
