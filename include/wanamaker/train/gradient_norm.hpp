// Norms of gradients: in double, in an order that does not depend on threads.
#pragma once

#include <cmath>
#include <vector>

#include "wanamaker/backend/workspace.hpp"
#include "wanamaker/nn/parameters.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace kernels {

/// sums[first + i] = Σ_j x[i, j]², in double.
template <class T>
struct SquareSumRow {
  ConstMatrixView<T> x;
  Index first;
  VectorView<double> sums;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* row = x.row(i);
    const double sum = team.template sum<double>(x.cols, [=](Index j) {
      const double value = static_cast<double>(row[j]);
      return value * value;
    });
    if (team.leader()) sums[first + i] = sum;
  }
};

}  // namespace kernels

/// Euclidean norms.
struct GradientNorms {
  double total = 0;                     ///< over all parameters
  std::vector<double> of_parameters{};  ///< one each, 0 where frozen
};

/// ‖scale·g‖₂ of every gradient and of all together. NaN and infinities go through.
template <Backend B>
GradientNorms gradient_norms(B& backend, const ParameterList<B>& parameters,
                             Workspace<B>& workspace, double scale = 1.0) {
  const typename Workspace<B>::Frame frame(workspace);
  Index rows = 0;
  for (const Parameter<B>& p : parameters) rows += p.gradient.rows;
  const VectorView<double> device = workspace.template vector<double>(rows);
  Index first = 0;
  for (const Parameter<B>& p : parameters) {
    backend.for_each_row(p.gradient.rows,
                         kernels::SquareSumRow<scalar_t<B>>{p.gradient, first, device});
    first += p.gradient.rows;
  }
  std::vector<double> sums(static_cast<std::size_t>(rows));
  backend.synchronize();
  backend.copy_to_host(device.data, rows, sums.data());
  GradientNorms norms;
  const double* next = sums.data();
  for (const Parameter<B>& p : parameters) {
    double sum = 0;
    for (Index row = 0; row < p.gradient.rows; ++row) sum += *next++;
    norms.total += sum;
    norms.of_parameters.push_back(scale * std::sqrt(sum));
  }
  norms.total = scale * std::sqrt(norms.total);
  return norms;
}

/// What gradients are multiplied by so that their norm is at most `largest` (0: no limit):
/// min(1, largest/(norm + 10⁻⁶)), Pascanu et al. 2013; the small addend is PyTorch's.
inline double clipping_factor(double norm, double largest) {
  if (largest <= 0) return 1.0;
  const double factor = largest / (norm + 1e-6);
  return factor < 1.0 ? factor : 1.0;
}

/// Sets all gradients to 0.
template <Backend B>
void clear_gradients(B& backend, const ParameterList<B>& parameters) {
  for (const Parameter<B>& p : parameters) {
    backend.for_each_row(p.gradient.rows,
                         kernels::FillRow<scalar_t<B>>{scalar_t<B>(0), p.gradient});
  }
}

}  // namespace wanamaker::inline WANAMAKER_ABI
