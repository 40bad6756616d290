// Declared pipelines against values recorded from the Python packages tokenizers and sentencepiece
// (tests/reference/pipelines.py), and the tokenizers of GGUF files.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "text_testing.hpp"
#include "wanamaker/io/gguf_writer.hpp"
#include "wanamaker/text/gguf_tokenizer_writing.hpp"
#include "wanamaker/text/tokenizer.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Ids = std::vector<TokenId>;

const Json& recorded_pipelines() {
  static const Json document = parse_json_file(std::filesystem::path(WANAMAKER_SOURCE_DIR) /
                                               "tests/reference/pipelines.json");
  return document;
}

/// A complete tokenizer.json of one of the recorded variants.
Json pipeline(const Json& document, const std::string& name) {
  Json tokenizer = document.at("variants").at(name);
  const std::string model = tokenizer.at("model");
  tokenizer["model"] = document.at("models").at(model);
  for (const char* off : {"unk_token", "fuse_unk", "byte_fallback", "ignore_merges"}) {
    tokenizer["model"].erase(off);
  }
  tokenizer["model"].update(tokenizer.at("settings"));
  tokenizer.erase("settings");
  return tokenizer;
}

/// `decodes`: also compare the texts that ids stand for. The peer turns bytes that are no UTF-8
/// into U+FFFD, and leaves out ids without a token.
void check_results(const Tokenizer& tokenizer, const Json& texts, const Json& results,
                   bool decodes) {
  REQUIRE(results.at("ids").size() == texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto text = texts[i].get<std::string>();
    CAPTURE(i);
    CAPTURE(text);
    const Ids ids = tokenizer.encode(text);
    CHECK(ids == results.at("ids")[i].get<Ids>());
    const auto& templated = results.at("template_ids");
    if (i < templated.size())
      CHECK(tokenizer.encode_with_template(text) == templated[i].get<Ids>());
    if (!decodes) continue;
    const auto expected = results.at("decoded")[i].get<std::string>();
    if (expected.find("\ufffd") == expected.npos) CHECK(tokenizer.decode(ids) == expected);
  }
}

void check_pipelines(const Json& document) {
  for (const auto& item : document.at("results").items()) {
    const std::string& name = item.key();
    CAPTURE(name);
    const Tokenizer tokenizer(read_tokenizer_json(pipeline(document, name).dump(), name));
    check_results(tokenizer, document.at("texts"), item.value(), true);
  }
}

/// Writes `tokenizer.ggml` keys; what is in `more` is added or replaces.
void write_gguf_tokenizer(const std::filesystem::path& path, GgufMetadataToWrite metadata,
                          const GgufMetadataToWrite& more = {}) {
  for (const auto& item : more) {
    std::erase_if(metadata, [&](const auto& present) { return present.first == item.first; });
    metadata.push_back(item);
  }
  write_gguf(path, metadata, {});
}

GgufMetadataToWrite sentencepiece_metadata(const Json& recorded) {
  std::vector<float> scores;
  for (const Json& score : recorded.at("scores")) scores.push_back(score.get<float>());
  return {{"general.architecture", std::string("llama")},
          {"tokenizer.ggml.model", std::string("llama")},
          {"tokenizer.ggml.tokens", recorded.at("tokens").get<std::vector<std::string>>()},
          {"tokenizer.ggml.scores", scores},
          {"tokenizer.ggml.token_type", recorded.at("types").get<std::vector<std::int32_t>>()},
          {"tokenizer.ggml.bos_token_id", std::uint32_t{1}},
          {"tokenizer.ggml.eos_token_id", std::uint32_t{2}}};
}

void check_sentencepiece(const Json& recorded) {
  const TemporaryFolder folder;
  write_gguf_tokenizer(folder / "m.gguf", sentencepiece_metadata(recorded));
  const Tokenizer tokenizer = Tokenizer::of_model(folder / "m.gguf");
  CHECK(tokenizer.bos_id() == 1);
  CHECK(tokenizer.eos_id() == 2);
  CHECK(tokenizer.adds_bos());
  for (std::size_t i = 0; i < recorded.at("texts").size(); ++i) {
    const auto text = recorded.at("texts")[i].get<std::string>();
    CAPTURE(text);
    const Ids ids = tokenizer.encode(text);
    CHECK(ids == recorded.at("ids")[i].get<Ids>());
    const auto expected = recorded.at("decoded")[i].get<std::string>();
    if (expected.find("\ufffd") == expected.npos) CHECK(tokenizer.decode(ids) == expected);
  }
}

/// The byte-level model of text.json as a GGUF file has it; its added tokens are control tokens.
GgufMetadataToWrite byte_level_metadata(const std::string& variant) {
  const Json tokenizer = recorded_tokenizer(recorded(), variant);
  std::vector<std::string> tokens(tokenizer.at("model").at("vocab").size() +
                                  tokenizer.at("added_tokens").size());
  std::vector<std::int32_t> types(tokens.size(), 1);
  for (const auto& item : tokenizer.at("model").at("vocab").items()) {
    tokens.at(item.value().get<std::size_t>()) = item.key();
  }
  for (const Json& added : tokenizer.at("added_tokens")) {
    const auto id = added.at("id").get<std::size_t>();
    tokens.at(id) = added.at("content");
    types.at(id) = added.at("special").get<bool>() ? 3 : 4;
  }
  std::vector<std::string> merges;
  for (const Json& merge : tokenizer.at("model").at("merges")) {
    merges.push_back(merge.is_string()
                         ? merge.get<std::string>()
                         : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  return {{"general.architecture", std::string("llama")},
          {"tokenizer.ggml.model", std::string("gpt2")},
          {"tokenizer.ggml.tokens", tokens},
          {"tokenizer.ggml.token_type", types},
          {"tokenizer.ggml.merges", merges},
          {"tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(tokens.size() - 1)}};
}

const std::string pre_key = "tokenizer.ggml.pre";

}  // namespace

TEST_CASE("every declared pipeline gives what the package tokenizers gives") {
  REQUIRE(recorded_pipelines().at("results").size() == 22);
  check_pipelines(recorded_pipelines());
}

TEST_CASE("scores of pieces in a GGUF file give what the package sentencepiece gives") {
  check_sentencepiece(recorded_pipelines().at("sentencepiece"));
}

TEST_CASE("GGUF's names of pre-tokenisers stand for the models' own pipelines") {
  const std::pair<const char*, const char*> names[] = {
      {"gpt-2", "gpt2"},  {"olmo", "neox"},     {"llama-bpe", "llama3"},
      {"qwen2", "qwen2"}, {"smollm", "smollm"}, {"starcoder", "smollm"}};
  const TemporaryFolder folder;
  for (const auto& item : names) {
    const std::string name = item.first, variant = item.second;
    CAPTURE(name);
    write_gguf_tokenizer(folder / "m.gguf", byte_level_metadata(variant), {{pre_key, name}});
    const Tokenizer tokenizer = Tokenizer::from_gguf(folder / "m.gguf");
    const Json& expected = recorded().at("ids").at(variant);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto text = recorded().at("texts")[i].get<std::string>();
      CAPTURE(text);
      CHECK(tokenizer.encode(text) == expected[i].get<Ids>());
    }
  }
}

TEST_CASE("both forms of a byte-level tokenizer are one tokenizer") {
  const TemporaryFolder folder;
  write_gguf_tokenizer(folder / "m.gguf", byte_level_metadata("gpt2"),
                       {{pre_key, std::string("gpt-2")}});
  const Tokenizer from_gguf = Tokenizer::from_gguf(folder / "m.gguf");
  const Tokenizer from_json(
      read_tokenizer_json(recorded_tokenizer(recorded(), "gpt2").dump(), "gpt2"));
  CHECK(from_gguf.content_hash() == from_json.content_hash());
  CHECK(from_gguf.eos_id() == from_json.eos_id());
}

TEST_CASE("tokenizers are written to GGUF and read back as the same ones, or refused") {
  const TemporaryFolder folder;
  const auto definition_of = [](const std::string& variant) {
    return read_tokenizer_json(recorded_tokenizer(recorded(), variant).dump(), variant);
  };
  for (const std::string variant : {"gpt2", "neox", "smollm"}) {
    CAPTURE(variant);
    const TokenizerDefinition definition = definition_of(variant);
    GgufMetadataToWrite metadata{{"general.architecture", std::string("gpt2")}};
    for (auto& entry : gguf_tokenizer_metadata(definition)) metadata.push_back(std::move(entry));
    write_gguf(folder / "m.gguf", metadata, {});
    const Tokenizer read = Tokenizer::from_gguf(folder / "m.gguf");
    const Tokenizer own{TokenizerDefinition(definition)};
    CHECK(read.vocabulary_size() == own.vocabulary_size());
    CHECK(read.bos_id() == own.bos_id());
    CHECK(read.eos_id() == own.eos_id());
    for (const Json& text : recorded().at("texts")) {
      CHECK(read.encode(text.get<std::string>()) == own.encode(text.get<std::string>()));
    }
  }
  for (const std::string variant : {"llama3", "qwen2"}) {
    CHECK(error_id([&] { gguf_tokenizer_metadata(definition_of(variant)); }) ==
          "tokenizer/unwritable");
  }
}

TEST_CASE("settings of a GGUF tokenizer") {
  const TemporaryFolder folder;
  const Json& recorded = recorded_pipelines().at("sentencepiece");
  const auto with = [&](const GgufMetadataToWrite& more) {
    write_gguf_tokenizer(folder / "m.gguf", sentencepiece_metadata(recorded), more);
    return Tokenizer::from_gguf(folder / "m.gguf");
  };
  const Ids plain = with({}).encode("the lamp");
  const Ids bare = with({{"tokenizer.ggml.add_space_prefix", false}}).encode("the lamp");
  CHECK(bare != plain);
  CHECK(with({{"tokenizer.ggml.add_space_prefix", false}}).decode(bare) == "the lamp");
  CHECK(with({}).encode_with_template("the lamp")[0] == 1);
  CHECK(with({{"tokenizer.ggml.add_bos_token", false}}).encode_with_template("the lamp") == plain);
  CHECK(!with({{"tokenizer.ggml.add_bos_token", false}}).adds_bos());
  const Ids both = with({{"tokenizer.ggml.add_eos_token", true}}).encode_with_template("the lamp");
  CHECK(both.back() == 2);
  const Ids with_control = with({}).encode("a<s>b");
  CHECK(std::count(with_control.begin(), with_control.end(), 1) == 1);
  CHECK(with({}).token_text(plain[0]).starts_with("\u2581"));
  CHECK(with({}).token_bytes(plain[0]).starts_with(" "));
  CHECK(with({}).token_bytes(3 + 0x41) == "A");
}

TEST_CASE("GGUF tokenizers that are missing, contradictory or not implemented are refused") {
  const TemporaryFolder folder;
  const auto fault = [&](const GgufMetadataToWrite& metadata, const GgufMetadataToWrite& more) {
    write_gguf_tokenizer(folder / "m.gguf", metadata, more);
    return error_id([&] { Tokenizer::from_gguf(folder / "m.gguf"); });
  };
  const GgufMetadataToWrite pieces =
      sentencepiece_metadata(recorded_pipelines().at("sentencepiece"));
  const GgufMetadataToWrite words = byte_level_metadata("gpt2");
  const GgufValueToWrite one = std::vector<float>{1.0f};
  CHECK(fault({}, {}) == "tokenizer/unsupported");
  CHECK(fault(pieces, {}).empty());
  for (const char* model : {"bert", "t5", "rwkv", "none"}) {
    CHECK(fault(pieces, {{"tokenizer.ggml.model", std::string(model)}}) == "tokenizer/unsupported");
  }
  CHECK(fault(pieces, {{"tokenizer.ggml.model", 1.0f}}) == "tokenizer/wrong-type");
  CHECK(fault(pieces, {{"tokenizer.ggml.tokens", one}}) == "tokenizer/wrong-type");
  CHECK(fault(pieces, {{"tokenizer.ggml.scores", one}}) == "tokenizer/wrong-type");
  CHECK(fault(pieces, {{"tokenizer.ggml.token_type", one}}) == "tokenizer/wrong-type");
  CHECK(fault(pieces, {{"tokenizer.ggml.bos_token_id", std::uint32_t{100000}}}) ==
        "tokenizer/wrong-type");
  CHECK(fault(pieces, {{"tokenizer.ggml.bos_token_id", ~std::uint32_t{0}}}).empty());
  CHECK(fault(pieces, {{"tokenizer.ggml.remove_extra_whitespaces", true}}) ==
        "tokenizer/unsupported");
  CHECK(fault(pieces, {{"tokenizer.ggml.precompiled_charsmap", one}}) == "tokenizer/unsupported");
  CHECK(fault(pieces, {{"tokenizer.ggml.add_space_prefix", 1.0f}}) == "tokenizer/wrong-type");
  const auto tokens = std::get<std::vector<std::string>>(pieces[2].second);
  const auto with_token = [&](std::size_t id, const std::string& text) {
    std::vector<std::string> changed = tokens;
    changed.at(id) = text;
    return GgufMetadataToWrite{{"tokenizer.ggml.tokens", changed}};
  };
  CHECK(fault(pieces, with_token(300, "\xff")) == "text/invalid-utf8");
  CHECK(fault(pieces, with_token(300, std::string(300, 'a'))) == "tokenizer/wrong-type");
  CHECK(fault(pieces, with_token(3, "<0x00")) == "tokenizer/unsupported");
  std::vector<float> scores(tokens.size(), std::nanf(""));
  CHECK(fault(pieces, {{"tokenizer.ggml.scores", scores}}) == "tokenizer/wrong-type");
  CHECK(fault(words, {}) == "tokenizer/unsupported");
  CHECK(fault(words, {{"general.architecture", std::string("gpt2")}}).empty());
  CHECK(fault(words, {{pre_key, std::string("tekken")}}) == "tokenizer/unsupported");
  const GgufMetadataToWrite named{{pre_key, std::string("gpt-2")}};
  CHECK(fault(words, named).empty());
  const auto merges = [&](const std::string& merge) {
    return GgufMetadataToWrite{{pre_key, std::string("gpt-2")},
                               {"tokenizer.ggml.merges", std::vector<std::string>{merge}}};
  };
  CHECK(fault(words, merges("ab")) == "tokenizer/merge-form");
  CHECK(fault(words, merges("q zz")) == "tokenizer/merge-of-absent-token");
}

TEST_CASE("as many more pipeline cases as someone has made") {
  const char* path = std::getenv("WANAMAKER_PIPELINE_CASES");
  if (path == nullptr) {
    MESSAGE("skipped: WANAMAKER_PIPELINE_CASES names no file");
    return;
  }
  const Json document = parse_json_file(path, {.bytes = std::size_t{1} << 31});
  check_pipelines(document);
  check_sentencepiece(document.at("sentencepiece"));
  for (const auto& item : document.at("files").items()) {
    const std::string& file = item.key();
    CAPTURE(file);
    check_results(Tokenizer::from_tokenizer_json(file), document.at("texts"), item.value(), false);
  }
}

// A folder of ggml-vocab-*.gguf with .inp and .out beside them, as llama.cpp's sources have them
// (also in the source package llama-cpp-python): texts, and the ids of the models' own tokenizers.
TEST_CASE("vocabularies of real models, where someone has them") {
  const char* folder = std::getenv("WANAMAKER_GGUF_VOCABULARIES");
  if (folder == nullptr) {
    MESSAGE("skipped: WANAMAKER_GGUF_VOCABULARIES names no folder");
    return;
  }
  const std::string separator = "\n__ggml_vocab_test__\n";
  int compared = 0;
  for (const char* name : {"gpt-2", "llama-spm", "llama-bpe", "phi-3", "qwen2", "starcoder"}) {
    const std::string path = std::string(folder) + "/ggml-vocab-" + name + ".gguf";
    CAPTURE(path);
    const Tokenizer tokenizer = Tokenizer::from_gguf(path);
    std::string texts = read_bytes(path + ".inp") + separator;
    std::istringstream lines(read_bytes(path + ".out"));
    for (std::string line; !texts.empty() && std::getline(lines, line); ++compared) {
      const std::size_t end = texts.find(separator);
      CAPTURE(line);
      std::istringstream numbers(line);
      const Ids expected{std::istream_iterator<TokenId>(numbers), {}};
      CHECK(tokenizer.encode(texts.substr(0, end)) == expected);
      texts.erase(0, end + separator.size());
    }
  }
  CHECK(compared > 6);
}
