// What holds of every tokenizer that was accepted, whatever file it comes from.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fuzz/fuzzing.hpp"
#include "wanamaker/text/tokenizer.hpp"

namespace wanamaker_test {

/// Of files that declare a tokenizer: holes among the ids are filled, up to 65,536 of them, and a
/// pattern may take all the work that PCRE2 allows at each place of a text.
inline constexpr FuzzBounds tokenizer_bounds{.memory_factor = 128,
                                             .memory_beside = std::size_t{48} << 20,
                                             .seconds = 20,
                                             .seconds_each_mib = 40};

/// Short texts that hold what tokenizers treat in ways of their own.
inline const std::vector<std::string>& texts_to_encode() {
  static const std::vector<std::string> texts{"",
                                              " ",
                                              "the a's 12 ab aab",
                                              "  \n\ta<|endoftext|> b",
                                              "e\u0301\u00e9 \u4e16\U0001f600",
                                              std::string(60, 'a')};
  return texts;
}

/// Ids of a text are tokens, decode, and are the ids of its parts where it may be cut.
inline void use_tokenizer(const wanamaker::Tokenizer& tokenizer, const std::string& text) {
  const std::vector<wanamaker::TokenId> ids = tokenizer.encode(text);
  for (const wanamaker::TokenId id : ids) {
    must_hold(tokenizer.has_token(id), "an id that no token has");
  }
  tokenizer.decode(ids);
  const auto cut = tokenizer.last_cut(text);
  if (!cut) return;
  std::vector<wanamaker::TokenId> parts = tokenizer.encode(text.substr(0, *cut));
  const auto rest = tokenizer.encode_rest(text.substr(*cut));
  parts.insert(parts.end(), rest.begin(), rest.end());
  must_hold(parts == ids, "other ids where the text is cut");
}

inline void use_tokenizer(const wanamaker::Tokenizer& tokenizer) {
  for (const std::string& text : texts_to_encode()) {
    try {
      use_tokenizer(tokenizer, text);
    } catch (const wanamaker::DataError&) {  // texts that this tokenizer has no tokens for
    }
  }
}

}  // namespace wanamaker_test
