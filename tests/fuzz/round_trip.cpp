// decode(encode(x)) = x for any text, by tokenizers of bytes and of characters; x that is no UTF-8
// is refused; and the merges alone give back any bytes.
#include "fuzz/fuzzing.hpp"
#include "fuzz/tokenizer_properties.hpp"
#include "text/text_testing.hpp"
#include "wanamaker/text/byte_pair_training.hpp"
#include "wanamaker/text/tokenizer_json.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

TokenizerDefinition trained_on(const char* text) {
  WordCounts words;
  words.add(read_bytes(std::filesystem::path(WANAMAKER_EXAMPLES_DATA) / text));
  return train_byte_level_tokenizer(words, {.vocabulary_size = 600});
}

/// Bytes as fallback, a mark for spaces, one of them put before the text and dropped again.
TokenizerDefinition of_characters() {
  Json json = parse_json(R"({"model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>",
      "vocab": {"<unk>": 0, "a": 257, "b": 258, "ab": 259, "\u2581": 260, "\u2581a": 261,
                "\u00e9": 262, "aab": 263},
      "merges": ["a b", "\u2581 a", "a ab"]},
      "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
      "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern":
        {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}})",
                         "of_characters");
  for (int byte = 0; byte < 256; ++byte) {
    char spelling[8];
    std::snprintf(spelling, sizeof spelling, "<0x%02X>", byte);
    json["model"]["vocab"][spelling] = byte + 1;
  }
  return read_tokenizer_json(json.dump(), "of_characters");
}

void check_text(const Tokenizer& tokenizer, const std::string& text) {
  must_hold(tokenizer.decode(tokenizer.encode(text)) == text, "decode(encode(x)) is not x");
  use_tokenizer(tokenizer, text);
}

/// Any bytes: a word need not be text.
void check_merges(const Tokenizer& tokenizer, const BytePairEncoding& merges,
                  const std::string& word) {
  std::vector<TokenId> ids;
  if (!word.empty()) merges.append(word, ids);
  must_hold(tokenizer.decode(ids) == word, "merged bytes are other bytes");
}

BytePairEncoding merges_of(const TokenizerDefinition& definition, const Tokenizer& tokenizer) {
  std::vector<std::string_view> tokens(static_cast<std::size_t>(tokenizer.vocabulary_size()));
  for (const VocabularyEntry& entry : definition.vocabulary) {
    const auto id = static_cast<std::size_t>(entry.id);
    tokens[id] = entry.spelling == "<|endoftext|>" ? "" : tokenizer.token_bytes(entry.id);
  }
  return {tokens, definition.merges, false};
}

bool is_refused(const Tokenizer& tokenizer, const std::string& text) {
  try {
    tokenizer.encode(text);
  } catch (const DataError& error) {
    return error.id() == "text/invalid-utf8";
  }
  return false;
}

void round_trip(std::string_view input) {
  static const TokenizerDefinition definition = trained_on("narrative.txt");
  static const Tokenizer bytes(definition), characters(of_characters());
  static const BytePairEncoding merges = merges_of(definition, bytes);
  const std::string text(input);
  check_merges(bytes, merges, text);
  if (first_invalid_utf8(text)) {
    must_hold(is_refused(bytes, text) && is_refused(characters, text), "accepted no UTF-8");
    return;
  }
  check_text(bytes, text);
  // The mark is a space once decoded.
  if (text.find("\u2581") == text.npos) check_text(characters, text);
}

std::vector<std::string> round_trip_seeds() {
  RandomStream random(7);
  std::vector<std::string> seeds{"The keeper's lamp, 1907.\n", " \xe2\x96 \xff\xc0\x80",
                                 "\xfe ab\xff\x0a"};
  for (std::size_t pieces = 4; pieces <= 64; pieces *= 4) {
    seeds.push_back(random_text(random, pieces));
  }
  return seeds;
}

const FuzzRegistration round_trip_target(
    {.name = "round_trip",
     .read = round_trip,
     .seeds = round_trip_seeds,
     // The tokenizers are made with the first input.
     .bounds = {.memory_factor = 256, .memory_beside = std::size_t{64} << 20, .seconds = 20}});

}  // namespace
