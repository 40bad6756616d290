// Detokenisation: each rule by hand, and the wikitext files as Python's patterns give them.
#include "wanamaker/text/detokenisation.hpp"

#include <string>

#include "text_testing.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/text/corpus.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

TEST_CASE("each rule of wikitext's detokenisation by hand") {
  const auto check = [](const char* from, const char* to) {
    CAPTURE(from);
    CHECK(detokenise_wikitext(from) == to);
  };
  check("the dogs ' bone", "the dogs' bone");
  check("a well @-@ known 1 @,@ 000 and 2 @.@ 5", "a well-known 1,000 and 2.5");
  check("yes , no ; so : it . Is ! it ? it", "yes, no; so: it. Is! it? it");
  check("a ( b ) c [  d ] e { f\u00a0} g", "a (b) c [d] e {f} g");
  check("( ( a ) b )", "(( a) b )");
  check("( a", "( a");
  check("he said \" go \" and \" stay \"", "he said \"go\" and \"stay\"");
  check("he said ' good ' then", "he said 'good' then");
  check("it is ' so ' now", "it is'so' now");  // by the last rule
  check("John 's hat and Ann 's", "John's hat and Ann's");
  check("the dogs' bone and the cat 's", "the dogs'bone and the cat's");
  check("= = A = =", "== A ==");
  check("= = = A = = =", "=== A ===");
  check("= = = = A = = = =", "==== A ====");
  check("5 \u00b0 C", "5\u00b0C");
  check(" end \n next \n\n ", " end\nnext\n\n");
  check("40 N 5", "40 1 5");
  check("It 's a dog", "It's a dog");
  check("", "");
}

TEST_CASE("rules have names") {
  CHECK(detokenisation_name(Detokenisation::wikitext) == "wikitext");
  CHECK(detokenisation_of_name("none") == Detokenisation::none);
  CHECK(detokenisation_of_name("wikitext") == Detokenisation::wikitext);
  CHECK(!detokenisation_of_name("ptb"));
}

TEST_CASE("a detokenised corpus counts the bytes and words of the text as it was given") {
  const TemporaryFolder folder;
  write_bytes(folder / "a.txt", "a well @-@ known thing .\n");
  const Corpus corpus = read_corpus(folder / "a.txt", {.detokenisation = Detokenisation::wikitext});
  const Document& document = corpus.documents.at(0);
  CHECK(document.text() == "a well-known thing .\n");
  CHECK(document.byte_count() == 25);
  CHECK(document.word_count() == 6);
  CHECK(corpus.content_hash() != read_corpus(folder / "a.txt").content_hash());
}

// tests/reference/detokenisation.py writes the rules as Python's patterns.
TEST_CASE("random texts and the wikitext files are what Python's patterns make of them") {
  const Json record = parse_json_file(std::filesystem::path(WANAMAKER_SOURCE_DIR) /
                                      "tests/reference/detokenisation.json");
  const Json& cases = record.at("cases");
  CHECK(cases.size() >= 100);
  for (const Json& pair : cases) {
    const auto given = pair.at(0).get<std::string>();
    CAPTURE(given);
    CHECK(detokenise_wikitext(given) == pair.at(1).get<std::string>());
  }
  for (const auto& [name, hash] : record.at("files").items()) {
    const auto path = shared_data("wikitext/" + name);
    if (!path) return;
    CHECK(Sha256().update(detokenise_wikitext(read_bytes(*path))).hex() == hash.get<std::string>());
  }
}
