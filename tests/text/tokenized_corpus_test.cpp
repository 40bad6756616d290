// From corpora to ids: identity, counts, hashes, and independence of threads.
#include "wanamaker/text/tokenized_corpus.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text_testing.hpp"
#include "wanamaker/core/thread_pool.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Ids = std::vector<TokenId>;

Tokenizer tiny_tokenizer() {
  return Tokenizer(read_tokenizer_json(TinyTokenizer().tokenizer_json().dump(), "tokenizer.json"));
}

Corpus random_corpus(std::size_t documents) {
  RandomStream random(41);
  Corpus corpus;
  for (std::size_t i = 0; i < documents; ++i) {
    corpus.documents.push_back({.name = "d" + std::to_string(i),
                                .index = static_cast<Index>(i),
                                .source = "memory",
                                .content = random_text(random, random.below(30))});
  }
  return corpus;
}

}  // namespace

TEST_CASE("documents keep their identity, and counts are theirs") {
  const Tokenizer tokenizer = tiny_tokenizer();
  Corpus corpus;
  corpus.documents.push_back(
      {.name = "one", .index = 0, .source = "f, line 1", .content = "he the"});
  corpus.documents.push_back({.name = "two", .index = 1, .content = "\u00e9"});
  const TokenizedCorpus result = tokenize(corpus, &tokenizer);
  REQUIRE(result.documents.size() == 2);
  CHECK(result.documents[0].name == "one");
  CHECK(result.documents[0].source == "f, line 1");
  CHECK(result.documents[0].ids == Ids{257, 258});
  CHECK(result.documents[1].index == 1);
  CHECK(result.documents[1].ids == Ids{0xc3, 0xa9});
  CHECK(result.token_count() == 4);
  CHECK(result.byte_count() == 8);
  CHECK(result.word_count() == 3);
  CHECK(result.has_text);
}

TEST_CASE("ready ids need no tokenizer; text does") {
  Corpus corpus;
  corpus.documents.push_back({.content = Ids{4, 5}});
  const TokenizedCorpus result = tokenize(corpus, nullptr);
  CHECK(result.documents[0].ids == Ids{4, 5});
  CHECK(!result.has_text);
  CHECK(result.byte_count() == 0);
  corpus.documents.push_back({.content = "text"});
  CHECK(error_id([&] { tokenize(corpus, nullptr); }) == "corpus/no-tokenizer");
}

TEST_CASE("the result does not depend on threads") {
  const Tokenizer tokenizer = tiny_tokenizer();
  const Corpus corpus = random_corpus(150);
  const TokenizedCorpus alone = tokenize(corpus, &tokenizer);
  ThreadPool pool(3);
  const TokenizedCorpus together = tokenize(corpus, &tokenizer, pool);
  CHECK(alone.ids_hash() == together.ids_hash());
  for (std::size_t i = 0; i < corpus.documents.size(); ++i) {
    CHECK(together.documents[i].name == corpus.documents[i].name);
    CHECK(together.documents[i].ids == tokenizer.encode(corpus.documents[i].text()));
  }
}

TEST_CASE("the hash is of the bytes that its definition names") {
  TokenizedCorpus corpus;
  corpus.documents.push_back({.ids = {1, 0x01020304}});
  corpus.documents.push_back({.ids = {}});
  const std::string bytes("\x02\0\0\0\0\0\0\0\x01\0\0\0\x04\x03\x02\x01\0\0\0\0\0\0\0\0", 24);
  CHECK(corpus.ids_hash() == sha256_hex(bytes));
  TokenizedCorpus cut;
  cut.documents.push_back({.ids = {1}});
  cut.documents.push_back({.ids = {0x01020304}});
  CHECK(cut.ids_hash() != corpus.ids_hash());
}

TEST_CASE("a fault in a document names it, from any thread") {
  const Tokenizer tokenizer = tiny_tokenizer();
  Corpus corpus = random_corpus(40);
  corpus.documents[30].content = "bad \xff";
  corpus.documents[30].source = "file, line 31";
  ThreadPool pool(2);
  try {
    tokenize(corpus, &tokenizer, pool);
    FAIL("no error");
  } catch (const DataError& error) {
    CHECK(std::string(error.what()).find("file, line 31, byte 4") == 0);
  }
}

TEST_CASE("progress is reported, and can stop the work") {
  const Tokenizer tokenizer = tiny_tokenizer();
  const Corpus corpus = random_corpus(40);
  Index last = -1;
  tokenize(corpus, &tokenizer, {}, {[&](std::string_view, Index done, Index total) {
             CHECK(done > last);
             CHECK(total == 40);
             last = done;
             return true;
           }});
  CHECK(last == 40);
  const Progress stop{[](std::string_view, Index done, Index) { return done == 0; }};
  CHECK_THROWS_AS(tokenize(corpus, &tokenizer, {}, stop), Cancelled);
}

TEST_CASE("a tokenizer larger than the model is another model's, but for added tokens") {
  CHECK(error_id([] { check_tokenizer_size(10, 10, "model"); }) == "");
  CHECK(error_id([] { check_tokenizer_size(11, 10, "model"); }) == "corpus/vocabulary-too-large");
  Json json = TinyTokenizer().tokenizer_json();
  Json added = json["added_tokens"][0];
  added["content"] = "<|pad|>";
  added["id"] = 300;
  json["added_tokens"].push_back(added);
  const Tokenizer tokenizer(read_tokenizer_json(json.dump(), "tokenizer.json"));
  CHECK(tokenizer.learned_vocabulary_size() == 256 + 4 + 1);
  CHECK(tokenizer.vocabulary_size() == 301);
}

TEST_CASE("ids beyond a model's vocabulary are found") {
  TokenizedCorpus corpus;
  corpus.documents.push_back({.source = "a.npy", .ids = {1, 2, 9}});
  CHECK(error_id([&] { check_ids(corpus, 10); }) == "");
  CHECK(error_id([&] { check_ids(corpus, 9); }) == "corpus/id-beyond-vocabulary");
}
