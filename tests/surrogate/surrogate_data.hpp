// What the surrogate tests share: data, backends that compile quickly, and oracles that compute
// everything by definition.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/host_backend.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/surrogate/co_moments.hpp"

namespace wanamaker_test {
template <class S>
class PlainBackend;
template <class S>
class ForeignBackend;
}  // namespace wanamaker_test

namespace wanamaker::inline WANAMAKER_ABI {
template <class S>
struct backend_traits<wanamaker_test::PlainBackend<S>> : HostBackendTraits<S> {};
template <class S>
struct backend_traits<wanamaker_test::ForeignBackend<S>> : HostBackendTraits<S> {};
}  // namespace wanamaker::inline WANAMAKER_ABI

namespace wanamaker_test {

using namespace wanamaker;

/// The unit of rounding of double.
inline constexpr double eps = 0x1p-53;

/// |a − b| ≤ relative · the largest |b|, for every element.
inline bool near(const std::vector<double>& a, const std::vector<double>& b, double relative) {
  double size = 0;
  for (const double value : b) size = std::max(size, std::abs(value));
  return all_close(a, b, 0.0, relative * size);
}

/// Two co-moments of the same bits.
inline bool same_bits(const CoMoments& a, const CoMoments& b) {
  return a.rows() == b.rows() && a.weight() == b.weight() && a.precision() == b.precision() &&
         a.state().mean_x == b.state().mean_x && a.state().mean_y == b.state().mean_y &&
         a.state().xx == b.state().xx && a.state().xy == b.state().xy &&
         a.state().yy == b.state().yy;
}

struct NaiveGemm {
  template <class T>
  static void multiply(Operand<T> a, Operand<T> b, T alpha, T beta, MatrixView<T> c) {
    ReferenceBackend<T>().gemm(a, b, alpha, beta, c);
  }
};

/// The host backend with everything of EigenBackend but its products.
template <class S>
class PlainBackend : public HostBackend<S, S, NaiveGemm> {
 public:
  using HostBackend<S, S, NaiveGemm>::HostBackend;
};

/// A backend whose memory is not known to be the host's: results must come back by copies.
template <class S>
class ForeignBackend {
 public:
  template <class T>
  auto allocate(Index n) const {
    return inner_.template allocate<T>(n);
  }
  template <class T>
  void copy_from_host(const T* source, Index n, T* destination) const {
    inner_.copy_from_host(source, n, destination);
  }
  template <class T>
  void copy_to_host(const T* source, Index n, T* destination) const {
    inner_.copy_to_host(source, n, destination);
  }
  template <class T, class U>
  void gemm(Operand<T> a, Operand<U> b, S alpha, S beta, MatrixView<S> c) const {
    inner_.gemm(a, b, alpha, beta, c);
  }
  void gemm_batched(std::span<const GemmItem<S>> items, S alpha, S beta) const {
    inner_.gemm_batched(items, alpha, beta);
  }
  void gram(ConstMatrixView<S> x, ConstMatrixView<S> y, MatrixView<double> c,
            GramPrecision precision) const {
    inner_.gram(x, y, c, precision);
  }
  template <class F>
  void for_each(Index n, F f) const {
    inner_.for_each(n, f);
  }
  template <class F>
  void for_each_row(Index rows, F f) const {
    inner_.for_each_row(rows, f);
  }
  void synchronize() const {}

 private:
  ReferenceBackend<S> inner_;
};

/// Inputs [n × d] and outputs [n × e] as doubles; every value is representable in float where
/// `in_float`.
struct Data {
  Index n = 0;
  Index d = 0;
  Index e = 0;
  std::vector<double> x{};
  std::vector<double> y{};

  double& x_at(Index t, Index i) { return x[static_cast<std::size_t>(t * d + i)]; }
  double& y_at(Index t, Index j) { return y[static_cast<std::size_t>(t * e + j)]; }
  double x_at(Index t, Index i) const { return x[static_cast<std::size_t>(t * d + i)]; }
  double y_at(Index t, Index j) const { return y[static_cast<std::size_t>(t * e + j)]; }

  void round_to_float() {
    for (double& v : x) v = static_cast<double>(static_cast<float>(v));
    for (double& v : y) v = static_cast<double>(static_cast<float>(v));
  }
  Data rows(std::span<const Index> chosen) const {
    Data part{static_cast<Index>(chosen.size()), d, e, {}, {}};
    for (const Index t : chosen) {
      part.x.insert(part.x.end(), x.begin() + t * d, x.begin() + (t + 1) * d);
      part.y.insert(part.y.end(), y.begin() + t * e, y.begin() + (t + 1) * e);
    }
    return part;
  }
  Data middle(Index first, Index count) const {
    std::vector<Index> chosen(static_cast<std::size_t>(count));
    std::iota(chosen.begin(), chosen.end(), first);
    return rows(chosen);
  }
};

/// Correlated inputs about `offset` with scales between 1/2 and 2; y = mixed inputs + noise.
inline Data mixed_data(std::uint64_t seed, Index n, Index d, Index e, double offset = 0,
                       double noise = 0.5) {
  RandomStream random(seed);
  Data data{n, d, e, std::vector<double>(static_cast<std::size_t>(n * d)),
            std::vector<double>(static_cast<std::size_t>(n * e))};
  std::vector<double> mix(static_cast<std::size_t>(d * e));
  for (double& m : mix) m = random.normal() / std::sqrt(static_cast<double>(d));
  for (Index t = 0; t < n; ++t) {
    const double common = random.normal();
    for (Index i = 0; i < d; ++i) {
      const double scale = 0.5 + 1.5 * static_cast<double>(i) / static_cast<double>(d);
      data.x_at(t, i) = scale * (random.normal() + 0.5 * common);
    }
    for (Index j = 0; j < e; ++j) {
      double sum = noise * random.normal() + 3.0;
      for (Index i = 0; i < d; ++i) {
        sum += data.x_at(t, i) * mix[static_cast<std::size_t>(i * e + j)];
      }
      data.y_at(t, j) = sum;
    }
    for (Index i = 0; i < d; ++i) data.x_at(t, i) += offset;
  }
  data.round_to_float();
  return data;
}

template <Backend B>
struct Uploaded {
  matrix_t<B> x;
  matrix_t<B> y;
};

template <Backend B>
Uploaded<B> upload(B& backend, const Data& data) {
  using S = scalar_t<B>;
  const std::vector<S> x(data.x.begin(), data.x.end());
  const std::vector<S> y(data.y.begin(), data.y.end());
  return {matrix_from_host<S>(backend, x.data(), data.n, data.d),
          matrix_from_host<S>(backend, y.data(), data.n, data.e)};
}

template <Backend B>
CoMoments moments_of(B& backend, const Data& data, GramPrecision precision = GramPrecision::exact,
                     std::span<const double> weights = {}) {
  Workspace<B> workspace(backend);
  const Uploaded<B> there = upload(backend, data);
  CoMoments moments(data.d, data.e, precision);
  if (weights.empty()) {
    moments.add(backend, there.x.view(), there.y.view(), workspace);
  } else {
    moments.add(backend, there.x.view(), there.y.view(), weights, workspace);
  }
  return moments;
}

inline CoMoments moments_of(const Data& data) {
  PlainBackend<double> backend;
  return moments_of(backend, data);
}

/// Co-moments by definition: two passes in long double.
inline CoMomentState oracle_moments(const Data& data, std::span<const double> weights = {}) {
  using Wide = long double;
  const auto w = [&](Index t) {
    return weights.empty() ? Wide{1} : Wide{weights[static_cast<std::size_t>(t)]};
  };
  Wide total = 0;
  std::vector<Wide> mx(static_cast<std::size_t>(data.d)), my(static_cast<std::size_t>(data.e));
  CoMomentState state;
  for (Index t = 0; t < data.n; ++t) {
    total += w(t);
    state.rows += w(t) > 0 ? 1 : 0;
    for (Index i = 0; i < data.d; ++i) mx[static_cast<std::size_t>(i)] += w(t) * data.x_at(t, i);
    for (Index j = 0; j < data.e; ++j) my[static_cast<std::size_t>(j)] += w(t) * data.y_at(t, j);
  }
  for (Wide& m : mx) m /= total;
  for (Wide& m : my) m /= total;
  const auto x = [&](Index t, Index i) {
    return data.x_at(t, i) - mx[static_cast<std::size_t>(i)];
  };
  const auto y = [&](Index t, Index j) {
    return data.y_at(t, j) - my[static_cast<std::size_t>(j)];
  };
  const auto sum = [&](auto term) {
    Wide s = 0;
    for (Index t = 0; t < data.n; ++t) s += w(t) * term(t);
    return static_cast<double>(s);
  };
  state.weight = static_cast<double>(total);
  state.mean_x.assign(mx.begin(), mx.end());
  state.mean_y.assign(my.begin(), my.end());
  for (Index i = 0; i < data.d; ++i) {
    for (Index k = 0; k < data.d; ++k) {
      state.xx.push_back(sum([&](Index t) { return x(t, i) * x(t, k); }));
    }
    for (Index j = 0; j < data.e; ++j) {
      state.xy.push_back(sum([&](Index t) { return x(t, i) * y(t, j); }));
    }
  }
  for (Index j = 0; j < data.e; ++j) {
    state.yy.push_back(sum([&](Index t) { return y(t, j) * y(t, j); }));
  }
  return state;
}

/// Passes iff every co-moment is within relative·√(Σx_i²·Σx_k²) of the expected one, the bound of
/// Cauchy and Schwarz for sums whose terms are each off by `relative`; means within
/// relative·(|mean| + standard deviation).
inline bool moments_close(const CoMoments& actual, const CoMomentState& expected, double relative) {
  const Index d = actual.inputs();
  const Index e = actual.outputs();
  const double n = expected.weight;
  const auto size_x = [&](Index i) {
    return std::sqrt(expected.xx[static_cast<std::size_t>(i * d + i)]);
  };
  const auto size_y = [&](Index j) { return std::sqrt(expected.yy[static_cast<std::size_t>(j)]); };
  double worst = 0;
  const auto compare = [&](double a, double b, double scale) {
    const double error = a == b ? 0.0 : std::abs(a - b) / scale;
    worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
  };
  for (Index i = 0; i < d; ++i) {
    const double mean = expected.mean_x[static_cast<std::size_t>(i)];
    compare(actual.mean_x()[static_cast<std::size_t>(i)], mean,
            std::abs(mean) + size_x(i) / std::sqrt(n));
    for (Index k = 0; k < d; ++k) {
      compare(actual.xx()(i, k), expected.xx[static_cast<std::size_t>(i * d + k)],
              size_x(i) * size_x(k));
    }
    for (Index j = 0; j < e; ++j) {
      compare(actual.xy()(i, j), expected.xy[static_cast<std::size_t>(i * e + j)],
              size_x(i) * size_y(j));
    }
  }
  for (Index j = 0; j < e; ++j) {
    const double mean = expected.mean_y[static_cast<std::size_t>(j)];
    compare(actual.mean_y()[static_cast<std::size_t>(j)], mean,
            std::abs(mean) + size_y(j) / std::sqrt(n));
    compare(actual.yy()[static_cast<std::size_t>(j)], expected.yy[static_cast<std::size_t>(j)],
            expected.yy[static_cast<std::size_t>(j)]);
  }
  if (worst > relative) std::printf("moments: off by %g, allowed %g\n", worst, relative);
  const bool same_weight = std::abs(actual.weight() - n) <= n * n * 0x1p-53;
  return worst <= relative && actual.rows() == expected.rows && same_weight;
}

/// Right singular vectors of the centred X by one-sided Jacobi rotations (Hestenes 1958), and
/// X·V: all that the oracle of ridge needs. Accurate to the last digits even for tiny singular
/// values; for tests only.
struct SvdOracle {
  Index n = 0;
  Index d = 0;
  std::vector<std::vector<double>> v{};   ///< [d] columns of V
  std::vector<std::vector<double>> xv{};  ///< [d] columns of X·V, orthogonal
  std::vector<double> singular_values{};

  explicit SvdOracle(const Data& data, std::span<const double> mean_x)
      : n(data.n), d(data.d), v(static_cast<std::size_t>(d)), xv(static_cast<std::size_t>(d)) {
    for (Index i = 0; i < d; ++i) {
      const std::size_t c = static_cast<std::size_t>(i);
      v[c].assign(static_cast<std::size_t>(d), 0.0);
      v[c][c] = 1.0;
      for (Index t = 0; t < n; ++t) xv[c].push_back(data.x_at(t, i) - mean_x[c]);
    }
    for (int sweep = 0; sweep < 60 && rotate_all(); ++sweep) {
    }
    for (const auto& column : xv) singular_values.push_back(std::sqrt(dot(column, column)));
  }

  /// W = Σ_k v_k·(s_k/(s_k² + λ))·(u_kᵀ(y − mean_y)), over s_k above `cutoff`; [d × e].
  std::vector<double> ridge(const Data& data, std::span<const double> mean_y, double lambda,
                            double cutoff = 0) const {
    std::vector<double> w(static_cast<std::size_t>(d * data.e));
    for (std::size_t k = 0; k < xv.size(); ++k) {
      const double s = singular_values[k];
      if (s <= cutoff) continue;
      for (Index j = 0; j < data.e; ++j) {
        double projection = 0;
        for (Index t = 0; t < n; ++t) {
          projection += xv[k][static_cast<std::size_t>(t)] *
                        (data.y_at(t, j) - mean_y[static_cast<std::size_t>(j)]);
        }
        const double factor = projection / (s * s + lambda);
        for (Index i = 0; i < d; ++i) {
          w[static_cast<std::size_t>(i * data.e + j)] += v[k][static_cast<std::size_t>(i)] * factor;
        }
      }
    }
    return w;
  }

  static double dot(const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  }

 private:
  bool rotate_all() {
    bool rotated = false;
    for (std::size_t p = 0; p < xv.size(); ++p) {
      for (std::size_t q = p + 1; q < xv.size(); ++q) rotated = rotate(p, q) || rotated;
    }
    return rotated;
  }

  bool rotate(std::size_t p, std::size_t q) {
    const double a = dot(xv[p], xv[p]);
    const double b = dot(xv[q], xv[q]);
    const double c = dot(xv[p], xv[q]);
    if (std::abs(c) <= 1e-15 * std::sqrt(a * b)) return false;
    const double zeta = (b - a) / (2.0 * c);
    const double tangent =
        (zeta < 0 ? -1.0 : 1.0) / (std::abs(zeta) + std::sqrt(1.0 + zeta * zeta));
    const double cosine = 1.0 / std::sqrt(1.0 + tangent * tangent);
    turn(xv[p], xv[q], cosine, cosine * tangent);
    turn(v[p], v[q], cosine, cosine * tangent);
    return true;
  }

  static void turn(std::vector<double>& a, std::vector<double>& b, double cosine, double sine) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double old = a[i];
      a[i] = cosine * old - sine * b[i];
      b[i] = sine * old + cosine * b[i];
    }
  }
};

}  // namespace wanamaker_test
