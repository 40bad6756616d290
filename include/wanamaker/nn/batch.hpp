// Ragged batches: sequences packed one after the other; no padding, no mask constants.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/backend/attention.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Token ids of one or more sequences, on the host and in the backend's memory. Sequence s is rows
/// offsets[s] … offsets[s + 1] − 1; its first token has position 0.
template <class B>
class PackedBatch {
 public:
  /// tokens [T]; offsets strictly increasing from 0 to T. Throws ShapeError otherwise.
  PackedBatch(B& backend, std::span<const TokenId> tokens, std::span<const Index> offsets)
      : host_tokens_(tokens.begin(), tokens.end()), offsets_(offsets.begin(), offsets.end()) {
    check_offsets();
    std::vector<TokenId> positions;
    positions.reserve(host_tokens_.size());
    for (std::size_t s = 0; s + 1 < offsets_.size(); ++s) {
      const Index length = offsets_[s + 1] - offsets_[s];
      spans_.push_back({offsets_[s], length, offsets_[s], length});
      longest_ = std::max(longest_, length);
      for (Index i = 0; i < length; ++i) positions.push_back(static_cast<TokenId>(i));
    }
    tokens_ = upload(backend, host_tokens_);
    positions_ = upload(backend, positions);
  }

  /// One sequence.
  PackedBatch(B& backend, std::span<const TokenId> tokens)
      : PackedBatch(backend, tokens, std::vector<Index>{0, static_cast<Index>(tokens.size())}) {}

  /// T: all tokens of all sequences.
  Index rows() const { return static_cast<Index>(host_tokens_.size()); }
  Index sequences() const { return static_cast<Index>(spans_.size()); }
  /// Tokens of the longest sequence.
  Index longest() const { return longest_; }
  std::span<const TokenId> host_tokens() const { return host_tokens_; }
  std::span<const Index> offsets() const { return offsets_; }
  std::span<const AttentionSpan> spans() const { return spans_; }
  ConstVectorView<TokenId> tokens() const { return {tokens_.data(), tokens_.size()}; }
  ConstVectorView<TokenId> positions() const { return {positions_.data(), positions_.size()}; }

 private:
  void check_offsets() const {
    bool valid = offsets_.size() >= 2 && offsets_.front() == 0 && offsets_.back() == rows();
    for (std::size_t s = 0; valid && s + 1 < offsets_.size(); ++s) {
      valid = offsets_[s] < offsets_[s + 1];
    }
    if (valid) return;
    throw ShapeError({.id = "shape/offsets",
                      .where = "PackedBatch",
                      .what = "sequence offsets do not cover the tokens",
                      .expected = "strictly increasing from 0 to " + std::to_string(rows()),
                      .found = std::to_string(offsets_.size()) + " offsets",
                      .mend = "leave empty sequences out and end with the number of tokens"});
  }

  static index_vector_t<B> upload(B& backend, const std::vector<TokenId>& values) {
    const Index n = static_cast<Index>(values.size());
    index_vector_t<B> memory = backend.template allocate<TokenId>(n);
    backend.copy_from_host(values.data(), n, memory.data());
    return memory;
  }

  std::vector<TokenId> host_tokens_;
  std::vector<Index> offsets_;
  std::vector<AttentionSpan> spans_;
  Index longest_ = 0;
  index_vector_t<B> tokens_;
  index_vector_t<B> positions_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
