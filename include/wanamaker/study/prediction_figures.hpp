// What two models say of the same positions: losses, entropies, the divergence between them, and
// whether they would choose the same token.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/nn/any_transformer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Of one scored position, in nats; p is the full model, q the changed one.
struct PredictionFigures {
  double full_loss = 0;     ///< −log p(target)
  double changed_loss = 0;  ///< −log q(target)
  double full_entropy = 0;  ///< −Σ p log p
  double changed_entropy = 0;
  double divergence = 0;  ///< KL(p ‖ q) = Σ p log(p/q)
  double same_top = 0;    ///< 1 where some token is the most likely of both, else 0
};

namespace kernels {

/// figures [n × 6] in the order of PredictionFigures; sums in double over the first `vocabulary`
/// columns.
template <class T>
struct PredictionRow {
  ConstMatrixView<T> full;
  ConstMatrixView<T> changed;
  ConstVectorView<TokenId> targets;
  Index vocabulary;
  MatrixView<double> figures;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* f = full.row(i);
    const T* c = changed.row(i);
    const T f_top = team.template max<T>(vocabulary, f[0], [=](Index j) { return f[j]; });
    const T c_top = team.template max<T>(vocabulary, c[0], [=](Index j) { return c[j]; });
    const double f_sum = team.template sum<double>(
        vocabulary, [=](Index j) { return exponential_of_nonpositive(f[j] - f_top); });
    const double c_sum = team.template sum<double>(
        vocabulary, [=](Index j) { return exponential_of_nonpositive(c[j] - c_top); });
    // Σ e^{z} z of logits less their largest, and Σ e^{f} (f − c).
    const double f_mean = team.template sum<double>(vocabulary, [=](Index j) {
      return static_cast<double>(exponential_of_nonpositive(f[j] - f_top)) *
             static_cast<double>(f[j] - f_top);
    });
    const double c_mean = team.template sum<double>(vocabulary, [=](Index j) {
      return static_cast<double>(exponential_of_nonpositive(c[j] - c_top)) *
             static_cast<double>(c[j] - c_top);
    });
    const double gap = team.template sum<double>(vocabulary, [=](Index j) {
      return static_cast<double>(exponential_of_nonpositive(f[j] - f_top)) *
             (static_cast<double>(f[j] - f_top) - static_cast<double>(c[j] - c_top));
    });
    const double shared = team.template sum<double>(
        vocabulary, [=](Index j) { return f[j] == f_top && c[j] == c_top ? 1.0 : 0.0; });
    if (!team.leader()) return;
    const Index target = targets[i];
    double* out = figures.row(i);
    out[0] = std::log(f_sum) + (static_cast<double>(f_top) - static_cast<double>(f[target]));
    out[1] = std::log(c_sum) + (static_cast<double>(c_top) - static_cast<double>(c[target]));
    out[2] = std::log(f_sum) - f_mean / f_sum;
    out[3] = std::log(c_sum) - c_mean / c_sum;
    out[4] = gap / f_sum + std::log(c_sum) - std::log(f_sum);
    out[5] = shared > 0 ? 1.0 : 0.0;
  }
};

}  // namespace kernels

namespace detail {

template <class B>
void append_figures(B& backend, const AnyTransformer<B>& model, const_matrix_view_t<B> full,
                    const_matrix_view_t<B> changed, std::span<const TokenId> rows,
                    std::span<const TokenId> targets, Workspace<B>& workspace,
                    std::vector<PredictionFigures>& figures) {
  const typename Workspace<B>::Frame frame(workspace);
  const Index count = static_cast<Index>(rows.size());
  const auto upload = [&](std::span<const TokenId> values) {
    const VectorView<TokenId> memory = workspace.template vector<TokenId>(count);
    backend.copy_from_host(values.data(), count, memory.data);
    return memory;
  };
  const VectorView<TokenId> index = upload(rows);
  const matrix_view_t<B> chosen = workspace.matrix(count, full.cols);
  const matrix_view_t<B> own = workspace.matrix(count, model.logit_columns());
  const matrix_view_t<B> other = workspace.matrix(count, model.logit_columns());
  ops::gather_rows(backend, full, index, chosen);
  model.logits(backend, chosen, own, workspace);
  ops::gather_rows(backend, changed, index, chosen);
  model.logits(backend, chosen, other, workspace);
  const VectorView<double> found = workspace.template vector<double>(6 * count);
  backend.for_each_row(
      count, kernels::PredictionRow<scalar_t<B>>{
                 own, other, upload(targets), model.config().vocabulary, {found.data, count, 6}});
  const std::vector<double> host = host_copy(backend, found);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double* f = host.data() + 6 * i;
    figures.push_back({f[0], f[1], f[2], f[3], f[4], f[5]});
  }
}

}  // namespace detail

/// Figures of the scored positions, from the final streams [T × d] of the full and of the changed
/// model. Logits exist for 128 rows of each at a time. Throws what token_losses throws.
template <class B>
std::vector<PredictionFigures> compare_predictions(B& backend, const AnyTransformer<B>& model,
                                                   const_matrix_view_t<B> full,
                                                   const_matrix_view_t<B> changed,
                                                   const ScoredPositions& scored,
                                                   Workspace<B>& workspace) {
  constexpr std::size_t block = 128;
  model.visit([&](const auto& own) { own.check_scored(scored, full.rows); });
  check_shape(changed, full.rows, full.cols, "compare_predictions: changed");
  std::vector<PredictionFigures> figures;
  for (std::size_t first = 0; first < scored.rows.size(); first += block) {
    const std::size_t count = std::min(block, scored.rows.size() - first);
    detail::append_figures(backend, model, full, changed,
                           std::span(scored.rows).subspan(first, count),
                           std::span(scored.targets).subspan(first, count), workspace, figures);
  }
  return figures;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
