// Gates without a fit: the first position of a sequence, and the norm of a row.
#pragma once

#include <cmath>

#include "wanamaker/gate/gate.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace kernels {

/// scores[i] = 0 at the first position of a sequence, else 1.
struct AfterFirstPosition {
  ConstVectorView<TokenId> positions;
  VectorView<double> scores;
  WANAMAKER_KERNEL void operator()(Index i) const { scores[i] = positions[i] == 0 ? 0.0 : 1.0; }
};

/// scores[i] = sign·‖x_i‖.
template <class T, class U = double>
struct NormRow {
  ConstMatrixView<T> x;
  double sign;
  VectorView<U> scores;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* row = x.row(i);
    const double square = team.template sum<double>(
        x.cols, [=](Index j) { return static_cast<double>(row[j]) * static_cast<double>(row[j]); });
    if (team.leader()) scores[i] = static_cast<U>(sign * std::sqrt(square));
  }
};

}  // namespace kernels

/// The MLP for the first position of every sequence, the surrogate for all others. First positions
/// hold a model's largest activations (Sun et al. 2024), which few maps get right.
class FirstPositionGate {
 public:
  template <Backend B>
  void score(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows,
             VectorView<double> scores, Workspace<B>&) const {
    check_size(rows.positions, x.rows, "FirstPositionGate::score: positions");
    check_size(scores, x.rows, "FirstPositionGate::score: scores");
    backend.for_each(x.rows, kernels::AfterFirstPosition{rows.positions, scores});
  }
  double natural_threshold() const { return 0.5; }
  MlpCost cost(Index) const { return {}; }
};

/// Which vector's norm a NormGate takes.
enum class NormSource {
  mlp_input,  ///< after the norm: what the MLP reads
  residual    ///< the stream before it
};

/// score = ‖row‖, or −‖row‖ where small norms are to be routed. Its threshold is chosen on data.
class NormGate {
 public:
  /// width: entries of a row, for the cost.
  NormGate(Index width, NormSource source, bool routes_large_norms = true)
      : width_(width), source_(source), sign_(routes_large_norms ? 1.0 : -1.0) {}

  template <Backend B>
  void score(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows,
             VectorView<double> scores, Workspace<B>&) const {
    const const_matrix_view_t<B> measured = source_ == NormSource::mlp_input ? x : rows.residual;
    check_shape(measured, x.rows, width_, "NormGate::score: rows");
    check_size(scores, x.rows, "NormGate::score: scores");
    backend.for_each_row(x.rows, kernels::NormRow<scalar_t<B>>{measured, sign_, scores});
  }
  MlpCost cost(Index tokens) const {
    return {2.0 * static_cast<double>(width_) * static_cast<double>(tokens), 0, 0};
  }

 private:
  Index width_;
  NormSource source_;
  double sign_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
