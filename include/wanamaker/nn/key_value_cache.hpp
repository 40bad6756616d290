// Keys and values of tokens that were already run, so that a sequence goes on at the cost of its
// further tokens alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/backend/generic.hpp"
#include "wanamaker/nn/config.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Keys, already rotated, and values of every layer for some sequences: sequence s has the rows
/// s·capacity … s·capacity + length(s) − 1 of each layer's matrices. A PackedBatch made with a
/// cache goes on where its sequences end. Belongs to one model with one choice of policies. A
/// sliding window limits what is looked at, not what is kept.
template <class B>
class KeyValueCache {
 public:
  using Matrix = matrix_view_t<B>;

  /// Room for `capacity` tokens in each of `sequences` sequences. Throws ShapeError where there is
  /// none, or where rows cannot be numbered in 31 bits.
  KeyValueCache(B& backend, const ModelConfig& config, Index sequences, Index capacity)
      : capacity_(capacity) {
    check_room(sequences, capacity);
    lengths_.resize(static_cast<std::size_t>(sequences));
    const Index width = config.key_heads * config.head_width;
    for (Index layer = 0; layer < config.layers; ++layer) {
      keys_.push_back(make_matrix(backend, sequences * capacity, width));
      values_.push_back(make_matrix(backend, sequences * capacity, width));
    }
  }

  Index sequences() const { return static_cast<Index>(lengths_.size()); }
  Index layers() const { return static_cast<Index>(keys_.size()); }
  /// Tokens that each sequence has room for.
  Index capacity() const { return capacity_; }
  /// Tokens of a sequence that all layers have. Throws ShapeError for a sequence that is not there.
  Index length(Index sequence) const {
    check_sequence(sequence);
    return lengths_[static_cast<std::size_t>(sequence)];
  }
  /// Bytes of all keys and values: 2 · layers · sequences · capacity · key width · sizeof(Scalar).
  std::size_t bytes() const {
    std::size_t elements = 0;
    for (const matrix_t<B>& keys : keys_) elements += static_cast<std::size_t>(keys.size());
    return 2 * elements * sizeof(scalar_t<B>);
  }

  /// Forgets a sequence's tokens from position `length` on; it goes on from there. Throws
  /// ShapeError where it has not so many.
  void truncate(Index sequence, Index length) {
    const Index present = this->length(sequence);
    if (length < 0 || length > present) throw_no_tokens(sequence, length, present);
    lengths_[static_cast<std::size_t>(sequence)] = length;
  }

  /// [sequences·capacity × key width]; rows beyond a sequence's length are unspecified. Throw
  /// ShapeError for a layer that is not there.
  Matrix keys(Index layer) {
    check_layer(layer);
    return keys_[static_cast<std::size_t>(layer)].view();
  }
  Matrix values(Index layer) {
    check_layer(layer);
    return values_[static_cast<std::size_t>(layer)].view();
  }

  /// What attention tells of a batch: which sequences, and the lengths that they had and will have.
  struct Extension {
    Index sequence = 0;
    Index past = 0;
    Index length = 0;
  };

  /// keys[rows] ← k, values[rows] ← v for one layer; k, v [T × key width], rows [T] in the
  /// backend's memory. The last layer's rows complete the tokens: lengths move on. The same batch
  /// may be run again. Throws ProtocolError where tokens before it were truncated away.
  void append(B& backend, Index layer, std::span<const Extension> extensions,
              ConstVectorView<TokenId> rows, const_matrix_view_t<B> k, const_matrix_view_t<B> v) {
    for (const Extension& e : extensions) {
      if (e.past > length(e.sequence)) throw_gap(e);
    }
    ops::scatter_rows<B>(backend, k, rows, keys(layer));
    ops::scatter_rows<B>(backend, v, rows, values(layer));
    if (layer + 1 < layers()) return;
    for (const Extension& e : extensions) lengths_[static_cast<std::size_t>(e.sequence)] = e.length;
  }

 private:
  static void check_room(Index sequences, Index capacity) {
    constexpr Index most = std::numeric_limits<TokenId>::max();
    if (sequences > 0 && capacity > 0 && capacity <= most / sequences) return;
    throw ShapeError({.id = "shape/cache",
                      .where = "KeyValueCache",
                      .what = "impossible number of rows",
                      .expected = "at least one sequence and one token, at most " +
                                  std::to_string(most) + " tokens together",
                      .found = std::to_string(sequences) + " sequences of " +
                               std::to_string(capacity) + " tokens",
                      .mend = "use fewer sequences, or a smaller capacity"});
  }

  void check_sequence(Index sequence) const {
    if (sequence >= 0 && sequence < sequences()) return;
    throw ShapeError({.id = "shape/cache-sequence",
                      .where = "KeyValueCache",
                      .what = "the cache has no such sequence",
                      .expected = "0 to " + std::to_string(sequences() - 1),
                      .found = std::to_string(sequence),
                      .mend = "make the cache for more sequences"});
  }

  void check_layer(Index layer) const {
    if (layer >= 0 && layer < layers()) return;
    throw ShapeError({.id = "shape/layer",
                      .where = "KeyValueCache",
                      .what = "the cache has no such layer",
                      .expected = "0 to " + std::to_string(layers() - 1),
                      .found = std::to_string(layer),
                      .mend = "make the cache from the config of the model that is run"});
  }

  [[noreturn]] static void throw_no_tokens(Index sequence, Index length, Index present) {
    throw ShapeError({.id = "shape/cache-length",
                      .where = "KeyValueCache::truncate, sequence " + std::to_string(sequence),
                      .what = "the sequence has not so many tokens",
                      .expected = "0 to " + std::to_string(present),
                      .found = std::to_string(length),
                      .mend = "truncate to a length that the sequence has had"});
  }

  [[noreturn]] void throw_gap(const Extension& e) const {
    throw ProtocolError({.id = "protocol/cache-gap",
                         .where = "KeyValueCache, sequence " + std::to_string(e.sequence),
                         .what = "tokens before the batch are not in the cache",
                         .expected = std::to_string(e.past) + " tokens",
                         .found = std::to_string(length(e.sequence)),
                         .mend = "make the batch after the cache was truncated, and run batches in "
                                 "the order in which they were made"});
  }

  Index capacity_;
  std::vector<Index> lengths_;
  std::vector<matrix_t<B>> keys_;
  std::vector<matrix_t<B>> values_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
