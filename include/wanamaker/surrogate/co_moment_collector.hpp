// An observer that collects the co-moments of every layer's MLP in one pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/surrogate/co_moments.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Settings of a CoMomentCollector.
struct CoMomentCollectorOptions {
  GramPrecision precision = GramPrecision::exact;
  Index block_rows = 1024;      ///< rows that are gathered before their products are taken
  std::vector<Index> layers{};  ///< layers to collect; empty: all
  Index row_limit = std::numeric_limits<Index>::max();  ///< later rows are ignored
};

/// Pass it to `forward`, then call `finish`. Rows of each layer are gathered into blocks of
/// `block_rows`, whatever the batches are; blocks are added in order. So the result is a function
/// of the sequence of rows: threads, and how the rows were cut into batches, do not change a bit of
/// it. The backend must outlive the collector.
template <Backend B>
class CoMomentCollector {
 public:
  /// For a model of `layers` layers whose MLPs map width to width. Throws ShapeError for a layer
  /// that the model does not have.
  CoMomentCollector(B& backend, Index layers, Index width, CoMomentCollectorOptions options = {})
      : backend_(&backend), width_(width), options_(std::move(options)), workspace_(backend) {
    if (options_.layers.empty()) {
      for (Index layer = 0; layer < layers; ++layer) options_.layers.push_back(layer);
    }
    slots_.resize(static_cast<std::size_t>(layers));
    for (const Index layer : options_.layers) {
      check_layer(layer);
      slot(layer).emplace(width, options_.precision);
    }
  }

  /// Weights of the rows of the next batch, one each; without this call they are 1.
  void weigh_next(std::span<const double> weights) {
    weights_.assign(weights.begin(), weights.end());
    has_weights_ = true;
  }

  void on_mlp_input(Index layer, const_matrix_view_t<B> x) {
    pending_layer_ = layer;
    if (!collects(layer)) return;
    const Index count = std::min(x.rows, rows_left(layer));
    reserve(pending_, count);
    ops::copy(*backend_, x.middle_rows(0, count), pending_.view().middle_rows(0, count));
  }

  void on_mlp_output(Index layer, const_matrix_view_t<B> y) {
    if (!collects(layer)) return;
    check_order(layer);
    check_batch_weights(y.rows);
    const Index count = std::min(y.rows, rows_left(layer));
    take(*slot(layer), pending_.view().middle_rows(0, count), y.middle_rows(0, count));
    slot(layer)->seen += count;
  }

  /// The batch's weights are used up: call after each weighted forward.
  void end_batch() {
    weights_.clear();
    has_weights_ = false;
  }

  /// Adds the rows that do not fill a block. More batches may follow; the next block begins anew.
  void finish() {
    for (std::optional<Slot>& s : slots_) {
      if (s && s->filled > 0) flush(*s);
    }
  }

  bool collects(Index layer) const {
    return layer >= 0 && layer < static_cast<Index>(slots_.size()) && slot(layer).has_value();
  }
  /// Rows that a layer has seen, those not yet added included.
  Index rows_seen(Index layer) const { return slot(layer)->seen; }
  /// All layers have `row_limit` rows: further batches would change nothing.
  bool is_full() const {
    return std::all_of(options_.layers.begin(), options_.layers.end(),
                       [&](Index layer) { return rows_left(layer) == 0; });
  }
  /// Co-moments of a collected layer, without the rows that wait for `finish`.
  const CoMoments& moments(Index layer) const { return slot(layer)->moments; }
  /// Replaces a layer's co-moments, to go on from saved ones.
  void resume(Index layer, CoMoments moments) {
    slot(layer)->seen = moments.rows();
    slot(layer)->moments = std::move(moments);
  }
  const std::vector<Index>& layers() const { return options_.layers; }

 private:
  struct Slot {
    Slot(Index width, GramPrecision precision) : moments(width, width, precision) {}
    CoMoments moments;
    matrix_t<B> x{};  // rows that wait
    matrix_t<B> y{};
    std::vector<double> weights{};
    Index filled = 0;
    Index seen = 0;
  };

  std::optional<Slot>& slot(Index layer) { return slots_[static_cast<std::size_t>(layer)]; }
  const std::optional<Slot>& slot(Index layer) const {
    return slots_[static_cast<std::size_t>(layer)];
  }
  Index rows_left(Index layer) const { return options_.row_limit - slot(layer)->seen; }

  void reserve(matrix_t<B>& matrix, Index rows) {
    if (matrix.rows() < rows) matrix = make_matrix(*backend_, rows, width_);
  }

  // Cuts the rows at the block boundaries. Whole blocks go to the products as they are.
  void take(Slot& s, const_matrix_view_t<B> x, const_matrix_view_t<B> y) {
    for (Index first = 0; first < x.rows;) {
      const Index count = std::min(options_.block_rows - s.filled, x.rows - first);
      const const_matrix_view_t<B> own_x = x.middle_rows(first, count);
      const const_matrix_view_t<B> own_y = y.middle_rows(first, count);
      if (count == options_.block_rows) {
        add(s, own_x, own_y, batch_weights(first, count));
      } else {
        gather(s, own_x, own_y, batch_weights(first, count));
        if (s.filled == options_.block_rows) flush(s);
      }
      first += count;
    }
  }

  void gather(Slot& s, const_matrix_view_t<B> x, const_matrix_view_t<B> y,
              std::span<const double> weights) {
    reserve(s.x, options_.block_rows);
    reserve(s.y, options_.block_rows);
    ops::copy(*backend_, x, s.x.view().middle_rows(s.filled, x.rows));
    ops::copy(*backend_, y, s.y.view().middle_rows(s.filled, y.rows));
    s.weights.resize(static_cast<std::size_t>(s.filled), 1.0);
    s.weights.insert(s.weights.end(), weights.begin(), weights.end());
    s.weights.resize(static_cast<std::size_t>(s.filled + x.rows), 1.0);
    s.filled += x.rows;
  }

  void flush(Slot& s) {
    const bool is_weighted =
        std::any_of(s.weights.begin(), s.weights.end(), [](double w) { return w != 1.0; });
    add(s, std::as_const(s.x).view().middle_rows(0, s.filled),
        std::as_const(s.y).view().middle_rows(0, s.filled),
        is_weighted ? std::span<const double>(s.weights) : std::span<const double>());
    s.weights.clear();
    s.filled = 0;
  }

  void add(Slot& s, const_matrix_view_t<B> x, const_matrix_view_t<B> y,
           std::span<const double> weights) {
    if (weights.empty()) {
      s.moments.add(*backend_, x, y, workspace_);
    } else {
      s.moments.add(*backend_, x, y, weights, workspace_);
    }
  }

  std::span<const double> batch_weights(Index first, Index count) const {
    if (!has_weights_) return {};
    return std::span<const double>(weights_).subspan(static_cast<std::size_t>(first),
                                                     static_cast<std::size_t>(count));
  }

  void check_layer(Index layer) const {
    if (layer >= 0 && layer < static_cast<Index>(slots_.size())) return;
    throw ShapeError({.id = "shape/layer",
                      .where = "CoMomentCollector",
                      .what = "a layer that the model does not have",
                      .expected = "0 to " + std::to_string(slots_.size() - 1),
                      .found = std::to_string(layer),
                      .mend = "choose among the model's layers"});
  }
  void check_order(Index layer) const {
    if (layer == pending_layer_) return;
    throw ShapeError({.id = "shape/observer-order",
                      .where = "CoMomentCollector",
                      .what = "an MLP's output without its input",
                      .expected = "layer " + std::to_string(pending_layer_),
                      .found = "layer " + std::to_string(layer),
                      .mend = "notify on_mlp_input before on_mlp_output of the same layer"});
  }
  void check_batch_weights(Index rows) const {
    if (!has_weights_) return;
    check_size(detail::view_of(weights_), rows, "CoMomentCollector::weigh_next: weights");
  }

  B* backend_;
  Index width_;
  CoMomentCollectorOptions options_;
  Workspace<B> workspace_;
  std::vector<std::optional<Slot>> slots_;
  matrix_t<B> pending_{};  // inputs of the layer whose outputs come next
  Index pending_layer_ = -1;
  std::vector<double> weights_;
  bool has_weights_ = false;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
