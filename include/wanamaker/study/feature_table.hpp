// Features of positions by name, in groups, and what they explain of a quantity on documents that
// no fit saw.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/stats/correlation_interval.hpp"
#include "wanamaker/stats/ridge_regression.hpp"
#include "wanamaker/study/features_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Columns of equal length, each with a name and the group that it belongs to.
class FeatureTable {
 public:
  /// Throws ShapeError ("stats/length-mismatch") where the column is not as long as the others.
  void add(std::string group, std::string name, std::vector<double> values) {
    if (!columns_.empty()) {
      detail::check_same_length(columns_.front().values.size(), values.size(),
                                "FeatureTable::add(values)");
    }
    columns_.push_back({std::move(group), std::move(name), std::move(values)});
  }

  std::size_t size() const { return columns_.size(); }
  const std::string& name(std::size_t column) const { return columns_[column].name; }
  const std::string& group(std::size_t column) const { return columns_[column].group; }
  const std::vector<double>& values(std::size_t column) const { return columns_[column].values; }

  /// Columns of the named groups, in order; of all groups where none is named.
  std::vector<std::size_t> columns_of(std::span<const std::string> groups) const {
    std::vector<std::size_t> chosen;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const bool wanted = groups.empty() || std::find(groups.begin(), groups.end(),
                                                      columns_[c].group) != groups.end();
      if (wanted) chosen.push_back(c);
    }
    return chosen;
  }

  /// The chosen columns row by row, [n × k].
  std::vector<double> design(std::span<const std::size_t> chosen) const {
    std::vector<double> rows;
    const std::size_t n = columns_.empty() ? 0 : columns_.front().values.size();
    rows.reserve(n * chosen.size());
    for (std::size_t i = 0; i < n; ++i) {
      for (const std::size_t c : chosen) rows.push_back(columns_[c].values[i]);
    }
    return rows;
  }

 private:
  struct Column {
    std::string group{};
    std::string name{};
    std::vector<double> values{};
  };
  std::vector<Column> columns_{};
};

/// Groups whose features are offered to a regression together.
struct FeatureSetChoice {
  std::string name{};
  std::vector<std::string> groups{};  ///< none: all
};

namespace detail {

/// R² of fixed predictions where document d counts weights[d] times; missing where y is constant.
inline std::optional<double> weighted_r_squared(std::span<const double> y,
                                                std::span<const double> predicted,
                                                std::span<const Index> documents,
                                                std::span<const double> weights) {
  double count = 0;
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double w = weights[static_cast<std::size_t>(documents[i])];
    count += w;
    sum += w * y[i];
  }
  if (!(count > 0)) return std::nullopt;
  const double mean = sum / count;
  double errors = 0;
  double squares = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double w = weights[static_cast<std::size_t>(documents[i])];
    errors += w * (y[i] - predicted[i]) * (y[i] - predicted[i]);
    squares += w * (y[i] - mean) * (y[i] - mean);
  }
  if (!(squares > 0)) return std::nullopt;
  return 1 - errors / squares;
}

inline FeatureVerdict verdict_of(const FeatureFit& fit, double smallest_effect) {
  if (!fit.r2) return FeatureVerdict::not_measurable;
  if (!fit.r2_interval) return FeatureVerdict::no_power;
  if (fit.r2_interval->low > 0) return FeatureVerdict::explains;
  return *fit.detectable <= smallest_effect ? FeatureVerdict::less_than : FeatureVerdict::no_power;
}

/// Regressions of one quantity on sets of features.
class FeatureRegression {
 public:
  FeatureRegression(std::span<const double> delta, std::span<const Index> documents,
                    const FeaturesOptions& options, const ExecutorRef& executor)
      : options_(options),
        executor_(executor),
        documents_(documents),
        folds_(document_folds(documents, options.folds, "explain_delta")),
        raw_(delta.begin(), delta.end()),
        ranks_(average_ranks(delta)) {}

  FeatureSet run(const FeatureTable& table, const FeatureSetChoice& choice) const {
    FeatureSet set{.name = choice.name};
    const std::vector<std::size_t> columns = table.columns_of(choice.groups);
    if (columns.empty()) return set;
    for (const std::size_t c : columns) set.features.push_back(table.name(c));
    const std::vector<double> values = table.design(columns);
    const ConstMatrixView<double> x(values.data(), static_cast<Index>(raw_.size()),
                                    static_cast<Index>(columns.size()));
    for (const bool is_rank : {false, true}) {
      const std::vector<double>& y = is_rank ? ranks_ : raw_;
      const char* scale = is_rank ? "rank" : "raw";
      set.fits.push_back(judge("ridge", scale, x, y,
                               held_out_ridge(x, y, folds_, options_.folds, options_.penalty)));
      set.fits.push_back(
          judge("boosted-trees", scale, x, y,
                held_out_boosted_trees(x, y, folds_, options_.folds, options_.trees, executor_)));
    }
    return set;
  }

 private:
  FeatureFit judge(const char* method, const char* scale, ConstMatrixView<double> x,
                   std::span<const double> y, const HeldOutFit& fit) const {
    FeatureFit result{.method = method, .scale = scale, .r2 = fit.r2, .spearman = fit.spearman};
    if (!fit.r2) return result;
    const auto statistic = [&](std::span<const double> weights) {
      return weighted_r_squared(y, fit.predictions, documents_, weights);
    };
    result.r2_interval =
        document_interval(documents_, statistic, "explain_delta", options_.bootstrap, executor_)
            .interval;
    if (result.r2_interval) {
      const double folds = static_cast<double>(options_.folds);
      const double fitted = static_cast<double>(x.rows) * (folds - 1) / folds;
      result.detectable = 0.5 * (result.r2_interval->high - result.r2_interval->low) +
                          static_cast<double>(x.cols) / fitted;
    }
    result.verdict = verdict_of(result, options_.smallest_effect);
    return result;
  }

  const FeaturesOptions& options_;
  const ExecutorRef& executor_;
  std::span<const Index> documents_;
  std::vector<Index> folds_;
  std::vector<double> raw_;
  std::vector<double> ranks_;
};

}  // namespace detail

/// What each set of features explains of δ [n] out of fold, by ridge regression and by boosted
/// trees, raw and by ranks. `documents` names the document of each position, from 0; folds keep
/// them whole. Sets without a feature have no fits. Throws ShapeError ("stats/length-mismatch"),
/// DataError ("stats/non-finite"), ProtocolError ("stats/folds") for fewer than three folds or
/// fewer documents than folds, and what its parts throw.
inline std::vector<FeatureSet> explain_delta(const FeatureTable& table,
                                             std::span<const FeatureSetChoice> choices,
                                             std::span<const double> delta,
                                             std::span<const Index> documents,
                                             const FeaturesOptions& options = {},
                                             const ExecutorRef& executor = {}) {
  detail::check_same_length(delta.size(), documents.size(), "explain_delta(documents)");
  if (table.size() > 0) {
    detail::check_same_length(delta.size(), table.values(0).size(), "explain_delta(table)");
  }
  const detail::FeatureRegression regression(delta, documents, options, executor);
  std::vector<FeatureSet> sets;
  for (const FeatureSetChoice& choice : choices) sets.push_back(regression.run(table, choice));
  return sets;
}

/// Spearman's ρ of every feature with δ, documents redrawn. Throws as explain_delta.
inline std::vector<SingleFeature> correlate_features(const FeatureTable& table,
                                                     std::span<const double> delta,
                                                     std::span<const Index> documents,
                                                     const DocumentBootstrapOptions& options = {},
                                                     const ExecutorRef& executor = {}) {
  std::vector<SingleFeature> features;
  for (std::size_t c = 0; c < table.size(); ++c) {
    const CorrelationEstimate found = correlation_with_interval(
        table.values(c), delta, documents, CorrelationKind::spearman, options, executor);
    features.push_back(
        {table.group(c) + "/" + table.name(c), found.r, found.over_documents.interval});
  }
  return features;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
