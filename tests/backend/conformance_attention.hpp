// Causal attention and losses per token.
#pragma once

#include "backend/conformance_rows.hpp"
#include "wanamaker/backend/backward.hpp"

namespace wanamaker_test::conformance {

using namespace wanamaker;

struct AttentionCase {
  AttentionShape shape;
  std::vector<AttentionSpan> spans;
  double spread = 1;
};

inline std::vector<AttentionCase> attention_cases() {
  // Packed sequences of one, a few, a block of 64 less and more one, and more than two blocks.
  const std::vector<AttentionSpan> packed{{0, 1, 0, 1},       {1, 5, 1, 5},
                                          {6, 63, 6, 63},     {69, 64, 69, 64},
                                          {133, 65, 133, 65}, {198, 130, 198, 130}};
  // More keys than queries, as with a cache of past keys; not in order, and with rows between.
  const std::vector<AttentionSpan> past{{70, 1, 0, 100}, {0, 70, 100, 140}, {72, 3, 241, 3}};
  return {
      {{4, 4, 8, 0.35, 0}, packed},    {{6, 2, 5, 0.45, 0}, past},
      {{3, 1, 7, 1.0, 1}, packed},     {{4, 2, 3, 0.5, 7}, packed},
      {{2, 2, 16, 0.25, 64}, past},    {{1, 1, 1, -0.7, 0}, {{0, 2, 0, 2}}},
      {{2, 1, 8, 1.0, 0}, packed, 40},  // scores of thousands
      {{4, 2, 32, 0.2, 0}, packed},    {{2, 2, 64, 0.1, 0}, past},
  };
}

inline Index last_row(const std::vector<AttentionSpan>& spans, Index AttentionSpan::*begin,
                      Index AttentionSpan::*count) {
  Index last = 0;
  for (const AttentionSpan& span : spans) last = std::max(last, span.*begin + span.*count);
  return last;
}

/// Drawn for a case, as large as its spans need.
template <class S>
struct AttentionInputs {
  HostMatrix<S> q, k, v;

  AttentionInputs(const AttentionCase& example, RandomStream& random) {
    const AttentionShape& shape = example.shape;
    const Index queries =
        last_row(example.spans, &AttentionSpan::query_begin, &AttentionSpan::queries);
    const Index keys = last_row(example.spans, &AttentionSpan::key_begin, &AttentionSpan::keys);
    const Index key_width = shape.key_heads * shape.head_width;
    q = random_matrix<S>(random, queries, shape.heads * shape.head_width, 3, 0.0, example.spread);
    k = random_matrix<S>(random, keys, key_width, 2, 0.0, example.spread);
    v = random_matrix<S>(random, keys, key_width, 1);
  }
};

template <Backend B>
void check_attention_case(B& backend, const AttentionCase& example) {
  using S = scalar_t<B>;
  RandomStream random(15);
  const auto [q, k, v] = AttentionInputs<S>(example, random);
  const Expected expected = attention(to_double(q), to_double(k), to_double(v), example.spans,
                                      example.shape, precision_of<S>());
  auto q_there = upload(backend, q), k_there = upload(backend, k), v_there = upload(backend, v);
  auto out = upload(backend, HostMatrix<S>(q.rows, q.cols, 5, 5, S(0)));
  Workspace<B> workspace(backend);
  ops::causal_attention<B>(backend, q_there.view(), k_there.view(), v_there.view(), example.spans,
                           example.shape, out.view(), workspace);
  CHECK(within(out.download(), expected));
}

/// What is in the gradients' memory before must not matter.
template <Backend B>
void check_attention_gradient(B& backend, const AttentionCase& example) {
  using S = scalar_t<B>;
  RandomStream random(22);
  const auto [q, k, v] = AttentionInputs<S>(example, random);
  const auto dout = random_matrix<S>(random, q.rows, q.cols, 4);
  const AttentionGradient expected =
      attention_gradient(to_double(q), to_double(k), to_double(v), to_double(dout), example.spans,
                         example.shape, precision_of<S>());
  auto q_there = upload(backend, q), k_there = upload(backend, k), v_there = upload(backend, v),
       dout_there = upload(backend, dout);
  auto dq = upload(backend, HostMatrix<S>(q.rows, q.cols, 5, 5, gap_value<S>()));
  auto dk = upload(backend, HostMatrix<S>(k.rows, k.cols, 2, 0, gap_value<S>()));
  auto dv = upload(backend, HostMatrix<S>(v.rows, v.cols, gap_value<S>()));
  Workspace<B> workspace(backend);
  ops::causal_attention_backward<B>(
      backend, q_there.view(), k_there.view(), v_there.view(), example.spans, example.shape,
      {dout_there.view(), dq.view(), dk.view(), dv.view()}, workspace);
  CHECK(within(dq.download(), expected.dq));
  CHECK(within(dk.download(), expected.dk));
  CHECK(within(dv.download(), expected.dv));
}

/// f(case) for all of them, each described where a check fails.
template <class F>
void for_each_attention_case(F&& f) {
  for (const AttentionCase& example : attention_cases()) {
    CAPTURE(example.shape.heads);
    CAPTURE(example.shape.head_width);
    CAPTURE(example.shape.window);
    CAPTURE(example.spread);
    f(example);
  }
}

template <Backend B>
void attention_gradients(B& backend) {
  for_each_attention_case([&](const auto& example) { check_attention_gradient(backend, example); });
}

template <Backend B>
void attentions(B& backend) {
  for_each_attention_case([&](const auto& example) { check_attention_case(backend, example); });
}

/// A query that sees one key takes its value as it is, even where the score is huge.
template <Backend B>
void attention_to_one_key(B& backend) {
  using S = scalar_t<B>;
  RandomStream random(16);
  const auto q = random_matrix<S>(random, 3, 4, 0, 0.0, 1e3);
  const auto k = random_matrix<S>(random, 3, 4, 0, 0.0, 1e3);
  const auto v = random_matrix<S>(random, 3, 4);
  auto q_there = upload(backend, q), k_there = upload(backend, k), v_there = upload(backend, v);
  auto out = upload(backend, HostMatrix<S>(3, 4));
  Workspace<B> workspace(backend);
  const std::vector<AttentionSpan> alone{{0, 1, 0, 1}, {1, 1, 1, 1}, {2, 1, 2, 1}};
  ops::causal_attention<B>(backend, q_there.view(), k_there.view(), v_there.view(), alone,
                           {2, 2, 2, 1.0, 0}, out.view(), workspace);
  CHECK(equal(out.download(), to_double(v)));
}

/// No later key counts: changing keys and values after a query's own leaves its row as it was.
template <Backend B>
void attention_is_causal(B& backend) {
  using S = scalar_t<B>;
  RandomStream random(17);
  const Index n = 70;
  const auto q = random_matrix<S>(random, n, 6);
  auto k = random_matrix<S>(random, n, 6), v = random_matrix<S>(random, n, 6);
  const std::vector<AttentionSpan> one{{0, n, 0, n}};
  Workspace<B> workspace(backend);
  const auto run = [&] {
    auto q_there = upload(backend, q), k_there = upload(backend, k), v_there = upload(backend, v);
    auto out = upload(backend, HostMatrix<S>(n, 6));
    ops::causal_attention<B>(backend, q_there.view(), k_there.view(), v_there.view(), one,
                             {2, 2, 3, 0.6, 0}, out.view(), workspace);
    return out.download();
  };
  const HostMatrix<S> before = run();
  for (Index j = 0; j < 6; ++j) k(66, j) = S(9), v(66, j) = S(9);
  const HostMatrix<S> after = run();
  for (Index i = 0; i < n; ++i) {
    bool same = true;
    for (Index j = 0; j < 6; ++j) same = same && before(i, j) == after(i, j);
    CHECK(same == (i < 66));
  }
}

/// Losses of rows with given targets.
template <Backend B>
void check_losses(B& backend, const HostMatrix<scalar_t<B>>& logits,
                  const std::vector<TokenId>& targets, Index vocabulary) {
  CAPTURE(vocabulary);
  const Expected expected =
      token_loss(to_double(logits), targets, vocabulary, precision_of<scalar_t<B>>());
  auto logits_there = upload(backend, logits);
  auto targets_there = upload(backend, index_row(targets));
  auto nll = upload(backend, HostMatrix<double>(1, logits.rows, -1.0));
  ops::token_loss<B>(backend, logits_there.view(), targets_there.vector(), vocabulary,
                     nll.vector());
  CHECK(within(nll.download(), expected));
}

/// Ranks of given targets, counted: they must be exact.
template <Backend B>
void check_ranks(B& backend, const HostMatrix<scalar_t<B>>& logits,
                 const std::vector<TokenId>& targets, Index vocabulary) {
  CAPTURE(vocabulary);
  HostMatrix<double> expected(1, logits.rows, 0.0);
  for (Index i = 0; i < logits.rows; ++i) {
    const Index target = targets[static_cast<std::size_t>(i)];
    for (Index j = 0; j < vocabulary; ++j) {
      const bool ties = logits(i, j) == logits(i, target);
      if (logits(i, j) > logits(i, target) || (ties && j < target)) expected(0, i) += 1;
    }
  }
  auto logits_there = upload(backend, logits);
  auto targets_there = upload(backend, index_row(targets));
  auto ranks = upload(backend, HostMatrix<double>(1, logits.rows, -1.0));
  ops::target_rank<B>(backend, logits_there.view(), targets_there.vector(), vocabulary,
                      ranks.vector());
  const HostMatrix<double> found = ranks.download();
  for (Index i = 0; i < logits.rows; ++i) CHECK(found(0, i) == expected(0, i));
}

/// Columns past the vocabulary hold huge numbers or NaN.
template <Backend B>
void random_losses(B& backend, Index vocabulary, double spread) {
  using S = scalar_t<B>;
  RandomStream random(18);
  const Index rows = vocabulary > 1000 ? 2 : 19;
  const Index padded = vocabulary + 5;
  HostMatrix<S> logits = random_matrix<S>(random, rows, padded, 2, 0.0, spread);
  std::vector<TokenId> targets;
  for (Index i = 0; i < rows; ++i) {
    targets.push_back(static_cast<TokenId>(random.below(static_cast<std::uint64_t>(vocabulary))));
    for (Index j = vocabulary; j < padded; ++j) {
      logits(i, j) = j % 2 == 0 ? static_cast<S>(1e30f) : gap_value<S>();
    }
  }
  targets.front() = 0;
  targets.back() = static_cast<TokenId>(vocabulary - 1);
  check_losses(backend, logits, targets, vocabulary);
  check_ranks(backend, logits, targets, vocabulary);
}

template <Backend B>
void losses(B& backend) {
  using S = scalar_t<B>;
  for (const Index vocabulary : {1, 2, 15, 16, 17, 33, 50257}) {
    for (const double spread : {1.0, 20.0, 1e4}) random_losses(backend, vocabulary, spread);
  }
  // All equal: log V. One that wins by far: 0 for it, the distance for the others. −∞ counts not.
  const S none = -std::numeric_limits<S>::infinity();
  HostMatrix<S> special(4, 7, S(-1e4));
  special(1, 3) = S(1e4);
  special(2, 3) = S(1e4);
  for (Index j = 1; j < 7; ++j) special(3, j) = none;
  check_losses(backend, special, {6, 3, 2, 0}, 7);
  check_ranks(backend, special, {6, 3, 2, 0}, 7);
  check_ranks(backend, special, {0, 0, 4, 6}, 7);
}

/// Losses of logits that the head has yet to multiply: small integers, so that the logits are exact
/// and only the losses are rounded. Columns past the vocabulary must not be looked at.
template <Backend B>
void check_head_losses(B& backend, Index rows, Index vocabulary, bool with_bias,
                       bool is_transposed) {
  using S = scalar_t<B>;
  CAPTURE(rows);
  CAPTURE(vocabulary);
  CAPTURE(with_bias);
  CAPTURE(is_transposed);
  RandomStream random(19);
  const Index columns = vocabulary + 3;
  const auto x = integer_matrix<S>(random, rows, 3, 2);
  const auto weight = integer_matrix<storage_t<B>>(random, 3, columns, 1);
  const auto bias = with_bias ? integer_matrix<S>(random, 1, columns) : HostMatrix<S>(1, columns);
  HostMatrix<double> logits(rows, columns);
  std::vector<TokenId> targets;
  for (Index i = 0; i < rows; ++i) {
    targets.push_back(static_cast<TokenId>(random.below(static_cast<std::uint64_t>(vocabulary))));
    for (Index j = 0; j < columns; ++j) {
      logits(i, j) = static_cast<double>(bias(0, j));
      for (Index k = 0; k < 3; ++k) {
        logits(i, j) += static_cast<double>(x(i, k)) * static_cast<double>(weight(k, j));
      }
    }
  }
  auto x_there = upload(backend, x), bias_there = upload(backend, bias);
  auto weight_there = upload(backend, is_transposed ? transposed_copy(weight) : weight);
  auto targets_there = upload(backend, index_row(targets));
  auto nll = upload(backend, HostMatrix<double>(1, rows, -1.0));
  Workspace<B> workspace(backend);
  ops::linear_token_loss<B>(backend, x_there.view(), operand_of(weight_there, is_transposed),
                            with_bias ? bias_there.const_vector() : ConstVectorView<S>{},
                            targets_there.vector(), vocabulary, nll.vector(), workspace);
  CHECK(within(nll.download(), token_loss(logits, targets, vocabulary, precision_of<S>())));
}

template <Backend B>
void head_losses(B& backend) {
  // One tile, tiles of which the last is narrow, tiles of which the last is short.
  for (const auto& [rows, vocabulary] :
       std::vector<std::pair<Index, Index>>{{1, 1}, {5, 33}, {3, 1537}, {300, 800}}) {
    for (const bool with_bias : {false, true}) {
      for (const bool is_transposed : {false, true}) {
        check_head_losses(backend, rows, vocabulary, with_bias, is_transposed);
      }
    }
  }
}

}  // namespace wanamaker_test::conformance
