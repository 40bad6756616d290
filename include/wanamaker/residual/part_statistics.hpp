// How large the parts of a vector are, how they lie to each other and along chosen directions, as
// statistics over positions that stream: memory does not depend on how many there were.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/matrix_view.hpp"
#include "wanamaker/stats/running_moments.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Norms, cosines and projections of P parts that add up to a total. Sums run in the order of the
/// positions; pieces counted apart merge as if counted together, up to rounding. Memory: P² + P·D
/// numbers for D directions.
class PartStatistics {
 public:
  /// Directions [d] each, in the space of the parts; they need not have length 1.
  explicit PartStatistics(Index parts, std::vector<std::vector<double>> directions = {})
      : parts_(parts),
        directions_(std::move(directions)),
        norms_(count(parts)),
        cosines_(count(parts * parts)),
        products_(count(parts * parts)),
        projections_(directions_.size(), std::vector<RunningMoments>(count(parts))),
        with_total_(directions_.size(), std::vector<double>(count(parts))),
        totals_(directions_.size()) {}

  /// One position: its parts [P × d]. Throws ShapeError where they do not fit.
  void add(ConstMatrixView<double> parts) {
    check_shape(parts, parts_, parts.cols, "PartStatistics::add: parts");
    ++positions_;
    add_products(parts);
    for (std::size_t k = 0; k < directions_.size(); ++k) {
      check_size(VectorView<const double>(directions_[k].data(),
                                          static_cast<Index>(directions_[k].size())),
                 parts.cols, "PartStatistics::add: direction");
      add_projections(parts, k);
    }
  }

  /// As if the positions of `other`, of equally many parts and directions, had been added after
  /// these. Throws ShapeError.
  void merge(const PartStatistics& other) {
    check_like(other);
    merge_totals(other);
    positions_ += other.positions_;
    for (std::size_t p = 0; p < norms_.size(); ++p) norms_[p].merge(other.norms_[p]);
    for (std::size_t i = 0; i < products_.size(); ++i) {
      cosines_[i].merge(other.cosines_[i]);
      products_[i] += other.products_[i];
    }
  }

  Index parts() const { return parts_; }
  Index positions() const { return positions_; }
  Index directions() const { return static_cast<Index>(directions_.size()); }

  /// Of ‖c_p‖ over positions, in the unit of the parts.
  const RunningMoments& norm(Index p) const { return norms_[count(p)]; }
  /// Of cos(c_p, c_q) over the positions where neither is 0.
  const RunningMoments& cosine(Index p, Index q) const { return cosines_[at(p, q)]; }
  /// Σ⟨c_p, c_q⟩ / √(Σ‖c_p‖² Σ‖c_q‖²): positions weigh by their lengths. Missing where a part is 0
  /// everywhere.
  std::optional<double> pooled_cosine(Index p, Index q) const {
    const double squares = products_[at(p, p)] * products_[at(q, q)];
    if (!(squares > 0)) return std::nullopt;
    return products_[at(p, q)] / std::sqrt(squares);
  }
  /// Σ⟨c_p, c⟩ / Σ‖c‖² with c the total: the parts' shares of its squared length; they add up to 1,
  /// and are negative for what the others cancel. Missing where the total is 0 everywhere.
  std::optional<double> length_share(Index p) const {
    double own = 0;
    double all = 0;
    for (Index q = 0; q < parts_; ++q) {
      own += products_[at(p, q)];
      for (Index r = 0; r < parts_; ++r) all += products_[at(q, r)];
    }
    if (!(all > 0)) return std::nullopt;
    return own / all;
  }

  /// Of ⟨c_p, v_k⟩ over positions.
  const RunningMoments& projection(Index k, Index p) const {
    return projections_[count(k)][count(p)];
  }
  /// Of ⟨c, v_k⟩, c the total.
  const RunningMoments& total_projection(Index k) const { return totals_[count(k)]; }
  /// cov(⟨c_p, v_k⟩, ⟨c, v_k⟩) / var(⟨c, v_k⟩): which share of the variance along the direction
  /// comes with the part; the shares add up to 1. Missing where the total does not vary.
  std::optional<double> projection_share(Index k, Index p) const {
    const RunningMoments& total = totals_[count(k)];
    const std::optional<double> variance = total.variance();
    if (!variance || !(*variance > 0)) return std::nullopt;
    const double degrees = static_cast<double>(total.count() - 1);
    return with_total_[count(k)][count(p)] / degrees / *variance;
  }

 private:
  static std::size_t count(Index n) { return static_cast<std::size_t>(n); }
  std::size_t at(Index p, Index q) const { return count(p * parts_ + q); }

  static double dot(const double* a, const double* b, Index n) {
    double sum = 0;
    for (Index j = 0; j < n; ++j) sum += a[j] * b[j];
    return sum;
  }

  void add_products(ConstMatrixView<double> parts) {
    scratch_.resize(norms_.size());
    for (Index p = 0; p < parts_; ++p) {
      scratch_[count(p)] = std::sqrt(dot(parts.row(p), parts.row(p), parts.cols));
      norms_[count(p)].add(scratch_[count(p)]);
    }
    for (Index p = 0; p < parts_; ++p) {
      for (Index q = p; q < parts_; ++q) {
        const double product = dot(parts.row(p), parts.row(q), parts.cols);
        const double lengths = scratch_[count(p)] * scratch_[count(q)];
        add_pair(p, q, product, lengths);
        if (p != q) add_pair(q, p, product, lengths);
      }
    }
  }

  void add_pair(Index p, Index q, double product, double lengths) {
    products_[at(p, q)] += product;
    if (lengths > 0) cosines_[at(p, q)].add(product / lengths);
  }

  // The co-moment with the total as in Welford 1962: the deviation of the part from its old mean
  // times that of the total from its new one.
  void add_projections(ConstMatrixView<double> parts, std::size_t k) {
    scratch_.resize(norms_.size());
    double total = 0;
    for (Index p = 0; p < parts_; ++p) {
      scratch_[count(p)] = dot(parts.row(p), directions_[k].data(), parts.cols);
      total += scratch_[count(p)];
    }
    totals_[k].add(total);
    const double from_mean = total - *totals_[k].mean();
    for (std::size_t p = 0; p < scratch_.size(); ++p) {
      with_total_[k][p] += (scratch_[p] - projections_[k][p].mean().value_or(0)) * from_mean;
      projections_[k][p].add(scratch_[p]);
    }
  }

  void merge_totals(const PartStatistics& other) {
    const double here = static_cast<double>(positions_);
    const double there = static_cast<double>(other.positions_);
    const double weight = here > 0 && there > 0 ? here * (there / (here + there)) : 0.0;
    for (std::size_t k = 0; k < directions_.size(); ++k) {
      const double step = other.totals_[k].mean().value_or(0) - totals_[k].mean().value_or(0);
      for (std::size_t p = 0; p < norms_.size(); ++p) {
        const double own_step =
            other.projections_[k][p].mean().value_or(0) - projections_[k][p].mean().value_or(0);
        with_total_[k][p] += other.with_total_[k][p] + own_step * step * weight;
        projections_[k][p].merge(other.projections_[k][p]);
      }
      totals_[k].merge(other.totals_[k]);
    }
  }

  void check_like(const PartStatistics& other) const {
    if (parts_ == other.parts_ && directions_ == other.directions_) return;
    throw ShapeError({.id = "shape/part-statistics",
                      .where = "PartStatistics::merge",
                      .what = "statistics of other parts or directions",
                      .expected = std::to_string(parts_) + " parts along " +
                                  std::to_string(directions_.size()) + " equal directions",
                      .found = std::to_string(other.parts_) + " along " +
                               std::to_string(other.directions_.size()),
                      .mend = "merge statistics of the same parts"});
  }

  Index parts_;
  std::vector<std::vector<double>> directions_;
  Index positions_ = 0;
  std::vector<RunningMoments> norms_;
  std::vector<RunningMoments> cosines_;                   // [P × P]
  std::vector<double> products_;                          // Σ⟨c_p, c_q⟩ [P × P]
  std::vector<std::vector<RunningMoments>> projections_;  // [D][P]
  std::vector<std::vector<double>> with_total_;           // co-moments with the total [D][P]
  std::vector<RunningMoments> totals_;                    // [D]
  std::vector<double> scratch_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
