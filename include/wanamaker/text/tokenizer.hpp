// Tokenizer: text to token ids and back, as the model's own files define it.
#pragma once

#include <algorithm>
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
#include "wanamaker/io/mapped_file.hpp"
#include "wanamaker/text/added_tokens.hpp"
#include "wanamaker/text/byte_pair_encoding.hpp"
#include "wanamaker/text/gpt2_files.hpp"
#include "wanamaker/text/normalizer.hpp"
#include "wanamaker/text/pre_tokenizer.hpp"
#include "wanamaker/text/tokenizer_definition.hpp"
#include "wanamaker/text/tokenizer_json.hpp"
#include "wanamaker/text/utf8.hpp"
#include "wanamaker/text/vocabulary.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Byte-level BPE with everything around it. Immutable: any number of threads may use one object.
///
/// encode: added tokens are cut out; what lies between them is normalised, split into words, and
/// each word's bytes are merged. decode: the tokens' bytes, one after the other, so that
/// decode(encode(x)) == x for every valid UTF-8 text x that normalisation leaves alone (and to
/// which no space is put in front).
class Tokenizer {
 public:
  /// Throws FormatError for contradictions within the definition.
  explicit Tokenizer(TokenizerDefinition definition)
      : normalization_(definition.normalization),
        pre_tokenizer_(std::move(definition.pre_tokenizer)),
        vocabulary_(definition.vocabulary, definition.added_tokens, definition.where),
        model_(mergeable_tokens(definition, vocabulary_), definition.merges,
               definition.ignore_merges),
        covers_all_text_(model_.covers_all_text()),
        adds_bos_(definition.adds_bos) {
    check_bytes(definition);
    split_added_tokens(definition.added_tokens);
    choose_ends(definition);
    hash_ = hash_of(definition);
  }

  /// From a model's folder: tokenizer.json, else vocab.json and merges.txt; tokenizer_config.json
  /// where it is there. Throws FileError, FormatError.
  static Tokenizer from_folder(const std::filesystem::path& folder) {
    const TokenizerConfig config = config_in(folder);
    const std::filesystem::path json = folder / "tokenizer.json";
    if (std::filesystem::exists(json)) {
      TokenizerDefinition definition = definition_of(json);
      check_prefix_space(definition, config);
      return with_config(std::move(definition), config);
    }
    if (!std::filesystem::exists(folder / "vocab.json")) refuse_folder(folder);
    check_tokenizer_class(config, folder);
    return from_files(folder / "vocab.json", folder / "merges.txt", config);
  }

  /// From one tokenizer.json. Throws FileError, FormatError.
  static Tokenizer from_tokenizer_json(const std::filesystem::path& path) {
    return Tokenizer(definition_of(path));
  }

  /// From GPT-2's two files. Throws FileError, FormatError.
  static Tokenizer from_vocab_and_merges(const std::filesystem::path& vocab,
                                         const std::filesystem::path& merges) {
    return from_files(vocab, merges, {});
  }

  /// Token ids of a text; no BOS or EOS is added. Throws DataError for invalid UTF-8 (with its byte
  /// offset) and for bytes that the vocabulary lacks; `where` names the text in messages.
  std::vector<TokenId> encode(std::string_view text, const std::string& where = "text") const {
    check_utf8(text, where);
    std::vector<TokenId> ids;
    ids.reserve(text.size() / 3 + 8);
    const auto add_id = [&ids](TokenId id) { ids.push_back(id); };
    std::string storage;
    as_given_.split(
        text,
        [&](std::string_view piece) {
          const std::string_view normal = normalize(normalization_, piece, storage);
          normalized_.split(
              normal, [&](std::string_view part) { append_words(part, where, ids); }, add_id);
        },
        add_id);
    return ids;
  }

  /// The bytes of the tokens. Cutting a token sequence may cut a character, so the result need not
  /// be valid UTF-8. Throws DataError for an id that no token has.
  std::string decode(std::span<const TokenId> ids) const {
    std::string bytes;
    for (const TokenId id : ids) bytes += token_bytes(id);
    return bytes;
  }

  /// Largest id + 1; a model's vocabulary may be larger by padding.
  Index vocabulary_size() const { return vocabulary_.size(); }

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
  /// True where tokenizer_config.json asks for a BOS token before every text. `encode` adds none.
  bool adds_bos() const { return adds_bos_; }

  /// SHA-256 of all that determines ids, the same for either form of the files.
  const std::string& content_hash() const { return hash_; }

 private:
  static TokenizerDefinition definition_of(const std::filesystem::path& path) {
    return read_tokenizer_json(MappedFile(path).text(), path.string());
  }

  static TokenizerConfig config_in(const std::filesystem::path& folder) {
    const std::filesystem::path path = folder / "tokenizer_config.json";
    if (!std::filesystem::exists(path)) return {};
    return read_tokenizer_config(MappedFile(path).text(), path.string());
  }

  static Tokenizer from_files(const std::filesystem::path& vocab,
                              const std::filesystem::path& merges, const TokenizerConfig& config) {
    return with_config(read_vocab_and_merges(MappedFile(vocab).text(), vocab.string(),
                                             MappedFile(merges).text(), merges.string(), config),
                       config);
  }

  static Tokenizer with_config(TokenizerDefinition definition, const TokenizerConfig& config) {
    definition.bos = config.bos;
    definition.eos = config.eos;
    definition.adds_bos = config.add_bos_token;
    return Tokenizer(std::move(definition));
  }

  [[noreturn]] static void refuse_folder(const std::filesystem::path& folder) {
    throw FileError({.id = "tokenizer/missing",
                     .where = folder.string(),
                     .what = "no tokenizer here",
                     .expected = "tokenizer.json, or vocab.json and merges.txt",
                     .mend = "give a folder that has them"});
  }

  /// Other tokenizers use files of the same names with another pattern.
  static void check_tokenizer_class(const TokenizerConfig& config,
                                    const std::filesystem::path& folder) {
    const std::string& name = config.tokenizer_class;
    for (const char* known :
         {"", "GPT2Tokenizer", "GPT2TokenizerFast", "PreTrainedTokenizerFast"}) {
      if (name == known) return;
    }
    throw FormatError({.id = "tokenizer/unsupported",
                       .where = (folder / "tokenizer_config.json").string(),
                       .what = "unsupported tokenizer_class for vocab.json and merges.txt",
                       .expected = "GPT2Tokenizer",
                       .found = detail::in_quotes(name),
                       .mend = "add the model's tokenizer.json to the folder"});
  }

  /// The two files may contradict each other; which one counts depends on who reads them.
  static void check_prefix_space(const TokenizerDefinition& definition,
                                 const TokenizerConfig& config) {
    const auto* last = std::get_if<ByteLevelSplit>(&definition.pre_tokenizer.steps().back());
    if (last == nullptr || !config.add_prefix_space) return;
    if (*config.add_prefix_space == last->add_prefix_space) return;
    throw FormatError({.id = "tokenizer/contradiction",
                       .where = definition.where,
                       .what = "add_prefix_space differs from tokenizer_config.json",
                       .expected = *config.add_prefix_space ? "true" : "false",
                       .found = last->add_prefix_space ? "true" : "false",
                       .mend = "make the two files agree"});
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
    if (definition.unknown_token) {
      refuse_lack(definition, "unk_token " + detail::in_quotes(*definition.unknown_token));
    }
    for (const PreTokenizer::Step& step : pre_tokenizer_.steps()) {
      const auto* split = std::get_if<ByteLevelSplit>(&step);
      const bool adds_space = split != nullptr && split->add_prefix_space;
      if (adds_space && model_.first_uncovered(" ") == 0)
        refuse_lack(definition, "add_prefix_space");
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

  /// Tokens that are looked for in normalised text are normalised too.
  void split_added_tokens(const std::vector<AddedToken>& tokens) {
    std::vector<AddedToken> as_given, normalized;
    for (AddedToken token : tokens) {
      check_utf8(token.content, "added token");
      if (!token.normalized || normalization_ == Normalization::none) {
        as_given.push_back(std::move(token));
        continue;
      }
      token.content = nfc(token.content);
      normalized.push_back(std::move(token));
    }
    as_given_ = AddedTokenMatcher(std::move(as_given));
    normalized_ = AddedTokenMatcher(std::move(normalized));
  }

  void choose_ends(const TokenizerDefinition& definition) {
    if (definition.bos) bos_ = named_end(*definition.bos, definition);
    if (definition.eos) eos_ = named_end(*definition.eos, definition);
    if (!definition.bos && !definition.eos) {
      bos_ = eos_ = added_token_id(detail::default_special_token, definition);
    }
  }

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
                       .what = "tokenizer_config.json names a token that is not here",
                       .found = detail::in_quotes(spelling),
                       .mend = "use files of one tokenizer"});
  }

  std::string hash_of(const TokenizerDefinition& definition) const {
    Sha256 hash;
    hash.update_field("wanamaker tokenizer 1");
    hash.update_number(static_cast<std::uint64_t>(normalization_));
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
    return hash.hex();
  }

  void hash_steps(Sha256& hash) const {
    for (const PreTokenizer::Step& step : pre_tokenizer_.steps()) {
      hash.update_number(step.index());
      if (const auto* split = std::get_if<IsolatingSplit>(&step)) {
        hash.update_field(split->pattern.pattern());
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
      const bool normalized = token.normalized && normalization_ != Normalization::none;
      hash.update_number(static_cast<std::uint64_t>(token.id)).update_field(token.content);
      hash.update_number((normalized ? 1u : 0u) + (token.single_word ? 2u : 0u) +
                         (token.lstrip ? 4u : 0u) + (token.rstrip ? 8u : 0u));
    }
  }

  void append_words(std::string_view text, const std::string& where,
                    std::vector<TokenId>& ids) const {
    if (!covers_all_text_) check_covered(text, where);
    pre_tokenizer_.for_each_word(text, [&](std::string_view word) { model_.append(word, ids); });
  }

  void check_covered(std::string_view text, const std::string& where) const {
    const std::size_t fault = model_.first_uncovered(text);
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

  Normalization normalization_;
  PreTokenizer pre_tokenizer_;
  Vocabulary vocabulary_;
  BytePairEncoding model_;
  bool covers_all_text_;
  bool adds_bos_;
  AddedTokenMatcher as_given_;
  AddedTokenMatcher normalized_;
  std::optional<TokenId> bos_;
  std::optional<TokenId> eos_;
  std::string hash_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
