#include "checkpoint.hpp"

#include <system_error>
#include <utility>

#include "wanamaker/report/finetune_report.hpp"
#include "wanamaker/report/forensics_json.hpp"
#include "wanamaker/report/position_json.hpp"
#include "wanamaker/report/result_json.hpp"
#include "wanamaker/report/routing_reading.hpp"

namespace study {

using wanamaker::Index;

RunState::RunState(std::filesystem::path file, std::string settings, bool resume)
    : file_(std::move(file)), settings_(std::move(settings)) {
  std::error_code unreadable;
  if (resume && std::filesystem::exists(file_, unreadable)) read();
}

void RunState::read() {
  const wanamaker::Json stored = wanamaker::parse_json_file(file_);
  const std::string where = file_.string();
  if (wanamaker::detail::value_at<std::string>(stored, "settings", where) != settings_) {
    throw wanamaker::ProtocolError({.id = "protocol/other-settings",
                                    .where = where,
                                    .what = "the stored state belongs to other settings",
                                    .expected = "the model, texts and options of the first run",
                                    .mend = "use the same options, or run without --resume"});
  }
  const auto parts = wanamaker::detail::value_at<wanamaker::Json>(stored, "parts", where);
  for (const auto& [name, part] : parts.items()) parts_[name] = part;
}

void RunState::store(const std::string& name, const wanamaker::OrderedJson& part) {
  parts_[name] = part;
  wanamaker::OrderedJson parts = wanamaker::OrderedJson::object();
  for (const auto& [key, value] : parts_) parts[key] = value;
  wanamaker::write_json(file_,
                        {{"schema", "wanamaker/1"}, {"settings", settings_}, {"parts", parts}});
}

std::optional<wanamaker::Json> RunState::find(const std::string& name) const {
  const auto stored = parts_.find(name);
  if (stored == parts_.end()) return std::nullopt;
  return wanamaker::Json(stored->second);
}

template <class Layer>
wanamaker::Checkpoint<Index, Layer> RunState::for_layers(
    Layer (*from_json)(const wanamaker::Json& json, const std::string& where),
    const std::string& kind) {
  return {[this, from_json, kind](Index layer) -> std::optional<Layer> {
            const auto part = find(kind + std::to_string(layer));
            if (!part) return std::nullopt;
            return from_json(*part, file_.string());
          },
          [this, kind](const Layer& layer) {
            store(kind + std::to_string(layer.layer), wanamaker::json_of(layer));
          }};
}

wanamaker::SweepCheckpoint RunState::for_sweep() {
  return for_layers(wanamaker::layer_result_from_json);
}

wanamaker::GateCurveCheckpoint RunState::for_gate_curve() {
  return for_layers(wanamaker::curve_layer_from_json);
}

wanamaker::Checkpoint<Index, wanamaker::ProbeLayer> RunState::for_probe() {
  return for_layers(wanamaker::probe_layer_from_json);
}

wanamaker::Checkpoint<Index, wanamaker::TransferLayer> RunState::for_transfer() {
  return for_layers(wanamaker::transfer_layer_from_json);
}

wanamaker::Checkpoint<Index, wanamaker::ClusterLayer> RunState::for_clusters() {
  return for_layers(wanamaker::cluster_layer_from_json);
}

wanamaker::Checkpoint<Index, wanamaker::FeaturesLayer> RunState::for_features() {
  return for_layers(wanamaker::features_layer_from_json);
}

wanamaker::Checkpoint<Index, wanamaker::ForensicsLayer> RunState::for_forensics() {
  return for_layers(wanamaker::forensics_layer_from_json);
}

wanamaker::Checkpoint<Index, wanamaker::GatesOfDelta> RunState::for_gates_of_delta() {
  return for_layers(wanamaker::gates_of_delta_from_json, "gates of layer ");
}

wanamaker::CompoundCheckpoint RunState::for_compound() {
  return {[this](const std::string& name) -> std::optional<wanamaker::CompoundVariant> {
            const auto part = find(name);
            if (!part) return std::nullopt;
            return wanamaker::compound_variant_from_json(*part, file_.string());
          },
          [this](const wanamaker::CompoundVariant& variant) {
            store(variant.name, wanamaker::json_of(variant));
          }};
}

wanamaker::FinetuneCheckpoint RunState::for_finetune() {
  const auto name = [](const std::string& arm, std::uint64_t seed) {
    return arm + ", seed " + std::to_string(seed);
  };
  return {[this, name](const wanamaker::ArmKey& key) -> std::optional<wanamaker::ArmRun> {
            const auto part = find(name(key.arm, key.seed));
            if (!part) return std::nullopt;
            return wanamaker::arm_run_from_json(*part, file_.string());
          },
          [this, name](const wanamaker::ArmRun& run) {
            store(name(run.arm, run.seed), wanamaker::json_of(run));
          }};
}

void RunState::finish() {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

}  // namespace study
