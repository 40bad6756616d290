// What is known of a token without running a model: how frequent its type is, and what its spelling
// says.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wanamaker/study/windows.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What a token looks like.
enum class TokenCategory {
  word,         ///< letters, at the beginning of a word
  word_part,    ///< letters that go on with a word
  number,       ///< digits
  punctuation,  ///< no letter, digit or byte beyond ASCII, some mark
  space,        ///< spaces and line ends alone
  other         ///< anything else, mixtures and unknown spellings too
};

/// A token's spelling, taken apart.
struct TokenForm {
  TokenCategory category = TokenCategory::other;
  Index length = 0;  ///< bytes without the space before it
  bool is_function_word = false;
};

namespace detail {

// Articles, pronouns, prepositions, conjunctions, auxiliaries and the commonest particles; ordered.
inline constexpr std::array<std::string_view, 96> function_words{
    "a",    "about", "after", "all",    "also",    "am",    "an",    "and",   "any",   "are",
    "as",   "at",    "be",    "been",   "before",  "being", "but",   "by",    "can",   "could",
    "did",  "do",    "does",  "down",   "each",    "for",   "from",  "had",   "has",   "have",
    "he",   "her",   "him",   "his",    "how",     "i",     "if",    "in",    "into",  "is",
    "it",   "its",   "may",   "me",     "might",   "must",  "my",    "no",    "nor",   "not",
    "of",   "off",   "on",    "or",     "our",     "out",   "over",  "shall", "she",   "should",
    "so",   "some",  "than",  "that",   "the",     "their", "them",  "then",  "there", "these",
    "they", "this",  "those", "though", "through", "to",    "under", "until", "up",    "upon",
    "us",   "was",   "we",    "were",   "what",    "when",  "where", "which", "while", "who",
    "whom", "why",   "will",  "with",   "would",   "you"};

inline bool is_ascii_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Bytes beyond ASCII are taken for letters.
inline bool is_word_byte(char c) {
  return is_ascii_letter(c) || static_cast<unsigned char>(c) >= 0x80;
}

template <class Holds>
bool all_bytes(std::string_view text, Holds holds) {
  return std::all_of(text.begin(), text.end(), holds);
}

inline bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/// Without the mark of a new word: a space, or the "▁" of SentencePiece.
inline std::string_view without_word_mark(std::string_view spelling) {
  constexpr std::string_view mark = "\xE2\x96\x81";
  if (spelling.starts_with(mark)) return spelling.substr(mark.size());
  if (spelling.size() > 1 && spelling.front() == ' ') return spelling.substr(1);
  return spelling;
}

inline TokenCategory category_of(std::string_view spelling, std::string_view bare) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_mark = [&](char c) { return !is_word_byte(c) && !is_digit(c) && !is_space(c); };
  if (spelling.empty()) return TokenCategory::other;
  if (all_bytes(bare, is_space)) return TokenCategory::space;
  if (all_bytes(bare, is_digit)) return TokenCategory::number;
  if (all_bytes(bare, is_mark)) return TokenCategory::punctuation;
  const bool begins = bare.size() < spelling.size();
  if (all_bytes(bare, is_word_byte)) {
    return begins ? TokenCategory::word : TokenCategory::word_part;
  }
  return TokenCategory::other;
}

}  // namespace detail

/// Whether the spelling, in whichever case and without the space before it, is one of the commonest
/// English articles, pronouns, prepositions, conjunctions or auxiliaries.
inline bool is_function_word(std::string_view spelling) {
  std::string word;
  for (const char c : detail::without_word_mark(spelling)) {
    word.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return std::binary_search(detail::function_words.begin(), detail::function_words.end(),
                            std::string_view(word));
}

/// The spelling is the token's bytes: with a space or "▁" before it where it begins a word.
inline TokenForm form_of(std::string_view spelling) {
  const std::string_view bare = detail::without_word_mark(spelling);
  return {detail::category_of(spelling, bare), static_cast<Index>(bare.size()),
          is_function_word(spelling)};
}

/// How often each type of a vocabulary was seen.
class TokenFrequencies {
 public:
  /// All tokens of the documents of a set. `vocabulary`: types; ids are below it.
  TokenFrequencies(const EvaluationSet& set, Index vocabulary)
      : counts_(static_cast<std::size_t>(vocabulary)), ranks_(counts_.size()) {
    for (const EvaluationBatch& batch : set.batches) {
      for (const TokenId token : batch.tokens) ++counts_[static_cast<std::size_t>(token)];
    }
    total_ = std::accumulate(counts_.begin(), counts_.end(), Index{0});
    rank_types();
  }

  /// ln((count + 1)/(all + types)): unseen types have one too.
  double log_frequency(TokenId type) const {
    const double types = static_cast<double>(counts_.size());
    return std::log((static_cast<double>(counts_[static_cast<std::size_t>(type)]) + 1) /
                    (static_cast<double>(total_) + types));
  }
  /// ln of the rank by falling count, from 1; equally frequent types share the mean of theirs.
  double log_rank(TokenId type) const { return std::log(ranks_[static_cast<std::size_t>(type)]); }

 private:
  void rank_types() {
    std::vector<std::size_t> order(counts_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return counts_[a] > counts_[b]; });
    for (std::size_t first = 0; first < order.size();) {
      std::size_t end = first + 1;
      while (end < order.size() && counts_[order[end]] == counts_[order[first]]) ++end;
      const double rank = 0.5 * static_cast<double>(first + 1 + end);
      for (std::size_t place = first; place < end; ++place) ranks_[order[place]] = rank;
      first = end;
    }
  }

  std::vector<Index> counts_{};
  std::vector<double> ranks_{};
  Index total_ = 0;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
