// Where the last word of a passage begins among its tokens.
#include "wanamaker/text/last_word.hpp"

#include <string>
#include <vector>

#include "text_testing.hpp"
#include "wanamaker/core/thread_pool.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

Tokenizer passage_tokenizer(TinyTokenizer::Merges merges, bool splits) {
  Json json = TinyTokenizer(std::move(merges)).tokenizer_json();
  json["pre_tokenizer"]["use_regex"] = splits;
  return Tokenizer(read_tokenizer_json(json.dump(), "tokenizer.json"));
}

std::string passage_fault(const Tokenizer& tokenizer, const std::string& text, Index longest) {
  try {
    encode_passage(tokenizer, text, longest, "here");
  } catch (const DataError& error) {
    CHECK(error.id() == "data/no-last-word");
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the last word is what follows the last space, with the space") {
  const Tokenizer tokenizer = passage_tokenizer({{" ", "t"}, {"h", "e"}, {" t", "he"}}, true);
  const PassageIds one = encode_passage(tokenizer, "see the", 100);
  CHECK(one.ids == tokenizer.encode("see the"));
  CHECK(one.target_tokens == 1);
  const PassageIds many = encode_passage(tokenizer, "a b\nthe end.\u00a0\n", 100);
  CHECK(many.ids == tokenizer.encode("a b\nthe end."));
  CHECK(many.target_tokens == 5);
}

TEST_CASE("a token that lies across the space belongs to the word") {
  const Tokenizer tokenizer = passage_tokenizer({{"a", " "}, {"a ", "b"}}, false);
  const PassageIds passage = encode_passage(tokenizer, "ca b", 100);
  CHECK(passage.ids.size() == 2);
  CHECK(tokenizer.token_bytes(passage.ids[1]) == "a b");
  CHECK(passage.target_tokens == 1);
}

TEST_CASE("long passages keep their end") {
  const Tokenizer tokenizer = passage_tokenizer({}, true);
  const PassageIds passage = encode_passage(tokenizer, "abcdef ghi", 6);
  CHECK(passage.ids == tokenizer.encode("ef ghi"));
  CHECK(passage.target_tokens == 4);
}

TEST_CASE("passages without a last word, or without context, are refused") {
  const Tokenizer tokenizer = passage_tokenizer({}, true);
  CHECK(passage_fault(tokenizer, "word", 100).find("here") == 0);
  CHECK(passage_fault(tokenizer, "word \n", 100) != "");
  CHECK(passage_fault(tokenizer, " word", 100) != "");
  CHECK(passage_fault(tokenizer, "", 100) != "");
  CHECK(passage_fault(tokenizer, "a word", 5) != "");
  CHECK(passage_fault(tokenizer, "a word", 6) == "");
}

TEST_CASE("passages of a corpus keep their identity, whatever the executor") {
  const Tokenizer tokenizer = passage_tokenizer({}, true);
  Corpus corpus;
  for (Index i = 0; i < 300; ++i) {
    corpus.documents.push_back({.name = std::to_string(i),
                                .index = i,
                                .source = "f, line " + std::to_string(i + 1),
                                .content = "number " + std::to_string(i) + "\n"});
  }
  ThreadPool pool(3);
  const PassageCorpus passages = tokenize_passages(corpus, tokenizer, 100, pool);
  REQUIRE(passages.corpus.documents.size() == 300);
  CHECK(passages.corpus.documents[250].name == "250");
  CHECK(passages.corpus.documents[250].byte_count == 11);
  CHECK(passages.target_tokens[9] == 2);
  CHECK(passages.target_tokens[250] == 4);
  corpus.documents[7].content = std::vector<TokenId>{1};
  CHECK(error_id([&] { tokenize_passages(corpus, tokenizer, 100); }) == "data/no-last-word");
}
