// JSON files: strict reading of untrusted text, atomic and reproducible writing.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/io/json_events.hpp"
#include "wanamaker/io/mapped_file.hpp"
#include "wanamaker/io/third_party/json.hpp"
#include "wanamaker/io/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A document that was read; keys are found in logarithmic time.
using Json = nlohmann::json;
/// A document to write; keys keep the order in which they were set.
using OrderedJson = nlohmann::ordered_json;

namespace detail {

/// Builds a document from events.
class JsonBuilder : public JsonEvents {
 public:
  using JsonEvents::JsonEvents;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& key) override {
    const auto [member, inserted] = open_.back()->emplace(key, nullptr);
    if (!inserted) fail_duplicate(key);
    member_ = &*member;
    return true;
  }

  Json take() { return std::move(root_); }

 private:
  /// Where the next value goes: the root, the end of the open array, or the member just named.
  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_array()) return open_.back()->emplace_back(std::move(value));
    return *member_ = std::move(value);
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    enter();
    open_.push_back(&place(std::move(value)));
    return true;
  }
  bool close() {
    leave();
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Json*> open_;  // containers from the root to the innermost one still open
  Json* member_ = nullptr;
};

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

/// Reads one JSON document. `where` names its origin in messages. Throws FormatError: syntax (with
/// line and byte), duplicate keys, invalid UTF-8, numbers beyond double, depth or size beyond the
/// limits, anything after the document.
inline Json parse_json(std::string_view text, const std::string& where,
                       const JsonLimits& limits = {}) {
  detail::JsonText source{text, where};
  detail::JsonBuilder builder(source, limits.depth);
  detail::send_json_events(source, limits, builder);
  return builder.take();
}

/// Reads a JSON file. Throws as parse_json, and FileError.
inline Json parse_json_file(const std::filesystem::path& path, const JsonLimits& limits = {}) {
  const MappedFile file(path);
  return parse_json(file.text(), path.string(), limits);
}

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
