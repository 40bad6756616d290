// Reading of one safetensors file through a memory map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/dtype.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/mapped_file.hpp"
#include "wanamaker/io/mapped_values.hpp"
#include "wanamaker/io/safetensors_header.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A safetensors file, open for reading. Tensors are converted piece by piece and the pages of what
/// was read are given back, so that memory beyond the results stays near 1 MB. Several threads may
/// read at once.
class SafetensorsFile {
 public:
  /// Opens the file and checks its whole header. Throws FileError, and FormatError as
  /// read_safetensors_header.
  static SafetensorsFile open(const std::filesystem::path& path) {
    MappedFile file(path);
    SafetensorsHeader header = read_safetensors_header(file.text(), path.string());
    return SafetensorsFile(std::move(file), std::move(header));
  }

  const std::filesystem::path& path() const { return file_.path(); }
  /// The file's `__metadata__`.
  const std::map<std::string, std::string, std::less<>>& metadata() const {
    return header_.metadata;
  }
  /// All tensors, sorted by name.
  const std::map<std::string, TensorInfo, std::less<>>& tensors() const { return header_.tensors; }
  /// All names, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& tensor : header_.tensors) names.push_back(tensor.first);
    return names;
  }
  bool contains(std::string_view name) const { return header_.tensors.contains(name); }

  /// Throws FormatError where there is no such tensor.
  const TensorInfo& info(std::string_view name) const {
    const auto tensor = header_.tensors.find(name);
    if (tensor != header_.tensors.end()) return tensor->second;
    detail::throw_missing_tensor(path(), name, header_.tensors.size());
  }

  /// The tensor's bytes as they are in the file, at any alignment.
  std::span<const std::byte> bytes(std::string_view name) const { return values(name).bytes(); }

  /// Reads a tensor of a floating type into out[0 … count). T is float or double for every floating
  /// type; half or bfloat16 for that type only. Throws FormatError for another type or count, and
  /// DataError (tensor, element) for NaN and infinities unless they are allowed.
  template <FloatElement T>
  void read_into(std::string_view name, T* out, std::size_t count,
                 NonFinite non_finite = NonFinite::refuse) const {
    const MappedValues from = values(name);
    if (from.count() != count) detail::throw_wrong_count(place(name), count, info(name).shape);
    from.read_into(out, non_finite);
  }

  /// As read_into, into a vector.
  template <FloatElement T>
  std::vector<T> read(std::string_view name, NonFinite non_finite = NonFinite::refuse) const {
    return values(name).template read<T>(non_finite);
  }

  /// Reads a tensor of an integer type, or of booleans as 0 and 1. Throws FormatError for a
  /// floating type, DataError for a value beyond int64.
  std::vector<std::int64_t> read_integers(std::string_view name) const {
    return values(name).read_integers();
  }

 private:
  SafetensorsFile(MappedFile file, SafetensorsHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}

  std::string place(std::string_view name) const {
    return path().string() + ", tensor " + detail::in_quotes(name);
  }
  MappedValues values(std::string_view name) const {
    const TensorInfo& tensor = info(name);
    return {file_, place(name), tensor.dtype, tensor.begin, tensor.elements()};
  }

  MappedFile file_;
  SafetensorsHeader header_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
