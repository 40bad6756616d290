// How attention learns where a token stands.
#pragma once

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "wanamaker/backend/generic.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Positions were added to the embedding; attention has nothing to do.
struct LearnedPositions {
  template <class B>
  void apply(B&, ConstVectorView<TokenId>, Index, matrix_view_t<B>) const {}
};

/// Angles of rotary positions: position·θ_j with θ_j = theta^(−2j/r) / divisor_j, j = 0 … r/2 − 1.
/// Su et al. 2021. [positions × r/2], in double. Missing divisors are 1.
inline std::vector<double> rotary_angles(Index positions, Index rotary_width, double theta,
                                         const std::vector<double>& divisors = {}) {
  const Index pairs = rotary_width / 2;
  std::vector<double> angles;
  angles.reserve(static_cast<std::size_t>(positions * pairs));
  for (Index p = 0; p < positions; ++p) {
    for (Index j = 0; j < pairs; ++j) {
      const double exponent = -2.0 * static_cast<double>(j) / static_cast<double>(rotary_width);
      const auto i = static_cast<std::size_t>(j);
      const double divisor = i < divisors.size() ? divisors[i] : 1.0;
      angles.push_back(static_cast<double>(p) * (std::pow(theta, exponent) / divisor));
    }
  }
  return angles;
}

/// Rotary positions from tables [positions × r/2]; the first r entries of each head are rotated.
/// Copies share the tables, so that the layers of a model have them once.
template <class B>
class RotaryPositions {
 public:
  RotaryPositions() = default;
  RotaryPositions(matrix_t<B> cosines, matrix_t<B> sines)
      : tables_(std::make_shared<const Tables>(Tables{std::move(cosines), std::move(sines)})) {}

  /// Tables for `positions` positions from angles computed in double; cosines and sines times
  /// `magnitude`.
  static RotaryPositions from_angles(B& backend, const std::vector<double>& angles, Index positions,
                                     double magnitude = 1.0) {
    using T = scalar_t<B>;
    const Index pairs = positions > 0 ? static_cast<Index>(angles.size()) / positions : 0;
    std::vector<T> cosines;
    std::vector<T> sines;
    for (const double angle : angles) {
      cosines.push_back(static_cast<T>(magnitude * std::cos(angle)));
      sines.push_back(static_cast<T>(magnitude * std::sin(angle)));
    }
    return {matrix_from_host<T>(backend, cosines.data(), positions, pairs),
            matrix_from_host<T>(backend, sines.data(), positions, pairs)};
  }

  /// Rotates x [T × heads·head_width] in place; positions [T] below the table's rows.
  void apply(B& backend, ConstVectorView<TokenId> positions, Index heads,
             matrix_view_t<B> x) const {
    ops::rotate_positions(backend, tables_->cosines.view(), tables_->sines.view(), positions, heads,
                          x);
  }

  /// [positions × r/2].
  const_matrix_view_t<B> cosines() const { return tables_->cosines.view(); }
  const_matrix_view_t<B> sines() const { return tables_->sines.view(); }

 private:
  struct Tables {
    matrix_t<B> cosines{};
    matrix_t<B> sines{};
  };
  std::shared_ptr<const Tables> tables_ = std::make_shared<const Tables>();
};

}  // namespace wanamaker::inline WANAMAKER_ABI
