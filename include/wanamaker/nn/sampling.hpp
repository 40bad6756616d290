// Choosing the next token from logits: greedy, temperature, top-k, nucleus.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/random.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// How tokens are drawn. In this order: logits are divided by the temperature, the top_k largest
/// are kept, of their distribution the nucleus top_p is kept, one of these is drawn. The defaults
/// draw from the model's own distribution.
struct SamplingOptions {
  double temperature = 1;  ///< 0: the most probable token always
  Index top_k = 0;         ///< tokens kept at most; 0: all
  /// The fewest tokens, most probable first, whose probabilities sum to at least this are kept.
  /// Holtzman et al. 2020.
  double top_p = 1;
  std::uint64_t seed = 0;
};

/// Throws ProtocolError unless temperature >= 0 and finite, top_k >= 0, 0 <= top_p <= 1.
inline void check_sampling(const SamplingOptions& options) {
  const auto refuse = [](const char* what, const char* expected, const std::string& found) {
    throw ProtocolError({.id = "protocol/sampling",
                         .where = "SamplingOptions",
                         .what = what,
                         .expected = expected,
                         .found = found,
                         .mend = "choose a value in this range"});
  };
  if (!(options.temperature >= 0 && std::isfinite(options.temperature))) {
    refuse("impossible temperature", "0 (greedy) or more", std::to_string(options.temperature));
  }
  if (options.top_k < 0) {
    refuse("impossible top-k", "0 (all) or more", std::to_string(options.top_k));
  }
  if (!(options.top_p >= 0 && options.top_p <= 1)) {
    refuse("impossible top-p", "0 to 1", std::to_string(options.top_p));
  }
}

/// Draws tokens. Memory: one entry for each logit, kept from draw to draw.
class Sampler {
 public:
  /// Throws ProtocolError as check_sampling does.
  explicit Sampler(const SamplingOptions& options) : options_(options) { check_sampling(options); }

  /// Token `position` of a run from logits [V] of the vocabulary, without padded columns: the
  /// maximum over the kept tokens i of logit_i / temperature + G(seed, position, i), with G drawn
  /// from the standard Gumbel distribution, which has the softmax of the kept logits (Gumbel 1954;
  /// Maddison et al. 2014). So a token is a function of (seed, position, logits), and two models
  /// run with one seed part only as far as their distributions do: their tokens differ with
  /// probability at most 2δ/(1 + δ) where these are δ apart in total variation (Daliri, Musco &
  /// Suresh 2024). Of equals the lowest id is taken.
  /// Throws DataError for no logits, NumericalError where one is NaN or infinitely large.
  TokenId draw(std::span<const double> logits, std::uint64_t position) {
    check_logits(logits);
    keep(logits);
    const Candidate* best = nullptr;
    double highest = -std::numeric_limits<double>::infinity();
    for (const Candidate& c : candidates_) {
      const double score = options_.temperature > 0 ? c.score + gumbel(position, c.id) : c.score;
      const bool wins = best == nullptr || score > highest || (score == highest && c.id < best->id);
      if (!wins) continue;
      best = &c;
      highest = score;
    }
    return best->id;
  }

 private:
  struct Candidate {
    double score = 0;  // (logit − largest)/temperature
    TokenId id = 0;
  };

  static bool comes_first(const Candidate& a, const Candidate& b) {
    return a.score > b.score || (a.score == b.score && a.id < b.id);
  }

  void keep(std::span<const double> logits) {
    const double largest = *std::max_element(logits.begin(), logits.end());
    const double divisor = options_.temperature > 0 ? options_.temperature : 1.0;
    candidates_.clear();
    for (std::size_t i = 0; i < logits.size(); ++i) {
      candidates_.push_back({(logits[i] - largest) / divisor, static_cast<TokenId>(i)});
    }
    if (options_.temperature == 0) return;
    keep_most_probable();
    keep_nucleus();
  }

  void keep_most_probable() {
    const std::size_t k = static_cast<std::size_t>(options_.top_k);
    if (k == 0 || k >= candidates_.size()) return;
    std::nth_element(candidates_.begin(), candidates_.begin() + options_.top_k, candidates_.end(),
                     comes_first);
    candidates_.resize(k);
  }

  void keep_nucleus() {
    if (options_.top_p >= 1) return;
    std::sort(candidates_.begin(), candidates_.end(), comes_first);
    double total = 0;
    for (const Candidate& c : candidates_) total += std::exp(c.score);
    double sum = 0;
    std::size_t kept = 0;
    while (kept < candidates_.size() && (kept == 0 || sum < options_.top_p * total)) {
      sum += std::exp(candidates_[kept++].score);
    }
    candidates_.resize(kept);
  }

  // −log(−log u), u = (n + 1/2)·2^−52 in (0, 1), exactly.
  double gumbel(std::uint64_t position, TokenId id) const {
    constexpr std::uint64_t streams_of_tokens = std::uint64_t{0x746f6b656e} << 24;
    const RandomStream stream(options_.seed, streams_of_tokens + static_cast<std::uint64_t>(id));
    const double n = static_cast<double>(stream.word(position) >> 12);
    return -std::log(-std::log((n + 0.5) * 0x1p-52));
  }

  static void check_logits(std::span<const double> logits) {
    if (logits.empty()) {
      throw DataError({.id = "data/no-logits",
                       .where = "Sampler::draw",
                       .what = "no tokens to choose from",
                       .expected = "a logit for each token of the vocabulary",
                       .found = "none",
                       .mend = "pass the logits of one position"});
    }
    const auto bad = std::find_if(logits.begin(), logits.end(), [](double x) {
      return !(x < std::numeric_limits<double>::infinity());
    });
    if (bad != logits.end()) throw_not_finite(bad - logits.begin(), *bad);
    if (*std::max_element(logits.begin(), logits.end()) > -HUGE_VAL) return;
    throw_not_finite(0, logits.front());
  }

  [[noreturn]] static void throw_not_finite(Index token, double logit) {
    throw NumericalError(
        {.id = "numeric/non-finite-logit",
         .where = "Sampler::draw, token " + std::to_string(token),
         .what = "a logit is not finite",
         .expected = "finite logits",
         .found = std::to_string(logit),
         .mend = "check the weights, or compute with --backend reference (double)"});
  }

  SamplingOptions options_;
  std::vector<Candidate> candidates_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
