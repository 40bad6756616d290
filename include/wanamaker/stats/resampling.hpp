// Drawing documents with replacement, so that every resample is a function of its number alone.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/core/random.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// Draws are made from 32-bit words.
inline void check_drawable(Index documents, const char* where) {
  if (documents > 0 && documents <= Index{std::numeric_limits<std::uint32_t>::max()}) return;
  throw DataError({.id = "stats/documents",
                   .where = where,
                   .what = "impossible number of documents to draw from",
                   .expected = "1 to 4294967295",
                   .found = std::to_string(documents),
                   .mend = "group documents into larger clusters"});
}

}  // namespace detail

/// The draws of one resample: uniform in [0, documents), functions of (seed, resample, documents),
/// so that resamples can be made in any order on any threads, and variants measured on the same
/// documents share theirs. Unbiased (Lemire 2019). Four draws cost one Philox block; the counters
/// are apart from those of RandomStream, whose stream numbers stay below 2^63 in practice.
class Resample {
 public:
  /// Throws DataError ("stats/documents") unless 1 ≤ documents < 2^32.
  Resample(std::uint64_t seed, Index resample, Index documents)
      : seed_(seed), resample_(static_cast<std::uint64_t>(resample)) {
    detail::check_drawable(documents, "Resample(documents)");
    documents_ = static_cast<std::uint32_t>(documents);
    rejected_below_ = (0u - documents_) % documents_;  // 2^32 mod documents
  }

  /// The next draw: the upper half of word · documents, redrawn in the few cases whose lower half
  /// would favour some documents.
  Index operator()() {
    std::uint64_t product = std::uint64_t{word()} * documents_;
    while (static_cast<std::uint32_t>(product) < rejected_below_) {
      product = std::uint64_t{word()} * documents_;
    }
    return static_cast<Index>(product >> 32);
  }

 private:
  std::uint32_t word() {
    const std::size_t place = position_++ % 4;
    if (place == 0) refill();
    return block_[place];
  }

  void refill() {
    const std::uint64_t block = position_ / 4;
    block_ = philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                     static_cast<std::uint32_t>(resample_),
                     static_cast<std::uint32_t>(resample_ >> 32) | 0x80000000u},
                    {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  }

  std::uint64_t seed_;
  std::uint64_t resample_;
  std::uint64_t position_ = 0;
  std::uint32_t documents_ = 1;
  std::uint32_t rejected_below_ = 0;
  std::array<std::uint32_t, 4> block_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
