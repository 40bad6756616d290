// Reads tokenizer.json: the pipeline that it declares, as far as byte-level BPE goes. Whatever
// would change ids and is not implemented is refused by name.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/io/json.hpp"
#include "wanamaker/text/json_node.hpp"
#include "wanamaker/text/tokenizer_definition.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// Steps in order: the elements of a `Sequence`, or the one step itself. `member` is the name of a
/// sequence's list.
inline std::vector<JsonNode> sequence_steps(const JsonNode& node, const std::string& member) {
  if (node.at("type").text() != "Sequence") return {node};
  std::vector<JsonNode> steps;
  for (const JsonNode& element : node.at(member).elements()) {
    for (JsonNode& step : sequence_steps(element, member)) steps.push_back(std::move(step));
  }
  return steps;
}

inline Normalization read_normalizer(const JsonNode& root) {
  const std::optional<JsonNode> node = root.find("normalizer");
  if (!node) return Normalization::none;
  Normalization form = Normalization::none;
  for (const JsonNode& step : sequence_steps(*node, "normalizers")) {
    const JsonNode type = step.at("type");
    if (type.text() != "NFC") type.refuse_unsupported("normalizer", "null or NFC");
    form = Normalization::nfc;
  }
  return form;
}

inline Regex read_pattern(const JsonNode& step) {
  const JsonNode pattern = step.at("pattern");
  const std::optional<JsonNode> regex = pattern.find("Regex");
  if (!regex) pattern.refuse_unsupported("pattern", "Regex");
  return Regex(regex->text(), regex->where());
}

inline PreTokenizer::Step read_split(const JsonNode& step) {
  const JsonNode behavior = step.at("behavior");
  if (behavior.text() != "Isolated") behavior.refuse_unsupported("behavior", "Isolated");
  // Matches and gaps are all kept as pieces, so that "invert" changes nothing.
  Regex pattern = read_pattern(step);
  if (pattern.pattern() == byte_level_pattern) return ByteLevelSplit{};
  return IsolatingSplit{std::move(pattern)};
}

inline PreTokenizer::Step read_pre_tokenizer_step(const JsonNode& step) {
  const JsonNode type = step.at("type");
  if (type.text() == "ByteLevel") {
    return ByteLevelSplit{.add_prefix_space = step.flag("add_prefix_space", true),
                          .use_regex = step.flag("use_regex", true)};
  }
  if (type.text() == "Split") return read_split(step);
  if (type.text() == "Digits") return DigitSplit{step.flag("individual_digits")};
  type.refuse_unsupported("pre-tokenizer", "ByteLevel, Split, Digits or a Sequence of these");
}

/// ByteLevel must be there, once and last: it is what turns text into bytes.
inline PreTokenizer read_pre_tokenizer(const JsonNode& root) {
  std::vector<PreTokenizer::Step> steps;
  bool is_byte_level = false;
  for (const JsonNode& node : sequence_steps(root.at("pre_tokenizer"), "pretokenizers")) {
    const JsonNode type = node.at("type");
    if (is_byte_level) type.refuse_unsupported("pre-tokenizer after ByteLevel", "ByteLevel last");
    is_byte_level = type.text() == "ByteLevel";
    steps.push_back(read_pre_tokenizer_step(node));
  }
  if (!is_byte_level) root.at("pre_tokenizer").refuse_unsupported("pre-tokenizer", "ByteLevel");
  return PreTokenizer(std::move(steps));
}

/// Steps that add nothing to the ids and decode by bytes; `key` is post_processor or decoder.
inline void check_byte_level(const JsonNode& root, const std::string& key,
                             const std::string& member) {
  const std::optional<JsonNode> node = root.find(key);
  if (!node) return;
  for (const JsonNode& step : sequence_steps(*node, member)) {
    const JsonNode type = step.at("type");
    if (type.text() != "ByteLevel") type.refuse_unsupported(key, "null or ByteLevel");
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
  constexpr std::array<std::string_view, 6> known = {"type",          "vocab",     "merges",
                                                     "ignore_merges", "unk_token", "fuse_unk"};
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
  definition.normalization = detail::read_normalizer(root);
  definition.pre_tokenizer = detail::read_pre_tokenizer(root);
  detail::check_byte_level(root, "post_processor", "processors");
  detail::check_byte_level(root, "decoder", "decoders");
  if (const auto added = root.find("added_tokens")) {
    for (const detail::JsonNode& token : added->elements()) {
      definition.added_tokens.push_back(detail::read_added_token(token, token.at("id").token_id()));
    }
  }
  return definition;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
