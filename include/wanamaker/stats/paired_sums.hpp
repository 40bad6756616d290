// What a paired comparison needs of two models' losses on the same tokens: sums by document.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/checks.hpp"
#include "wanamaker/stats/running_moments.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Moments over single tokens, in nats; only the naive intervals use them.
struct TokenMoments {
  RunningMoments baseline;
  RunningMoments variant;
  RunningMoments difference;
};

/// One element for each document, in the same order in all vectors.
struct PairedSums {
  std::vector<Index> tokens;            ///< scored tokens
  std::vector<double> difference_nats;  ///< Σ over its tokens of NLL(variant) − NLL(baseline)
  std::vector<double> baseline_nats{};  ///< Σ NLL(baseline); may be left empty
  std::optional<TokenMoments> token_level{};  ///< where single tokens are known
};

namespace detail {

inline void check_offsets(std::span<const Index> offsets, std::size_t tokens) {
  bool ascending =
      !offsets.empty() && offsets.front() == 0 && offsets.back() == static_cast<Index>(tokens);
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    ascending = ascending && offsets[i - 1] <= offsets[i];
  }
  if (ascending) return;
  throw ShapeError({.id = "stats/offsets",
                    .where = "sum_by_document(document_offsets)",
                    .what = "offsets do not divide the tokens into documents",
                    .expected = "0, …, " + std::to_string(tokens) + " in ascending order",
                    .mend = "pass the first token of each document, and the number of tokens"});
}

}  // namespace detail

/// Sums per-token losses in nats; document i has the tokens [document_offsets[i],
/// document_offsets[i + 1]), and the last offset is the number of tokens. Throws ShapeError
/// ("stats/length-mismatch", "stats/offsets"), DataError ("stats/non-finite") naming the token.
inline PairedSums sum_by_document(std::span<const double> baseline_nll,
                                  std::span<const double> variant_nll,
                                  std::span<const Index> document_offsets) {
  detail::check_same_length(baseline_nll.size(), variant_nll.size(),
                            "sum_by_document(variant_nll)");
  detail::check_offsets(document_offsets, baseline_nll.size());
  detail::check_finite(baseline_nll, "sum_by_document(baseline_nll)");
  detail::check_finite(variant_nll, "sum_by_document(variant_nll)");
  PairedSums sums;
  TokenMoments moments;
  for (std::size_t document = 0; document + 1 < document_offsets.size(); ++document) {
    double difference_sum = 0;
    double baseline_sum = 0;
    for (Index token = document_offsets[document]; token < document_offsets[document + 1];
         ++token) {
      const double baseline = baseline_nll[static_cast<std::size_t>(token)];
      const double variant = variant_nll[static_cast<std::size_t>(token)];
      difference_sum += variant - baseline;
      baseline_sum += baseline;
      moments.baseline.add(baseline);
      moments.variant.add(variant);
      moments.difference.add(variant - baseline);
    }
    sums.tokens.push_back(document_offsets[document + 1] - document_offsets[document]);
    sums.difference_nats.push_back(difference_sum);
    sums.baseline_nats.push_back(baseline_sum);
  }
  sums.token_level = moments;
  return sums;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
