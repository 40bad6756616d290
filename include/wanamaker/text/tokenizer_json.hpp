// Reads tokenizer.json: the pipeline that it declares around a BPE model. Whatever would change ids
// and is not implemented is refused by name.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "wanamaker/io/json.hpp"
#include "wanamaker/text/json_node.hpp"
#include "wanamaker/text/tokenizer_definition.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// More steps than any tokenizer has; each goes over the whole text.
inline constexpr std::size_t most_steps = 64;

/// Steps in order: the elements of a `Sequence`, or the one step itself. `member` is the name of a
/// sequence's list.
inline std::vector<JsonNode> sequence_steps(const JsonNode& node, const std::string& member) {
  if (node.at("type").text() != "Sequence") return {node};
  std::vector<JsonNode> steps;
  node.at(member).for_each_element([&](const JsonNode& element) {
    for (JsonNode& step : sequence_steps(element, member)) steps.push_back(std::move(step));
    if (steps.size() > most_steps) {
      node.refuse_unsupported("sequence", "at most " + std::to_string(most_steps) + " steps");
    }
  });
  return steps;
}

/// A pattern that matches a text as it is.
inline std::string literal_pattern(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string pattern;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    at += c.length;
    pattern += "\\x{";
    for (int shift = 20; shift >= 0; shift -= 4) {
      pattern += digits[(static_cast<std::uint32_t>(c.value) >> shift) & 15u];
    }
    pattern += "}";
  }
  return pattern;
}

/// The text of a `pattern` {"String": …} that is not empty, or nothing for {"Regex": …}.
inline std::optional<std::string> read_literal(const JsonNode& pattern) {
  const std::optional<JsonNode> literal = pattern.find("String");
  if (!literal) return std::nullopt;
  if (literal->text().empty()) literal->refuse_unsupported("pattern", "a text that is not empty");
  return literal->text();
}

inline Regex read_regex(const JsonNode& pattern) {
  const std::optional<JsonNode> regex = pattern.find("Regex");
  if (!regex) pattern.refuse_unsupported("pattern", "Regex or String");
  return Regex(regex->text(), regex->where());
}

/// A text that is put into others, perhaps often: its bound bounds their growth.
inline const std::string& read_insertion(const JsonNode& node) {
  constexpr std::size_t longest = 256;
  if (node.text().size() > longest) {
    node.refuse_unsupported("length", "at most " + std::to_string(longest) + " bytes");
  }
  return node.text();
}

inline Normalizer::Step read_normalizer_step(const JsonNode& step) {
  const JsonNode type = step.at("type");
  const std::string& name = type.text();
  if (name == "NFC") return NfcStep{};
  if (name == "NFKC") return NfkcStep{};
  if (name == "Lowercase") return LowercaseStep{};
  if (name == "Prepend") return PrependStep{read_insertion(step.at("prepend"))};
  if (name != "Replace") {
    type.refuse_unsupported("normalizer", "NFC, NFKC, Lowercase, Replace, Prepend or a Sequence");
  }
  const JsonNode pattern = step.at("pattern");
  const std::string& content = read_insertion(step.at("content"));
  if (auto literal = read_literal(pattern)) return ReplaceTextStep{*std::move(literal), content};
  return ReplaceStep{read_regex(pattern), content};
}

inline Normalizer read_normalizer(const JsonNode& root) {
  const std::optional<JsonNode> node = root.find("normalizer");
  if (!node) return {};
  std::vector<Normalizer::Step> steps;
  for (const JsonNode& step : sequence_steps(*node, "normalizers")) {
    steps.push_back(read_normalizer_step(step));
  }
  return Normalizer(std::move(steps));
}

inline SplitBehavior read_behavior(const JsonNode& node) {
  constexpr std::pair<std::string_view, SplitBehavior> names[] = {
      {"Isolated", SplitBehavior::isolated},
      {"Removed", SplitBehavior::removed},
      {"Contiguous", SplitBehavior::contiguous},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next}};
  for (const auto& [name, behavior] : names) {
    if (node.text() == name) return behavior;
  }
  node.refuse_unsupported("behavior",
                          "Isolated, Removed, Contiguous, MergedWithPrevious or MergedWithNext");
}

inline PreTokenizer::Step read_split(const JsonNode& step) {
  const SplitBehavior behavior = read_behavior(step.at("behavior"));
  const JsonNode pattern = step.at("pattern");
  const std::optional<std::string> literal = read_literal(pattern);
  Regex regex = literal ? Regex(literal_pattern(*literal), pattern.where()) : read_regex(pattern);
  const bool is_byte_level = regex.pattern() == byte_level_pattern;
  if (is_byte_level && behavior == SplitBehavior::isolated) return ByteLevelSplit{};
  return PatternSplit{std::move(regex), behavior, step.flag("invert")};
}

inline MetaspaceSplit::Prepend read_prepend_scheme(const JsonNode& step) {
  const std::optional<JsonNode> scheme = step.find("prepend_scheme");
  const std::string name = scheme ? scheme->text() : "always";
  // The older spelling, which may stand beside the newer one.
  if (!step.flag("add_prefix_space", true)) {
    if (scheme && name != "never") scheme->refuse_unsupported("contradiction", "never");
    return MetaspaceSplit::Prepend::never;
  }
  if (name == "always") return MetaspaceSplit::Prepend::always;
  if (name == "first") return MetaspaceSplit::Prepend::first;
  if (name == "never") return MetaspaceSplit::Prepend::never;
  scheme->refuse_unsupported("prepend_scheme", "always, first or never");
}

inline MetaspaceSplit read_metaspace(const JsonNode& step) {
  const JsonNode mark = step.at("replacement");
  const std::string& text = mark.text();
  if (text.empty() || decode_utf8(text, 0).length != text.size()) mark.refuse("one character");
  return {text, read_prepend_scheme(step), step.flag("split", true)};
}

inline PreTokenizer::Step read_pre_tokenizer_step(const JsonNode& step) {
  const JsonNode type = step.at("type");
  if (type.text() == "ByteLevel") {
    return ByteLevelSplit{.add_prefix_space = step.flag("add_prefix_space", true),
                          .use_regex = step.flag("use_regex", true)};
  }
  if (type.text() == "Split") return read_split(step);
  if (type.text() == "Digits") return DigitSplit{step.flag("individual_digits")};
  if (type.text() == "Metaspace") return read_metaspace(step);
  type.refuse_unsupported("pre-tokenizer",
                          "ByteLevel, Split, Digits, Metaspace or a Sequence of these");
}

/// ByteLevel, where it is there, is last: it turns text into bytes. Without it symbols are
/// characters.
inline void read_pre_tokenizer(const JsonNode& root, TokenizerDefinition& definition) {
  definition.symbols = SymbolKind::characters;
  const std::optional<JsonNode> pre_tokenizer = root.find("pre_tokenizer");
  if (!pre_tokenizer) return;
  std::vector<PreTokenizer::Step> steps;
  for (const JsonNode& node : sequence_steps(*pre_tokenizer, "pretokenizers")) {
    const JsonNode type = node.at("type");
    if (definition.symbols == SymbolKind::bytes) {
      type.refuse_unsupported("pre-tokenizer after ByteLevel", "ByteLevel last");
    }
    if (type.text() == "ByteLevel") definition.symbols = SymbolKind::bytes;
    steps.push_back(read_pre_tokenizer_step(node));
    const auto* metaspace = std::get_if<MetaspaceSplit>(&steps.back());
    if (steps.size() > 1 && metaspace != nullptr &&
        metaspace->prepend == MetaspaceSplit::Prepend::first) {
      node.at("prepend_scheme").refuse_unsupported("step before Metaspace", "always or never");
    }
  }
  definition.pre_tokenizer = PreTokenizer(std::move(steps));
}

/// One decoder of a model of characters.
inline void read_decoder_step(const JsonNode& step, TokenizerDefinition& definition) {
  const JsonNode type = step.at("type");
  const std::string& name = type.text();
  if (name == "Metaspace") {
    const MetaspaceSplit metaspace = read_metaspace(step);
    definition.space_mark = metaspace.mark;
    definition.strips_first_space = metaspace.prepend != MetaspaceSplit::Prepend::never;
  } else if (name == "Replace") {
    const auto mark = read_literal(step.at("pattern"));
    if (!mark || step.at("content").text() != " ") {
      step.at("pattern").refuse_unsupported("decoder", "Replace of a mark by a space");
    }
    definition.space_mark = *mark;
  } else if (name == "Strip") {
    const bool strips_one = step.at("content").text() == " " && step.at("start").json() == 1 &&
                            step.at("stop").json() == 0;
    if (!strips_one) type.refuse_unsupported("decoder", "Strip of one space at the start");
    definition.strips_first_space = true;
  } else if (name != "ByteFallback" && name != "Fuse") {
    type.refuse_unsupported("decoder", "Replace, ByteFallback, Fuse, Strip, Metaspace");
  }
}

inline void read_decoder(const JsonNode& root, TokenizerDefinition& definition) {
  const std::optional<JsonNode> node = root.find("decoder");
  if (!node) return;
  for (const JsonNode& step : sequence_steps(*node, "decoders")) {
    if (definition.symbols == SymbolKind::characters) {
      read_decoder_step(step, definition);
    } else if (step.at("type").text() != "ByteLevel") {
      step.at("type").refuse_unsupported("decoder", "null or ByteLevel");
    }
  }
}

/// Ids before or after a text; a template may name one list of ids many times.
inline constexpr std::size_t longest_template = 4096;

/// `single` of TemplateProcessing: ids around the one text.
inline void read_template(const JsonNode& step, TokenizerDefinition& definition) {
  const JsonNode tokens = step.at("special_tokens");
  std::vector<TokenId>* ids = &definition.template_begin;
  step.at("single").for_each_element([&](const JsonNode& part) {
    if (part.find("Sequence")) {
      if (ids == &definition.template_end) part.refuse_unsupported("template", "one text");
      ids = &definition.template_end;
      return;
    }
    const std::string& name = part.at("SpecialToken").at("id").text();
    tokens.at(name).at("ids").for_each_element(
        [&](const JsonNode& id) { ids->push_back(id.token_id()); });
    if (ids->size() > longest_template) {
      step.refuse_unsupported("template", "at most " + std::to_string(longest_template) + " ids");
    }
  });
  if (ids != &definition.template_end) step.at("single").refuse_unsupported("template", "a text");
}

inline void read_post_processor(const JsonNode& root, TokenizerDefinition& definition) {
  const std::optional<JsonNode> node = root.find("post_processor");
  if (!node) return;
  bool has_template = false;
  for (const JsonNode& step : sequence_steps(*node, "processors")) {
    const JsonNode type = step.at("type");
    if (type.text() == "ByteLevel") continue;  // changes offsets, not ids
    if (type.text() != "TemplateProcessing" || has_template) {
      type.refuse_unsupported("post_processor", "ByteLevel and one TemplateProcessing");
    }
    has_template = true;
    read_template(step, definition);
  }
}

inline std::vector<VocabularyEntry> read_vocabulary(const JsonNode& node) {
  if (!node.json().is_object()) node.refuse("an object of tokens and ids");
  std::vector<VocabularyEntry> entries;
  entries.reserve(node.json().size());
  for (const auto& [spelling, id] : node.json().items()) {
    const bool fits = id.is_number_integer() && id.get<std::int64_t>() >= 0 &&
                      id.get<std::int64_t>() <= INT32_MAX;
    entries.push_back({spelling, fits ? id.get<TokenId>() : node.at(spelling).token_id()});
  }
  return entries;
}

inline std::vector<Merge> read_merges(const JsonNode& node,
                                      const std::vector<VocabularyEntry>& vocabulary) {
  if (!node.json().is_array()) node.refuse("an array of merges");
  const SpellingIndex index(vocabulary);
  const std::string where = node.where();
  std::vector<Merge> merges;
  merges.reserve(node.json().size());
  for (const Json& merge : node.json()) {
    const std::size_t place = merges.size();
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.push_back(index.merge(merge[0].get_ref<const std::string&>(),
                                   merge[1].get_ref<const std::string&>(), where, place));
      continue;
    }
    std::string_view text;  // a merge of the wrong type is malformed as an empty one is
    if (merge.is_string()) text = merge.get_ref<const std::string&>();
    const auto [left, right] = split_merge(text, where, place);
    merges.push_back(index.merge(left, right, where, place));
  }
  return merges;
}

/// True for a value that turns a setting off.
inline bool is_off(const Json& value) {
  return value.is_null() || value == false || value == "" || value == 0;
}

/// Refuses settings of the model that are on and would change ids. (How unknown tokens are treated
/// matters only for vocabularies that lack bytes; Tokenizer refuses it there.)
inline void check_model_settings(const JsonNode& model) {
  constexpr std::array<std::string_view, 7> known = {
      "type", "vocab", "merges", "ignore_merges", "unk_token", "fuse_unk", "byte_fallback"};
  for (const auto& [key, value] : model.json().items()) {
    const bool is_known = std::find(known.begin(), known.end(), key) != known.end();
    if (!is_known && !is_off(value)) {
      model.at(key).refuse_unsupported("setting of the model", "null, false or empty");
    }
  }
}

inline void read_model(const JsonNode& model, TokenizerDefinition& definition) {
  if (const std::optional<JsonNode> type = model.find("type")) {
    if (type->text() != "BPE") type->refuse_unsupported("model", "BPE");
  }
  const JsonNode vocabulary = model.at("vocab");
  const JsonNode merges = model.at("merges");
  check_model_settings(model);
  if (const auto unknown = model.find("unk_token")) definition.unknown_token = unknown->text();
  definition.ignore_merges = model.flag("ignore_merges");
  definition.fuse_unknown = model.flag("fuse_unk");
  definition.byte_fallback = model.flag("byte_fallback");
  definition.vocabulary = read_vocabulary(vocabulary);
  definition.merges = read_merges(merges, definition.vocabulary);
}

inline AddedToken read_added_token(const JsonNode& node, TokenId id) {
  return {.id = id,
          .content = node.at("content").text(),
          .special = node.flag("special"),
          .normalized = node.flag("normalized", true),
          .single_word = node.flag("single_word"),
          .lstrip = node.flag("lstrip"),
          .rstrip = node.flag("rstrip")};
}

}  // namespace detail

/// Reads the text of a tokenizer.json; `where` names the file. Settings for padding and truncation
/// are the caller's business and passed over. Throws FormatError.
inline TokenizerDefinition read_tokenizer_json(std::string_view text, const std::string& where) {
  const Json document = parse_json(text, where);
  const detail::JsonNode root(document, where);
  TokenizerDefinition definition{.where = where};
  const detail::JsonNode model = root.at("model");
  detail::read_model(model, definition);
  definition.normalizer = detail::read_normalizer(root);
  detail::read_pre_tokenizer(root, definition);
  detail::read_post_processor(root, definition);
  detail::read_decoder(root, definition);
  if (const auto added = root.find("added_tokens")) {
    added->for_each_element([&](const detail::JsonNode& token) {
      definition.added_tokens.push_back(detail::read_added_token(token, token.at("id").token_id()));
    });
  }
  return definition;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
