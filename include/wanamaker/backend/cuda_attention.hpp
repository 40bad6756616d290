// Causal attention in one kernel for each sequence: scores exist a tile at a time, in the memory
// that a block's threads share.
#pragma once

#include "wanamaker/backend/attention.hpp"
#include "wanamaker/backend/cuda_launch.hpp"
#include "wanamaker/core/math.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace kernels {

/// out[i, head] = Σ_j softmax_j(scale·q_i·k_j) v_j of one sequence, for four queries of one head at
/// a time: the team goes through the keys that they see in tiles of one key a member. Maxima and
/// sums are carried from tile to tile (Milakov & Gimelshein 2018; Dao et al. 2022).
template <class T>
struct AttentionTileRow {
  static constexpr int queries = 4;

  ConstMatrixView<T> q;  // [queries × heads·head_width]
  ConstMatrixView<T> k;  // [keys × key_heads·head_width]
  ConstMatrixView<T> v;  // as k
  MatrixView<T> out;     // as q
  Index heads, head_width;
  Index group;   // heads that share a key head
  Index past;    // query i sees keys up to i + past
  Index window;  // keys a query sees at most; 0: all
  T scale;

  /// Of one query: whether a key was seen, the largest score so far, the sum of e^(score −
  /// largest), and what the sums before shrink by when a larger one comes; 0 where there are none.
  struct Running {
    bool has_seen;
    T top;
    T total;
    T shrink;
  };

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index row, const RowTeam& team) const {
    const Index head = row % heads;
    const Index first = row / heads * queries;
    const int count = static_cast<int>(q.rows - first < queries ? q.rows - first : queries);
    const Index end = first + count + past;
    T* scores = team.template shared<T, queries>();
    Running running[queries];
    for (int r = 0; r < count; ++r) running[r] = {false, T(0), T(0), T(0)};
    for (Index key = lowest(first); key < end; key += team.members()) {
      const int keys = static_cast<int>(end - key < team.members() ? end - key : team.members());
      team.each(keys, [&](Index t) { score(scores, team.members(), head, first, count, key, t); });
      for (int r = 0; r < count; ++r) {
        raise(running[r], scores + r * team.members(), first + r, key, keys);
      }
      team.each(keys,
                [&](Index t) { weigh(scores, team.members(), running, first, count, key, t); });
      for (int r = 0; r < count; ++r) {
        add_total(running[r], scores + r * team.members(), keys);
      }
      team.each(head_width, [&](Index c) {
        mix(scores, team.members(), running, head, first, count, key, keys, c);
      });
    }
    team.each(head_width, [&](Index c) {
      for (int r = 0; r < count; ++r) out(first + r, head * head_width + c) /= running[r].total;
    });
  }

 private:
  WANAMAKER_KERNEL Index lowest(Index query) const {
    const Index last = query + past;
    return window > 0 && last + 1 > window ? last + 1 - window : 0;
  }
  WANAMAKER_KERNEL bool sees(Index query, Index key) const {
    return key >= lowest(query) && key <= query + past;
  }

  // Key t of a tile against all queries.
  WANAMAKER_KERNEL void score(T* scores, Index members, Index head, Index first, int count,
                              Index key, Index t) const {
    const T* with = k.row(key + t) + head / group * head_width;
    const T* own = q.row(first) + head * head_width;
    T sums[queries] = {};
    for (Index c = 0; c < head_width; ++c) {
      for (int r = 0; r < count; ++r) sums[r] += own[r * q.stride + c] * with[c];
    }
    for (int r = 0; r < count; ++r) scores[r * members + t] = scale * sums[r];
  }

  // A query's largest score, this tile's included; NaN stays. Every member finds it for itself.
  WANAMAKER_KERNEL void raise(Running& own, const T* scores, Index query, Index key,
                              int keys) const {
    const Running before = own;
    for (int t = 0; t < keys; ++t) {
      if (!sees(query, key + t)) continue;
      own.top = own.has_seen && !(own.top < scores[t]) ? own.top : scores[t];
      own.has_seen = true;
    }
    own.shrink = before.has_seen ? exponential_of_nonpositive(before.top - own.top) : T(0);
  }

  // Scores of a tile become e^(score − largest), 0 where the query does not see the key.
  WANAMAKER_KERNEL void weigh(T* scores, Index members, const Running* running, Index first,
                              int count, Index key, Index t) const {
    for (int r = 0; r < count; ++r) {
      T& own = scores[r * members + t];
      own = sees(first + r, key + t) ? exponential_of_nonpositive(own - running[r].top) : T(0);
    }
  }

  WANAMAKER_KERNEL static void add_total(Running& own, const T* weights, int keys) {
    T sum = 0;
    for (int t = 0; t < keys; ++t) sum += weights[t];
    own.total = own.total * own.shrink + sum;
  }

  // Column c of the mixtures: what there is, shrunk, and this tile's.
  WANAMAKER_KERNEL void mix(const T* weights, Index members, const Running* running, Index head,
                            Index first, int count, Index key, int keys, Index c) const {
    const T* values = v.row(key) + head / group * head_width + c;
    T sums[queries] = {};
    for (int t = 0; t < keys; ++t) {
      const T value = values[t * v.stride];
      for (int r = 0; r < count; ++r) sums[r] += weights[r * members + t] * value;
    }
    for (int r = 0; r < count; ++r) {
      T& to = out(first + r, head * head_width + c);
      to = running[r].shrink == T(0) ? sums[r] : running[r].shrink * to + sums[r];
    }
  }
};

}  // namespace kernels

namespace detail {

/// The kernel over one sequence of a batch.
template <class T>
kernels::AttentionTileRow<T> attention_tiles(ConstMatrixView<T> q, ConstMatrixView<T> k,
                                             ConstMatrixView<T> v, MatrixView<T> out,
                                             const AttentionSpan& span,
                                             const AttentionShape& shape) {
  return {q.middle_rows(span.query_begin, span.queries),
          k.middle_rows(span.key_begin, span.keys),
          v.middle_rows(span.key_begin, span.keys),
          out.middle_rows(span.query_begin, span.queries),
          shape.heads,
          shape.head_width,
          shape.heads / shape.key_heads,
          span.keys - span.queries,
          shape.window,
          static_cast<T>(shape.scale)};
}

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
