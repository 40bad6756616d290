// JSON files: strict reading of untrusted text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/json_events.hpp"
#include "wanamaker/io/mapped_file.hpp"
#include "wanamaker/io/third_party/json.hpp"
#include "wanamaker/io/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A document that was read; keys are found in logarithmic time.
using Json = nlohmann::json;

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

}  // namespace wanamaker::inline WANAMAKER_ABI
