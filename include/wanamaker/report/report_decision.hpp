// Section: where the decision lives. Probes of parts of the input, lists of tokens across corpora,
// clusters, features, single positions.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/report/line_plot_svg.hpp"
#include "wanamaker/report/report_layers.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline constexpr std::array drawn_probes = {"input",     "context", "token",
                                            "attention", "mlp",     "token-label-table"};

inline std::vector<PlotSeries> probe_series(const ResultView& probe) {
  std::vector<PlotSeries> all;
  for (std::size_t i = 0; i < drawn_probes.size(); ++i) {
    PlotSeries series;
    series.name = drawn_probes[i];
    series.style = static_cast<SeriesStyle>(i);
    for (const ResultView& layer : probe.items("layers")) {
      const auto auc = layer.item("probes", "name", drawn_probes[i]).number("auc");
      const auto number = layer.number("layer");
      if (auc && number) series.x.push_back(*number), series.y.push_back(*auc);
    }
    if (!series.x.empty()) all.push_back(series);
  }
  return all;
}

inline ReportTable probe_table(const ResultView& probe) {
  ReportTable table{
      {"layer", "part", "AUC", "95 % interval", "above the token's table", "95 % interval"}, {}};
  for (const ResultView& layer : probe.items("layers")) {
    for (const ResultView& p : layer.items("probes")) {
      const auto own = p.range("auc_interval"), above = p.range("above_token_table_interval");
      table.rows.push_back(
          {layer_label(layer), text_or_dash(p.text("name")), figure_text(p.number("auc"), 3),
           own ? "[" + figure_text(own->low, 3) + ", " + figure_text(own->high, 3) + "]" : "–",
           change_text(p.number("above_token_table"), 3),
           above ? range_text(above->low, above->high, 3) : "–"});
    }
  }
  return table;
}

inline void add_probe(ReportDocument& document, const ResultView& probe) {
  const std::string title = "Which part of the MLP's input says where the MLP is needed?";
  document.figure(
      {title,
       "",
       {line_plot_svg(probe_series(probe),
                      {.title = "", .x = "layer", .y = "AUC for δ ≤ 0", .has_zero = false})},
       "Logistic regressions on exact parts of the input, judged on documents that "
       "they have not seen; 0.5 is chance. token-label-table: all that the token alone "
       "says.",
       probe_table(probe)});
  ReportTable parts{
      {"layer", "part", "mean norm", "of the input's length", "of the gate's variance"}, {}};
  for (const ResultView& layer : probe.items("layers")) {
    for (const ResultView& p : layer.items("parts")) {
      parts.rows.push_back(
          {layer_label(layer), text_or_dash(p.text("name")), figure_text(p.number("mean_norm")),
           share_text(p.number("length_share")), share_text(p.number("gate_share"))});
    }
  }
  if (parts.rows.empty()) return;
  document.heading(4, "What each kind of part contributes");
  document.table(parts);
}

inline void add_transfer(ReportDocument& document, const ResultView& transfer) {
  ReportTable table{{"layer", "role", "from", "to", "surrogate", "r", "95 % interval", "attainable",
                     "power", "flips", "of all types", "by chance", "verdict"},
                    {}};
  for (const ResultView& layer : transfer.items("layers")) {
    for (const ResultView& p : layer.items("pairs")) {
      const auto range = p.range("pearson_interval");
      table.rows.push_back(
          {layer_label(layer), p.text("role"), p.text("from"), p.text("to"), p.text("surrogate"),
           change_text(p.number("pearson")), range ? range_text(range->low, range->high) : "–",
           figure_text(p.number("attainable")), figure_text(p.number("power")),
           share_text(p.number("listed_flips")), share_text(p.number("base_flips")),
           share_text(p.number("flips_by_chance")), text_or_dash(p.text("verdict"))});
    }
  }
  document.heading(4, "Does a list of token types by their mean δ carry over?");
  document.text(
      "Attainable: the correlation that the same truth would show between lists of this "
      "reliability. Flips: listed types whose mean δ has the other sign in the second "
      "list, beside all types and chance.",
      TextRole::note);
  document.table(table);
}

inline void add_clusters(ReportDocument& document, const ResultView& clusters) {
  ReportTable table{{"layer", "silhouette", "of δ's variance", "random groups", "95th percentile",
                     "held-out R²", "same decision", "random groups"},
                    {}};
  for (const ResultView& l : clusters.items("layers")) {
    const ResultView explained = l["delta_explained"], purity = l["decision_purity"];
    table.rows.push_back(
        {layer_label(l), figure_text(l.number("silhouette"), 3),
         share_text(explained.number("value"), 2), share_text(explained.number("random_mean"), 2),
         share_text(explained.number("random_p95"), 2),
         change_text(l.number("delta_held_out_r2"), 4), share_text(purity.number("value"), 1),
         share_text(purity.number("random_mean"), 1)});
  }
  document.heading(4, "Do positions whose inputs are alike share a δ? " +
                          count_text(clusters.number("clusters")) + " clusters");
  document.table(table);
}

inline void add_features(ReportDocument& document, const ResultView& features) {
  ReportTable table{{"layer", "features", "method", "scale", "held-out R²", "95 % interval",
                     "would be seen from", "verdict"},
                    {}};
  for (const ResultView& layer : features.items("layers")) {
    for (const ResultView& set : layer.items("sets")) {
      for (const ResultView& fit : set.items("fits")) {
        const auto range = fit.range("r2_interval");
        table.rows.push_back(
            {layer_label(layer), text_or_dash(set.text("name")), fit.text("method"),
             fit.text("scale"), change_text(fit.number("r2"), 4),
             range ? range_text(range->low, range->high, 4) : "–",
             figure_text(fit.number("detectable"), 4), text_or_dash(fit.text("verdict"))});
      }
    }
  }
  document.heading(4, "Do simple features of a position explain δ?");
  document.text(
      "Predictions for documents that were held out. before: what is known before the "
      "position is run, all that could serve a gate; hindsight: also the predicted "
      "token's.",
      TextRole::note);
  document.table(table);
}

inline std::string cost_text(const ResultView& comparison) {
  const std::string percent = change_text(comparison.number("delta_percent"));
  const auto low = comparison.number("ci_low_percent"), high = comparison.number("ci_high_percent");
  return low && high ? percent + " " + range_text(low, high) : percent;
}

inline void add_gates_of_delta(ReportDocument& document, const ResultView& marginal) {
  ReportTable table{{"layer", "the two δ (Spearman)", "share, joint δ", "share, marginal δ",
                     "cost, joint δ, %", "cost, marginal δ, %", "marginal against joint, %"},
                    {}};
  for (const ResultView& layer : marginal.items("layers")) {
    const ResultView gates = layer["gates"];
    if (!gates) continue;
    const ResultView joint = gates["joint"], own = gates["marginal"];
    table.rows.push_back({layer_label(layer), change_text(gates.number("spearman")),
                          share_text(joint.number("fraction_linear")),
                          share_text(own.number("fraction_linear")), cost_text(joint["comparison"]),
                          cost_text(own["comparison"]), cost_text(gates["difference"])});
  }
  if (table.rows.empty()) return;
  document.heading(4, "What should a gate learn from?");
  document.text(
      "Logistic gates that learned from joint δ (all positions replaced together) and from "
      "marginal δ (one alone), at equal shares of the select split.",
      TextRole::note);
  document.table(table);
}

inline void add_marginal(ReportDocument& document, const ResultView& marginal) {
  ReportTable table{{"layer", "positions", "how many", "sum of δ, nats", "of Σ |δ|", "δ ≤ 0",
                     "first order agrees (Spearman)"},
                    {}};
  for (const ResultView& layer : marginal.items("layers")) {
    for (const ResultView& g : layer.items("groups")) {
      table.rows.push_back({layer_label(layer), text_or_dash(g.text("name")),
                            count_text(g.number("positions")), change_text(g.number("delta_sum")),
                            share_text(g.number("share_of_magnitude")),
                            share_text(g.number("share_linear")),
                            figure_text(layer["agreement"].number("spearman"))});
    }
  }
  document.heading(4, "Marginal δ: one position replaced at a time");
  const std::string verdict = marginal["writers"].text("verdict");
  if (!verdict.empty()) {
    document.text(
        "Are the layers that fail those that write the large activations of first "
        "positions? " +
        verdict + " (Fisher's exact test, p = " +
        figure_text(marginal["writers"].number("p_value"), 3) + ").");
  }
  document.table(table);
  add_gates_of_delta(document, marginal);
}

inline void add_forensics(ReportDocument& document, const ResultView& forensics) {
  ReportTable table{{"layer", "to the linear map", "AUC", "token types", "logit and δ (Spearman)",
                     "function words, logit"},
                    {}};
  for (const ResultView& l : forensics.items("layers")) {
    table.rows.push_back({layer_label(l), share_text(l.number("fraction_linear")),
                          figure_text(l.number("auc"), 3), count_text(l.number("types")),
                          change_text(l.number("type_spearman")),
                          change_text(l.number("function_words"))});
  }
  document.heading(4, "A gate's direction, by tokens");
  document.text(
      "Over token types: does a higher mean logit of the gate go with a lower mean δ? Function "
      "words: their mean logit less that of others. forensics.html has the tokens at the ends of "
      "the direction, and texts to read.",
      TextRole::note);
  document.table(table);
}

}  // namespace detail

inline void add_decision(ReportDocument& document, const std::vector<ModelResults>& models) {
  document.heading(2, "Where the decision lives");
  using Part = void (*)(ReportDocument&, const ResultView&);
  const std::pair<const char*, Part> parts[] = {
      {"probe", detail::add_probe},       {"transfer", detail::add_transfer},
      {"clusters", detail::add_clusters}, {"features", detail::add_features},
      {"marginal", detail::add_marginal}, {"forensics", detail::add_forensics}};
  for (const ModelResults& model : models) {
    const bool measured = std::any_of(std::begin(parts), std::end(parts), [&](const auto& part) {
      return static_cast<bool>(model.result(part.first));
    });
    if (measured) detail::add_model_heading(document, models, model);
    for (const auto& [command, add] : parts) {
      if (const ResultView result = model.result(command)) add(document, result);
    }
  }
  std::string missing;
  for (const auto& part : parts) {
    const bool measured = std::any_of(models.begin(), models.end(), [&](const ModelResults& model) {
      return static_cast<bool>(model.result(part.first));
    });
    if (!measured) missing += (missing.empty() ? "" : ", ") + std::string(part.first);
  }
  if (!missing.empty()) document.text("Not measured: " + missing + ".", TextRole::note);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
