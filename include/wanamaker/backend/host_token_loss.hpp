// Losses per token on the host, straight from the rows that the head multiplies: of the logits only
// one tile for each thread exists, in cache, reduced to its largest entry and its sum by row.
#pragma once

#include <cmath>
#include <limits>

#include "wanamaker/backend/kernels.hpp"
#include "wanamaker/backend/row_team.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace detail {

// What is kept of tiles of logits: for each row and tile the largest logit and Σ e^(logit −
// largest), for each row the target's logit.
template <class T>
struct TileSums {
  MatrixView<T> largest;    // [T × tiles]
  MatrixView<double> sums;  // [T × tiles]
  VectorView<T> target;     // [T]
};

// Reduces rows of one tile of logits, which begin at row `first_row` and column `first_column`.
template <class T>
struct TileSumRow {
  ConstMatrixView<T> logits;
  ConstVectorView<TokenId> targets;
  Index first_row;
  Index first_column;
  Index tile;
  TileSums<T> to;

  WANAMAKER_KERNEL void operator()(Index i) const {
    const SerialRowTeam team;
    const T* row = logits.row(i);
    const Index r = first_row + i;
    const T top = team.template max<T>(logits.cols, row[0], [=](Index j) { return row[j]; });
    const double sum = team.template sum<double>(
        logits.cols, [=](Index j) { return exponential_of_nonpositive(row[j] - top); });
    to.largest(r, tile) = top;
    // A tile of −∞ alone adds nothing.
    to.sums(r, tile) = top == -std::numeric_limits<T>::infinity() ? 0.0 : sum;
    const Index column = targets[r] - first_column;
    if (column >= 0 && column < logits.cols) to.target[r] = row[column];
  }
};

// nll[i] from a row's tiles, in their order.
template <class T>
struct TileLoss {
  TileSums<T> from;
  VectorView<double> nll;

  WANAMAKER_KERNEL void operator()(Index i) const {
    const T* largest = from.largest.row(i);
    double top = static_cast<double>(largest[0]);
    for (Index t = 1; t < from.largest.cols; ++t) {
      top = top < static_cast<double>(largest[t]) ? static_cast<double>(largest[t]) : top;
    }
    double sum = 0;
    for (Index t = 0; t < from.largest.cols; ++t) {
      sum += from.sums(i, t) * std::exp(static_cast<double>(largest[t]) - top);
    }
    nll[i] = std::log(sum) + (top - static_cast<double>(from.target[i]));
  }
};

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
