// Values of a result file that may come from anywhere: what is missing or null is nothing, what is
// of another type than docs/results.md says is an error that names its place.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/json.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Two ends, such as of a confidence interval.
struct ReportedRange {
  double low = 0;
  double high = 0;
};

/// A value inside a document that outlives it, or nothing.
class ResultView {
 public:
  static constexpr std::size_t longest_text = 300;  ///< bytes; what is longer is cut
  static constexpr std::size_t most_items = 4096;   ///< of a list that is read

  ResultView() = default;
  ResultView(const Json& json, std::string where)
      : json_(json.is_null() ? nullptr : &json), where_(std::move(where)) {}

  explicit operator bool() const { return json_ != nullptr; }
  const std::string& where() const { return where_; }

  /// The value under a key; nothing where it is missing or null.
  ResultView operator[](std::string_view key) const {
    if (json_ == nullptr) return {};
    if (!json_->is_object()) fail("an object");
    const auto member = json_->find(std::string(key));
    if (member == json_->end()) return {};
    return ResultView(*member, where_ + "/" + std::string(key));
  }

  /// Throws FormatError, as do the others.
  std::optional<double> number(std::string_view key) const {
    const ResultView value = (*this)[key];
    if (!value) return std::nullopt;
    return value.as_number();
  }
  std::optional<bool> flag(std::string_view key) const {
    const ResultView value = (*this)[key];
    if (!value) return std::nullopt;
    if (!value.json_->is_boolean()) value.fail("true or false");
    return value.json_->get<bool>();
  }
  /// Empty where there is none.
  std::string text(std::string_view key) const {
    const ResultView value = (*this)[key];
    return value ? value.as_text() : std::string();
  }
  /// [low, high].
  std::optional<ReportedRange> range(std::string_view key) const {
    const std::vector<ResultView> ends = items(key);
    if (ends.empty()) return std::nullopt;
    if (ends.size() != 2) (*this)[key].fail("two numbers");
    return ReportedRange{ends[0].as_number(), ends[1].as_number()};
  }
  /// Items of a list; none where it is missing.
  std::vector<ResultView> items(std::string_view key) const {
    const ResultView list = (*this)[key];
    std::vector<ResultView> views;
    if (!list) return views;
    if (!list.json_->is_array()) list.fail("a list");
    if (list.json_->size() > most_items) list.fail("at most 4096 items");
    for (const Json& item : *list.json_) {
      views.push_back(ResultView(item, list.where_ + "/" + std::to_string(views.size())));
    }
    return views;
  }
  /// Keys and values of an object, in the order of the keys; none where it is missing.
  std::vector<std::pair<std::string, ResultView>> members(std::string_view key) const {
    const ResultView object = (*this)[key];
    std::vector<std::pair<std::string, ResultView>> views;
    if (!object) return views;
    if (!object.json_->is_object()) object.fail("an object");
    if (object.json_->size() > most_items) object.fail("at most 4096 members");
    for (const auto& member : object.json_->items()) {
      views.emplace_back(member.key(),
                         ResultView(member.value(), object.where_ + "/" + member.key()));
    }
    return views;
  }
  /// The first item of a list that has this text under `name_key`; nothing where there is none.
  ResultView item(std::string_view list, std::string_view name_key, std::string_view name) const {
    for (const ResultView& view : items(list)) {
      if (view.text(name_key) == name) return view;
    }
    return {};
  }

  /// A text, number or truth value as it reads; empty where there is none.
  std::string scalar_text(std::string_view key) const {
    const ResultView value = (*this)[key];
    if (!value) return "";
    if (value.json_->is_string()) return value.as_text();
    if (value.json_->is_boolean()) return value.json_->get<bool>() ? "yes" : "no";
    if (!value.json_->is_number()) value.fail("a text, a number, true or false");
    return value.json_->dump();
  }

  double as_number() const {
    if (json_ == nullptr || !json_->is_number()) fail("a number");
    const double value = json_->get<double>();
    if (!std::isfinite(value)) fail("a finite number");
    return value;
  }
  std::string as_text() const {
    if (json_ == nullptr || !json_->is_string()) fail("a text");
    std::string text = json_->get<std::string>();
    if (text.size() <= longest_text) return text;
    std::size_t end = longest_text;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
    return text.substr(0, end) + "…";
  }

 private:
  [[noreturn]] void fail(const char* expected) const {
    throw FormatError({.id = "report/bad-value",
                       .where = detail::shortened(where_, 500),
                       .what = "not what a result file has here",
                       .expected = expected,
                       .found = json_ == nullptr ? "null" : json_->type_name(),
                       .mend = "run the command that wrote the file again"});
  }

  const Json* json_ = nullptr;
  std::string where_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
