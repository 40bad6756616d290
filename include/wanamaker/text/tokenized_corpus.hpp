// A corpus as token ids: what models are run on. Documents keep their identity.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/core/progress.hpp"
#include "wanamaker/text/corpus.hpp"
#include "wanamaker/text/document.hpp"
#include "wanamaker/text/tokenizer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A document's ids and what is known of its text.
struct TokenizedDocument {
  std::string name{};
  Index index = 0;
  std::string source{};
  std::vector<TokenId> ids{};
  Index byte_count = 0;  ///< 0 for ready ids
  Index word_count = 0;  ///< 0 for ready ids
};

/// Documents in the order of their corpus.
struct TokenizedCorpus {
  std::vector<TokenizedDocument> documents{};
  /// False where some document came as ids, so that totals of bytes and words mean nothing.
  bool has_text = true;

  Index token_count() const {
    return sum([](const TokenizedDocument& d) { return static_cast<Index>(d.ids.size()); });
  }
  Index byte_count() const {
    return sum([](const TokenizedDocument& d) { return d.byte_count; });
  }
  Index word_count() const {
    return sum([](const TokenizedDocument& d) { return d.word_count; });
  }

  /// SHA-256 of, for each document in order, its number of ids as 64 bits and the ids as 32 bits
  /// each, all little-endian. Names do not count; the bounds of documents do.
  std::string ids_hash() const {
    Sha256 hash;
    for (const TokenizedDocument& document : documents) {
      hash.update_number(document.ids.size());
      for (const TokenId id : document.ids) hash_id(id, hash);
    }
    return hash.hex();
  }

 private:
  static void hash_id(TokenId id, Sha256& hash) {
    const auto value = static_cast<std::uint32_t>(id);
    const std::array<unsigned char, 4> bytes = {
        static_cast<unsigned char>(value), static_cast<unsigned char>(value >> 8),
        static_cast<unsigned char>(value >> 16), static_cast<unsigned char>(value >> 24)};
    hash.update(bytes.data(), bytes.size());
  }

  template <class Count>
  Index sum(Count count) const {
    Index total = 0;
    for (const TokenizedDocument& document : documents) total += count(document);
    return total;
  }
};

namespace detail {

[[noreturn]] inline void refuse_without_tokenizer(const std::string& where) {
  throw DataError({.id = "corpus/no-tokenizer",
                   .where = where,
                   .what = "text, and no tokenizer to encode it",
                   .expected = "token ids",
                   .mend = "give a model folder with tokenizer.json, or a corpus of ready ids"});
}

inline std::vector<TokenId> ids_of(const Document& document, const Tokenizer* tokenizer) {
  if (!document.has_text()) return document.ids();
  if (tokenizer == nullptr) refuse_without_tokenizer(document.source);
  return tokenizer->encode(document.text(), document.source);
}

/// The documents with the ids that encode(document, number) gives, 16 a thread at a time; the
/// result does not depend on the executor.
template <class Encode>
TokenizedCorpus tokenize_with(const Corpus& corpus, Encode&& encode, ExecutorRef executor,
                              const Progress& progress) {
  TokenizedCorpus result;
  const auto count = static_cast<Index>(corpus.documents.size());
  result.documents.resize(corpus.documents.size());
  const Index block = 16 * std::max<Index>(1, executor.concurrency());
  for (Index begin = 0; begin < count; begin += block) {
    progress("tokenize", begin, count);
    executor.run(std::min(block, count - begin), [&](Index i) {
      const auto place = static_cast<std::size_t>(begin + i);
      const Document& document = corpus.documents[place];
      result.documents[place] = {.name = document.name,
                                 .index = document.index,
                                 .source = document.source,
                                 .ids = encode(document, place),
                                 .byte_count = document.byte_count(),
                                 .word_count = document.word_count()};
    });
  }
  for (const Document& document : corpus.documents) result.has_text &= document.has_text();
  progress("tokenize", count, count);
  return result;
}

}  // namespace detail

/// Encodes the documents, in parallel where the executor is; the result does not depend on it.
/// `tokenizer` may be null where all documents are ready ids. Throws DataError as
/// Tokenizer::encode does, naming the document, and Cancelled.
inline TokenizedCorpus tokenize(const Corpus& corpus, const Tokenizer* tokenizer,
                                ExecutorRef executor = {}, const Progress& progress = {}) {
  return detail::tokenize_with(
      corpus,
      [tokenizer](const Document& document, std::size_t) {
        return detail::ids_of(document, tokenizer);
      },
      executor, progress);
}

/// Throws DataError where a tokenizer of `tokenizer_size` learned tokens (those added later may be
/// unused) is larger than the model's vocabulary: it belongs to another model, whatever ids a text
/// happens to have.
inline void check_tokenizer_size(Index tokenizer_size, Index vocabulary_size,
                                 const std::string& where) {
  if (tokenizer_size <= vocabulary_size) return;
  throw DataError({.id = "corpus/vocabulary-too-large",
                   .where = where,
                   .what = "the tokenizer has more tokens than the model's vocabulary",
                   .expected = "at most " + std::to_string(vocabulary_size),
                   .found = std::to_string(tokenizer_size),
                   .mend = "use the tokenizer that belongs to the model"});
}

/// Throws DataError, naming document and position, where an id is not below `vocabulary_size`: a
/// tokenizer (or ready ids) that does not belong to the model.
inline void check_ids(const TokenizedCorpus& corpus, Index vocabulary_size) {
  for (const TokenizedDocument& document : corpus.documents) {
    const auto fault = std::find_if(document.ids.begin(), document.ids.end(),
                                    [&](TokenId id) { return id < 0 || id >= vocabulary_size; });
    if (fault == document.ids.end()) continue;
    throw DataError(
        {.id = "corpus/id-beyond-vocabulary",
         .where = document.source + ", token " + std::to_string(fault - document.ids.begin()),
         .what = "token id that the model does not have",
         .expected = "an id below " + std::to_string(vocabulary_size),
         .found = std::to_string(*fault),
         .mend = "use the tokenizer that belongs to the model"});
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
