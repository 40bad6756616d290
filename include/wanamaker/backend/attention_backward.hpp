// The backward pass of causal attention, in the blocks of its forward pass: probabilities are
// computed again, so that no [T × T] matrix exists.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "wanamaker/backend/attention.hpp"
#include "wanamaker/backend/backward_kernels.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What attention's gradient goes to and comes from; shapes as q, k, v and out.
template <class B>
struct AttentionGradients {
  const_matrix_view_t<B> dout;
  matrix_view_t<B> dq;
  matrix_view_t<B> dk;
  matrix_view_t<B> dv;
};

namespace detail {

/// One block of queries of one span: P and dP of all heads, one below the other.
template <class B>
class AttentionBackwardBlock {
 public:
  using T = scalar_t<B>;

  AttentionBackwardBlock(B& backend, const_matrix_view_t<B> q, const_matrix_view_t<B> k,
                         const_matrix_view_t<B> v, const AttentionGradients<B>& gradients,
                         const AttentionSpan& span, const AttentionShape& shape, Index first,
                         Index count)
      : backend_(backend),
        q_(q),
        k_(k),
        v_(v),
        gradients_(gradients),
        span_(span),
        shape_(shape),
        first_(first),
        count_(count),
        visible_(first + count + span.keys - span.queries) {}

  /// `memory` and `d_memory`: for the block's P and dP.
  void run(T* memory, T* d_memory) {
    p_ = {memory, shape_.heads * count_, visible_};
    dp_ = {d_memory, shape_.heads * count_, visible_};
    recompute_probabilities();
    multiply(shape_.heads, T(0), [&](Index head) -> Item {
      return {plain(queries(gradients_.dout, head)), transposed(keys(v_, head)), own(dp_, head)};
    });
    add_to_keys([&](Index head) -> Item {
      return {transposed(own(p_, head)), plain(queries(gradients_.dout, head)),
              keys(gradients_.dv, head)};
    });
    backend_.for_each_row(p_.rows,
                          kernels::SoftmaxBackwardRow<T>{p_, static_cast<T>(shape_.scale), dp_});
    multiply(shape_.heads, T(0), [&](Index head) -> Item {
      return {plain(own(dp_, head)), plain(keys(k_, head)), queries(gradients_.dq, head)};
    });
    add_to_keys([&](Index head) -> Item {
      return {transposed(own(dp_, head)), plain(queries(q_, head)), keys(gradients_.dk, head)};
    });
  }

 private:
  using Item = GemmItem<T>;

  void recompute_probabilities() {
    multiply(
        shape_.heads, T(0),
        [&](Index head) -> Item {
          return {plain(queries(q_, head)), transposed(keys(k_, head)), own(p_, head)};
        },
        static_cast<T>(shape_.scale));
    backend_.for_each_row(
        p_.rows, kernels::CausalSoftmaxRow<T>{p_, count_, first_, span_.keys - span_.queries,
                                              shape_.window});
  }

  // Products item(0) … item(n − 1), which go to different places.
  template <class MakeItem>
  void multiply(Index n, T beta, MakeItem&& item, T alpha = T(1)) {
    items_.clear();
    for (Index i = 0; i < n; ++i) items_.push_back(item(i));
    backend_.gemm_batched(std::span<const Item>(items_), alpha, beta);
  }

  // Adds item(head) of all heads. Those of one group add to the same key head: one after the other.
  template <class MakeItem>
  void add_to_keys(MakeItem&& item) {
    const Index group = shape_.heads / shape_.key_heads;
    for (Index member = 0; member < group; ++member) {
      multiply(shape_.key_heads, T(1),
               [&](Index key_head) { return item(key_head * group + member); });
    }
  }

  template <class View>
  View queries(View m, Index head) const {
    return m.middle_rows(span_.query_begin + first_, count_)
        .middle_cols(head * shape_.head_width, shape_.head_width);
  }
  template <class View>
  View keys(View m, Index head) const {
    const Index key_head = head / (shape_.heads / shape_.key_heads);
    return m.middle_rows(span_.key_begin, visible_)
        .middle_cols(key_head * shape_.head_width, shape_.head_width);
  }
  matrix_view_t<B> own(matrix_view_t<B> all, Index head) const {
    return all.middle_rows(head * count_, count_);
  }

  B& backend_;
  const_matrix_view_t<B> q_, k_, v_;
  const AttentionGradients<B>& gradients_;
  const AttentionSpan& span_;
  const AttentionShape& shape_;
  Index first_, count_, visible_;
  matrix_view_t<B> p_{}, dp_{};
  std::vector<Item> items_{};
};

}  // namespace detail

/// Of out = attention(q, k, v), by blocks of 64 queries, with P = softmax(scale·q·kᵀ):
/// dv += Pᵀ·dout, dS = scale·P∘(dP − Σ P∘dP) with dP = dout·vᵀ, dq = dS·k, dk += dSᵀ·q. Key heads
/// gather from all query heads of their group, in order. dq, dk and dv, 0 before, are added to.
template <class B>
void causal_attention_backward_generic(B& backend, const_matrix_view_t<B> q,
                                       const_matrix_view_t<B> k, const_matrix_view_t<B> v,
                                       std::span<const AttentionSpan> spans,
                                       const AttentionShape& shape,
                                       const AttentionGradients<B>& gradients,
                                       Workspace<B>& workspace) {
  using T = scalar_t<B>;
  const typename Workspace<B>::Frame frame(workspace);
  const Index largest = detail::largest_score_block(spans, shape.heads);
  T* memory = workspace.template vector<T>(largest).data;
  T* d_memory = workspace.template vector<T>(largest).data;
  for (const AttentionSpan& span : spans) {
    for (Index first = 0; first < span.queries; first += detail::attention_block_rows) {
      const Index count = std::min(detail::attention_block_rows, span.queries - first);
      detail::AttentionBackwardBlock<B>(backend, q, k, v, gradients, span, shape, first, count)
          .run(memory, d_memory);
    }
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
