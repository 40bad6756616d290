#include "backend/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace wanamaker_test {

namespace {

constexpr double double_eps = std::numeric_limits<double>::epsilon();

}  // namespace

HostMatrix<double> filled(Index rows, Index cols, Index padding, const std::function<double()>& f) {
  HostMatrix<double> m(rows, cols, padding, padding, gap_value<double>());
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j) m(i, j) = f();
  }
  return m;
}

bool within_tolerance(const HostMatrix<double>& actual, const HostMatrix<double>& expected,
                      const HostMatrix<double>& tolerance) {
  Index bad = 0, worst_row = 0, worst_col = 0;
  double worst = 0;
  for (Index i = 0; i < expected.rows; ++i) {
    for (Index j = 0; j < expected.cols; ++j) {
      const double a = actual(i, j), e = expected(i, j);
      if (a == e || (std::isnan(a) && std::isnan(e))) continue;
      const double error = std::abs(a - e);
      if (error <= tolerance(i, j)) continue;
      ++bad;
      const double excess = std::isnan(error) ? HUGE_VAL : error / tolerance(i, j);
      if (excess >= worst) worst = excess, worst_row = i, worst_col = j;
    }
  }
  if (bad == 0) return true;
  std::printf("within: %td of %td elements; (%td, %td) is %.17g, expected %.17g ± %.3g\n", bad,
              expected.rows * expected.cols, worst_row, worst_col, actual(worst_row, worst_col),
              expected(worst_row, worst_col), tolerance(worst_row, worst_col));
  return false;
}

// Roundings of a term: k for a sum of k products, one each for α, β, and the last addition; where
// the sum is cut into blocks of any size, one block's length plus the number of blocks is at most
// k + 1. Together k + 4.
Expected product(const HostMatrix<double>& a, const HostMatrix<double>& b, Precision precision,
                 double alpha, double beta, const HostMatrix<double>& c) {
  Expected result(a.rows, b.cols);
  const double roundings = static_cast<double>(a.cols + 4) * precision.eps;
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = 0; j < b.cols; ++j) {
      double sum = 0, magnitude = 0;
      for (Index k = 0; k < a.cols; ++k) {
        const double term = a(i, k) * b(k, j);
        sum += term;
        magnitude += std::abs(term);
      }
      const double old = beta == 0 ? 0.0 : beta * c(i, j);
      result.value(i, j) = alpha * sum + old;
      result.tolerance(i, j) = roundings * (std::abs(alpha) * magnitude + std::abs(old));
    }
  }
  return result;
}

Expected product(const HostMatrix<double>& a, const HostMatrix<double>& b, Precision precision) {
  return product(a, b, precision, 1, 0, {});
}

// Exact: products of floats are exact in double, n of them are summed, n + 4 roundings in double.
// Blocked: besides, the roundings of a product within a block of at most 256 rows.
Expected gram_matrix(const HostMatrix<double>& x, const HostMatrix<double>& y,
                     const HostMatrix<double>& c, Precision precision,
                     wanamaker::GramPrecision blocks) {
  const HostMatrix<double> left = transposed_copy(x);
  Expected result = product(left, y, precision_of<double>(), 1, 1, c);
  if (blocks == wanamaker::GramPrecision::exact) return result;
  const Expected sums = product(left, y, precision);
  const double block = static_cast<double>(std::min<Index>(x.rows, 256) + 4);
  const double all = static_cast<double>(x.rows + 4);
  for (std::size_t i = 0; i < result.tolerance.values.size(); ++i) {
    result.tolerance.values[i] += sums.tolerance.values[i] / all * block;
  }
  return result;
}

// (x − μ)·s·g + b with s = 1/√(σ² + ε). Sums of d terms in double: μ off by (d + 2)·eps₂·mean|x|, s
// relatively by (d + 6)·eps₂ (eps₂: double's). In the scalar: μ and s rounded once, a subtraction,
// two products and an addition: 5 on the product besides μ's own, 1 on the bias.
Expected layer_norm(const HostMatrix<double>& x, const HostMatrix<double>& gain,
                    const HostMatrix<double>& bias, double epsilon, Precision precision) {
  Expected result(x.rows, x.cols);
  const double d = static_cast<double>(x.cols);
  for (Index i = 0; i < x.rows; ++i) {
    double mean = 0, magnitude = 0, variance = 0;
    for (Index j = 0; j < x.cols; ++j) mean += x(i, j) / d;
    for (Index j = 0; j < x.cols; ++j) {
      magnitude += std::abs(x(i, j)) / d;
      variance += (x(i, j) - mean) * (x(i, j) - mean) / d;
    }
    const double s = 1 / std::sqrt(variance + epsilon);
    const double mean_off = precision.eps * std::abs(mean) + (d + 2) * double_eps * magnitude;
    for (Index j = 0; j < x.cols; ++j) {
      const double centred = x(i, j) - mean;
      result.value(i, j) = centred * s * gain(0, j) + bias(0, j);
      result.tolerance(i, j) =
          std::abs(s * gain(0, j)) *
              (mean_off + (5 * precision.eps + (d + 6) * double_eps) * std::abs(centred)) +
          precision.eps * std::abs(bias(0, j));
    }
  }
  return result;
}

// x·s·g with s = 1/√(mean x² + ε): (d + 6)·eps₂ on s, then three roundings in the scalar.
Expected rms_norm(const HostMatrix<double>& x, const HostMatrix<double>& gain, double epsilon,
                  Precision precision) {
  Expected result(x.rows, x.cols);
  const double d = static_cast<double>(x.cols);
  for (Index i = 0; i < x.rows; ++i) {
    double square = 0;
    for (Index j = 0; j < x.cols; ++j) square += x(i, j) * x(i, j) / d;
    for (Index j = 0; j < x.cols; ++j) {
      const double y = x(i, j) / std::sqrt(square + epsilon) * gain(0, j);
      result.value(i, j) = y;
      result.tolerance(i, j) = std::abs(y) * (3 * precision.eps + (d + 6) * double_eps);
    }
  }
  return result;
}

// ---------------------------------------------------------------- activations

namespace {

double exact(double, Precision) {
  return 0;
}

// u·logistic(v). The argument v carries `roundings` of its own, which e^−v multiplies by |v|; e^−v
// is within 2 ulp, sum, quotient and product add a rounding each: 7, with the oracle's half. Below
// the smallest normal number e^−v may vanish. The oracle's 1 + tanh cancels: a few eps₂·|u|.
double logistic_tolerance(double u, double v, double roundings, Precision precision) {
  const double p = 1 / (1 + std::exp(-v));
  const double stretched = p > 0 && p < 1 ? roundings * std::abs(v) * (1 - p) : 0;
  return std::abs(u) *
         (precision.eps * p * (7 + stretched) + 2 * precision.smallest + 4 * double_eps);
}

double gelu_inner(double u) {
  return std::sqrt(2 / 3.141592653589793) * (u + 0.044715 * u * u * u);
}

// v = 2·inner: two constants rounded, three products, a sum, a product: 7 roundings.
double gelu_tanh_tolerance(double u, Precision precision) {
  return logistic_tolerance(u, 2 * gelu_inner(u), 7, precision);
}

double silu_tolerance(double u, Precision precision) {
  return logistic_tolerance(u, u, 0, precision);
}

// u·Φ(u). In float Φ is documented to within 3e-7. In double: erfc's argument, rounded twice, moves
// the tail relatively by at most u² + 1 per rounding. The oracle's 1 + erf cancels: a few eps₂·|u|.
double gelu_erf_tolerance(double u, Precision precision) {
  const double y = std::abs(0.5 * u * (1 + std::erf(u / std::sqrt(2.0))));
  const double distribution = precision.eps > double_eps
                                  ? 3e-7 * std::abs(u)
                                  : double_eps * (4 * std::abs(u) + 2 * (u * u + 1) * y);
  return distribution + 2 * precision.eps * y;
}

}  // namespace

template <>
ActivationOracle activation_oracle<wanamaker::Identity>() {
  return {[](double u) { return u; }, exact, 1};
}
template <>
ActivationOracle activation_oracle<wanamaker::Relu>() {
  return {[](double u) { return std::isnan(u) ? u : std::max(u, 0.0); }, exact, 1};
}
template <>
ActivationOracle activation_oracle<wanamaker::GeluTanh>() {
  return {[](double u) { return 0.5 * u * (1 + std::tanh(gelu_inner(u))); }, gelu_tanh_tolerance,
          1.13};
}
template <>
ActivationOracle activation_oracle<wanamaker::GeluErf>() {
  return {[](double u) { return 0.5 * u * (1 + std::erf(u / std::sqrt(2.0))); }, gelu_erf_tolerance,
          1.13};
}
template <>
ActivationOracle activation_oracle<wanamaker::Silu>() {
  return {[](double u) { return 0.5 * u * (1 + std::tanh(0.5 * u)); }, silu_tolerance, 1.11};
}

Expected activated(const HostMatrix<double>& u, const ActivationOracle& activation,
                   Precision precision) {
  Expected result(u.rows, u.cols);
  for (Index i = 0; i < u.rows; ++i) {
    for (Index j = 0; j < u.cols; ++j) {
      result.value(i, j) = activation.value(u(i, j));
      result.tolerance(i, j) = activation.tolerance(u(i, j), precision);
    }
  }
  return result;
}

// The product's tolerance, one rounding for the bias, stretched by the activation's slope, and the
// activation's own.
Expected linear(const HostMatrix<double>& x, const HostMatrix<double>& weight,
                const HostMatrix<double>& bias, const ActivationOracle& activation,
                Precision precision) {
  Expected result = product(x, weight, precision);
  for (Index i = 0; i < x.rows; ++i) {
    for (Index j = 0; j < weight.cols; ++j) {
      const double before = result.value(i, j) + bias(0, j);
      const double off =
          result.tolerance(i, j) + precision.eps * (std::abs(before) + std::abs(bias(0, j)));
      result.value(i, j) = activation.value(before);
      result.tolerance(i, j) = activation.slope * off + activation.tolerance(before, precision);
    }
  }
  return result;
}

// The activation's tolerance, and one rounding for the product.
Expected gated_product(const HostMatrix<double>& gate, const HostMatrix<double>& up,
                       const ActivationOracle& activation, Precision precision) {
  Expected result = activated(gate, activation, precision);
  for (Index i = 0; i < up.rows; ++i) {
    for (Index j = 0; j < up.cols; ++j) {
      result.value(i, j) *= up(i, j);
      result.tolerance(i, j) = result.tolerance(i, j) * std::abs(up(i, j)) +
                               precision.eps * std::abs(result.value(i, j));
    }
  }
  return result;
}

// Two products and a sum: 3 roundings. What is not rotated stays exactly.
Expected rotated(const HostMatrix<double>& x, const HostMatrix<double>& cosines,
                 const HostMatrix<double>& sines, const std::vector<TokenId>& positions,
                 Index heads, Precision precision) {
  Expected result(x.rows, x.cols);
  for (Index i = 0; i < x.rows; ++i) {
    for (Index j = 0; j < x.cols; ++j) result.value(i, j) = x(i, j);
    for (Index h = 0; h < heads; ++h) {
      for (Index j = 0; j < cosines.cols; ++j) {
        const Index one = h * (x.cols / heads) + j, two = one + cosines.cols;
        const Index p = positions[static_cast<std::size_t>(i)];
        const double a = x(i, one), b = x(i, two), c = cosines(p, j), s = sines(p, j);
        result.value(i, one) = a * c - b * s;
        result.value(i, two) = b * c + a * s;
        result.tolerance(i, one) = 3 * precision.eps * (std::abs(a * c) + std::abs(b * s));
        result.tolerance(i, two) = 3 * precision.eps * (std::abs(b * c) + std::abs(a * s));
      }
    }
  }
  return result;
}

// ---------------------------------------------------------------- attention

namespace {

/// What one query of one head sees: scores, their possible errors Δ, weights.
struct Scores {
  Index first_key = 0;
  std::vector<double> score, off, weight;
  double top = 0, off_max = 0, average = 0;
};

// Score j: w + 3 roundings on scale·Σ|q||k|: Δ_j.
Scores scores_of(const HostMatrix<double>& q, const HostMatrix<double>& k, Index query,
                 Index first_key, Index last_key, Index query_column, Index key_column,
                 const wanamaker::AttentionShape& shape, Precision precision) {
  Scores s;
  s.first_key = first_key;
  for (Index key = first_key; key <= last_key; ++key) {
    double score = 0, magnitude = 0;
    for (Index c = 0; c < shape.head_width; ++c) {
      const double term = shape.scale * q(query, query_column + c) * k(key, key_column + c);
      score += term;
      magnitude += std::abs(term);
    }
    s.score.push_back(score);
    s.off.push_back(static_cast<double>(shape.head_width + 3) * precision.eps * magnitude);
  }
  s.top = *std::max_element(s.score.begin(), s.score.end());
  s.off_max = *std::max_element(s.off.begin(), s.off.end());
  double total = 0;
  for (const double score : s.score) total += std::exp(score - s.top);
  for (const double score : s.score) {
    s.weight.push_back(std::exp(score - s.top) / total);
    s.average += s.weight.back() * precision.eps * (s.top - score + 4);
  }
  return s;
}

// A weight is off relatively by e^(Δ_j + Δ_max) − 1, by 1 rounding of |s_j − top| and 4 of the
// exponential (2 ulp), by the same averaged over the keys and n for the normaliser, by 2 for
// reciprocal and product.
double weight_off(const Scores& s, std::size_t j, Precision precision) {
  const double n = static_cast<double>(s.score.size());
  return std::expm1(s.off[j] + s.off_max) + s.average +
         precision.eps * (s.top - s.score[j] + 4 + n + 2);
}

// The mixture adds n + 3 roundings. Weights below the smallest number may vanish.
void mix(const Scores& s, const HostMatrix<double>& v, Index key_column, Precision precision,
         double& value, double& tolerance) {
  const double n = static_cast<double>(s.score.size());
  value = 0;
  tolerance = n * precision.smallest;
  for (std::size_t j = 0; j < s.score.size(); ++j) {
    const double term = s.weight[j] * v(s.first_key + static_cast<Index>(j), key_column);
    value += term;
    tolerance += std::abs(term) * (weight_off(s, j, precision) + precision.eps * (n + 3));
  }
}

}  // namespace

Expected attention(const HostMatrix<double>& q, const HostMatrix<double>& k,
                   const HostMatrix<double>& v, std::span<const wanamaker::AttentionSpan> spans,
                   const wanamaker::AttentionShape& shape, Precision precision) {
  Expected result(q.rows, q.cols);
  for (const wanamaker::AttentionSpan& span : spans) {
    for (Index i = 0; i < span.queries; ++i) {
      for (Index h = 0; h < shape.heads; ++h) {
        const Index row = span.query_begin + i, column = h * shape.head_width;
        const Index key_column = h / (shape.heads / shape.key_heads) * shape.head_width;
        const Index last = i + span.keys - span.queries;
        const Index first = shape.window > 0 ? std::max<Index>(0, last + 1 - shape.window) : 0;
        const Scores s = scores_of(q, k, row, span.key_begin + first, span.key_begin + last, column,
                                   key_column, shape, precision);
        for (Index c = 0; c < shape.head_width; ++c) {
          mix(s, v, key_column + c, precision, result.value(row, column + c),
              result.tolerance(row, column + c));
        }
      }
    }
  }
  return result;
}

namespace {

/// One query of one head: its gradient of the scores, dS_j = scale·w_j·(dP_j − Σ w·dP), and what it
/// may be off; dP_j = dout·v_j with w + 1 roundings.
struct ScoreGradients {
  std::vector<double> value, off;
};

ScoreGradients score_gradients(const Scores& s, const HostMatrix<double>& dout, Index query,
                               Index column, const HostMatrix<double>& v, Index key_column,
                               const wanamaker::AttentionShape& shape, Precision precision) {
  const std::size_t n = s.score.size();
  std::vector<double> dp(n), dp_off(n);
  double mean = 0, mean_off = 0;
  for (std::size_t j = 0; j < n; ++j) {
    for (Index c = 0; c < shape.head_width; ++c) {
      const double term =
          dout(query, column + c) * v(s.first_key + static_cast<Index>(j), key_column + c);
      dp[j] += term;
      dp_off[j] += static_cast<double>(shape.head_width + 1) * precision.eps * std::abs(term);
    }
    mean += s.weight[j] * dp[j];
    mean_off +=
        s.weight[j] * (dp_off[j] + std::abs(dp[j]) * (weight_off(s, j, precision) +
                                                      precision.eps * static_cast<double>(n + 2)));
  }
  ScoreGradients result;
  for (std::size_t j = 0; j < n; ++j) {
    const double scaled = shape.scale * s.weight[j];
    const double size = std::abs(dp[j]) + std::abs(mean);
    result.value.push_back(scaled * (dp[j] - mean));
    result.off.push_back(
        std::abs(scaled) *
            (dp_off[j] + mean_off + size * (weight_off(s, j, precision) + 4 * precision.eps)) +
        precision.smallest * (1 + size));
  }
  return result;
}

void add(Expected& sum, Index row, Index column, double factor, double factor_off, double by,
         double roundings) {
  sum.value(row, column) += factor * by;
  sum.tolerance(row, column) += std::abs(by) * (factor_off + std::abs(factor) * roundings);
}

}  // namespace

// A sum over n terms adds n + 1 roundings to what its terms are off.
AttentionGradient attention_gradient(const HostMatrix<double>& q, const HostMatrix<double>& k,
                                     const HostMatrix<double>& v, const HostMatrix<double>& dout,
                                     std::span<const wanamaker::AttentionSpan> spans,
                                     const wanamaker::AttentionShape& shape, Precision precision) {
  AttentionGradient result{{q.rows, q.cols}, {k.rows, k.cols}, {v.rows, v.cols}};
  const Index group = shape.heads / shape.key_heads;
  for (const wanamaker::AttentionSpan& span : spans) {
    const double key_sum = precision.eps * static_cast<double>(span.queries * group + 1);
    const double query_sum = precision.eps * static_cast<double>(span.keys + 1);
    for (Index i = 0; i < span.queries; ++i) {
      for (Index h = 0; h < shape.heads; ++h) {
        const Index row = span.query_begin + i, column = h * shape.head_width;
        const Index key_column = h / group * shape.head_width;
        const Index last = i + span.keys - span.queries;
        const Index first = shape.window > 0 ? std::max<Index>(0, last + 1 - shape.window) : 0;
        const Scores s = scores_of(q, k, row, span.key_begin + first, span.key_begin + last, column,
                                   key_column, shape, precision);
        const ScoreGradients ds =
            score_gradients(s, dout, row, column, v, key_column, shape, precision);
        for (std::size_t j = 0; j < s.score.size(); ++j) {
          const Index key = s.first_key + static_cast<Index>(j);
          const double weight_error =
              s.weight[j] * weight_off(s, j, precision) + precision.smallest;
          for (Index c = 0; c < shape.head_width; ++c) {
            const Index at = column + c, key_at = key_column + c;
            add(result.dq, row, at, ds.value[j], ds.off[j], k(key, key_at), query_sum);
            add(result.dk, key, key_at, ds.value[j], ds.off[j], q(row, at), key_sum);
            add(result.dv, key, key_at, s.weight[j], weight_error, dout(row, at), key_sum);
          }
        }
      }
    }
  }
  return result;
}

// A term e^(x − top): 1 rounding of |x − top|, 4 of the exponential (2 ulp); the sum and the rest
// in double: V + 8 roundings.
Expected token_loss(const HostMatrix<double>& logits, const std::vector<TokenId>& targets,
                    Index vocabulary, Precision precision) {
  Expected result(1, logits.rows);
  for (Index i = 0; i < logits.rows; ++i) {
    double top = -HUGE_VAL, sum = 0, weighted = 0;
    for (Index j = 0; j < vocabulary; ++j) top = std::max(top, logits(i, j));
    for (Index j = 0; j < vocabulary; ++j) {
      const double down = top - logits(i, j);
      sum += std::exp(-down);
      if (down < 800) weighted += down * std::exp(-down);
    }
    const double nll = std::log(sum) + (top - logits(i, targets[static_cast<std::size_t>(i)]));
    result.value(0, i) = nll;
    result.tolerance(0, i) =
        precision.eps * (weighted / sum + 4) +
        double_eps * (static_cast<double>(vocabulary) + 8) * (1 + (std::isfinite(nll) ? nll : 0.0));
  }
  return result;
}

}  // namespace wanamaker_test
