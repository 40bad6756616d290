// The blocked XᵀY against sums written out, at the borders of its blocks, tiles and depths, for
// every vector width whether or not this machine has it.
#include "wanamaker/backend/gram.hpp"

#include <cmath>
#include <vector>

#include "testing.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/core/thread_pool.hpp"

using namespace wanamaker;

namespace {

template <class S>
std::vector<S> random_values(RandomStream& random, Index n) {
  std::vector<S> values(static_cast<std::size_t>(n));
  for (S& v : values) v = static_cast<S>(random.normal());
  return values;
}

template <class S>
double sum_of_products(ConstMatrixView<S> x, ConstMatrixView<S> y, Index i, Index j) {
  double sum = 0;
  for (Index t = 0; t < x.rows; ++t) {
    sum += static_cast<double>(x(t, i)) * static_cast<double>(y(t, j));
  }
  return sum;
}

/// Products of standard normal numbers rarely exceed 30. Exact: one rounding in double for each of
/// n additions, in either sum. In T: as many roundings of T as a block of up to 256 rows has
/// additions and products.
template <class T>
double tolerance(Index n) {
  const double size = 30.0 * static_cast<double>(n + 1);
  const double in_double = 2.0 * static_cast<double>(n + 2) * 0x1p-53 * size;
  if (std::is_same_v<T, double>) return in_double;
  return in_double + static_cast<double>(std::min<Index>(n, 256) + 2) * 0x1p-24 * size;
}

template <class T, class S>
void check_gram(Index n, Index d, Index e) {
  CAPTURE(n);
  CAPTURE(d);
  CAPTURE(e);
  RandomStream random(static_cast<std::uint64_t>(n * 1000 + d * 10 + e));
  const std::vector<S> both = random_values<S>(random, n * (d + e + 3));
  const ConstMatrixView<S> all(both.data(), n, d + e + 3);
  const ConstMatrixView<S> x = all.middle_cols(1, d);
  const ConstMatrixView<S> y = all.middle_cols(d + 2, e);
  std::vector<double> c(static_cast<std::size_t>(d * e), 0.5);
  detail::add_gram<T>(ExecutorRef{}, x, y, -2.0, MatrixView<double>(c.data(), d, e));
  std::vector<double> expected;
  for (Index i = 0; i < d; ++i) {
    for (Index j = 0; j < e; ++j) expected.push_back(0.5 - 2.0 * sum_of_products(x, y, i, j));
  }
  CHECK(wanamaker_test::all_close(c, expected, 0.0, 2.0 * tolerance<T>(n)));
}

template <class T, class S>
void check_borders() {
  for (const Index n : {0, 1, 63, 64, 65, 127, 128, 129, 257, 511, 512, 513, 1100}) {
    check_gram<T, S>(n, 5, 3);
  }
  check_gram<T, S>(600, 195, 200);
  for (const Index d : {1, 7, 8, 9, 191, 192, 193}) check_gram<T, S>(9, d, 4);
  for (const Index e : {1, 23, 24, 25, 47, 49, 191, 193, 385}) check_gram<T, S>(9, 4, e);
}

template <class T, int Bytes>
void check_width() {
  using Block = detail::GramBlock<T, Bytes>;
  RandomStream random(Bytes);
  const Index depth = 37;
  const std::vector<T> a = random_values<T>(random, depth * Block::m);
  const std::vector<T> b = random_values<T>(random, depth * Block::n);
  const Index stride = Block::n + 2;
  std::vector<double> c(static_cast<std::size_t>(Block::m * stride), 1.0);
  Block::run(a.data(), b.data(), depth, c.data(), stride);
  const ConstMatrixView<T> left(a.data(), depth, Block::m);
  const ConstMatrixView<T> right(b.data(), depth, Block::n);
  std::vector<double> expected;
  for (Index i = 0; i < Block::m; ++i) {
    for (Index j = 0; j < stride; ++j) {
      expected.push_back(j < Block::n ? 1.0 + sum_of_products(left, right, i, j) : 1.0);
    }
  }
  CHECK(wanamaker_test::all_close(c, expected, 0.0, tolerance<T>(depth)));
}

}  // namespace

TEST_CASE("gram equals the sums written out, at every border") {
  check_borders<double, float>();
  check_borders<double, double>();
  check_borders<float, float>();
}

TEST_CASE("gram's register blocks are right for every vector width") {
  check_width<double, 16>();
  check_width<double, 32>();
  check_width<double, 64>();
  check_width<float, 16>();
  check_width<float, 32>();
  check_width<float, 64>();
}

TEST_CASE("the gram matrix of one matrix is symmetric to the bit and equals that of a copy") {
  RandomStream random(3);
  const Index n = 300;
  const Index d = 401;
  const std::vector<float> values = random_values<float>(random, n * d);
  const std::vector<float> copy = values;
  const ConstMatrixView<float> x(values.data(), n, d);
  std::vector<double> own(static_cast<std::size_t>(d * d));
  std::vector<double> other(own.size());
  const MatrixView<double> c(own.data(), d, d);
  detail::add_gram<double>(ExecutorRef{}, x, x, 1.0, c);
  detail::add_gram<double>(ExecutorRef{}, x, ConstMatrixView<float>(copy.data(), n, d), 1.0,
                           MatrixView<double>(other.data(), d, d));
  CHECK(own == other);
  bool is_symmetric = true;
  for (Index i = 0; i < d; ++i) {
    for (Index j = 0; j < i; ++j) is_symmetric = is_symmetric && c(i, j) == c(j, i);
  }
  CHECK(is_symmetric);
}

TEST_CASE("gram gives the same bits for any number of threads") {
  RandomStream random(4);
  const std::vector<double> values = random_values<double>(random, 200 * 500);
  const ConstMatrixView<double> x(values.data(), 200, 500);
  std::vector<std::vector<double>> results;
  for (const Index threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    results.emplace_back(500 * 300);
    detail::add_gram<double>(ExecutorRef(pool), x, x.middle_cols(200, 300), 1.0,
                             MatrixView<double>(results.back().data(), 500, 300));
  }
  CHECK(results[0] == results[1]);
  CHECK(results[0] == results[2]);
}
