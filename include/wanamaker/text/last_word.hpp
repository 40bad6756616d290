// Passages whose last word is to be predicted, as LAMBADA has them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/core/progress.hpp"
#include "wanamaker/text/corpus.hpp"
#include "wanamaker/text/document.hpp"
#include "wanamaker/text/tokenized_corpus.hpp"
#include "wanamaker/text/tokenizer.hpp"
#include "wanamaker/text/unicode.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A passage's ids; the last `target_tokens` of them are its last word.
struct PassageIds {
  std::vector<TokenId> ids{};
  Index target_tokens = 0;
};

namespace detail {

[[noreturn]] inline void refuse_passage(const std::string& where, std::string expected,
                                        std::string found) {
  throw DataError({.id = "data/no-last-word",
                   .where = where,
                   .what = "a passage without a last word to predict",
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .mend = "give passages of several words, or a longer --window"});
}

}  // namespace detail

/// The passage without white space at its end is cut at its last space; what follows the space is
/// the word, and the space belongs to it. Its tokens are those of the whole passage's encoding that
/// come after its common beginning with the encoding of what is before the space. So a token that
/// lies across the space belongs to the word. At most the last `longest` tokens are kept. Throws
/// DataError where no token of context is left, and as Tokenizer::encode.
inline PassageIds encode_passage(const Tokenizer& tokenizer, std::string_view text, Index longest,
                                 const std::string& where = "passage") {
  while (!text.empty()) {
    const std::size_t last = previous_code_point(text, text.size());
    if (!is_white_space(decode_utf8(text, last).value)) break;
    text.remove_suffix(text.size() - last);
  }
  const std::size_t space = text.rfind(' ');
  if (space == text.npos) detail::refuse_passage(where, "a space before the last word", "none");
  PassageIds passage{.ids = tokenizer.encode(text, where)};
  const std::vector<TokenId> context = tokenizer.encode(text.substr(0, space), where);
  const auto first =
      std::mismatch(passage.ids.begin(), passage.ids.end(), context.begin(), context.end()).first;
  passage.target_tokens = static_cast<Index>(passage.ids.end() - first);
  const Index kept = std::min(longest, static_cast<Index>(passage.ids.size()));
  if (passage.target_tokens < 1 || passage.target_tokens >= kept) {
    detail::refuse_passage(where, "at least one token before the word, within the window",
                           std::to_string(passage.target_tokens) + " tokens of the word, " +
                               std::to_string(kept) + " in all");
  }
  passage.ids.erase(passage.ids.begin(), passage.ids.end() - kept);
  return passage;
}

/// Passages in the order of their corpus, and how many of each one's last tokens are its last word.
struct PassageCorpus {
  TokenizedCorpus corpus{};
  std::vector<Index> target_tokens{};
};

/// Encodes the documents as passages, in parallel where the executor is; the result does not depend
/// on it. Throws as encode_passage, DataError for ready ids, and Cancelled.
inline PassageCorpus tokenize_passages(const Corpus& corpus, const Tokenizer& tokenizer,
                                       Index longest, ExecutorRef executor = {},
                                       const Progress& progress = {}) {
  PassageCorpus result{.target_tokens = std::vector<Index>(corpus.documents.size())};
  const auto encode = [&](const Document& document, std::size_t place) {
    if (!document.has_text()) detail::refuse_passage(document.source, "a text", "token ids");
    PassageIds passage = encode_passage(tokenizer, document.text(), longest, document.source);
    result.target_tokens[place] = passage.target_tokens;
    return std::move(passage.ids);
  };
  result.corpus = detail::tokenize_with(corpus, encode, executor, progress);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
