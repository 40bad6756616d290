// What tokenizer.hpp declares and wanamaker::compiled may hold: all that needs files to be read,
// and the larger parts of the rest.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "wanamaker/core/compiled.hpp"
#include "wanamaker/text/tokenizer.hpp"
#include "wanamaker/text/tokenizer_files.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

WANAMAKER_INLINE Tokenizer::Tokenizer(TokenizerDefinition definition)
    : normalizer_(std::move(definition.normalizer)),
      pre_tokenizer_(std::move(definition.pre_tokenizer)),
      vocabulary_(definition.vocabulary, with_meanings(definition.added_tokens, normalizer_),
                  definition.where, spelling_rule(definition)),
      model_(model_of(definition, vocabulary_)),
      covers_all_text_(
          std::visit([](const auto& model) { return model.covers_all_text(); }, model_)),
      adds_bos_(definition.adds_bos || !definition.template_begin.empty()),
      strips_first_space_(definition.strips_first_space),
      template_begin_(definition.template_begin),
      template_end_(definition.template_end) {
  for (const VocabularyEntry& entry : definition.vocabulary) {
    learned_size_ = std::max(learned_size_, Index{entry.id} + 1);
  }
  if (definition.symbols == SymbolKind::bytes) check_bytes(definition);
  check_template(definition);
  split_added_tokens(definition.added_tokens);
  const auto* characters = std::get_if<CharacterPairEncoding>(&model_);
  const bool cuts_at_marks = characters != nullptr && characters->cuts_at_marks();
  may_cut_ = may_cut_before_spaces(normalizer_, pre_tokenizer_,
                                   cuts_at_marks ? definition.space_mark : std::string(),
                                   definition.added_tokens);
  choose_ends(definition);
  hash_ = hash_of(definition);
}

WANAMAKER_INLINE Tokenizer Tokenizer::from_folder(const std::filesystem::path& folder) {
  return Tokenizer(read_tokenizer_folder(folder));
}

WANAMAKER_INLINE Tokenizer Tokenizer::from_tokenizer_json(const std::filesystem::path& path) {
  return Tokenizer(read_tokenizer_json_file(path));
}

WANAMAKER_INLINE Tokenizer Tokenizer::from_gguf(const std::filesystem::path& path) {
  return Tokenizer(read_tokenizer_gguf_file(path));
}

WANAMAKER_INLINE Tokenizer Tokenizer::of_model(const std::filesystem::path& model) {
  return is_gguf_path(model) ? from_gguf(model) : from_folder(model);
}

WANAMAKER_INLINE Tokenizer Tokenizer::from_vocab_and_merges(const std::filesystem::path& vocab,
                                                            const std::filesystem::path& merges) {
  return Tokenizer(read_vocab_and_merges_files(vocab, merges));
}

WANAMAKER_INLINE void Tokenizer::choose_ends(const TokenizerDefinition& definition) {
  if (definition.bos) bos_ = named_end(*definition.bos, definition);
  if (definition.eos) eos_ = named_end(*definition.eos, definition);
  const bool names_none = !definition.bos && !definition.eos;
  if (names_none && template_begin_.empty()) {
    bos_ = eos_ = added_token_id(detail::default_special_token, definition);
  }
  if (!bos_ && template_begin_.size() == 1) bos_ = template_begin_[0];
  if (!eos_ && template_end_.size() == 1) eos_ = template_end_[0];
}

WANAMAKER_INLINE std::vector<TokenId> Tokenizer::encode_part(std::string_view text, bool begins,
                                                             const std::string& where) const {
  check_utf8(text, where);
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3 + 8);
  const auto add_id = [&ids](TokenId id) { ids.push_back(id); };
  std::string storage;
  as_given_.split(
      text,
      [&](std::string_view piece) {
        const bool is_first = piece.data() == text.data();
        const std::string_view normal = normalizer_.apply(piece, storage, is_first && !begins);
        normalized_.split(
            normal,
            [&](std::string_view part) {
              const bool at_start = begins && is_first && part.data() == normal.data();
              append_words(part, at_start, where, ids);
            },
            add_id);
      },
      add_id);
  return ids;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
