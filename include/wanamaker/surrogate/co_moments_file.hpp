// Co-moments of many layers in one safetensors file: what an interrupted collection resumes from,
// and what processes exchange.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/io/safetensors.hpp"
#include "wanamaker/io/safetensors_writer.hpp"
#include "wanamaker/surrogate/co_moments.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What a co-moments file holds.
struct SavedCoMoments {
  std::string settings_hash{};          ///< of everything that the numbers depend on
  std::map<Index, CoMoments> layers{};  ///< by layer
};

namespace detail {

inline constexpr std::string_view co_moments_format = "wanamaker/co-moments/1";

inline std::string co_moments_name(Index layer, std::string_view part) {
  return "layer." + std::to_string(layer) + "." + std::string(part);
}

// The two numbers that are no arrays, and the precision, as one tensor of doubles: exact below 2⁵³
// rows.
inline std::vector<double> co_moments_counts(const CoMoments& moments) {
  return {static_cast<double>(moments.rows()), moments.weight(),
          moments.precision() == GramPrecision::exact ? 1.0 : 0.0};
}

[[noreturn]] inline void throw_co_moments_file(const std::filesystem::path& path, std::string what,
                                               std::string expected, std::string found) {
  throw FormatError({.id = "format/co-moments",
                     .where = path.string(),
                     .what = std::move(what),
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .mend = "remove the file and collect again"});
}

inline std::string metadata_value(const SafetensorsFile& file, const std::string& key) {
  const auto entry = file.metadata().find(key);
  return entry == file.metadata().end() ? "" : entry->second;
}

// A tensor of float64 of this shape.
inline std::vector<double> read_doubles(const SafetensorsFile& file, const std::string& name,
                                        const Shape& shape) {
  const TensorInfo& info = file.info(name);
  if (info.dtype != DType::float64 || info.shape != shape) {
    throw_co_moments_file(file.path(), "tensor " + name, "F64 " + shape_text(shape),
                          std::string(dtype_name(info.dtype)) + " " + shape_text(info.shape));
  }
  return file.read<double>(name);
}

inline Index vector_length(const SafetensorsFile& file, const std::string& name) {
  const Shape& shape = file.info(name).shape;
  if (shape.size() != 1) {
    throw_co_moments_file(file.path(), "tensor " + name, "one dimension", shape_text(shape));
  }
  return shape.front();
}

inline CoMoments read_layer(const SafetensorsFile& file, Index layer) {
  const auto name = [layer](std::string_view part) { return co_moments_name(layer, part); };
  const Index d = vector_length(file, name("mean_x"));
  const Index e = vector_length(file, name("mean_y"));
  const std::vector<double> counts = read_doubles(file, name("counts"), {3});
  const bool is_count = counts[0] >= 0 && counts[0] <= 0x1p53;
  return CoMoments(
      CoMomentState{.rows = is_count ? static_cast<Index>(counts[0]) : -1,
                    .weight = counts[1],
                    .precision = counts[2] == 1.0 ? GramPrecision::exact : GramPrecision::blocked,
                    .mean_x = read_doubles(file, name("mean_x"), {d}),
                    .mean_y = read_doubles(file, name("mean_y"), {e}),
                    .xx = read_doubles(file, name("xx"), {d, d}),
                    .xy = read_doubles(file, name("xy"), {d, e}),
                    .yy = read_doubles(file, name("yy"), {e})});
}

// "layer.12.xx" → 12; nothing for any other name.
inline std::optional<Index> layer_of_name(std::string_view name) {
  constexpr std::string_view prefix = "layer.";
  constexpr std::string_view suffix = ".xx";
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  if (name.size() <= prefix.size() + suffix.size()) return std::nullopt;
  const std::string_view digits =
      name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  Index layer = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9' || layer > std::numeric_limits<Index>::max() / 10 - 1) {
      return std::nullopt;
    }
    layer = layer * 10 + (c - '0');
  }
  return layer;
}

}  // namespace detail

/// Writes co-moments by layer, atomically, with a hash of the settings that they depend on (model,
/// text, protocol, options: the caller's; Sha256 of core/hash.hpp will do). Throws FileError.
inline void save_co_moments(
    const std::filesystem::path& path, std::string_view settings_hash,
    const std::map<Index, std::reference_wrapper<const CoMoments>>& layers) {
  std::vector<TensorToWrite> tensors;
  std::map<Index, std::vector<double>> counts;
  const auto add = [&tensors](Index layer, std::string_view part, const std::vector<double>& values,
                              Shape shape) {
    tensors.push_back(
        tensor_to_write<double>(detail::co_moments_name(layer, part), values, std::move(shape)));
  };
  for (const auto& [layer, reference] : layers) {
    const CoMoments& moments = reference;
    const CoMomentState& state = moments.state();
    const Index d = moments.inputs();
    const Index e = moments.outputs();
    add(layer, "counts", counts[layer] = detail::co_moments_counts(moments), {3});
    add(layer, "mean_x", state.mean_x, {d});
    add(layer, "mean_y", state.mean_y, {e});
    add(layer, "xx", state.xx, {d, d});
    add(layer, "xy", state.xy, {d, e});
    add(layer, "yy", state.yy, {e});
  }
  write_safetensors(path, std::move(tensors),
                    {{"format", std::string(detail::co_moments_format)},
                     {"settings", std::string(settings_hash)}});
}

/// Reads what save_co_moments wrote. Throws FormatError for another format or version, for tensors
/// of other shapes, and where the settings differ from `settings_hash` (empty: any are accepted);
/// DataError for numbers that cannot be co-moments.
inline SavedCoMoments load_co_moments(const std::filesystem::path& path,
                                      std::string_view settings_hash) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const std::string format = detail::metadata_value(file, "format");
  if (format != detail::co_moments_format) {
    detail::throw_co_moments_file(path, "not a co-moments file of this version",
                                  std::string(detail::co_moments_format),
                                  format.empty() ? "no format" : detail::in_quotes(format));
  }
  SavedCoMoments saved{detail::metadata_value(file, "settings"), {}};
  if (!settings_hash.empty() && saved.settings_hash != settings_hash) {
    detail::throw_co_moments_file(path, "collected with other settings", std::string(settings_hash),
                                  detail::in_quotes(saved.settings_hash));
  }
  for (const std::string& name : file.names()) {
    const std::optional<Index> layer = detail::layer_of_name(name);
    if (layer) saved.layers.emplace(*layer, detail::read_layer(file, *layer));
  }
  return saved;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
