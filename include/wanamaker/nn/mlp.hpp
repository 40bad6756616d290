// The MLPs that trained models have.
#pragma once

#include <algorithm>
#include <utility>

#include "wanamaker/nn/linear.hpp"
#include "wanamaker/nn/mlp_policy.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {
// Rows of a hidden layer computed at a time: bounds memory, keeps the tile in cache for the second
// product.
inline constexpr Index mlp_block_rows = 2048;
}  // namespace detail

/// y = activation(x·W₁ + b₁)·W₂ + b₂; W₁ [d × h], W₂ [h × d].
template <class B, class Activation>
class DenseMlp {
 public:
  DenseMlp() = default;
  DenseMlp(Linear<B> up, Linear<B> down) : up_(std::move(up)), down_(std::move(down)) {}

  void forward(B& backend, const_matrix_view_t<B> x, const RowContext<B>&, matrix_view_t<B> y,
               Workspace<B>& workspace) const {
    for (Index first = 0; first < x.rows; first += detail::mlp_block_rows) {
      const typename Workspace<B>::Frame frame(workspace);
      const Index count = std::min(detail::mlp_block_rows, x.rows - first);
      const matrix_view_t<B> hidden = workspace.matrix(count, up_.outputs());
      up_.forward(backend, x.middle_rows(first, count), hidden, Activation{});
      down_.forward(backend, hidden, y.middle_rows(first, count));
    }
  }

  MlpCost cost(Index tokens) const {
    return {up_.flops(tokens) + down_.flops(tokens), up_.weight_bytes() + down_.weight_bytes(),
            static_cast<double>(up_.parameters() + down_.parameters())};
  }

  const Linear<B>& up() const { return up_; }
  Linear<B>& up() { return up_; }
  const Linear<B>& down() const { return down_; }
  Linear<B>& down() { return down_; }

 private:
  Linear<B> up_{};
  Linear<B> down_{};
};

/// y = (activation(x·W_g + b_g) ∘ (x·W_u + b_u))·W_d + b_d. Shazeer 2020.
template <class B, class Activation>
class GatedLinearUnitMlp {
 public:
  GatedLinearUnitMlp() = default;
  GatedLinearUnitMlp(Linear<B> gate, Linear<B> up, Linear<B> down)
      : gate_(std::move(gate)), up_(std::move(up)), down_(std::move(down)) {}

  void forward(B& backend, const_matrix_view_t<B> x, const RowContext<B>&, matrix_view_t<B> y,
               Workspace<B>& workspace) const {
    for (Index first = 0; first < x.rows; first += detail::mlp_block_rows) {
      const typename Workspace<B>::Frame frame(workspace);
      const Index count = std::min(detail::mlp_block_rows, x.rows - first);
      const const_matrix_view_t<B> in = x.middle_rows(first, count);
      const matrix_view_t<B> gate = workspace.matrix(count, gate_.outputs());
      const matrix_view_t<B> up = workspace.matrix(count, up_.outputs());
      gate_.forward(backend, in, gate);
      up_.forward(backend, in, up);
      ops::gated_product<B>(backend, gate, up, Activation{}, gate);
      down_.forward(backend, gate, y.middle_rows(first, count));
    }
  }

  MlpCost cost(Index tokens) const {
    return {gate_.flops(tokens) + up_.flops(tokens) + down_.flops(tokens),
            gate_.weight_bytes() + up_.weight_bytes() + down_.weight_bytes(),
            static_cast<double>(gate_.parameters() + up_.parameters() + down_.parameters())};
  }

  const Linear<B>& gate() const { return gate_; }
  Linear<B>& gate() { return gate_; }
  const Linear<B>& up() const { return up_; }
  Linear<B>& up() { return up_; }
  const Linear<B>& down() const { return down_; }
  Linear<B>& down() { return down_; }

 private:
  Linear<B> gate_{};
  Linear<B> up_{};
  Linear<B> down_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
