// Values to begin training with, drawn by seed and name.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/nn/any_transformer.hpp"
#include "wanamaker/nn/backward/transformer.hpp"
#include "wanamaker/nn/parameters.hpp"
#include "wanamaker/train/parameter_selection.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// A random stream of its own for every name.
inline std::uint64_t stream_of_name(std::string_view name) {
  return std::stoull(sha256_hex(name).substr(0, 16), nullptr, 16);
}

/// Do these weights write into the residual stream?
inline bool writes_to_residual(std::string_view name, const ParameterNames& names) {
  for (const std::string_view module :
       {names.attention_output, names.mlp_down, std::string_view("affine"),
        std::string_view("low_rank_up")}) {
    if (name.ends_with("." + std::string(module) + ".weight")) return true;
  }
  return false;
}

/// Standard deviation of a parameter that decays (a matrix).
inline double initial_deviation(std::string_view name, const ModelConfig& config) {
  constexpr double deviation = 0.02;
  if (!writes_to_residual(name, parameter_names(config.family))) return deviation;
  return deviation / std::sqrt(2.0 * static_cast<double>(config.layers));
}

}  // namespace detail

/// Matrices from a normal distribution with standard deviation 0.02, those that write into the
/// residual stream 0.02/√(2L); gains of norms 1, all other vectors 0 (Radford et al. 2019). Values
/// depend on seed, name and shape of their parameter alone: models that differ in one part begin
/// with the same values elsewhere.
template <Backend B, class Model>
void initialise(B& backend, Model& model, std::uint64_t seed) {
  for (const Parameter<B>& p : parameters<B>(model)) {
    const bool is_gain = !p.decays && parameter_group(p.name) == ParameterGroup::norms &&
                         p.name.ends_with(".weight");
    std::vector<scalar_t<B>> values(static_cast<std::size_t>(p.value.size()),
                                    scalar_t<B>(is_gain ? 1 : 0));
    if (p.decays) {
      const double deviation = detail::initial_deviation(p.name, model.config());
      RandomStream random(seed, detail::stream_of_name(p.name));
      for (auto& value : values) value = static_cast<scalar_t<B>>(deviation * random.normal());
    }
    for (Index row = 0; row < p.value.rows; ++row) {
      backend.copy_from_host(values.data() + row * p.value.cols, p.value.cols, p.value.row(row));
    }
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
