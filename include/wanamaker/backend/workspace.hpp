// Scratch memory for one thread of computation: a stack of views that grows to the largest need
// once and allocates nothing afterwards.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/backend/row_stride.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Hands out uninitialised views; they live until the enclosing `Frame` ends. Not thread-safe.
template <class B>
class Workspace {
 public:
  /// The backend must outlive the workspace.
  explicit Workspace(B& backend) : backend_(&backend) {}

  /// Views taken after a Frame's construction are given back when it ends.
  class Frame {
   public:
    explicit Frame(Workspace& workspace)
        : workspace_(workspace), chunk_(workspace.chunk_), used_(workspace.used_) {}
    ~Frame() { workspace_.release(chunk_, used_); }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Workspace& workspace_;
    std::size_t chunk_;
    std::size_t used_;
  };

  /// [rows × cols] of the backend's scalar; rows may lie apart (padded_row_stride).
  matrix_view_t<B> matrix(Index rows, Index cols) {
    const Index stride = rows > 1 ? detail::padded_row_stride<scalar_t<B>>(cols) : cols;
    return {vector<scalar_t<B>>(rows * stride).data, rows, cols, stride};
  }

  /// n elements of T.
  template <class T>
  VectorView<T> vector(Index n) {
    const std::size_t bytes = (static_cast<std::size_t>(n) * sizeof(T) + 63) / 64 * 64;
    return {static_cast<T*>(take(bytes)), n};
  }

  /// Holds at least `bytes` in one piece, so that needs up to that allocate nothing later. Nothing
  /// may be in use.
  void reserve(std::size_t bytes) {
    if (chunks_.empty() || size_of(0) < bytes) grow(0, bytes);
  }

  /// Bytes held, the most that was ever needed at once included.
  std::size_t capacity_bytes() const {
    std::size_t total = 0;
    for (const Chunk& chunk : chunks_) total += static_cast<std::size_t>(chunk.size());
    return total;
  }

 private:
  using Chunk = buffer_t<B, std::byte>;

  void* take(std::size_t bytes) {
    const std::size_t first_free = chunk_ + (used_ > 0 ? 1 : 0);
    while (chunk_ < chunks_.size() && used_ + bytes > size_of(chunk_)) {
      ++chunk_;
      used_ = 0;
    }
    if (chunk_ == chunks_.size()) grow(first_free, bytes);
    void* memory = chunks_[chunk_].data() + used_;
    used_ += bytes;
    return memory;
  }

  // Chunks from `first_free` on hold nothing and are too small: one larger takes their place, so
  // that needs growing step by step do not add up.
  void grow(std::size_t first_free, std::size_t bytes) {
    constexpr std::size_t smallest = std::size_t{1} << 20;
    chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(std::min(first_free, chunk_)),
                  chunks_.end());
    chunk_ = chunks_.size();
    chunks_.push_back(
        backend_->template allocate<std::byte>(static_cast<Index>(std::max(bytes, smallest))));
  }

  void release(std::size_t chunk, std::size_t used) {
    chunk_ = chunk;
    used_ = used;
  }

  std::size_t size_of(std::size_t chunk) const {
    return static_cast<std::size_t>(chunks_[chunk].size());
  }

  B* backend_;
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0;
  std::size_t used_ = 0;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
