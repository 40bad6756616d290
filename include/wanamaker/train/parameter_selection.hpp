// Parameters by part of the model, by layer and by name: what is frozen, and what messages call a
// parameter's group.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/nn/parameters.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A part of a model. A tied head is its embedding: it belongs to `embeddings`, once.
enum class ParameterGroup { embeddings, attention, mlp, norms, head };

namespace detail {

inline constexpr std::array<std::pair<std::string_view, ParameterGroup>, 5> parameter_groups = {
    {{"embeddings", ParameterGroup::embeddings},
     {"attention", ParameterGroup::attention},
     {"mlp", ParameterGroup::mlp},
     {"norms", ParameterGroup::norms},
     {"head", ParameterGroup::head}}};

/// The parts of a name between dots.
inline std::vector<std::string_view> name_parts(std::string_view name) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    parts.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

inline std::optional<Index> whole_number(std::string_view text) {
  Index number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool fits = fault == std::errc() && end == text.data() + text.size() && number >= 0;
  return fits ? std::optional(number) : std::nullopt;
}

/// True where `pattern`, in which * stands for anything, matches all of the text.
inline bool matches_pattern(std::string_view text, std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t at = star; at <= text.size(); ++at) {
    if (matches_pattern(text.substr(at), rest)) return true;
  }
  return false;
}

}  // namespace detail

/// "embeddings", "attention", "mlp", "norms", "head".
inline std::string_view parameter_group_name(ParameterGroup group) {
  return detail::parameter_groups[static_cast<std::size_t>(group)].first;
}

/// The group of a parameter, by the words that the families' state dicts have in their names.
inline ParameterGroup parameter_group(std::string_view name) {
  const std::vector<std::string_view> parts = detail::name_parts(name);
  const auto has = [&](std::initializer_list<std::string_view> words) {
    return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
      return std::find(words.begin(), words.end(), part) != words.end();
    });
  };
  if (has({"mlp"})) return ParameterGroup::mlp;
  if (has({"attn", "attention", "self_attn"})) return ParameterGroup::attention;
  if (has({"wte", "wpe", "embed_in", "embed_tokens", "embedding", "position_table"})) {
    return ParameterGroup::embeddings;
  }
  if (has({"lm_head", "embed_out", "head"})) return ParameterGroup::head;
  return ParameterGroup::norms;
}

/// The number in a parameter's name; nothing for parameters outside the blocks.
inline std::optional<Index> parameter_layer(std::string_view name) {
  for (const std::string_view part : detail::name_parts(name)) {
    if (const std::optional<Index> layer = detail::whole_number(part)) return layer;
  }
  return std::nullopt;
}

/// "mlp of layer 3", "head": what messages call a parameter's group.
inline std::string parameter_group_text(std::string_view name) {
  std::string text(parameter_group_name(parameter_group(name)));
  if (const auto layer = parameter_layer(name)) text += " of layer " + std::to_string(*layer);
  return text;
}

/// Chooses parameters by rules such as "embeddings", "mlp:3", "attention:0-5", "layers:2-4" or a
/// name with * for anything ("*.bias"). A parameter is chosen where any rule matches.
class ParameterSelection {
 public:
  /// Chooses nothing.
  ParameterSelection() = default;

  /// Rules with commas between them. Throws DataError for a rule that cannot be read.
  explicit ParameterSelection(std::string_view rules) {
    while (!rules.empty()) {
      const std::size_t end = std::min(rules.find(','), rules.size());
      rules_.push_back(read_rule(rules.substr(0, end)));
      rules.remove_prefix(std::min(end + 1, rules.size()));
    }
  }

  bool operator()(std::string_view name) const {
    return std::any_of(rules_.begin(), rules_.end(),
                       [name](const Rule& rule) { return rule.matches(name); });
  }

  /// Throws DataError where a rule matches no parameter of the list: a misspelt name, say, or the
  /// head of a model whose head is its embedding.
  template <class B>
  void check_used(const ParameterList<B>& parameters) const {
    for (const Rule& rule : rules_) {
      const bool used = std::any_of(parameters.begin(), parameters.end(),
                                    [&](const Parameter<B>& p) { return rule.matches(p.name); });
      if (!used) refuse(rule.text, "a rule that matches a parameter of the model");
    }
  }

 private:
  struct Rule {
    std::string text;
    std::optional<ParameterGroup> group{};
    std::string pattern{};  // where it is no group
    Index first_layer = -1;
    Index last_layer = std::numeric_limits<Index>::max();

    bool matches(std::string_view name) const {
      if (!pattern.empty()) return detail::matches_pattern(name, pattern);
      if (first_layer >= 0) {
        const Index layer = parameter_layer(name).value_or(-1);
        if (layer < first_layer || layer > last_layer) return false;
      }
      return !group || parameter_group(name) == *group;
    }
  };

  static Rule read_rule(std::string_view text) {
    Rule rule{.text = std::string(text)};
    const std::size_t colon = std::min(text.find(':'), text.size());
    const std::string_view word = text.substr(0, colon);
    const auto known =
        std::find_if(detail::parameter_groups.begin(), detail::parameter_groups.end(),
                     [word](const auto& entry) { return entry.first == word; });
    if (known != detail::parameter_groups.end()) {
      rule.group = known->second;
    } else if (word != "layers" || colon == text.size()) {
      rule.pattern = std::string(text);
    }
    if (text.empty()) refuse(text, rule_forms);
    if (rule.pattern.empty() && colon < text.size()) read_layers(text, colon, rule);
    return rule;
  }

  static void read_layers(std::string_view text, std::size_t colon, Rule& rule) {
    const std::string_view range = text.substr(colon + 1);
    const std::size_t dash = std::min(range.find('-'), range.size());
    const auto first = detail::whole_number(range.substr(0, dash));
    const auto last = dash < range.size() ? detail::whole_number(range.substr(dash + 1)) : first;
    if (!first || !last || *last < *first) refuse(text, rule_forms);
    rule.first_layer = *first;
    rule.last_layer = *last;
  }

  [[noreturn]] static void refuse(std::string_view rule, std::string_view expected) {
    throw DataError({.id = "training/selection",
                     .where = "selection of parameters",
                     .what = "unusable rule",
                     .expected = std::string(expected),
                     .found = "'" + std::string(rule) + "'",
                     .mend = "correct it or leave it out"});
  }

  static constexpr std::string_view rule_forms =
      "embeddings, attention, mlp, norms or head, with :LAYER or :FIRST-LAST after it or not; "
      "layers:FIRST-LAST; or a name with *";

  std::vector<Rule> rules_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
