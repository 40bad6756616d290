// What a fitted surrogate becomes when it stands in the MLP's place: affine, low rank, constant,
// nothing.
#pragma once

#include <utility>

#include "wanamaker/nn/linear.hpp"
#include "wanamaker/nn/mlp_policy.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// y = x·W + b; W [d × d].
template <class B>
class AffineMlp {
 public:
  AffineMlp() = default;
  explicit AffineMlp(Linear<B> map) : map_(std::move(map)) {}

  void forward(B& backend, const_matrix_view_t<B> x, const RowContext<B>&, matrix_view_t<B> y,
               Workspace<B>&) const {
    map_.forward(backend, x, y);
  }
  MlpCost cost(Index tokens) const {
    return {map_.flops(tokens), map_.weight_bytes(), static_cast<double>(map_.parameters())};
  }
  const Linear<B>& map() const { return map_; }
  Linear<B>& map() { return map_; }

 private:
  Linear<B> map_{};
};

/// y = (x·P)·Q + b; P [d × k], Q [k × d].
template <class B>
class LowRankMlp {
 public:
  LowRankMlp() = default;
  LowRankMlp(Linear<B> down, Linear<B> up) : down_(std::move(down)), up_(std::move(up)) {}

  void forward(B& backend, const_matrix_view_t<B> x, const RowContext<B>&, matrix_view_t<B> y,
               Workspace<B>& workspace) const {
    const typename Workspace<B>::Frame frame(workspace);
    const matrix_view_t<B> inner = workspace.matrix(x.rows, rank());
    down_.forward(backend, x, inner);
    up_.forward(backend, inner, y);
  }
  MlpCost cost(Index tokens) const {
    return {down_.flops(tokens) + up_.flops(tokens), down_.weight_bytes() + up_.weight_bytes(),
            static_cast<double>(down_.parameters() + up_.parameters())};
  }
  /// k.
  Index rank() const { return down_.outputs(); }
  /// P, to k columns.
  const Linear<B>& down() const { return down_; }
  Linear<B>& down() { return down_; }
  /// Q, back to d columns.
  const Linear<B>& up() const { return up_; }
  Linear<B>& up() { return up_; }

 private:
  Linear<B> down_{};
  Linear<B> up_{};
};

/// y = one vector for every row: mean ablation.
template <class B>
class MeanMlp {
 public:
  MeanMlp() = default;
  /// mean [1 × d].
  explicit MeanMlp(matrix_t<B> mean) : mean_(std::move(mean)) {}

  void forward(B& backend, const_matrix_view_t<B>, const RowContext<B>&, matrix_view_t<B> y,
               Workspace<B>&) const {
    ops::broadcast_rows(backend, mean_.vector(), y);
  }
  MlpCost cost(Index) const {
    return {0.0, static_cast<double>(mean_.size()) * sizeof(scalar_t<B>),
            static_cast<double>(mean_.size())};
  }
  /// [1 × d].
  const matrix_t<B>& mean() const { return mean_; }
  matrix_t<B>& mean() { return mean_; }

 private:
  matrix_t<B> mean_{};
};

/// y = 0: the MLP is skipped.
template <class B>
class ZeroMlp {
 public:
  void forward(B& backend, const_matrix_view_t<B>, const RowContext<B>&, matrix_view_t<B> y,
               Workspace<B>&) const {
    backend.for_each_row(y.rows, kernels::FillRow<scalar_t<B>>{scalar_t<B>(0), y});
  }
  MlpCost cost(Index) const { return {}; }
};

}  // namespace wanamaker::inline WANAMAKER_ABI
