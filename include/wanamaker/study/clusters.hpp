// Clusters of MLP inputs: whether they are clusters at all, and whether they say anything of δ.
#pragma once

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/gate/host_rows.hpp"
#include "wanamaker/stats/cluster_quality.hpp"
#include "wanamaker/stats/held_out.hpp"
#include "wanamaker/stats/k_means.hpp"
#include "wanamaker/stats/pca.hpp"
#include "wanamaker/stats/quantiles.hpp"
#include "wanamaker/study/clusters_result.hpp"
#include "wanamaker/study/layer_delta.hpp"
#include "wanamaker/study/layer_study.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Parts are layers.
using ClustersCheckpoint = Checkpoint<Index, ClusterLayer>;

namespace detail {

/// Positions with their place in the space of principal components, and what is known of them.
struct ClusterRows {
  std::vector<double> places{};  ///< [n × k]
  std::vector<double> delta{};
  std::vector<TokenId> tokens{};
  Index width = 0;

  Index rows() const { return static_cast<Index>(delta.size()); }
  ConstMatrixView<double> view() const { return {places.data(), rows(), width}; }
};

/// (x − mean)·Vᵀ of rows x [T × d], V [k × d], appended to `places`.
template <class T>
void append_places(ConstMatrixView<T> x, std::span<const double> mean,
                   const EigenRowMajor<double>& components, std::vector<double>& places) {
  std::vector<double> centred(static_cast<std::size_t>(x.cols));
  for (Index i = 0; i < x.rows; ++i) {
    for (Index j = 0; j < x.cols; ++j) {
      const std::size_t at = static_cast<std::size_t>(j);
      centred[at] = static_cast<double>(x(i, j)) - mean[at];
    }
    for (Index k = 0; k < components.rows(); ++k) {
      double sum = 0;
      for (Index j = 0; j < x.cols; ++j)
        sum += components(k, j) * centred[static_cast<std::size_t>(j)];
      places.push_back(sum);
    }
  }
}

/// At most `count` of the rows, evenly spread.
inline std::vector<double> spread_rows(ConstMatrixView<double> x, Index count) {
  std::vector<double> chosen;
  const Index kept = std::min(count, x.rows);
  for (Index i = 0; i < kept; ++i) {
    const double* row = x.row(i * x.rows / kept);
    chosen.insert(chosen.end(), row, row + x.cols);
  }
  return chosen;
}

/// The nearest of the centres, the first of equally near ones.
inline std::vector<Index> nearest_centres(ConstMatrixView<double> x, const KMeans& clusters,
                                          const ExecutorRef& executor) {
  constexpr Index block = 512;
  std::vector<Index> nearest(static_cast<std::size_t>(x.rows));
  executor.run(blocks_of(x.rows, block), [&](Index b) {
    for (Index i = b * block; i < std::min(x.rows, (b + 1) * block); ++i) {
      Index best = 0;
      double least = squared_distance(x.row(i), clusters.centres.data(), x.cols);
      for (Index c = 1; c < clusters.clusters(); ++c) {
        const double own = squared_distance(x.row(i), clusters.centres.data() + c * x.cols, x.cols);
        if (own >= least) continue;
        least = own;
        best = c;
      }
      nearest[static_cast<std::size_t>(i)] = best;
    }
  });
  return nearest;
}

/// figure(groups) of the clusters and of random partitions of their sizes.
template <class Figure>
AgainstRandom against_random(const std::vector<Index>& groups, Index partitions, std::uint64_t seed,
                             const ExecutorRef& executor, const Figure& figure) {
  AgainstRandom result{.value = figure(groups)};
  if (partitions < 1) return result;
  std::vector<double> values(static_cast<std::size_t>(partitions));
  executor.run(partitions, [&](Index p) {
    std::vector<Index> shuffled = groups;
    RandomStream random(seed, static_cast<std::uint64_t>(p));
    shuffle(shuffled, random);
    values[static_cast<std::size_t>(p)] = figure(shuffled);
  });
  result.random_mean = mean_of(values);
  result.random_p95 = sorted_quantile(sorted_copy(values), 0.95);
  return result;
}

/// Mean δ of each group; the mean of all for one without rows.
inline std::vector<double> group_means(std::span<const Index> groups, std::span<const double> delta,
                                       Index count) {
  std::vector<RunningMoments> moments(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    moments[static_cast<std::size_t>(groups[i])].add(delta[i]);
  }
  const double overall = mean_of(delta);
  std::vector<double> means;
  for (const RunningMoments& m : moments) means.push_back(m.mean().value_or(overall));
  return means;
}

/// The most frequent tokens of one cluster; of equally frequent ones the lower id.
inline std::vector<TokenCount> top_tokens(const std::map<TokenId, Index>& counts, Index shown) {
  std::vector<TokenCount> top;
  for (const auto& [token, count] : counts) top.push_back({token, count});
  std::stable_sort(top.begin(), top.end(),
                   [](const TokenCount& a, const TokenCount& b) { return a.count > b.count; });
  top.resize(std::min(top.size(), static_cast<std::size_t>(shown)));
  return top;
}

inline std::vector<ClusterSummary> summarise_clusters(std::span<const Index> groups,
                                                      const ClusterRows& rows, Index count,
                                                      Index shown) {
  std::vector<std::vector<double>> deltas(static_cast<std::size_t>(count));
  std::vector<std::map<TokenId, Index>> tokens(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::size_t own = static_cast<std::size_t>(groups[i]);
    deltas[own].push_back(rows.delta[i]);
    ++tokens[own][rows.tokens[i]];
  }
  std::vector<ClusterSummary> summaries;
  for (Index c = 0; c < count; ++c) {
    const std::vector<double>& own = deltas[static_cast<std::size_t>(c)];
    ClusterSummary summary{.cluster = c, .positions = static_cast<Index>(own.size())};
    if (!own.empty()) {
      const std::vector<double> ends = quantiles(own, std::vector{0.1, 0.9});
      const auto linear = std::count_if(own.begin(), own.end(), [](double d) { return d <= 0; });
      summary.mean_delta = mean_of(own);
      summary.delta_p10 = ends[0];
      summary.delta_p90 = ends[1];
      summary.share_linear = static_cast<double>(linear) / static_cast<double>(own.size());
      summary.top_tokens = top_tokens(tokens[static_cast<std::size_t>(c)], shown);
    }
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

/// One layer's clusters.
template <class B>
class LayerClusters {
 public:
  LayerClusters(const SweepContext<B>& context, const ClustersOptions& options, Index layer,
                const CoMoments& moments)
      : c_(context), options_(options), layer_(layer), moments_(moments) {}

  ClusterLayer run() {
    ClusterLayer result{.layer = layer_};
    const RidgeSurrogate fit = choose_ridge(c_, moments_, result.lambda_trials).fit;
    result.r2 = fit.report().in_sample.r2;
    result.lambda = fit.report().lambda;
    const AnyMlp<B> surrogate(fit.to_mlp(c_.backend));
    const PrincipalComponents pca = components();
    result.components = static_cast<Index>(pca.variances.size());
    result.variance_kept = pca.explained_by_first(result.components);
    const ClusterRows gate = collect(*c_.gate, surrogate, pca);
    const ClusterRows report = collect(*c_.report, surrogate, pca);
    const KMeans clusters = fit_clusters(gate, result);
    judge(clusters, gate, report, result);
    return result;
  }

 private:
  std::uint64_t seed() const { return c_.options.seed + static_cast<std::uint64_t>(layer_); }

  PrincipalComponents components() const {
    std::vector<double> covariance;
    const ConstMatrixView<double> xx = moments_.xx();
    for (Index i = 0; i < xx.rows; ++i)
      covariance.insert(covariance.end(), xx.row(i), xx.row(i) + xx.cols);
    for (double& v : covariance) v /= static_cast<double>(moments_.rows());
    return principal_components({covariance.data(), xx.rows, xx.cols},
                                std::clamp<Index>(options_.components, 1, xx.cols));
  }

  // Only places are kept of the inputs, batch by batch; the pass stays.
  ClusterRows collect(WalkedSplit<B>& split, const AnyMlp<B>& surrogate,
                      const PrincipalComponents& pca) {
    ClusterRows rows{.tokens = inputs_of_losses(split.set), .width = pca.components.rows()};
    rows.delta = measure_delta(c_, surrogate, split, "layer " + std::to_string(layer_) + ", ridge");
    split.pass->visit([&](const MlpSite<B>& site) {
      const typename Workspace<B>::Frame frame(c_.workspace);
      const std::vector<TokenId>& scored = site.tokens.scored.rows;
      const Index count = static_cast<Index>(scored.size());
      const VectorView<TokenId> index = c_.workspace.template vector<TokenId>(count);
      c_.backend.copy_from_host(scored.data(), count, index.data);
      const matrix_view_t<B> inputs = c_.workspace.matrix(count, site.mlp_input.cols);
      ops::gather_rows(c_.backend, site.mlp_input, index, inputs);
      const HostRows<B> host(c_.backend, inputs);
      append_places(host.view(), moments_.mean_x(), pca.components, rows.places);
    });
    return rows;
  }

  KMeans fit_clusters(const ClusterRows& gate, ClusterLayer& result) const {
    const std::vector<double> values = spread_rows(gate.view(), options_.fit_rows);
    const ConstMatrixView<double> x(values.data(), static_cast<Index>(values.size()) / gate.width,
                                    gate.width);
    KMeans clusters = k_means(x,
                              {.clusters = options_.clusters,
                               .restarts = options_.restarts,
                               .iterations = options_.iterations,
                               .seed = seed()},
                              c_.executor);
    result.fit_positions = x.rows;
    result.converged = clusters.converged;
    double total = 0;
    for (Index j = 0; j < x.cols; ++j) {
      RunningMoments column;
      for (Index i = 0; i < x.rows; ++i) column.add(x(i, j));
      total += column.variance().value_or(0) * static_cast<double>(x.rows - 1);
    }
    if (total > 0) result.inputs_explained = 1 - clusters.inertia / total;
    return clusters;
  }

  void judge(const KMeans& clusters, const ClusterRows& gate, const ClusterRows& report,
             ClusterLayer& result) const {
    const std::vector<Index> groups = nearest_centres(report.view(), clusters, c_.executor);
    judge_silhouette(report, groups, result);
    judge_delta(clusters, gate, report, groups, result);
    std::vector<Index> decisions;
    for (const double d : report.delta) decisions.push_back(d <= 0 ? 1 : 0);
    const std::vector<Index> tokens(report.tokens.begin(), report.tokens.end());
    const auto purity_of = [&](const std::vector<Index>& labels) {
      return against_random(groups, options_.random_partitions, seed(), c_.executor,
                            [&](const std::vector<Index>& some) { return purity(some, labels); });
    };
    result.decision_purity = purity_of(decisions);
    result.token_purity = purity_of(tokens);
    result.clusters = summarise_clusters(groups, report, clusters.clusters(), options_.shown);
  }

  // Where all report positions fall into one cluster there is no other to be nearer to: 0.
  void judge_silhouette(const ClusterRows& report, const std::vector<Index>& groups,
                        ClusterLayer& result) const {
    if (std::all_of(groups.begin(), groups.end(), [&](Index g) { return g == groups.front(); })) {
      return;
    }
    const Silhouette found =
        silhouette(report.view(), groups, options_.silhouette_rows, seed(), c_.executor);
    result.silhouette = found.mean;
    result.silhouette_positions = found.rows;
  }

  void judge_delta(const KMeans& clusters, const ClusterRows& gate, const ClusterRows& report,
                   const std::vector<Index>& groups, ClusterLayer& result) const {
    const auto explained = explained_variance(groups, report.delta);
    if (!explained) return;
    result.delta_explained_adjusted = explained->adjusted;
    result.delta_explained =
        against_random(groups, options_.random_partitions, seed(), c_.executor,
                       [&](const std::vector<Index>& some) {
                         return explained_variance(some, report.delta).value().share;
                       });
    const std::vector<double> means = group_means(
        nearest_centres(gate.view(), clusters, c_.executor), gate.delta, clusters.clusters());
    std::vector<double> predicted;
    for (const Index g : groups) predicted.push_back(means[static_cast<std::size_t>(g)]);
    result.delta_held_out_r2 = r_squared(report.delta, predicted);
  }

  const SweepContext<B>& c_;
  const ClustersOptions& options_;
  Index layer_;
  const CoMoments& moments_;
};

}  // namespace detail

/// k-means of the MLP inputs at the positions that predict, in the principal components of the fit
/// split's inputs; centres and their mean δ from the gate split, every figure from the report
/// split, beside random partitions of the same sizes. Memory besides a pass: `components` numbers a
/// position of the gate and report splits. Throws what its parts throw; DataError
/// ("stats/clusters") where fewer positions differ than clusters are asked for.
template <class B>
ClustersResult run_clusters(const StudyInput<B>& input, const ClustersOptions& options = {},
                            const ClustersCheckpoint& checkpoint = {}) {
  LayerStudy<B> study(input, {.gate = true, .select = input.options.rhos.size() > 1});
  ClustersResult result{study.header(), options.clusters, {}};
  const SweepContext<B> context = study.context();
  result.layers = study.for_each_layer("clusters", checkpoint, [&](Index layer) {
    return detail::LayerClusters<B>(context, options, layer, study.moments(layer)).run();
  });
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
