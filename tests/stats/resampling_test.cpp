// Draws of documents: uniform, independent, and functions of seed and resample alone.
#include "wanamaker/stats/resampling.hpp"

#include <set>
#include <vector>

#include "testing.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

double chi_square(const std::vector<double>& counts, double expected) {
  double sum = 0;
  for (const double count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

std::vector<Index> draws(std::uint64_t seed, Index resample, Index documents, int count) {
  Resample draw(seed, resample, documents);
  std::vector<Index> result;
  for (int k = 0; k < count; ++k) result.push_back(draw());
  return result;
}

}  // namespace

TEST_CASE("draws and pairs of successive draws are uniform") {
  std::vector<double> single(7);
  std::vector<double> pairs(49);
  for (Index b = 0; b < 2000; ++b) {
    Resample draw(5, b, 7);
    for (int k = 0; k < 10; ++k) {
      const Index first = draw();
      const Index second = draw();
      ++single[static_cast<std::size_t>(first)];
      ++single[static_cast<std::size_t>(second)];
      ++pairs[static_cast<std::size_t>(first * 7 + second)];
    }
  }
  // 99.99 % points of chi-square with 6 and 48 degrees of freedom.
  CHECK(chi_square(single, 40000.0 / 7) < 27.9);
  CHECK(chi_square(pairs, 20000.0 / 49) < 92.3);
}

TEST_CASE("a number of documents that does not divide 2^32 is not favoured") {
  // Without redrawing, one residue of three would be drawn half of the time.
  constexpr Index documents = Index{3} << 30;
  std::vector<double> residues(3);
  Resample draw(6, 0, documents);
  for (int k = 0; k < 30000; ++k) {
    const Index document = draw();
    REQUIRE(document >= 0);
    REQUIRE(document < documents);
    ++residues[static_cast<std::size_t>(document % 3)];
  }
  CHECK(chi_square(residues, 10000) < 18.4);  // 99.99 %, 2 degrees of freedom
}

TEST_CASE("draws depend on seed and resample alone") {
  CHECK(draws(1, 2, 100, 50) == draws(1, 2, 100, 50));
  std::set<std::vector<Index>> different;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (Index b = 0; b < 10; ++b) different.insert(draws(seed, b, 100, 50));
  }
  CHECK(different.size() == 100);
  CHECK(draws(3, 4, 1, 5) == std::vector<Index>{0, 0, 0, 0, 0});
}

TEST_CASE("an impossible number of documents is refused") {
  CHECK(error_id([] { Resample(0, 0, 0); }) == "stats/documents");
  CHECK(error_id([] { Resample(0, 0, -3); }) == "stats/documents");
  CHECK(error_id([] { Resample(0, 0, Index{1} << 32); }) == "stats/documents");
  CHECK(error_id([] { Resample(0, 0, (Index{1} << 32) - 1)(); }) == "");
}
