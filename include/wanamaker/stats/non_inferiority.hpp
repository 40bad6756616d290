// Is a variant no worse than the baseline by more than a margin that was stated beforehand? Failing
// to find a difference is not evidence of none; this test asks for the evidence.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/checks.hpp"
#include "wanamaker/stats/distributions.hpp"
#include "wanamaker/stats/interval.hpp"
#include "wanamaker/stats/paired_bootstrap.hpp"
#include "wanamaker/stats/paired_comparison.hpp"
#include "wanamaker/stats/paired_options.hpp"
#include "wanamaker/stats/paired_sums.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What is tolerated, fixed before the data are seen.
struct NonInferiorityMargin {
  double percent = 1;   ///< of perplexity, ≥ 0; 0 asks for superiority
  double alpha = 0.05;  ///< one-sided, below ½
};

/// What the data say of "Δ % < margin".
enum class NonInferiorityVerdict {
  non_inferior,  ///< shown: the upper bound is below the margin
  inferior,      ///< refuted: the lower bound is above the margin
  undecided,     ///< the interval holds the margin: more documents are needed
  no_interval,   ///< no interval can be had, see the comparison's warnings
};

/// The name of a verdict in result files.
constexpr std::string_view name_of(NonInferiorityVerdict verdict) {
  switch (verdict) {
    case NonInferiorityVerdict::non_inferior:
      return "non-inferior";
    case NonInferiorityVerdict::inferior:
      return "inferior";
    case NonInferiorityVerdict::undecided:
      return "undecided";
    case NonInferiorityVerdict::no_interval:
      return "no interval";
  }
  return "";
}

/// Whether a cost is shown to lie below a margin, and how sure that is.
struct NonInferiorityResult {
  NonInferiorityMargin margin{};
  NonInferiorityVerdict verdict = NonInferiorityVerdict::no_interval;
  std::optional<double> p_value{};  ///< one-sided, of "Δ % ≥ margin"
  /// Documents like these that would show it with probability 0.8 if Δ is as estimated; missing
  /// where the estimate is not below the margin.
  std::optional<Index> documents_needed{};
  /// At level 1 − 2α, so that either end of its interval is a one-sided bound at 1 − α.
  PairedComparison comparison{};
};

namespace detail {

inline void check_margin(const NonInferiorityMargin& margin) {
  check_open_probability(2 * margin.alpha, "test_non_inferiority(2 alpha)");
  if (margin.percent >= 0 && margin.percent <= largest_value) return;
  throw ProtocolError({.id = "stats/margin",
                       .where = "test_non_inferiority(margin)",
                       .what = "impossible margin",
                       .expected = "a percentage of at least 0",
                       .found = number_text(margin.percent),
                       .mend = "state how much worse the variant may be, for example 1"});
}

inline NonInferiorityVerdict verdict_of(const PairedComparison& comparison, double margin_percent) {
  if (!comparison.ci_low_percent || !comparison.ci_high_percent) {
    return NonInferiorityVerdict::no_interval;
  }
  if (*comparison.ci_high_percent < margin_percent) return NonInferiorityVerdict::non_inferior;
  if (*comparison.ci_low_percent > margin_percent) return NonInferiorityVerdict::inferior;
  return NonInferiorityVerdict::undecided;
}

/// m ((z_{1−α} + z_{0.8}) se / (margin − Δ))², the normal sample size; se² falls as 1 / m.
inline std::optional<Index> documents_needed(const PairedComparison& comparison, double alpha) {
  const double distance = comparison.null_nats - comparison.delta_nats;
  if (!comparison.standard_error_nats || distance <= 0) return std::nullopt;
  const double z = normal_quantile(1 - alpha) + normal_quantile(0.8);
  const double ratio = z * *comparison.standard_error_nats / distance;
  const double needed = std::ceil(static_cast<double>(comparison.documents) * ratio * ratio);
  if (!(needed < 1e15)) return std::nullopt;
  return needed < 2 ? Index{2} : static_cast<Index>(needed);
}

}  // namespace detail

/// Tests "Δ % ≥ margin" against "Δ % < margin", one-sided at α, by the interval of compare_paired
/// at level 1 − 2α (Piaggio et al. 2012; Westlake 1981). `options.level` and `options.null_nats`
/// are set by the margin. Throws what compare_paired throws, and ProtocolError ("stats/margin").
inline NonInferiorityResult test_non_inferiority(const PairedSums& variant,
                                                 const NonInferiorityMargin& margin,
                                                 PairedOptions options = {},
                                                 const ExecutorRef& executor = {}) {
  detail::check_margin(margin);
  options.level = 1 - 2 * margin.alpha;
  options.null_nats = nats_of_percent(margin.percent);
  NonInferiorityResult result{.margin = margin,
                              .comparison = compare_paired(variant, options, executor)};
  result.verdict = detail::verdict_of(result.comparison, margin.percent);
  result.p_value = result.comparison.p_value_less;
  result.documents_needed = detail::documents_needed(result.comparison, margin.alpha);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
