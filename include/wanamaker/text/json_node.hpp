// A place in a JSON document of a tokenizer: typed access whose faults name the file and the key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/json.hpp"

namespace wanamaker::inline WANAMAKER_ABI::detail {

/// Refers to a value of a document that must outlive it.
class JsonNode {
 public:
  /// The document itself; `file` names it in messages.
  JsonNode(const Json& value, std::string file) : value_(&value), file_(std::move(file)) {}

  const Json& json() const { return *value_; }

  /// "tokenizer.json, key /model/type"
  std::string where() const {
    return path_.empty() ? file_ : file_ + ", key " + shortened(path_, 200);
  }

  /// The member, or nothing where it is absent or null. Throws FormatError unless an object.
  std::optional<JsonNode> find(const std::string& key) const {
    if (!value_->is_object()) refuse("an object");
    const auto member = value_->find(key);
    if (member == value_->end() || member->is_null()) return std::nullopt;
    return JsonNode(*member, file_, path_ + "/" + key);
  }

  /// The member. Throws FormatError where it is absent or null.
  JsonNode at(const std::string& key) const {
    if (std::optional<JsonNode> member = find(key)) return *std::move(member);
    throw FormatError({.id = "tokenizer/missing-key",
                       .where = where(),
                       .what = "key missing",
                       .expected = in_quotes(key),
                       .mend = "download the tokenizer again"});
  }

  /// Calls `visit(node)` for each element of an array. Not all at once: a node with its place takes
  /// many times the memory of a short element.
  template <class Visit>
  void for_each_element(Visit&& visit) const {
    if (!value_->is_array()) refuse("an array");
    for (std::size_t i = 0; i < value_->size(); ++i) {
      visit(JsonNode((*value_)[i], file_, path_ + "/" + std::to_string(i)));
    }
  }

  const std::string& text() const {
    if (!value_->is_string()) refuse("a string");
    return value_->get_ref<const std::string&>();
  }
  bool boolean() const {
    if (!value_->is_boolean()) refuse("true or false");
    return value_->get<bool>();
  }
  /// An integer that an id may be.
  std::int32_t token_id() const {
    if (value_->is_number_integer()) {
      const auto id = value_->get<std::int64_t>();
      if (id >= 0 && id <= INT32_MAX) return static_cast<std::int32_t>(id);
    }
    refuse("an integer from 0 to 2147483647");
  }

  /// The member's value, or `otherwise` where it is absent or null.
  bool flag(const std::string& key, bool otherwise = false) const {
    const std::optional<JsonNode> member = find(key);
    return member ? member->boolean() : otherwise;
  }

  /// Throws FormatError: this value has the wrong type or range.
  [[noreturn]] void refuse(const std::string& expected) const {
    throw FormatError({.id = "tokenizer/wrong-type",
                       .where = where(),
                       .what = "wrong value",
                       .expected = expected,
                       .found = shown(),
                       .mend = "download the tokenizer again"});
  }

  /// Throws FormatError: this value asks for something that is not implemented.
  [[noreturn]] void refuse_unsupported(const std::string& what, const std::string& expected) const {
    throw FormatError({.id = "tokenizer/unsupported",
                       .where = where(),
                       .what = "unsupported " + what,
                       .expected = expected,
                       .found = shown(),
                       .mend = "use a tokenizer that needs nothing else"});
  }

 private:
  JsonNode(const Json& value, std::string file, std::string path)
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

  std::string shown() const {
    if (value_->is_structured()) return std::string("an ") + value_->type_name();
    return shortened(value_->dump());
  }

  const Json* value_;
  std::string file_;
  std::string path_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI::detail
