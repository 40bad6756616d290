// What a number was measured with. Every result holds one; results of different protocols refuse to
// be compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// All choices that a loss depends on besides the model. Lengths in tokens.
struct Protocol {
  std::string name = "rigorous";  ///< rigorous, paper-rows or paper-stream
  std::string join_rule = "each document on its own";
  Index window = 0;                     ///< tokens of context at most, W
  Index stride = 0;                     ///< a new window every so many tokens, S <= W
  bool bos = false;                     ///< a beginning-of-text token opens each window
  Index truncation = 0;                 ///< tokens used of a document at most; 0: all
  std::string detokenisation = "none";  ///< rules that the texts went through before encoding
  std::string first_token_rule = "the first token of a window is context only";
  std::string arithmetic = "float";  ///< of the forward pass; losses are double
  std::uint64_t seed = 0;
  std::string corpus_hash;          ///< SHA-256 of the documents' texts
  std::string tokenizer_hash;       ///< empty for ready ids
  std::string token_ids_hash;       ///< SHA-256 of the ids that were run
  std::vector<std::string> faults;  ///< known faults of a published procedure

  friend bool operator==(const Protocol&, const Protocol&) = default;
};

/// One hash over all fields: equal hashes, comparable numbers.
inline std::string protocol_hash(const Protocol& p) {
  Sha256 hash;
  const auto text = [&hash](const std::string& s) { hash.update_number(s.size()).update(s); };
  const auto number = [&hash](Index n) { hash.update_number(static_cast<std::uint64_t>(n)); };
  for (const std::string* s :
       {&p.name, &p.join_rule, &p.detokenisation, &p.first_token_rule, &p.arithmetic,
        &p.corpus_hash, &p.tokenizer_hash, &p.token_ids_hash}) {
    text(*s);
  }
  for (const Index n : {p.window, p.stride, p.truncation, Index{p.bos}}) number(n);
  hash.update_number(p.seed);
  for (const std::string& fault : p.faults) text(fault);
  return hash.hex();
}

/// Throws ProtocolError where two results were not measured alike.
inline void check_comparable(const Protocol& a, const Protocol& b, const std::string& where) {
  if (protocol_hash(a) == protocol_hash(b)) return;
  const bool same_ids = a.token_ids_hash == b.token_ids_hash;
  throw ProtocolError({.id = "protocol/not-comparable",
                       .where = where,
                       .what = same_ids ? "the protocols differ" : "the token ids differ",
                       .expected = protocol_hash(a).substr(0, 12),
                       .found = protocol_hash(b).substr(0, 12),
                       .mend = "measure both with the same texts and options"});
}

}  // namespace wanamaker::inline WANAMAKER_ABI
