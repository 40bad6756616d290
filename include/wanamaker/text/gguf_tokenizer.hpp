// The tokenizer in the metadata of a GGUF file (`tokenizer.ggml.*`): byte-level BPE ("gpt2") and
// SentencePiece's BPE ("llama").
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/io/gguf.hpp"
#include "wanamaker/io/gguf_config.hpp"
#include "wanamaker/text/tokenizer_definition.hpp"
#include "wanamaker/text/utf8.hpp"
#include "wanamaker/text/vocabulary.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// Kinds of tokens in `tokenizer.ggml.token_type`.
enum class GgufTokenType : std::int64_t {
  normal = 1,
  unknown,
  control,
  user_defined,
  unused,
  byte
};

/// Typed access to the keys below "tokenizer.ggml."; faults name the file and the key.
class GgufTokenizerKeys {
 public:
  explicit GgufTokenizerKeys(const GgufFile& file) : file_(file) {}

  const GgufFile& file() const { return file_; }
  std::string where() const { return file_.path().string(); }
  const GgufValue* find(std::string_view name) const { return file_.find(full_name(name)); }

  std::optional<std::string> text(std::string_view name) const {
    const GgufValue* value = find(name);
    if (value == nullptr) return std::nullopt;
    const auto text = value->text();
    if (!text || first_invalid_utf8(*text)) refuse(name, "a text in UTF-8");
    return std::string(*text);
  }
  bool flag(std::string_view name, bool fallback) const {
    const GgufValue* value = find(name);
    if (value == nullptr) return fallback;
    if (const auto flag = value->boolean()) return *flag;
    refuse(name, "a boolean");
  }
  std::vector<std::string_view> texts(std::string_view name) const {
    const GgufValue* value = find(name);
    auto texts = value == nullptr ? std::nullopt : value->texts();
    if (!texts) refuse(name, "an array of texts");
    for (std::size_t i = 0; i < texts->size(); ++i) {
      check_utf8((*texts)[i],
                 where() + ", key " + full_name(name) + ", element " + std::to_string(i));
    }
    return *std::move(texts);
  }
  /// One number for each token.
  std::vector<double> numbers(std::string_view name, std::size_t count) const {
    const GgufValue* value = find(name);
    auto numbers = value == nullptr ? std::nullopt : value->numbers();
    if (!numbers || numbers->size() != count) {
      refuse(name, std::to_string(count) + " numbers, one for each token");
    }
    return *std::move(numbers);
  }

  /// A token's id below `count`, or nothing where the key is not there.
  std::optional<TokenId> id(std::string_view name, std::size_t count) const {
    const GgufValue* value = find(name);
    if (value == nullptr) return std::nullopt;
    const auto id = value->integer();
    // Converters write −1 (as an unsigned number) for "none".
    if (id == -1 || id == 0xffffffff) return std::nullopt;
    if (!id || *id < 0 || static_cast<std::uint64_t>(*id) >= count) {
      refuse(name, "an id below " + std::to_string(count));
    }
    return static_cast<TokenId>(*id);
  }

  [[noreturn]] void refuse(std::string_view name, std::string expected) const {
    const GgufValue* value = find(name);
    throw FormatError({.id = "tokenizer/wrong-type",
                       .where = where() + ", key " + full_name(name),
                       .what = "wrong value",
                       .expected = std::move(expected),
                       .found = value == nullptr ? "nothing" : setting_text(gguf_setting(*value)),
                       .mend = "convert the model again"});
  }
  [[noreturn]] void refuse_unsupported(std::string_view name, std::string expected,
                                       std::string found) const {
    throw FormatError({.id = "tokenizer/unsupported",
                       .where = where() + ", key " + full_name(name),
                       .what = "unsupported tokenizer",
                       .expected = std::move(expected),
                       .found = std::move(found),
                       .mend = "give the model as a folder with tokenizer.json"});
  }

 private:
  static std::string full_name(std::string_view name) {
    return "tokenizer.ggml." + std::string(name);
  }
  const GgufFile& file_;
};

/// Words that Llama 3 and Qwen2 split a text into; they differ in how many digits stay together.
inline Regex gguf_word_pattern(std::string_view numbers) {
  return Regex(contraction_word_pattern(numbers), "pre-tokeniser of a GGUF file");
}

/// The pre-tokeniser of this name, as the models' own tokenizers have it. Older files of GPT-2 and
/// GPT-NeoX have no name.
inline void set_gguf_pre_tokenizer(const GgufTokenizerKeys& keys, TokenizerDefinition& definition) {
  const std::string architecture = gguf_architecture(keys.file());
  const bool is_old = architecture == "gpt2" || architecture == "gptneox";
  const std::string name = keys.text("pre").value_or(is_old ? architecture : "none");
  const auto is = [&name](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const ByteLevelSplit whole{.add_prefix_space = false, .use_regex = false};
  if (is({"gpt-2", "gpt2"})) {
    definition.pre_tokenizer = PreTokenizer({ByteLevelSplit{}});
  } else if (is({"olmo", "gptneox"})) {  // GPT-NeoX's tokenizer
    definition.normalizer = Normalizer({NfcStep{}});
    definition.pre_tokenizer = PreTokenizer({ByteLevelSplit{}});
  } else if (is({"smollm", "starcoder"})) {
    definition.pre_tokenizer = PreTokenizer({DigitSplit{.individual = true}, ByteLevelSplit{}});
  } else if (is({"llama-bpe", "llama3", "llama-v3"})) {
    definition.pre_tokenizer =
        PreTokenizer({PatternSplit{gguf_word_pattern(R"(\p{N}{1,3})")}, whole});
    definition.ignore_merges = true;
  } else if (is({"qwen2", "deepseek-r1-qwen"})) {
    definition.normalizer = Normalizer({NfcStep{}});
    definition.pre_tokenizer = PreTokenizer({PatternSplit{gguf_word_pattern(R"(\p{N})")}, whole});
  } else {
    keys.refuse_unsupported("pre", "gpt-2, olmo, smollm, starcoder, llama-bpe or qwen2",
                            in_quotes(name));
  }
}

/// Adds all tokens to the vocabulary; control and user-defined ones are added tokens too.
inline void read_gguf_tokens(const GgufTokenizerKeys& keys,
                             const std::vector<std::string_view>& tokens,
                             const std::vector<double>& types, TokenizerDefinition& definition) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto type = static_cast<GgufTokenType>(types.empty() ? 1 : std::llrint(types[i]));
    const auto id = static_cast<TokenId>(i);
    const bool is_control = type == GgufTokenType::control || type == GgufTokenType::unknown;
    if (is_control || type == GgufTokenType::user_defined) {
      definition.added_tokens.push_back(
          {.id = id, .content = std::string(tokens[i]), .special = is_control});
    } else if (type >= GgufTokenType::normal && type <= GgufTokenType::byte) {
      definition.vocabulary.push_back({std::string(tokens[i]), id});
    } else {
      keys.refuse("token_type", "numbers from 1 to 6");
    }
  }
}

inline void read_gguf_merges(const GgufTokenizerKeys& keys, TokenizerDefinition& definition) {
  const SpellingIndex index(definition.vocabulary);
  for (const std::string_view merge : keys.texts("merges")) {
    const std::size_t place = definition.merges.size();
    const auto [left, right] = split_merge(merge, definition.where, place);
    definition.merges.push_back(index.merge(left, right, definition.where, place));
  }
}

/// SentencePiece keeps scores of pieces in place of merges: two neighbours merge where the result
/// is a piece, the highest score first, of equal ones the leftmost. So every cut of a piece into
/// two pieces is a merge, ranked by the whole one's score.
inline void add_scored_merges(const std::vector<double>& scores, TokenizerDefinition& definition) {
  const SpellingIndex index(definition.vocabulary);
  std::vector<double> descending = scores;
  std::sort(descending.begin(), descending.end(), std::greater<>());
  descending.erase(std::unique(descending.begin(), descending.end()), descending.end());
  for (const VocabularyEntry& entry : definition.vocabulary) {
    const std::string_view piece = entry.spelling;
    if (byte_of_token(piece)) continue;
    const double score = scores[static_cast<std::size_t>(entry.id)];
    const auto rank =
        std::lower_bound(descending.begin(), descending.end(), score, std::greater<>()) -
        descending.begin();
    for (std::size_t at = 0; at < piece.size();) {
      at += decode_utf8(piece, at).length;
      if (at >= piece.size()) break;
      const auto left = index.find(piece.substr(0, at)), right = index.find(piece.substr(at));
      if (!left || !right) continue;
      definition.merges.push_back({*left, *right, entry.id});
      definition.merge_ranks.push_back(static_cast<std::int32_t>(rank));
    }
  }
}

/// Pieces are short (SentencePiece: at most 16 characters); the bound keeps the work linear.
inline void check_piece_lengths(const GgufTokenizerKeys& keys,
                                const std::vector<VocabularyEntry>& vocabulary) {
  constexpr std::size_t longest = 256;
  for (const VocabularyEntry& entry : vocabulary) {
    if (entry.spelling.size() <= longest) continue;
    keys.refuse("tokens", "pieces of at most " + std::to_string(longest) + " bytes");
  }
}

inline void read_gguf_sentencepiece(const GgufTokenizerKeys& keys, std::size_t count,
                                    TokenizerDefinition& definition) {
  if (keys.find("precompiled_charsmap") != nullptr) {
    keys.refuse_unsupported("precompiled_charsmap", "none", "a table of characters");
  }
  if (keys.flag("remove_extra_whitespaces", false)) {
    keys.refuse_unsupported("remove_extra_whitespaces", "false", "true");
  }
  const std::vector<double> scores = keys.numbers("scores", count);
  const auto is_finite = [](double score) { return std::isfinite(score); };
  if (!std::all_of(scores.begin(), scores.end(), is_finite)) {
    keys.refuse("scores", "finite numbers");
  }
  check_piece_lengths(keys, definition.vocabulary);
  definition.symbols = SymbolKind::characters;
  definition.space_mark = "\u2581";
  definition.byte_fallback = true;
  std::vector<Normalizer::Step> steps{ReplaceTextStep{" ", definition.space_mark}};
  definition.strips_first_space = keys.flag("add_space_prefix", true);
  if (definition.strips_first_space) steps.push_back(PrependStep{definition.space_mark});
  definition.normalizer = Normalizer(std::move(steps));
  add_scored_merges(scores, definition);
}

/// bos, eos, unknown token, and what is put around texts.
inline void read_gguf_ends(const GgufTokenizerKeys& keys, bool adds_bos,
                           const std::vector<std::string_view>& tokens,
                           TokenizerDefinition& definition) {
  const auto spelling = [&](std::string_view name) -> std::optional<std::string> {
    const auto id = keys.id(name, tokens.size());
    if (!id) return std::nullopt;
    return std::string(tokens[static_cast<std::size_t>(*id)]);
  };
  definition.bos = spelling("bos_token_id");
  definition.eos = spelling("eos_token_id");
  const auto bos = keys.id("bos_token_id", tokens.size());
  const auto eos = keys.id("eos_token_id", tokens.size());
  if (keys.flag("add_bos_token", adds_bos) && bos) definition.template_begin = {*bos};
  if (keys.flag("add_eos_token", false) && eos) definition.template_end = {*eos};
  definition.adds_bos = !definition.template_begin.empty();
}

}  // namespace detail

/// Reads the tokenizer of a GGUF file; the result does not refer to the file. Throws FormatError
/// for what is missing, contradictory, or not implemented (by name).
inline TokenizerDefinition read_gguf_tokenizer(const GgufFile& file) {
  const detail::GgufTokenizerKeys keys(file);
  TokenizerDefinition definition{.where = file.path().string()};
  const std::string model = keys.text("model").value_or("none");
  if (model != "gpt2" && model != "llama") {
    keys.refuse_unsupported("model", "gpt2 or llama", detail::in_quotes(model));
  }
  const std::vector<std::string_view> tokens = keys.texts("tokens");
  const bool has_types = keys.find("token_type") != nullptr;
  const std::vector<double> types =
      has_types ? keys.numbers("token_type", tokens.size()) : std::vector<double>{};
  detail::read_gguf_tokens(keys, tokens, types, definition);
  if (model == "gpt2") {
    detail::set_gguf_pre_tokenizer(keys, definition);
    detail::read_gguf_merges(keys, definition);
  } else {
    detail::read_gguf_sentencepiece(keys, tokens.size(), definition);
  }
  const bool llama_3 = definition.ignore_merges;
  detail::read_gguf_ends(keys, model == "llama" || llama_3, tokens, definition);
  return definition;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
