// An MLP policy that chooses among k experts, row by row.
#pragma once

#include <algorithm>
#include <tuple>
#include <utility>

#include "wanamaker/gate/routing.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// score(backend, x, rows, scores, workspace) writes scores [T × k] for k experts in the backend's
/// memory; the row goes to the largest, of equal ones to the first. cost(tokens) as for gates.
template <class R, class B>
concept Router = Backend<B> && detail::HasCost<R> &&
    requires(const R& router, B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows,
             MatrixView<double> scores, Workspace<B>& workspace) {
  router.score(backend, x, rows, scores, workspace);
};

namespace kernels {

/// choices[i] = argmax_e scores[i, e], the first of equal ones; NaN is never chosen over a number,
/// and where all are NaN the first expert is.
struct LargestScore {
  ConstMatrixView<double> scores;
  VectorView<TokenId> choices;

  WANAMAKER_KERNEL void operator()(Index i) const {
    const double* row = scores.row(i);
    TokenId best = 0;
    for (Index e = 1; e < scores.cols; ++e) {
      if (row[e] > row[best] || (row[best] != row[best] && row[e] == row[e])) {
        best = static_cast<TokenId>(e);
      }
    }
    choices[i] = best;
  }
};

}  // namespace kernels

/// y[i] = expert_{c(i)}(x[i]) with c(i) the router's choice. Every expert runs once, on its own
/// rows only.
template <class Router, class... Experts>
class RoutedMlp {
 public:
  static constexpr Index experts = sizeof...(Experts);

  explicit RoutedMlp(Router router, Experts... all)
      : router_(std::move(router)), experts_(std::move(all)...) {}

  /// x, y [T × d].
  template <Backend B>
  void forward(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows, matrix_view_t<B> y,
               Workspace<B>& workspace) const {
    const typename Workspace<B>::Frame frame(workspace);
    const VectorView<TokenId> choices = choose(backend, x, rows, workspace);
    if (listener_) listener_(rows.layer, choices);
    const auto groups = detail::group_rows<sizeof...(Experts)>(backend, choices, workspace);
    run_experts(backend, x, rows, groups, y, workspace, std::index_sequence_for<Experts...>{});
  }

  /// The expert of each row [T], in workspace memory.
  template <Backend B>
  VectorView<TokenId> choose(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows,
                             Workspace<B>& workspace) const {
    const VectorView<TokenId> choices = workspace.template vector<TokenId>(x.rows);
    const MatrixView<double> scores(workspace.template vector<double>(x.rows * experts).data,
                                    x.rows, experts);
    router_.score(backend, x, rows, scores, workspace);
    backend.for_each(x.rows, kernels::LargestScore{scores, choices});
    return choices;
  }

  /// Router and, for every token, the dearest expert; bytes and parameters of all.
  MlpCost cost(Index tokens) const {
    MlpCost total = router_.cost(tokens);
    double dearest = 0;
    const auto add = [&](const MlpCost& own) {
      dearest = std::max(dearest, own.flops);
      total.weight_bytes += own.weight_bytes;
      total.parameters += own.parameters;
    };
    std::apply([&](const Experts&... expert) { (add(expert.cost(tokens)), ...); }, experts_);
    total.flops += dearest;
    return total;
  }

  /// Rows that went to each expert so far.
  const RoutingCounts& counts() const { return counts_; }
  void set_listener(RoutingListener listener) { listener_ = std::move(listener); }
  const Router& router() const { return router_; }
  template <std::size_t E>
  const auto& expert() const {
    return std::get<E>(experts_);
  }
  template <std::size_t E>
  auto& expert() {
    return std::get<E>(experts_);
  }

 private:
  template <Backend B, std::size_t... E>
  void run_experts(B& backend, const_matrix_view_t<B> x, const RowContext<B>& rows,
                   const RowGroups<sizeof...(Experts)>& groups, matrix_view_t<B> y,
                   Workspace<B>& workspace, std::index_sequence<E...>) const {
    (detail::run_on_rows(std::get<E>(experts_), backend, x, rows, groups.rows_of(E), y, workspace),
     ...);
    (counts_.add(E, groups.rows_of(E).size), ...);
  }

  Router router_;
  std::tuple<Experts...> experts_;
  RoutingCounts counts_{experts};
  RoutingListener listener_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
