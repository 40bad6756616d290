// What a run over features asks and what it finds: does anything simple that is known of a position
// say how much its nonlinearity matters?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wanamaker/stats/boosted_trees.hpp"
#include "wanamaker/stats/document_bootstrap.hpp"
#include "wanamaker/study/sweep_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Settings of run_features.
struct FeaturesOptions {
  /// Spellings of the vocabulary's tokens by id, as Tokenizer::token_bytes gives them; empty:
  /// features of the spelling are left out.
  std::vector<std::string> spellings{};
  Index folds = 5;     ///< of documents; 3 at least
  double penalty = 1;  ///< of ridge regression on standardised features
  BoostedTreesOptions trees{.rounds = 100};
  DocumentBootstrapOptions bootstrap{};
  double smallest_effect = 0.01;  ///< a share of δ's variance below which nobody would care
};

/// What an R² out of fold says, by its interval when documents are redrawn.
enum class FeatureVerdict {
  explains,       ///< the interval lies above 0
  less_than,      ///< it does not, and `smallest_effect` would have been seen
  no_power,       ///< it does not, and `smallest_effect` would not have been seen
  not_measurable  ///< δ is constant
};

constexpr const char* name_of(FeatureVerdict verdict) {
  switch (verdict) {
    case FeatureVerdict::explains:
      return "explains";
    case FeatureVerdict::less_than:
      return "less than the smallest effect";
    case FeatureVerdict::no_power:
      return "no power";
    case FeatureVerdict::not_measurable:
      return "not measurable";
  }
  return "";
}

/// One regression on one set of features, judged on documents that it did not see.
struct FeatureFit {
  std::string method{};  ///< ridge or boosted-trees
  std::string scale{};   ///< raw: δ in nats; rank: its rank
  std::optional<double> r2{};
  std::optional<Interval> r2_interval{};  ///< documents redrawn, predictions as they are
  /// The smallest R² that would have been told from 0: half the interval's width, and features per
  /// fitted position, which is what fitting that many weights costs out of fold.
  std::optional<double> detectable{};
  std::optional<double> spearman{};  ///< of predictions with δ
  FeatureVerdict verdict = FeatureVerdict::not_measurable;
};

/// Features that predict together, and how well.
struct FeatureSet {
  std::string name{};
  std::vector<std::string> features{};
  std::vector<FeatureFit> fits{};
};

/// One feature alone.
struct SingleFeature {
  std::string name{};
  std::optional<double> spearman{};  ///< with δ; missing where either is constant
  std::optional<Interval> interval{};
};

/// One layer: whether anything simple explains its δ.
struct FeaturesLayer {
  Index layer = 0;
  double r2 = 0;  ///< of the linear map
  double lambda = 0;
  std::vector<LambdaTrial> lambda_trials{};
  double mean_delta = 0;  ///< nats
  std::vector<SingleFeature> features{};
  std::vector<FeatureSet> sets{};
};

/// What run_features found.
struct FeaturesResult : StudyHeader {
  Index folds = 0;
  double smallest_effect = 0;
  std::vector<FeaturesLayer> layers{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
