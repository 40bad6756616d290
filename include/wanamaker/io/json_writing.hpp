// Writing JSON files: atomic and reproducible. Apart from reading, which loads every model and pays
// for the compilation of one kind of document only.
#pragma once

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/io/third_party/json.hpp"
#include "wanamaker/io/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A document to write; keys keep the order in which they were set.
using OrderedJson = nlohmann::ordered_json;

namespace detail {

/// A value that has no JSON form.
struct UnwritableValue {
  std::string key;  ///< its path in the document
  std::string_view id;
  std::string_view found;
};

inline std::optional<UnwritableValue> first_unwritable(const OrderedJson& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const std::string_view found = std::isnan(value.get<double>()) ? "NaN" : "an infinity";
    return UnwritableValue{"", "json/non-finite", found};
  }
  const auto is_text = [](const std::string& text) { return !first_invalid_utf8(text); };
  if (value.is_string() && !is_text(value.get_ref<const std::string&>())) {
    return UnwritableValue{"", "json/invalid-text", "bytes that are not UTF-8"};
  }
  if (!value.is_structured()) return std::nullopt;
  std::size_t position = 0;
  for (auto item = value.begin(); item != value.end(); ++item, ++position) {
    if (value.is_object() && !is_text(item.key())) {
      return UnwritableValue{"/…", "json/invalid-text", "a key that is not UTF-8"};
    }
    if (auto inner = first_unwritable(*item)) {
      inner->key =
          "/" + (value.is_object() ? item.key() : std::to_string(position)) + std::move(inner->key);
      return inner;
    }
  }
  return std::nullopt;
}

}  // namespace detail

/// Writes a document atomically, indented by 1 space, with a line break at the end. The same
/// document gives the same bytes; doubles are written with the digits that read back to the same
/// value. Throws DataError for NaN, infinities and text that is not UTF-8, and FileError.
inline void write_json(const std::filesystem::path& path, const OrderedJson& document) {
  if (const auto fault = detail::first_unwritable(document)) {
    throw DataError({.id = fault->id,
                     .where = path.string() + ", key " + fault->key,
                     .what = "value that JSON cannot hold",
                     .expected = "finite numbers and UTF-8 text",
                     .found = std::string(fault->found),
                     .mend = "write null where there is no value"});
  }
  write_atomically(path, document.dump(1) + "\n");
}

}  // namespace wanamaker::inline WANAMAKER_ABI
