// Where a long text may be cut so that its parts' ids are those of the whole: between a letter and
// a space, with tokenizers for which that can be proved.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "wanamaker/text/added_tokens.hpp"
#include "wanamaker/text/byte_level_words.hpp"
#include "wanamaker/text/normalizer_steps.hpp"
#include "wanamaker/text/pre_tokenizer.hpp"
#include "wanamaker/text/unicode.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The last space at or after `least` (≥ 1) that follows a letter in a valid UTF-8 text.
inline std::optional<std::size_t> last_space_after_letter(std::string_view text,
                                                          std::size_t least) {
  for (std::size_t at = text.size(); at-- > std::max<std::size_t>(least, 1);) {
    if (text[at] != ' ') continue;
    if (is_letter(decode_utf8(text, previous_code_point(text, at)).value)) return at;
  }
  return std::nullopt;
}

namespace detail {

/// What normalisation does to a space behind a letter.
enum class SpaceRule : std::uint8_t {
  unknown,
  kept,    // it stays, and nothing joins over it
  marked,  // it becomes the mark, and one may be put before the text
};

/// NFC, NFKC: a space combines with nothing, and no letter's form ends in white space. Lower case
/// goes character by character.
inline SpaceRule space_rule(const Normalizer& normalizer, const std::string& mark) {
  bool kept = true, marked = false;
  for (const Normalizer::Step& step : normalizer.steps()) {
    const auto* replace = std::get_if<ReplaceTextStep>(&step);
    const auto* prepend = std::get_if<PrependStep>(&step);
    if (replace != nullptr && replace->text == " " && replace->content == mark && !mark.empty()) {
      marked = true;
    } else if (prepend != nullptr && prepend->text == mark && !mark.empty()) {
      kept = false;
    } else if (replace != nullptr || prepend != nullptr ||
               std::holds_alternative<ReplaceStep>(step)) {
      return SpaceRule::unknown;
    }
  }
  if (marked) return SpaceRule::marked;
  return kept ? SpaceRule::kept : SpaceRule::unknown;
}

/// True for the patterns of which this is known: no match holds a space behind a character that is
/// no white space, and no match that ends in such a character depends on what comes after it if
/// that is a space.
inline bool is_word_pattern(const PatternSplit& split) {
  if (split.behavior != SplitBehavior::isolated || split.invert) return false;
  const std::string_view pattern = split.pattern.pattern();
  return pattern == byte_level_pattern || pattern == contraction_word_pattern(R"(\p{N})") ||
         pattern == contraction_word_pattern(R"(\p{N}{1,3})");
}

/// True where every text is split between a letter and a space, whatever is around them. Steps
/// before the one that does it give the same pieces whether the text is cut there or not. `mark`:
/// as below.
inline bool splits_before_spaces(const PreTokenizer& pre_tokenizer, const std::string& mark) {
  for (const PreTokenizer::Step& step : pre_tokenizer.steps()) {
    if (const auto* words = std::get_if<ByteLevelSplit>(&step)) {
      if (words->use_regex) return true;
    } else if (const auto* pattern = std::get_if<PatternSplit>(&step)) {
      return is_word_pattern(*pattern);
    } else if (const auto* metaspace = std::get_if<MetaspaceSplit>(&step)) {
      return metaspace->splits || (!mark.empty() && metaspace->mark == mark);
    }
  }
  return false;
}

/// True where such a token could lie across a cut, or look across it. `space`: what a space is when
/// tokens are looked for.
inline bool reaches_across_cut(const AddedToken& token, std::string_view content,
                               std::string_view space, bool is_prepended) {
  const auto follows_letter = [&](std::size_t at) {
    return at > 0 && is_letter(decode_utf8(content, previous_code_point(content, at)).value);
  };
  const bool ends_in_letter = follows_letter(content.size());
  if (ends_in_letter && (token.rstrip || is_prepended)) return true;
  if (token.single_word && content.starts_with(space)) return true;
  for (std::size_t at = 0; (at = content.find(space, at)) != content.npos; ++at) {
    if (follows_letter(at)) return true;
  }
  return false;
}

}  // namespace detail

/// True where a text may be cut between any letter and the space behind it. `mark`: what stands for
/// a space in words that the model itself cuts there (CharacterPairEncoding::cuts_at_marks), else
/// empty.
///
/// The proof, for a text a·b with a letter at the end of a and a space at the begin of b: no added
/// token lies or looks across the place (reaches_across_cut); normalisation of a and of b gives
/// those of a·b (space_rule; what is put before a text is not put before b); and the words of a and
/// b are those of a·b (splits_before_spaces, or cuts_at_marks), so the ids are too.
inline bool may_cut_before_spaces(const Normalizer& normalizer, const PreTokenizer& pre_tokenizer,
                                  const std::string& mark,
                                  const std::vector<AddedToken>& added_tokens) {
  const detail::SpaceRule rule = detail::space_rule(normalizer, mark);
  if (rule == detail::SpaceRule::unknown) return false;
  const bool is_marked = rule == detail::SpaceRule::marked;
  if (is_marked && !pre_tokenizer.steps().empty()) return false;
  if (!is_marked && !detail::splits_before_spaces(pre_tokenizer, mark)) return false;
  return std::none_of(added_tokens.begin(), added_tokens.end(), [&](const AddedToken& token) {
    std::string storage;
    const std::string_view normal = normalizer.apply(token.content, storage, true);
    return detail::reaches_across_cut(token, token.content, " ", is_marked) ||
           detail::reaches_across_cut(token, normal, is_marked ? std::string_view(mark) : " ",
                                      is_marked);
  });
}

}  // namespace wanamaker::inline WANAMAKER_ABI
