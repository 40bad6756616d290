// Tokenizer: text to token ids and back, as the model's own files define it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/text/added_tokens.hpp"
#include "wanamaker/text/byte_pair_encoding.hpp"
#include "wanamaker/text/character_pair_encoding.hpp"
#include "wanamaker/text/normalizer_steps.hpp"
#include "wanamaker/text/pre_tokenizer.hpp"
#include "wanamaker/text/text_cuts.hpp"
#include "wanamaker/text/tokenizer_definition.hpp"
#include "wanamaker/text/utf8.hpp"
#include "wanamaker/text/vocabulary.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// BPE with everything around it. Immutable: any number of threads may use one object.
///
/// encode: added tokens are cut out; what lies between them is normalised, split into words, and
/// each word's bytes or characters are merged. decode: the tokens' bytes, one after the other, so
/// that decode(encode(x)) == x for every valid UTF-8 text x that normalisation leaves alone (and to
/// which no space is put in front, unless decoding drops it again).
class Tokenizer {
 public:
  /// Throws FormatError for contradictions within the definition.
  explicit Tokenizer(TokenizerDefinition definition);

  /// From a model's folder: tokenizer.json, else vocab.json and merges.txt; tokenizer_config.json
  /// where it is there. Throws FileError, FormatError.
  static Tokenizer from_folder(const std::filesystem::path& folder);

  /// From one tokenizer.json. Throws FileError, FormatError.
  static Tokenizer from_tokenizer_json(const std::filesystem::path& path);

  /// From the metadata of a GGUF file. Throws FileError, FormatError.
  static Tokenizer from_gguf(const std::filesystem::path& path);

  /// The tokenizer that comes with a model: from_gguf for a GGUF file (by its name), else
  /// from_folder. Throws FileError, FormatError.
  static Tokenizer of_model(const std::filesystem::path& model);

  /// From GPT-2's two files. Throws FileError, FormatError.
  static Tokenizer from_vocab_and_merges(const std::filesystem::path& vocab,
                                         const std::filesystem::path& merges);

  /// Token ids of a text; no BOS or EOS is added. Throws DataError for invalid UTF-8 (with its byte
  /// offset) and for bytes that the vocabulary lacks; `where` names the text in messages.
  std::vector<TokenId> encode(std::string_view text, const std::string& where = "text") const {
    return encode_part(text, true, where);
  }

  /// A place, at or after `least` and as late as possible, where a text may be cut: the ids of what
  /// is before it and of what is from it on (as encode_rest gives them) are, one after the other,
  /// the ids of the whole. It lies between a letter and a space. Nothing where there is none, or
  /// where this tokenizer might join over any place (text_cuts.hpp). The text is valid UTF-8.
  std::optional<std::size_t> last_cut(std::string_view text, std::size_t least = 1) const {
    if (!may_cut_) return std::nullopt;
    return last_space_after_letter(text, least);
  }
  /// False where `last_cut` never finds a place.
  bool may_cut() const { return may_cut_; }

  /// The ids of what follows a place that `last_cut` gave. Throws as encode.
  std::vector<TokenId> encode_rest(std::string_view text, const std::string& where = "text") const {
    return encode_part(text, false, where);
  }

  /// As encode, between the tokens that the file's template puts around a text.
  std::vector<TokenId> encode_with_template(std::string_view text,
                                            const std::string& where = "text") const {
    std::vector<TokenId> ids = template_begin_;
    for (const TokenId id : encode(text, where)) ids.push_back(id);
    ids.insert(ids.end(), template_end_.begin(), template_end_.end());
    return ids;
  }

  /// The bytes of the tokens. Cutting a token sequence may cut a character, so the result need not
  /// be valid UTF-8. Throws DataError for an id that no token has.
  std::string decode(std::span<const TokenId> ids) const {
    std::string bytes;
    for (const TokenId id : ids) bytes += token_bytes(id);
    if (strips_first_space_ && bytes.starts_with(' ')) bytes.erase(0, 1);
    return bytes;
  }

  /// Largest id + 1; a model's vocabulary may be larger by padding.
  Index vocabulary_size() const { return vocabulary_.size(); }
  /// The same without added tokens, which a model may lack where no text has them.
  Index learned_vocabulary_size() const { return learned_size_; }

  /// True where a token has this id: models may have more ids than their tokenizers.
  bool has_token(TokenId id) const { return vocabulary_.contains(id); }

  /// The bytes of one token. Throws DataError for an id that no token has.
  std::string_view token_bytes(TokenId id) const {
    check_id(id);
    return vocabulary_.bytes(id);
  }

  /// One token as its file spells it ("Ġthe" for " the"). Throws DataError for an id that no token
  /// has.
  std::string token_text(TokenId id) const {
    check_id(id);
    return vocabulary_.spelling(id);
  }

  /// The token with this spelling, if there is one. Searches all tokens.
  std::optional<TokenId> find_token(std::string_view spelling) const {
    for (TokenId id = 0; id < vocabulary_size(); ++id) {
      if (vocabulary_.contains(id) && vocabulary_.spelling(id) == spelling) return id;
    }
    return std::nullopt;
  }

  /// Tokens that begin and end a text, as tokenizer_config.json names them. Where it names neither,
  /// <|endoftext|> is both if it is an added token.
  std::optional<TokenId> bos_id() const { return bos_; }
  std::optional<TokenId> eos_id() const { return eos_; }
  /// True where the file asks for a BOS token before every text. `encode` adds none.
  bool adds_bos() const { return adds_bos_; }

  /// SHA-256 of all that determines ids, the same for either form of the files.
  const std::string& content_hash() const { return hash_; }

 private:
  /// `begins`: the text is not the rest of a longer one.
  std::vector<TokenId> encode_part(std::string_view text, bool begins,
                                   const std::string& where) const;

  using Model = std::variant<BytePairEncoding, CharacterPairEncoding>;

  static SpellingRule spelling_rule(const TokenizerDefinition& definition) {
    return {.byte_level = definition.symbols == SymbolKind::bytes,
            .mark = definition.space_mark,
            .byte_tokens = definition.byte_fallback};
  }

  static Model model_of(const TokenizerDefinition& definition, const Vocabulary& vocabulary) {
    if (definition.symbols == SymbolKind::bytes) {
      return BytePairEncoding(mergeable_tokens(definition, vocabulary), definition.merges,
                              definition.ignore_merges);
    }
    std::vector<std::string_view> tokens(static_cast<std::size_t>(vocabulary.size()));
    for (const VocabularyEntry& entry : definition.vocabulary) {
      tokens[static_cast<std::size_t>(entry.id)] = entry.spelling;
    }
    return CharacterPairEncoding(tokens, definition.merges, definition.merge_ranks,
                                 definition.ignore_merges, definition.space_mark,
                                 fallback_of(definition));
  }

  static CharacterFallback fallback_of(const TokenizerDefinition& definition) {
    CharacterFallback fallback{.fuse_unknown = definition.fuse_unknown};
    const detail::SpellingIndex index(definition.vocabulary);
    if (definition.unknown_token) {
      fallback.unknown = index.find(*definition.unknown_token);
      if (!fallback.unknown) refuse_end(*definition.unknown_token, definition.where);
    }
    if (!definition.byte_fallback) return fallback;
    std::array<TokenId, 256> bytes{};
    bytes.fill(-1);
    for (const VocabularyEntry& entry : definition.vocabulary) {
      if (const auto byte = byte_of_token(entry.spelling)) bytes[*byte] = entry.id;
    }
    if (std::find(bytes.begin(), bytes.end(), -1) == bytes.end()) fallback.bytes = bytes;
    const bool none = std::all_of(bytes.begin(), bytes.end(), [](TokenId id) { return id < 0; });
    if (!fallback.bytes && !none) refuse_lack(definition, "byte_fallback");
    return fallback;
  }

  /// Ids of a template must be tokens.
  void check_template(const TokenizerDefinition& definition) const {
    for (const std::vector<TokenId>* ids : {&template_begin_, &template_end_}) {
      for (const TokenId id : *ids) {
        if (!vocabulary_.contains(id)) refuse_end("id " + std::to_string(id), definition.where);
      }
    }
  }

  static std::vector<std::string_view> mergeable_tokens(const TokenizerDefinition& definition,
                                                        const Vocabulary& vocabulary) {
    std::vector<std::string_view> tokens(static_cast<std::size_t>(vocabulary.size()));
    for (const VocabularyEntry& entry : definition.vocabulary) {
      if (!vocabulary.is_byte_level(entry.id)) continue;
      tokens[static_cast<std::size_t>(entry.id)] = vocabulary.bytes(entry.id);
    }
    return tokens;
  }

  /// Settings that matter only where some byte has no token of its own.
  void check_bytes(const TokenizerDefinition& definition) const {
    if (covers_all_text_) return;
    if (definition.byte_fallback) refuse_lack(definition, "byte_fallback");
    if (definition.unknown_token) {
      refuse_lack(definition, "unk_token " + detail::in_quotes(*definition.unknown_token));
    }
    for (const PreTokenizer::Step& step : pre_tokenizer_.steps()) {
      const auto* split = std::get_if<ByteLevelSplit>(&step);
      const bool adds_space = split != nullptr && split->add_prefix_space;
      if (adds_space && first_uncovered(" ") == 0) refuse_lack(definition, "add_prefix_space");
    }
  }

  [[noreturn]] static void refuse_lack(const TokenizerDefinition& definition,
                                       const std::string& found) {
    throw FormatError({.id = "tokenizer/unsupported",
                       .where = definition.where,
                       .what = "unsupported setting for a vocabulary that lacks bytes",
                       .expected = "a token for every byte of UTF-8",
                       .found = found,
                       .mend = "use a tokenizer whose vocabulary covers all bytes"});
  }

  /// Tokens that are looked for in normalised text are normalised too, and mean that.
  static std::vector<AddedToken> with_meanings(std::vector<AddedToken> tokens,
                                               const Normalizer& normalizer) {
    for (AddedToken& token : tokens) {
      check_utf8(token.content, "added token");
      if (!token.normalized || normalizer.empty()) continue;
      std::string storage;
      token.meaning = std::string(normalizer.apply(token.content, storage));
    }
    return tokens;
  }

  void split_added_tokens(const std::vector<AddedToken>& tokens) {
    std::vector<AddedToken> as_given, normalized;
    for (AddedToken& token : with_meanings(tokens, normalizer_)) {
      if (!token.normalized || normalizer_.empty()) {
        as_given.push_back(std::move(token));
        continue;
      }
      token.content = token.meaning;
      normalized.push_back(std::move(token));
    }
    as_given_ = AddedTokenMatcher(std::move(as_given));
    normalized_ = AddedTokenMatcher(std::move(normalized));
  }

  void choose_ends(const TokenizerDefinition& definition);

  static std::optional<TokenId> added_token_id(std::string_view content,
                                               const TokenizerDefinition& definition) {
    for (const AddedToken& token : definition.added_tokens) {
      if (token.content == content) return token.id;
    }
    return std::nullopt;
  }

  TokenId named_end(const std::string& spelling, const TokenizerDefinition& definition) const {
    if (const std::optional<TokenId> id = added_token_id(spelling, definition)) return *id;
    if (const std::optional<TokenId> id = find_token(spelling)) return *id;
    refuse_end(spelling, definition.where);
  }

  [[noreturn]] static void refuse_end(const std::string& spelling, const std::string& where) {
    throw FormatError({.id = "tokenizer/absent-special-token",
                       .where = where,
                       .what = "a special token is named that is not in the vocabulary",
                       .found = detail::in_quotes(spelling),
                       .mend = "use files of one tokenizer"});
  }

  std::string hash_of(const TokenizerDefinition& definition) const {
    Sha256 hash;
    hash.update_field("wanamaker tokenizer 1");
    normalizer_.add_to(hash);
    hash_steps(hash);
    hash.update_number(static_cast<std::uint64_t>(vocabulary_size()));
    for (TokenId id = 0; id < vocabulary_size(); ++id) {
      hash.update_field(vocabulary_.contains(id) ? vocabulary_.spelling(id) : "");
    }
    hash.update_number(definition.merges.size());
    for (const Merge& merge : definition.merges) {
      for (const TokenId id : {merge.left, merge.right, merge.merged}) {
        hash.update_number(static_cast<std::uint64_t>(id));
      }
    }
    hash.update_number(definition.ignore_merges ? 1 : 0);
    hash_added_tokens(definition.added_tokens, hash);
    if (definition.symbols == SymbolKind::characters) hash_characters(definition, hash);
    return hash.hex();
  }

  static void hash_characters(const TokenizerDefinition& definition, Sha256& hash) {
    hash.update_field("characters").update_field(definition.space_mark);
    hash.update_field(definition.unknown_token.value_or(""));
    hash.update_number((definition.byte_fallback ? 1u : 0u) + (definition.fuse_unknown ? 2u : 0u));
    for (const std::int32_t rank : definition.merge_ranks) {
      hash.update_number(static_cast<std::uint64_t>(rank));
    }
  }

  void hash_steps(Sha256& hash) const {
    for (const PreTokenizer::Step& step : pre_tokenizer_.steps()) {
      hash.update_number(step.index());
      if (const auto* split = std::get_if<PatternSplit>(&step)) {
        hash.update_field(split->pattern.pattern());
        if (split->behavior != SplitBehavior::isolated) {
          hash.update_number(2 * static_cast<std::uint64_t>(split->behavior) +
                             (split->invert ? 1u : 0u));
        }
      } else if (const auto* metaspace = std::get_if<MetaspaceSplit>(&step)) {
        hash.update_field(metaspace->mark);
        hash.update_number(2 * static_cast<std::uint64_t>(metaspace->prepend) +
                           (metaspace->splits ? 1u : 0u));
      } else if (const auto* digits = std::get_if<DigitSplit>(&step)) {
        hash.update_number(digits->individual ? 1 : 0);
      } else if (const auto* bytes = std::get_if<ByteLevelSplit>(&step)) {
        hash.update_number((bytes->add_prefix_space ? 1u : 0u) + (bytes->use_regex ? 2u : 0u));
      }
    }
  }

  void hash_added_tokens(std::vector<AddedToken> tokens, Sha256& hash) const {
    std::sort(tokens.begin(), tokens.end(),
              [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
    for (const AddedToken& token : tokens) {
      const bool normalized = token.normalized && !normalizer_.empty();
      hash.update_number(static_cast<std::uint64_t>(token.id)).update_field(token.content);
      hash.update_number((normalized ? 1u : 0u) + (token.single_word ? 2u : 0u) +
                         (token.lstrip ? 4u : 0u) + (token.rstrip ? 8u : 0u));
    }
  }

  void append_words(std::string_view text, bool at_start, const std::string& where,
                    std::vector<TokenId>& ids) const {
    std::visit(
        [&](const auto& model) {
          pre_tokenizer_.for_each_word(
              text,
              [&](std::string_view word) {
                if (!covers_all_text_) check_covered(word, where);
                model.append(word, ids);
              },
              at_start);
        },
        model_);
  }

  std::size_t first_uncovered(std::string_view text) const {
    return std::visit([text](const auto& model) { return model.first_uncovered(text); }, model_);
  }

  void check_covered(std::string_view text, const std::string& where) const {
    const std::size_t fault = first_uncovered(text);
    if (fault == text.size()) return;
    throw DataError(
        {.id = "text/no-token-for-byte",
         .where = where,
         .what = "the vocabulary has no token for a byte of the text",
         .found = "byte value " + std::to_string(unsigned{static_cast<unsigned char>(text[fault])}),
         .mend = "use the tokenizer that belongs to the model"});
  }

  void check_id(TokenId id) const {
    if (vocabulary_.contains(id)) return;
    throw DataError({.id = "text/unknown-token-id",
                     .where = "token id",
                     .what = "no token has this id",
                     .expected = "an id below " + std::to_string(vocabulary_size()),
                     .found = std::to_string(id),
                     .mend = "use the tokenizer that made the ids"});
  }

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  Vocabulary vocabulary_;
  Model model_;
  bool covers_all_text_;
  bool may_cut_ = false;
  bool adds_bos_;
  bool strips_first_space_;
  std::vector<TokenId> template_begin_;
  std::vector<TokenId> template_end_;
  AddedTokenMatcher as_given_;
  AddedTokenMatcher normalized_;
  std::optional<TokenId> bos_;
  std::optional<TokenId> eos_;
  Index learned_size_ = 0;
  std::string hash_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI

#ifndef WANAMAKER_COMPILED
#include "wanamaker/text/tokenizer_impl.hpp"
#endif
