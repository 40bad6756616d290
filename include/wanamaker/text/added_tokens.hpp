// Added tokens: texts that are one token wherever they stand, found before anything is split.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/io/file_error.hpp"
#include "wanamaker/text/unicode.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// One entry of `added_tokens`.
struct AddedToken {
  TokenId id = 0;
  std::string content{};     ///< valid UTF-8
  bool special = false;      ///< a control token, no text
  bool normalized = false;   ///< looked for in the normalised text, not in the text as given
  bool single_word = false;  ///< only where no word character stands beside it
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< takes the white space after it along
  /// What it stands for in a text; empty: its content. Of a normalised one that is the normalised
  /// content, such as a space and the content where a space is put before every text.
  std::string meaning{};
};

/// Finds added tokens in a text: leftmost first, the longest where several begin at one place.
class AddedTokenMatcher {
 public:
  /// Longest content in bytes: bounds the work per byte of text.
  static constexpr std::size_t longest_content = 256;

  AddedTokenMatcher() = default;

  /// Throws FormatError for a content beyond `longest_content`. Empty contents match nowhere; of
  /// equal ones the last counts.
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) insert(i);
  }

  /// Calls `on_token(id)` and `on_text(piece)` so that they cover the text in order; white space
  /// that a token takes along belongs to it.
  template <class OnText, class OnToken>
  void split(std::string_view text, OnText&& on_text, OnToken&& on_token) const {
    std::size_t done = 0;
    for (std::size_t at = next_candidate(text, 0); at < text.size();) {
      const std::optional<std::size_t> found = longest_match(text, at);
      if (!found) {
        at = next_candidate(text, at + 1);
        continue;
      }
      const AddedToken& token = tokens_[*found];
      const std::size_t end = at + token.content.size();
      if (stands_alone_if_asked(token, text, at, end)) {
        const std::size_t begin = token.lstrip ? space_begin(text, at, done) : at;
        if (begin > done) on_text(text.substr(done, begin - done));
        on_token(token.id);
        done = token.rstrip ? space_end(text, end) : end;
      }
      at = next_candidate(text, end);
    }
    if (done < text.size()) on_text(text.substr(done));
  }

 private:
  static std::uint64_t edge(std::uint32_t node, char byte) {
    return (std::uint64_t{node} << 8) | static_cast<unsigned char>(byte);
  }
  static std::size_t pair_index(char first, char second) {
    return (std::size_t{static_cast<unsigned char>(first)} << 8) |
           static_cast<unsigned char>(second);
  }

  void insert(std::size_t index) {
    const std::string& content = tokens_[index].content;
    if (content.empty()) return;
    if (content.size() > longest_content) refuse_long(content);
    std::uint32_t node = 0;
    for (const char byte : content) {
      const auto next = static_cast<std::uint32_t>(accepted_.size());
      const auto [place, is_new] = edges_.try_emplace(edge(node, byte), next);
      if (is_new) accepted_.push_back(std::nullopt);
      node = place->second;
    }
    accepted_[node] = index;
    allow_beginning(content);
  }

  [[noreturn]] static void refuse_long(const std::string& content) {
    throw FormatError({.id = "tokenizer/added-token-length",
                       .where = "added token " + detail::in_quotes(content),
                       .what = "content too long",
                       .expected = "at most " + std::to_string(longest_content) + " bytes",
                       .found = std::to_string(content.size()),
                       .mend = "remove this token"});
  }

  void allow_beginning(const std::string& content) {
    for (int second = 0; second < 256; ++second) {
      const auto byte = static_cast<char>(second);
      if (content.size() == 1 || content[1] == byte) pairs_.set(pair_index(content[0], byte));
    }
  }

  /// First place at or after `at` where the first two bytes are those of a token.
  std::size_t next_candidate(std::string_view text, std::size_t at) const {
    if (edges_.empty()) return text.size();
    for (; at + 1 < text.size(); ++at) {
      if (pairs_.test(pair_index(text[at], text[at + 1]))) return at;
    }
    return at;
  }

  std::optional<std::size_t> longest_match(std::string_view text, std::size_t at) const {
    std::optional<std::size_t> longest;
    std::uint32_t node = 0;
    for (; at < text.size(); ++at) {
      const auto next = edges_.find(edge(node, text[at]));
      if (next == edges_.end()) break;
      node = next->second;
      if (accepted_[node]) longest = accepted_[node];
    }
    return longest;
  }

  static bool stands_alone_if_asked(const AddedToken& token, std::string_view text,
                                    std::size_t begin, std::size_t end) {
    if (!token.single_word) return true;
    if (begin > 0) {
      const std::size_t before = previous_code_point(text, begin);
      if (is_word_character(decode_utf8(text, before).value)) return false;
    }
    return end == text.size() || !is_word_character(decode_utf8(text, end).value);
  }

  static std::size_t space_begin(std::string_view text, std::size_t at, std::size_t least) {
    while (at > least) {
      const std::size_t before = previous_code_point(text, at);
      if (!is_white_space(decode_utf8(text, before).value)) break;
      at = before;
    }
    return at;
  }

  static std::size_t space_end(std::string_view text, std::size_t at) {
    while (at < text.size()) {
      const CodePoint next = decode_utf8(text, at);
      if (!is_white_space(next.value)) break;
      at += next.length;
    }
    return at;
  }

  std::vector<AddedToken> tokens_;
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;
  std::vector<std::optional<std::size_t>> accepted_{
      std::nullopt};  // by node; the first is the root
  std::bitset<65536> pairs_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
