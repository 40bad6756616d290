// Against values recorded from the Python packages tokenizers and unicodedata
// (tests/reference/text.py).
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "text_testing.hpp"
#include "wanamaker/text/normalizer.hpp"
#include "wanamaker/text/tokenizer.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Ids = std::vector<TokenId>;

void check_texts(const Tokenizer& tokenizer, const Json& document, const Json& ids) {
  REQUIRE(ids.size() == document.at("texts").size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto text = document.at("texts")[i].get<std::string>();
    CAPTURE(i);
    CAPTURE(text);
    CHECK(tokenizer.encode(text) == ids[i].get<Ids>());
  }
}

void check_variants(const Json& document) {
  for (const auto& item : document.at("ids").items()) {
    const std::string& name = item.key();
    CAPTURE(name);
    const std::string text = recorded_tokenizer(document, name).dump();
    const Tokenizer tokenizer(read_tokenizer_json(text, name));
    check_texts(tokenizer, document, item.value());
  }
}

void check_nfc(const Json& document) {
  for (std::size_t i = 0; i < document.at("texts").size(); ++i) {
    const auto text = document.at("texts")[i].get<std::string>();
    CAPTURE(text);
    CHECK(nfc(text) == document.at("nfc")[i].get<std::string>());
  }
}

}  // namespace

TEST_CASE("every pipeline gives the ids that the package tokenizers gives") {
  REQUIRE(recorded().at("ids").size() == 8);
  check_variants(recorded());
}

TEST_CASE("NFC is that of unicodedata") {
  check_nfc(recorded());
}

TEST_CASE("as many more cases as someone has made") {
  const char* path = std::getenv("WANAMAKER_TOKENIZER_CASES");
  if (path == nullptr) {
    MESSAGE("skipped: WANAMAKER_TOKENIZER_CASES names no file");
    return;
  }
  const Json document = parse_json_file(path);
  check_variants(document);
  check_nfc(document);
  for (const auto& item : document.at("folders").items()) {
    const std::string& folder = item.key();
    CAPTURE(folder);
    check_texts(Tokenizer::from_folder(folder), document, item.value());
  }
}
