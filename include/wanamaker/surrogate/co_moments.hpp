// Co-moments of inputs and outputs, from one pass over the data: what every surrogate is fitted
// from. Memory is d² and does not grow with tokens; blocks merge pairwise. docs/surrogates.md.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "wanamaker/backend/generic.hpp"
#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/backend/host_memory.hpp"
#include "wanamaker/backend/instruction_set.hpp"
#include "wanamaker/surrogate/co_moment_kernels.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The numbers that make up co-moments, for files and for other processes. X [n × d] inputs,
/// Y [n × e] outputs, w the rows' weights.
struct CoMomentState {
  Index rows = 0;     ///< rows with a weight above 0
  double weight = 0;  ///< Σ w; the number of rows where they are unweighted
  GramPrecision precision = GramPrecision::exact;
  std::vector<double> mean_x{};  ///< [d] Σ w x/Σ w
  std::vector<double> mean_y{};  ///< [e]
  std::vector<double> xx{};      ///< [d × d] Σ w (x − mean_x)(x − mean_x)ᵀ
  std::vector<double> xy{};      ///< [d × e] Σ w (x − mean_x)(y − mean_y)ᵀ
  std::vector<double> yy{};      ///< [e] Σ w (y − mean_y)²
};

namespace detail {

template <class B>
inline constexpr bool computes_in_host_memory = std::is_base_of_v<HostMemory, B>;

template <class T>
ConstVectorView<T> view_of(const std::vector<T>& values) {
  return {values.data(), static_cast<Index>(values.size())};
}
template <class T>
VectorView<T> view_of(std::vector<T>& values) {
  return {values.data(), static_cast<Index>(values.size())};
}

// f(row, team) over host memory: by the backend where its memory is the host's, else serially.
template <class B, class F>
void for_each_host_row(B& backend, Index rows, F f) {
  if constexpr (computes_in_host_memory<B>) {
    backend.for_each_row(rows, f);
  } else {
    for (Index i = 0; i < rows; ++i) f(i, SerialRowTeam{});
  }
}

// A host view of n doubles in the backend's memory, copied to `copy` only where it must be.
template <class B>
ConstVectorView<double> on_host(B& backend, VectorView<double> values, std::vector<double>& copy) {
  backend.synchronize();
  if constexpr (computes_in_host_memory<B>) {
    return values;
  } else {
    copy.resize(static_cast<std::size_t>(values.size));
    backend.copy_to_host(values.data, values.size, copy.data());
    return view_of(std::as_const(copy));
  }
}

// What a block's columns come to, on the host.
struct ColumnSummary {
  std::vector<double> mean;
  std::vector<double> rest;  // mean(x − shift)
  std::vector<double> square;
};

// A block's columns, shifted and √w times them, in the backend's memory.
template <class B>
struct ShiftedColumns {
  ColumnSummary summary;
  const_matrix_view_t<B> shifted;
};

// mean, deviation from the first row, square of x's columns.
template <class B>
std::array<VectorView<double>, 3> column_statistics(B& backend, const_matrix_view_t<B> x,
                                                    ConstVectorView<double> weights,
                                                    Workspace<B>& workspace) {
  using T = scalar_t<B>;
  const auto doubles = [&](Index n) { return workspace.template vector<double>(n); };
  const Index blocks = blocks_of(x.rows, kernels::column_sum_rows);
  const VectorView<double> weight = doubles(blocks);
  const MatrixView<double> sum(doubles(blocks * x.cols).data, blocks, x.cols);
  const MatrixView<double> square(doubles(blocks * x.cols).data, blocks, x.cols);
  const std::array<VectorView<double>, 3> columns{doubles(x.cols), doubles(x.cols),
                                                  doubles(x.cols)};
  backend.for_each_row(blocks, kernels::ColumnSums<T>{x, weights, weight, sum, square});
  backend.for_each(x.cols, kernels::MergeColumns<T>{x, weights, weight, sum, square, columns[0],
                                                    columns[1], columns[2]});
  return columns;
}

// Where there is nothing to shift and no weight, x itself.
template <class B>
ShiftedColumns<B> shift_columns(B& backend, const_matrix_view_t<B> x,
                                ConstVectorView<double> weights, double weight_sum,
                                Workspace<B>& workspace) {
  using T = scalar_t<B>;
  const auto [mean, deviation, square] = column_statistics<B>(backend, x, weights, workspace);
  const VectorView<T> shift = workspace.template vector<T>(x.cols);
  const VectorView<double> rest = workspace.template vector<double>(x.cols);
  backend.for_each(x.cols, kernels::ChooseShift<T>{x, weights, deviation, mean, square, weight_sum,
                                                   shift, rest});
  const std::vector<T> shifts = host_copy(backend, shift);
  ShiftedColumns<B> result{
      {host_copy(backend, mean), host_copy(backend, rest), host_copy(backend, square)}, x};
  const bool is_shifted = std::any_of(shifts.begin(), shifts.end(), [](T s) { return s != T(0); });
  if (!is_shifted && weights.empty()) return result;
  const matrix_view_t<B> shifted = workspace.matrix(x.rows, x.cols);
  backend.for_each_row(x.rows, kernels::ShiftRow<T>{x, shift, weights, shifted});
  result.shifted = shifted;
  return result;
}

inline void check_finite_columns(const ColumnSummary& summary, const char* which) {
  for (std::size_t j = 0; j < summary.mean.size(); ++j) {
    if (std::isfinite(summary.square[j]) && std::isfinite(summary.mean[j])) continue;
    throw DataError({.id = "data/non-finite-activation",
                     .where = std::string("co-moments, ") + which + ", column " + std::to_string(j),
                     .what = "values that are not finite, or whose squares overflow",
                     .expected = "finite numbers",
                     .mend = "check the model's weights, or compute in a wider type"});
  }
}

inline void check_finite_products(ConstVectorView<double> products) {
  for (Index i = 0; i < products.size; ++i) {
    if (std::isfinite(products[i])) continue;
    throw NumericalError({.id = "numeric/gram-overflow",
                          .where = "co-moments",
                          .what = "products of a block overflow its scalar type",
                          .mend = "use GramPrecision::exact"});
  }
}

}  // namespace detail

/// Weight, means and centred co-moments of pairs (x, y), accumulated in double.
///
/// A block of rows is shifted by (about) its own column means before its products are taken, so
/// that neither float products nor large means cost digits; the block's exact co-moments then
/// follow, and merge into the running ones pairwise (Chan, Golub & LeVeque 1983). Adding a block
/// equals merging the co-moments of that block alone, to the last bit; the order of blocks changes
/// results by roundings only.
class CoMoments {
 public:
  CoMoments() = default;

  /// Empty co-moments of d inputs and e outputs. `exact`: products of floats are exact in double,
  /// the default, since λ may be far below the roundings of a float product (docs/surrogates.md
  /// has the measurement); `blocked` multiplies blocks of rows in the backend's scalar.
  CoMoments(Index inputs, Index outputs, GramPrecision precision = GramPrecision::exact) {
    const std::size_t d = static_cast<std::size_t>(inputs);
    const std::size_t e = static_cast<std::size_t>(outputs);
    state_ = {.precision = precision,
              .mean_x = std::vector<double>(d),
              .mean_y = std::vector<double>(e),
              .xx = std::vector<double>(d * d),
              .xy = std::vector<double>(d * e),
              .yy = std::vector<double>(e)};
  }

  /// From stored numbers. Throws DataError for sizes that do not fit, negative weights or squares,
  /// and values that are not finite.
  explicit CoMoments(CoMomentState state) : state_(std::move(state)) { check_state(); }

  Index inputs() const { return static_cast<Index>(state_.mean_x.size()); }
  Index outputs() const { return static_cast<Index>(state_.mean_y.size()); }
  /// Rows of weight above 0.
  Index rows() const { return state_.rows; }
  /// Σ w.
  double weight() const { return state_.weight; }
  /// How the products were taken; `blocked` as soon as one merged part was.
  GramPrecision precision() const { return state_.precision; }
  std::span<const double> mean_x() const { return state_.mean_x; }
  std::span<const double> mean_y() const { return state_.mean_y; }
  /// [d × d], symmetric.
  ConstMatrixView<double> xx() const { return {state_.xx.data(), inputs(), inputs()}; }
  /// [d × e].
  ConstMatrixView<double> xy() const { return {state_.xy.data(), inputs(), outputs()}; }
  /// [e].
  std::span<const double> yy() const { return state_.yy; }
  const CoMomentState& state() const { return state_; }

  /// Adds the rows of x [T × d] and y [T × e], in the backend's memory. Throws ShapeError,
  /// DataError where a value is not finite, NumericalError where a blocked product overflows; then
  /// nothing was added.
  template <Backend B>
  void add(B& backend, const_matrix_view_t<B> x, const_matrix_view_t<B> y,
           Workspace<B>& workspace) {
    check_rows(x.rows, x.cols, y.rows, y.cols);
    for (Index first = 0; first < x.rows; first += block_rows) {
      const Index count = std::min(block_rows, x.rows - first);
      add_block<B>(backend, x.middle_rows(first, count), y.middle_rows(first, count), {},
                   {count, static_cast<double>(count)}, workspace);
    }
  }

  /// The same with weights [T] >= 0 in host memory. Rows enter products as √w·(x − shift), rounded
  /// to the backend's scalar.
  template <Backend B>
  void add(B& backend, const_matrix_view_t<B> x, const_matrix_view_t<B> y,
           std::span<const double> weights, Workspace<B>& workspace) {
    check_rows(x.rows, x.cols, y.rows, y.cols);
    check_weights(weights, x.rows);
    for (Index first = 0; first < x.rows; first += block_rows) {
      const Index count = std::min(block_rows, x.rows - first);
      const auto own =
          weights.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
      const BlockWeight block = sum_of(own);
      if (block.rows == 0) continue;
      const typename Workspace<B>::Frame frame(workspace);
      const VectorView<double> memory = workspace.template vector<double>(count);
      backend.copy_from_host(own.data(), count, memory.data);
      add_block<B>(backend, x.middle_rows(first, count), y.middle_rows(first, count), memory, block,
                   workspace);
    }
  }

  /// Adds what `other` has seen. Throws ShapeError.
  void merge(const CoMoments& other) {
    check_rows(other.rows(), other.inputs(), other.rows(), other.outputs());
    if (other.weight() == 0) return;
    SerialRows rows;
    const std::vector<double> no_rest(
        static_cast<std::size_t>(std::max(other.inputs(), other.outputs())));
    const Part part{
        other.rows(),
        other.weight(),
        {detail::view_of(other.state_.mean_x),
         detail::view_of(no_rest).middle(0, other.inputs()),
         {}},
        {detail::view_of(other.state_.mean_y), detail::view_of(no_rest).middle(0, other.outputs()),
         detail::view_of(other.state_.yy)},
        other.xx(),
        other.xy()};
    fold(rows, part);
    if (other.precision() == GramPrecision::blocked) state_.precision = GramPrecision::blocked;
  }

 private:
  // Larger inputs are cut, so that the shifted copy of a block stays small.
  static constexpr Index block_rows = 4096;

  struct BlockWeight {
    Index rows;
    double weight;
  };

  // One side of what is merged in.
  struct Side {
    ConstVectorView<double> mean;
    ConstVectorView<double> rest;
    ConstVectorView<double> square;
  };
  struct Part {
    Index rows;
    double weight;
    Side x;
    Side y;
    ConstMatrixView<double> xx;
    ConstMatrixView<double> xy;
  };

  struct SerialRows {
    template <class F>
    void operator()(Index rows, F f) const {
      run_range(0, rows, [=](Index i) { f(i, SerialRowTeam{}); });
    }
  };

  template <class B>
  void add_block(B& backend, const_matrix_view_t<B> x, const_matrix_view_t<B> y,
                 ConstVectorView<double> weights, BlockWeight own, Workspace<B>& workspace) {
    const typename Workspace<B>::Frame frame(workspace);
    const auto left = detail::shift_columns<B>(backend, x, weights, own.weight, workspace);
    const auto right = detail::shift_columns<B>(backend, y, weights, own.weight, workspace);
    detail::check_finite_columns(left.summary, "input");
    detail::check_finite_columns(right.summary, "output");
    std::vector<double> xx_copy;
    std::vector<double> xy_copy;
    const auto xx = products<B>(backend, left.shifted, left.shifted, xx_copy, workspace);
    const auto xy = products<B>(backend, left.shifted, right.shifted, xy_copy, workspace);
    const auto rows = [&backend](Index n, auto f) { detail::for_each_host_row(backend, n, f); };
    fold(rows, {own.rows, own.weight, side_of(left.summary), side_of(right.summary), xx, xy});
  }

  // aᵀb of a block, as a host view.
  template <class B>
  ConstMatrixView<double> products(B& backend, const_matrix_view_t<B> a, const_matrix_view_t<B> b,
                                   std::vector<double>& copy, Workspace<B>& workspace) const {
    const MatrixView<double> c(workspace.template vector<double>(a.cols * b.cols).data, a.cols,
                               b.cols);
    backend.for_each_row(c.rows, kernels::FillRow<double>{0.0, c});
    backend.gram(a, b, c, state_.precision);
    const ConstVectorView<double> values = detail::on_host(backend, {c.data, c.size()}, copy);
    const bool may_overflow =
        state_.precision == GramPrecision::blocked && !std::is_same_v<scalar_t<B>, double>;
    if (may_overflow) detail::check_finite_products(values);
    return {values.data, c.rows, c.cols};
  }

  static Side side_of(const detail::ColumnSummary& columns) {
    return {detail::view_of(columns.mean), detail::view_of(columns.rest),
            detail::view_of(columns.square)};
  }

  template <class ForEachRow>
  void fold(const ForEachRow& for_each_row, const Part& part) {
    const double total = state_.weight + part.weight;
    const double factor = state_.weight / total * part.weight;
    const std::vector<double> x_step = step_of(state_.mean_x, part.x.mean);
    const std::vector<double> y_step = step_of(state_.mean_y, part.y.mean);
    const auto dx = detail::view_of(x_step);
    const auto dy = detail::view_of(y_step);
    for_each_row(inputs(), kernels::FoldRow{part.xx,
                                            part.x.rest,
                                            part.x.rest,
                                            part.weight,
                                            dx,
                                            dx,
                                            factor,
                                            {state_.xx.data(), inputs(), inputs()}});
    for_each_row(inputs(), kernels::FoldRow{part.xy,
                                            part.x.rest,
                                            part.y.rest,
                                            part.weight,
                                            dx,
                                            dy,
                                            factor,
                                            {state_.xy.data(), inputs(), outputs()}});
    for (std::size_t j = 0; j < state_.yy.size(); ++j) {
      state_.yy[j] += part.y.square[static_cast<Index>(j)] + factor * (y_step[j] * y_step[j]);
    }
    move_mean(state_.mean_x, x_step, part.weight / total);
    move_mean(state_.mean_y, y_step, part.weight / total);
    state_.weight = total;
    state_.rows += part.rows;
  }

  static std::vector<double> step_of(const std::vector<double>& from, ConstVectorView<double> to) {
    std::vector<double> step(from.size());
    for (std::size_t j = 0; j < step.size(); ++j) step[j] = to[static_cast<Index>(j)] - from[j];
    return step;
  }
  static void move_mean(std::vector<double>& mean, const std::vector<double>& step, double share) {
    for (std::size_t j = 0; j < mean.size(); ++j) mean[j] += share * step[j];
  }

  void check_rows(Index x_rows, Index x_cols, Index y_rows, Index y_cols) const {
    if (x_rows == y_rows && x_cols == inputs() && y_cols == outputs()) return;
    throw ShapeError({.id = "shape/co-moments",
                      .where = "CoMoments",
                      .what = "inputs and outputs do not fit",
                      .expected = "[n × " + std::to_string(inputs()) + "] and [n × " +
                                  std::to_string(outputs()) + "]",
                      .found = shape_text(x_rows, x_cols) + " and " + shape_text(y_rows, y_cols),
                      .mend = "pass as many outputs as inputs, of this model's width"});
  }

  static void check_weights(std::span<const double> weights, Index rows) {
    check_size(ConstVectorView<double>(weights.data(), static_cast<Index>(weights.size())), rows,
               "CoMoments::add: weights");
    for (std::size_t t = 0; t < weights.size(); ++t) {
      if (weights[t] >= 0 && std::isfinite(weights[t])) continue;
      throw DataError({.id = "data/bad-weight",
                       .where = "CoMoments::add, row " + std::to_string(t),
                       .what = "a weight that cannot be used",
                       .expected = "finite, at least 0",
                       .found = std::to_string(weights[t]),
                       .mend = "correct the weights"});
    }
  }
  static BlockWeight sum_of(std::span<const double> weights) {
    BlockWeight sum{0, 0};
    for (const double w : weights) {
      sum.rows += w > 0 ? 1 : 0;
      sum.weight += w;
    }
    return sum;
  }

  void check_state() const {
    const std::size_t d = state_.mean_x.size();
    const std::size_t e = state_.mean_y.size();
    if (state_.xx.size() != d * d || state_.xy.size() != d * e || state_.yy.size() != e) {
      throw_bad_state("arrays of sizes d, e, d·d, d·e and e", "other sizes");
    }
    if (state_.rows < 0 || !(state_.weight >= 0)) throw_bad_state("weights >= 0", "others");
    const auto is_finite = [](double v) { return std::isfinite(v); };
    for (const auto* values :
         {&state_.mean_x, &state_.mean_y, &state_.xx, &state_.xy, &state_.yy}) {
      if (!std::all_of(values->begin(), values->end(), is_finite)) {
        throw_bad_state("finite numbers", "others");
      }
    }
  }
  [[noreturn]] static void throw_bad_state(std::string expected, std::string found) {
    throw DataError({.id = "data/bad-co-moments",
                     .where = "CoMoments",
                     .what = "stored co-moments that cannot be",
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .mend = "collect them again"});
  }

  CoMomentState state_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
