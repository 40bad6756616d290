// Training of tokenizers: the merges of another implementation, every byte there and back, and
// independence from the order of the texts.
#include "wanamaker/text/byte_pair_training.hpp"

#include <cstdlib>
#include <string>
#include <vector>

#include "text_testing.hpp"
#include "wanamaker/text/tokenizer.hpp"
#include "wanamaker/text/tokenizer_json_writing.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

WordCounts counts_of(const std::vector<std::string>& texts) {
  WordCounts counts;
  for (const std::string& text : texts) counts.add(text);
  return counts;
}

std::string spelled_alphabet(const TokenizerDefinition& definition) {
  std::string text;
  for (std::size_t i = 0; i < 256; ++i) {
    text += definition.vocabulary[definition.added_tokens.size() + i].spelling;
  }
  return text;
}

std::vector<std::string> spelled_merges(const TokenizerDefinition& definition) {
  std::vector<std::string> merges;
  for (const Merge& merge : definition.merges) {
    const auto spelling = [&](TokenId id) {
      return definition.vocabulary[static_cast<std::size_t>(id)].spelling;
    };
    merges.push_back(spelling(merge.left) + " " + spelling(merge.right));
    CHECK(spelling(merge.merged) == spelling(merge.left) + spelling(merge.right));
  }
  return merges;
}

BytePairTrainingOptions options_of(const Json& run) {
  return {.vocabulary_size = run.at("size").get<Index>(),
          .least_count = run.at("least_count").get<Index>(),
          .special_tokens = run.at("special_tokens").get<std::vector<std::string>>()};
}

/// What `tokenizers` trained on the same texts.
TokenizerDefinition check_run(const Json& run, const std::vector<std::string>& texts) {
  const TokenizerDefinition definition =
      train_byte_level_tokenizer(counts_of(texts), options_of(run));
  CHECK(spelled_merges(definition) == run.at("merges").get<std::vector<std::string>>());
  CHECK(spelled_alphabet(definition) == run.at("alphabet").get<std::string>());
  CHECK(definition.vocabulary.size() == run.at("vocabulary_size").get<std::size_t>());
  const Tokenizer tokenizer(definition);
  for (std::size_t i = 0; i < run.at("encoded").size(); ++i) {
    CHECK(tokenizer.encode(texts[i]) == run.at("encoded")[i].get<std::vector<TokenId>>());
  }
  return definition;
}

const std::filesystem::path training_reference =
    std::filesystem::path(WANAMAKER_SOURCE_DIR) / "tests/reference/byte_pair_training.json";

}  // namespace

TEST_CASE("merges are those that the package tokenizers trains on the same texts") {
  const Json document = parse_json_file(training_reference);
  const auto texts = document.at("texts").get<std::vector<std::string>>();
  for (const Json& run : document.at("runs")) {
    CAPTURE(run.at("size").get<int>());
    check_run(run, texts);
  }
  if (const char* path = std::getenv("WANAMAKER_TRAINED_TOKENIZER")) {
    const Json trained = parse_json_file(path);
    check_run(trained, {read_bytes(trained.at("file").get<std::string>())});
  }
}

TEST_CASE("the order of texts and how words are spread over them do not matter") {
  const Json document = parse_json_file(training_reference);
  auto texts = document.at("texts").get<std::vector<std::string>>();
  const BytePairTrainingOptions options{.vocabulary_size = 400};
  const auto merges = [&] {
    return spelled_merges(train_byte_level_tokenizer(counts_of(texts), options));
  };
  const std::vector<std::string> forwards = merges();
  std::reverse(texts.begin(), texts.end());
  CHECK(merges() == forwards);
  texts.insert(texts.end(), texts.begin(), texts.end());
  // Twice the counts, so the same order; but pairs that occurred once are now frequent enough.
  const std::vector<std::string> twice = merges();
  REQUIRE(twice.size() >= forwards.size());
  CHECK(std::equal(forwards.begin(), forwards.end(), twice.begin()));
}

TEST_CASE("a trained tokenizer encodes and decodes every character, from memory and from a file") {
  const Json document = parse_json_file(training_reference);
  const TokenizerDefinition definition =
      train_byte_level_tokenizer(counts_of(document.at("texts").get<std::vector<std::string>>()));
  const TemporaryFolder folder;
  write_tokenizer_json(folder / "tokenizer.json", definition);
  const Tokenizer trained(definition);
  const Tokenizer loaded = Tokenizer::from_folder(folder.path());
  CHECK(trained.content_hash() == loaded.content_hash());
  CHECK(loaded.bos_id() == 0);
  CHECK(loaded.eos_id() == 0);
  CHECK(loaded.encode("<|endoftext|>") == std::vector<TokenId>{0});
  RandomStream random(4);
  for (int round = 0; round < 50; ++round) {
    const std::string text = random_text(random, 40);
    CHECK(loaded.decode(loaded.encode(text)) == text);
    CHECK(loaded.encode(text) == trained.encode(text));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    CHECK(loaded.find_token(byte_level_spelling(one)).has_value());
  }
}

TEST_CASE("training can be stopped, and says how far it is") {
  WordCounts counts;
  RandomStream random(5);
  counts.add(random_text(random, 3000));
  Index last = 0;
  Progress progress{[&](std::string_view stage, Index done, Index total) {
    CHECK(stage == "merges");
    CHECK(done >= last);
    CHECK(done <= total);
    last = done;
    return true;
  }};
  train_byte_level_tokenizer(counts, {.vocabulary_size = 300}, progress);
  CHECK(last == 300);
  progress.report = [](std::string_view, Index, Index) { return false; };
  CHECK(error_id([&] { train_byte_level_tokenizer(counts, {}, progress); }) == "run/cancelled");
}

TEST_CASE("impossible trainings are refused") {
  const auto refused = [](const BytePairTrainingOptions& options) {
    return error_id([&] { train_byte_level_tokenizer({}, options); });
  };
  CHECK(refused({.vocabulary_size = 256}) == "tokenizer/vocabulary-size");
  CHECK(refused({.vocabulary_size = 257}) == "");
  CHECK(refused({.special_tokens = {"<a>", "<a>"}}) == "tokenizer/special-token");
  CHECK(refused({.special_tokens = {"a"}}) == "tokenizer/special-token");
  CHECK(refused({.special_tokens = {"<\xff>"}}) == "tokenizer/special-token");
  CHECK(error_id([] { WordCounts().add("\xc3"); }) == "text/invalid-utf8");
  TokenizerDefinition other = train_byte_level_tokenizer({});
  other.pre_tokenizer = PreTokenizer({DigitSplit{}});
  CHECK(error_id([&] { tokenizer_json(other); }) == "tokenizer/unwritable");
}
