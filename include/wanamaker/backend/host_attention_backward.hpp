// The backward pass of causal attention on the host: one key head of one sequence is one piece of
// work, by the panels of the forward pass, whose probabilities are computed again.
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>

#include "wanamaker/backend/attention.hpp"
#include "wanamaker/backend/host_attention_panels.hpp"
#include "wanamaker/backend/instruction_set.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace detail {

// One head of one sequence: q, dout, dq [n × w]; k, v, dk, dv [keys × w]. dq is overwritten, dk and
// dv are added to. The formulas are those of causal_attention_backward_generic.
template <class T>
struct AttendPanelsBackward {
  ConstMatrixView<T> q;
  ConstMatrixView<T> k;
  ConstMatrixView<T> v;
  ConstMatrixView<T> dout;
  MatrixView<T> dq;
  MatrixView<T> dk;
  MatrixView<T> dv;
  T scale;
  T* memory;  // (w + 2·keys) panels' rows

  template <int Bytes>
  WANAMAKER_KERNEL void operator()(std::integral_constant<int, Bytes>) const {
    using Panel = QueryPanel<T, Bytes>;
    for (Index first = 0; first < q.rows; first += Panel::width) run<Panel>(first);
  }

 private:
  template <class Panel>
  WANAMAKER_KERNEL void run(Index first) const {
    const Index count = std::min(Panel::width, q.rows - first);
    const Index own = first + k.rows - q.rows;
    const Index seen = own + count;
    T* p = memory + q.cols * Panel::width;
    T* ds = p + k.rows * Panel::width;
    T scales[static_cast<std::size_t>(Panel::width)];
    Panel::weigh(q, k, first, count, own, scale, memory, p, scales);
    Panel::pack(dout, first, count, T(1), memory);
    Panel::multiply(v, seen, memory, ds);
    softmax_backward<Panel>(p, seen, scales, ds);
    Panel::add_by_key(p, dout, first, count, seen, dv);
    Panel::add_by_key(ds, q, first, count, seen, dk);
    Panel::mix(ds, k, own, count, dq, first, [](Index) { return T(1); });
  }

  // p ← P = exponentials∘scales, ds ← scale·P∘(dP − Σ P∘dP) from dP; sums over the keys.
  template <class Panel>
  WANAMAKER_KERNEL void softmax_backward(T* p, Index seen, const T* scales, T* ds) const {
    T mean[static_cast<std::size_t>(Panel::width)] = {};
    for (Index j = 0; j < seen; ++j) {
      for (Index i = 0; i < Panel::width; ++i) {
        T& probability = p[j * Panel::width + i];
        probability *= scales[i];
        mean[i] += probability * ds[j * Panel::width + i];
      }
    }
    for (Index j = 0; j < seen; ++j) {
      for (Index i = 0; i < Panel::width; ++i) {
        T& d = ds[j * Panel::width + i];
        d = scale * p[j * Panel::width + i] * (d - mean[i]);
      }
    }
  }
};

// All query heads of key head `head` of a sequence.
template <class T, class Gradients>
void attend_backward(ConstMatrixView<T> q, ConstMatrixView<T> k, ConstMatrixView<T> v,
                     const Gradients& gradients, const AttentionSpan& span,
                     const AttentionShape& shape, Index key_head, T* memory) {
  const Index w = shape.head_width;
  const Index group = shape.heads / shape.key_heads;
  const auto keys = [&](auto m) {
    return m.middle_rows(span.key_begin, span.keys).middle_cols(key_head * w, w);
  };
  for (Index head = key_head * group; head < (key_head + 1) * group; ++head) {
    const auto queries = [&](auto m) {
      return m.middle_rows(span.query_begin, span.queries).middle_cols(head * w, w);
    };
    run_widest(AttendPanelsBackward<T>{queries(q), keys(k), keys(v), queries(gradients.dout),
                                       queries(gradients.dq), keys(gradients.dk),
                                       keys(gradients.dv), static_cast<T>(shape.scale), memory});
  }
}

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
