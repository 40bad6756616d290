// Losses of several variants on the same tokens.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "wanamaker/core/third_party/xtensor.hpp"
#include "wanamaker/stats/paired_sums.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Negative log-likelihoods in nats, [variant × token]; tokens in the order of the documents.
struct TokenLosses {
  std::vector<std::string> variants;
  xt::xtensor<double, 2> losses;
  std::vector<Index> document_offsets{0};  ///< first token of each document, and the number of all

  TokenLosses() = default;
  TokenLosses(std::vector<std::string> names, std::vector<Index> offsets)
      : variants(std::move(names)),
        losses(
            std::array<std::size_t, 2>{variants.size(), static_cast<std::size_t>(offsets.back())}),
        document_offsets(std::move(offsets)) {
    losses.fill(0.0);
  }

  /// All losses of one variant.
  std::span<double> row(std::size_t variant) {
    return {losses.data() + variant * losses.shape(1), losses.shape(1)};
  }
  std::span<const double> row(std::size_t variant) const {
    return {losses.data() + variant * losses.shape(1), losses.shape(1)};
  }

  /// Sums by document of variant against baseline, both rows of this table.
  PairedSums paired(std::size_t baseline, std::size_t variant) const {
    return sum_by_document(row(baseline), row(variant), document_offsets);
  }
};

}  // namespace wanamaker::inline WANAMAKER_ABI
