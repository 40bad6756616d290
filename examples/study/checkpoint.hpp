// The state of an unfinished run: finished parts in one file, replaced as a whole after each.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "wanamaker/io/json.hpp"
#include "wanamaker/io/json_writing.hpp"
#include "wanamaker/study/checkpoint.hpp"
#include "wanamaker/study/clusters_result.hpp"
#include "wanamaker/study/features_result.hpp"
#include "wanamaker/study/finetune_result.hpp"
#include "wanamaker/study/forensics_result.hpp"
#include "wanamaker/study/marginal_result.hpp"
#include "wanamaker/study/probe_result.hpp"
#include "wanamaker/study/transfer_result.hpp"

namespace study {

/// Keeps parts of results by name in a file. Only a state of the same settings is taken up again.
class RunState {
 public:
  /// `settings` names everything that results depend on. With `resume` a stored state is read;
  /// throws wanamaker::ProtocolError where it was made with other settings.
  RunState(std::filesystem::path file, std::string settings, bool resume);

  /// Checkpoints that keep their parts here; the state must outlive them.
  wanamaker::SweepCheckpoint for_sweep();
  wanamaker::GateCurveCheckpoint for_gate_curve();
  wanamaker::CompoundCheckpoint for_compound();
  wanamaker::Checkpoint<wanamaker::Index, wanamaker::ProbeLayer> for_probe();
  wanamaker::Checkpoint<wanamaker::Index, wanamaker::TransferLayer> for_transfer();
  wanamaker::Checkpoint<wanamaker::Index, wanamaker::ClusterLayer> for_clusters();
  wanamaker::Checkpoint<wanamaker::Index, wanamaker::FeaturesLayer> for_features();
  wanamaker::Checkpoint<wanamaker::Index, wanamaker::ForensicsLayer> for_forensics();
  wanamaker::Checkpoint<wanamaker::Index, wanamaker::GatesOfDelta> for_gates_of_delta();
  wanamaker::FinetuneCheckpoint for_finetune();

  /// Removes the file: the results are written.
  void finish();

 private:
  /// Parts are layers, read by `from_json`; `kind` tells apart what a run keeps of one layer.
  template <class Layer>
  wanamaker::Checkpoint<wanamaker::Index, Layer> for_layers(
      Layer (*from_json)(const wanamaker::Json& json, const std::string& where),
      const std::string& kind = "layer ");

  void read();
  void store(const std::string& name, const wanamaker::OrderedJson& part);
  std::optional<wanamaker::Json> find(const std::string& name) const;

  std::filesystem::path file_;
  std::string settings_;
  std::map<std::string, wanamaker::OrderedJson> parts_;
};

}  // namespace study
