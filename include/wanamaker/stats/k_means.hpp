// k-means clustering: seeded, and the same for any number of threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/matrix_view.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/stats/checks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Clusters, restarts and iterations of k-means.
struct KMeansOptions {
  Index clusters = 20;     ///< k, at least 2
  Index restarts = 10;     ///< the run with the smallest inertia is kept
  Index iterations = 300;  ///< at most, in each run
  std::uint64_t seed = 0;
};

/// k centres and the rows that are nearest to each.
struct KMeans {
  std::vector<double> centres{};    ///< [k × d], row-major
  std::vector<Index> assignment{};  ///< [n] the nearest centre, the first of equally near ones
  std::vector<Index> sizes{};       ///< [k] rows of each
  double inertia = 0;               ///< Σ ‖x − its centre‖²
  Index iterations = 0;             ///< of the run that was kept
  bool converged = false;           ///< assignments stopped changing

  Index clusters() const { return static_cast<Index>(sizes.size()); }
};

namespace detail {

inline double squared_distance(const double* a, const double* b, Index n) {
  double sum = 0;
  for (Index j = 0; j < n; ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
  return sum;
}

[[noreturn]] inline void throw_clusters(std::string what, Index clusters, Index rows,
                                        const char* where) {
  throw DataError(
      {.id = "stats/clusters",
       .where = where,
       .what = std::move(what),
       .expected = "2 clusters or more, and as many different rows",
       .found = std::to_string(clusters) + " clusters of " + std::to_string(rows) + " rows",
       .mend = "ask for fewer clusters or give more rows"});
}

inline void check_finite_rows(ConstMatrixView<double> x, const char* where) {
  for (Index i = 0; i < x.rows; ++i) {
    check_finite({x.row(i), static_cast<std::size_t>(x.cols)}, where);
  }
}

/// One run on rows that were checked. Rows are worked on in blocks that do not depend on threads,
/// and sums of blocks are merged in their order.
class KMeansRun {
 public:
  KMeansRun(ConstMatrixView<double> x, Index clusters, const ExecutorRef& executor)
      : x_(x),
        k_(clusters),
        executor_(executor),
        distances_(static_cast<std::size_t>(x.rows), std::numeric_limits<double>::infinity()) {
    result_.centres.resize(static_cast<std::size_t>(clusters * x.cols));
    result_.assignment.assign(static_cast<std::size_t>(x.rows), -1);
    result_.sizes.resize(static_cast<std::size_t>(clusters));
  }

  /// k-means++: each centre is a row drawn with probability proportional to its squared distance
  /// from the nearest centre before it. False where fewer rows than k differ.
  bool choose_centres(RandomStream& random) {
    set_centre(0, static_cast<Index>(random.below(static_cast<std::uint64_t>(x_.rows))));
    for (Index c = 1; c < k_; ++c) {
      lower_distances(c - 1);
      const double total = std::accumulate(distances_.begin(), distances_.end(), 0.0);
      if (!(total > 0)) return false;
      set_centre(c, drawn_row(random.uniform() * total));
    }
    return true;
  }
  void set_centres(ConstMatrixView<double> centres) {
    for (Index c = 0; c < k_; ++c) std::copy_n(centres.row(c), x_.cols, centre(c));
  }

  /// Lloyd 1982: rows to the nearest centre, centres to the mean of their rows.
  KMeans run(Index iterations) {
    while (result_.iterations < iterations && !result_.converged) {
      result_.converged = !assign();
      if (fill_empty_clusters()) result_.converged = false;
      if (!result_.converged) move_centres();
      ++result_.iterations;
    }
    if (!result_.converged) assign();
    count_sizes();
    result_.inertia = std::accumulate(distances_.begin(), distances_.end(), 0.0);
    return std::move(result_);
  }

 private:
  static constexpr Index block = 512;

  double* centre(Index c) { return result_.centres.data() + c * x_.cols; }
  void set_centre(Index c, Index row) { std::copy_n(x_.row(row), x_.cols, centre(c)); }
  double& distance(Index row) { return distances_[static_cast<std::size_t>(row)]; }
  Index& cluster_of(Index row) { return result_.assignment[static_cast<std::size_t>(row)]; }

  // f(row, block) over all rows, blocks in parallel.
  template <class F>
  void for_each_row(F&& f) {
    executor_.run(blocks_of(x_.rows, block), [&](Index b) {
      for (Index i = b * block; i < std::min(x_.rows, (b + 1) * block); ++i) f(i, b);
    });
  }

  void lower_distances(Index c) {
    for_each_row([&](Index i, Index) {
      distance(i) = std::min(distance(i), squared_distance(x_.row(i), centre(c), x_.cols));
    });
  }

  Index drawn_row(double mass) const {
    Index last = 0;
    for (Index i = 0; i < x_.rows; ++i) {
      const double own = distances_[static_cast<std::size_t>(i)];
      if (!(own > 0)) continue;
      last = i;
      mass -= own;
      if (mass < 0) break;
    }
    return last;
  }

  // Has any row another centre than before?
  bool assign() {
    std::vector<char> changed(static_cast<std::size_t>(blocks_of(x_.rows, block)));
    for_each_row([&](Index i, Index b) {
      Index nearest = 0;
      double least = std::numeric_limits<double>::infinity();
      for (Index c = 0; c < k_; ++c) {
        const double own = squared_distance(x_.row(i), centre(c), x_.cols);
        if (own < least) {
          least = own;
          nearest = c;
        }
      }
      if (cluster_of(i) != nearest) changed[static_cast<std::size_t>(b)] = 1;
      cluster_of(i) = nearest;
      distance(i) = least;
    });
    count_sizes();
    return std::find(changed.begin(), changed.end(), 1) != changed.end();
  }

  void count_sizes() {
    std::fill(result_.sizes.begin(), result_.sizes.end(), Index{0});
    for (const Index c : result_.assignment) ++result_.sizes[static_cast<std::size_t>(c)];
  }

  // A centre without rows takes the row that is farthest from its own, if that leaves another.
  bool fill_empty_clusters() {
    bool filled = false;
    for (Index c = 0; c < k_; ++c) {
      if (result_.sizes[static_cast<std::size_t>(c)] > 0) continue;
      const Index row = farthest_row();
      if (row < 0) return filled;
      --result_.sizes[static_cast<std::size_t>(cluster_of(row))];
      result_.sizes[static_cast<std::size_t>(c)] = 1;
      cluster_of(row) = c;
      distance(row) = 0;
      filled = true;
    }
    return filled;
  }

  Index farthest_row() {
    Index farthest = -1;
    double most = 0;
    for (Index i = 0; i < x_.rows; ++i) {
      const bool shared = result_.sizes[static_cast<std::size_t>(cluster_of(i))] > 1;
      if (!shared || !(distance(i) > most)) continue;
      most = distance(i);
      farthest = i;
    }
    return farthest;
  }

  void move_centres() {
    const std::size_t size = result_.centres.size();
    std::vector<double> sums(static_cast<std::size_t>(blocks_of(x_.rows, block)) * size);
    for_each_row([&](Index i, Index b) {
      double* sum = sums.data() + b * static_cast<Index>(size) + cluster_of(i) * x_.cols;
      for (Index j = 0; j < x_.cols; ++j) sum[j] += x_(i, j);
    });
    for (std::size_t from = size; from < sums.size(); from += size) {
      for (std::size_t j = 0; j < size; ++j) sums[j] += sums[from + j];
    }
    for (Index c = 0; c < k_; ++c) {
      const Index rows = result_.sizes[static_cast<std::size_t>(c)];
      if (rows == 0) continue;
      for (Index j = 0; j < x_.cols; ++j) {
        centre(c)[j] = sums[static_cast<std::size_t>(c * x_.cols + j)] / static_cast<double>(rows);
      }
    }
  }

  ConstMatrixView<double> x_;
  Index k_;
  ExecutorRef executor_;
  std::vector<double> distances_;  // squared, from the nearest centre
  KMeans result_{};
};

}  // namespace detail

/// Lloyd's iterations from given centres [k × d]. Throws DataError ("stats/clusters",
/// "stats/non-finite"), ShapeError ("shape/matrix").
inline KMeans k_means_from(ConstMatrixView<double> x, ConstMatrixView<double> centres,
                           Index iterations = 300, const ExecutorRef& executor = {}) {
  if (centres.rows < 2 || x.rows < centres.rows) {
    detail::throw_clusters("unusable number of clusters", centres.rows, x.rows, "k_means_from");
  }
  check_shape(centres, centres.rows, x.cols, "k_means_from: centres");
  detail::check_finite_rows(x, "k_means_from(x)");
  detail::check_finite_rows(centres, "k_means_from(centres)");
  detail::KMeansRun run(x, centres.rows, executor);
  run.set_centres(centres);
  return run.run(iterations);
}

/// The best of several runs from k-means++ centres (Arthur & Vassilvitskii 2007) on the rows of x
/// [n × d]; a function of x and the seed, for any executor. Of equally good runs the first. A
/// cluster that loses its rows takes the row farthest from its own centre. Time: restarts ×
/// iterations × n·k·d. Throws DataError ("stats/clusters" where k < 2 or fewer than k rows differ,
/// "stats/non-finite").
inline KMeans k_means(ConstMatrixView<double> x, const KMeansOptions& options = {},
                      const ExecutorRef& executor = {}) {
  if (options.clusters < 2 || x.rows < options.clusters) {
    detail::throw_clusters("unusable number of clusters", options.clusters, x.rows, "k_means");
  }
  detail::check_finite_rows(x, "k_means(x)");
  KMeans best;
  for (Index restart = 0; restart < std::max<Index>(options.restarts, 1); ++restart) {
    RandomStream random(options.seed, static_cast<std::uint64_t>(restart));
    detail::KMeansRun run(x, options.clusters, executor);
    if (!run.choose_centres(random)) {
      detail::throw_clusters("fewer different rows than clusters", options.clusters, x.rows,
                             "k_means");
    }
    KMeans result = run.run(options.iterations);
    if (restart == 0 || result.inertia < best.inertia) best = std::move(result);
  }
  return best;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
