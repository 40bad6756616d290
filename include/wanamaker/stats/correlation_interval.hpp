// Correlations whose uncertainty respects documents, and the power to see one.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "wanamaker/stats/correlation.hpp"
#include "wanamaker/stats/distributions.hpp"
#include "wanamaker/stats/document_bootstrap.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

enum class CorrelationKind { pearson, spearman };

/// A correlation and its interval over documents.
struct CorrelationEstimate {
  std::optional<double> r{};  ///< missing where a side is constant
  DocumentInterval over_documents{};
};

namespace detail {

/// Σ w d, … of one resample, about fixed centres so that nothing cancels.
inline std::optional<double> weighted_pearson(std::span<const double> dx,
                                              std::span<const double> dy,
                                              std::span<const Index> documents,
                                              std::span<const double> weights) {
  double n = 0;
  double x = 0;
  double y = 0;
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (std::size_t i = 0; i < dx.size(); ++i) {
    const double w = weights[static_cast<std::size_t>(documents[i])];
    n += w;
    x += w * dx[i];
    y += w * dy[i];
    xx += w * dx[i] * dx[i];
    yy += w * dy[i] * dy[i];
    xy += w * dx[i] * dy[i];
  }
  const double vx = xx - x * x / n;
  const double vy = yy - y * y / n;
  // What is left of squares of order n by cancellation is no variance.
  constexpr double round_off = 1e-12;
  if (!(vx > round_off * xx) || !(vy > round_off * yy)) return std::nullopt;
  return std::clamp((xy - x * y / n) / std::sqrt(vx * vy), -1.0, 1.0);
}

/// Average ranks where position i counts weights[document of i] times, centred and scaled to
/// (−½, ½).
inline void weighted_ranks(std::span<const double> values, std::span<const std::size_t> order,
                           std::span<const Index> documents, std::span<const double> weights,
                           std::span<double> ranks) {
  double total = 0;
  for (const Index d : documents) total += weights[static_cast<std::size_t>(d)];
  double below = 0;
  for (std::size_t first = 0; first < order.size();) {
    const std::size_t end = end_of_ties(values, order, first);
    double tied = 0;
    for (std::size_t place = first; place < end; ++place) {
      tied += weights[static_cast<std::size_t>(documents[order[place]])];
    }
    for (std::size_t place = first; place < end; ++place) {
      ranks[order[place]] = (below + 0.5 * tied) / total - 0.5;
    }
    below += tied;
    first = end;
  }
}

inline DocumentInterval pearson_interval(std::span<const double> x, std::span<const double> y,
                                         std::span<const Index> documents,
                                         const DocumentBootstrapOptions& options,
                                         const ExecutorRef& executor) {
  const std::vector<double> dx = scaled_deviations(x);
  const std::vector<double> dy = scaled_deviations(y);
  return document_interval(
      documents,
      [&](std::span<const double> weights) { return weighted_pearson(dx, dy, documents, weights); },
      "correlation_with_interval", options, executor);
}

inline DocumentInterval spearman_interval(std::span<const double> x, std::span<const double> y,
                                          std::span<const Index> documents,
                                          const DocumentBootstrapOptions& options,
                                          const ExecutorRef& executor) {
  const std::vector<std::size_t> order_x = ascending_order(x);
  const std::vector<std::size_t> order_y = ascending_order(y);
  return document_interval(
      documents,
      [&](std::span<const double> weights) {
        std::vector<double> rx(x.size());
        std::vector<double> ry(y.size());
        weighted_ranks(x, order_x, documents, weights, rx);
        weighted_ranks(y, order_y, documents, weights, ry);
        return weighted_pearson(rx, ry, documents, weights);
      },
      "correlation_with_interval", options, executor);
}

}  // namespace detail

/// Pearson's r or Spearman's ρ over positions, and its percentile interval when whole documents are
/// drawn with replacement; for ρ every resample is ranked anew. `documents` names the document of
/// each position, from 0. Throws ShapeError ("stats/length-mismatch"), DataError
/// ("stats/non-finite", "stats/document", "stats/probability"), ProtocolError ("stats/resamples").
inline CorrelationEstimate correlation_with_interval(std::span<const double> x,
                                                     std::span<const double> y,
                                                     std::span<const Index> documents,
                                                     CorrelationKind kind,
                                                     const DocumentBootstrapOptions& options = {},
                                                     const ExecutorRef& executor = {}) {
  detail::check_same_length(x.size(), documents.size(), "correlation_with_interval(documents)");
  const bool by_ranks = kind == CorrelationKind::spearman;
  CorrelationEstimate estimate{.r = by_ranks ? spearman_correlation(x, y)
                                             : pearson_correlation(x, y)};
  if (!estimate.r) return estimate;
  estimate.over_documents = by_ranks ? detail::spearman_interval(x, y, documents, options, executor)
                                     : detail::pearson_interval(x, y, documents, options, executor);
  return estimate;
}

/// The probability that a true correlation r of so many independent pairs is found different from 0
/// at the two-sided level α: Φ(√(n − 3)·artanh|r| − z_{1−α/2}), by Fisher's (1921) z. 0 below four
/// pairs. Throws DataError ("stats/probability").
inline double correlation_power(double r, Index pairs, double alpha = 0.05) {
  detail::check_open_probability(alpha, "correlation_power(alpha)");
  if (pairs < 4) return 0;
  if (std::abs(r) >= 1) return 1;
  const double reach = std::sqrt(static_cast<double>(pairs - 3)) * std::atanh(std::abs(r));
  return normal_cdf(reach - normal_quantile(1 - 0.5 * alpha));
}

}  // namespace wanamaker::inline WANAMAKER_ABI
