// A byte-level BPE tokenizer as the metadata of a GGUF file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/gguf_writer.hpp"
#include "wanamaker/text/gguf_tokenizer.hpp"
#include "wanamaker/text/tokenizer_definition.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

[[noreturn]] inline void throw_no_gguf_tokenizer(const TokenizerDefinition& definition,
                                                 std::string found) {
  throw DataError({.id = "tokenizer/unwritable",
                   .where = definition.where,
                   .what = "this tokenizer cannot be written to GGUF",
                   .expected = "byte-level BPE split as GPT-2's, GPT-NeoX's or SmolLM2's",
                   .found = std::move(found),
                   .mend = "export a folder, with the tokenizer's own files"});
}

/// llama.cpp's name for how the tokenizer normalises and splits.
inline std::string gguf_pre_tokenizer_name(const TokenizerDefinition& definition) {
  const auto& steps = definition.pre_tokenizer.steps();
  const bool splits_words = definition.symbols == SymbolKind::bytes && !definition.ignore_merges &&
                            !steps.empty() &&
                            std::holds_alternative<ByteLevelSplit>(steps.back()) &&
                            std::get<ByteLevelSplit>(steps.back()).use_regex;
  const bool splits_digits = splits_words && steps.size() == 2 &&
                             std::holds_alternative<DigitSplit>(steps.front()) &&
                             std::get<DigitSplit>(steps.front()).individual;
  if (splits_words && steps.size() == 1 && definition.normalizer.empty()) return "gpt-2";
  if (splits_words && steps.size() == 1 && definition.normalizer.is_nfc()) return "olmo";
  if (splits_digits && definition.normalizer.empty()) return "smollm";
  throw_no_gguf_tokenizer(definition, "another pipeline");
}

struct GgufTokens {
  std::vector<std::string> spellings{};
  std::vector<std::int32_t> types{};

  void set(const TokenizerDefinition& definition, TokenId id, const std::string& spelling,
           GgufTokenType type) {
    const std::size_t at = static_cast<std::size_t>(id);
    if (id < 0 || at >= spellings.size()) {
      throw_no_gguf_tokenizer(definition, "an id without a token below it");
    }
    spellings[at] = spelling;
    types[at] = static_cast<std::int32_t>(type);
  }
};

/// Every id has a token; gaps are unused ones.
inline GgufTokens gguf_tokens(const TokenizerDefinition& definition) {
  TokenId largest = -1;
  for (const VocabularyEntry& entry : definition.vocabulary) largest = std::max(largest, entry.id);
  for (const AddedToken& token : definition.added_tokens) largest = std::max(largest, token.id);
  GgufTokens tokens;
  for (TokenId id = 0; id <= largest; ++id) {
    tokens.spellings.push_back("[PAD" + std::to_string(id) + "]");
    tokens.types.push_back(static_cast<std::int32_t>(GgufTokenType::unused));
  }
  for (const VocabularyEntry& entry : definition.vocabulary) {
    tokens.set(definition, entry.id, entry.spelling, GgufTokenType::normal);
  }
  for (const AddedToken& token : definition.added_tokens) {
    tokens.set(definition, token.id, token.content,
               token.special ? GgufTokenType::control : GgufTokenType::user_defined);
  }
  return tokens;
}

inline std::optional<TokenId> added_token_id(const TokenizerDefinition& definition,
                                             const std::optional<std::string>& spelling) {
  if (!spelling) return std::nullopt;
  for (const AddedToken& token : definition.added_tokens) {
    if (token.content == *spelling) return token.id;
  }
  for (const VocabularyEntry& entry : definition.vocabulary) {
    if (entry.spelling == *spelling) return entry.id;
  }
  return std::nullopt;
}

}  // namespace detail

/// What read_gguf_tokenizer reads back to the same encoding. Throws DataError
/// ("tokenizer/unwritable") for other pipelines.
inline GgufMetadataToWrite gguf_tokenizer_metadata(const TokenizerDefinition& definition) {
  const std::string pre = detail::gguf_pre_tokenizer_name(definition);
  detail::GgufTokens tokens = detail::gguf_tokens(definition);
  std::vector<std::string> merges;
  for (const Merge& merge : definition.merges) {
    const auto spelling = [&](TokenId id) {
      return tokens.spellings.at(static_cast<std::size_t>(id));
    };
    merges.push_back(spelling(merge.left) + " " + spelling(merge.right));
  }
  GgufMetadataToWrite metadata{{"tokenizer.ggml.model", std::string("gpt2")},
                               {"tokenizer.ggml.pre", pre},
                               {"tokenizer.ggml.tokens", std::move(tokens.spellings)},
                               {"tokenizer.ggml.token_type", std::move(tokens.types)},
                               {"tokenizer.ggml.merges", std::move(merges)}};
  const auto end = [&](const char* key, const std::optional<std::string>& spelling) {
    const auto id = detail::added_token_id(definition, spelling);
    if (id) metadata.emplace_back(key, static_cast<std::uint32_t>(*id));
  };
  end("tokenizer.ggml.bos_token_id", definition.bos);
  end("tokenizer.ggml.eos_token_id", definition.eos);
  metadata.emplace_back("tokenizer.ggml.add_bos_token", !definition.template_begin.empty());
  return metadata;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
