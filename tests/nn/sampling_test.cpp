// Drawing tokens: which are kept, how often each is drawn, and what a draw depends on.
#include "wanamaker/nn/sampling.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "testing.hpp"

namespace {

using namespace wanamaker;
using wanamaker_test::error_id;

/// Not in the order of their ids, and shifted: only differences of logits count.
const std::vector<double> five_probabilities{0.10, 0.40, 0.05, 0.30, 0.15};

std::vector<double> logits_of_probabilities(const std::vector<double>& probabilities,
                                            double shift = 3.0) {
  std::vector<double> logits;
  for (const double p : probabilities) logits.push_back(std::log(p) + shift);
  return logits;
}

/// How often each token is drawn at the positions 0 … n − 1.
std::map<TokenId, double> drawn(const std::vector<double>& logits, const SamplingOptions& options,
                                int n) {
  Sampler sampler(options);
  std::map<TokenId, double> counts;
  for (int t = 0; t < n; ++t) counts[sampler.draw(logits, static_cast<std::uint64_t>(t))] += 1;
  return counts;
}

std::set<TokenId> kept(const SamplingOptions& options) {
  std::set<TokenId> ids;
  for (const auto& [id, count] :
       drawn(logits_of_probabilities(five_probabilities), options, 2000)) {
    ids.insert(id);
  }
  return ids;
}

/// Pearson's statistic against unnormalised weights by token; infinite for a token without weight.
double chi_square(const std::map<TokenId, double>& counts, const std::map<TokenId, double>& weights,
                  int n) {
  double total = 0, statistic = 0;
  for (const auto& [id, weight] : weights) total += weight;
  for (const auto& [id, count] : counts) {
    if (weights.count(id) == 0) return HUGE_VAL;
  }
  for (const auto& [id, weight] : weights) {
    const double expected = n * weight / total;
    const auto found = counts.find(id);
    const double error = (found == counts.end() ? 0 : found->second) - expected;
    statistic += error * error / expected;
  }
  return statistic;
}

// Upper 1e-6 quantiles of χ² with 2 and 4 degrees of freedom: −2·ln 1e-6, and the root of
// e^{−x/2}(1 + x/2) = 1e-6.
constexpr double quantile_of_two = 27.631021;
constexpr double quantile_of_four = 33.376842;

}  // namespace

TEST_CASE("tokens are drawn as often as softmax says, at any temperature") {
  constexpr int n = 20000;
  for (const double temperature : {1.0, 0.5, 2.0}) {
    std::map<TokenId, double> weights;
    for (std::size_t i = 0; i < five_probabilities.size(); ++i) {
      weights[static_cast<TokenId>(i)] = std::pow(five_probabilities[i], 1 / temperature);
    }
    const auto logits = logits_of_probabilities(five_probabilities);
    const auto counts = drawn(logits, {.temperature = temperature, .seed = 1}, n);
    CHECK(chi_square(counts, weights, n) < quantile_of_four);
    // The wrong temperature would be seen.
    for (auto& [id, weight] : weights) weight = std::pow(weight, 1.2);
    CHECK(chi_square(counts, weights, n) > quantile_of_four);
  }
}

TEST_CASE("over seeds, too, a position's tokens are drawn as often as softmax says") {
  constexpr int n = 20000;
  const auto logits = logits_of_probabilities(five_probabilities);
  std::map<TokenId, double> counts, weights;
  for (int seed = 0; seed < n; ++seed) {
    counts[Sampler({.seed = static_cast<std::uint64_t>(seed)}).draw(logits, 7)] += 1;
  }
  for (std::size_t i = 0; i < 5; ++i) weights[static_cast<TokenId>(i)] = five_probabilities[i];
  CHECK(chi_square(counts, weights, n) < quantile_of_four);
}

TEST_CASE("top-k keeps the k most probable, top-p the fewest that sum to p, of what is left") {
  using Ids = std::set<TokenId>;
  CHECK(kept({}) == Ids{0, 1, 2, 3, 4});
  CHECK(kept({.top_k = 5}) == Ids{0, 1, 2, 3, 4});
  CHECK(kept({.top_k = 900}) == Ids{0, 1, 2, 3, 4});
  CHECK(kept({.top_k = 3}) == Ids{1, 3, 4});
  CHECK(kept({.top_k = 1}) == Ids{1});
  CHECK(kept({.top_p = 0.39}) == Ids{1});
  CHECK(kept({.top_p = 0.41}) == Ids{1, 3});
  CHECK(kept({.top_p = 0.69}) == Ids{1, 3});
  CHECK(kept({.top_p = 0.71}) == Ids{1, 3, 4});
  CHECK(kept({.top_p = 0.96}) == Ids{0, 1, 2, 3, 4});
  // Of the three that top-k keeps, two have 0.70/0.85 = 0.82 of the probability.
  CHECK(kept({.top_k = 3, .top_p = 0.8}) == Ids{1, 3});
  CHECK(kept({.top_p = 0.8}) == Ids{1, 3, 4});
  // At half the temperature probabilities are squared: two have 0.25/0.285 = 0.88.
  CHECK(kept({.temperature = 0.5, .top_p = 0.8}) == Ids{1, 3});
  CHECK(kept({.temperature = 0.5, .top_p = 0.9}) == Ids{1, 3, 4});
}

TEST_CASE("what is kept is drawn in its own proportions") {
  constexpr int n = 20000;
  const std::map<TokenId, double> weights{{1, 0.40}, {3, 0.30}, {4, 0.15}};
  const auto logits = logits_of_probabilities(five_probabilities);
  for (const SamplingOptions options :
       {SamplingOptions{.top_k = 3}, SamplingOptions{.top_p = 0.75}}) {
    CHECK(chi_square(drawn(logits, options, n), weights, n) < quantile_of_two);
  }
}

TEST_CASE(
    "temperature 0, top-k 1 and top-p towards 0 all take the most probable, of equals the "
    "lowest id") {
  RandomStream random(9);
  const std::vector<SamplingOptions> greedy{
      {.temperature = 0}, {.temperature = 0, .top_k = 3, .top_p = 0.5},
      {.top_k = 1},       {.top_p = 0},
      {.top_p = 1e-12},   {.temperature = 5e-324}};
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> logits;
    for (int i = 0; i < 20; ++i) logits.push_back(static_cast<double>(random.below(7)));
    TokenId highest = 0;
    for (TokenId i = 1; i < 20; ++i) {
      if (logits[static_cast<std::size_t>(i)] > logits[static_cast<std::size_t>(highest)]) {
        highest = i;
      }
    }
    for (std::size_t g = 0; g < greedy.size(); ++g) {
      CAPTURE(g);
      // A temperature above 0 chooses among equals.
      if (g + 1 == greedy.size()) logits[static_cast<std::size_t>(highest)] += 0.5;
      CHECK(Sampler(greedy[g]).draw(logits, static_cast<std::uint64_t>(trial)) == highest);
    }
  }
}

TEST_CASE("a token depends on seed, position and logits, and on nothing before it") {
  const std::vector<double> logits(50, 0.0);
  Sampler sampler({.seed = 4});
  std::vector<TokenId> forwards, backwards;
  for (std::uint64_t t = 0; t < 30; ++t) forwards.push_back(sampler.draw(logits, t));
  for (std::uint64_t t = 30; t-- > 0;) backwards.insert(backwards.begin(), sampler.draw(logits, t));
  CHECK(forwards == backwards);
  Sampler other({.seed = 5});
  int equal = 0;
  for (std::uint64_t t = 0; t < 30; ++t) equal += other.draw(logits, t) == forwards[t] ? 1 : 0;
  CHECK(equal < 10);  // 0.6 expected
  CHECK(std::set<TokenId>(forwards.begin(), forwards.end()).size() > 10);
}

TEST_CASE("two models run with one seed part only as far as their distributions do") {
  constexpr int n = 20000;
  const auto one = logits_of_probabilities({0.5, 0.3, 0.2});
  const auto two = logits_of_probabilities({0.4, 0.35, 0.25}, -1.0);
  Sampler sampler({.seed = 2});
  int different = 0;
  for (std::uint64_t t = 0; t < n; ++t) {
    different += sampler.draw(one, t) != sampler.draw(two, t) ? 1 : 0;
  }
  const double distance = 0.1;  // total variation: no draws can differ less
  const double bound = 2 * distance / (1 + distance);
  CHECK(different > n * distance - 5 * std::sqrt(n * distance));
  CHECK(different < n * bound + 5 * std::sqrt(n * bound));
}

TEST_CASE("impossible options and logits are refused, by id") {
  const auto with = [](SamplingOptions options) {
    return error_id([&] { Sampler sampler(options); });
  };
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK(with({}) == "");
  CHECK(with({.temperature = -0.1}) == "protocol/sampling");
  CHECK(with({.temperature = std::nan("")}) == "protocol/sampling");
  CHECK(with({.temperature = infinite}) == "protocol/sampling");
  CHECK(with({.top_k = -1}) == "protocol/sampling");
  CHECK(with({.top_p = -0.1}) == "protocol/sampling");
  CHECK(with({.top_p = 1.1}) == "protocol/sampling");
  CHECK(with({.top_p = std::nan("")}) == "protocol/sampling");
  const auto draw = [](std::vector<double> logits) {
    return error_id([&] { Sampler({}).draw(logits, 0); });
  };
  CHECK(draw({1.0, 2.0}) == "");
  CHECK(draw({1.0, -infinite}) == "");
  CHECK(draw({}) == "data/no-logits");
  CHECK(draw({1.0, std::nan("")}) == "numeric/non-finite-logit");
  CHECK(draw({1.0, infinite}) == "numeric/non-finite-logit");
  CHECK(draw({-infinite, -infinite}) == "numeric/non-finite-logit");
}
