// Reads GPT-2's own form of tokenizer files (vocab.json, merges.txt), and tokenizer_config.json.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wanamaker/io/json.hpp"
#include "wanamaker/text/json_node.hpp"
#include "wanamaker/text/tokenizer_definition.hpp"
#include "wanamaker/text/tokenizer_json.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What tokenizer_config.json says beside the tokenizer proper.
struct TokenizerConfig {
  std::string tokenizer_class{};
  std::optional<std::string> bos{};
  std::optional<std::string> eos{};
  std::vector<std::string> special_tokens{};  ///< bos, eos and all others that are named
  std::vector<AddedToken> added_tokens{};     ///< `added_tokens_decoder`
  std::optional<bool> add_prefix_space{};
  bool add_bos_token = false;
};

namespace detail {

/// GPT-2's and NeoX's one special token: bos and eos where no file names any.
inline constexpr std::string_view default_special_token = "<|endoftext|>";

/// A token's text, given as a string or as an object with `content`.
inline std::string special_token_text(const JsonNode& node) {
  return node.json().is_object() ? node.at("content").text() : node.text();
}

inline std::vector<AddedToken> read_added_tokens_decoder(const JsonNode& node) {
  std::vector<AddedToken> tokens;
  for (const auto& [key, value] : node.json().items()) {
    const bool is_number =
        !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) node.refuse("an object with ids as keys");
    tokens.push_back(read_added_token(node.at(key), static_cast<TokenId>(std::stol(key))));
  }
  return tokens;
}

/// Merges of a merges.txt: one a line; a line that begins with "#version" and empty ones are none.
inline std::vector<Merge> read_merges_text(std::string_view text, const std::string& where,
                                           const std::vector<VocabularyEntry>& vocabulary) {
  const SpellingIndex index(vocabulary);
  std::vector<Merge> merges;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const auto [left, right] = split_merge(line, where, merges.size());
    merges.push_back(index.merge(left, right, where, merges.size()));
  }
  return merges;
}

/// Gives special tokens that the vocabulary has, and no added token repeats, their ids.
inline void add_special_tokens(const std::vector<std::string>& contents,
                               TokenizerDefinition& definition) {
  const SpellingIndex index(definition.vocabulary);
  for (const std::string& content : contents) {
    const auto same = [&](const AddedToken& token) { return token.content == content; };
    const auto& present = definition.added_tokens;
    if (std::any_of(present.begin(), present.end(), same)) continue;
    if (const std::optional<TokenId> id = index.find(content)) {
      definition.added_tokens.push_back({.id = *id, .content = content, .special = true});
    }
  }
}

}  // namespace detail

/// Reads the text of a tokenizer_config.json. Throws FormatError.
inline TokenizerConfig read_tokenizer_config(std::string_view text, const std::string& where) {
  const Json document = parse_json(text, where);
  const detail::JsonNode root(document, where);
  TokenizerConfig config;
  if (const auto name = root.find("tokenizer_class")) config.tokenizer_class = name->text();
  for (const char* key :
       {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token"}) {
    const auto node = root.find(key);
    if (node) config.special_tokens.push_back(detail::special_token_text(*node));
    if (node && key == std::string_view("bos_token")) config.bos = config.special_tokens.back();
    if (node && key == std::string_view("eos_token")) config.eos = config.special_tokens.back();
  }
  if (const auto added = root.find("added_tokens_decoder")) {
    config.added_tokens = detail::read_added_tokens_decoder(*added);
  }
  if (const auto prefix = root.find("add_prefix_space"))
    config.add_prefix_space = prefix->boolean();
  config.add_bos_token = root.flag("add_bos_token");
  return config;
}

/// Puts vocab.json and merges.txt together, as GPT-2's tokenizer uses them: no normalisation,
/// GPT-2's pattern. Special tokens: those that `config` names, else <|endoftext|>. Throws
/// FormatError.
inline TokenizerDefinition read_vocab_and_merges(std::string_view vocab_text,
                                                 const std::string& vocab_where,
                                                 std::string_view merges_text,
                                                 const std::string& merges_where,
                                                 const TokenizerConfig& config = {}) {
  TokenizerDefinition definition{.where = vocab_where};
  const Json document = parse_json(vocab_text, vocab_where);
  definition.vocabulary = detail::read_vocabulary(detail::JsonNode(document, vocab_where));
  check_utf8(merges_text, merges_where);
  definition.merges = detail::read_merges_text(merges_text, merges_where, definition.vocabulary);
  definition.pre_tokenizer =
      PreTokenizer({ByteLevelSplit{.add_prefix_space = config.add_prefix_space.value_or(false)}});
  definition.added_tokens = config.added_tokens;
  detail::add_special_tokens(config.special_tokens, definition);
  if (definition.added_tokens.empty()) {
    detail::add_special_tokens({std::string(detail::default_special_token)}, definition);
  }
  return definition;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
