// An affine map as an MLP of the kind that models have anyway, so that runtimes which know nothing
// of surrogates run it: φ(u) − φ(−u) = u for GELU in both forms, SiLU and ReLU.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "wanamaker/backend/activations.hpp"
#include "wanamaker/nn/mlp.hpp"
#include "wanamaker/surrogate/affine_map.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// True where φ(u) − φ(−u) = u: φ(u) = u·s(u) with s(u) + s(−u) = 1.
template <class Activation>
inline constexpr bool has_half_linear_odd_part =
    std::is_same_v<Activation, GeluTanh> || std::is_same_v<Activation, GeluErf> ||
    std::is_same_v<Activation, Silu> || std::is_same_v<Activation, Relu>;

/// s of stock_mlp. Larger: fewer inputs u for which a runtime that looks GELU up in a table of
/// 16-bit values (ggml: |s·u| < 10) gives it rounded, since beyond the table φ is u or 0 exactly.
/// Smaller: s·u stays within, and W/s above, what 16-bit arithmetic and storage hold. Powers of
/// two, so that s and 1/s round nothing.
struct StockScale {
  static constexpr double for_float = 1024;
  static constexpr double for_half = 16;
};

/// An MLP of few hidden units k that is to be computed beside the map, activation(x·up)·down, on
/// the host. Empty: there is none.
struct NarrowMlp {
  AffineMap gate{};  ///< [d × k], of a gated linear unit
  AffineMap up{};    ///< [d × k]
  AffineMap down{};  ///< [k × e]

  Index hidden() const { return up.outputs; }
};

namespace detail {

/// Throws ShapeError ("shape/stock-hidden").
inline void check_stock_hidden(Index hidden, Index least) {
  if (hidden >= least) return;
  throw ShapeError({.id = "shape/stock-hidden",
                    .where = "stock_mlp",
                    .what = "the MLP is too narrow to act as an affine map",
                    .expected = "at least " + std::to_string(least) + " hidden units",
                    .found = std::to_string(hidden),
                    .mend = "keep the MLP as it is in this layer"});
}

/// [rows × cols] of zeros with value at (i, first + i), i < count.
inline std::vector<double> with_diagonal(std::vector<double> matrix, Index cols, Index first,
                                         Index count, double value) {
  for (Index i = 0; i < count; ++i) matrix[static_cast<std::size_t>(i * cols + first + i)] = value;
  return matrix;
}

/// W·factor in rows first … of a matrix with the same columns.
inline void place_rows(std::vector<double>& matrix, const AffineMap& map, Index first,
                       double factor) {
  const std::size_t begin = static_cast<std::size_t>(first * map.outputs);
  for (std::size_t i = 0; i < map.weight.size(); ++i) matrix[begin + i] = factor * map.weight[i];
}

/// A layer's weight in columns first … of a matrix with as many rows and `cols` columns, its bias
/// in the same places of `bias`.
inline void place_columns(std::vector<double>& matrix, std::vector<double>& bias,
                          const AffineMap& layer, Index first) {
  const Index cols = static_cast<Index>(bias.size());
  for (Index j = 0; j < layer.outputs; ++j) {
    bias[static_cast<std::size_t>(first + j)] = layer.bias[static_cast<std::size_t>(j)];
    for (Index i = 0; i < layer.inputs; ++i) {
      matrix[static_cast<std::size_t>(i * cols + first + j)] = layer.weight_view()(i, j);
    }
  }
}

/// The narrow MLP's output weights in rows first …, its output bias added to the map's.
inline std::vector<double> place_outputs(std::vector<double>& down, const AffineMap& map,
                                         const NarrowMlp& narrow, Index first) {
  std::vector<double> bias = map.bias;
  place_rows(down, narrow.down, first, 1);
  for (std::size_t j = 0; j < narrow.down.bias.size(); ++j) bias[j] += narrow.down.bias[j];
  return bias;
}

template <Backend B>
Linear<B> linear_in_layout(B& backend, const std::vector<double>& weight, Index inputs,
                           Index outputs, WeightLayout layout, const std::vector<double>& bias) {
  if (layout == WeightLayout::in_out) {
    return linear_from_host(backend, weight, inputs, outputs, bias);
  }
  const std::vector<double> turned =
      transposed_copy(ConstMatrixView<double>(weight.data(), inputs, outputs));
  Linear<B> result = linear_from_host(backend, turned, outputs, inputs, {});
  const std::vector<scalar_t<B>> own = narrowed<scalar_t<B>>(bias);
  return {std::move(result.weight()), layout,
          matrix_from_host<scalar_t<B>>(backend, own.data(), 1, outputs)};
}

inline std::vector<double> zeros(Index count) {
  return std::vector<double>(static_cast<std::size_t>(count));
}

}  // namespace detail

/// y = xW + b as activation(x·U)·D + b with U = s·[I, −I, 0] [d × h] and D = [W; −W; 0]/s [h × e]:
/// exact but for rounding, which is some ε·|x|·|W| whatever s is. A narrow MLP is added in the
/// hidden units behind these. `hidden` is h, 2d + k at least. Throws ShapeError
/// ("shape/stock-hidden"), NumericalError for weights beyond the storage type.
template <class Activation, Backend B>
DenseMlp<B, Activation> stock_mlp(B& backend, const AffineMap& map, Index hidden,
                                  WeightLayout layout, double scale = StockScale::for_float,
                                  const NarrowMlp& narrow = {}) {
  static_assert(has_half_linear_odd_part<Activation>,
                "wanamaker: an affine map needs an activation with φ(u) − φ(−u) = u, such as GELU, "
                "SiLU or ReLU");
  const Index d = map.inputs;
  detail::check_stock_hidden(hidden, 2 * d + narrow.hidden());
  std::vector<double> up = detail::zeros(d * hidden);
  up = detail::with_diagonal(std::move(up), hidden, 0, d, scale);
  up = detail::with_diagonal(std::move(up), hidden, d, d, -scale);
  std::vector<double> up_bias = detail::zeros(hidden);
  detail::place_columns(up, up_bias, narrow.up, 2 * d);
  std::vector<double> down = detail::zeros(hidden * map.outputs);
  detail::place_rows(down, map, 0, 1 / scale);
  detail::place_rows(down, map, d, -1 / scale);
  const std::vector<double> bias = detail::place_outputs(down, map, narrow, 2 * d);
  return {detail::linear_in_layout(backend, up, d, hidden, layout, up_bias),
          detail::linear_in_layout(backend, down, hidden, map.outputs, layout, bias)};
}

/// y = xW + b as (activation(x·0 + 1) ∘ x·U)·D + b with U = [I, 0]/activation(1) and D = [W; 0]: a
/// gated linear unit whose gate is held by its bias, for runtimes that honour such biases. A narrow
/// one is added in the hidden units behind these. `hidden` is d + k at least. Throws as stock_mlp.
template <class Activation, Backend B>
GatedLinearUnitMlp<B, Activation> stock_gated_mlp(B& backend, const AffineMap& map, Index hidden,
                                                  WeightLayout layout,
                                                  const NarrowMlp& narrow = {}) {
  const Index d = map.inputs;
  detail::check_stock_hidden(hidden, d + narrow.hidden());
  std::vector<double> gate = detail::zeros(d * hidden);
  std::vector<double> gate_bias(static_cast<std::size_t>(hidden), 1.0);
  detail::place_columns(gate, gate_bias, narrow.gate, d);
  std::vector<double> up = detail::zeros(d * hidden);
  up = detail::with_diagonal(std::move(up), hidden, 0, d, 1 / Activation{}(1.0));
  std::vector<double> up_bias = detail::zeros(hidden);
  detail::place_columns(up, up_bias, narrow.up, d);
  std::vector<double> down = detail::zeros(hidden * map.outputs);
  detail::place_rows(down, map, 0, 1);
  const std::vector<double> bias = detail::place_outputs(down, map, narrow, d);
  return {detail::linear_in_layout(backend, gate, d, hidden, layout, gate_bias),
          detail::linear_in_layout(backend, up, d, hidden, layout, up_bias),
          detail::linear_in_layout(backend, down, hidden, map.outputs, layout, bias)};
}

}  // namespace wanamaker::inline WANAMAKER_ABI
