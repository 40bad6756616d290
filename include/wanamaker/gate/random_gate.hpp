// Routing at random at a given rate: what any gate has to beat.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/gate/gate.hpp"
#include "wanamaker/stats/checks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Scores uniform in (0, 1], each a function of the seed, the layer, the whole sequence that the
/// row stands in and its position there: the same for any batching, order or number of threads.
/// Rows above 1 − rate are routed. Decided on the host, whatever the backend.
class RandomGate {
 public:
  /// Throws DataError ("stats/probability") unless 0 ≤ rate ≤ 1.
  RandomGate(double rate, std::uint64_t seed) : rate_(rate), seed_(seed) {
    detail::check_probability(rate, "RandomGate(rate)");
  }

  template <Backend B>
  void score(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows,
             VectorView<double> scores, Workspace<B>&) const {
    check_size(rows.tokens, x.rows, "RandomGate::score: tokens");
    check_size(scores, x.rows, "RandomGate::score: scores");
    const std::vector<TokenId> tokens = detail::host_copy(backend, rows.tokens);
    const std::vector<double> drawn = draw(tokens, rows.offsets, rows.layer);
    backend.copy_from_host(drawn.data(), scores.size, scores.data);
  }

  /// The scores of packed sequences; no offsets: one sequence.
  std::vector<double> draw(std::span<const TokenId> tokens, std::span<const Index> offsets,
                           Index layer) const {
    std::vector<double> scores;
    scores.reserve(tokens.size());
    const std::vector<Index> whole{0, static_cast<Index>(tokens.size())};
    if (offsets.empty()) offsets = whole;
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
      const std::size_t first = static_cast<std::size_t>(offsets[s]);
      const std::size_t count = static_cast<std::size_t>(offsets[s + 1]) - first;
      RandomStream stream(seed_, stream_of(tokens.subspan(first, count), layer));
      for (std::size_t i = 0; i < count; ++i) scores.push_back(1 - stream.uniform());
    }
    return scores;
  }

  double rate() const { return rate_; }
  double natural_threshold() const { return 1 - rate_; }
  MlpCost cost(Index) const { return {}; }

 private:
  /// A hash of the sequence and the layer (each step a Philox block of what came before).
  static std::uint64_t stream_of(std::span<const TokenId> tokens, Index layer) {
    std::uint64_t hash = static_cast<std::uint64_t>(layer);
    for (const TokenId id : tokens) {
      hash = RandomStream(hash, 0x67617465).word(static_cast<std::uint32_t>(id));
    }
    return hash;
  }

  double rate_;
  std::uint64_t seed_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
