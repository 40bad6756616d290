// The paired comparison of variants with a baseline: documents are resampled with replacement, so
// that the interval says how the result would vary over other texts of the same kind.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/paired_comparison.hpp"
#include "wanamaker/stats/paired_intervals.hpp"
#include "wanamaker/stats/paired_options.hpp"
#include "wanamaker/stats/paired_sums.hpp"
#include "wanamaker/stats/paired_table.hpp"
#include "wanamaker/stats/resampling.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline bool runs_bootstrap(Index documents, const PairedOptions& options) {
  if (!options.method) return documents >= bootstrap_documents;
  return *options.method != IntervalMethod::cluster_t;
}

/// Σ over the drawn documents of each column.
inline void resample_sums(const PairedTable& table, Resample draw, std::span<double> sums) {
  std::fill(sums.begin(), sums.end(), 0.0);
  for (Index k = 0; k < table.documents; ++k) {
    const double* row = table.row(draw());
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += row[j];
  }
}

/// Δ of every variant in every resample, [variants][resamples], not sorted.
inline std::vector<std::vector<double>> resample_ratios(const PairedTable& table,
                                                        const PairedOptions& options,
                                                        const ExecutorRef& executor) {
  constexpr Index piece_size = 64;
  const std::size_t variants = static_cast<std::size_t>(table.columns) - 1;
  std::vector<std::vector<double>> ratios(
      variants, std::vector<double>(static_cast<std::size_t>(options.resamples)));
  executor.run(blocks_of(options.resamples, piece_size), [&](Index piece) {
    std::vector<double> sums(variants + 1);
    const Index end = std::min(options.resamples, (piece + 1) * piece_size);
    for (Index b = piece * piece_size; b < end; ++b) {
      resample_sums(table, Resample(options.seed, b, table.documents), sums);
      for (std::size_t v = 0; v < variants; ++v) {
        ratios[v][static_cast<std::size_t>(b)] = sums[v + 1] / sums[0];
      }
    }
  });
  return ratios;
}

inline void compare_group(std::span<const PairedSums> variants, const PairedOptions& options,
                          const ExecutorRef& executor, std::span<PairedComparison> results) {
  const PairedTable table = make_paired_table(variants);
  const bool bootstrap = table.documents > 1 && runs_bootstrap(table.documents, options);
  std::vector<std::vector<double>> ratios(variants.size());
  if (bootstrap) ratios = resample_ratios(table, options, executor);
  executor.run(static_cast<Index>(variants.size()), [&](Index v) {
    const std::size_t at = static_cast<std::size_t>(v);
    results[at] = compare_variant(table, v, variants[at], std::move(ratios[at]), options);
  });
}

}  // namespace detail

/// Compares each variant with its baseline; all variants measured on the same documents, so that
/// they share the draws. Δ = Σ d_i / Σ n_i and its interval by resampling documents (Efron 1979;
/// Koehn 2004 for paired documents): percentile, with BCa beside it, from 40 documents on,
/// cluster-t below. p-values invert that interval (bootstrap_interval.hpp). Results are functions
/// of the input and the seed, for any executor, and the same for variants compared together or
/// alone. Time: resamples × documents × variants; memory beside the input: 8 bytes × resamples × at
/// most 32. Throws ShapeError ("stats/length-mismatch", "stats/other-documents"), DataError
/// ("stats/non-finite", "stats/token-count", "stats/no-tokens", "stats/probability"),
/// ProtocolError ("stats/resamples", "stats/interval-method").
inline std::vector<PairedComparison> compare_paired(std::span<const PairedSums> variants,
                                                    const PairedOptions& options = {},
                                                    const ExecutorRef& executor = {}) {
  constexpr std::size_t group_size = 32;
  detail::check_options(options);
  for (const PairedSums& sums : variants) detail::check_paired(sums, variants.front());
  std::vector<PairedComparison> results(variants.size());
  for (std::size_t first = 0; first < variants.size(); first += group_size) {
    const std::size_t count = std::min(group_size, variants.size() - first);
    detail::compare_group(variants.subspan(first, count), options, executor,
                          std::span(results).subspan(first, count));
  }
  return results;
}

/// Compares one variant with its baseline.
inline PairedComparison compare_paired(const PairedSums& variant, const PairedOptions& options = {},
                                       const ExecutorRef& executor = {}) {
  return compare_paired(std::span(&variant, 1), options, executor).front();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
