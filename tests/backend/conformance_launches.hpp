// Memory and launches: what a backend must supply besides products.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>

#include "backend/host_matrix.hpp"

namespace wanamaker_test::conformance {

using namespace wanamaker;

template <class T, Backend B>
void check_round_trip(B& backend) {
  for (const Index n : {0, 1, 33, 1000}) {
    std::vector<T> sent(static_cast<std::size_t>(n)), received(sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      sent[i] = static_cast<T>(static_cast<float>(i % 100));
    }
    buffer_t<B, T> memory = backend.template allocate<T>(n);
    CHECK(memory.size() == n);
    backend.copy_from_host(sent.data(), n, memory.data());
    buffer_t<B, T> moved = std::move(memory);
    backend.synchronize();
    backend.copy_to_host(moved.data(), n, received.data());
    CHECK((n == 0 || std::memcmp(sent.data(), received.data(), sent.size() * sizeof(T)) == 0));
  }
}

template <Backend B>
void memory(B& backend) {
  check_round_trip<float>(backend);
  check_round_trip<double>(backend);
  check_round_trip<TokenId>(backend);
  check_round_trip<storage_t<B>>(backend);
  for (int repeat = 0; repeat < 3; ++repeat) {  // memory that comes back used is zeroed again
    matrix_t<B> zeros = make_matrix(backend, 7, 5);
    std::vector<scalar_t<B>> host(35, scalar_t<B>(1));
    backend.copy_to_host(zeros.data(), 35, host.data());
    CHECK(host == std::vector<scalar_t<B>>(35, scalar_t<B>(0)));
    std::fill(host.begin(), host.end(), scalar_t<B>(3));
    backend.copy_from_host(host.data(), 35, zeros.data());
  }
  CHECK(error_id([&] { backend.template allocate<double>(-1); }) == "backend/out-of-memory");
  CHECK(error_id([&] { backend.template allocate<double>(PTRDIFF_MAX / 8); }) ==
        "backend/out-of-memory");
}

struct CountVisit {
  VectorView<TokenId> visits;
  WANAMAKER_KERNEL void operator()(Index i) const { visits[i] += static_cast<TokenId>(i + 1); }
};

template <Backend B>
void for_each(B& backend) {
  std::vector<Index> lengths(34);
  std::iota(lengths.begin(), lengths.end(), Index{0});
  for (const Index more : {255, 256, 257, 4095, 4096, 4097, 10001}) lengths.push_back(more);
  for (const Index n : lengths) {
    auto visits = upload(backend, HostMatrix<TokenId>(1, n + 2));
    backend.for_each(n, CountVisit{visits.vector().middle(1, n)});
    const HostMatrix<TokenId> result = visits.download();
    CHECK((result(0, 0) == 0 && result(0, n + 1) == 0));
    bool once = true;
    for (Index i = 0; i < n; ++i) once = once && result(0, i + 1) == i + 1;
    CHECK(once);
  }
}

/// Sums, maximum and a copy of each row, by the team.
template <class T>
struct RowSummary {
  ConstMatrixView<T> x;
  MatrixView<T> y;
  VectorView<double> sum;
  VectorView<T> sum_in_scalar;
  VectorView<T> top;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* in = x.row(i);
    T* out = y.row(i);
    const double wide = team.template sum<double>(x.cols, [=](Index j) { return in[j]; });
    const T narrow = team.template sum<T>(x.cols, [=](Index j) { return in[j]; });
    const T most = team.template max<T>(x.cols, T(-100), [=](Index j) { return in[j]; });
    team.each(x.cols, [=](Index j) { out[j] = in[j] + most; });
    if (team.leader()) sum[i] = wide, sum_in_scalar[i] = narrow, top[i] = most;
  }
};

template <Backend B>
void check_row_summary(B& backend, Index rows, Index length, Index start) {
  using S = scalar_t<B>;
  CAPTURE(length);
  CAPTURE(start);
  RandomStream random(19);
  const auto x = integer_matrix<S>(random, rows, length, start);
  HostMatrix<double> sum(1, rows), top(1, rows, -100.0), shifted(rows, length);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < length; ++j) {
      sum(0, i) += static_cast<double>(x(i, j));
      top(0, i) = std::max(top(0, i), static_cast<double>(x(i, j)));
    }
    for (Index j = 0; j < length; ++j) shifted(i, j) = static_cast<double>(x(i, j)) + top(0, i);
  }
  auto x_there = upload(backend, x);
  auto y_there = upload(backend, HostMatrix<S>(rows, length, 3 - start, 3 - start, S(77)));
  auto sum_there = upload(backend, HostMatrix<double>(1, rows));
  auto narrow_there = upload(backend, HostMatrix<S>(1, rows));
  auto top_there = upload(backend, HostMatrix<S>(1, rows));
  backend.for_each_row(rows, RowSummary<S>{x_there.view(), y_there.view(), sum_there.vector(),
                                           narrow_there.vector(), top_there.vector()});
  CHECK(equal(y_there.download(), shifted));
  CHECK(equal(sum_there.download(), sum));
  CHECK(equal(narrow_there.download(), sum));
  CHECK(equal(top_there.download(), top));
}

/// Every length from 0 to twice the widest vector and a bit, from every start within a vector.
template <Backend B>
void for_each_row(B& backend) {
  for (Index length = 0; length <= 33; ++length) {
    for (const Index start : {0, 1, 2, 3}) {
      check_row_summary(backend, 1 + (length * 5 + start * 16) % 50, length, start);
    }
  }
  backend.for_each_row(0, RowSummary<scalar_t<B>>{});
}

}  // namespace wanamaker_test::conformance
