// What operations must give, from their formulas in double, and how far a right implementation may
// be off.
//
// Tolerances. With u the unit roundoff (eps = 2u), a sum of products in which every term passes
// through at most c roundings differs from the exact one by at most c·u·Σ|a||b| (to first order;
// Higham 2002, section 3.1), in any order, with or without fused multiply-add. The oracle, computed
// in double, is off by as much or less. So the tolerance is c·eps·Σ|a||b|, half of it for each.
// The counts c are written beside each formula, in oracle.cpp.
//
// Inputs are the values that the backend got, widened to double.
#pragma once

#include <span>
#include <vector>

#include "backend/host_matrix.hpp"
#include "wanamaker/backend/activations.hpp"
#include "wanamaker/backend/attention.hpp"

namespace wanamaker_test {

/// The arithmetic whose roundings are allowed for.
struct Precision {
  double eps;       ///< twice the unit roundoff
  double smallest;  ///< smallest normal number: below it exponentials may vanish
};

template <class S>
constexpr Precision precision_of() {
  return {static_cast<double>(std::numeric_limits<S>::epsilon()),
          static_cast<double>(std::numeric_limits<S>::min())};
}

/// α·A·B + β·C₀; C₀ is not looked at where β = 0.
Expected product(const HostMatrix<double>& a, const HostMatrix<double>& b, Precision precision,
                 double alpha, double beta, const HostMatrix<double>& c);
/// A·B.
Expected product(const HostMatrix<double>& a, const HostMatrix<double>& b, Precision precision);

/// C₀ + XᵀY with blocks of rows in `precision`, or all in double.
Expected gram_matrix(const HostMatrix<double>& x, const HostMatrix<double>& y,
                     const HostMatrix<double>& c, Precision precision,
                     wanamaker::GramPrecision blocks);

/// gain, bias [1 × d].
Expected layer_norm(const HostMatrix<double>& x, const HostMatrix<double>& gain,
                    const HostMatrix<double>& bias, double epsilon, Precision precision);
Expected rms_norm(const HostMatrix<double>& x, const HostMatrix<double>& gain, double epsilon,
                  Precision precision);

/// An activation by another form of its formula, what computing it may lose, and how much it
/// stretches an error of its argument (the largest slope).
struct ActivationOracle {
  double (*value)(double u);
  double (*tolerance)(double u, Precision precision);
  double slope;
};

/// For Identity, Relu, GeluTanh, GeluErf and Silu.
template <class Activation>
ActivationOracle activation_oracle();
template <>
ActivationOracle activation_oracle<wanamaker::Identity>();
template <>
ActivationOracle activation_oracle<wanamaker::Relu>();
template <>
ActivationOracle activation_oracle<wanamaker::GeluTanh>();
template <>
ActivationOracle activation_oracle<wanamaker::GeluErf>();
template <>
ActivationOracle activation_oracle<wanamaker::Silu>();

/// activation(u) for every entry.
Expected activated(const HostMatrix<double>& u, const ActivationOracle& activation,
                   Precision precision);

/// activation(A·B + bias); bias [1 × n], zeros for none.
Expected linear(const HostMatrix<double>& x, const HostMatrix<double>& weight,
                const HostMatrix<double>& bias, const ActivationOracle& activation,
                Precision precision);

/// activation(gate) ∘ up.
Expected gated_product(const HostMatrix<double>& gate, const HostMatrix<double>& up,
                       const ActivationOracle& activation, Precision precision);

/// Pairs (j, j + pairs) of each head turned by tabulated cosines and sines.
Expected rotated(const HostMatrix<double>& x, const HostMatrix<double>& cosines,
                 const HostMatrix<double>& sines, const std::vector<TokenId>& positions,
                 Index heads, Precision precision);

/// Causal attention straight from its formula, one query and head at a time.
Expected attention(const HostMatrix<double>& q, const HostMatrix<double>& k,
                   const HostMatrix<double>& v, std::span<const wanamaker::AttentionSpan> spans,
                   const wanamaker::AttentionShape& shape, Precision precision);

struct AttentionGradient {
  Expected dq;
  Expected dk;
  Expected dv;
};
/// Its gradient for a gradient `dout` of the result, by the same loops.
AttentionGradient attention_gradient(const HostMatrix<double>& q, const HostMatrix<double>& k,
                                     const HostMatrix<double>& v, const HostMatrix<double>& dout,
                                     std::span<const wanamaker::AttentionSpan> spans,
                                     const wanamaker::AttentionShape& shape, Precision precision);

/// −log softmax at the targets, [1 × T].
Expected token_loss(const HostMatrix<double>& logits, const std::vector<TokenId>& targets,
                    Index vocabulary, Precision precision);

}  // namespace wanamaker_test
