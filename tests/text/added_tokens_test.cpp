// The search for added tokens against trying every place and every token.
#include "wanamaker/text/added_tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text_testing.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Pieces = std::vector<std::string>;

/// Pieces of text as they are, tokens as "#id".
Pieces split(const AddedTokenMatcher& matcher, std::string_view text) {
  Pieces pieces;
  matcher.split(
      text, [&](std::string_view piece) { pieces.emplace_back(piece); },
      [&](TokenId id) { pieces.push_back("#" + std::to_string(id)); });
  return pieces;
}

/// Leftmost, then longest, then the last.
Pieces naive(const std::vector<AddedToken>& tokens, std::string_view text) {
  Pieces pieces;
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* longest = nullptr;
    for (const AddedToken& token : tokens) {
      const bool here = !token.content.empty() && text.substr(at).starts_with(token.content);
      if (here && (!longest || token.content.size() >= longest->content.size())) longest = &token;
    }
    if (longest == nullptr) {
      plain += text[at++];
      continue;
    }
    if (!plain.empty()) pieces.push_back(plain);
    plain.clear();
    pieces.push_back("#" + std::to_string(longest->id));
    at += longest->content.size();
  }
  if (!plain.empty()) pieces.push_back(plain);
  return pieces;
}

std::string random_ab(RandomStream& random, std::size_t length) {
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += static_cast<char>('a' + random.below(2));
  return text;
}

}  // namespace

TEST_CASE("leftmost, and the longest there") {
  RandomStream random(21);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<AddedToken> tokens;
    const std::uint64_t count = random.below(5);
    for (std::uint64_t i = 0; i < count; ++i) {
      tokens.push_back(
          {.id = static_cast<TokenId>(i), .content = random_ab(random, random.below(6))});
    }
    const AddedTokenMatcher matcher(tokens);
    const std::string text = random_ab(random, random.below(40));
    CAPTURE(text);
    CHECK(split(matcher, text) == naive(tokens, text));
  }
}

TEST_CASE("no token, no text") {
  CHECK(split(AddedTokenMatcher(), "text") == Pieces{"text"});
  CHECK(split(AddedTokenMatcher(), "") == Pieces{});
  CHECK(split(AddedTokenMatcher({{.id = 1, .content = ""}}), "text") == Pieces{"text"});
}

TEST_CASE("a token takes the white space beside it along where it may") {
  const AddedTokenMatcher matcher({{.id = 1, .content = "[L]", .lstrip = true},
                                   {.id = 2, .content = "[R]", .rstrip = true},
                                   {.id = 3, .content = "[N]"}});
  CHECK(split(matcher, "a \n\u00a0[L] b") == Pieces{"a", "#1", " b"});
  CHECK(split(matcher, "a [R]\t \u3000b") == Pieces{"a ", "#2", "b"});
  CHECK(split(matcher, "a [N] b") == Pieces{"a ", "#3", " b"});
  CHECK(split(matcher, "[R]  [L]") == Pieces{"#2", "#1"});
}

TEST_CASE("a single word stands alone") {
  const AddedTokenMatcher matcher({{.id = 1, .content = "cat", .single_word = true}});
  CHECK(split(matcher, "cat") == Pieces{"#1"});
  CHECK(split(matcher, "a cat, cats concat cat") == Pieces{"a ", "#1", ", cats concat ", "#1"});
  CHECK(split(matcher, "\u00e9cat cat\u0301 cat_") == Pieces{"\u00e9cat cat\u0301 cat_"});
  CHECK(split(matcher, "-cat\u2026") == Pieces{"-", "#1", "\u2026"});
}

TEST_CASE("a content without bounds is refused") {
  const std::string content(AddedTokenMatcher::longest_content, 'x');
  CHECK(split(AddedTokenMatcher({{.id = 1, .content = content}}), "a" + content) ==
        Pieces{"a", "#1"});
  CHECK(error_id([&] { AddedTokenMatcher({{.id = 1, .content = content + "x"}}); }) ==
        "tokenizer/added-token-length");
}
