// From the sums and the replicates of one variant to its PairedComparison.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/bootstrap_interval.hpp"
#include "wanamaker/stats/checks.hpp"
#include "wanamaker/stats/distributions.hpp"
#include "wanamaker/stats/interval.hpp"
#include "wanamaker/stats/paired_comparison.hpp"
#include "wanamaker/stats/paired_options.hpp"
#include "wanamaker/stats/paired_sums.hpp"
#include "wanamaker/stats/paired_table.hpp"
#include "wanamaker/stats/ratio_estimate.hpp"
#include "wanamaker/stats/sign_test.hpp"

namespace wanamaker::inline WANAMAKER_ABI::detail {

/// The interval that becomes the headline, with its p-values.
struct MethodResult {
  IntervalMethod method;
  Interval nats;
  OneSidedPValues p;
};

inline MethodResult cluster_t_result(const RatioEstimate& estimate, const PairedOptions& options) {
  const double t = (estimate.ratio - options.null_nats) / estimate.standard_error;
  const double degrees = static_cast<double>(estimate.documents - 1);
  return {IntervalMethod::cluster_t,
          cluster_t_interval(estimate, options.level),
          {.greater = student_t_cdf(-t, degrees), .less = student_t_cdf(t, degrees)}};
}

inline MethodResult bootstrap_result(IntervalMethod method, std::span<const double> ascending,
                                     BootstrapCorrection correction, Index documents,
                                     const PairedOptions& options) {
  if (options.expand) correction.degrees = static_cast<double>(documents - 1);
  return {method, bootstrap_interval(ascending, correction, options.level),
          bootstrap_p_values(ascending, correction, options.null_nats)};
}

inline void set_headline(PairedComparison& result, const MethodResult& chosen) {
  const Interval percent = percent_of_nats(chosen.nats);
  result.method = chosen.method;
  result.ci_low_percent = percent.low;
  result.ci_high_percent = percent.high;
  result.p_value = two_sided(chosen.p);
  result.p_value_less = chosen.p.less;
  result.p_value_greater = chosen.p.greater;
}

/// Where all documents agree: exactly nothing changed, or an interval cannot be had.
inline void set_without_variation(PairedComparison& result, bool identical) {
  if (!identical) {
    result.warnings.push_back(PairedWarning::no_variation);
    return;
  }
  result.method = IntervalMethod::identical;
  result.ci_low_percent = 0.0;
  result.ci_high_percent = 0.0;
  if (result.null_nats == 0) result.p_value = 1.0;
}

inline void set_bootstrap(PairedComparison& result, const RatioEstimate& estimate,
                          std::span<const double> d, std::span<const double> n,
                          std::span<const double> ascending, const PairedOptions& options) {
  const MethodResult percentile =
      bootstrap_result(IntervalMethod::percentile, ascending, {}, estimate.documents, options);
  result.percentile_percent = percent_of_nats(percentile.nats);
  set_headline(result, percentile);
  const std::optional<double> acceleration = jackknife_acceleration(estimate, d, n);
  const std::optional<BootstrapCorrection> correction =
      acceleration ? bca_correction(ascending, estimate.ratio, *acceleration) : std::nullopt;
  if (!correction) {
    result.warnings.push_back(PairedWarning::bca_unavailable);
    return;
  }
  const MethodResult bca =
      bootstrap_result(IntervalMethod::bca, ascending, *correction, estimate.documents, options);
  result.bca_percent = percent_of_nats(bca.nats);
  if (options.method == IntervalMethod::bca) set_headline(result, bca);
}

/// Intervals that take every token for independent.
inline void set_naive(PairedComparison& result, const TokenMoments& moments) {
  check_same_length(static_cast<std::size_t>(result.tokens),
                    static_cast<std::size_t>(moments.difference.count()),
                    "compare_paired(token_level)");
  const std::optional<double> paired = moments.difference.standard_error();
  const std::optional<double> baseline = moments.baseline.standard_error();
  const std::optional<double> variant = moments.variant.standard_error();
  if (!paired || !baseline || !variant) return;
  const double z = normal_quantile(0.5 + 0.5 * result.level);
  const auto around = [&](double standard_error) {
    return percent_of_nats(
        Interval{result.delta_nats - z * standard_error, result.delta_nats + z * standard_error});
  };
  result.naive_paired_percent = around(*paired);
  result.naive_unpaired_percent = around(std::hypot(*baseline, *variant));
}

inline void add_warnings(PairedComparison& result, const RatioEstimate& estimate,
                         const PairedTable& table, bool bootstrap) {
  const auto warn_if = [&result](bool condition, PairedWarning warning) {
    if (condition) result.warnings.push_back(warning);
  };
  const bool several = estimate.documents > 1;
  warn_if(!several, PairedWarning::one_document);
  warn_if(several && estimate.documents < 10, PairedWarning::few_documents);
  warn_if(several && bootstrap && estimate.documents < bootstrap_documents,
          PairedWarning::bootstrap_of_few_documents);
  warn_if(table.without_tokens > 0, PairedWarning::documents_without_tokens);
  warn_if(estimate.documents > 2 && estimate.varies && estimate.largest_variance_share > 0.5,
          PairedWarning::dominant_document);
  warn_if(std::isinf(100 * std::expm1(estimate.ratio)), PairedWarning::percent_saturated);
}

inline PairedComparison describe_estimate(const RatioEstimate& estimate, std::span<const double> d,
                                          const PairedSums& sums, const PairedOptions& options) {
  PairedComparison result{.documents = estimate.documents,
                          .tokens = static_cast<Index>(estimate.denominator),
                          .level = options.level,
                          .null_nats = options.null_nats,
                          .delta_nats = estimate.ratio,
                          .delta_percent = percent_of_nats(estimate.ratio),
                          .sign_test = sign_test(d)};
  if (!sums.baseline_nats.empty()) {
    double baseline = 0;
    for (const double nats : sums.baseline_nats) baseline += nats;
    result.baseline_perplexity =
        std::min(std::exp(baseline / estimate.denominator), std::numeric_limits<double>::max());
  }
  if (sums.token_level) set_naive(result, *sums.token_level);
  return result;
}

/// `ratios` are this variant's replicates; empty where the bootstrap was not run.
inline PairedComparison compare_variant(const PairedTable& table, Index variant,
                                        const PairedSums& sums, std::vector<double> ratios,
                                        const PairedOptions& options) {
  const std::vector<double> n = table.column(0);
  const std::vector<double> d = table.column(variant + 1);
  const RatioEstimate estimate = estimate_ratio(d, n);
  PairedComparison result = describe_estimate(estimate, d, sums, options);
  add_warnings(result, estimate, table, !ratios.empty());
  if (estimate.documents < 2) return result;
  result.standard_error_nats = estimate.standard_error;
  if (!estimate.varies) {
    set_without_variation(result, result.sign_test.ties == result.documents);
    return result;
  }
  const MethodResult cluster_t = cluster_t_result(estimate, options);
  result.cluster_t_percent = percent_of_nats(cluster_t.nats);
  if (ratios.empty()) {
    set_headline(result, cluster_t);
    return result;
  }
  std::sort(ratios.begin(), ratios.end());
  set_bootstrap(result, estimate, d, n, ratios, options);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI::detail
