// Counter-based random streams: the n-th number of a stream is a function of (seed, stream, n), so
// results do not depend on threads, on order or on how often a run was resumed.
// Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Ten rounds of Philox on a 128-bit counter with a 64-bit key.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {
        static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// A seeded stream; satisfies UniformRandomBitGenerator. `stream` separates independent uses of one
/// seed (layer, trial, document).
class RandomStream {
 public:
  using result_type = std::uint64_t;

  explicit constexpr RandomStream(std::uint64_t seed, std::uint64_t stream = 0)
      : seed_(seed), stream_(stream) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }

  /// The n-th 64-bit word of the stream, without moving it.
  constexpr std::uint64_t word(std::uint64_t n) const {
    const std::array<std::uint32_t, 4> block =
        philox({static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(n >> 32),
                static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
               {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    return (std::uint64_t{block[1]} << 32) | block[0];
  }

  constexpr result_type operator()() { return word(position_++); }

  /// Uniform in [0, 1), 53 bits.
  constexpr double uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

  /// Uniform integer in [0, n), without bias (rejection); n > 0.
  constexpr std::uint64_t below(std::uint64_t n) {
    const std::uint64_t limit = max() - max() % n;
    std::uint64_t x = (*this)();
    while (x >= limit) x = (*this)();
    return x % n;
  }

  /// Standard normal (Box and Muller 1958), one value per two words.
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t position_ = 0;
};

/// Fisher–Yates on anything indexable; the order is a function of the stream alone.
template <class Sequence>
void shuffle(Sequence& items, RandomStream& stream) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[static_cast<std::size_t>(stream.below(i))]);
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
