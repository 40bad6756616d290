// One line of a JSON-lines corpus: an object with a text or with token ids.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/text/document.hpp"

namespace wanamaker::inline WANAMAKER_ABI::detail {

/// Throws ProtocolError unless a field that begins with '/' is a JSON pointer (RFC 6901).
inline void check_field(const std::optional<std::string>& field) {
  if (!field || !field->starts_with('/')) return;
  for (std::size_t at = 0; (at = field->find('~', at)) != std::string::npos; ++at) {
    if (field->substr(at + 1, 1) == "0" || field->substr(at + 1, 1) == "1") continue;
    throw ProtocolError({.id = "protocol/bad-field",
                         .where = "--field",
                         .what = "not a JSON pointer",
                         .expected = "~0 for ~ and ~1 for / within a name",
                         .found = in_quotes(*field),
                         .mend = "write it as RFC 6901 has it"});
  }
}

/// Reads one JSON line. Its object has the text under `field` (a key, or a JSON pointer where it
/// begins with '/'); without `field` either `text` or `ids`. `name`, `title` or `id` names it.
class JsonLine {
 public:
  JsonLine(std::string_view line, std::string where, const std::optional<std::string>& field)
      : where_(std::move(where)), field_(field), record_(parse_json(line, where_)) {
    if (!record_.is_object()) refuse("an object", record_.type_name());
  }

  Document document(std::string fallback_name) const {
    Document document{.name = name(std::move(fallback_name)), .source = where_};
    const Json* const text = find(field_.value_or("text"));
    const Json* const ids = field_ ? nullptr : find("ids");
    if (field_ && text == nullptr) refuse("the field " + in_quotes(*field_), keys());
    if ((text != nullptr) == (ids != nullptr)) {
      refuse("either 'text' or 'ids'", text != nullptr ? "both" : keys());
    }
    if (ids != nullptr) {
      document.content = read_ids(*ids);
      return document;
    }
    if (!text->is_string()) {
      refuse("a string as " + in_quotes(field_.value_or("text")), text->type_name());
    }
    document.content = text->get<std::string>();
    return document;
  }

 private:
  const Json* find(const std::string& field) const {
    if (!field.starts_with('/')) {
      const auto member = record_.find(field);
      return member == record_.end() ? nullptr : &*member;
    }
    const Json* value = &record_;
    for (std::size_t at = 0; at < field.size() && value != nullptr;) {
      const std::size_t end = std::min(field.find('/', at + 1), field.size());
      value = member(*value, unescaped(field.substr(at + 1, end - at - 1)));
      at = end;
    }
    return value;
  }

  /// One name of a JSON pointer: "~1" is "/" and "~0" is "~".
  static std::string unescaped(std::string name) {
    for (std::size_t at = 0; (at = name.find('~', at)) != std::string::npos; ++at) {
      name.replace(at, 2, name[at + 1] == '1' ? "/" : "~");
    }
    return name;
  }

  /// A member of an object or an element of an array, or nothing.
  static const Json* member(const Json& value, const std::string& name) {
    if (value.is_object()) {
      const auto found = value.find(name);
      return found == value.end() ? nullptr : &*found;
    }
    const bool is_index = !name.empty() && name.size() < 10 &&
                          name.find_first_not_of("0123456789") == std::string::npos &&
                          (name.size() == 1 || name[0] != '0');
    if (!value.is_array() || !is_index) return nullptr;
    const std::size_t index = std::stoul(name);
    return index < value.size() ? &value[index] : nullptr;
  }

  /// The keys that the object has, for messages.
  std::string keys() const {
    std::string list;
    for (const auto& [key, value] : record_.items()) {
      list += (list.empty() ? "" : ", ") + in_quotes(key);
      if (list.size() > 200) return list + ", …";
    }
    return list.empty() ? "no keys" : "only " + list;
  }

  std::string name(std::string fallback) const {
    for (const char* key : {"name", "title", "id"}) {
      const auto value = record_.find(key);
      if (value == record_.end() || (field_ && *field_ == key)) continue;
      if (value->is_string()) return value->get<std::string>();
      if (value->is_number_integer()) return value->dump();
    }
    return fallback;
  }

  std::vector<TokenId> read_ids(const Json& values) const {
    if (!values.is_array()) refuse("an array as 'ids'", values.type_name());
    std::vector<TokenId> ids;
    ids.reserve(values.size());
    for (const Json& value : values) {
      const bool fits = value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
                        value.get<std::int64_t>() <= std::numeric_limits<TokenId>::max();
      if (!fits) {
        refuse("integers from 0 to 2147483647 as 'ids'",
               shortened(value.dump(), 40) + " at place " + std::to_string(ids.size()));
      }
      ids.push_back(value.get<TokenId>());
    }
    return ids;
  }

  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
    throw FormatError({.id = "corpus/json-line",
                       .where = where_,
                       .what = "unusable line",
                       .expected = expected,
                       .found = found,
                       .mend = "give every line one object with 'text' or 'ids', or choose the "
                               "text's --field"});
  }

  std::string where_;
  const std::optional<std::string>& field_;
  Json record_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI::detail
