// The interval of any statistic when whole documents are drawn with replacement.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/core/executor.hpp"
#include "wanamaker/stats/checks.hpp"
#include "wanamaker/stats/interval.hpp"
#include "wanamaker/stats/quantiles.hpp"
#include "wanamaker/stats/resampling.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Settings of an interval over documents.
struct DocumentBootstrapOptions {
  double level = 0.95;
  Index resamples = 2000;
  std::uint64_t seed = 0;
};

/// Percentile interval of a statistic over resampled documents.
struct DocumentInterval {
  std::optional<Interval> interval{};  ///< missing below two documents or two usable resamples
  Index usable_resamples = 0;          ///< those in which the statistic exists
};

namespace detail {

/// The number of documents, one more than the largest index. Throws DataError ("stats/document").
inline Index count_documents(std::span<const Index> documents, const char* where) {
  Index count = 0;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (documents[i] < 0 || documents[i] >= static_cast<Index>(documents.size())) {
      throw DataError({.id = "stats/document",
                       .where = std::string(where) + "(documents), element " + std::to_string(i),
                       .what = "impossible document",
                       .expected = "an index from 0 to less than the number of positions",
                       .found = std::to_string(documents[i]),
                       .mend = "number the documents from 0"});
    }
    count = std::max(count, documents[i] + 1);
  }
  return count;
}

/// statistic(weights) of every resample, weights[d] the times that document d was drawn.
template <class Statistic>
std::vector<std::optional<double>> resample_documents(Index documents, const Statistic& statistic,
                                                      const DocumentBootstrapOptions& options,
                                                      const ExecutorRef& executor) {
  constexpr Index piece_size = 64;
  std::vector<std::optional<double>> values(static_cast<std::size_t>(options.resamples));
  executor.run(blocks_of(options.resamples, piece_size), [&](Index piece) {
    std::vector<double> weights(static_cast<std::size_t>(documents));
    const Index end = std::min(options.resamples, (piece + 1) * piece_size);
    for (Index b = piece * piece_size; b < end; ++b) {
      std::fill(weights.begin(), weights.end(), 0.0);
      Resample draw(options.seed, b, documents);
      for (Index k = 0; k < documents; ++k) weights[static_cast<std::size_t>(draw())] += 1;
      values[static_cast<std::size_t>(b)] = statistic(std::span<const double>(weights));
    }
  });
  return values;
}

}  // namespace detail

/// Percentile interval (Efron 1979) of `statistic(weights)`, a std::optional<double> that counts
/// document d weights[d] times and is missing where it does not exist; it may be called from
/// several threads. `documents` names the document of each position, from 0; `where` the function
/// that asks. Results are functions of input and seed, for any executor. Throws DataError
/// ("stats/document", "stats/probability"), ProtocolError ("stats/resamples").
template <class Statistic>
DocumentInterval document_interval(std::span<const Index> documents, const Statistic& statistic,
                                   const char* where, const DocumentBootstrapOptions& options = {},
                                   const ExecutorRef& executor = {}) {
  detail::check_open_probability(options.level, std::string(where) + "(level)");
  detail::check_resamples(options.resamples, std::string(where) + "(resamples)");
  const Index count = detail::count_documents(documents, where);
  DocumentInterval result;
  if (count < 2) return result;
  std::vector<double> usable;
  for (const std::optional<double>& value :
       detail::resample_documents(count, statistic, options, executor)) {
    if (value) usable.push_back(*value);
  }
  result.usable_resamples = static_cast<Index>(usable.size());
  if (usable.size() < 2) return result;
  std::sort(usable.begin(), usable.end());
  result.interval = Interval{sorted_quantile(usable, 0.5 - 0.5 * options.level),
                             sorted_quantile(usable, 0.5 + 0.5 * options.level)};
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
