// What a report needs of sweep.json, layer by layer.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "wanamaker/report/forest_svg.hpp"
#include "wanamaker/report/result_view.hpp"
#include "wanamaker/stats/distributions.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What a sweep says of one layer, as pictures and tables show it.
struct LayerFigures {
  std::string label{};                                 ///< the layer, counted from 0
  Estimate zero{}, mean{}, ridge{}, gate{}, random{};  ///< % of perplexity
  std::optional<double> r2{};
  std::optional<double> ridge_p_holm{};
  std::optional<double> routed{};  ///< share of positions that the logistic gate sends to the map
  std::optional<double> auc{};     ///< of the logistic gate
  std::optional<double> random_share{};  ///< that random routing sends there
  std::optional<double> share_below{};   ///< |δ| < 0.05 nats
  std::optional<double> top_share{};     ///< of Σ δ⁺ at the 10 % of positions with most
  bool unreliable = false;               ///< the linear map's interval has warnings
};

/// Δ % of perplexity with its interval.
inline Estimate estimate_of(const ResultView& variant) {
  return {variant.number("delta_percent"), variant.number("ci_low_percent"),
          variant.number("ci_high_percent")};
}

namespace detail {

/// The value of a list's item at a point, such as the share below ε = 0.05.
inline std::optional<double> value_near(const std::vector<ResultView>& list, const char* key,
                                        double wanted) {
  for (const ResultView& item : list) {
    const std::optional<double> at = item.number(key);
    if (at && std::abs(*at - wanted) < 1e-9) return item.number("value");
  }
  return std::nullopt;
}

inline std::string layer_label(const ResultView& layer) {
  const std::optional<double> number = layer.number("layer");
  return number ? count_text(number) : "?";
}

}  // namespace detail

inline std::vector<LayerFigures> layer_figures(const ResultView& sweep) {
  std::vector<LayerFigures> layers;
  for (const ResultView& layer : sweep.items("layers")) {
    const auto variant = [&](const char* name) { return layer.item("variants", "name", name); };
    const ResultView ridge = variant("ridge"), gate = variant("gate-logistic");
    const ResultView delta = layer["delta"];
    layers.push_back(
        {.label = detail::layer_label(layer),
         .zero = estimate_of(variant("zero")),
         .mean = estimate_of(variant("mean")),
         .ridge = estimate_of(ridge),
         .gate = estimate_of(gate),
         .random = estimate_of(variant("random")),
         .r2 = layer.number("r2"),
         .ridge_p_holm = ridge.number("p_holm"),
         .routed = gate.number("fraction_linear"),
         .auc = gate.number("auc"),
         .random_share = variant("random").number("fraction_linear"),
         .share_below = detail::value_near(delta.items("share_below"), "epsilon", 0.05),
         .top_share = detail::value_near(delta.items("top_share"), "fraction", 0.1),
         .unreliable = !ridge.items("warnings").empty()});
  }
  return layers;
}

/// The median of what is there.
inline std::optional<double> median_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : values[half - 1] / 2 + values[half] / 2;
}

/// Values that layers have.
template <class F>
std::vector<double> values_of(const std::vector<LayerFigures>& layers, F&& value) {
  std::vector<double> values;
  for (const LayerFigures& layer : layers) {
    if (const std::optional<double> v = value(layer)) values.push_back(*v);
  }
  return values;
}

/// Documents with which an estimate of this size would be told from a limit, one-sided at 5 %, with
/// probability 0.8: n·((z₀.₉₅ + z₀.₈)·s/(limit − value))², s the half width of the 95 % interval
/// over z₀.₉₇₅. Nothing where there is no interval or no distance.
inline std::optional<double> documents_to_tell(const Estimate& e, double limit,
                                               std::optional<double> documents) {
  if (!e.value || !e.low || !e.high || !documents || *e.value == limit) return std::nullopt;
  const double error = (*e.high - *e.low) / 2 / normal_quantile(0.975);
  const double z = normal_quantile(0.95) + normal_quantile(0.8);
  const double ratio = z * error / (limit - *e.value);
  const double needed = std::ceil(*documents * ratio * ratio);
  if (!std::isfinite(needed)) return std::nullopt;
  return std::max(2.0, needed);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
