// Rows for benchmarks of fits, which bench/peers.py makes again: uniform draws mixed so that the
// variances of directions fall as those of MLP inputs do.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "wanamaker/core/matrix_view.hpp"
#include "wanamaker/core/random.hpp"

namespace wanamaker_bench {

using wanamaker::Index;

/// x_ij = 0.9·x_i,j−1 + u/√(1 + j/20), and `extra` more draws for each row; u uniform in ±½.
struct MixedRows {
  Index rows;
  Index width;
  Index extra;
  std::vector<float> x{};
  std::vector<double> draws{};  ///< [rows × extra]

  MixedRows(Index n, Index d, Index e) : rows(n), width(d), extra(e) {
    wanamaker::RandomStream stream(1);
    x.reserve(static_cast<std::size_t>(n * d));
    draws.reserve(static_cast<std::size_t>(n * e));
    for (Index i = 0; i < n; ++i) add_row(stream);
  }

  wanamaker::ConstMatrixView<float> view() const { return {x.data(), rows, width}; }

 private:
  void add_row(wanamaker::RandomStream& stream) {
    float before = 0;
    for (Index j = 0; j < width; ++j) {
      const double scale = 1 / std::sqrt(1.0 + 0.05 * static_cast<double>(j));
      before = 0.9F * before + static_cast<float>(scale * (stream.uniform() - 0.5));
      x.push_back(before);
    }
    for (Index j = 0; j < extra; ++j) draws.push_back(stream.uniform() - 0.5);
  }
};

}  // namespace wanamaker_bench
