// The transformer families straight from their formulas: plain loops over one sequence, nothing of
// the library. Written for any number type T, so that it also tells how far single precision may be
// off (see Uncertain).
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace naive {

template <class T>
using Rows = std::vector<std::vector<T>>;

/// A number with the variance that rounding gives it, by probabilistic error analysis (Higham &
/// Mary 2019): roundings to single precision are independent, of mean 0 and standard deviation at
/// most u = 2^-24 relatively; first-order propagation. A computation in float is then within λ
/// standard deviations with probability 1 − 2·exp(−λ²/2) a number; tests take λ = 10.
struct Uncertain {
  double value = 0;
  double variance = 0;

  Uncertain() = default;
  Uncertain(double v) : value(v) {}
  Uncertain(double v, double var) : value(v), variance(var) {}
};
inline constexpr double unit_variance = 0x1p-48;

/// `value` rounded once, on top of what its arguments bring.
inline Uncertain rounded(double value, double variance) {
  return {value, variance + unit_variance * value * value};
}
inline Uncertain operator+(Uncertain a, Uncertain b) {
  return rounded(a.value + b.value, a.variance + b.variance);
}
inline Uncertain operator-(Uncertain a, Uncertain b) {
  return rounded(a.value - b.value, a.variance + b.variance);
}
inline Uncertain operator*(Uncertain a, Uncertain b) {
  return rounded(a.value * b.value,
                 a.value * a.value * b.variance + b.value * b.value * a.variance);
}
inline Uncertain operator/(Uncertain a, Uncertain b) {
  const double q = a.value / b.value;
  return rounded(q, (a.variance + q * q * b.variance) / (b.value * b.value));
}
inline bool operator<(Uncertain a, Uncertain b) {
  return a.value < b.value;
}
// f(a) with slope f'; the library's float functions are within 2 ulp: four roundings.
inline Uncertain applied(double value, double slope, Uncertain a) {
  return {value, slope * slope * a.variance + 16 * unit_variance * value * value};
}
inline Uncertain exp(Uncertain a) {
  return applied(std::exp(a.value), std::exp(a.value), a);
}
inline Uncertain sqrt(Uncertain a) {
  return applied(std::sqrt(a.value), 0.5 / std::sqrt(a.value), a);
}
inline Uncertain log(Uncertain a) {
  return applied(std::log(a.value), 1 / a.value, a);
}
inline Uncertain tanh(Uncertain a) {
  const double t = std::tanh(a.value);
  return applied(t, 1 - t * t, a);
}
// The library's Φ has an absolute error of 3e-7, its erf twice that.
inline Uncertain erf(Uncertain a) {
  const double slope = 2 / std::sqrt(3.141592653589793) * std::exp(-a.value * a.value);
  return {std::erf(a.value), slope * slope * a.variance + 3.6e-13};
}

/// Σ a_i·b_i. For Uncertain: besides what the factors bring, a term passes through up to n
/// roundings, whose sum has deviation √n·u; taken as the same for all terms.
inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
template <class B>
Uncertain dot(const std::vector<Uncertain>& a, const std::vector<B>& b) {
  double sum = 0, magnitude = 0, variance = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Uncertain y = b[i];
    sum += a[i].value * y.value;
    magnitude += std::abs(a[i].value * y.value);
    variance += a[i].value * a[i].value * y.variance + y.value * y.value * a[i].variance;
  }
  const double n = static_cast<double>(a.size());
  return rounded(sum, variance + n * unit_variance * magnitude * magnitude);
}

struct Settings {
  int vocabulary = 0, width = 0, layers = 0, heads = 0, key_heads = 0, head_width = 0, hidden = 0;
  int positions = 0;
  int rotary_width = 0;  ///< 0: learned positions
  double rope_theta = 10000, epsilon = 1e-5;
  bool root_mean_square = false, gated = false, parallel = false, tied = false;
  int window = 0;
  std::string activation = "gelu_tanh";
};

/// y = x·W + b; weight [inputs][outputs], bias [outputs] or empty.
struct Dense {
  Rows<double> weight;
  std::vector<double> bias;

  template <class T>
  std::vector<T> operator()(const std::vector<T>& x) const {
    std::vector<T> y;
    std::vector<double> column(x.size());
    for (std::size_t j = 0; j < weight[0].size(); ++j) {
      for (std::size_t i = 0; i < x.size(); ++i) column[i] = weight[i][j];
      y.push_back(dot(x, column));
      if (!bias.empty()) y.back() = y.back() + T(bias[j]);
    }
    return y;
  }
};

struct Norm {
  std::vector<double> gain, bias;
};

struct Block {
  Norm attention_norm, mlp_norm;
  Dense query, key, value, output;
  Dense gate, up, down;
};

struct Model {
  Settings settings;
  Rows<double> embedding, position_table;
  std::vector<Block> blocks;
  Norm final_norm;
  Dense head;  ///< may have more outputs than the vocabulary; unused where tied
};

/// Everything that a forward pass goes through, [layer][position][entry].
template <class T>
struct Trace {
  std::vector<Rows<T>> residual, attention_output, mlp_input, mlp_output;
  Rows<T> logits;
  std::vector<T> nll;
};

template <class T>
std::vector<T> sum_of(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.push_back(a[i] + b[i]);
  return sum;
}

template <class T>
std::vector<T> normalised(const Settings& s, const Norm& norm, std::vector<T> x) {
  using std::sqrt;
  const T n(static_cast<double>(x.size()));
  const std::vector<double> ones(x.size(), 1.0);
  if (!s.root_mean_square) {
    const T mean = dot(x, ones) / n;
    for (T& v : x) v = v - mean;
  }
  const T scale = T(1.0) / sqrt(dot(x, x) / n + T(s.epsilon));
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = x[i] * scale * T(norm.gain[i]);
    if (!s.root_mean_square) x[i] = x[i] + T(norm.bias[i]);
  }
  return x;
}

template <class T>
T activated(const std::string& activation, T u) {
  using std::erf;
  using std::exp;
  using std::tanh;
  const T half(0.5), one(1.0);
  if (activation == "silu") return u / (one + exp(T(0.0) - u));
  if (activation == "gelu") return half * u * (one + erf(u / T(std::sqrt(2.0))));
  const T inner = T(std::sqrt(2 / 3.141592653589793)) * (u + T(0.044715) * u * u * u);
  return half * u * (one + tanh(inner));
}

template <class T>
std::vector<T> mlp(const Settings& s, const Block& block, const std::vector<T>& x) {
  std::vector<T> hidden = block.up(x);
  if (!s.gated) {
    for (T& h : hidden) h = activated(s.activation, h);
    return block.down(hidden);
  }
  const std::vector<T> gate = block.gate(x);
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    hidden[i] = activated(s.activation, gate[i]) * hidden[i];
  }
  return block.down(hidden);
}

/// The first `rotary_width` entries of each head turn, entry j with entry j + rotary_width/2.
template <class T>
void rotate(const Settings& s, int position, std::vector<T>& x) {
  const int pairs = s.rotary_width / 2;
  for (std::size_t head = 0; head < x.size(); head += static_cast<std::size_t>(s.head_width)) {
    for (int j = 0; j < pairs; ++j) {
      const double angle = position * std::pow(s.rope_theta, -2.0 * j / s.rotary_width);
      T& a = x[head + static_cast<std::size_t>(j)];
      T& b = x[head + static_cast<std::size_t>(j + pairs)];
      // The tabulated cosine and sine are rounded.
      const T c = T(std::cos(angle)) * T(1.0), d = T(std::sin(angle)) * T(1.0);
      const T turned = a * c - b * d;
      b = b * c + a * d;
      a = turned;
    }
  }
}

template <class T>
std::vector<T> head_of(const std::vector<T>& x, int head, int width) {
  return {x.begin() + head * width, x.begin() + (head + 1) * width};
}

/// What query `i` of one head takes from the values.
template <class T>
std::vector<T> attended(const Settings& s, const Rows<T>& q, const Rows<T>& k, const Rows<T>& v,
                        int i, int head) {
  using std::exp;
  const int key_head = head / (s.heads / s.key_heads);
  const int first = s.window > 0 ? std::max(0, i + 1 - s.window) : 0;
  const T scale(1 / std::sqrt(static_cast<double>(s.head_width)));
  const std::vector<T> query = head_of(q[static_cast<std::size_t>(i)], head, s.head_width);
  std::vector<T> weight;
  for (int j = first; j <= i; ++j) {
    weight.push_back(dot(query, head_of(k[static_cast<std::size_t>(j)], key_head, s.head_width)) *
                     scale);
  }
  const T top = *std::max_element(weight.begin(), weight.end());
  for (T& w : weight) w = exp(w - top);
  const T total = dot(weight, std::vector<double>(weight.size(), 1.0));
  for (T& w : weight) w = w / total;
  std::vector<T> result, column(weight.size());
  for (int c = 0; c < s.head_width; ++c) {
    for (std::size_t j = 0; j < weight.size(); ++j) {
      column[j] = v[static_cast<std::size_t>(first) + j]
                   [static_cast<std::size_t>(key_head * s.head_width + c)];
    }
    result.push_back(dot(weight, column));
  }
  return result;
}

template <class T>
Rows<T> attention(const Settings& s, const Block& block, const Rows<T>& x) {
  Rows<T> q, k, v, out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    q.push_back(block.query(x[i]));
    k.push_back(block.key(x[i]));
    v.push_back(block.value(x[i]));
    rotate(s, static_cast<int>(i), q.back());
    rotate(s, static_cast<int>(i), k.back());
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::vector<T> mixed;
    for (int head = 0; head < s.heads; ++head) {
      const std::vector<T> own = attended(s, q, k, v, static_cast<int>(i), head);
      mixed.insert(mixed.end(), own.begin(), own.end());
    }
    out.push_back(block.output(mixed));
  }
  return out;
}

template <class T>
Rows<T> embedded(const Model& m, const std::vector<int>& tokens) {
  Rows<T> x;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::vector<double>& row = m.embedding[static_cast<std::size_t>(tokens[i])];
    x.emplace_back(row.begin(), row.end());
    if (m.position_table.empty()) continue;
    x.back() = sum_of(x.back(), {m.position_table[i].begin(), m.position_table[i].end()});
  }
  return x;
}

template <class T>
void run_block(const Settings& s, const Block& block, Rows<T>& x, Trace<T>& trace) {
  Rows<T> normed, inputs, outputs;
  for (const std::vector<T>& r : x) normed.push_back(normalised(s, block.attention_norm, r));
  const Rows<T> attention_output = attention(s, block, normed);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::vector<T> carry = sum_of(x[i], attention_output[i]);
    inputs.push_back(normalised(s, block.mlp_norm, s.parallel ? x[i] : carry));
    outputs.push_back(mlp(s, block, inputs.back()));
    x[i] = sum_of(carry, outputs.back());
  }
  trace.attention_output.push_back(attention_output);
  trace.mlp_input.push_back(inputs);
  trace.mlp_output.push_back(outputs);
}

/// −log softmax over the vocabulary, which may be less than all logits.
template <class T>
T loss(const Settings& s, std::vector<T> logits, int target) {
  using std::exp;
  using std::log;
  logits.resize(static_cast<std::size_t>(s.vocabulary));
  const T top = *std::max_element(logits.begin(), logits.end());
  std::vector<T> terms;
  for (const T& v : logits) terms.push_back(exp(v - top));
  return log(dot(terms, std::vector<double>(terms.size(), 1.0))) + top -
         logits[static_cast<std::size_t>(target)];
}

template <class T>
Trace<T> forward(const Model& m, const std::vector<int>& tokens) {
  Trace<T> trace;
  Rows<T> x = embedded<T>(m, tokens);
  for (const Block& block : m.blocks) {
    trace.residual.push_back(x);
    run_block(m.settings, block, x, trace);
  }
  trace.residual.push_back(x);
  for (const std::vector<T>& r : x) {
    const std::vector<T> normed = normalised(m.settings, m.final_norm, r);
    std::vector<T> logits;
    if (m.settings.tied) {
      for (const std::vector<double>& row : m.embedding) logits.push_back(dot(normed, row));
    } else {
      logits = m.head(normed);
    }
    trace.logits.push_back(logits);
  }
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    trace.nll.push_back(loss(m.settings, trace.logits[i], tokens[i + 1]));
  }
  return trace;
}

}  // namespace naive
