// What docs/results.schema.json needs of JSON Schema 2020-12: type, const, enum, properties,
// required, items, minItems, maxItems, minimum, allOf, if/then and $ref into $defs.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "wanamaker/io/json.hpp"

namespace wanamaker_test {

class JsonSchema {
 public:
  explicit JsonSchema(wanamaker::Json schema) : schema_(std::move(schema)) {}

  /// The first fault with its place; empty: valid.
  std::string fault(const wanamaker::Json& value) const { return fault(value, schema_, ""); }

 private:
  using Json = wanamaker::Json;

  static bool is_of(const Json& value, const std::string& type) {
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    return type == value.type_name();
  }

  static bool has_type(const Json& value, const Json& type) {
    if (type.is_string()) return is_of(value, type.get<std::string>());
    for (const Json& one : type) {
      if (is_of(value, one.get<std::string>())) return true;
    }
    return false;
  }

  static std::string own_fault(const Json& value, const Json& schema, const std::string& at) {
    if (schema.contains("type") && !has_type(value, schema["type"])) return at + ": type";
    if (schema.contains("const") && value != schema["const"]) return at + ": const";
    if (schema.contains("enum")) {
      bool found = false;
      for (const Json& one : schema["enum"]) found = found || one == value;
      if (!found) return at + ": enum";
    }
    if (schema.contains("minimum") && value.is_number() && value < schema["minimum"]) {
      return at + ": minimum";
    }
    if (!value.is_array()) return "";
    const bool fits = value.size() >= schema.value("minItems", std::size_t{0}) &&
                      value.size() <= schema.value("maxItems", value.size());
    return fits ? "" : at + ": items";
  }

  std::string inner_fault(const Json& value, const Json& schema, const std::string& at) const {
    if (value.is_array() && schema.contains("items")) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        const std::string f = fault(value[i], schema["items"], at + "/" + std::to_string(i));
        if (!f.empty()) return f;
      }
    }
    if (!value.is_object()) return "";
    for (const Json& key : schema.value("required", Json::array())) {
      if (!value.contains(key.get<std::string>()))
        return at + "/" + key.get<std::string>() + ": missing";
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& property : properties.items()) {
      if (!value.contains(property.key())) continue;
      const std::string f =
          fault(value[property.key()], property.value(), at + "/" + property.key());
      if (!f.empty()) return f;
    }
    return "";
  }

  std::string fault(const Json& value, const Json& schema, const std::string& at) const {
    if (schema.contains("$ref")) {
      const std::string name =
          schema["$ref"].get<std::string>().substr(std::string("#/$defs/").size());
      return fault(value, schema_.at("$defs").at(name), at);
    }
    for (const Json& part : schema.value("allOf", Json::array())) {
      const std::string f = fault(value, part, at);
      if (!f.empty()) return f;
    }
    if (schema.contains("if") && fault(value, schema["if"], at).empty()) {
      return fault(value, schema.at("then"), at);
    }
    const std::string own = own_fault(value, schema, at);
    return own.empty() ? inner_fault(value, schema, at) : own;
  }

  Json schema_;
};

}  // namespace wanamaker_test
