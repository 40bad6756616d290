// The experiments on where the routing decision lives, behind a plain interface: compiled for one
// backend in a source file of its own.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine.hpp"
#include "wanamaker/study/clusters_result.hpp"
#include "wanamaker/study/features_result.hpp"
#include "wanamaker/study/forensics_result.hpp"
#include "wanamaker/study/marginal_result.hpp"
#include "wanamaker/study/probe_result.hpp"
#include "wanamaker/study/transfer_result.hpp"

namespace study {

/// Splits of the documents of one text.
struct CorpusPart {
  std::string name{};
  wanamaker::Splits splits{};
};

/// A loaded model that these experiments can be run on.
class RoutingEngine : public LoadedModel {
 public:
  template <class Layer>
  using LayersCheckpoint = wanamaker::Checkpoint<wanamaker::Index, Layer>;

  virtual wanamaker::ProbeResult probe(
      const LayerTask& task, const wanamaker::ProbeOptions& options,
      const LayersCheckpoint<wanamaker::ProbeLayer>& checkpoint) = 0;
  /// Lists of the first part against its own halves and every other part.
  virtual wanamaker::TransferResult transfer(
      const LayerTask& task, const std::vector<CorpusPart>& parts,
      const wanamaker::TransferOptions& options,
      const LayersCheckpoint<wanamaker::TransferLayer>& checkpoint) = 0;
  virtual wanamaker::ClustersResult clusters(
      const LayerTask& task, const wanamaker::ClustersOptions& options,
      const LayersCheckpoint<wanamaker::ClusterLayer>& checkpoint) = 0;
  virtual wanamaker::FeaturesResult features(
      const LayerTask& task, const wanamaker::FeaturesOptions& options,
      const LayersCheckpoint<wanamaker::FeaturesLayer>& checkpoint) = 0;
  virtual wanamaker::MarginalResult marginal(const LayerTask& task,
                                             const wanamaker::MarginalOptions& options,
                                             const wanamaker::MarginalCheckpoint& checkpoint) = 0;
  virtual wanamaker::ForensicsResult forensics(
      const LayerTask& task, const wanamaker::ForensicsOptions& options,
      const LayersCheckpoint<wanamaker::ForensicsLayer>& checkpoint) = 0;
};

/// Computes in float with the BLAS of this build, or else Eigen's products.
std::unique_ptr<RoutingEngine> make_routing_engine(const std::filesystem::path& model,
                                                   wanamaker::ExecutorRef executor);

}  // namespace study
