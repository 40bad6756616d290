// Fine-tuning experiments for people: the verdict first, then comparisons and points; CSV files and
// a picture of the losses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/report/curve_svg.hpp"
#include "wanamaker/report/result_tables.hpp"
#include "wanamaker/report/text_table.hpp"
#include "wanamaker/study/finetune_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline std::string contrast_text(const FinetuneComparison& c) {
  return std::string(name_of(c.verdict)) + " against " + text_of(c.contrast.control) + " (" +
         std::string(name_of(c.contrast.kind)) + "): " + signed_text(c.documents.delta_percent, 2) +
         " % perplexity, interval " + interval_text(c.documents);
}

/// The contrast on unseen text that decides: the first that is worse, else the first that is not
/// better, else the first.
inline const FinetuneComparison* deciding_contrast(const FinetuneResult& r,
                                                   const PointName& point) {
  const FinetuneComparison* deciding = nullptr;
  int rank = -1;
  for (const FinetuneComparison& c : r.comparisons) {
    if (!(c.contrast.treated == point) || c.text != unseen_text) continue;
    const int own = c.verdict == ContrastVerdict::worse       ? 2
                    : c.verdict == ContrastVerdict::undecided ? 1
                                                              : 0;
    if (own <= rank) continue;
    rank = own;
    deciding = &c;
  }
  return deciding;
}

inline std::string interval_text(const std::optional<Interval>& interval, double scale = 1) {
  if (!interval) return "–";
  return "[" + signed_text(scale * interval->low, 2) + ", " +
         signed_text(scale * interval->high, 2) + "]";
}

inline bool has_last_words(const FinetuneResult& r) {
  return std::any_of(r.comparisons.begin(), r.comparisons.end(),
                     [](const FinetuneComparison& c) { return c.accuracy.has_value(); });
}

/// Stages of an arm as means over its seeds.
struct MeanPoint {
  const FinetunePoint* first = nullptr;  ///< of the first seed
  double seeds = 0;
  std::vector<double> nll{};  ///< by text, of all seeds
  std::vector<double> accuracy{};
  double fraction_linear = 0;
  double flops = 0;
};

inline MeanPoint mean_point(const std::vector<ArmRun>& runs, const std::string& arm,
                            std::size_t stage) {
  MeanPoint mean;
  for (const ArmRun& run : runs) {
    if (run.arm != arm) continue;
    const FinetunePoint& point = run.points[stage];
    if (mean.first == nullptr) mean.first = &point;
    mean.seeds += 1;
    mean.nll.resize(point.texts.size());
    mean.accuracy.resize(point.texts.size());
    for (std::size_t t = 0; t < point.texts.size(); ++t) {
      mean.nll[t] += point.texts[t].nll_sum();
      mean.accuracy[t] += point.texts[t].accuracy().value_or(0);
    }
    mean.fraction_linear += point.fraction_linear;
    mean.flops += point.flops_fraction_total;
  }
  return mean;
}

/// Names of the arms, each once.
inline std::vector<std::string> arms_of(const std::vector<ArmRun>& runs) {
  std::vector<std::string> arms;
  for (const ArmRun& run : runs) {
    if (std::find(arms.begin(), arms.end(), run.arm) == arms.end()) arms.push_back(run.arm);
  }
  return arms;
}

inline std::vector<std::string> point_row(const std::string& arm, const MeanPoint& mean) {
  const FinetunePoint& first = *mean.first;
  std::vector<std::string> row{text_of(PointName{arm, first.stage}), std::to_string(first.steps),
                               std::to_string(first.tokens),
                               fixed_text(first.training_flops / 1e12, 2)};
  for (std::size_t t = 0; t < first.texts.size(); ++t) {
    const double tokens = static_cast<double>(first.texts[t].token_sum());
    row.push_back(fixed_text(perplexity_of(mean.nll[t] / mean.seeds / tokens), 2));
    if (!first.texts[t].hits.empty()) {
      row.push_back(fixed_text(100 * mean.accuracy[t] / mean.seeds, 1));
    }
  }
  row.push_back(fixed_text(100 * mean.fraction_linear / mean.seeds, 1));
  row.push_back(fixed_text(100 * mean.flops / mean.seeds, 1));
  return row;
}

}  // namespace detail

/// One line for each treated point: is it better than its controls, and is the baseline kept?
inline std::string finetune_headline(const FinetuneResult& r) {
  std::string text;
  for (const TreatedVerdict& v : r.verdicts) {
    text += r.model.name + ", " + text_of(v.point) +
            ": better than its controls: " + std::string(name_of(v.gains));
    if (const FinetuneComparison* c = detail::deciding_contrast(r, v.point)) {
      text += "; " + detail::contrast_text(*c);
    }
    text += "; baseline kept within " + fixed_text(r.options.margin_percent, 1) +
            " %: " + detail::verdict_text(v.kept.verdict) + ".\n";
  }
  return text;
}

/// Comparisons on one text: Δ in per cent of perplexity with its intervals over documents and over
/// seeds, and what training took, treated over control. Of last words the accuracies, too.
inline TextTable finetune_table(const std::vector<FinetuneComparison>& comparisons,
                                const std::string& text = unseen_text) {
  std::vector<std::string> header{"treated", "control", "kind",  "Δ % perplexity", "documents",
                                  "seeds",   "tokens",  "FLOPs", "verdict"};
  const bool has_words = text == last_words_text;
  if (has_words) header.insert(header.end(), {"Δ % accuracy", "passages"});
  TextTable table(header);
  for (const FinetuneComparison& c : comparisons) {
    if (c.text != text) continue;
    std::vector<std::string> row{
        text_of(c.contrast.treated),           text_of(c.contrast.control),
        std::string(name_of(c.contrast.kind)), signed_text(c.documents.delta_percent, 2),
        detail::interval_text(c.documents),    detail::interval_text(c.seeds),
        fixed_text(c.token_ratio, 2),          fixed_text(c.flops_ratio, 2),
        std::string(name_of(c.verdict))};
    if (has_words && c.accuracy) {
      row.push_back(signed_text(100 * (c.accuracy->treated - c.accuracy->control), 2));
      row.push_back(detail::interval_text(c.accuracy->interval, 100));
    }
    table.add(std::move(row));
  }
  return table;
}

/// Every stage of every arm, means over seeds: training so far, perplexities, the share of
/// positions that have maps alone and the FLOPs to run it, in per cent of the untouched model's, or
/// of a model from scratch that others are compared with.
inline TextTable finetune_points_table(const std::vector<ArmRun>& runs) {
  std::vector<std::string> header{"point", "steps", "tokens", "TFLOP"};
  for (const TextLosses& t : runs.front().points.front().texts) {
    header.push_back(t.text);
    if (!t.hits.empty()) header.push_back("accuracy %");
  }
  header.insert(header.end(), {"linear %", "FLOPs %"});
  TextTable table(header);
  for (const std::string& arm : detail::arms_of(runs)) {
    for (std::size_t stage = 0;; ++stage) {
      const auto run =
          std::find_if(runs.begin(), runs.end(), [&](const ArmRun& one) { return one.arm == arm; });
      if (stage == run->points.size()) break;
      table.add(detail::point_row(arm, detail::mean_point(runs, arm, stage)));
    }
  }
  return table;
}

/// Differences from the untouched model on text that was trained on beside unseen text.
inline TextTable finetune_gap_table(const FinetuneResult& r) {
  TextTable table({"point", "Δ trained, nats", "Δ unseen, nats", "gap", "interval", "p"});
  for (const TextGap& g : r.gaps) {
    const std::string interval = g.interval ? "[" + signed_text(g.interval->low, 4) + ", " +
                                                  signed_text(g.interval->high, 4) + "]"
                                            : "–";
    table.add({text_of(g.point), signed_text(g.trained_nats, 4), signed_text(g.unseen_nats, 4),
               signed_text(g.gap_nats, 4), interval, g.p_value ? fixed_text(*g.p_value, 3) : "–"});
  }
  return table;
}

/// All comparisons on all texts.
inline TextTable finetune_csv(const std::vector<FinetuneComparison>& comparisons) {
  TextTable table({"treated", "control", "kind", "text", "delta_nats", "delta_percent",
                   "ci_low_percent", "ci_high_percent", "p_value", "seeds_low_percent",
                   "seeds_high_percent", "token_ratio", "flops_ratio", "accuracy_treated",
                   "accuracy_control", "verdict"});
  for (const FinetuneComparison& c : comparisons) {
    const PairedComparison& d = c.documents;
    table.add({text_of(c.contrast.treated), text_of(c.contrast.control),
               std::string(name_of(c.contrast.kind)), c.text, exact_text(d.delta_nats),
               exact_text(d.delta_percent), detail::optional_text(d.ci_low_percent),
               detail::optional_text(d.ci_high_percent), detail::optional_text(d.p_value),
               c.seeds ? exact_text(c.seeds->low) : "", c.seeds ? exact_text(c.seeds->high) : "",
               exact_text(c.token_ratio), exact_text(c.flops_ratio),
               c.accuracy ? exact_text(c.accuracy->treated) : "",
               c.accuracy ? exact_text(c.accuracy->control) : "", std::string(name_of(c.verdict))});
  }
  return table;
}

/// Training losses of every step: "arm,seed,stage,step,loss", steps from 1 within the arm.
inline TextTable finetune_losses_csv(const std::vector<ArmRun>& runs) {
  TextTable table({"arm", "seed", "stage", "step", "loss"});
  for (const ArmRun& run : runs) {
    for (const FinetunePoint& point : run.points) {
      Index step = point.steps - static_cast<Index>(point.losses.size());
      for (const double loss : point.losses) {
        table.add({run.arm, std::to_string(run.seed), point.stage, std::to_string(++step),
                   exact_text(loss)});
      }
    }
  }
  return table;
}

namespace detail {

/// Losses of an arm's steps, means over seeds.
inline std::vector<double> mean_losses(const std::vector<ArmRun>& runs, const std::string& arm) {
  std::vector<double> mean;
  double seeds = 0;
  for (const ArmRun& run : runs) {
    if (run.arm != arm) continue;
    std::size_t step = 0;
    for (const FinetunePoint& point : run.points) {
      mean.resize(std::max(mean.size(), step + point.losses.size()));
      for (const double loss : point.losses) mean[step++] += loss;
    }
    seeds += 1;
  }
  for (double& loss : mean) loss /= seeds;
  return mean;
}

/// Means of `count` steps, drawn at the last of them.
inline Curve smoothed(std::string name, const std::vector<double>& losses, std::size_t count) {
  Curve curve{std::move(name), {}, {}};
  double sum = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    sum += losses[i] - (i >= count ? losses[i - count] : 0.0);
    if (i + 1 < count) continue;
    curve.x.push_back(static_cast<double>(i + 1));
    curve.y.push_back(sum / static_cast<double>(count));
  }
  return curve;
}

/// Arms that claims are made about, each followed by plain fine-tuning on as many tokens.
inline std::vector<std::string> drawn_arms(const FinetuneResult& r) {
  std::vector<std::string> arms;
  const auto add = [&arms](const std::string& arm) {
    if (std::find(arms.begin(), arms.end(), arm) == arms.end()) arms.push_back(arm);
  };
  for (const FinetuneComparison& c : r.comparisons) {
    if (c.contrast.kind != ControlKind::equal_tokens) continue;
    add(c.contrast.treated.arm);
    add(c.contrast.control.arm);
  }
  return arms;
}

}  // namespace detail

/// Training loss against steps of some arms, means over seeds and over a twentieth of the longest
/// arm's steps.
inline std::string arm_losses_svg(const std::vector<ArmRun>& runs,
                                  const std::vector<std::string>& arms, std::size_t seeds) {
  std::vector<std::pair<std::string, std::vector<double>>> losses;
  std::size_t longest = 0;
  for (const std::string& arm : arms) {
    losses.emplace_back(arm, detail::mean_losses(runs, arm));
    longest = std::max(longest, losses.back().second.size());
  }
  const std::size_t count = std::max<std::size_t>(1, longest / 20);
  std::vector<Curve> curves;
  for (const auto& [arm, own] : losses) curves.push_back(detail::smoothed(arm, own, count));
  std::string title = "Training loss, mean of " + std::to_string(seeds) + " seeds";
  if (count > 1) title += " and of " + std::to_string(count) + " steps";
  return curve_svg(curves, {title, "steps", "loss, nats per token"});
}

/// Losses of the treated arms and of plain fine-tuning on as many tokens.
inline std::string finetune_svg(const FinetuneResult& r) {
  return arm_losses_svg(r.runs, detail::drawn_arms(r), r.options.seeds.size());
}

}  // namespace wanamaker::inline WANAMAKER_ABI
