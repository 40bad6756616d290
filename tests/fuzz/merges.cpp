// vocab.json, merges.txt and tokenizer_config.json, with NUL bytes between them: whatever is
// accepted encodes and decodes.
#include "fuzz/fuzzing.hpp"
#include "fuzz/tokenizer_properties.hpp"
#include "text/text_testing.hpp"
#include "wanamaker/text/gpt2_files.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

void read_merges(std::string_view input) {
  const std::vector<std::string> parts = fuzz_parts(input, 3);
  TokenizerConfig config;
  if (!parts[2].empty()) config = read_tokenizer_config(parts[2], "tokenizer_config.json");
  TokenizerDefinition definition =
      read_vocab_and_merges(parts[0], "vocab.json", parts[1], "merges.txt", config);
  definition.bos = config.bos;
  use_tokenizer(Tokenizer(std::move(definition)));
}

std::vector<std::string> merges_seeds() {
  const TinyTokenizer tiny;
  const std::string between(1, '\0');
  const std::string small = R"({"a": 0, "b": 1, "ab": 2, "aab": 3})" + between + "a b\na ab\n";
  return {tiny.vocabulary().dump() + between + tiny.merges_text(), small,
          small + between + R"({"tokenizer_class": "GPT2Tokenizer", "bos_token": "ab",
            "eos_token": {"content": "b"}, "add_prefix_space": true, "add_bos_token": true,
            "added_tokens_decoder": {"3": {"content": "aab", "special": true}}})"};
}

const FuzzRegistration merges_target(
    {.name = "merges", .read = read_merges, .seeds = merges_seeds, .bounds = tokenizer_bounds});

}  // namespace
