// Tokenizers from files: the golden cases, both forms of files, decoding, hashes, and refusals.
#include "wanamaker/text/tokenizer.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "text_testing.hpp"
#include "wanamaker/text/rows.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Ids = std::vector<TokenId>;

Tokenizer from_json(const Json& json) {
  return Tokenizer(read_tokenizer_json(json.dump(), "tokenizer.json"));
}

Tokenizer tiny() {
  return from_json(TinyTokenizer().tokenizer_json());
}

Json changed(const std::vector<JsonChange>& changes) {
  Json json = TinyTokenizer().tokenizer_json();
  for (const JsonChange& change : changes) apply(change, json);
  return json;
}

/// Id of the error that a changed tokenizer.json gives.
std::string refusal(const std::vector<JsonChange>& changes) {
  const Json json = changed(changes);
  return error_id([&] { from_json(json); });
}

struct Refused {
  JsonChange change;
  const char* id;
};

void check_golden(const Tokenizer& tokenizer, const char* key) {
  const auto path = shared_data("golden/tokenizer_cases.jsonl");
  if (!path) return;
  int cases = 0;
  for (const std::string& row : read_rows(*path)) {
    const Json line = parse_json(row, path->string());
    const auto text = line.at("text").get<std::string>();
    CAPTURE(text);
    CHECK(tokenizer.encode(text) == line.at(key).get<Ids>());
    if (key == std::string("gpt2")) CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
    ++cases;
  }
  CHECK(cases == 356);
}

}  // namespace

TEST_CASE("the golden cases: GPT-2 from tokenizer.json") {
  const auto folder = shared_data("tokenizers/gpt2");
  if (!folder) return;
  const Tokenizer tokenizer = Tokenizer::from_folder(*folder);
  check_golden(tokenizer, "gpt2");
  CHECK(tokenizer.vocabulary_size() == 50257);
  CHECK(tokenizer.eos_id() == 50256);
  CHECK(tokenizer.token_text(262) == "Ġthe");
  CHECK(tokenizer.find_token("Ġthe") == 262);
}

TEST_CASE("the golden cases: GPT-2 from vocab.json and merges.txt") {
  const auto folder = shared_data("tokenizers/gpt2");
  if (!folder) return;
  const Tokenizer tokenizer =
      Tokenizer::from_vocab_and_merges(*folder / "vocab.json", *folder / "merges.txt");
  check_golden(tokenizer, "gpt2");
  CHECK(tokenizer.eos_id() == 50256);
  CHECK(tokenizer.content_hash() == Tokenizer::from_folder(*folder).content_hash());
}

TEST_CASE("the golden cases: GPT-NeoX") {
  const auto folder = shared_data("tokenizers/neox");
  if (!folder) return;
  const Tokenizer tokenizer = Tokenizer::from_folder(*folder);
  check_golden(tokenizer, "neox");
  CHECK(tokenizer.vocabulary_size() == 50277);
  CHECK(tokenizer.eos_id() == 0);
  CHECK(tokenizer.encode("  ") == Ids{50276});
}

TEST_CASE("the models' own tokenizers") {
  for (const char* model : {"models/books-gpt2", "models/books-neox"}) {
    const auto folder = shared_data(model);
    if (!folder) return;
    const Tokenizer tokenizer = Tokenizer::from_folder(*folder);
    CHECK(tokenizer.vocabulary_size() == 4096);
    CHECK(tokenizer.bos_id() == 0);
    CHECK(!tokenizer.adds_bos());
  }
}

TEST_CASE("a tiny tokenizer by hand") {
  const Tokenizer tokenizer = tiny();
  CHECK(tokenizer.vocabulary_size() == 261);
  CHECK(tokenizer.encode("") == Ids{});
  CHECK(tokenizer.encode("he the") == Ids{257, 258});
  CHECK(tokenizer.encode("the") == Ids{'t', 257});
  CHECK(tokenizer.encode(" tohe") == Ids{256, 'o', 257});
  CHECK(tokenizer.encode("\u00e9") == Ids{0xc3, 0xa9});
  CHECK(tokenizer.encode("a<|endoftext|>he") == Ids{'a', 260, 257});
  CHECK(tokenizer.token_text(258) == "Ġthe");
  CHECK(tokenizer.token_bytes(258) == " the");
  CHECK(tokenizer.token_bytes(260) == "<|endoftext|>");
  CHECK(tokenizer.find_token("Ġthe") == 258);
  CHECK(!tokenizer.find_token("nowhere"));
  CHECK(tokenizer.bos_id() == 260);
  CHECK(tokenizer.decode(Ids{0xc3}) == "\xc3");  // half a character: bytes all the same
}

TEST_CASE("both forms of files, from a folder, are one tokenizer") {
  const TinyTokenizer files;
  const TemporaryFolder json, two;
  files.write_json(json.path());
  files.write_two_files(two.path());
  const Tokenizer a = Tokenizer::from_folder(json.path()), b = Tokenizer::from_folder(two.path());
  CHECK(a.content_hash() == b.content_hash());
  CHECK(a.content_hash() == Tokenizer::from_tokenizer_json(json / "tokenizer.json").content_hash());
  RandomStream random(31);
  for (int trial = 0; trial < 200; ++trial) {
    const std::string text = random_text(random, 20);
    CHECK(a.encode(text) == b.encode(text));
  }
  write_bytes(two / "merges.txt", files.merges_text() + "\r\n\n");
  CHECK(a.content_hash() == Tokenizer::from_folder(two.path()).content_hash());
}

TEST_CASE("merges as strings and as pairs") {
  const Json json =
      changed({{"/model/merges", R"([["Ġ", "t"], ["h", "e"], ["Ġt", "he"], ["a", "a"]])"}});
  CHECK(from_json(json).content_hash() == tiny().content_hash());
}

TEST_CASE("decode(encode(x)) == x for every valid text") {
  const Tokenizer tokenizer = tiny();
  RandomStream random(32);
  for (int trial = 0; trial < 1000; ++trial) {
    const std::string text = random_text(random, random.below(60));
    CAPTURE(text);
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  }
}

TEST_CASE("with NFC, decode(encode(x)) is NFC of x") {
  const Tokenizer tokenizer = from_json(changed({{"/normalizer", R"({"type": "NFC"})"}}));
  RandomStream random(33);
  for (int trial = 0; trial < 1000; ++trial) {
    const std::string text = random_text(random, random.below(60));
    CAPTURE(text);
    CHECK(tokenizer.decode(tokenizer.encode(text)) == nfc(text));
  }
}

TEST_CASE("several threads may encode at once") {
  const Tokenizer tokenizer = tiny();
  RandomStream random(34);
  std::vector<std::string> texts;
  for (int i = 0; i < 50; ++i) texts.push_back(random_text(random, 200));
  std::vector<Ids> alone, together[3];
  for (const std::string& text : texts) alone.push_back(tokenizer.encode(text));
  std::vector<std::thread> threads;
  for (std::vector<Ids>& result : together) {
    threads.emplace_back([&] {
      for (const std::string& text : texts) result.push_back(tokenizer.encode(text));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<Ids>& result : together) CHECK(result == alone);
}

TEST_CASE("the hash tells different tokenizers apart") {
  const std::vector<JsonChange> changes[] = {
      {},
      {{"/normalizer", R"({"type": "NFC"})"}},
      {{"/pre_tokenizer/add_prefix_space", "true"}},
      {{"/pre_tokenizer/use_regex", "false"}},
      {{"/model/ignore_merges", "true"}},
      {{"/model/merges/0", "\"h e\""}, {"/model/merges/1", "\"Ġ t\""}},
      {{"/added_tokens/0/rstrip", "true"}},
      {{"/model/vocab/a", "98"}, {"/model/vocab/b", "97"}}};
  std::vector<std::string> hashes;
  for (const auto& change : changes) hashes.push_back(from_json(changed(change)).content_hash());
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    CHECK(hashes[i].size() == 64);
    for (std::size_t k = 0; k < i; ++k) CHECK(hashes[i] != hashes[k]);
  }
}

TEST_CASE("tokenizer_config.json names the ends of a text") {
  const TemporaryFolder folder;
  TinyTokenizer().write_json(folder.path());
  const auto config = [&](const std::string& text) {
    write_bytes(folder / "tokenizer_config.json", text);
    return Tokenizer::from_folder(folder.path());
  };
  const Tokenizer other = config(R"({"bos_token": "Ġthe", "eos_token": {"content": "a"},
                                     "add_bos_token": true, "add_prefix_space": false})");
  CHECK(other.bos_id() == 258);
  CHECK(other.eos_id() == 'a');
  CHECK(other.adds_bos());
  CHECK(config(R"({"bos_token": null})").bos_id() == 260);
  CHECK(!config(R"({"bos_token": null, "eos_token": "a"})").bos_id());
  CHECK(error_id([&] { config(R"({"eos_token": "[EOS]"})"); }) == "tokenizer/absent-special-token");
  CHECK(error_id([&] { config(R"({"add_prefix_space": true})"); }) == "tokenizer/contradiction");
  CHECK(error_id([&] { config(R"({"add_bos_token": "yes"})"); }) == "tokenizer/wrong-type");
  CHECK(error_id([&] { config("[1]"); }) == "tokenizer/wrong-type");
}

TEST_CASE("tokenizer_config.json beside vocab.json and merges.txt") {
  const TemporaryFolder folder;
  TinyTokenizer().write_two_files(folder.path());
  const auto config = [&](const std::string& text) {
    write_bytes(folder / "tokenizer_config.json", text);
    return Tokenizer::from_folder(folder.path());
  };
  CHECK(config(R"({"add_prefix_space": true})").encode("t") == Ids{256});
  const Tokenizer special = config(R"({"tokenizer_class": "GPT2Tokenizer", "pad_token": "Ġthe",
    "added_tokens_decoder": {"300": {"content": "[X]", "special": true}}})");
  CHECK(special.encode("[X]Ġthe") == Ids{300, 258});
  CHECK(special.vocabulary_size() == 301);
  CHECK(error_id([&] { special.token_bytes(299); }) == "text/unknown-token-id");
  CHECK(error_id([&] { config(R"({"tokenizer_class": "CLIPTokenizer"})"); }) ==
        "tokenizer/unsupported");
  CHECK(error_id([&] { config(R"({"added_tokens_decoder": {"x": {"content": "[X]"}}})"); }) ==
        "tokenizer/wrong-type");
}

TEST_CASE("folders without a tokenizer") {
  const TemporaryFolder folder;
  CHECK(error_id([&] { Tokenizer::from_folder(folder.path()); }) == "tokenizer/missing");
  CHECK(error_id([&] { Tokenizer::from_folder(folder / "nowhere"); }) == "tokenizer/missing");
  write_bytes(folder / "vocab.json", TinyTokenizer().vocabulary().dump());
  CHECK(error_id([&] { Tokenizer::from_folder(folder.path()); }) == "file/missing");
}

TEST_CASE("text that cannot be encoded, ids that cannot be decoded") {
  const Tokenizer tokenizer = tiny();
  CHECK(error_id([&] { tokenizer.encode("abc\xff"); }) == "text/invalid-utf8");
  for (const TokenId id : {-1, 261, 1'000'000}) {
    CHECK(error_id([&] { tokenizer.decode(Ids{id}); }) == "text/unknown-token-id");
    CHECK(error_id([&] { tokenizer.token_text(id); }) == "text/unknown-token-id");
  }
  const Tokenizer without_z = from_json(changed({{"/model/vocab/Z", ""}}));
  CHECK(without_z.encode("a") == Ids{'a'});
  CHECK(error_id([&] { without_z.encode("aZ"); }) == "text/no-token-for-byte");
}

TEST_CASE("what is not implemented is refused by name") {
  const std::string overlong =
      R"({"type": "Prepend", "prepend": ")" + std::string(257, 'a') + "\"}";
  const JsonChange changes[] = {{"/normalizer", R"({"type": "NFD"})"},
                                {"/normalizer", overlong.c_str()},
                                {"/pre_tokenizer", R"({"type": "BertPreTokenizer"})"},
                                {"/pre_tokenizer", R"({"type": "Digits"})"},
                                {"/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
         {"type": "ByteLevel"}, {"type": "Digits"}]})"},
                                {"/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
         {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Dropped"},
         {"type": "ByteLevel"}]})"},
                                {"/pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [
         {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated"},
         {"type": "ByteLevel"}]})"},
                                {"/post_processor", R"({"type": "BertProcessing"})"},
                                {"/decoder", R"({"type": "WordPiece"})"},
                                {"/model/type", R"("Unigram")"},
                                {"/model/dropout", "0.1"},
                                {"/model/end_of_word_suffix", R"("</w>")"},
                                {"/model/from_the_future", "[1]"}};
  for (const JsonChange& change : changes) {
    CAPTURE(change.pointer);
    CAPTURE(change.value);
    CHECK(refusal({change}) == "tokenizer/unsupported");
  }
  CHECK(refusal({{"/model/vocab/Z", ""}, {"/model/unk_token", R"("a")"}}) ==
        "tokenizer/unsupported");
  CHECK(refusal({{"/model/vocab/Z", ""}, {"/model/byte_fallback", "true"}}) ==
        "tokenizer/unsupported");
  CHECK(refusal({{"/model/vocab/Ġ", ""},
                 {"/model/merges", "[]"},
                 {"/pre_tokenizer/add_prefix_space", "true"}}) == "tokenizer/unsupported");
}

TEST_CASE("settings that are off, or cannot matter, are none") {
  CHECK(refusal({{"/model/byte_fallback", "true"}}) == "");
  CHECK(refusal({{"/model/byte_fallback", "false"},
                 {"/model/dropout", "null"},
                 {"/model/continuing_subword_prefix", R"("")"},
                 {"/model/unk_token", R"("a")"},
                 {"/truncation", R"({"max_length": 8})"}}) == "");
}

TEST_CASE("hostile files") {
  const Refused cases[] = {
      {{"/model", ""}, "tokenizer/missing-key"},
      {{"/model", "3"}, "tokenizer/wrong-type"},
      {{"/pre_tokenizer", "null"}, "tokenizer/unsupported"},  // and a decoder of bytes
      {{"/pre_tokenizer", R"({"type": 5})"}, "tokenizer/wrong-type"},
      {{"/model/vocab", "[]"}, "tokenizer/wrong-type"},
      {{"/model/vocab/a", "-1"}, "tokenizer/wrong-type"},
      {{"/model/vocab/a", "1.5"}, "tokenizer/wrong-type"},
      {{"/model/vocab/a", "1000000000000"}, "tokenizer/wrong-type"},
      {{"/model/vocab/a", "18446744073709551615"}, "tokenizer/wrong-type"},
      {{"/model/vocab/a", "1000000000"}, "tokenizer/id-out-of-range"},
      {{"/model/vocab/a", "70000"}, "tokenizer/id-out-of-range"},  // of 259: a hole of 75 MB
      {{"/model/vocab/a", "98"}, "tokenizer/duplicate-id"},
      {{"/added_tokens/0/id", "98"}, "tokenizer/duplicate-id"},
      {{"/added_tokens/0/id", ""}, "tokenizer/missing-key"},
      {{"/added_tokens", "{}"}, "tokenizer/wrong-type"},
      {{"/model/merges", "{}"}, "tokenizer/wrong-type"},
      {{"/model/merges", R"(+"q q")"}, "tokenizer/merge-of-absent-token"},
      {{"/model/merges", R"(+["a", "zz"])"}, "tokenizer/merge-of-absent-token"},
      {{"/model/merges", R"(+"")"}, "tokenizer/merge-form"},
      {{"/model/merges", R"(+" ")"}, "tokenizer/merge-form"},
      {{"/model/merges", R"(+"a")"}, "tokenizer/merge-form"},
      {{"/model/merges", R"(+"a ")"}, "tokenizer/merge-form"},
      {{"/model/merges", R"(+" a")"}, "tokenizer/merge-form"},
      {{"/model/merges", R"(+"a  a")"}, "tokenizer/merge-form"},
      {{"/model/merges", R"(+"a a a")"}, "tokenizer/merge-form"},
      {{"/model/merges", R"(+["a", "a", "a"])"}, "tokenizer/merge-form"},
      {{"/model/merges", "+7"}, "tokenizer/merge-form"}};
  for (const Refused& refused : cases) {
    CAPTURE(refused.change.pointer);
    CAPTURE(refused.change.value);
    CHECK(refusal({refused.change}) == refused.id);
  }
}

TEST_CASE("pipelines of too many steps, and templates of too many ids") {
  const auto steps = [](std::size_t count) {
    std::string list = R"({"type": "NFC"})";
    for (std::size_t i = 1; i < count; ++i) list += R"(, {"type": "NFC"})";
    return R"({"type": "Sequence", "normalizers": [)" + list + "]}";
  };
  const auto with_steps = [&](const std::string& normalizer) {
    return refusal({{"/normalizer", normalizer.c_str()}});
  };
  CHECK(with_steps(steps(64)) == "");
  CHECK(with_steps(steps(65)) == "tokenizer/unsupported");
  const auto with_template = [](std::size_t count) {
    std::string list;
    for (std::size_t i = 0; i < count; ++i) list += R"({"SpecialToken": {"id": "t"}}, )";
    const std::string processor = R"({"type": "TemplateProcessing", "single": [)" + list +
                                  R"({"Sequence": {"id": "A"}}], "special_tokens":
                                     {"t": {"ids": [97, 97, 97, 97]}}})";
    return refusal({{"/post_processor", processor.c_str()}});
  };
  CHECK(with_template(1024) == "");
  CHECK(with_template(1025) == "tokenizer/unsupported");
}

TEST_CASE("merges that give back one of their parts come to an end") {
  // The only such parts are empty: what two tokens become is spelled by both.
  const Tokenizer tokenizer = from_json(changed({{"/model/vocab/", "261"},
                                                 {"/model/merges", R"(+["", "a"])"},
                                                 {"/model/merges", R"(+["a", ""])"},
                                                 {"/model/merges", R"(+["", ""])"}}));
  CHECK(tokenizer.decode(tokenizer.encode("banana aa")) == "banana aa");
}

TEST_CASE("broken JSON and broken text files") {
  const auto read = [](const std::string& text) {
    return error_id([&] { read_tokenizer_json(text, "t.json"); });
  };
  CHECK(read("") != "");
  CHECK(read("{\"model\": ") != "");
  CHECK(read("{\"model\": \"\xff\"}") == "json/invalid-utf8");
  CHECK(read(std::string(100, '[') + std::string(100, ']')) == "json/too-deep");
  CHECK(read(R"({"model": {"vocab": {"a": 0, "a": 1}, "merges": []}})") == "json/duplicate-key");
  const TinyTokenizer files;
  const auto merges = [&](const std::string& text) {
    return error_id([&] {
      read_vocab_and_merges(files.vocabulary().dump(), "vocab.json", text, "merges.txt");
    });
  };
  CHECK(merges("") == "");
  CHECK(merges("a b c\n") == "tokenizer/merge-form");
  CHECK(merges("q q") == "tokenizer/merge-of-absent-token");
  CHECK(merges("a\xff b\n") == "text/invalid-utf8");
}

TEST_CASE("files with random faults give a tokenizer or an error, nothing else") {
  const std::string good = TinyTokenizer().tokenizer_json().dump();
  RandomStream random(35);
  int refused = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::string text = good;
    for (std::uint64_t faults = 1 + random.below(3); faults-- > 0;) {
      const std::size_t at = random.below(text.size());
      const std::uint64_t kind = random.below(3);
      if (kind == 0) text[at] = static_cast<char>(random.below(256));
      if (kind == 1) text[at] = "0123456789\"[]{},:-"[random.below(18)];
      if (kind == 2) text.erase(at, 1 + random.below(40));
    }
    try {
      const Tokenizer tokenizer(read_tokenizer_json(text, "tokenizer.json"));
      tokenizer.decode(tokenizer.encode(""));
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 100);
  CHECK(refused < 400);
}
