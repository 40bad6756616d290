// Products asked for by several threads at once: each as it would be alone, whatever the library
// that multiplies guards or does not.
#include <atomic>
#include <cmath>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/core/thread_pool.hpp"

namespace {

using namespace wanamaker;

template <class T>
std::vector<T> small_integers(Index count, RandomStream& random) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& v : values) v = static_cast<T>(static_cast<Index>(random.below(7)) - 3);
  return values;
}

// Products of small integers are exact, so any difference is an error.
template <class T>
bool is_right(Index piece) {
  RandomStream random(29, static_cast<std::uint64_t>(piece));
  const Index m = 64;
  const Index n = 64 + piece % 5 * 13;
  const Index k = 3 + piece % 3;
  const std::vector<T> a = small_integers<T>(m * k, random);
  const std::vector<T> b = small_integers<T>(n * k, random);
  std::vector<T> c(static_cast<std::size_t>(m * n), T(9));
  BlasGemm::multiply<T>(plain(ConstMatrixView<T>(a.data(), m, k)),
                        transposed(ConstMatrixView<T>(b.data(), n, k)), T(1), T(0),
                        MatrixView<T>(c.data(), m, n));
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      T sum = 0;
      for (Index p = 0; p < k; ++p) {
        sum += a[static_cast<std::size_t>(i * k + p)] * b[static_cast<std::size_t>(j * k + p)];
      }
      if (sum != c[static_cast<std::size_t>(i * n + j)]) return false;
    }
  }
  return true;
}

TEST_CASE_TEMPLATE("products at the same time do not disturb each other", T, float, double) {
  ThreadPool pool(6);
  std::atomic<Index> wrong = 0;
  pool.run(24000, [&](Index piece) { wrong += is_right<T>(piece) ? 0 : 1; });
  CHECK(wrong == 0);
}

}  // namespace
