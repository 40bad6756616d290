// Writing of a byte-level BPE tokenizer as tokenizer.json, for this library and for others.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/json_writing.hpp"
#include "wanamaker/text/pre_tokenizer.hpp"
#include "wanamaker/text/tokenizer_definition.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline void check_plain_byte_level(const TokenizerDefinition& definition) {
  const auto& steps = definition.pre_tokenizer.steps();
  const bool is_plain = definition.symbols == SymbolKind::bytes && definition.normalizer.empty() &&
                        definition.template_begin.empty() && definition.template_end.empty() &&
                        definition.merge_ranks.empty() && steps.size() == 1 &&
                        std::holds_alternative<ByteLevelSplit>(steps.front());
  if (is_plain) return;
  throw DataError({.id = "tokenizer/unwritable",
                   .where = definition.where,
                   .what = "this tokenizer cannot be written",
                   .expected = "byte-level BPE with GPT-2's split and nothing around it",
                   .found = "another pipeline",
                   .mend = "copy the tokenizer's own files"});
}

inline OrderedJson added_token_json(const AddedToken& token) {
  return {{"id", token.id},          {"content", token.content}, {"single_word", token.single_word},
          {"lstrip", token.lstrip},  {"rstrip", token.rstrip},   {"normalized", token.normalized},
          {"special", token.special}};
}

inline OrderedJson byte_level_model_json(const TokenizerDefinition& definition) {
  OrderedJson vocabulary = OrderedJson::object();
  std::unordered_map<TokenId, const std::string*> spellings;
  for (const VocabularyEntry& entry : definition.vocabulary) {
    vocabulary.push_back({entry.spelling, entry.id});
    spellings.emplace(entry.id, &entry.spelling);
  }
  // The older form, one text a merge: every version of every reader takes it.
  OrderedJson merges = OrderedJson::array();
  for (const Merge& merge : definition.merges) {
    merges.push_back(*spellings.at(merge.left) + " " + *spellings.at(merge.right));
  }
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", definition.ignore_merges},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(merges)}};
}

}  // namespace detail

/// The document of a byte-level tokenizer. Throws DataError for any other pipeline.
inline OrderedJson tokenizer_json(const TokenizerDefinition& definition) {
  detail::check_plain_byte_level(definition);
  const auto& split = std::get<ByteLevelSplit>(definition.pre_tokenizer.steps().front());
  const auto byte_level = [](bool add_prefix_space, bool use_regex) {
    return OrderedJson{{"type", "ByteLevel"},
                       {"add_prefix_space", add_prefix_space},
                       {"trim_offsets", true},
                       {"use_regex", use_regex}};
  };
  OrderedJson added = OrderedJson::array();
  for (const AddedToken& token : definition.added_tokens) {
    added.push_back(detail::added_token_json(token));
  }
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", std::move(added)},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level(split.add_prefix_space, split.use_regex)},
          {"post_processor", nullptr},
          {"decoder", byte_level(true, true)},
          {"model", detail::byte_level_model_json(definition)}};
}

/// Writes tokenizer.json atomically. The same tokenizer gives the same bytes. Throws as
/// tokenizer_json, and FileError.
inline void write_tokenizer_json(const std::filesystem::path& path,
                                 const TokenizerDefinition& definition) {
  write_json(path, tokenizer_json(definition));
}

}  // namespace wanamaker::inline WANAMAKER_ABI
