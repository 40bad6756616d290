// Writing of safetensors files: the same tensors give the same bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/io/dtype.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/third_party/json.hpp"
#include "wanamaker/io/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A tensor to write; `bytes` are its elements in row-major order and must live until it is
/// written.
struct TensorToWrite {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  std::span<const std::byte> bytes;
};

/// Describes values in memory, written in their own type.
template <TensorElement T>
TensorToWrite tensor_to_write(std::string name, std::span<const T> values, Shape shape) {
  return {std::move(name), dtype_of<T>, std::move(shape), std::as_bytes(values)};
}

namespace detail {

[[noreturn]] inline void throw_unwritable_tensor(std::string_view id, const std::string& name,
                                                 std::string expected, std::string found) {
  throw DataError({.id = id,
                   .where = "write_safetensors, tensor " + in_quotes(name),
                   .what = "cannot be written",
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .mend = "correct the tensor that is passed"});
}

inline void check_tensor_text(const std::string& text) {
  if (!first_invalid_utf8(text)) return;
  throw_unwritable_tensor("tensor/bad-name", text, "names and metadata in UTF-8", "other bytes");
}

inline void check_tensor_to_write(const TensorToWrite& tensor) {
  check_tensor_text(tensor.name);
  if (tensor.name == "__metadata__") {
    throw_unwritable_tensor("tensor/bad-name", tensor.name, "another name", "a reserved one");
  }
  const std::optional<Index> elements = element_count(tensor.shape);
  const auto bytes = checked_multiply(static_cast<std::uint64_t>(elements.value_or(0)),
                                      size_in_bytes(tensor.dtype));
  if (!elements || bytes != tensor.bytes.size()) {
    throw_unwritable_tensor("tensor/length", tensor.name,
                            "as many bytes as " + std::string(dtype_name(tensor.dtype)) + " " +
                                shape_text(tensor.shape) + " takes",
                            std::to_string(tensor.bytes.size()));
  }
}

/// In the format's usual order: larger elements first, so that all are aligned; then by name.
inline void sort_tensors(std::vector<TensorToWrite>& tensors) {
  const auto key = [](const TensorToWrite& t) { return std::tie(t.dtype, t.name); };
  std::sort(tensors.begin(), tensors.end(),
            [key](const TensorToWrite& a, const TensorToWrite& b) { return key(a) < key(b); });
}

inline void check_names_differ(const std::vector<TensorToWrite>& tensors) {
  std::vector<std::string_view> names;
  for (const TensorToWrite& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  throw_unwritable_tensor("tensor/duplicate-name", std::string(*twice), "every name once", "two");
}

inline std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump();
}

inline std::string safetensors_header_text(
    const std::vector<TensorToWrite>& tensors,
    const std::map<std::string, std::string, std::less<>>& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata) {
    check_tensor_text(key);
    check_tensor_text(value);
    text += (text.empty() ? "" : ",") + json_text(key) + ":" + json_text(value);
  }
  if (!text.empty()) text = "\"__metadata__\":{" + text + "}";
  std::size_t begin = 0;
  for (const TensorToWrite& tensor : tensors) {
    nlohmann::ordered_json entry;
    entry["dtype"] = dtype_name(tensor.dtype);
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = {begin, begin + tensor.bytes.size()};
    text += (text.empty() ? "" : ",") + json_text(tensor.name) + ":" + entry.dump();
    begin += tensor.bytes.size();
  }
  text = "{" + text + "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace detail

/// Writes tensors and metadata to one safetensors file, atomically. Throws DataError for bytes that
/// do not fit the shape and for bad or repeated names, and FileError.
inline void write_safetensors(
    const std::filesystem::path& path, std::vector<TensorToWrite> tensors,
    const std::map<std::string, std::string, std::less<>>& metadata = {}) {
  for (const TensorToWrite& tensor : tensors) detail::check_tensor_to_write(tensor);
  detail::check_names_differ(tensors);
  detail::sort_tensors(tensors);
  const std::string header = detail::safetensors_header_text(tensors, metadata);
  const std::uint64_t size = header.size();
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&size, 1)));
  file.write(header);
  for (const TensorToWrite& tensor : tensors) file.write(tensor.bytes);
  file.commit();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
