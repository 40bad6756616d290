// What a training run resumes from, bit by bit: parameters, moments and the loss curve, in one
// safetensors file that is replaced as a whole; the one before it is kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/core/error.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/io/dtype.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/safetensors.hpp"
#include "wanamaker/io/safetensors_writer.hpp"
#include "wanamaker/nn/parameters.hpp"
#include "wanamaker/train/adamw.hpp"
#include "wanamaker/train/loss_curve.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline constexpr std::string_view checkpoint_format = "wanamaker/training/1";
inline constexpr Index curve_columns = 5;

[[noreturn]] inline void throw_checkpoint(const std::filesystem::path& path, std::string what,
                                          std::string expected, std::string found) {
  throw FormatError({.id = "training/checkpoint",
                     .where = path.string(),
                     .what = std::move(what),
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .mend = "remove the file; training goes on from the checkpoint before it"});
}

inline std::vector<double> curve_values(const LossCurve& curve) {
  std::vector<double> values;
  for (const TrainingStep& step : curve) {
    values.insert(values.end(), {static_cast<double>(step.step), static_cast<double>(step.tokens),
                                 step.loss, step.learning_rate, step.gradient_norm});
  }
  return values;
}

/// Throws FormatError unless the rows are steps 1, 2, … of a run.
inline LossCurve curve_of(const std::vector<double>& values, const std::filesystem::path& path) {
  LossCurve curve;
  double tokens = 0;
  for (std::size_t i = 0; i < values.size(); i += curve_columns) {
    const double* row = values.data() + i;
    const bool fits = row[0] == static_cast<double>(curve.size() + 1) && row[1] >= tokens &&
                      row[1] <= 0x1p53 && row[1] == std::floor(row[1]);
    if (!fits) {
      throw_checkpoint(path, "loss curve", "steps 1, 2, … and rising numbers of tokens",
                       "row " + std::to_string(curve.size()) + " that does not fit");
    }
    tokens = row[1];
    curve.push_back(
        {static_cast<Index>(row[0]), static_cast<Index>(row[1]), row[2], row[3], row[4]});
  }
  return curve;
}

/// SHA-256 of the settings, and of names and bytes in the order of names.
inline std::string digest_of(std::vector<TensorToWrite> tensors, std::string_view settings) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorToWrite& a, const TensorToWrite& b) { return a.name < b.name; });
  Sha256 hash;
  hash.update_field(settings);
  for (const TensorToWrite& tensor : tensors) {
    hash.update_field(tensor.name).update_number(tensor.bytes.size());
    hash.update(tensor.bytes.data(), tensor.bytes.size());
  }
  return hash.hex();
}

inline std::string metadata_or_empty(const SafetensorsFile& file, std::string_view key) {
  const auto entry = file.metadata().find(key);
  return entry == file.metadata().end() ? std::string() : entry->second;
}

inline std::string digest_of(const SafetensorsFile& file) {
  Sha256 hash;
  hash.update_field(metadata_or_empty(file, "settings"));
  for (const std::string& name : file.names()) {
    const std::span<const std::byte> bytes = file.bytes(name);
    hash.update_field(name).update_number(bytes.size()).update(bytes.data(), bytes.size());
  }
  return hash.hex();
}

/// The arrays that a checkpoint holds, with the names that they have in it.
template <class B>
struct CheckpointArray {
  std::string name;
  matrix_view_t<B> view;
};

template <class B>
std::vector<CheckpointArray<B>> checkpoint_arrays(const ParameterList<B>& parameters,
                                                  AdamW::State<B>& state) {
  std::vector<CheckpointArray<B>> arrays;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter<B>& p = parameters[i];
    arrays.push_back({"value." + p.name, p.value});
    if (p.frozen) continue;
    arrays.push_back({"first." + p.name, state.first_moment(i)});
    arrays.push_back({"second." + p.name, state.second_moment(i)});
  }
  return arrays;
}

}  // namespace detail

/// Writes one checkpoint, atomically. `settings_hash` is of everything else that the run depends on
/// (training_hash of trainer.hpp). Throws FileError.
template <Backend B>
void save_checkpoint(const std::filesystem::path& path, std::string_view settings_hash, B& backend,
                     const ParameterList<B>& parameters, AdamW::State<B>& state,
                     const LossCurve& curve) {
  using T = scalar_t<B>;
  std::vector<std::vector<T>> values;
  std::vector<TensorToWrite> tensors;
  const auto arrays = detail::checkpoint_arrays(parameters, state);
  values.reserve(arrays.size());
  backend.synchronize();
  for (const detail::CheckpointArray<B>& array : arrays) {
    const matrix_view_t<B> view = array.view;
    std::vector<T>& host = values.emplace_back(static_cast<std::size_t>(view.size()));
    for (Index row = 0; row < view.rows; ++row) {
      backend.copy_to_host(view.row(row), view.cols, host.data() + row * view.cols);
    }
    tensors.push_back(tensor_to_write<T>(array.name, host, {view.rows, view.cols}));
  }
  const std::vector<double> rows = detail::curve_values(curve);
  if (!curve.empty()) {
    tensors.push_back(tensor_to_write<double>(
        "curve", rows, {static_cast<Index>(curve.size()), detail::curve_columns}));
  }
  const std::string digest = detail::digest_of(tensors, settings_hash);
  write_safetensors(path, std::move(tensors),
                    {{"format", std::string(detail::checkpoint_format)},
                     {"settings", std::string(settings_hash)},
                     {"sha256", digest}});
}

/// A checkpoint file, open and checked to be whole.
class CheckpointFile {
 public:
  /// Throws FileError; FormatError for another format and for bytes that are not those that were
  /// written; ProtocolError where the run had other settings than `settings_hash`.
  CheckpointFile(const std::filesystem::path& path, std::string_view settings_hash)
      : file_(SafetensorsFile::open(path)) {
    const std::string format = detail::metadata_or_empty(file_, "format");
    if (format != detail::checkpoint_format) {
      detail::throw_checkpoint(path, "not a checkpoint of this version",
                               std::string(detail::checkpoint_format),
                               format.empty() ? "no format" : detail::in_quotes(format));
    }
    const std::string digest = detail::metadata_or_empty(file_, "sha256");
    if (detail::digest_of(file_) != digest) {
      detail::throw_checkpoint(path, "damaged", "the bytes that were written", "others");
    }
    check_settings(settings_hash);
  }

  /// Copies what the file holds into the parameters, the state and the curve: all of it, or nothing
  /// where it throws. Throws FormatError for arrays of other names, types or shapes; DataError for
  /// NaN and infinities.
  template <Backend B>
  void read(B& backend, const ParameterList<B>& parameters, AdamW::State<B>& state,
            LossCurve& curve) const {
    using T = scalar_t<B>;
    const auto arrays = detail::checkpoint_arrays(parameters, state);
    std::vector<std::vector<T>> values;
    for (const detail::CheckpointArray<B>& array : arrays) {
      check_tensor(array.name, dtype_of<T>, {array.view.rows, array.view.cols});
      values.push_back(file_.read<T>(array.name));
    }
    LossCurve stored = read_curve(arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const matrix_view_t<B> view = arrays[i].view;
      for (Index row = 0; row < view.rows; ++row) {
        backend.copy_from_host(values[i].data() + row * view.cols, view.cols, view.row(row));
      }
    }
    state.set_step(static_cast<Index>(stored.size()));
    curve = std::move(stored);
  }

 private:
  void check_settings(std::string_view settings_hash) const {
    const std::string own = detail::metadata_or_empty(file_, "settings");
    if (own == settings_hash) return;
    throw ProtocolError({.id = "training/other-settings",
                         .where = file_.path().string(),
                         .what = "the checkpoint belongs to a run with other settings or data",
                         .expected = std::string(settings_hash),
                         .found = detail::in_quotes(own),
                         .mend = "resume with the settings of that run, or use another folder"});
  }

  void check_tensor(const std::string& name, DType dtype, const Shape& shape) const {
    const TensorInfo& info = file_.info(name);
    if (info.dtype == dtype && info.shape == shape) return;
    detail::throw_checkpoint(file_.path(), "tensor " + detail::in_quotes(name),
                             std::string(dtype_name(dtype)) + " " + shape_text(shape),
                             std::string(dtype_name(info.dtype)) + " " + shape_text(info.shape));
  }

  LossCurve read_curve(std::size_t other_tensors) const {
    const bool has_curve = file_.contains("curve");
    if (file_.tensors().size() != other_tensors + (has_curve ? 1 : 0)) {
      detail::throw_checkpoint(file_.path(), "tensors of another model or with other freezing",
                               std::to_string(other_tensors),
                               std::to_string(file_.tensors().size()));
    }
    if (!has_curve) return {};
    const Shape& shape = file_.info("curve").shape;
    const Index rows = shape.empty() ? 0 : shape.front();
    check_tensor("curve", DType::float64, {rows, detail::curve_columns});
    return detail::curve_of(file_.read<double>("curve"), file_.path());
  }

  SafetensorsFile file_;
};

/// How a run was resumed.
struct Resumption {
  Index step = 0;       ///< steps that are done
  std::string fault{};  ///< what was wrong with the newest checkpoint; empty where it was read
};

/// A folder with the newest checkpoint and the one before it, of one run.
class CheckpointFolder {
 public:
  CheckpointFolder(std::filesystem::path folder, std::string settings_hash)
      : folder_(std::move(folder)), settings_hash_(std::move(settings_hash)) {}

  std::filesystem::path newest() const { return folder_ / "checkpoint.safetensors"; }
  std::filesystem::path previous() const { return folder_ / "checkpoint.previous.safetensors"; }

  /// At any moment there is a whole file with the newest name, once there was one. Throws
  /// FileError.
  template <Backend B>
  void save(B& backend, const ParameterList<B>& parameters, AdamW::State<B>& state,
            const LossCurve& curve) const {
    keep_newest();
    save_checkpoint(newest(), settings_hash_, backend, parameters, state, curve);
  }

  /// Reads the newest checkpoint; where that is missing or damaged, the one before it, which then
  /// takes its place. Nothing where there is none. Throws ProtocolError for checkpoints of another
  /// run, FileError, and what is wrong with the newest where the other cannot be read either.
  template <Backend B>
  std::optional<Resumption> load(B& backend, const ParameterList<B>& parameters,
                                 AdamW::State<B>& state, LossCurve& curve) const {
    if (!exists(newest()) && !exists(previous())) return std::nullopt;
    Resumption resumption;
    try {
      CheckpointFile(newest(), settings_hash_).read(backend, parameters, state, curve);
    } catch (const ProtocolError&) {
      throw;
    } catch (const Error& fault) {
      if (!exists(previous())) throw;
      CheckpointFile(previous(), settings_hash_).read(backend, parameters, state, curve);
      move_into_place(previous(), newest());
      resumption.fault = fault.what();
    }
    resumption.step = state.step();
    return resumption;
  }

 private:
  static bool exists(const std::filesystem::path& path) {
    std::error_code unreadable;
    return std::filesystem::exists(path, unreadable);
  }

  /// Gives the newest file its second name without taking the first. A file system without links
  /// gets a copy, put into place in one step.
  void keep_newest() const {
    if (!exists(newest())) return;
    const std::filesystem::path kept = folder_ / ".checkpoint.kept";
    std::error_code fault;
    std::filesystem::remove(kept, fault);
    std::filesystem::create_hard_link(newest(), kept, fault);
    if (fault) std::filesystem::copy_file(newest(), kept, fault);
    if (fault) refuse(fault, previous());
    move_into_place(kept, previous());
    // Where a kill left both names to one file, a rename from one of its names to the other does
    // nothing.
    std::filesystem::remove(kept, fault);
  }

  static void move_into_place(const std::filesystem::path& from, const std::filesystem::path& to) {
    std::error_code fault;
    std::filesystem::rename(from, to, fault);
    if (fault) refuse(fault, to);
  }

  [[noreturn]] static void refuse(std::error_code fault, const std::filesystem::path& path) {
    detail::throw_file_error(fault.value(), path, "cannot keep the checkpoint",
                             detail::writable_folder);
  }

  std::filesystem::path folder_;
  std::string settings_hash_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
