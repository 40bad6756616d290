// Scores known beforehand: the δ-sorted reference, and whatever a caller computed elsewhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "wanamaker/backend/generic.hpp"
#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/gate/gate.hpp"
#include "wanamaker/gate/labels.hpp"
#include "wanamaker/stats/ranks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The scores of one batch's rows, in their order. For that batch only.
template <class B>
class PresetGate {
 public:
  PresetGate(B& backend, const std::vector<double>& scores, double natural_threshold = 0.5)
      : scores_(detail::backend_copy(backend, scores)), natural_threshold_(natural_threshold) {}

  /// Throws ShapeError where the batch has another number of rows.
  void score(B& backend, const_matrix_view_t<B> x, const RowContext<B>&, VectorView<double> scores,
             Workspace<B>&) const {
    check_size(ConstVectorView<double>(scores_.data(), scores_.size()), x.rows,
               "PresetGate::score: stored scores");
    check_size(scores, x.rows, "PresetGate::score: scores");
    const MatrixView<double> to(scores.data, scores.size, 1);
    ops::copy(backend, ConstMatrixView<double>(scores_.data(), scores_.size(), 1), to);
  }
  double natural_threshold() const { return natural_threshold_; }
  MlpCost cost(Index) const { return {}; }

 private:
  buffer_t<B, double> scores_;
  double natural_threshold_;
};

/// Which positions the δ-sorted reference routes, and what δ says that this costs. A joint δ is not
/// additive, so that the loss must still be measured, and this is a reference, not a bound.
struct OracleRouting {
  std::vector<std::uint8_t> routed{};  ///< 1: to the surrogate
  double fraction = 0;
  double delta_sum = 0;  ///< nats, Σ δ over the routed positions
};

namespace detail {

inline OracleRouting route_first(std::span<const double> delta, std::span<const std::size_t> order,
                                 std::size_t count) {
  OracleRouting routing{std::vector<std::uint8_t>(delta.size(), 0),
                        share_of(static_cast<double>(count), delta.size()), 0};
  for (std::size_t k = 0; k < count; ++k) {
    routing.routed[order[k]] = 1;
    routing.delta_sum += delta[order[k]];
  }
  return routing;
}

}  // namespace detail

/// Routes the positions of lowest δ, as many as round(fraction·n), earlier ones first among equals.
/// Throws DataError ("gate/non-finite-delta", "gate/no-positions", "stats/probability").
inline OracleRouting oracle_at_fraction(std::span<const double> delta, double fraction) {
  detail::check_deltas(delta, "oracle_at_fraction(delta)");
  detail::check_probability(fraction, "oracle_at_fraction(fraction)");
  const double count = std::round(fraction * static_cast<double>(delta.size()));
  return detail::route_first(delta, ascending_order(delta), static_cast<std::size_t>(count));
}

/// Routes every position with δ < 0: the fraction at which Σ δ is least. Throws as
/// oracle_at_fraction.
inline OracleRouting oracle_at_best(std::span<const double> delta) {
  detail::check_deltas(delta, "oracle_at_best(delta)");
  const auto below = std::count_if(delta.begin(), delta.end(), [](double d) { return d < 0; });
  return detail::route_first(delta, ascending_order(delta), static_cast<std::size_t>(below));
}

}  // namespace wanamaker::inline WANAMAKER_ABI
