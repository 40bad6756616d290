// What a run over clusters asks and what it finds: do groups of similar MLP inputs share a δ?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wanamaker/study/sweep_result.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Settings of run_clusters.
struct ClustersOptions {
  Index clusters = 20;
  Index components = 50;  ///< principal components that distances are taken in, at most d
  Index restarts = 10;
  Index iterations = 100;
  Index fit_rows = 20000;       ///< positions of the gate split that centres are fitted on, at most
  Index silhouette_rows = 500;  ///< positions whose silhouette is asked
  Index random_partitions = 100;  ///< with the clusters' sizes, as baseline
  Index shown = 10;               ///< tokens named for each cluster
};

/// A token and how many of a cluster's positions have it.
struct TokenCount {
  TokenId token = 0;
  Index count = 0;
};

/// The report split's positions of one cluster.
struct ClusterSummary {
  Index cluster = 0;
  Index positions = 0;
  std::optional<double> mean_delta{};  ///< nats; missing, as the rest, for an empty cluster
  std::optional<double> delta_p10{};
  std::optional<double> delta_p90{};
  std::optional<double> share_linear{};  ///< of positions with δ ≤ 0
  std::vector<TokenCount> top_tokens{};  ///< at the position, most frequent first
};

/// A figure of the clusters beside the same of random partitions of the same sizes.
struct AgainstRandom {
  double value = 0;
  double random_mean = 0;
  double random_p95 = 0;
};

/// One layer: whether inputs that are alike share a δ.
struct ClusterLayer {
  Index layer = 0;
  double r2 = 0;  ///< of the linear map
  double lambda = 0;
  std::vector<LambdaTrial> lambda_trials{};
  Index components = 0;
  double variance_kept = 0;     ///< share of the inputs' variance in these components
  Index fit_positions = 0;      ///< of the gate split
  double inputs_explained = 0;  ///< share of the variance kept that lies between clusters, on them
  bool converged = false;
  double silhouette = 0;           ///< on the report split
  Index silhouette_positions = 0;  ///< whose silhouette was asked
  /// Share of δ's variance on the report split between clusters; missing where δ is constant.
  std::optional<AgainstRandom> delta_explained{};
  std::optional<double> delta_explained_adjusted{};
  /// R² on the report split of the clusters' mean δ on the gate split: below 0 where they mislead.
  std::optional<double> delta_held_out_r2{};
  AgainstRandom decision_purity{};  ///< of the labels δ ≤ 0 and δ > 0
  AgainstRandom token_purity{};     ///< of the tokens at the positions
  std::vector<ClusterSummary> clusters{};
};

/// What run_clusters found.
struct ClustersResult : StudyHeader {
  Index clusters = 0;
  std::vector<ClusterLayer> layers{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
