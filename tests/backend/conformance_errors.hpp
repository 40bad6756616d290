// Wrong shapes, each call with one thing wrong, and the ids of the errors that they give.
#pragma once

#include <string>

#include "backend/host_matrix.hpp"
#include "wanamaker/backend/generic.hpp"

namespace wanamaker_test::conformance {

using namespace wanamaker;

/// Views of any shape over one small piece of memory: nothing is computed where a shape is wrong.
template <class B>
class Shapes {
 public:
  using S = scalar_t<B>;

  explicit Shapes(B& backend)
      : memory_(make_matrix(backend, 12, 12)),
        index_(backend.template allocate<TokenId>(12)),
        wide_(backend.template allocate<double>(40)) {}

  MatrixView<S> matrix(Index rows, Index cols) { return {memory_.data(), rows, cols}; }
  VectorView<S> vector(Index n) { return {memory_.data(), n}; }
  ConstVectorView<TokenId> ids(Index n) { return {index_.data(), n}; }
  MatrixView<double> wide(Index rows, Index cols) { return {wide_.data(), rows, cols}; }
  VectorView<double> losses(Index n) { return {wide_.data(), n}; }

 private:
  matrix_t<B> memory_;
  index_vector_t<B> index_;
  buffer_t<B, double> wide_;
};

template <Backend B>
void wrong_products(B& b) {
  using S = scalar_t<B>;
  Shapes<B> s(b);
  const auto m = [&](Index rows, Index cols) { return s.matrix(rows, cols); };
  const auto gemm = [&](Operand<S> left, Operand<S> right, MatrixView<S> c) {
    return error_id([&] { b.gemm(left, right, S(1), S(0), c); });
  };
  const std::string id = "shape/product";
  CHECK(gemm(plain(m(2, 3)), plain(m(3, 5)), m(2, 5)) == "");
  CHECK(gemm(plain(m(2, 3)), plain(m(4, 5)), m(2, 5)) == id);
  CHECK(gemm(plain(m(2, 3)), plain(m(3, 5)), m(5, 2)) == id);
  CHECK(gemm(transposed(m(3, 2)), plain(m(3, 5)), m(3, 5)) == id);
  CHECK(gemm(plain(m(2, 3)), transposed(m(3, 5)), m(2, 5)) == id);
  const std::vector<GemmItem<S>> items{{plain(m(2, 3)), plain(m(3, 5)), m(5, 2)}};
  const std::span<const GemmItem<S>> batch(items);
  CHECK(error_id([&] { b.gemm_batched(batch, S(1), S(0)); }) == id);
  const auto gram = [&](Index x_rows, Index y_rows, Index c_rows) {
    return error_id(
        [&] { b.gram(m(x_rows, 2), m(y_rows, 3), s.wide(c_rows, 3), GramPrecision::exact); });
  };
  CHECK(gram(4, 4, 2) == "");
  CHECK(gram(4, 4, 3) == id);
  CHECK(gram(4, 3, 2) == id);
}

template <Backend B>
void wrong_rows(B& b) {
  Shapes<B> s(b);
  const auto m = [&](Index rows, Index cols) { return s.matrix(rows, cols); };
  const auto v = [&](Index n) { return s.vector(n); };
  const std::string shape = "shape/matrix", size = "shape/vector";
  const auto linear = [&](Index bias, Index cols) {
    return error_id([&] { ops::linear<B>(b, m(2, 3), plain(m(3, 4)), v(bias), m(2, cols)); });
  };
  CHECK(linear(4, 4) == "");
  CHECK(linear(4, 5) == "shape/product");
  CHECK(linear(3, 4) == size);
  const auto layer = [&](Index gain, Index bias, Index cols) {
    return error_id([&] { ops::layer_norm<B>(b, m(2, 3), v(gain), v(bias), 1, m(2, cols)); });
  };
  CHECK(layer(3, 3, 3) == "");
  CHECK(layer(3, 3, 2) == shape);
  CHECK(layer(2, 3, 3) == size);
  CHECK(layer(3, 2, 3) == size);
  CHECK(error_id([&] { ops::rms_norm<B>(b, m(2, 3), v(2), 1, m(2, 3)); }) == size);
  CHECK(error_id([&] { ops::rms_norm<B>(b, m(2, 3), v(3), 1, m(2, 4)); }) == shape);
  const auto gated = [&](Index gate, Index up) {
    return error_id([&] { ops::gated_product<B>(b, m(2, gate), m(2, up), Silu{}, m(2, 3)); });
  };
  CHECK(gated(3, 2) == shape);
  CHECK(gated(2, 3) == shape);
  CHECK(error_id([&] { ops::add<B>(b, m(2, 3), m(2, 2), m(2, 3)); }) == shape);
  CHECK(error_id([&] { ops::add<B>(b, m(3, 3), m(2, 3), m(2, 3)); }) == shape);
  CHECK(error_id([&] { ops::copy(b, m(2, 3), m(2, 2)); }) == shape);
  CHECK(error_id([&] { ops::broadcast_rows<B>(b, v(2), m(2, 3)); }) == size);
}

template <Backend B>
void wrong_indices(B& b) {
  Shapes<B> s(b);
  const auto m = [&](Index rows, Index cols) { return s.matrix(rows, cols); };
  const std::string shape = "shape/matrix", size = "shape/vector";
  CHECK(error_id([&] { ops::gather_rows(b, m(4, 3), s.ids(3), m(2, 3)); }) == size);
  CHECK(error_id([&] { ops::gather_rows(b, m(4, 3), s.ids(2), m(2, 4)); }) == shape);
  CHECK(error_id([&] { ops::gather_add_rows(b, m(4, 3), s.ids(2), m(2, 4)); }) == shape);
  CHECK(error_id([&] { ops::scatter_rows<B>(b, m(2, 3), s.ids(2), m(4, 4)); }) == shape);
  CHECK(error_id([&] { ops::scatter_rows<B>(b, m(2, 3), s.ids(3), m(4, 3)); }) == size);
  const auto rotate = [&](Index pairs, Index sine_pairs, Index positions, Index heads) {
    return error_id([&] {
      ops::rotate_positions<B>(b, m(4, pairs), m(4, sine_pairs), s.ids(positions), heads, m(2, 6));
    });
  };
  CHECK(rotate(1, 1, 2, 3) == "");
  CHECK(rotate(1, 1, 3, 3) == size);
  CHECK(rotate(1, 2, 2, 3) == shape);
  CHECK(rotate(1, 1, 2, 4) == shape);
  CHECK(rotate(1, 1, 2, 0) == shape);
  CHECK(rotate(2, 2, 2, 3) == "shape/rotary");
}

template <Backend B>
void wrong_attention(B& b) {
  Shapes<B> s(b);
  Workspace<B> workspace(b);
  const auto attend = [&](AttentionShape heads, AttentionSpan span, Index key_cols) {
    const std::vector<AttentionSpan> spans{span};
    return error_id([&] {
      ops::causal_attention<B>(b, s.matrix(3, 4), s.matrix(5, key_cols), s.matrix(5, key_cols),
                               spans, heads, s.matrix(3, 4), workspace);
    });
  };
  CHECK(attend({2, 1, 2, 1, 0}, {0, 3, 0, 5}, 2) == "");
  CHECK(attend({2, 1, 2, 1, 0}, {0, 3, 0, 5}, 4) == "shape/matrix");
  CHECK(attend({4, 1, 2, 1, 0}, {0, 3, 0, 5}, 2) == "shape/matrix");
  const std::string id = "shape/attention";
  CHECK(attend({2, 1, 2, 1, 0}, {1, 3, 0, 5}, 2) == id);
  CHECK(attend({2, 1, 2, 1, 0}, {0, 3, 1, 5}, 2) == id);
  CHECK(attend({2, 1, 2, 1, 0}, {0, 3, 0, 2}, 2) == id);
  CHECK(attend({2, 1, 2, 1, 0}, {-1, 1, 0, 2}, 2) == id);
  CHECK(attend({2, 1, 2, 1, -1}, {0, 3, 0, 5}, 2) == id);
  CHECK(attend({4, 3, 1, 1, 0}, {0, 3, 0, 5}, 3) == id);
  const auto lose = [&](Index targets, Index vocabulary, Index rows) {
    return error_id(
        [&] { ops::token_loss<B>(b, s.matrix(2, 3), s.ids(targets), vocabulary, s.losses(rows)); });
  };
  CHECK(lose(2, 3, 2) == "");
  CHECK(lose(1, 3, 2) == "shape/vector");
  CHECK(lose(2, 3, 1) == "shape/vector");
  CHECK(lose(2, 4, 2) == "shape/vocabulary");
  CHECK(lose(2, 0, 2) == "shape/vocabulary");
  const auto lose_at_head = [&](Index bias, Index targets, Index vocabulary, Index rows) {
    return error_id([&] {
      ops::linear_token_loss<B>(b, s.matrix(2, 3), plain(s.matrix(3, 4)), s.vector(bias),
                                s.ids(targets), vocabulary, s.losses(rows), workspace);
    });
  };
  CHECK(lose_at_head(4, 2, 4, 2) == "");
  CHECK(lose_at_head(3, 2, 4, 2) == "shape/vector");
  CHECK(lose_at_head(4, 1, 4, 2) == "shape/vector");
  CHECK(lose_at_head(4, 2, 4, 1) == "shape/vector");
  CHECK(lose_at_head(4, 2, 5, 2) == "shape/vocabulary");
  const auto rank = [&](Index targets, Index vocabulary, Index rows) {
    return error_id([&] {
      ops::target_rank<B>(b, s.matrix(2, 3), s.ids(targets), vocabulary, s.losses(rows));
    });
  };
  CHECK(rank(2, 3, 2) == "");
  CHECK(rank(1, 3, 2) == "shape/vector");
  CHECK(rank(2, 3, 1) == "shape/vector");
  CHECK(rank(2, 4, 2) == "shape/vocabulary");
}

}  // namespace wanamaker_test::conformance
