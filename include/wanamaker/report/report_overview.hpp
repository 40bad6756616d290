// The first screen: what was found and how sure it is, in three sentences.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "wanamaker/report/claim_answers.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline std::string counted(std::size_t n, const std::string& of) {
  return std::to_string(n) + " of " + of;
}

template <class F>
std::string layers_that(const std::vector<LayerFigures>& layers, F&& has) {
  const auto n = static_cast<std::size_t>(std::count_if(layers.begin(), layers.end(), has));
  return counted(n, std::to_string(layers.size()) + " layers");
}

inline const LayerFigures* cheapest(const std::vector<LayerFigures>& layers, bool dearest) {
  const LayerFigures* best = nullptr;
  for (const LayerFigures& l : layers) {
    if (!l.ridge.value) continue;
    const bool better = best == nullptr || (dearest ? *l.ridge.value > *best->ridge.value
                                                    : *l.ridge.value < *best->ridge.value);
    if (better) best = &l;
  }
  return best;
}

inline std::string linear_phrase(const ModelResults& model) {
  const std::vector<LayerFigures> layers = layer_figures(model.result("sweep"));
  const LayerFigures *low = cheapest(layers, false), *high = cheapest(layers, true);
  if (low == nullptr) return model.name + ": single layers not measured";
  const auto median = median_of(values_of(layers, [](const auto& l) { return l.ridge.value; }));
  return model.name + " a median of " + change_text(median) + " % of perplexity (" +
         change_text(low->ridge.value) + " % at layer " + low->label + ", " +
         change_text(high->ridge.value) + " % at layer " + high->label +
         "; shown cheaper than a constant in " +
         layers_that(layers, [](const auto& l) { return shown_less(l.ridge, l.mean); }) + ")";
}

inline std::string gate_phrase(const ModelResults& model) {
  const std::vector<LayerFigures> layers = layer_figures(model.result("sweep"));
  std::string text = model.name + ": ";
  if (values_of(layers, [](const auto& l) { return l.gate.value; }).empty()) {
    text += "gates not measured";
  } else {
    text += "gates are shown to beat random routing in " +
            layers_that(layers, [](const auto& l) { return shown_less(l.gate, l.random); });
  }
  const ResultView compound = model.result("compound");
  if (!compound) return text;
  const ResultView chosen = compound.item("variants", "name", compound.text("chosen"));
  const std::string limit = figure_text(compound.number("max_loss_percent"), 1) + " %";
  if (!chosen) return text + ", and nothing tried on many layers stays within " + limit;
  const Estimate e = estimate_of(chosen);
  return text + ", and " + chosen.text("name") + " costs " + change_text(e.value) + " % " +
         range_text(e.low, e.high) + " and saves " +
         share_text(1 - chosen.number("flops_fraction_total").value_or(1)) + " of all FLOPs";
}

inline std::string certainty_phrase(const ModelResults& model) {
  const std::vector<LayerFigures> layers = layer_figures(model.result("sweep"));
  std::size_t states[3] = {};
  for (const PublishedClaim& claim : published_claims) {
    ++states[static_cast<std::size_t>(claim_answer(claim, model).state)];
  }
  std::string text = model.name + ": ";
  if (!layers.empty()) {
    text += count_text(model.result("sweep")["baseline"].number("documents")) +
            " documents tell the map's cost from 0 in " +
            layers_that(layers,
                        [](const auto& l) { return l.ridge_p_holm && *l.ridge_p_holm <= 0.05; }) +
            ", ";
  }
  return text + "published claims: " + counted(states[0], "13") + " shown, " +
         std::to_string(states[1]) + " refuted, " + std::to_string(states[2]) + " open";
}

template <class F>
std::string joined_phrases(const std::vector<ModelResults>& models, F&& phrase) {
  std::string text;
  for (const ModelResults& model : models) text += (text.empty() ? "" : "; ") + phrase(model);
  return text;
}

}  // namespace detail

/// What linear maps cost, what gates and many layers give, how sure that is. Each names every
/// model.
inline std::vector<std::string> overview_sentences(const std::vector<ModelResults>& models) {
  return {"One MLP replaced by a linear map costs " +
              detail::joined_phrases(models, detail::linear_phrase) + ".",
          "Routing and many layers at once – " +
              detail::joined_phrases(models, detail::gate_phrase) + ".",
          "How sure, by 95 % intervals paired by document – " +
              detail::joined_phrases(models, detail::certainty_phrase) + "."};
}

}  // namespace wanamaker::inline WANAMAKER_ABI
