// What the tests of this layer share: a tiny tokenizer in both forms of files, random texts, and
// the values recorded from other implementations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "testing.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/io/json_writing.hpp"
#include "wanamaker/text/byte_level.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker_test {

using wanamaker::Json;

/// tests/reference/text.json, made by text.py beside it.
inline const Json& recorded() {
  static const Json document = wanamaker::parse_json_file(
      std::filesystem::path(WANAMAKER_SOURCE_DIR) / "tests/reference/text.json");
  return document;
}

/// A complete tokenizer.json of one of the recorded variants.
inline Json recorded_tokenizer(const Json& document, const std::string& variant) {
  Json tokenizer = document.at("variants").at(variant);
  tokenizer["model"] = document.at("model");
  tokenizer["model"]["ignore_merges"] = tokenizer.at("ignore_merges");
  tokenizer.erase("ignore_merges");
  return tokenizer;
}

/// The 256 bytes as ids 0 … 255, then the given merges, each of two bytes or earlier merges, in
/// bytes; last <|endoftext|>.
class TinyTokenizer {
 public:
  using Merges = std::vector<std::pair<std::string, std::string>>;

  explicit TinyTokenizer(Merges merges = {{" ", "t"}, {"h", "e"}, {" t", "he"}, {"a", "a"}})
      : merges_(std::move(merges)) {
    for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
    for (const auto& [left, right] : merges_) add(left + right);
    end_id_ = static_cast<int>(vocabulary_.size());
    vocabulary_["<|endoftext|>"] = end_id_;
  }

  int end_id() const { return end_id_; }
  Json vocabulary() const { return vocabulary_; }

  Json tokenizer_json() const {
    Json json = wanamaker::parse_json(R"({
      "added_tokens": [{"content": "<|endoftext|>", "single_word": false, "lstrip": false,
                        "rstrip": false, "normalized": false, "special": true}],
      "normalizer": null,
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
      "post_processor": null,
      "decoder": {"type": "ByteLevel"},
      "model": {"type": "BPE", "merges": []}})",
                                      "TinyTokenizer");
    json["added_tokens"][0]["id"] = end_id_;
    json["model"]["vocab"] = vocabulary_;
    for (const auto& [left, right] : merges_) {
      json["model"]["merges"].push_back(spelled(left) + " " + spelled(right));
    }
    return json;
  }

  std::string merges_text() const {
    std::string text = "#version: 0.2\n";
    for (const auto& [left, right] : merges_) text += spelled(left) + " " + spelled(right) + "\n";
    return text;
  }

  void write_json(const std::filesystem::path& folder) const {
    write_bytes(folder / "tokenizer.json", tokenizer_json().dump());
  }
  void write_two_files(const std::filesystem::path& folder) const {
    write_bytes(folder / "vocab.json", vocabulary_.dump());
    write_bytes(folder / "merges.txt", merges_text());
  }

 private:
  static std::string spelled(const std::string& bytes) {
    return wanamaker::byte_level_spelling(bytes);
  }
  void add(const std::string& bytes) {
    const auto id = static_cast<int>(vocabulary_.size());
    vocabulary_[spelled(bytes)] = id;
  }

  Merges merges_;
  Json vocabulary_ = Json::object();
  int end_id_ = 0;
};

/// One change of a JSON document: a pointer (RFC 6901) and the new value's text, "" to remove it,
/// or
/// "+" and a text to append to an array.
struct JsonChange {
  const char* pointer;
  const char* value;
};

inline void apply(const JsonChange& change, Json& document) {
  const Json::json_pointer pointer(change.pointer);
  const std::string value = change.value;
  if (value.empty()) {
    document.at(pointer.parent_pointer()).erase(pointer.back());
  } else if (value[0] == '+') {
    document.at(pointer).push_back(wanamaker::parse_json(value.substr(1), "change"));
  } else {
    document[pointer] = wanamaker::parse_json(value, "change");
  }
}

/// Any scalar value, small ones more often.
inline char32_t random_character(wanamaker::RandomStream& random) {
  while (true) {
    const std::uint64_t limits[] = {0x80, 0x80, 0x300, 0x3100, 0x10000, 0x110000};
    const auto c = static_cast<char32_t>(random.below(limits[random.below(6)]));
    if (c < 0xd800 || c > 0xdfff) return c;
  }
}

/// A valid UTF-8 text in which the pieces that tokenizers treat specially are frequent.
inline std::string random_text(wanamaker::RandomStream& random, std::size_t pieces) {
  static constexpr std::string_view special[] = {" ",      "  ",         "\n",
                                                 "\t",     "'s",         "'ll",
                                                 "'re",    "'",          "'t",
                                                 "a",      "Z",          "7",
                                                 "42",     ".",          "-",
                                                 "\u00e9", "e\u0301",    "\u4e16",
                                                 "\u00a0", "\u3000",     "\u0085",
                                                 "\u180e", "\u200b",     "\u0661",
                                                 "\u2167", "\U0001f600", "<|endoftext|>",
                                                 "the",    " the"};
  std::string text;
  for (std::size_t i = 0; i < pieces; ++i) {
    if (random.below(4) == 0) {
      wanamaker::append_utf8(random_character(random), text);
    } else {
      text += special[random.below(std::size(special))];
    }
  }
  return text;
}

}  // namespace wanamaker_test
