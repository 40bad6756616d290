// Where a surrogate's squared error comes from: a few positions, the first of each sequence, or all
// alike. A second pass over the data; memory does not grow with tokens.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/nn/batch.hpp"
#include "wanamaker/nn/surrogate_mlp.hpp"
#include "wanamaker/surrogate/co_moments.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace kernels {

/// error[i] = Σ_j (y − ŷ)², total[i] = Σ_j (y − mean)², sums in double.
template <class T>
struct SquaredErrorRow {
  ConstMatrixView<T> y;
  ConstMatrixView<T> prediction;
  ConstVectorView<double> mean;
  VectorView<double> error;
  VectorView<double> total;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* truth = y.row(i);
    const T* guess = prediction.row(i);
    const double* centre = mean.data;
    const double own_error = team.template sum<double>(y.cols, [=](Index j) {
      const double difference = static_cast<double>(truth[j]) - static_cast<double>(guess[j]);
      return difference * difference;
    });
    const double own_total = team.template sum<double>(y.cols, [=](Index j) {
      const double difference = static_cast<double>(truth[j]) - centre[j];
      return difference * difference;
    });
    if (team.leader()) {
      error[i] = own_error;
      total[i] = own_total;
    }
  }
};

}  // namespace kernels

/// Which positions the squared error of a surrogate comes from. Shares are of Σ‖y − ŷ‖², 0 where
/// there is no error at all; R² is about the mean of y that was given, 0 where y does not vary.
struct LeverageReport {
  Index positions = 0;
  Index first_positions = 0;
  double top_share = 0;    ///< of the 1 % of positions with the largest error
  double first_share = 0;  ///< of the first position of every sequence
  double r2 = 0;
  double r2_without_top = 0;  ///< as if those 1 % were not there
  double r2_without_first = 0;
};

/// Sums of squared errors by size: 64 classes per factor of two. Constant memory, and merging or
/// any order of adding gives the same counts. A share of top positions is exact but for the one
/// class that the limit falls in, which is shared out evenly: its errors differ by at most 1/64.
class ErrorDistribution {
 public:
  /// error, total >= 0: squared distances of y from the prediction and from its mean.
  void add(double error, double total) {
    Class& own = classes_[class_of(error)];
    own.count += 1;
    own.error += error;
    own.total += total;
  }

  void merge(const ErrorDistribution& other) {
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      classes_[c].count += other.classes_[c].count;
      classes_[c].error += other.classes_[c].error;
      classes_[c].total += other.classes_[c].total;
    }
  }

  struct Sums {
    double count = 0;
    double error = 0;
    double total = 0;
  };

  /// All positions.
  Sums all() const { return top(1.0); }

  /// The share of positions with the largest errors.
  Sums top(double share) const {
    double wanted = 0;
    for (const Class& c : classes_) wanted += share * c.count;
    Sums sums;
    for (std::size_t c = classes_.size(); c-- > 0 && sums.count < wanted;) {
      const Class& own = classes_[c];
      if (own.count == 0) continue;
      const double part = std::min(1.0, (wanted - sums.count) / own.count);
      sums.count += part * own.count;
      sums.error += part * own.error;
      sums.total += part * own.total;
    }
    return sums;
  }

 private:
  using Class = Sums;

  // The exponent and the first six bits after the point; values beyond 2^±64 share the outermost
  // classes.
  static std::size_t class_of(double error) {
    constexpr std::int64_t lowest = (1023 - 64) * 64;
    const auto bits = std::bit_cast<std::int64_t>(error) >> 46;
    return static_cast<std::size_t>(
        std::clamp<std::int64_t>(bits - lowest, 0, std::int64_t{classes} - 1));
  }

  static constexpr std::size_t classes = 128 * 64;
  std::vector<Class> classes_ = std::vector<Class>(classes);
};

/// An observer that compares surrogates with the MLPs they stand for. Call `begin_batch` before
/// each forward. `Policy` maps x to y and looks at nothing but x and the tokens.
template <Backend B, MlpPolicy<B> Policy = AffineMlp<B>>
class LeverageCollector {
 public:
  /// The backend must outlive the collector.
  explicit LeverageCollector(B& backend) : backend_(&backend), workspace_(backend) {}

  /// Watches a layer: `policy`, which must outlive the collector, against its MLP, whose mean
  /// output [e] is given.
  void watch(Index layer, const Policy& policy, std::span<const double> mean) {
    Slot slot{&policy, backend_->template allocate<double>(static_cast<Index>(mean.size()))};
    backend_->copy_from_host(mean.data(), slot.mean.size(), slot.mean.data());
    slots_.insert_or_assign(layer, std::move(slot));
  }

  void begin_batch(const PackedBatch<B>& batch) { batch_ = &batch; }

  void on_mlp_input(Index layer, const_matrix_view_t<B> x) {
    const auto slot = slots_.find(layer);
    if (slot == slots_.end()) return;
    check_batch(x.rows);
    const Index outputs = slot->second.mean.size();
    if (prediction_.rows() < x.rows || prediction_.cols() != outputs) {
      prediction_ = make_matrix(*backend_, x.rows, outputs);
    }
    const RowContext<B> rows{layer, batch_->tokens(), batch_->positions(), batch_->offsets(), {}};
    mlp_forward(*slot->second.policy, *backend_, x, rows, prediction_.view().middle_rows(0, x.rows),
                workspace_);
  }

  void on_mlp_output(Index layer, const_matrix_view_t<B> y) {
    const auto found = slots_.find(layer);
    if (found == slots_.end()) return;
    Slot& slot = found->second;
    check_batch(y.rows);
    check_shape(y, y.rows, slot.mean.size(), "LeverageCollector: y");
    const typename Workspace<B>::Frame frame(workspace_);
    const VectorView<double> error = workspace_.template vector<double>(y.rows);
    const VectorView<double> total = workspace_.template vector<double>(y.rows);
    backend_->for_each_row(
        y.rows, kernels::SquaredErrorRow<scalar_t<B>>{
                    y, std::as_const(prediction_).view().middle_rows(0, y.rows),
                    ConstVectorView<double>(slot.mean.data(), slot.mean.size()), error, total});
    std::vector<double> error_copy;
    std::vector<double> total_copy;
    take(slot, detail::on_host(*backend_, error, error_copy),
         detail::on_host(*backend_, total, total_copy));
  }

  /// Throws ShapeError for a layer that is not watched.
  LeverageReport report(Index layer) const {
    const Slot& slot = watched(layer);
    const auto all = slot.distribution.all();
    const auto top = slot.distribution.top(0.01);
    return {static_cast<Index>(all.count),
            static_cast<Index>(slot.first.count),
            ratio(top.error, all.error),
            ratio(slot.first.error, all.error),
            r2(all.error, all.total),
            r2(all.error - top.error, all.total - top.total),
            r2(all.error - slot.first.error, all.total - slot.first.total)};
  }

 private:
  struct Slot {
    const Policy* policy;
    buffer_t<B, double> mean;
    ErrorDistribution distribution{};
    ErrorDistribution::Sums first{};
  };

  void take(Slot& slot, ConstVectorView<double> error, ConstVectorView<double> total) {
    for (Index i = 0; i < error.size; ++i) {
      if (!std::isfinite(error[i]) || !std::isfinite(total[i])) throw_non_finite(i);
      slot.distribution.add(error[i], total[i]);
    }
    for (Index s = 0; s < batch_->sequences(); ++s) {
      const Index row = batch_->offsets()[static_cast<std::size_t>(s)];
      slot.first.count += 1;
      slot.first.error += error[row];
      slot.first.total += total[row];
    }
  }

  static double ratio(double part, double whole) { return whole > 0 ? part / whole : 0.0; }
  static double r2(double error, double total) { return total > 0 ? 1.0 - error / total : 0.0; }

  const Slot& watched(Index layer) const {
    const auto slot = slots_.find(layer);
    if (slot != slots_.end()) return slot->second;
    throw ShapeError({.id = "shape/layer",
                      .where = "LeverageCollector::report",
                      .what = "a layer that is not watched",
                      .found = std::to_string(layer),
                      .mend = "call watch for it before the pass"});
  }
  [[noreturn]] static void throw_non_finite(Index row) {
    throw DataError({.id = "data/non-finite-activation",
                     .where = "LeverageCollector, row " + std::to_string(row),
                     .what = "an MLP or surrogate output that is not finite",
                     .expected = "finite numbers",
                     .mend = "check the model's weights, or compute in a wider type"});
  }
  void check_batch(Index rows) const {
    if (batch_ != nullptr && batch_->rows() == rows) return;
    throw ShapeError({.id = "shape/observer-order",
                      .where = "LeverageCollector",
                      .what = "rows that are not of the batch that was begun",
                      .expected = std::to_string(batch_ == nullptr ? 0 : batch_->rows()) + " rows",
                      .found = std::to_string(rows),
                      .mend = "call begin_batch before each forward"});
  }

  B* backend_;
  Workspace<B> workspace_;
  std::map<Index, Slot> slots_{};
  const PackedBatch<B>* batch_ = nullptr;
  matrix_t<B> prediction_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
