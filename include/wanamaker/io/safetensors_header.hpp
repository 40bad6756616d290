// The header of a safetensors file: what tensors it has, checked against the file's size before
// anything is read. Format: 8 bytes length (little-endian), JSON of that length, then the data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/dtype.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/json_events.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A tensor of a file: its type, its shape, and its bytes [begin, end) counted from the file's
/// first. In a file that was opened, end − begin is elements() · size_in_bytes(dtype), and the
/// range lies in the file.
struct TensorInfo {
  DType dtype = DType::float32;
  Shape shape;
  std::size_t begin = 0;
  std::size_t end = 0;

  /// Product of the dimensions.
  std::size_t elements() const { return (end - begin) / size_in_bytes(dtype); }
};

/// What the header of a safetensors file says.
struct SafetensorsHeader {
  std::map<std::string, TensorInfo, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> metadata;
};

namespace detail {

inline constexpr std::size_t safetensors_header_limit = 100'000'000;  // as the format demands
inline constexpr std::size_t dimension_limit = 64;

inline std::optional<DType> dtype_from_safetensors(std::string_view name) {
  for (const DTypeEntry& entry : dtype_table) {
    if (entry.safetensors == name) return entry.dtype;
  }
  return std::nullopt;
}

/// Reads the JSON of the header, event by event, so that no document is built from untrusted text.
/// Offsets are left relative to the data.
class SafetensorsHeaderReader : public JsonEvents {
 public:
  using JsonEvents::JsonEvents;

  bool null() override { unexpected("null"); }
  bool boolean(bool value) override { unexpected(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override { unexpected(std::to_string(value)); }
  bool number_float(double, const std::string& digits) override { unexpected(digits); }
  bool number_unsigned(std::uint64_t value) override {
    if (numbers_ == nullptr) unexpected(std::to_string(value));
    const std::size_t limit = numbers_ == &offsets_ ? 2 : dimension_limit;
    if (numbers_->size() == limit) unexpected("more than " + std::to_string(limit) + " numbers");
    numbers_->push_back(value);
    return true;
  }

  bool string(std::string& value) override {
    if (part_ == Part::metadata && depth() == 2) {
      header_.metadata.at(member_) = std::move(value);
    } else if (part_ == Part::tensor && depth() == 2 && member_ == "dtype") {
      set_dtype(value);
    } else {
      unexpected("a text");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth() > 1) unexpected("an object");
    enter();
    return true;
  }
  bool end_object() override {
    if (depth() == 2 && part_ == Part::tensor) finish_tensor();
    leave();
    return true;
  }

  bool start_array(std::size_t) override {
    const bool numbers_follow = depth() == 2 && part_ == Part::tensor && member_ != "dtype";
    if (!numbers_follow) unexpected("an array");
    numbers_ = member_ == "shape" ? &shape_ : &offsets_;
    enter();
    return true;
  }
  bool end_array() override {
    numbers_ = nullptr;
    leave();
    return true;
  }

  bool key(std::string& key) override {
    if (depth() == 1) {
      begin_part(key);
    } else {
      begin_member(key);
    }
    return true;
  }

  SafetensorsHeader take() { return std::move(header_); }

 private:
  enum class Part : std::uint8_t { none, tensor, metadata };

  [[noreturn]] void unexpected(std::string found) const {
    fail("safetensors/header", "not a safetensors header",
         "{name: {dtype: text, shape: [sizes], data_offsets: [begin, end]}, …}", std::move(found));
  }

  void begin_part(const std::string& key) {
    part_ = key == "__metadata__" ? Part::metadata : Part::tensor;
    if (part_ == Part::metadata) {
      if (std::exchange(has_metadata_, true)) fail_duplicate(key);
      return;
    }
    const auto [tensor, inserted] = header_.tensors.try_emplace(key);
    if (!inserted) fail_duplicate(key);
    tensor_ = &*tensor;
    seen_dtype_ = seen_shape_ = seen_offsets_ = false;
    shape_.clear();
    offsets_.clear();
  }

  void begin_member(const std::string& key) {
    member_ = key;
    bool is_repeated = false;
    if (part_ == Part::metadata) {
      is_repeated = !header_.metadata.try_emplace(key).second;
    } else if (key == "dtype") {
      is_repeated = std::exchange(seen_dtype_, true);
    } else if (key == "shape") {
      is_repeated = std::exchange(seen_shape_, true);
    } else if (key == "data_offsets") {
      is_repeated = std::exchange(seen_offsets_, true);
    } else {
      unexpected("the key " + in_quotes(key) + " in tensor " + in_quotes(tensor_->first));
    }
    if (is_repeated) fail_duplicate(key);
  }

  void set_dtype(const std::string& name) {
    const std::optional<DType> dtype = dtype_from_safetensors(name);
    if (!dtype) {
      fail("safetensors/dtype", "unknown dtype of tensor " + in_quotes(tensor_->first),
           "F64, F32, F16, BF16, an integer type or BOOL", in_quotes(name));
    }
    tensor_->second.dtype = *dtype;
  }

  void finish_tensor() {
    TensorInfo& info = tensor_->second;
    if (!seen_dtype_ || !seen_shape_ || offsets_.size() != 2) {
      unexpected("tensor " + in_quotes(tensor_->first) +
                 " without dtype, shape or two data_offsets");
    }
    for (const std::uint64_t size : shape_) {
      // What is beyond Index becomes negative, which element_count refuses.
      info.shape.push_back(static_cast<Index>(size));
    }
    info.begin = offsets_[0];
    info.end = offsets_[1];
    const std::uint64_t bytes = checked_bytes(info);
    if (info.begin <= info.end && info.end - info.begin == bytes) return;
    fail("safetensors/length",
         "shape and length of tensor " + in_quotes(tensor_->first) + " differ",
         std::to_string(bytes) + " bytes for " + std::string(dtype_name(info.dtype)) + " " +
             shape_text(info.shape),
         "data_offsets [" + std::to_string(info.begin) + ", " + std::to_string(info.end) + "]");
  }

  std::uint64_t checked_bytes(const TensorInfo& info) const {
    const std::optional<Index> elements = element_count(info.shape);
    const auto bytes = checked_multiply(static_cast<std::uint64_t>(elements.value_or(0)),
                                        size_in_bytes(info.dtype));
    if (elements && bytes) return *bytes;
    std::string sizes;
    for (const std::uint64_t size : shape_) sizes += " " + std::to_string(size);
    fail("safetensors/shape", "impossible shape of tensor " + in_quotes(tensor_->first),
         "a product of sizes within 63 bits", "the sizes" + sizes);
  }

  SafetensorsHeader header_;
  Part part_ = Part::none;
  bool has_metadata_ = false;
  std::string member_;
  std::pair<const std::string, TensorInfo>* tensor_ = nullptr;
  bool seen_dtype_ = false, seen_shape_ = false, seen_offsets_ = false;
  std::vector<std::uint64_t> shape_;
  std::vector<std::uint64_t> offsets_;
  std::vector<std::uint64_t>* numbers_ = nullptr;  // where the numbers of the open array go
};

/// A fault in how the tensors lie in the file.
[[noreturn]] inline void throw_layout(std::string_view id, const std::string& where,
                                      std::string what, std::string expected, std::string found) {
  throw FormatError({.id = id,
                     .where = where,
                     .what = std::move(what),
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .mend = "download or export the file again"});
}

/// The tensors must cover the data exactly, each byte once; ranges become relative to the file.
inline void place_tensors(SafetensorsHeader& header, const std::string& where,
                          std::size_t data_begin, std::size_t data_size) {
  using Tensor = std::pair<const std::string, TensorInfo>;
  std::vector<Tensor*> tensors;
  tensors.reserve(header.tensors.size());
  for (Tensor& tensor : header.tensors) tensors.push_back(&tensor);
  std::sort(tensors.begin(), tensors.end(), [](const Tensor* a, const Tensor* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::size_t covered = 0;
  for (Tensor* tensor : tensors) {
    const auto fail = [&](std::string_view id, const char* what, std::size_t expected) {
      throw_layout(id, where + ", tensor " + in_quotes(tensor->first), what,
                   "data offset " + std::to_string(expected),
                   std::to_string(std::max(tensor->second.begin, covered)));
    };
    TensorInfo& info = tensor->second;
    if (info.end > data_size) {
      throw_layout("safetensors/out-of-range", where + ", tensor " + in_quotes(tensor->first),
                   "data beyond the end of the file",
                   "at most " + std::to_string(data_size) + " bytes of data",
                   "an end at byte " + std::to_string(info.end));
    }
    if (info.begin < covered) fail("safetensors/overlap", "data of two tensors overlap", covered);
    if (info.begin > covered) fail("safetensors/gap", "data that belong to no tensor", covered);
    covered = info.end;
    info.begin += data_begin;
    info.end += data_begin;
  }
  if (covered != data_size) {
    throw_layout("safetensors/trailing-bytes", where, "bytes after the last tensor",
                 std::to_string(covered) + " bytes of data", std::to_string(data_size));
  }
}

/// Length of the JSON, from the first 8 bytes.
inline std::size_t safetensors_header_size(std::string_view file, const std::string& where) {
  constexpr std::size_t prefix = sizeof(std::uint64_t);
  if (file.size() < prefix) {
    throw_layout("safetensors/truncated", where, "file too short", "8 bytes of header length",
                 std::to_string(file.size()) + " bytes");
  }
  std::uint64_t size;
  std::memcpy(&size, file.data(), prefix);
  if (size > safetensors_header_limit) {
    throw_layout("safetensors/header-size", where, "header too long, or not a safetensors file",
                 "at most " + std::to_string(safetensors_header_limit) + " bytes",
                 std::to_string(size));
  }
  if (size > file.size() - prefix) {
    throw_layout("safetensors/truncated", where, "header reaches beyond the end of the file",
                 std::to_string(size) + " bytes of header",
                 std::to_string(file.size() - prefix) + " bytes");
  }
  return static_cast<std::size_t>(size);
}

}  // namespace detail

/// Reads and checks the header of a whole safetensors file in memory; `where` names the file in
/// messages. Throws FormatError: truncation, a header that is no such JSON, duplicate names,
/// unknown dtypes, shapes that overflow, ranges that disagree with the shape, overlap, leave gaps,
/// reach beyond the file or stop before its end.
inline SafetensorsHeader read_safetensors_header(std::string_view file, const std::string& where) {
  const std::size_t size = detail::safetensors_header_size(file, where);
  const std::size_t data_begin = sizeof(std::uint64_t) + size;
  detail::JsonText json{file.substr(sizeof(std::uint64_t), size), where + ", header"};
  if (!json.text.starts_with('{')) {
    detail::throw_layout("safetensors/header", where, "not a safetensors file",
                         "a header that begins with {", "something else");
  }
  const JsonLimits limits{.bytes = detail::safetensors_header_limit, .depth = 4};
  detail::SafetensorsHeaderReader reader(json, limits.depth);
  detail::send_json_events(json, limits, reader);
  SafetensorsHeader header = reader.take();
  detail::place_tensors(header, where, data_begin, file.size() - data_begin);
  return header;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
