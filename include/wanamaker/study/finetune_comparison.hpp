// Arms against each other: paired by document, averaged over seeds, with what varies over seeds
// beside what varies over documents.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/stats/paired_bootstrap.hpp"
#include "wanamaker/study/finetune_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What comparisons of arms depend on besides the runs.
struct ComparisonOptions {
  std::vector<std::uint64_t> seeds{};
  double margin_percent = 1;  ///< of non-inferiority
  PairedOptions intervals{};
};

inline ComparisonOptions comparison_options(const FinetuneOptions& options) {
  return {options.seeds, options.margin_percent, options.intervals};
}

namespace detail {

/// Throws ProtocolError where there is no seed or one is given twice.
inline void check_seeds(std::vector<std::uint64_t> seeds) {
  std::sort(seeds.begin(), seeds.end());
  const bool repeats = std::adjacent_find(seeds.begin(), seeds.end()) != seeds.end();
  if (!seeds.empty() && !repeats) return;
  throw ProtocolError({.id = "finetune/seeds",
                       .where = "seeds of an experiment",
                       .what = "no seed, or one given twice",
                       .expected = "different seeds, three or more for intervals worth having",
                       .found = std::to_string(seeds.size()) + " seeds",
                       .mend = "name different seeds"});
}

/// The text's losses at a point.
inline const TextLosses* text_at(const FinetunePoint& point, const std::string& text) {
  const auto found = std::find_if(point.texts.begin(), point.texts.end(),
                                  [&](const TextLosses& t) { return t.text == text; });
  return found == point.texts.end() ? nullptr : &*found;
}

[[noreturn]] inline void throw_no_point(const PointName& name) {
  throw ProtocolError({.id = "finetune/no-such-point",
                       .where = "comparison of arms",
                       .what = "no run has this arm and stage",
                       .expected = "a stage of an arm that was run with every seed",
                       .found = text_of(name),
                       .mend = "add the arm to the plan"});
}

/// The point of that name of one seed; an arm that does not depend on the seed was run with the
/// first alone. Throws ProtocolError where there is none.
inline const FinetunePoint& point_of(const std::vector<ArmRun>& runs, const PointName& name,
                                     std::uint64_t seed) {
  const ArmRun* found = nullptr;
  for (const ArmRun& run : runs) {
    if (run.arm != name.arm) continue;
    if (found == nullptr || run.seed == seed) found = &run;
  }
  if (found == nullptr) throw_no_point(name);
  for (const FinetunePoint& point : found->points) {
    if (point.stage == name.stage) return point;
  }
  throw_no_point(name);
}

/// The point's flops_fraction_mlp, mean over seeds.
inline double mean_flops_fraction(const std::vector<ArmRun>& runs, const PointName& point,
                                  const std::vector<std::uint64_t>& seeds) {
  double sum = 0;
  for (const std::uint64_t seed : seeds) sum += point_of(runs, point, seed).flops_fraction_mlp;
  return sum / static_cast<double>(seeds.size());
}

/// Losses of two points on a text with one seed, by document.
inline PairedSums paired_sums(const TextLosses& control, const TextLosses& treated) {
  PairedSums sums{.tokens = control.tokens, .difference_nats = {}, .baseline_nats = control.nll};
  for (std::size_t d = 0; d < control.nll.size(); ++d) {
    sums.difference_nats.push_back(treated.nll[d] - control.nll[d]);
  }
  return sums;
}

/// Means over seeds of sums over the same documents.
inline PairedSums mean_sums(const std::vector<PairedSums>& seeds) {
  PairedSums mean = seeds.front();
  const double share = 1.0 / static_cast<double>(seeds.size());
  for (std::size_t d = 0; d < mean.tokens.size(); ++d) {
    double difference = 0, baseline = 0;
    for (const PairedSums& one : seeds) {
      difference += one.difference_nats[d];
      baseline += one.baseline_nats[d];
    }
    mean.difference_nats[d] = share * difference;
    mean.baseline_nats[d] = share * baseline;
  }
  return mean;
}

inline double delta_of(const PairedSums& sums) {
  double difference = 0, tokens = 0;
  for (std::size_t d = 0; d < sums.tokens.size(); ++d) {
    difference += sums.difference_nats[d];
    tokens += static_cast<double>(sums.tokens[d]);
  }
  return difference / tokens;
}

/// Student's t interval of the mean; missing for one value.
inline std::optional<Interval> mean_interval(const std::vector<double>& values, double level) {
  if (values.size() < 2) return std::nullopt;
  RunningMoments moments;
  for (const double value : values) moments.add(value);
  const double n = static_cast<double>(values.size());
  const double reach = student_t_quantile(0.5 + 0.5 * level, n - 1) * *moments.standard_error();
  return Interval{*moments.mean() - reach, *moments.mean() + reach};
}

/// The interval of the mean over seeds, in per cent; missing for one seed.
inline std::optional<Interval> seed_interval(const std::vector<double>& deltas, double level) {
  const std::optional<Interval> nats = mean_interval(deltas, level);
  if (!nats) return std::nullopt;
  return percent_of_nats(*nats);
}

/// Both intervals on one side of 0; without seeds to compare nothing is decided.
inline ContrastVerdict contrast_verdict(const PairedComparison& documents,
                                        const std::optional<Interval>& seeds) {
  if (!documents.ci_low_percent || !documents.ci_high_percent || !seeds) {
    return ContrastVerdict::undecided;
  }
  if (*documents.ci_high_percent < 0 && seeds->high < 0) return ContrastVerdict::better;
  if (*documents.ci_low_percent > 0 && seeds->low > 0) return ContrastVerdict::worse;
  return ContrastVerdict::undecided;
}

inline double ratio_or_zero(double a, double b) {
  return b > 0 ? a / b : 0.0;
}

}  // namespace detail

/// Runs of an experiment, compared.
class FinetuneComparisons {
 public:
  /// Refers to the runs, which must outlive it.
  FinetuneComparisons(const std::vector<ArmRun>& runs, ComparisonOptions options,
                      const ExecutorRef& executor = {})
      : runs_(runs), options_(std::move(options)), executor_(executor) {}

  /// The contrast on one text. Throws ProtocolError ("finetune/no-such-point"), and what
  /// compare_paired throws.
  FinetuneComparison compare(const Contrast& contrast, const std::string& text) const {
    FinetuneComparison result{.contrast = contrast, .text = text};
    const std::vector<PairedSums> seeds = sums_of(contrast.treated, contrast.control, text);
    for (const PairedSums& one : seeds) result.delta_nats.push_back(detail::delta_of(one));
    const PairedSums mean = detail::mean_sums(seeds);
    result.documents = compare_paired(mean, options_.intervals, executor_);
    result.seeds = detail::seed_interval(result.delta_nats, options_.intervals.level);
    result.verdict = detail::contrast_verdict(result.documents, result.seeds);
    result.documents_needed =
        test_non_inferiority(mean, {.percent = 0}, options_.intervals, executor_).documents_needed;
    result.accuracy = accuracy_of(contrast, text);
    const FinetunePoint& treated = first_point(contrast.treated);
    const FinetunePoint& control = first_point(contrast.control);
    result.flops_ratio = detail::ratio_or_zero(treated.training_flops, control.training_flops);
    result.token_ratio = detail::ratio_or_zero(static_cast<double>(treated.tokens),
                                               static_cast<double>(control.tokens));
    return result;
  }

  /// Does the point differ from the untouched model more on text that was trained on?
  TextGap gap(const PointName& point) const {
    const PairedComparison trained = against_untouched(point, trained_text);
    const PairedComparison unseen = against_untouched(point, unseen_text);
    TextGap gap{.point = point,
                .trained_nats = trained.delta_nats,
                .unseen_nats = unseen.delta_nats,
                .gap_nats = trained.delta_nats - unseen.delta_nats};
    set_interval(gap, trained, unseen);
    return gap;
  }

  /// "The baseline is kept": non-inferiority of the point to the untouched model, or to another, on
  /// unseen text.
  NonInferiorityResult kept(const PointName& point,
                            const PointName& baseline = {"untouched", "untouched"}) const {
    return test_non_inferiority(detail::mean_sums(sums_of(point, baseline, unseen_text)),
                                {.percent = options_.margin_percent}, options_.intervals,
                                executor_);
  }

 private:
  static PointName untouched() { return {"untouched", "untouched"}; }

  const FinetunePoint& first_point(const PointName& name) const {
    return detail::point_of(runs_, name, options_.seeds.front());
  }

  std::vector<PairedSums> sums_of(const PointName& treated, const PointName& control,
                                  const std::string& text) const {
    std::vector<PairedSums> seeds;
    for (const std::uint64_t seed : options_.seeds) {
      const TextLosses* own = detail::text_at(detail::point_of(runs_, treated, seed), text);
      const TextLosses* other = detail::text_at(detail::point_of(runs_, control, seed), text);
      if (own == nullptr || other == nullptr) detail::throw_no_point(treated);
      detail::check_same_length(other->nll.size(), own->nll.size(), "comparison of arms");
      seeds.push_back(detail::paired_sums(*other, *own));
    }
    return seeds;
  }

  /// Missing where the text has no last words.
  std::optional<AccuracyDifference> accuracy_of(const Contrast& contrast,
                                                const std::string& text) const {
    AccuracyDifference result;
    std::vector<double> differences;
    const double share = 1.0 / static_cast<double>(options_.seeds.size());
    for (const std::uint64_t seed : options_.seeds) {
      const TextLosses& own =
          *detail::text_at(detail::point_of(runs_, contrast.treated, seed), text);
      const TextLosses& other =
          *detail::text_at(detail::point_of(runs_, contrast.control, seed), text);
      if (own.hits.empty() || own.hits.size() != other.hits.size()) return std::nullopt;
      result.treated += share * *own.accuracy();
      result.control += share * *other.accuracy();
      differences.resize(own.hits.size());
      for (std::size_t d = 0; d < differences.size(); ++d) {
        differences[d] += share * (own.hits[d] - other.hits[d]);
      }
    }
    result.interval = detail::mean_interval(differences, options_.intervals.level);
    return result;
  }

  PairedComparison against_untouched(const PointName& point, const std::string& text) const {
    return compare_paired(detail::mean_sums(sums_of(point, untouched(), text)), options_.intervals,
                          executor_);
  }

  /// Welch's t with the documents of the two texts as clusters (Welch 1947).
  void set_interval(TextGap& gap, const PairedComparison& a, const PairedComparison& b) const {
    if (!a.standard_error_nats || !b.standard_error_nats) return;
    const double va = *a.standard_error_nats * *a.standard_error_nats;
    const double vb = *b.standard_error_nats * *b.standard_error_nats;
    if (!(va + vb > 0)) return;
    const double degrees = (va + vb) * (va + vb) /
                           (va * va / static_cast<double>(a.documents - 1) +
                            vb * vb / static_cast<double>(b.documents - 1));
    const double error = std::sqrt(va + vb);
    const double reach = student_t_quantile(0.5 + 0.5 * options_.intervals.level, degrees) * error;
    gap.interval = Interval{gap.gap_nats - reach, gap.gap_nats + reach};
    gap.p_value = 2 * student_t_cdf(-std::abs(gap.gap_nats) / error, degrees);
  }

  const std::vector<ArmRun>& runs_;
  ComparisonOptions options_;
  ExecutorRef executor_;
};

/// "Better than its controls", from a point's contrasts on unseen text.
inline ClaimVerdict claim_verdict(const std::vector<FinetuneComparison>& comparisons,
                                  const PointName& point) {
  bool all_better = true;
  bool is_compared = false;
  for (const FinetuneComparison& c : comparisons) {
    if (!(c.contrast.treated == point) || c.text != unseen_text) continue;
    if (c.verdict == ContrastVerdict::worse) return ClaimVerdict::does_not_hold;
    all_better = all_better && c.verdict == ContrastVerdict::better;
    is_compared = true;
  }
  return all_better && is_compared ? ClaimVerdict::holds : ClaimVerdict::cannot_be_decided;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
