// The tensors of one model, in one file or in many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/dtype.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/gguf.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/io/safetensors.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A tensor of an archive: its shape, and its type of element where that has a name outside its
/// file's format (quantised ones have none; they read as float and double).
struct ArchivedTensor {
  Shape shape;
  std::optional<DType> dtype;
};

/// All tensors of a model, whatever files they are in. Files of a sharded model are opened when a
/// tensor of theirs is first asked for, and stay open. Several threads may read at once.
class TensorArchive {
 public:
  /// `path` is a folder that has model.safetensors or model.safetensors.index.json (the single file
  /// is taken where both are), such an index, a safetensors file, or a GGUF file (by its name).
  /// Throws FileError, and FormatError for a bad file or index.
  static TensorArchive open(const std::filesystem::path& path) {
    std::error_code unreadable;  // then opening it as a file says what is wrong
    if (!std::filesystem::is_directory(path, unreadable)) {
      const bool is_index = path.filename().string().ends_with(".index.json");
      return is_index ? from_index(path) : from_file(path);
    }
    if (exists(path / single_name)) return from_file(path / single_name);
    if (exists(path / index_name)) return from_index(path / index_name);
    throw_no_weights(path);
  }

  /// The file or index that was opened.
  const std::filesystem::path& path() const { return path_; }
  bool contains(std::string_view name) const { return shard_of_.contains(name); }
  /// All names, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& tensor : shard_of_) names.push_back(tensor.first);
    return names;
  }

  /// Shape and type. Throws FormatError where no file has the tensor, where the index names a file
  /// for it that has no such tensor, and as the files' open.
  ArchivedTensor info(std::string_view name) const {
    return std::visit([name](const auto& file) { return described(file.info(name)); },
                      file_of(name));
  }
  /// These do what the members of SafetensorsFile and GgufFile do.
  template <FloatElement T>
  void read_into(std::string_view name, T* out, std::size_t count,
                 NonFinite non_finite = NonFinite::refuse) const {
    std::visit([&](const auto& file) { file.read_into(name, out, count, non_finite); },
               file_of(name));
  }
  template <FloatElement T>
  std::vector<T> read(std::string_view name, NonFinite non_finite = NonFinite::refuse) const {
    return std::visit([&](const auto& file) { return file.template read<T>(name, non_finite); },
                      file_of(name));
  }

 private:
  static constexpr const char* single_name = "model.safetensors";
  static constexpr const char* index_name = "model.safetensors.index.json";

  using File = std::variant<SafetensorsFile, GgufFile>;
  struct Shard {
    std::filesystem::path path;
    std::optional<File> file;
  };
  /// On the heap, so that the archive can be moved although a mutex cannot.
  struct Shards {
    std::mutex mutex;
    std::vector<Shard> shards;
  };

  explicit TensorArchive(std::filesystem::path path)
      : path_(std::move(path)), shards_(std::make_unique<Shards>()) {}

  static bool exists(const std::filesystem::path& path) {
    std::error_code unreadable;
    return std::filesystem::exists(path, unreadable);
  }

  static ArchivedTensor described(const TensorInfo& info) { return {info.shape, info.dtype}; }
  static ArchivedTensor described(const GgufTensorInfo& info) {
    return {info.shape, dtype_of_gguf(info.type)};
  }

  const File& file_of(std::string_view name) const {
    const auto found = shard_of_.find(name);
    if (found == shard_of_.end()) detail::throw_missing_tensor(path_, name, shard_of_.size());
    const std::lock_guard lock(shards_->mutex);
    Shard& shard = shards_->shards[found->second];
    if (!shard.file) shard.file = open_shard(found->second);
    return *shard.file;
  }

  static TensorArchive from_file(const std::filesystem::path& path) {
    if (is_gguf_path(path)) return of(path, GgufFile::open(path));
    return of(path, SafetensorsFile::open(path));
  }

  template <class TensorFile>
  static TensorArchive of(const std::filesystem::path& path, TensorFile file) {
    TensorArchive archive(path);
    for (const auto& tensor : file.tensors()) archive.shard_of_.emplace(tensor.first, 0);
    archive.shards_->shards.push_back({path, File(std::move(file))});
    return archive;
  }

  static TensorArchive from_index(const std::filesystem::path& path) {
    const Json index = parse_json_file(path);
    const auto map = index.find("weight_map");
    if (!index.is_object() || map == index.end() || !map->is_object()) {
      throw_index(path, "no weight_map", "{\"weight_map\": {tensor: file, …}}", "no such object");
    }
    TensorArchive archive(path);
    std::map<std::string, std::size_t> shards;
    for (const auto& [tensor, shard] : map->items()) {
      if (!shard.is_string()) {
        throw_index(path, "tensor without a file", "a file name", detail::in_quotes(tensor));
      }
      const std::string& name = shard.get_ref<const std::string&>();
      const auto [known, is_first] = shards.try_emplace(name, shards.size());
      if (is_first) archive.add_shard(name);
      archive.shard_of_.emplace(tensor, known->second);
    }
    return archive;
  }

  /// The index is untrusted: it must not lead out of its folder.
  void add_shard(const std::string& name) {
    const bool is_plain = !name.empty() && name != "." && name != ".." &&
                          name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
    if (!is_plain) {
      throw_index(path_, "file name that is not plain", "a name without folders",
                  detail::in_quotes(name));
    }
    shards_->shards.push_back({path_.parent_path() / name, std::nullopt});
  }

  SafetensorsFile open_shard(std::size_t number) const {
    SafetensorsFile file = SafetensorsFile::open(shards_->shards[number].path);
    for (const auto& [tensor, shard] : shard_of_) {
      if (shard == number && !file.contains(tensor)) {
        throw_index(path_, "tensor that is not in its file",
                    detail::in_quotes(tensor) + " in " + file.path().string(),
                    std::to_string(file.tensors().size()) + " tensors of other names");
      }
    }
    return file;
  }

  [[noreturn]] static void throw_index(const std::filesystem::path& path, std::string what,
                                       std::string expected, std::string found) {
    throw FormatError({.id = "tensor/bad-index",
                       .where = path.string(),
                       .what = std::move(what),
                       .expected = std::move(expected),
                       .found = std::move(found),
                       .mend = "download the model's files again, all from one place"});
  }

  [[noreturn]] static void throw_no_weights(const std::filesystem::path& folder) {
    const bool has_pickle = exists(folder / "pytorch_model.bin");
    throw FileError({.id = "file/no-weights",
                     .where = folder.string(),
                     .what = "no weights in this folder",
                     .expected = std::string(single_name) + " or " + index_name,
                     .found = has_pickle ? "pytorch_model.bin" : "neither",
                     .mend = has_pickle ? "save the model as safetensors"
                                        : "give the folder of a downloaded model"});
  }

  std::filesystem::path path_;
  std::map<std::string, std::size_t, std::less<>> shard_of_;  // tensor → number of its shard
  std::unique_ptr<Shards> shards_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
