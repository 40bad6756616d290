// Token ids and the bytes that they stand for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/text/added_tokens.hpp"
#include "wanamaker/text/byte_level.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// One entry of a vocabulary as files have it.
struct VocabularyEntry {
  std::string spelling;  ///< valid UTF-8; bytes in GPT-2's characters
  TokenId id = 0;
};

/// The byte that a token such as "<0x0A>" stands for.
inline std::optional<unsigned char> byte_of_token(std::string_view spelling) {
  const bool has_form = spelling.size() == 6 && spelling.starts_with("<0x") && spelling[5] == '>';
  constexpr std::string_view digits = "0123456789ABCDEF";
  if (!has_form) return std::nullopt;
  const std::size_t high = digits.find(spelling[3]), low = digits.find(spelling[4]);
  if (high == digits.npos || low == digits.npos) return std::nullopt;
  return static_cast<unsigned char>(16 * high + low);
}

/// What the spellings of a vocabulary stand for.
struct SpellingRule {
  bool byte_level = true;    ///< GPT-2's characters for bytes; else characters for themselves
  std::string mark{};        ///< stands for a space, where spellings are literal
  bool byte_tokens = false;  ///< "<0x0A>" stands for a byte, where spellings are literal
};

/// Every id's bytes, in one block of memory.
class Vocabulary {
 public:
  /// Ids that no token has, at most: bounds memory against files with a single huge id.
  static constexpr Index most_unused_ids = 65'536;

  Vocabulary() = default;

  /// Entries' spellings stand for bytes; one with a character that stands for none is taken
  /// literally, as are added tokens. Throws FormatError for negative or far too large ids, and for
  /// an id with two texts. `where` names the file.
  Vocabulary(const std::vector<VocabularyEntry>& entries, const std::vector<AddedToken>& added,
             const std::string& where, SpellingRule rule = {})
      : rule_(std::move(rule)) {
    std::vector<std::optional<Token>> tokens(
        static_cast<std::size_t>(checked_size(entries, added, where)));
    for (const VocabularyEntry& entry : entries) {
      std::optional<std::string> bytes;
      if (rule_.byte_level) bytes = bytes_of_spelling(entry.spelling);
      const Form form = bytes ? Form::byte_level : Form::literal;
      place(tokens, entry.id, {bytes ? *bytes : entry.spelling, form}, entry.spelling, where);
    }
    for (const AddedToken& token : added) add(tokens, token, where);
    store(tokens);
  }

  /// Largest id + 1.
  Index size() const { return static_cast<Index>(forms_.size()); }

  /// False for ids beyond the end and for those that no token has.
  bool contains(TokenId id) const { return id >= 0 && id < size() && form(id) != Form::unused; }

  /// The bytes of a token; the id must be contained.
  std::string_view bytes(TokenId id) const { return pool_.at(id); }

  /// The token as its file spells it, for example "Ġthe" or "▁the".
  std::string spelling(TokenId id) const {
    if (is_byte_level(id)) return byte_level_spelling(bytes(id));
    return std::string(rule_.byte_level ? bytes(id) : spellings_.at(id));
  }

  /// True where the spelling is in GPT-2's characters, false where it is literal.
  bool is_byte_level(TokenId id) const { return form(id) == Form::byte_level; }

 private:
  enum class Form : std::uint8_t { unused, byte_level, literal };
  struct Token {
    std::string bytes;
    Form form;
  };

  Form form(TokenId id) const { return forms_[static_cast<std::size_t>(id)]; }

  static Index checked_size(const std::vector<VocabularyEntry>& entries,
                            const std::vector<AddedToken>& added, const std::string& where) {
    TokenId least = 0, largest = -1;
    const auto look_at = [&](TokenId id) {
      least = std::min(least, id);
      largest = std::max(largest, id);
    };
    for (const VocabularyEntry& entry : entries) look_at(entry.id);
    for (const AddedToken& token : added) look_at(token.id);
    const Index limit = static_cast<Index>(entries.size() + added.size()) + most_unused_ids;
    if (least < 0) refuse_id(least, limit, where);
    if (largest >= limit) refuse_id(largest, limit, where);
    return Index{largest} + 1;
  }

  [[noreturn]] static void refuse_id(TokenId id, Index limit, const std::string& where) {
    throw FormatError({.id = "tokenizer/id-out-of-range",
                       .where = where,
                       .what = "token id out of range",
                       .expected = "0 … " + std::to_string(limit - 1),
                       .found = std::to_string(id),
                       .mend = "download the tokenizer again"});
  }

  static void place(std::vector<std::optional<Token>>& tokens, TokenId id, Token token,
                    const std::string& spelling, const std::string& where) {
    std::optional<Token>& slot = tokens[static_cast<std::size_t>(id)];
    if (slot) refuse_duplicate(id, *slot, spelling, where);
    slot = std::move(token);
  }

  /// An added token may repeat an entry of the vocabulary, which stays as it is unless the added
  /// token means another text.
  static void add(std::vector<std::optional<Token>>& tokens, const AddedToken& token,
                  const std::string& where) {
    std::optional<Token>& slot = tokens[static_cast<std::size_t>(token.id)];
    const bool has_meaning = !token.meaning.empty() && token.meaning != token.content;
    if (slot && spelling_of(*slot) == token.content) {
      if (has_meaning) slot = {token.meaning, Form::literal};
      return;
    }
    place(tokens, token.id, {has_meaning ? token.meaning : token.content, Form::literal},
          token.content, where);
  }

  static std::string spelling_of(const Token& token) {
    return token.form == Form::byte_level ? byte_level_spelling(token.bytes) : token.bytes;
  }

  [[noreturn]] static void refuse_duplicate(TokenId id, const Token& present,
                                            const std::string& spelling, const std::string& where) {
    throw FormatError(
        {.id = "tokenizer/duplicate-id",
         .where = where,
         .what = "two tokens with id " + std::to_string(id),
         .expected = "one token per id",
         .found = detail::in_quotes(spelling_of(present)) + " and " + detail::in_quotes(spelling),
         .mend = "download the tokenizer again"});
  }

  void store(const std::vector<std::optional<Token>>& tokens) {
    forms_.reserve(tokens.size());
    for (const std::optional<Token>& token : tokens) {
      forms_.push_back(token ? token->form : Form::unused);
      const std::string_view own = token ? std::string_view(token->bytes) : std::string_view();
      if (rule_.byte_level) {
        pool_.add(own);
      } else {
        spellings_.add(own);
        pool_.add(bytes_of_literal(own));
      }
    }
  }

  std::string bytes_of_literal(std::string_view spelling) const {
    if (rule_.byte_tokens) {
      if (const std::optional<unsigned char> byte = byte_of_token(spelling)) {
        return std::string(1, static_cast<char>(*byte));
      }
    }
    std::string bytes;
    std::size_t done = 0;
    if (!rule_.mark.empty()) {
      for (std::size_t at; (at = spelling.find(rule_.mark, done)) != spelling.npos;) {
        bytes.append(spelling.substr(done, at - done)).append(" ");
        done = at + rule_.mark.size();
      }
    }
    return bytes.append(spelling.substr(done));
  }

  /// Texts by id, one after the other.
  class Pool {
   public:
    void add(std::string_view text) {
      text_ += text;
      offsets_.push_back(text_.size());
    }
    std::string_view at(TokenId id) const {
      const auto i = static_cast<std::size_t>(id);
      return std::string_view(text_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
    }

   private:
    std::string text_;
    std::vector<std::size_t> offsets_{0};
  };

  SpellingRule rule_;
  Pool pool_;       // bytes
  Pool spellings_;  // where spellings are literal
  std::vector<Form> forms_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
