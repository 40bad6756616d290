// Texts cut in pieces: the same ids as the whole, for every tokenizer that allows a cut.
#include "wanamaker/text/token_stream.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "text_testing.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/text/text_cuts.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using StreamIds = std::vector<TokenId>;

/// Words, white space, marks, contents of added tokens: whatever might join over a cut.
std::string text_to_cut(RandomStream& random, const std::vector<std::string>& added) {
  static const std::vector<std::string> pieces = {"a",
                                                  "the",
                                                  "don't",
                                                  "we'll",
                                                  "12345",
                                                  " ",
                                                  " ",
                                                  " ",
                                                  "  ",
                                                  "    ",
                                                  "\n",
                                                  "\n\n",
                                                  "\r\n",
                                                  "\t",
                                                  "e\u0301",
                                                  "\u0301",
                                                  "\u212b",
                                                  "\u0958",
                                                  ".",
                                                  "...",
                                                  "'",
                                                  "\u2581",
                                                  "\u4e2d\u6587",
                                                  "\u0434\u0430",
                                                  "\u1112\u1161\u11ab",
                                                  "\ufdfa",
                                                  "\u00a0",
                                                  "\u3000",
                                                  "\u180e",
                                                  "x y",
                                                  "_",
                                                  "(",
                                                  "\U0001f600",
                                                  "\u017f"};
  std::string text;
  for (std::uint64_t n = random.below(25); n-- > 0;) {
    const bool is_added = !added.empty() && random.below(8) == 0;
    text += is_added ? added[random.below(added.size())] : pieces[random.below(pieces.size())];
    if (random.below(3) == 0) text += " ";
  }
  return text;
}

/// All places between a letter and a space give the ids of the whole. Their number.
Index check_cuts(const Tokenizer& tokenizer, const std::vector<std::string>& added,
                 RandomStream& random, int trials) {
  Index cuts = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const std::string text = text_to_cut(random, added);
    const StreamIds whole = tokenizer.encode(text);
    std::string_view before = text;
    while (const auto cut = tokenizer.last_cut(before)) {
      before = before.substr(0, *cut);
      StreamIds parts = tokenizer.encode(before);
      const StreamIds rest = tokenizer.encode_rest(std::string_view(text).substr(*cut));
      parts.insert(parts.end(), rest.begin(), rest.end());
      CAPTURE(text);
      CAPTURE(*cut);
      CHECK(parts == whole);
      ++cuts;
    }
  }
  return cuts;
}

std::vector<std::string> added_contents(const Json& tokenizer) {
  std::vector<std::string> contents;
  for (const Json& token : tokenizer.at("added_tokens")) {
    contents.push_back(token.at("content").get<std::string>());
  }
  return contents;
}

/// Collects what a stream gives.
struct IdCollector {
  std::vector<std::string> names{};
  std::vector<StreamIds> ids{};
  Index open = 0;

  void begin(const Document& document) {
    names.push_back(document.name);
    ids.emplace_back();
    CHECK(open++ == 0);
  }
  void add(std::span<const TokenId> more) {
    ids.back().insert(ids.back().end(), more.begin(), more.end());
  }
  void end() { CHECK(--open == 0); }
};

Tokenizer byte_tokenizer() {
  return Tokenizer(read_tokenizer_json(TinyTokenizer().tokenizer_json().dump(), "tokenizer.json"));
}

/// A tokenizer of Llama's kind; changes as JsonChange has them.
Json character_tokenizer(std::vector<JsonChange> changes = {}) {
  Json json = parse_json(R"({
      "added_tokens": [{"id": 0, "content": "<s>", "single_word": false, "lstrip": false,
                        "rstrip": false, "normalized": false, "special": true}],
      "normalizer": {"type": "Sequence", "normalizers": [
          {"type": "Prepend", "prepend": "▁"},
          {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
      "pre_tokenizer": null, "post_processor": null,
      "decoder": {"type": "Sequence", "decoders": [
          {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
          {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
      "model": {"type": "BPE", "unk_token": "<s>", "fuse_unk": true, "byte_fallback": false,
                "vocab": {"<s>": 0, "▁": 1, "a": 2, "t": 3, "h": 4, "e": 5, "▁t": 6, "he": 7,
                          "▁the": 8, "▁▁": 9, "y": 10, "x": 11},
                "merges": ["▁ t", "h e", "▁t he", "▁ ▁"]}})",
                         "test");
  for (const JsonChange& change : changes) apply(change, json);
  return json;
}

Tokenizer made(const Json& json) {
  return Tokenizer(read_tokenizer_json(json.dump(), "tokenizer.json"));
}

}  // namespace

TEST_CASE("a cut is the last place between a letter and a space, at or after the least") {
  const Tokenizer tokenizer = byte_tokenizer();
  CHECK(tokenizer.may_cut());
  CHECK(tokenizer.last_cut("one two three") == 7);
  CHECK(tokenizer.last_cut("one two three", 4) == 7);
  CHECK(!tokenizer.last_cut("one two three", 8));
  CHECK(tokenizer.last_cut("caf\u00e9 1") == 5);
  CHECK(!tokenizer.last_cut(" one"));
  CHECK(!tokenizer.last_cut("1 . \n x"));
  CHECK(!tokenizer.last_cut(""));
}

TEST_CASE("GPT-2's words: any allowed cut gives the ids of the whole") {
  RandomStream random(61);
  CHECK(check_cuts(byte_tokenizer(), {"<|endoftext|>"}, random, 1500) > 1000);
}

TEST_CASE("Llama's marks: any allowed cut gives the ids of the whole") {
  RandomStream random(62);
  const Tokenizer prepended = made(character_tokenizer());
  REQUIRE(prepended.may_cut());
  CHECK(check_cuts(prepended, {"<s>"}, random, 1000) > 500);
  for (const char* scheme : {"always", "first", "never"}) {
    for (const char* split : {"true", "false"}) {
      CAPTURE(scheme);
      CAPTURE(split);
      const std::string metaspace = std::string(R"({"type": "Metaspace", "replacement": "▁",)") +
                                    R"("prepend_scheme": ")" + scheme + R"(", "split": )" + split +
                                    "}";
      const Tokenizer tokenizer = made(
          character_tokenizer({{"/normalizer", "null"}, {"/pre_tokenizer", metaspace.c_str()}}));
      REQUIRE(tokenizer.may_cut());
      CHECK(check_cuts(tokenizer, {"<s>"}, random, 500) > 200);
    }
  }
}

TEST_CASE("every recorded pipeline that allows cuts gives the ids of the whole") {
  RandomStream random(63);
  const Json document = parse_json_file(std::filesystem::path(WANAMAKER_SOURCE_DIR) /
                                        "tests/reference/pipelines.json");
  Index allowing = 0;
  for (const auto& item : document.at("variants").items()) {
    CAPTURE(item.key());
    Json json = item.value();
    const auto model = json.at("model").get<std::string>();
    json["model"] = document.at("models").at(model);
    for (const char* off : {"unk_token", "fuse_unk", "byte_fallback", "ignore_merges"}) {
      json["model"].erase(off);
    }
    json["model"].update(json.at("settings"));
    json.erase("settings");
    const Tokenizer tokenizer = made(json);
    if (!tokenizer.may_cut()) continue;
    ++allowing;
    check_cuts(tokenizer, added_contents(json), random, 150);
  }
  CHECK(allowing >= 5);
}

TEST_CASE("the models' own tokenizers: any allowed cut gives the ids of the whole") {
  RandomStream random(64);
  for (const char* name : {"tokenizers/gpt2", "tokenizers/neox"}) {
    const auto folder = shared_data(name);
    if (!folder) return;
    CAPTURE(name);
    const Tokenizer tokenizer = Tokenizer::from_folder(*folder);
    REQUIRE(tokenizer.may_cut());
    const Json json = parse_json_file(*folder / "tokenizer.json");
    CHECK(check_cuts(tokenizer, added_contents(json), random, 300) > 300);
  }
}

TEST_CASE("tokenizers that might join over a space allow no cut") {
  const auto may_cut = [](std::vector<JsonChange> changes) {
    return made(character_tokenizer(std::move(changes))).may_cut();
  };
  CHECK(may_cut({}));
  // A token with a mark behind another character: words merge over spaces.
  CHECK(!may_cut({{"/model/vocab/a▁", "12"}}));
  CHECK(!may_cut({{"/added_tokens",
                   R"([{"id": 0, "content": "<s>", "normalized": false, "special": true,
                        "single_word": false, "lstrip": false, "rstrip": false},
                       {"id": 12, "content": "a b", "normalized": false, "special": false,
                        "single_word": false, "lstrip": false, "rstrip": false}])"}}));
  CHECK(!may_cut(
      {{"/normalizer", R"({"type": "Replace", "pattern": {"String": "e "}, "content": "t"})"}}));
  CHECK(!may_cut({{"/normalizer", "null"}}));
  const auto byte_may_cut = [&](const std::string& added, const JsonChange& change) {
    Json json = TinyTokenizer().tokenizer_json();
    json["added_tokens"][0]["content"] = added;
    json["model"]["vocab"][added] = json["model"]["vocab"]["<|endoftext|>"];
    if (added != "<|endoftext|>") json["model"]["vocab"].erase("<|endoftext|>");
    apply(change, json);
    return made(json).may_cut();
  };
  CHECK(byte_may_cut("<|endoftext|>", {"/added_tokens/0/lstrip", "true"}));
  CHECK(byte_may_cut("<|endoftext|>", {"/added_tokens/0/rstrip", "true"}));
  CHECK(!byte_may_cut("<|endoftext|>", {"/pre_tokenizer/use_regex", "false"}));
  CHECK(!byte_may_cut("end of", {"/added_tokens/0/lstrip", "true"}));
  CHECK(byte_may_cut("end", {"/added_tokens/0/lstrip", "true"}));
  CHECK(!byte_may_cut("end", {"/added_tokens/0/rstrip", "true"}));
  CHECK(!byte_may_cut(" end", {"/added_tokens/0/single_word", "true"}));
}

TEST_CASE("no letter's normal form ends in white space") {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if ((c >= 0xd800 && c < 0xe000) || !is_letter(c)) continue;
    std::string letter;
    append_utf8(c, letter);
    for (const std::string& form : {nfc(letter), nfkc(letter), lower_case(letter)}) {
      const CodePoint last = decode_utf8(form, previous_code_point(form, form.size()));
      if (!is_white_space(last.value)) continue;
      CAPTURE(static_cast<unsigned long>(c));
      FAIL_CHECK("a normal form ends in white space");
    }
  }
}

TEST_CASE("a stream of long and short documents has the ids of the documents") {
  RandomStream random(65);
  const Tokenizer tokenizer = byte_tokenizer();
  const TemporaryFolder folder;
  std::string longest;
  while (longest.size() < 900'000) longest += text_to_cut(random, {"<|endoftext|>"});
  write_bytes(folder / "1.txt", longest);
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += Json{{"text", text_to_cut(random, {})}}.dump() + "\n";
  write_bytes(folder / "2.jsonl", lines + "{\"ids\": [7, 8]}\n{\"text\": \"x\"}\n");
  write_bytes(folder / "3.txt", "the end");
  // No place to cut at all.
  write_bytes(folder / "4.txt", std::string(700'000, 'a'));
  const TokenizedCorpus expected = tokenize(read_corpus(folder.path()), &tokenizer);
  ThreadPool pool(3);
  for (const ExecutorRef executor : {ExecutorRef(), ExecutorRef(pool)}) {
    IdCollector collected;
    const std::vector<std::filesystem::path> paths = {folder.path()};
    stream_tokens(
        paths, {}, [&] { return &tokenizer; }, executor, {}, collected);
    REQUIRE(collected.ids.size() == expected.documents.size());
    for (std::size_t i = 0; i < collected.ids.size(); ++i) {
      CHECK(collected.names[i] == expected.documents[i].name);
      CHECK(collected.ids[i] == expected.documents[i].ids);
    }
  }
}

TEST_CASE("a long text comes in pieces, before it is read to its end") {
  struct Largest {
    std::size_t ids = 0, pieces = 0;
    void begin(const Document&) {}
    void add(std::span<const TokenId> more) {
      ids = std::max(ids, more.size());
      ++pieces;
    }
    void end() {}
  };
  const Tokenizer tokenizer = byte_tokenizer();
  const TemporaryFolder folder;
  std::string text;
  while (text.size() < 3'000'000) text += "some words of prose 1 2 3.\n";
  write_bytes(folder / "a.txt", text);
  Largest largest;
  const std::vector<std::filesystem::path> paths = {folder / "a.txt"};
  stream_tokens(
      paths, {}, [&] { return &tokenizer; }, {}, {}, largest);
  CHECK(largest.pieces > 10);
  CHECK(largest.ids < 600'000);
}

TEST_CASE("vocabularies of real models, where someone has them: any allowed cut") {
  const char* named = std::getenv("WANAMAKER_GGUF_VOCABULARIES");
  if (named == nullptr) {
    MESSAGE("skipped: WANAMAKER_GGUF_VOCABULARIES names no folder");
    return;
  }
  RandomStream random(66);
  for (const auto& entry : std::filesystem::directory_iterator(named)) {
    CAPTURE(entry.path().string());
    try {
      const Tokenizer tokenizer = Tokenizer::of_model(entry.path());
      const Index cuts = check_cuts(tokenizer, {"<s>", "<|endoftext|>"}, random, 300);
      MESSAGE(entry.path().filename().string() << ": " << cuts << " cuts");
    } catch (const Error&) {
      // A kind of tokenizer that is refused.
    }
  }
}

TEST_CASE("streams: detokenised documents, no tokenizer, too long without a cut") {
  const Tokenizer tokenizer = byte_tokenizer();
  const TemporaryFolder folder;
  write_bytes(folder / "a.txt", "a well @-@ known thing");
  const std::vector<std::filesystem::path> paths = {folder / "a.txt"};
  const auto run = [&](const CorpusOptions& options, const Tokenizer* used) {
    IdCollector collected;
    stream_tokens(
        paths, options, [&] { return used; }, {}, {}, collected);
    return collected.ids;
  };
  CHECK(run({.detokenisation = Detokenisation::wikitext}, &tokenizer) ==
        std::vector<StreamIds>{tokenizer.encode("a well-known thing")});
  CHECK(error_id([&] { run({}, nullptr); }) == "corpus/no-tokenizer");
  write_bytes(folder / "a.txt", std::string(1'500'000, '1'));
  CHECK(error_id([&] { run({.largest_document = 1'000'000}, &tokenizer); }) ==
        "corpus/document-too-large");
}
