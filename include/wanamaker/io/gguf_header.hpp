// The header of a GGUF file: metadata and what tensors it has, all checked against the file's size
// before anything is read. Format: "GGUF", version, counts, key-value pairs, tensor descriptions,
// padding, data; everything little-endian.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/io/dtype.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/gguf_type.hpp"
#include "wanamaker/io/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Types of metadata values; the numbers are those of the files.
enum class GgufValueType : std::uint32_t {
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  float32,
  boolean,
  text,
  array,
  uint64,
  int64,
  float64,
};

/// One metadata value, or a list of such of one type. Refers to the file's bytes, which were
/// checked: nothing is copied until it is asked for.
class GgufValue {
 public:
  GgufValue() = default;
  GgufValue(GgufValueType type, bool is_array, std::uint64_t count, std::string_view bytes)
      : type_(type), is_array_(is_array), count_(count), bytes_(bytes) {}

  /// Type of the value, or of an array's elements.
  GgufValueType type() const { return type_; }
  bool is_array() const { return is_array_; }
  /// Number of elements; 1 for what is no array.
  std::uint64_t count() const { return count_; }

  /// The value in the form asked for; nothing where it has another. Integers beyond int64 have
  /// none.
  std::optional<std::int64_t> integer() const { return is_array_ ? std::nullopt : integer_at(0); }
  std::optional<double> number() const { return is_array_ ? std::nullopt : number_at(0); }
  std::optional<bool> boolean() const {
    if (is_array_ || type_ != GgufValueType::boolean) return std::nullopt;
    return bytes_[0] != 0;
  }
  std::optional<std::string_view> text() const {
    if (is_array_ || type_ != GgufValueType::text) return std::nullopt;
    return bytes_.substr(sizeof(std::uint64_t));
  }

  /// An array's elements; nothing where this is no array of that form.
  std::optional<std::vector<std::string_view>> texts() const {
    if (!is_array_ || type_ != GgufValueType::text) return std::nullopt;
    std::vector<std::string_view> texts;
    for (std::size_t at = 0; at < bytes_.size();) {
      const auto length = static_cast<std::size_t>(load<std::uint64_t>(at));
      texts.push_back(bytes_.substr(at + sizeof(std::uint64_t), length));
      at += sizeof(std::uint64_t) + length;
    }
    return texts;
  }
  std::optional<std::vector<double>> numbers() const { return elements(&GgufValue::number_at); }
  std::optional<std::vector<std::int64_t>> integers() const {
    return elements(&GgufValue::integer_at);
  }

  /// Bytes of one value of a type that has a fixed size, or 0.
  static std::size_t fixed_size(GgufValueType type) {
    constexpr std::size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return sizes[static_cast<std::size_t>(type)];
  }

 private:
  template <class T>
  T load(std::size_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }

  template <class Element>
  std::optional<std::vector<Element>> elements(std::optional<Element> (GgufValue::*at)(std::size_t)
                                                   const) const {
    if (!is_array_) return std::nullopt;
    std::vector<Element> elements;
    for (std::size_t i = 0; i < count_; ++i) {
      const std::optional<Element> element = (this->*at)(i);
      if (!element) return std::nullopt;
      elements.push_back(*element);
    }
    return elements;
  }

  std::optional<std::int64_t> integer_at(std::size_t i) const {
    switch (type_) {
      case GgufValueType::uint8:
        return load<std::uint8_t>(i);
      case GgufValueType::int8:
        return load<std::int8_t>(i);
      case GgufValueType::uint16:
        return load<std::uint16_t>(2 * i);
      case GgufValueType::int16:
        return load<std::int16_t>(2 * i);
      case GgufValueType::uint32:
        return load<std::uint32_t>(4 * i);
      case GgufValueType::int32:
        return load<std::int32_t>(4 * i);
      case GgufValueType::int64:
        return load<std::int64_t>(8 * i);
      case GgufValueType::uint64: {
        const auto value = load<std::int64_t>(8 * i);
        return value < 0 ? std::nullopt : std::optional(value);
      }
      default:
        return std::nullopt;
    }
  }

  std::optional<double> number_at(std::size_t i) const {
    if (type_ == GgufValueType::float32) return load<float>(4 * i);
    if (type_ == GgufValueType::float64) return load<double>(8 * i);
    const std::optional<std::int64_t> integer = integer_at(i);
    return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
  }

  GgufValueType type_ = GgufValueType::uint8;
  bool is_array_ = false;
  std::uint64_t count_ = 0;
  std::string_view bytes_{};  // texts: each with its length before it
};

/// A tensor of a file: its type, its shape with the longest stride first (as other formats have it;
/// GGUF's own order is the reverse), and its bytes [begin, end) counted from the file's first.
struct GgufTensorInfo {
  GgufType type = GgufType::float32;
  Shape shape;
  std::size_t begin = 0;
  std::size_t end = 0;

  /// Product of the dimensions.
  std::size_t elements() const { return (end - begin) / block_bytes(type) * block_elements(type); }
};

/// What the header of a GGUF file says.
struct GgufHeader {
  std::uint32_t version = 3;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::map<std::string, GgufTensorInfo, std::less<>> tensors;
};

namespace detail {

inline constexpr std::uint64_t gguf_entry_limit = 65536;  // of keys, and of tensors
inline constexpr std::size_t gguf_name_limit = 64;        // bytes of a tensor's name, as in ggml
inline constexpr std::size_t gguf_key_limit = 65535;      // as the format demands
inline constexpr std::size_t gguf_dimension_limit = 4;    // as in ggml

[[noreturn]] inline void throw_gguf(std::string_view id, const std::string& where, std::string what,
                                    std::string expected, std::string found) {
  throw FormatError({.id = id,
                     .where = where,
                     .what = std::move(what),
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .mend = "download or convert the file again"});
}

/// Walks over the header; every step is checked against the end of the file.
class GgufHeaderReader {
 public:
  GgufHeaderReader(std::string_view file, const std::string& where) : file_(file), where_(where) {}

  GgufHeader read() {
    GgufHeader header;
    header.version = version();
    const std::uint64_t tensors = count("tensors");
    const std::uint64_t keys = count("keys");
    for (std::uint64_t i = 0; i < keys; ++i) read_key(header);
    for (std::uint64_t i = 0; i < tensors; ++i) read_tensor(header);
    place_tensors(header, alignment_of(header));
    return header;
  }

 private:
  using Tensor = std::pair<const std::string, GgufTensorInfo>;

  [[noreturn]] void fail(std::string_view id, std::string what, std::string expected,
                         std::string found) const {
    throw_gguf(id, where_, std::move(what), std::move(expected), std::move(found));
  }

  std::string_view take(std::uint64_t size) {
    const std::size_t left = file_.size() - at_;
    if (size > left) {
      fail("gguf/truncated", "the header reaches beyond the end of the file",
           std::to_string(size) + " bytes at byte " + std::to_string(at_), std::to_string(left));
    }
    at_ += static_cast<std::size_t>(size);
    return file_.substr(at_ - static_cast<std::size_t>(size), static_cast<std::size_t>(size));
  }

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::uint32_t version() {
    const std::string_view magic = file_.substr(0, 4);
    if (magic != "GGUF") {
      fail("gguf/magic", "not a GGUF file", "the four letters GGUF first", "others");
    }
    at_ = 4;
    const auto version = number<std::uint32_t>();
    if (version == 2 || version == 3) return version;
    const bool swapped = version != 0 && (version & 0xffffu) == 0;
    fail("gguf/version", "version that is not read", "2 or 3, little-endian",
         swapped ? "a big-endian file" : std::to_string(version));
  }

  std::uint64_t count(const char* what) {
    const auto count = number<std::uint64_t>();
    if (count <= gguf_entry_limit) return count;
    fail("gguf/limit", std::string("too many ") + what,
         "at most " + std::to_string(gguf_entry_limit), std::to_string(count));
  }

  std::string name(std::size_t limit, const char* what) {
    const auto length = number<std::uint64_t>();
    if (length > limit) {
      fail("gguf/name", std::string("name of a ") + what + " too long",
           "at most " + std::to_string(limit) + " bytes", std::to_string(length));
    }
    const std::string_view text = take(length);
    if (text.empty() || first_invalid_utf8(text)) {
      fail("gguf/name", std::string("name of a ") + what, "valid UTF-8",
           text.empty() ? "nothing" : "other bytes");
    }
    return std::string(text);
  }

  void read_key(GgufHeader& header) {
    const std::string key = name(gguf_key_limit, "key");
    const auto type = number<std::uint32_t>();
    const GgufValue value =
        is(type, GgufValueType::array) ? array(key) : values(key, type, false, 1);
    if (!header.metadata.emplace(key, value).second) {
      fail("gguf/duplicate", "key that is there twice", "every key once", in_quotes(key));
    }
  }

  static bool is(std::uint32_t number, GgufValueType type) {
    return number == static_cast<std::uint32_t>(type);
  }

  GgufValue array(const std::string& key) {
    const auto type = number<std::uint32_t>();
    const auto count = number<std::uint64_t>();
    if (is(type, GgufValueType::array)) fail_value(key, "an array of arrays");
    return values(key, type, true, count);
  }

  GgufValue values(const std::string& key, std::uint32_t type_number, bool is_array,
                   std::uint64_t count) {
    if (type_number > static_cast<std::uint32_t>(GgufValueType::float64)) {
      fail_value(key, "type " + std::to_string(type_number));
    }
    const auto type = static_cast<GgufValueType>(type_number);
    const std::size_t begin = at_;
    if (const std::size_t size = GgufValue::fixed_size(type)) {
      // What overflows is beyond every file's end.
      take(checked_multiply(count, size).value_or(file_.size() + std::uint64_t{1}));
    } else {
      for (std::uint64_t i = 0; i < count; ++i) take(number<std::uint64_t>());
    }
    const std::string_view bytes = file_.substr(begin, at_ - begin);
    const auto is_boolean = [](char byte) { return byte == 0 || byte == 1; };
    if (type == GgufValueType::boolean && !std::all_of(bytes.begin(), bytes.end(), is_boolean)) {
      fail_value(key, "a boolean that is neither 0 nor 1");
    }
    return {type, is_array, count, bytes};
  }

  [[noreturn]] void fail_value(const std::string& key, std::string found) const {
    fail("gguf/value", "value of key " + in_quotes(key),
         "a number, a boolean, a text or an array of one of these", std::move(found));
  }

  void read_tensor(GgufHeader& header) {
    const auto [tensor, inserted] =
        header.tensors.try_emplace(name(gguf_name_limit, "tensor"), GgufTensorInfo{});
    if (!inserted) {
      fail("gguf/duplicate", "tensor that is there twice", "every name once",
           in_quotes(tensor->first));
    }
    GgufTensorInfo& info = tensor->second;
    info.shape = shape(tensor->first);
    info.type = type(tensor->first);
    info.begin = static_cast<std::size_t>(number<std::uint64_t>());
    info.end = static_cast<std::size_t>(checked_bytes(*tensor));  // placed when all are known
  }

  Shape shape(const std::string& tensor) {
    const auto dimensions = number<std::uint32_t>();
    if (dimensions > gguf_dimension_limit) {
      fail("gguf/shape", "dimensions of tensor " + in_quotes(tensor),
           "at most " + std::to_string(gguf_dimension_limit), std::to_string(dimensions));
    }
    Shape shape;
    // What is beyond Index becomes negative, which element_count refuses.
    for (std::uint32_t i = 0; i < dimensions; ++i) {
      shape.push_back(static_cast<Index>(number<std::uint64_t>()));
    }
    std::reverse(shape.begin(), shape.end());
    return shape;
  }

  GgufType type(const std::string& tensor) {
    const auto number_of_type = number<std::uint32_t>();
    if (const GgufTypeEntry* entry = find_gguf_type(number_of_type)) return entry->type;
    const bool known =
        number_of_type < gguf_type_names.size() && !gguf_type_names[number_of_type].empty();
    fail("gguf/type", "type of tensor " + in_quotes(tensor),
         "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K",
         known ? std::string(gguf_type_names[number_of_type])
               : "type " + std::to_string(number_of_type));
  }

  std::uint64_t checked_bytes(const Tensor& tensor) const {
    const GgufTensorInfo& info = tensor.second;
    const std::optional<Index> elements = element_count(info.shape);
    const auto block = static_cast<Index>(block_elements(info.type));
    const Index row = info.shape.empty() ? 1 : info.shape.back();
    if (elements && row % block == 0) {
      const auto blocks = static_cast<std::uint64_t>(*elements / block);
      if (const auto bytes = checked_multiply(blocks, block_bytes(info.type))) return *bytes;
    }
    fail("gguf/shape", "impossible shape of tensor " + in_quotes(tensor.first),
         "sizes whose product is within 63 bits, rows of whole blocks of " + std::to_string(block),
         std::string(gguf_type_name(info.type)) + " " + shape_text(info.shape));
  }

  std::size_t alignment_of(const GgufHeader& header) const {
    const auto key = header.metadata.find("general.alignment");
    if (key == header.metadata.end()) return 32;
    const std::optional<std::int64_t> value = key->second.integer();
    constexpr std::int64_t largest = 1 << 20;
    if (value && *value > 0 && *value <= largest &&
        std::has_single_bit(static_cast<std::uint64_t>(*value))) {
      return static_cast<std::size_t>(*value);
    }
    fail("gguf/alignment", "general.alignment", "a power of two up to 1048576",
         value ? std::to_string(*value) : "another type");
  }

  /// Ranges become relative to the file. Tensors follow each other with padding between them.
  void place_tensors(GgufHeader& header, std::size_t alignment) const {
    const std::size_t data_begin = (at_ + alignment - 1) / alignment * alignment;
    const std::size_t data_size = data_begin <= file_.size() ? file_.size() - data_begin : 0;
    std::vector<Tensor*> tensors;
    for (Tensor& tensor : header.tensors) tensors.push_back(&tensor);
    std::sort(tensors.begin(), tensors.end(), [](const Tensor* a, const Tensor* b) {
      return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
    });
    std::size_t covered = 0;
    for (Tensor* tensor : tensors) {
      check_place(*tensor, covered, data_size, alignment);
      GgufTensorInfo& info = tensor->second;
      covered = info.begin + info.end;
      info.end = data_begin + covered;
      info.begin += data_begin;
    }
  }

  /// `info.end` still is the length.
  void check_place(const Tensor& tensor, std::size_t covered, std::size_t data_size,
                   std::size_t alignment) const {
    const GgufTensorInfo& info = tensor.second;
    const auto refuse = [&](std::string_view id, const char* what, std::string expected) {
      fail(id, "data of tensor " + in_quotes(tensor.first) + " " + what, std::move(expected),
           std::to_string(info.end) + " bytes at offset " + std::to_string(info.begin));
    };
    if (info.begin > data_size || info.end > data_size - info.begin) {
      refuse("gguf/out-of-range", "beyond the end of the file",
             "at most " + std::to_string(data_size) + " bytes of data");
    }
    if (info.begin % alignment != 0) {
      refuse("gguf/alignment", "not aligned", "a multiple of " + std::to_string(alignment));
    }
    if (info.begin < covered) {
      refuse("gguf/overlap", "overlap another's", "offset " + std::to_string(covered));
    }
    if (info.begin - covered >= alignment) {
      refuse("gguf/gap", "after bytes that belong to none", "offset " + std::to_string(covered));
    }
  }

  std::string_view file_;
  std::string where_;
  std::size_t at_ = 0;
};

}  // namespace detail

/// Reads and checks the header of a whole GGUF file in memory, which must outlive the result;
/// `where` names the file in messages. Throws FormatError: truncation, another magic or version,
/// counts and names beyond the limits (65,536 keys and tensors, 64 bytes of name), unknown types,
/// duplicate names, shapes that overflow or cut a block, data that are misaligned, overlap, leave
/// gaps or reach beyond the file.
inline GgufHeader read_gguf_header(std::string_view file, const std::string& where) {
  return detail::GgufHeaderReader(file, where).read();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
