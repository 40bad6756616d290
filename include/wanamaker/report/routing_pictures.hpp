// The experiments on the routing decision as pictures: one figure of each layer against its number.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/report/curve_svg.hpp"
#include "wanamaker/report/routing_tables.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// value(layer), a std::optional<double>, of every layer; a gap where there is none.
template <class Layer, class Value>
Curve curve_over_layers(std::string name, const std::vector<Layer>& layers, const Value& value) {
  Curve curve{std::move(name), {}, {}};
  for (const Layer& layer : layers) {
    const std::optional<double> y = value(layer);
    curve.x.push_back(static_cast<double>(layer.layer));
    curve.y.push_back(y.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  return curve;
}

inline bool has_points(const Curve& curve) {
  for (const double y : curve.y) {
    if (std::isfinite(y)) return true;
  }
  return false;
}

/// Curves of nothing but gaps left out.
inline std::string layers_svg(std::vector<Curve> curves, const std::string& title,
                              const std::string& y) {
  std::vector<Curve> shown;
  for (Curve& curve : curves) {
    if (has_points(curve)) shown.push_back(std::move(curve));
  }
  return curve_svg(shown, {title, "layer", y});
}

}  // namespace detail

/// AUC by layer of what a gate may see.
inline std::string probe_svg(const ProbeResult& result) {
  const std::pair<const char*, const char*> shown[] = {
      {"input", "whole input"}, {"context", "context"}, {"attention", "attention"},
      {"mlp", "earlier MLPs"},  {"token", "token"},     {"token-label-table", "table by token"}};
  std::vector<Curve> curves;
  for (const auto& [name, title] : shown) {
    curves.push_back(detail::curve_over_layers(
        title, result.layers, [name = name](const ProbeLayer& l) -> std::optional<double> {
          const ProbeScore* probe = detail::named(l.probes, name);
          return probe == nullptr || !probe->auc ? std::nullopt : std::optional(probe->auc->auc);
        }));
  }
  return detail::layers_svg(std::move(curves),
                            result.model.name + ": what tells where the linear map does",
                            "AUC of δ ≤ 0");
}

/// Share of δ's variance that clusters hold, beside chance, and what their means predict.
inline std::string clusters_svg(const ClustersResult& result) {
  const auto value = [](const ClusterLayer& l) -> std::optional<double> {
    return l.delta_explained ? std::optional(l.delta_explained->value) : std::nullopt;
  };
  const auto chance = [](const ClusterLayer& l) -> std::optional<double> {
    return l.delta_explained ? std::optional(l.delta_explained->random_p95) : std::nullopt;
  };
  return detail::layers_svg(
      {detail::curve_over_layers("between clusters", result.layers, value),
       detail::curve_over_layers("random, 95 %", result.layers, chance),
       detail::curve_over_layers("R² on other documents", result.layers,
                                 [](const ClusterLayer& l) { return l.delta_held_out_r2; })},
      result.model.name + ": δ by clusters of MLP inputs", "share of δ's variance");
}

/// Correlations of lists by input token, and what equal lists would show.
inline std::string transfer_svg(const TransferResult& result) {
  std::vector<Curve> curves;
  if (result.layers.empty()) return detail::layers_svg({}, result.model.name, "correlation");
  const std::vector<ListPair>& pairs = result.layers.front().pairs;
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    if (pairs[p].role != TokenRole::input || pairs[p].surrogate != "same") continue;
    const std::string name = pairs[p].from + " – " + pairs[p].to;
    const auto comparison = [p](const TransferLayer& l) -> const ListComparison* {
      return p < l.pairs.size() ? &l.pairs[p].comparison : nullptr;
    };
    curves.push_back(detail::curve_over_layers(
        name, result.layers, [comparison](const TransferLayer& l) -> std::optional<double> {
          const ListComparison* c = comparison(l);
          return c == nullptr ? std::nullopt : c->pearson;
        }));
    curves.push_back(detail::curve_over_layers(
        name + ", attainable", result.layers,
        [comparison](const TransferLayer& l) -> std::optional<double> {
          const ListComparison* c = comparison(l);
          return c == nullptr ? std::nullopt : std::optional(c->attainable);
        }));
  }
  return detail::layers_svg(std::move(curves), result.model.name + ": lists by input token",
                            "correlation of mean δ over tokens");
}

/// R² of ranks of δ on documents held out, by what is known.
inline std::string features_svg(const FeaturesResult& result) {
  std::vector<Curve> curves;
  for (const char* set : {"input", "position", "before", "target", "hindsight", "comparison"}) {
    curves.push_back(detail::curve_over_layers(
        set, result.layers, [set](const FeaturesLayer& l) -> std::optional<double> {
          const FeatureFit* fit = detail::fit_of(l, set, "boosted-trees", "rank");
          return fit == nullptr ? std::nullopt : fit->r2;
        }));
  }
  return detail::layers_svg(std::move(curves),
                            result.model.name + ": δ by what is known of a position (trees)",
                            "R² of the rank of δ, held out");
}

/// Where Σ|δ| lies, and how far first order may be trusted.
inline std::string marginal_svg(const MarginalResult& result) {
  std::vector<Curve> curves;
  const std::pair<const char*, const char*> groups[] = {{"first", "first positions: share of |δ|"},
                                                        {"sinks", "sinks: share of |δ|"}};
  for (const auto& [group, title] : groups) {
    curves.push_back(detail::curve_over_layers(
        title, result.layers, [group = group](const MarginalLayer& l) -> std::optional<double> {
          const MarginalGroup* found = detail::group_named(l, group);
          return found == nullptr ? std::nullopt : found->share_of_magnitude;
        }));
  }
  curves.push_back(detail::curve_over_layers(
      "large δ with the exact sign", result.layers,
      [](const MarginalLayer& l) { return l.agreement.large_same_sign; }));
  curves.push_back(
      detail::curve_over_layers("rank correlation with exact δ", result.layers,
                                [](const MarginalLayer& l) { return l.agreement.spearman; }));
  return detail::layers_svg(std::move(curves),
                            result.model.name + ": δ of single positions, to first order",
                            "share, or correlation");
}

}  // namespace wanamaker::inline WANAMAKER_ABI
