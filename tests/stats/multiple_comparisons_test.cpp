// Holm and Benjamini–Hochberg by hand, against statsmodels, and with missing values.
#include "wanamaker/stats/multiple_comparisons.hpp"

#include <limits>
#include <vector>

#include "stats/reference_values.hpp"
#include "testing.hpp"
#include "wanamaker/core/random.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

std::vector<OptionalPValue> optional(const std::vector<double>& p) {
  return {p.begin(), p.end()};
}

std::vector<double> present(const std::vector<OptionalPValue>& p) {
  std::vector<double> values;
  for (const OptionalPValue& value : p) values.push_back(value.value());
  return values;
}

}  // namespace

TEST_CASE("Holm by hand") {
  // Ascending 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1: 0.04, 0.06, 0.06, 0.04 → never falling.
  const std::vector<double> adjusted = present(holm_adjusted(optional({0.03, 0.01, 0.04, 0.02})));
  CHECK(all_close(adjusted, std::vector{0.06, 0.04, 0.06, 0.06}, 1e-15, 0));
}

TEST_CASE("Benjamini–Hochberg by hand") {
  // Ascending 0.01, 0.02, 0.03, 0.5 times 4/1, 4/2, 4/3, 1: 0.04, 0.04, 0.04, 0.5.
  CHECK(all_close(present(benjamini_hochberg_adjusted(optional({0.5, 0.02, 0.01, 0.03}))),
                  std::vector{0.5, 0.04, 0.04, 0.04}, 1e-15, 0));
  // 0.01 · 3 = 0.03, 0.04 · 3/2 = 0.06 but 0.05 · 1 = 0.05 holds it down.
  CHECK(all_close(present(benjamini_hochberg_adjusted(optional({0.01, 0.04, 0.05}))),
                  std::vector{0.03, 0.05, 0.05}, 1e-15, 0));
}

TEST_CASE("adjusted p-values agree with statsmodels") {
  const auto p = optional(recorded("adjusted", "p"));
  // One or two roundings on either side.
  CHECK(all_close(present(holm_adjusted(p)), recorded("adjusted", "holm"), 1e-15, 0));
  CHECK(all_close(present(benjamini_hochberg_adjusted(p)), recorded("adjusted", "bh"), 1e-15, 0));
}

TEST_CASE("missing p-values stay missing and do not enlarge the family") {
  const std::vector<OptionalPValue> p{0.01, std::nullopt, 0.03};
  const std::vector<OptionalPValue> holm{0.02, std::nullopt, 0.03};
  CHECK(holm_adjusted(p) == holm);
  const std::vector<OptionalPValue> bh{0.02, std::nullopt, 0.03};
  CHECK(benjamini_hochberg_adjusted(p) == bh);
  const std::vector<OptionalPValue> none(3);
  CHECK(holm_adjusted(none) == none);
  CHECK(holm_adjusted({}).empty());
  CHECK(benjamini_hochberg_adjusted({}).empty());
}

TEST_CASE("adjustment keeps the order, never lowers p and never exceeds 1") {
  RandomStream random(21);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<OptionalPValue> p;
    for (int i = 0; i < 30; ++i) p.push_back(random.uniform() * random.uniform());
    const auto holm = holm_adjusted(p);
    const auto bh = benjamini_hochberg_adjusted(p);
    for (std::size_t i = 0; i < p.size(); ++i) {
      CHECK(*bh[i] >= *p[i]);
      CHECK(*holm[i] >= *bh[i]);
      CHECK(*holm[i] <= 1);
      for (std::size_t j = 0; j < p.size(); ++j) {
        if (*p[i] <= *p[j]) CHECK((*holm[i] <= *holm[j] && *bh[i] <= *bh[j]));
      }
    }
  }
}

TEST_CASE("what is not a p-value is refused by its place") {
  for (const double bad : {not_a_number, -0.1, 1.1}) {
    const std::vector<OptionalPValue> p{0.5, bad};
    CHECK(error_id([&] { holm_adjusted(p); }) == "stats/probability");
    CHECK(error_id([&] { benjamini_hochberg_adjusted(p); }) == "stats/probability");
    CHECK_THROWS_WITH_AS(holm_adjusted(p), doctest::Contains("element 1"), DataError);
  }
}
