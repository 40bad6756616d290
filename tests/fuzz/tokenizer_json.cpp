// tokenizer.json: whatever is accepted encodes and decodes.
#include "wanamaker/text/tokenizer_json.hpp"

#include "fuzz/fuzzing.hpp"
#include "fuzz/tokenizer_properties.hpp"
#include "text/text_testing.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

void read_tokenizer(std::string_view input) {
  use_tokenizer(Tokenizer(read_tokenizer_json(input, "tokenizer.json")));
}

/// A model of characters, and room for what is around it.
std::string character_tokenizer(const std::string& around) {
  return R"({"model": {"type": "BPE", "vocab": {"<unk>": 0, "a": 1, "b": 2, "ab": 3, "aab": 4,
             "\u2581": 5, "\u2581a": 6}, "merges": ["a b", ["a", "ab"], "\u2581 a"],
             "unk_token": "<unk>", "fuse_unk": true})" +
         around + "}";
}

std::vector<std::string> tokenizer_seeds() {
  return {
      TinyTokenizer().tokenizer_json().dump(),
      character_tokenizer(""),
      character_tokenizer(R"(, "normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
        "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String":
        "\u2581"}, "content": " "}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})"),
      character_tokenizer(R"(, "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581",
        "prepend_scheme": "first", "split": false}, "decoder": {"type": "Metaspace", "replacement":
        "\u2581", "prepend_scheme": "first"})"),
      character_tokenizer(R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": "\\s?\\p{L}+|\\p{N}{1,3}"}, "behavior":
        "MergedWithPrevious", "invert": true}, {"type": "Digits", "individual_digits": true}]},
        "added_tokens": [{"id": 7, "content": "<|endoftext|>", "lstrip": true, "rstrip": true,
        "single_word": true, "normalized": true}], "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "x"}}, {"Sequence": {"id": "A"}}],
        "special_tokens": {"x": {"ids": [1]}}})"),
      character_tokenizer(std::string(R"(, "normalizer": {"type": "Sequence", "normalizers": [)") +
                          "\xfe" + R"({"type": "NFKC"},)" + "\xff\x03" +
                          R"({"type": "Replace", "pattern": {"Regex": "a?"}, "content": "ab"}]})")};
}

const FuzzRegistration tokenizer_target({.name = "tokenizer_json",
                                         .read = read_tokenizer,
                                         .seeds = tokenizer_seeds,
                                         .bounds = tokenizer_bounds});

}  // namespace
