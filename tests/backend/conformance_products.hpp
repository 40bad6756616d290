// Matrix products of every kind.
#pragma once

#include "backend/oracle.hpp"

namespace wanamaker_test::conformance {

using namespace wanamaker;

struct ProductShape {
  Index m, n, k;
};

/// Never square; one dimension at a time at the borders of vectors, blocks and tiles.
inline std::vector<ProductShape> product_shapes() {
  std::vector<ProductShape> shapes{{1, 5, 3}, {5, 1, 3}, {1, 1, 7}, {7, 3, 1},
                                   {2, 3, 0}, {0, 5, 3}, {5, 0, 3}, {129, 385, 17}};
  for (const Index border : {15, 16, 17, 127, 128, 129, 255, 256, 257}) {
    shapes.push_back({border, 5, 9});
    shapes.push_back({3, border, 7});
    shapes.push_back({4, 6, border});
  }
  for (const Index border : {383, 384, 385, 767, 768, 769}) {
    shapes.push_back({1, border, 7});
    shapes.push_back({1, 6, border});
    shapes.push_back({3, border, 7});
    shapes.push_back({4, 6, border});
  }
  return shapes;
}

template <class B, class T>
Operand<T> operand_of(Uploaded<B, T>& m, bool is_transposed) {
  return is_transposed ? transposed(m.view()) : plain(m.view());
}

/// C ← α·op(A)·op(B) + β·C for all four ways of transposing; C is NaN before where β = 0.
template <class U, Backend B>
void check_product(B& backend, const HostMatrix<scalar_t<B>>& a, const HostMatrix<U>& b,
                   double alpha, double beta, bool exact) {
  using S = scalar_t<B>;
  CAPTURE(a.rows);
  CAPTURE(b.cols);
  CAPTURE(a.cols);
  CAPTURE(alpha);
  CAPTURE(beta);
  RandomStream random(2);
  HostMatrix<S> c = integer_matrix<S>(random, a.rows, b.cols, 3);
  Expected expected =
      product(to_double(a), to_double(b), precision_of<S>(), alpha, beta, to_double(c));
  if (exact) expected.tolerance = HostMatrix<double>(a.rows, b.cols);
  if (beta == 0) c = HostMatrix<S>(c.rows, c.cols, 3, 3, gap_value<S>());
  for (int transposition = 0; transposition < 4; ++transposition) {
    CAPTURE(transposition);
    const bool left = transposition % 2 == 1, right = transposition / 2 == 1;
    auto a_there = upload(backend, left ? transposed_copy(a) : a);
    auto b_there = upload(backend, right ? transposed_copy(b) : b);
    auto c_there = upload(backend, c);
    backend.gemm(operand_of(a_there, left), operand_of(b_there, right), static_cast<S>(alpha),
                 static_cast<S>(beta), c_there.view());
    CHECK(within(c_there.download(), expected));
  }
}

template <class U, Backend B>
void products_of(B& backend) {
  using S = scalar_t<B>;
  RandomStream random(1);
  Index number = 0;
  for (const ProductShape& shape : product_shapes()) {
    const Index padding = ++number % 2 == 0 ? 0 : 3;  // also where stride > cols
    const auto a = random_matrix<S>(random, shape.m, shape.k, padding);
    const auto b = random_matrix<U>(random, shape.k, shape.n, padding);
    check_product(backend, a, b, 1.0, 0.0, false);
    check_product(backend, a, b, -0.625, 1.0, false);
    check_product(backend, a, b, 0.0, 0.5, false);
    check_product(backend, integer_matrix<S>(random, shape.m, shape.k, padding),
                  integer_matrix<U>(random, shape.k, shape.n, padding), -2.0, 2.0, true);
  }
}

template <Backend B>
void gemm(B& backend) {
  products_of<scalar_t<B>>(backend);
  if constexpr (!std::is_same_v<scalar_t<B>, storage_t<B>>) products_of<storage_t<B>>(backend);
}

/// More than one full tile in both directions.
template <Backend B>
void gemm_of_several_tiles(B& backend) {
  RandomStream random(3);
  const auto a = random_matrix<scalar_t<B>>(random, 257, 11);
  check_product(backend, a, random_matrix<storage_t<B>>(random, 11, 769, 2), 1.0, 0.0, false);
  const auto narrow = integer_matrix<scalar_t<B>>(random, 513, 5, 1);
  check_product(backend, narrow, integer_matrix<storage_t<B>>(random, 5, 387), 1.0, 1.0, true);
  const auto long_one = integer_matrix<scalar_t<B>>(random, 1541, 3, 1);
  check_product(backend, long_one, integer_matrix<storage_t<B>>(random, 3, 37), 1.0, 0.0, true);
  // Rows of B a power of two apart.
  const auto tall = integer_matrix<scalar_t<B>>(random, 259, 4);
  check_product(backend, tall, integer_matrix<storage_t<B>>(random, 4, 1024), 1.0, 1.0, true);
}

template <Backend B>
void gemm_batched(B& backend) {
  using S = scalar_t<B>;
  RandomStream random(4);
  const std::vector<ProductShape> shapes{{3, 5, 2}, {17, 4, 33}, {1, 9, 1}, {64, 70, 8}, {0, 4, 2}};
  for (const double beta : {0.0, 0.5}) {
    std::vector<Uploaded<B, S>> left, right, out;
    std::vector<GemmItem<S>> items;
    std::vector<Expected> expected;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const auto [m, n, k] = shapes[i];
      const bool left_transposed = i % 2 == 1, right_transposed = i / 2 == 1;
      const auto a = random_matrix<S>(random, m, k, 1), b = random_matrix<S>(random, k, n, 2);
      const auto c =
          beta == 0 ? HostMatrix<S>(m, n, 3, 3, gap_value<S>()) : random_matrix<S>(random, m, n, 3);
      expected.push_back(
          product(to_double(a), to_double(b), precision_of<S>(), -1.5, beta, to_double(c)));
      left.push_back(upload(backend, left_transposed ? transposed_copy(a) : a));
      right.push_back(upload(backend, right_transposed ? transposed_copy(b) : b));
      out.push_back(upload(backend, c));
      items.push_back({operand_of(left.back(), left_transposed),
                       operand_of(right.back(), right_transposed), out.back().view()});
    }
    backend.gemm_batched(std::span<const GemmItem<S>>(items), S(-1.5), static_cast<S>(beta));
    for (std::size_t i = 0; i < items.size(); ++i) CHECK(within(out[i].download(), expected[i]));
  }
  backend.gemm_batched(std::span<const GemmItem<S>>{}, S(1), S(0));
}

template <Backend B>
void check_gram(B& backend, const HostMatrix<scalar_t<B>>& x, const HostMatrix<scalar_t<B>>& y,
                const HostMatrix<double>& c, GramPrecision blocks, const Expected& expected) {
  CAPTURE(x.rows);
  CAPTURE(x.cols);
  CAPTURE(y.cols);
  auto x_there = upload(backend, x), y_there = upload(backend, y);
  auto c_there = upload(backend, c);
  backend.gram(x_there.const_view(), y_there.const_view(), c_there.view(), blocks);
  CHECK(within(c_there.download(), expected));
}

template <Backend B>
void gram(B& backend) {
  using S = scalar_t<B>;
  RandomStream random(5);
  const std::vector<ProductShape> shapes{{0, 3, 2},   {1, 2, 5},   {255, 7, 3}, {256, 3, 7},
                                         {257, 5, 4}, {700, 2, 3}, {9, 257, 5}, {6, 3, 259}};
  for (const auto& [n, d, e] : shapes) {
    // Means away from 0, where single precision alone loses what centring needs.
    const auto x = random_matrix<S>(random, n, d, 2, 3.0), y = random_matrix<S>(random, n, e, 1);
    const auto c = random_matrix<double>(random, d, e, 3);
    for (const GramPrecision blocks : {GramPrecision::blocked, GramPrecision::exact}) {
      check_gram(backend, x, y, c, blocks,
                 gram_matrix(to_double(x), to_double(y), c, precision_of<S>(), blocks));
    }
  }
}

/// Where Y is X, a backend may compute half and mirror it; C need not be symmetric.
template <Backend B>
void gram_of_one_matrix(B& backend) {
  using S = scalar_t<B>;
  RandomStream random(5);
  for (const Index d : {1, 5, 193, 260}) {
    const auto x = random_matrix<S>(random, 11, d, 2);
    const auto c = random_matrix<double>(random, d, d);
    const Expected expected =
        gram_matrix(to_double(x), to_double(x), c, precision_of<S>(), GramPrecision::blocked);
    auto x_there = upload(backend, x);
    auto c_there = upload(backend, c);
    backend.gram(x_there.const_view(), x_there.const_view(), c_there.view(),
                 GramPrecision::blocked);
    CAPTURE(d);
    CHECK(within(c_there.download(), expected));
  }
}

/// Integers whose products a double holds and a float does not.
template <Backend B>
void gram_is_exact_where_asked(B& backend) {
  using S = scalar_t<B>;
  RandomStream random(6);
  const auto large = [&] { return static_cast<double>(random.below(1 << 20)); };
  const auto x = filled(300, 3, 0, large), y = filled(300, 2, 0, large);
  const HostMatrix<double> zero(3, 2);
  Expected expected = product(transposed_copy(x), y, precision_of<double>());
  expected.tolerance = zero;
  check_gram(backend, converted<S>(x), converted<S>(y), zero, GramPrecision::exact, expected);
}

}  // namespace wanamaker_test::conformance
