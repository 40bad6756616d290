// Merging against a literal reading of the definition: find the best pair, merge, begin again.
#include "wanamaker/text/byte_pair_encoding.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text_testing.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Ids = std::vector<TokenId>;

/// Random merges over the bytes a, b, c: ids 0 … 2, then one per merge, each text once.
struct RandomModel {
  std::vector<std::string> tokens{"a", "b", "c"};
  std::vector<Merge> merges;

  RandomModel(RandomStream& random, std::size_t count) {
    std::map<std::string, TokenId> ids{{"a", 0}, {"b", 1}, {"c", 2}};
    while (merges.size() < count) {
      const auto left = static_cast<TokenId>(random.below(tokens.size()));
      const auto right = static_cast<TokenId>(random.below(tokens.size()));
      const std::string text =
          tokens[static_cast<std::size_t>(left)] + tokens[static_cast<std::size_t>(right)];
      const auto id = static_cast<TokenId>(tokens.size());
      if (text.size() > 24 || !ids.emplace(text, id).second) continue;
      tokens.push_back(text);
      merges.push_back({left, right, id});
    }
    shuffle(merges, random);  // ranks need not follow the order in which tokens can arise
  }

  BytePairEncoding encoding(bool ignore_merges = false) const {
    const std::vector<std::string_view> views(tokens.begin(), tokens.end());
    return {views, merges, ignore_merges};
  }

  Ids merged(std::string_view word) const {
    Ids ids;
    for (const char c : word) ids.push_back(c - 'a');
    while (true) {
      std::size_t best = merges.size(), place = 0;
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        for (std::size_t rank = 0; rank < best; ++rank) {
          if (merges[rank].left == ids[i] && merges[rank].right == ids[i + 1]) {
            best = rank;
            place = i;
          }
        }
      }
      if (best == merges.size()) return ids;
      ids[place] = merges[best].merged;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
  }
};

Ids encoded(const BytePairEncoding& model, std::string_view word) {
  // On the heap and exactly as long, so that a sanitizer sees any read beyond the end.
  const std::vector<char> exact(word.begin(), word.end());
  Ids ids{-7};
  model.append({exact.data(), exact.size()}, ids);
  REQUIRE(ids[0] == -7);
  return {ids.begin() + 1, ids.end()};
}

std::string random_word(RandomStream& random, std::size_t length) {
  std::string word;
  for (std::size_t i = 0; i < length; ++i) word += static_cast<char>('a' + random.below(3));
  return word;
}

}  // namespace

TEST_CASE("words of every length merge as the definition says") {
  RandomStream random(5);
  for (int trial = 0; trial < 12; ++trial) {
    const RandomModel model(random, 30);
    const BytePairEncoding encoding = model.encoding();
    for (std::size_t length = 1; length <= 110; ++length) {
      const std::string word = random_word(random, length);
      CAPTURE(word);
      CHECK(encoded(encoding, word) == model.merged(word));
    }
  }
}

TEST_CASE("every token of the vocabulary merges as the definition says") {
  RandomStream random(6);
  for (int trial = 0; trial < 20; ++trial) {
    const RandomModel model(random, 60);
    const BytePairEncoding encoding = model.encoding();
    for (const std::string& token : model.tokens) {
      CHECK(encoded(encoding, token) == model.merged(token));
    }
  }
}

TEST_CASE("ignore_merges keeps words that are tokens whole") {
  RandomStream random(7);
  const RandomModel model(random, 80);
  const BytePairEncoding encoding = model.encoding(true);
  std::size_t longest = 0;
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    longest = std::max(longest, model.tokens[id].size());
    CHECK(encoded(encoding, model.tokens[id]) == Ids{static_cast<TokenId>(id)});
  }
  CHECK(longest > detail::WordTable::longest);
  const std::string other = random_word(random, 60);
  CHECK(encoded(encoding, other) == model.merged(other));
}

TEST_CASE("runs of one byte merge from the left") {
  const std::vector<std::string_view> tokens{"a", "aa", "aaa"};
  const BytePairEncoding encoding(tokens, std::vector<Merge>{{0, 0, 1}, {1, 0, 2}}, false);
  CHECK(encoded(encoding, "aaa") == Ids{2});
  CHECK(encoded(encoding, "aaaa") == Ids{1, 1});
  CHECK(encoded(encoding, "aaaaa") == Ids{1, 2});
}

TEST_CASE("of equal merges the last counts") {
  const std::vector<std::string_view> tokens{"a", "b", "ab", "bb"};
  const std::vector<Merge> merges{{0, 1, 2}, {1, 1, 3}, {0, 1, 2}};
  CHECK(encoded({tokens, merges, false}, "abb") == Ids{0, 3});
}

TEST_CASE("a word of a million bytes") {
  RandomStream random(8);
  const RandomModel model(random, 40);
  const BytePairEncoding encoding = model.encoding();
  const std::string word = random_word(random, 1'000'000);
  std::string joined;
  for (const TokenId id : encoded(encoding, word))
    joined += model.tokens[static_cast<std::size_t>(id)];
  CHECK(joined == word);
}

TEST_CASE("words with zero bytes do not equal shorter ones") {
  const std::string zero(1, '\0');
  const std::string a_zero = "a" + zero;
  const std::vector<std::string_view> tokens{"a", zero, a_zero};
  const BytePairEncoding encoding(tokens, std::vector<Merge>{{0, 1, 2}}, false);
  CHECK(encoded(encoding, "a") == Ids{0});
  CHECK(encoded(encoding, a_zero) == Ids{2});
  CHECK(encoded(encoding, a_zero + zero) == Ids{2, 1});
}

TEST_CASE("bytes without a token are found") {
  const std::vector<std::string_view> tokens{"a", "b"};
  const BytePairEncoding encoding(tokens, {}, false);
  CHECK(!encoding.covers_all_text());
  CHECK(encoding.first_uncovered("abba") == 4);
  CHECK(encoding.first_uncovered("abc") == 2);
}
