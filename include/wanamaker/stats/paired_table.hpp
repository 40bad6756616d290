// The checked input of a paired comparison, laid out for resampling.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/checks.hpp"
#include "wanamaker/stats/paired_sums.hpp"

namespace wanamaker::inline WANAMAKER_ABI::detail {

/// The documents with scored tokens, checked: one row [tokens, d of each variant] for each, so that
/// a draw reads one place in memory.
struct PairedTable {
  Index documents = 0;
  Index without_tokens = 0;
  Index columns = 1;
  std::vector<double> values{};  // [documents × columns]

  const double* row(Index document) const { return values.data() + document * columns; }

  std::vector<double> column(Index j) const {
    std::vector<double> result;
    result.reserve(static_cast<std::size_t>(documents));
    for (Index i = 0; i < documents; ++i) result.push_back(row(i)[j]);
    return result;
  }
};

inline void check_tokens(const PairedSums& sums) {
  Index total = 0;
  for (std::size_t i = 0; i < sums.tokens.size(); ++i) {
    const bool impossible = sums.tokens[i] < 0 || sums.tokens[i] > (Index{1} << 52) - total;
    if (impossible || (sums.tokens[i] == 0 && sums.difference_nats[i] != 0)) {
      throw DataError({.id = "stats/token-count",
                       .where = "compare_paired(tokens), element " + std::to_string(i),
                       .what = "impossible number of tokens",
                       .expected = "at least 1 where there is a loss, 2^52 over all documents",
                       .found = std::to_string(sums.tokens[i]),
                       .mend = "count the tokens whose losses were summed"});
    }
    total += sums.tokens[i];
  }
  if (total > 0) return;
  throw DataError({.id = "stats/no-tokens",
                   .where = "compare_paired(tokens)",
                   .what = "no scored tokens",
                   .expected = "at least one document with a scored token",
                   .found = std::to_string(sums.tokens.size()) + " documents",
                   .mend = "use a longer text or a shorter window"});
}

inline void check_paired(const PairedSums& sums, const PairedSums& first) {
  check_same_length(sums.tokens.size(), sums.difference_nats.size(),
                    "compare_paired(difference_nats)");
  if (!sums.baseline_nats.empty()) {
    check_same_length(sums.tokens.size(), sums.baseline_nats.size(),
                      "compare_paired(baseline_nats)");
  }
  check_finite(sums.difference_nats, "compare_paired(difference_nats)");
  check_finite(sums.baseline_nats, "compare_paired(baseline_nats)");
  check_tokens(sums);
  if (sums.tokens == first.tokens) return;
  throw ShapeError({.id = "stats/other-documents",
                    .where = "compare_paired(variants)",
                    .what = "variants were not measured on the same documents",
                    .expected = "the same token counts for every variant",
                    .mend = "compare variants of one protocol and one text"});
}

inline PairedTable make_paired_table(std::span<const PairedSums> variants) {
  PairedTable table{.columns = static_cast<Index>(variants.size()) + 1};
  const std::vector<Index>& tokens = variants.front().tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == 0) {
      ++table.without_tokens;
      continue;
    }
    ++table.documents;
    table.values.push_back(static_cast<double>(tokens[i]));
    for (const PairedSums& sums : variants) table.values.push_back(sums.difference_nats[i]);
  }
  return table;
}

}  // namespace wanamaker::inline WANAMAKER_ABI::detail
