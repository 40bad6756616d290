#include <span>
#include <string>
#include <vector>

#include "routing.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/study/clusters.hpp"
#include "wanamaker/study/features.hpp"
#include "wanamaker/study/forensics.hpp"
#include "wanamaker/study/marginal.hpp"
#include "wanamaker/study/probe.hpp"
#include "wanamaker/study/transfer.hpp"

namespace study {

namespace {

using Backend = wanamaker::BlasBackend<float>;
using Input = wanamaker::StudyInput<Backend>;

class BlasRoutingEngine final : public RoutingEngine {
 public:
  BlasRoutingEngine(const std::filesystem::path& model, wanamaker::ExecutorRef executor)
      : backend_(executor),
        executor_(executor),
        model_(wanamaker::load_model(backend_, model)),
        workspace_(backend_) {}

  const wanamaker::ModelConfig& config() const override { return model_.config(); }
  std::string arithmetic() const override {
    return std::string("float, ") + wanamaker::BlasGemm::library();
  }

  wanamaker::ProbeResult probe(const LayerTask& task, const wanamaker::ProbeOptions& options,
                               const LayersCheckpoint<wanamaker::ProbeLayer>& checkpoint) override {
    return wanamaker::run_probe(input(task, task.splits), options, checkpoint);
  }

  wanamaker::TransferResult transfer(
      const LayerTask& task, const std::vector<CorpusPart>& parts,
      const wanamaker::TransferOptions& options,
      const LayersCheckpoint<wanamaker::TransferLayer>& checkpoint) override {
    std::vector<Input> inputs;
    for (const CorpusPart& part : parts) inputs.push_back(input(task, part.splits));
    std::vector<wanamaker::NamedStudy<Backend>> studies;
    for (std::size_t p = 0; p < parts.size(); ++p) studies.push_back({parts[p].name, &inputs[p]});
    const std::span<const wanamaker::NamedStudy<Backend>> all(studies);
    return wanamaker::run_transfer<Backend>(all.front(), all.subspan(1), options, checkpoint);
  }

  wanamaker::ClustersResult clusters(
      const LayerTask& task, const wanamaker::ClustersOptions& options,
      const LayersCheckpoint<wanamaker::ClusterLayer>& checkpoint) override {
    return wanamaker::run_clusters(input(task, task.splits), options, checkpoint);
  }

  wanamaker::FeaturesResult features(
      const LayerTask& task, const wanamaker::FeaturesOptions& options,
      const LayersCheckpoint<wanamaker::FeaturesLayer>& checkpoint) override {
    return wanamaker::run_features(input(task, task.splits), options, checkpoint);
  }

  wanamaker::MarginalResult marginal(const LayerTask& task,
                                     const wanamaker::MarginalOptions& options,
                                     const wanamaker::MarginalCheckpoint& checkpoint) override {
    return wanamaker::run_marginal(input(task, task.splits), options, checkpoint);
  }

  wanamaker::ForensicsResult forensics(
      const LayerTask& task, const wanamaker::ForensicsOptions& options,
      const LayersCheckpoint<wanamaker::ForensicsLayer>& checkpoint) override {
    return wanamaker::run_forensics(input(task, task.splits), options, checkpoint);
  }

 private:
  Input input(const LayerTask& task, const wanamaker::Splits& splits) {
    return {backend_,  model_,        task.corpus,  splits,    workspace_,
            task.rule, task.protocol, task.options, executor_, task.progress};
  }

  Backend backend_;
  wanamaker::ExecutorRef executor_;
  wanamaker::AnyTransformer<Backend> model_;
  wanamaker::Workspace<Backend> workspace_;
};

}  // namespace

std::unique_ptr<RoutingEngine> make_routing_engine(const std::filesystem::path& model,
                                                   wanamaker::ExecutorRef executor) {
  return std::make_unique<BlasRoutingEngine>(model, executor);
}

}  // namespace study
