// Writing of GGUF files (version 3): metadata, and tensors as F32, F16, Q8_0 or as they were
// stored.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/half.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/io/gguf_header.hpp"
#include "wanamaker/io/gguf_quantization.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A value that can be written.
using GgufValueToWrite =
    std::variant<std::uint32_t, std::int32_t, std::uint64_t, float, double, bool, std::string,
                 std::vector<std::string>, std::vector<std::int32_t>, std::vector<float>>;

/// Keys and values in the order in which they are written.
using GgufMetadataToWrite = std::vector<std::pair<std::string, GgufValueToWrite>>;

/// A tensor that can be written; shape with the longest stride first. Either float32, float16 or
/// q8_0, rounded from `values`; or any type, its blocks copied from where they are `stored`, as
/// GgufFile::bytes has them: so tensors pass from one file to another without a loss.
struct GgufTensorToWrite {
  std::string name;
  GgufType type = GgufType::float32;
  Shape shape;
  std::span<const float> values;
  std::span<const std::byte> stored{};
};

namespace detail {

inline constexpr std::size_t gguf_alignment = 32;

/// The header's bytes, put together.
class GgufHeaderText {
 public:
  template <class T>
  void number(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    number(std::uint64_t{value.size()});
    text_ += value;
  }
  void value(const GgufValueToWrite& value) {
    std::visit([this](const auto& v) { tagged(v); }, value);
  }
  void pad() {
    text_.resize((text_.size() + gguf_alignment - 1) / gguf_alignment * gguf_alignment);
  }
  const std::string& bytes() const { return text_; }

 private:
  template <class T>
  static constexpr GgufValueType tag_of() {
    if constexpr (std::is_same_v<T, std::uint32_t>) return GgufValueType::uint32;
    if constexpr (std::is_same_v<T, std::int32_t>) return GgufValueType::int32;
    if constexpr (std::is_same_v<T, std::uint64_t>) return GgufValueType::uint64;
    if constexpr (std::is_same_v<T, float>) return GgufValueType::float32;
    if constexpr (std::is_same_v<T, double>) return GgufValueType::float64;
    if constexpr (std::is_same_v<T, bool>) return GgufValueType::boolean;
    return GgufValueType::text;
  }
  void tag(GgufValueType type) { number(static_cast<std::uint32_t>(type)); }

  void content(const std::string& value) { text(value); }
  template <class T>
  void content(const T& value) {
    number(value);
  }

  template <class T>
  void tagged(const T& value) {
    tag(tag_of<T>());
    content(value);
  }
  template <class T>
  void tagged(const std::vector<T>& values) {
    tag(GgufValueType::array);
    tag(tag_of<T>());
    number(std::uint64_t{values.size()});
    for (const T& value : values) content(value);
  }

  std::string text_;
};

[[noreturn]] inline void throw_unwritable_gguf(const std::string& name, std::string expected,
                                               std::string found) {
  throw DataError({.id = "gguf/unwritable",
                   .where = "write_gguf, " + in_quotes(name),
                   .what = "cannot be written",
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .mend = "correct what is passed"});
}

// Numbers that the tensor brings.
inline std::size_t gguf_elements(const GgufTensorToWrite& tensor) {
  if (tensor.stored.empty()) return tensor.values.size();
  return tensor.stored.size() / block_bytes(tensor.type) * block_elements(tensor.type);
}
inline std::size_t gguf_bytes(const GgufTensorToWrite& tensor) {
  return gguf_elements(tensor) / block_elements(tensor.type) * block_bytes(tensor.type);
}

inline void check_gguf_tensor(const GgufTensorToWrite& tensor) {
  const auto refuse = [&](std::string expected, std::string found) {
    throw_unwritable_gguf(tensor.name, std::move(expected), std::move(found));
  };
  const bool has_writer = tensor.type == GgufType::float32 || tensor.type == GgufType::float16 ||
                          tensor.type == GgufType::q8_0 || !tensor.stored.empty();
  if (!has_writer) {
    refuse("F32, F16, Q8_0 or stored blocks", std::string(gguf_type_name(tensor.type)));
  }
  if (!tensor.stored.empty() &&
      (!tensor.values.empty() || tensor.stored.size() != gguf_bytes(tensor))) {
    refuse("whole stored blocks, or values", std::to_string(tensor.stored.size()) +
                                                 " stored bytes and " +
                                                 std::to_string(tensor.values.size()) + " values");
  }
  if (tensor.name.empty() || tensor.name.size() > gguf_name_limit) {
    refuse("a name of 1 to " + std::to_string(gguf_name_limit) + " bytes",
           std::to_string(tensor.name.size()));
  }
  const std::optional<Index> elements = element_count(tensor.shape);
  const auto block = static_cast<Index>(block_elements(tensor.type));
  const bool fits = elements && static_cast<std::size_t>(*elements) == gguf_elements(tensor) &&
                    tensor.shape.size() <= gguf_dimension_limit &&
                    (tensor.shape.empty() ? 1 : tensor.shape.back()) % block == 0;
  if (!fits) {
    refuse("at most 4 dimensions, rows of whole blocks of " + std::to_string(block) +
               ", as many values as the shape takes",
           shape_text(tensor.shape) + " with " + std::to_string(gguf_elements(tensor)) + " values");
  }
  const auto finite = [&](float x) {
    if (tensor.type == GgufType::float32) return std::isfinite(x);
    const float limit = tensor.type == GgufType::float16 ? 1.0f : 127.0f;
    return std::isfinite(float_from_half_bits(half_bits_from_float(x / limit)));
  };
  if (!std::all_of(tensor.values.begin(), tensor.values.end(), finite)) {
    refuse("values that the type can hold", "others");
  }
}

template <class Named, class NameOf>
void check_gguf_names_differ(const std::vector<Named>& items, NameOf name_of) {
  std::vector<std::string_view> names;
  for (const Named& item : items) names.push_back(name_of(item));
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw_unwritable_gguf(std::string(*twice), "every name once", "two");
}

inline std::size_t gguf_padding(std::size_t bytes) {
  return (gguf_alignment - bytes % gguf_alignment) % gguf_alignment;
}

inline void write_gguf_values(const GgufTensorToWrite& tensor, AtomicFile& file) {
  if (!tensor.stored.empty()) return file.write(tensor.stored);
  if (tensor.type == GgufType::float32) return file.write(std::as_bytes(tensor.values));
  const std::size_t step = block_elements(tensor.type);
  std::array<std::byte, 34> block{};
  for (std::size_t i = 0; i < tensor.values.size(); i += step) {
    if (tensor.type == GgufType::q8_0) {
      quantize_q8_0(tensor.values.data() + i, block.data());
    } else {
      const std::uint16_t bits = half_bits_from_float(tensor.values[i]);
      std::memcpy(block.data(), &bits, sizeof bits);
    }
    file.write(std::span<const std::byte>(block.data(), block_bytes(tensor.type)));
  }
}

inline std::string gguf_header_bytes(const GgufMetadataToWrite& metadata,
                                     const std::vector<GgufTensorToWrite>& tensors) {
  GgufHeaderText header;
  header.number(std::array{'G', 'G', 'U', 'F'});
  header.number(std::uint32_t{3});
  header.number(std::uint64_t{tensors.size()});
  header.number(std::uint64_t{metadata.size()});
  for (const auto& [key, value] : metadata) {
    header.text(key);
    header.value(value);
  }
  std::uint64_t begin = 0;
  for (const GgufTensorToWrite& tensor : tensors) {
    header.text(tensor.name);
    header.number(static_cast<std::uint32_t>(tensor.shape.size()));
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
      header.number(static_cast<std::uint64_t>(tensor.shape[i]));
    }
    header.number(static_cast<std::uint32_t>(tensor.type));
    header.number(begin);
    begin += gguf_bytes(tensor) + gguf_padding(gguf_bytes(tensor));
  }
  header.pad();
  return header.bytes();
}

}  // namespace detail

/// Writes metadata and tensors, in their order, to one GGUF file, atomically; the same bytes as the
/// Python package `gguf`. Throws DataError for repeated or overlong names, shapes that do not fit
/// the values or the type's blocks, values that the type cannot hold, and FileError.
inline void write_gguf(const std::filesystem::path& path, const GgufMetadataToWrite& metadata,
                       const std::vector<GgufTensorToWrite>& tensors) {
  for (const GgufTensorToWrite& tensor : tensors) detail::check_gguf_tensor(tensor);
  detail::check_gguf_names_differ(tensors, [](const auto& t) { return std::string_view(t.name); });
  detail::check_gguf_names_differ(metadata,
                                  [](const auto& m) { return std::string_view(m.first); });
  AtomicFile file(path);
  file.write(detail::gguf_header_bytes(metadata, tensors));
  constexpr std::array<char, detail::gguf_alignment> zeros{};
  for (const GgufTensorToWrite& tensor : tensors) {
    detail::write_gguf_values(tensor, file);
    file.write(std::string_view(zeros.data(), detail::gguf_padding(detail::gguf_bytes(tensor))));
  }
  file.commit();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
