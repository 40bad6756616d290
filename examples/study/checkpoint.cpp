#include "checkpoint.hpp"

#include <system_error>
#include <utility>

#include "wanamaker/report/result_json.hpp"
#include "wanamaker/report/result_reading.hpp"

namespace study {

SweepState::SweepState(std::filesystem::path file, std::string settings, bool resume)
    : file_(std::move(file)), settings_(std::move(settings)) {
  std::error_code unreadable;
  if (resume && std::filesystem::exists(file_, unreadable)) read();
}

void SweepState::read() {
  const wanamaker::Json stored = wanamaker::parse_json_file(file_);
  const std::string where = file_.string();
  if (wanamaker::detail::value_at<std::string>(stored, "settings", where) != settings_) {
    throw wanamaker::ProtocolError({.id = "protocol/other-settings",
                                    .where = where,
                                    .what = "the stored state belongs to other settings",
                                    .expected = "the model, texts and options of the first run",
                                    .mend = "use the same options, or run without --resume"});
  }
  for (const wanamaker::Json& json :
       wanamaker::detail::value_at<wanamaker::Json>(stored, "layers", where)) {
    wanamaker::LayerResult layer = wanamaker::layer_result_from_json(json, where);
    layers_.insert_or_assign(layer.layer, std::move(layer));
  }
}

void SweepState::write() const {
  wanamaker::OrderedJson layers = wanamaker::OrderedJson::array();
  for (const auto& [number, layer] : layers_) layers.push_back(wanamaker::json_of(layer));
  wanamaker::write_json(file_,
                        {{"schema", "wanamaker/1"}, {"settings", settings_}, {"layers", layers}});
}

wanamaker::SweepCheckpoint SweepState::checkpoint() {
  return {[this](wanamaker::Index layer) -> std::optional<wanamaker::LayerResult> {
            const auto stored = layers_.find(layer);
            if (stored == layers_.end()) return std::nullopt;
            return stored->second;
          },
          [this](const wanamaker::LayerResult& layer) {
            layers_.insert_or_assign(layer.layer, layer);
            write();
          }};
}

void SweepState::finish() {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

}  // namespace study
