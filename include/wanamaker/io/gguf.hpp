// Reading of one GGUF file through a memory map.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/convert.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/gguf_header.hpp"
#include "wanamaker/io/gguf_quantization.hpp"
#include "wanamaker/io/mapped_file.hpp"
#include "wanamaker/io/mapped_values.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// True for paths that end in .gguf.
inline bool is_gguf_path(const std::filesystem::path& path) {
  return path.extension() == ".gguf";
}

/// A GGUF file, open for reading. Tensors are dequantised piece by piece and the pages of what was
/// read are given back, so that memory beyond the results stays near 1 MB. Several threads may read
/// at once.
class GgufFile {
 public:
  /// Opens the file and checks its whole header. Throws FileError, and FormatError as
  /// read_gguf_header.
  static GgufFile open(const std::filesystem::path& path) {
    MappedFile file(path);
    GgufHeader header = read_gguf_header(file.text(), path.string());
    return GgufFile(std::move(file), std::move(header));
  }

  const std::filesystem::path& path() const { return file_.path(); }
  /// All key-value pairs. They refer to the mapped file.
  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return header_.metadata; }
  /// The value of a key, or null.
  const GgufValue* find(std::string_view key) const {
    const auto found = header_.metadata.find(key);
    return found == header_.metadata.end() ? nullptr : &found->second;
  }
  /// All tensors, sorted by name.
  const std::map<std::string, GgufTensorInfo, std::less<>>& tensors() const {
    return header_.tensors;
  }
  bool contains(std::string_view name) const { return header_.tensors.contains(name); }

  /// Throws FormatError where there is no such tensor.
  const GgufTensorInfo& info(std::string_view name) const {
    const auto tensor = header_.tensors.find(name);
    if (tensor != header_.tensors.end()) return tensor->second;
    detail::throw_missing_tensor(path(), name, header_.tensors.size());
  }

  /// The tensor's bytes as they are in the file, at any alignment.
  std::span<const std::byte> bytes(std::string_view name) const {
    const GgufTensorInfo& tensor = info(name);
    return file_.bytes().subspan(tensor.begin, tensor.end - tensor.begin);
  }

  /// Reads a tensor into out[0 … count): T is float or double for every type, half or bfloat16 for
  /// that type only. Throws FormatError for another type or count, and DataError (tensor, element)
  /// for NaN and infinities unless they are allowed.
  template <FloatElement T>
  void read_into(std::string_view name, T* out, std::size_t count,
                 NonFinite non_finite = NonFinite::refuse) const {
    const GgufTensorInfo& tensor = info(name);
    if (tensor.elements() != count) detail::throw_wrong_count(place(name), count, info(name).shape);
    if (const auto dtype = dtype_of_gguf(tensor.type)) {
      MappedValues(file_, place(name), *dtype, tensor.begin, count).read_into(out, non_finite);
    } else if constexpr (std::floating_point<T>) {
      dequantize_into(name, tensor, out, non_finite);
    } else {
      fail_type(name, tensor.type);
    }
  }

  /// As read_into, into a vector.
  template <FloatElement T>
  std::vector<T> read(std::string_view name, NonFinite non_finite = NonFinite::refuse) const {
    std::vector<T> values(info(name).elements());
    read_into(name, values.data(), values.size(), non_finite);
    return values;
  }

 private:
  static constexpr std::size_t piece_elements = std::size_t{1} << 16;  // whole blocks of all types

  GgufFile(MappedFile file, GgufHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}

  std::string place(std::string_view name) const {
    return path().string() + ", tensor " + detail::in_quotes(name);
  }

  template <std::floating_point T>
  void dequantize_into(std::string_view name, const GgufTensorInfo& tensor, T* out,
                       NonFinite non_finite) const {
    std::vector<float> piece(std::min(piece_elements, tensor.elements()));
    for (std::size_t first = 0; first < tensor.elements(); first += piece.size()) {
      const std::size_t n = std::min(piece.size(), tensor.elements() - first);
      const std::size_t begin =
          tensor.begin + first / block_elements(tensor.type) * block_bytes(tensor.type);
      dequantize(tensor.type, file_.bytes().data() + begin, n, piece.data());
      if (non_finite == NonFinite::refuse) {
        if (const auto at = first_non_finite<float>({piece.data(), n})) {
          fail_value(name, first + *at, piece[*at]);
        }
      }
      std::copy_n(piece.begin(), n, out + first);
      file_.release(begin, n / block_elements(tensor.type) * block_bytes(tensor.type));
    }
  }

  [[noreturn]] void fail_value(std::string_view name, std::size_t element, float value) const {
    throw DataError({.id = "tensor/value",
                     .where = place(name) + ", element " + std::to_string(element),
                     .what = "value that cannot be used",
                     .expected = "a finite number",
                     .found = std::isnan(value) ? "NaN" : "an infinity",
                     .mend = "use a file without damaged values"});
  }
  [[noreturn]] void fail_type(std::string_view name, GgufType type) const {
    throw FormatError({.id = "tensor/dtype",
                       .where = place(name),
                       .what = "wrong type of element",
                       .expected = "a 16-bit type",
                       .found = std::string(gguf_type_name(type)),
                       .mend = "read it as float or double"});
  }

  MappedFile file_;
  GgufHeader header_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
