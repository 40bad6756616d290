// A pretraining run as JSON, with the keys of docs/results.md, and as a picture.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "wanamaker/io/json_writing.hpp"
#include "wanamaker/report/curve_svg.hpp"
#include "wanamaker/report/result_json.hpp"
#include "wanamaker/study/pretrain.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// pretrain.json. The curve itself is in pretrain.csv.
inline OrderedJson json_of(const PretrainResult& r) {
  const auto loss_over = [&r](std::size_t steps) {
    return mean_loss(r.curve, r.curve.size(), steps);
  };
  OrderedJson held_out = nullptr;
  if (r.held_out) {
    held_out = {{"protocol", json_of(r.held_out->protocol)},
                {"documents", r.held_out->documents},
                {"tokens", r.held_out->tokens},
                {"nll_sum", r.held_out->nll_sum},
                {"perplexity", r.held_out->perplexity},
                {"bits_per_byte", detail::json_or_null(r.held_out->bits_per_byte)}};
  }
  OrderedJson gated = OrderedJson::array();
  for (const LayerState& layer : r.gated) {
    gated.push_back({{"layer", layer.layer}, {"fraction_linear", *layer.fraction_linear}});
  }
  return {{"schema", "wanamaker/1"},
          {"command", "pretrain"},
          {"model", json_of(r.model)},
          {"mlps", r.plan.empty() ? OrderedJson(nullptr) : OrderedJson(text_of(r.plan))},
          {"gated", gated},
          {"seed", r.seed},
          {"settings_hash", r.settings_hash},
          {"documents", r.documents},
          {"corpus_tokens", r.corpus_tokens},
          {"steps", r.curve.size()},
          {"tokens", r.tokens},
          {"loss_last_50", r.curve.empty() ? OrderedJson(nullptr) : OrderedJson(loss_over(50))},
          {"held_out", held_out}};
}

/// Loss against tokens: every step, and the mean over 50.
inline std::string loss_curve_svg(const LossCurve& curve, const std::string& title) {
  Curve steps{"each step", {}, {}}, means{"mean of 50 steps", {}, {}};
  for (std::size_t i = 0; i < curve.size(); ++i) {
    steps.x.push_back(static_cast<double>(curve[i].tokens));
    steps.y.push_back(curve[i].loss);
    if (i + 1 < 50) continue;
    means.x.push_back(steps.x.back());
    means.y.push_back(mean_loss(curve, i + 1, 50));
  }
  std::vector<Curve> curves{std::move(steps)};
  if (!means.x.empty()) curves.push_back(std::move(means));
  return curve_svg(curves, {title, "tokens", "loss, nats per token"});
}

}  // namespace wanamaker::inline WANAMAKER_ABI
