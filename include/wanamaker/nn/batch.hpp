// Ragged batches: sequences packed one after the other; no padding, no mask constants.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/backend/attention.hpp"
#include "wanamaker/nn/key_value_cache.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Token ids of one or more sequences, on the host and in the backend's memory. Sequence s is rows
/// offsets[s] … offsets[s + 1] − 1; its first token has position 0, or, with a cache, the position
/// after those that the cache has of it.
template <class B>
class PackedBatch {
 public:
  /// No tokens, until some are assigned; not to be run.
  PackedBatch() = default;
  /// tokens [T]; offsets strictly increasing from 0 to T. Throws ShapeError otherwise.
  PackedBatch(B& backend, std::span<const TokenId> tokens, std::span<const Index> offsets) {
    assign(backend, tokens, offsets, nullptr, {});
  }
  /// One sequence.
  PackedBatch(B& backend, std::span<const TokenId> tokens)
      : PackedBatch(backend, tokens, std::vector<Index>{0, static_cast<Index>(tokens.size())}) {}

  /// Tokens that follow what the cache holds: the batch's sequence s goes on with the cache's
  /// sequence sequences[s]. The cache must outlive the batch; a forward pass adds the tokens to it.
  /// Throws ShapeError for sequences that the cache has not or that are named twice, ProtocolError
  /// where one is longer than the cache's capacity.
  PackedBatch(B& backend, std::span<const TokenId> tokens, std::span<const Index> offsets,
              KeyValueCache<B>& cache, std::span<const Index> sequences) {
    assign(backend, tokens, offsets, &cache, sequences);
  }
  /// One sequence, the cache's first.
  PackedBatch(B& backend, std::span<const TokenId> tokens, KeyValueCache<B>& cache) {
    assign(backend, tokens, cache);
  }

  /// Becomes the batch that the last constructor makes, in the memory that is there where that
  /// suffices.
  void assign(B& backend, std::span<const TokenId> tokens, KeyValueCache<B>& cache) {
    const Index offsets[] = {0, static_cast<Index>(tokens.size())};
    const Index first[] = {0};
    assign(backend, tokens, offsets, &cache, first);
  }

  /// T: all tokens of all sequences.
  Index rows() const { return static_cast<Index>(host_tokens_.size()); }
  Index sequences() const { return static_cast<Index>(spans_.size()); }
  /// Tokens of the longest sequence, those that the cache has of it included.
  Index longest() const { return longest_; }
  std::span<const TokenId> host_tokens() const { return host_tokens_; }
  std::span<const Index> offsets() const { return offsets_; }
  /// Where queries are among the batch's rows, and keys among those or the cache's.
  std::span<const AttentionSpan> spans() const { return spans_; }
  ConstVectorView<TokenId> tokens() const { return {tokens_.data(), rows()}; }
  ConstVectorView<TokenId> positions() const { return {positions_.data(), rows()}; }

  /// Keys and values that the batch's queries see.
  struct Memory {
    const_matrix_view_t<B> keys;
    const_matrix_view_t<B> values;
  };

  /// The batch's own k, v [T × key width] of a layer, or, with a cache, all that it has after they
  /// were added. Throws what KeyValueCache::append throws.
  Memory memory(B& backend, Index layer, const_matrix_view_t<B> k, const_matrix_view_t<B> v) const {
    if (cache_ == nullptr) return {k, v};
    cache_->append(backend, layer, extensions_, {cache_rows_.data(), rows()}, k, v);
    return {cache_->keys(layer), cache_->values(layer)};
  }

 private:
  using Extension = typename KeyValueCache<B>::Extension;

  void assign(B& backend, std::span<const TokenId> tokens, std::span<const Index> offsets,
              KeyValueCache<B>* cache, std::span<const Index> sequences) {
    check_offsets(offsets, static_cast<Index>(tokens.size()));
    if (cache != nullptr) extensions_ = extensions_of(*cache, offsets, sequences);
    cache_ = cache;
    host_tokens_.assign(tokens.begin(), tokens.end());
    offsets_.assign(offsets.begin(), offsets.end());
    upload(backend, host_tokens_, tokens_);
    set_spans(backend);
  }

  static void check_offsets(std::span<const Index> offsets, Index rows) {
    bool valid = offsets.size() >= 2 && offsets.front() == 0 && offsets.back() == rows;
    for (std::size_t s = 0; valid && s + 1 < offsets.size(); ++s) {
      valid = offsets[s] < offsets[s + 1];
    }
    if (valid) return;
    throw ShapeError({.id = "shape/offsets",
                      .where = "PackedBatch",
                      .what = "sequence offsets do not cover the tokens",
                      .expected = "strictly increasing from 0 to " + std::to_string(rows),
                      .found = std::to_string(offsets.size()) + " offsets",
                      .mend = "leave empty sequences out and end with the number of tokens"});
  }

  // Which part of the cache every sequence goes on with.
  static std::vector<Extension> extensions_of(const KeyValueCache<B>& cache,
                                              std::span<const Index> offsets,
                                              std::span<const Index> sequences) {
    check_named_once(sequences, offsets.size() - 1);
    std::vector<Extension> extensions;
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      const Index past = cache.length(sequences[s]);
      const Index length = past + offsets[s + 1] - offsets[s];
      if (length > cache.capacity()) throw_full(sequences[s], length, cache.capacity());
      extensions.push_back({sequences[s], past, length});
    }
    return extensions;
  }

  // Positions, spans and rows of the cache, from offsets and extensions.
  void set_spans(B& backend) {
    std::vector<TokenId> positions;
    std::vector<TokenId> cache_rows;
    spans_.clear();
    longest_ = 0;
    for (std::size_t s = 0; s + 1 < offsets_.size(); ++s) {
      const Index begin = offsets_[s];
      const Index count = offsets_[s + 1] - begin;
      const Index past = cache_ == nullptr ? 0 : extensions_[s].past;
      const Index first_key =
          cache_ == nullptr ? begin : extensions_[s].sequence * cache_->capacity();
      spans_.push_back({begin, count, first_key, past + count});
      longest_ = std::max(longest_, past + count);
      for (Index i = past; i < past + count; ++i) {
        positions.push_back(static_cast<TokenId>(i));
        if (cache_ != nullptr) cache_rows.push_back(static_cast<TokenId>(first_key + i));
      }
    }
    upload(backend, positions, positions_);
    upload(backend, cache_rows, cache_rows_);
  }

  static void check_named_once(std::span<const Index> sequences, std::size_t expected) {
    std::vector<Index> sorted(sequences.begin(), sequences.end());
    std::sort(sorted.begin(), sorted.end());
    const bool once = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    if (once && sequences.size() == expected) return;
    throw ShapeError({.id = "shape/cache-sequence",
                      .where = "PackedBatch",
                      .what = "the sequences do not name each a sequence of the cache",
                      .expected = std::to_string(expected) + " different ones",
                      .found = std::to_string(sequences.size()) + (once ? "" : ", one twice"),
                      .mend = "name one sequence of the cache for each of the batch"});
  }

  [[noreturn]] static void throw_full(Index sequence, Index length, Index capacity) {
    throw ProtocolError({.id = "protocol/cache-full",
                         .where = "PackedBatch, sequence " + std::to_string(sequence),
                         .what = "the cache has no room for the tokens",
                         .expected = "at most " + std::to_string(capacity),
                         .found = std::to_string(length),
                         .mend = "make the cache with a larger capacity"});
  }

  static void upload(B& backend, const std::vector<TokenId>& values, index_vector_t<B>& memory) {
    const Index n = static_cast<Index>(values.size());
    if (memory.size() < n) memory = backend.template allocate<TokenId>(n);
    if (n > 0) backend.copy_from_host(values.data(), n, memory.data());
  }

  KeyValueCache<B>* cache_ = nullptr;
  std::vector<TokenId> host_tokens_;
  std::vector<Index> offsets_;
  std::vector<AttentionSpan> spans_;
  std::vector<Extension> extensions_;
  Index longest_ = 0;
  index_vector_t<B> tokens_{};
  index_vector_t<B> positions_{};
  index_vector_t<B> cache_rows_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
