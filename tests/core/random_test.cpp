// Random streams: published test vectors, and moments within six standard errors (fixed seeds, so
// the outcome never changes; a right generator fails such a bound once in 5·10⁸).
#include "wanamaker/core/random.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "testing.hpp"

namespace {

using namespace wanamaker;
using Counter = std::array<std::uint32_t, 4>;

/// Is the mean of n values within six standard errors of what it should be?
bool mean_fits(double sum, double n, double expected, double variance) {
  return std::abs(sum / n - expected) <= 6.0 * std::sqrt(variance / n);
}

}  // namespace

TEST_CASE("Philox gives the vectors that its authors publish") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) ==
        Counter{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  const std::uint32_t ones = 0xffffffffu;
  CHECK(philox({ones, ones, ones, ones}, {ones, ones}) ==
        Counter{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
  CHECK(philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}) ==
        Counter{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
}

TEST_CASE("a word is a function of seed, stream and its number alone") {
  RandomStream stream(0, 0);
  CHECK(stream.word(0) == 0xe169c58d6627e8d5u);
  // Key (seed), counter (number, stream), low halves first.
  const RandomStream wide(0x0000000200000001u, 0x0000000400000003u);
  const Counter block = philox({5, 6, 3, 4}, {1, 2});
  CHECK(wide.word(0x0000000600000005u) == ((std::uint64_t{block[1]} << 32) | block[0]));
  for (std::uint64_t n = 0; n < 100; ++n) CHECK(stream() == RandomStream(0, 0).word(n));
  static_assert(std::uniform_random_bit_generator<RandomStream>);
}

TEST_CASE("streams of one seed share no word in their beginnings") {
  std::vector<std::uint64_t> words;
  for (std::uint64_t stream = 0; stream < 50; ++stream) {
    for (std::uint64_t n = 0; n < 200; ++n) words.push_back(RandomStream(7, stream).word(n));
  }
  std::sort(words.begin(), words.end());
  CHECK(std::adjacent_find(words.begin(), words.end()) == words.end());
}

TEST_CASE("uniform numbers have the moments of the uniform distribution") {
  constexpr int n = 200000;
  RandomStream random(11);
  double first = 0, second = 0, product = 0, previous = 0.5;
  bool inside = true;
  for (int i = 0; i < n; ++i) {
    const double x = random.uniform();
    inside = inside && x >= 0 && x < 1;
    first += x;
    second += x * x;
    product += (x - 0.5) * (previous - 0.5);
    previous = x;
  }
  CHECK(inside);
  CHECK(mean_fits(first, n, 1.0 / 2, 1.0 / 12));
  CHECK(mean_fits(second, n, 1.0 / 3, 1.0 / 5 - 1.0 / 9));
  CHECK(mean_fits(product, n, 0, 1.0 / 144));
}

TEST_CASE("uniform fills every sixteenth of its range equally") {
  constexpr int n = 160000;
  RandomStream random(12);
  std::array<int, 16> count{};
  for (int i = 0; i < n; ++i) ++count[static_cast<std::size_t>(random.uniform() * 16)];
  for (const int c : count) CHECK(mean_fits(c, n, 1.0 / 16, 15.0 / 256));
}

TEST_CASE("below gives every residue equally often") {
  constexpr int n = 70000;
  for (const std::uint64_t range : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{7}}) {
    RandomStream random(13, range);
    std::vector<int> count(range);
    for (int i = 0; i < n; ++i) ++count[random.below(range)];
    const double p = 1.0 / static_cast<double>(range);
    for (const int c : count) CHECK(mean_fits(c, n, p, p * (1 - p)));
  }
}

TEST_CASE("below has no bias where the range does not divide 2^64") {
  // Without rejection, residues below 2^62 would come twice as often: mean 5/12 instead of 1/2.
  const std::uint64_t range = std::uint64_t{3} << 62;
  RandomStream random(14);
  double sum = 0;
  for (int i = 0; i < 20000; ++i) {
    sum += static_cast<double>(random.below(range)) / static_cast<double>(range);
  }
  CHECK(mean_fits(sum, 20000, 0.5, 1.0 / 12));
}

TEST_CASE("normal numbers have the moments of the normal distribution") {
  constexpr int n = 200000;
  RandomStream random(15);
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  int inside = 0;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    REQUIRE(std::isfinite(x));
    m1 += x;
    m2 += x * x;
    m3 += x * x * x;
    m4 += x * x * x * x;
    inside += std::abs(x) < 1;
  }
  // Even moments of N(0, 1): 1, 3, 15, 105.
  CHECK(mean_fits(m1, n, 0, 1));
  CHECK(mean_fits(m2, n, 1, 3 - 1));
  CHECK(mean_fits(m3, n, 0, 15));
  CHECK(mean_fits(m4, n, 3, 105 - 9));
  const double p = std::erf(std::sqrt(0.5));
  CHECK(mean_fits(inside, n, p, p * (1 - p)));
}

TEST_CASE("shuffle gives every order equally often and loses nothing") {
  constexpr int n = 24000;
  std::map<std::vector<int>, int> seen;
  RandomStream random(16);
  for (int i = 0; i < n; ++i) {
    std::vector<int> items{0, 1, 2, 3};
    shuffle(items, random);
    ++seen[items];
  }
  CHECK(seen.size() == 24);
  for (const auto& [order, count] : seen) CHECK(mean_fits(count, n, 1.0 / 24, 23.0 / 576));
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  shuffle(items, random);
  CHECK(!std::is_sorted(items.begin(), items.end()));
  std::sort(items.begin(), items.end());
  for (int i = 0; i < 100; ++i) CHECK(items[static_cast<std::size_t>(i)] == i);
}
