// A folder of results, as commands leave it: one model's files, or a folder for each model.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/report/result_view.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Commands whose results are read.
inline constexpr std::array result_commands = {
    "perplexity", "sweep",    "gate-curve", "compound",  "probe",       "transfer",
    "clusters",   "features", "marginal",   "forensics", "progressive", "two-phase",
    "control",    "pretrain", "generate",   "budgets",   "twins"};

/// What was measured of one model.
struct ModelResults {
  std::string name{};
  std::map<std::string, Json> results{};  ///< by command
  std::map<std::string, Json> times{};

  /// Nothing where the command was not run.
  ResultView result(const std::string& command) const {
    const auto found = results.find(command);
    if (found == results.end()) return {};
    return ResultView(found->second, name + "/" + command + ".json");
  }
  ResultView time(const std::string& command) const {
    const auto found = times.find(command);
    if (found == times.end()) return {};
    return ResultView(found->second, name + "/" + command + ".times.json");
  }
};

namespace detail {

inline Json read_result(const std::filesystem::path& path) {
  Json json = parse_json_file(path);
  const ResultView view(json, path.string());
  if (view.text("schema") == "wanamaker/1") return json;
  throw FormatError({.id = "report/schema",
                     .where = path.string(),
                     .what = "not a result file that can be read",
                     .expected = "\"schema\": \"wanamaker/1\"",
                     .found = view["schema"] ? view.text("schema") : "none",
                     .mend = "give a folder that study wrote, or run the command again"});
}

inline ModelResults read_model_results(const std::filesystem::path& folder) {
  ModelResults model;
  for (const char* command : result_commands) {
    const std::filesystem::path file = folder / (std::string(command) + ".json");
    const std::filesystem::path times = folder / (std::string(command) + ".times.json");
    if (std::filesystem::exists(file)) model.results.emplace(command, read_result(file));
    if (std::filesystem::exists(times)) model.times.emplace(command, read_result(times));
  }
  for (const auto& [command, json] : model.results) {
    if (model.name.empty()) model.name = ResultView(json, command)["model"].text("name");
  }
  if (model.name.empty()) model.name = folder.filename().string();
  return model;
}

inline std::vector<std::filesystem::path> folders_inside(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> folders;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace detail

/// The results in a folder and in the folders directly inside it, ordered by folder. Throws
/// FormatError for a file that is no result, DataError where there are none, FileError.
inline std::vector<ModelResults> read_result_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> folders = detail::folders_inside(folder);
  folders.insert(folders.begin(), folder);
  std::vector<ModelResults> models;
  for (const std::filesystem::path& inside : folders) {
    ModelResults model = detail::read_model_results(inside);
    if (!model.results.empty()) models.push_back(std::move(model));
  }
  if (!models.empty()) return models;
  throw DataError({.id = "report/no-results",
                   .where = folder.string(),
                   .what = "no results in this folder",
                   .expected = "files such as sweep.json, here or one folder below",
                   .found = "none",
                   .mend = "run study all --out FOLDER first"});
}

}  // namespace wanamaker::inline WANAMAKER_ABI
