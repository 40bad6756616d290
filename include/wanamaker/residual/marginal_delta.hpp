// Marginal δ: what the whole loss changes by when the MLP of one layer is replaced at one position
// alone. To first order for all layers and positions from one backward pass; along a path; exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/backend/host_copies.hpp"
#include "wanamaker/gate/rule_gates.hpp"
#include "wanamaker/nn/backward/transformer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What stands in for one layer's MLP: a policy that looks at its input alone.
template <class B>
struct LayerStandIn {
  Index layer = 0;
  const AnyMlp<B>* policy = nullptr;
};

/// What exact patches took, and what one whole forward pass of its sequence for each would take.
struct PatchWork {
  Index patches = 0;
  Index passes = 0;             ///< forward_from calls, several patched copies in each
  double block_rows = 0;        ///< rows times blocks that they went through
  double scored_rows = 0;       ///< rows that logits were computed of
  double naive_block_rows = 0;  ///< the same of whole passes, every position scored
  double naive_scored_rows = 0;

  void add(const PatchWork& other) {
    patches += other.patches;
    passes += other.passes;
    block_rows += other.block_rows;
    scored_rows += other.scored_rows;
    naive_block_rows += other.naive_block_rows;
    naive_scored_rows += other.naive_scored_rows;
  }
};

namespace kernels {

/// products[i] = Σ_j a_ij b_ij.
template <class T>
struct RowProduct {
  ConstMatrixView<T> a;
  ConstMatrixView<T> b;
  VectorView<double> products;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* left = a.row(i);
    const T* right = b.row(i);
    const double sum = team.template sum<double>(a.cols, [=](Index j) {
      return static_cast<double>(left[j]) * static_cast<double>(right[j]);
    });
    if (team.leader()) products[i] = sum;
  }
};

/// y_i = stream_r + share_i · change_r, r = source_i.
template <class T>
struct MovedRow {
  ConstMatrixView<T> stream;
  ConstMatrixView<T> change;
  ConstVectorView<TokenId> source;
  ConstVectorView<double> share;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* from = stream.row(source[i]);
    const T* by = change.row(source[i]);
    const T t = static_cast<T>(share[i]);
    T* out = y.row(i);
    team.each(y.cols, [=](Index j) { out[j] = t == T(0) ? from[j] : from[j] + t * by[j]; });
  }
};

}  // namespace kernels

namespace detail {

/// A model of which nothing is learned: gradients flow through it and are kept nowhere.
struct NoParameters {
  template <class Collector>
  void parameters(const Collector&) {}
};

/// ⟨a_i, b_i⟩ of every row.
template <class B>
std::vector<double> row_products(B& backend, const_matrix_view_t<B> a, const_matrix_view_t<B> b,
                                 Workspace<B>& workspace) {
  const typename Workspace<B>::Frame frame(workspace);
  const VectorView<double> found = workspace.template vector<double>(a.rows);
  backend.for_each_row(a.rows, kernels::RowProduct<scalar_t<B>>{a, b, found});
  return host_copy(backend, found);
}

/// Rows of some sequence's copies: which row of the batch each is, by how much it is moved, and
/// what is scored of it.
struct PatchedCopies {
  std::vector<TokenId> tokens{};
  std::vector<Index> offsets{0};
  std::vector<TokenId> source{};
  std::vector<double> share{};
  ScoredPositions scored{};
  std::vector<double> baseline{};  ///< losses of the model as it is
  std::vector<std::size_t> patch_of{};
};

/// Keeps ⟨∂L/∂r_i, change_i⟩ of the stream r that enters block `layer`.
template <class B>
struct SlopeWatcher {
  B& backend;
  Workspace<B>& workspace;
  Index layer;
  const_matrix_view_t<B> change;
  std::vector<double> slopes{};

  void on_residual_gradient(Index entered, const_matrix_view_t<B> d) {
    if (entered == layer) slopes = row_products<B>(backend, d, change, workspace);
  }
};

}  // namespace detail

/// Marginal δ to first order of every row [T] of one layer alone, in nats: ⟨∂L/∂r_i, change_i⟩
/// with L the summed NLL of the scored positions, `stream` r [T × d] the stream after the layer and
/// `change` [T × d] what the stand-in adds to its MLP's output. Costs a forward and a backward pass
/// of the blocks above. Throws what loss_and_gradients_from throws.
template <class B>
std::vector<double> first_order_from(B& backend, const AnyTransformer<B>& model, Index layer,
                                     const PackedBatch<B>& batch, const_matrix_view_t<B> stream,
                                     const_matrix_view_t<B> change, const ScoredPositions& scored,
                                     Workspace<B>& workspace) {
  detail::NoParameters nothing;
  const Gradients<B> none(backend, nothing);
  detail::SlopeWatcher<B> watcher{backend, workspace, layer + 1, change};
  loss_and_gradients_from(model, backend, layer + 1, batch, stream, scored, none, workspace,
                          {.weight = static_cast<double>(scored.rows.size())}, watcher);
  return std::move(watcher.slopes);
}

/// Marginal δ of a batch, for one stand-in f̂ or several. With x_i, y_i the input and output of a
/// layer's MLP at row i, and L the summed NLL of the batch's scored positions in nats:
/// first order ⟨∂L/∂y_i, f̂(x_i) − y_i⟩ at the operating point (L at positions before i does not
/// depend on y_i); exact L(y_i ← f̂(x_i)) − L. Memory: two streams [T × d] for each stand-in, and
/// what a backward pass keeps.
template <class B>
class MarginalDelta {
 public:
  /// patch_rows: rows of patched copies that are run at a time; one sequence at least. Referenced
  /// objects must outlive this. Throws ShapeError ("shape/layer").
  MarginalDelta(B& backend, const AnyTransformer<B>& model, std::vector<LayerStandIn<B>> stand_ins,
                Workspace<B>& workspace, Index patch_rows = 2048)
      : backend_(backend),
        model_(model),
        workspace_(workspace),
        patch_rows_(patch_rows),
        none_(backend, no_parameters_) {
    for (const LayerStandIn<B>& own : stand_ins) {
      if (own.layer < 0 || own.layer >= model.layers()) throw_no_layer(own.layer);
      sites_.push_back({.stand_in = own});
    }
  }

  /// Forward and backward pass of a batch, which must outlive what is asked of it: first order for
  /// every stand-in and row. Costs that pass and a forward pass of every stand-in. Throws what
  /// loss_and_gradients throws.
  void begin(const PackedBatch<B>& batch, const ScoredPositions& scored) {
    batch_ = &batch;
    scored_ = scored;
    losses_.clear();
    prepare(final_stream_);
    for (Site& site : sites_) {
      prepare(site.stream);
      prepare(site.change);
    }
    const double n = static_cast<double>(scored.rows.size());
    Watcher watcher{*this};
    loss_ = n * loss_and_gradients(model_, backend_, batch, scored_, none_, workspace_,
                                   {.weight = n}, watcher);
  }

  Index stand_ins() const { return static_cast<Index>(sites_.size()); }
  Index layer(Index k) const { return at(k).stand_in.layer; }
  /// Rows of the batch.
  Index rows() const { return batch_->rows(); }
  /// L of the model as it is.
  double loss() const { return loss_; }

  /// δ to first order in nats, [T]; 0 where nothing is scored from the row on.
  const std::vector<double>& first_order(Index k) const { return at(k).first_order; }
  /// ‖y_i‖ of the model's own MLP, [T].
  const std::vector<double>& output_norms(Index k) const { return at(k).output_norms; }
  /// ‖f̂(x_i) − y_i‖, [T].
  const std::vector<double>& change_norms(Index k) const { return at(k).change_norms; }
  /// Length of the stream after the layer, [T].
  const std::vector<double>& stream_norms(Index k) const { return at(k).stream_norms; }

  /// L with every row of the layer replaced, less L: the batch's joint δ, summed.
  double joint(Index k) {
    const std::vector<double> shares(static_cast<std::size_t>(rows()), 1.0);
    const typename Workspace<B>::Frame frame(workspace_);
    const matrix_view_t<B> stream = moved(at(k), shares);
    model_.forward_from(backend_, layer(k) + 1, *batch_, stream, workspace_);
    const std::vector<double> own = model_.token_losses(backend_, stream, scored_, workspace_);
    double sum = 0;
    for (std::size_t s = 0; s < own.size(); ++s) sum += own[s] - losses()[s];
    return sum;
  }

  /// ∫₀¹ ⟨∂L/∂y_i at y + t(f̂(x) − y), f̂(x_i) − y_i⟩ dt by the midpoint rule with so many steps
  /// (Sundararajan, Taly & Yan 2017), [T]. All rows move together, or those marked 1 in `moves`
  /// [T]; the others are 0. The sum over rows tends to the change of L when they are replaced
  /// together; with one row that is its exact δ. The error falls with the square of the steps. Each
  /// step is a forward and a backward pass of the layers above. Throws ProtocolError
  /// ("residual/steps"), ShapeError.
  std::vector<double> integrated(Index k, Index steps, std::span<const std::uint8_t> moves = {}) {
    if (steps < 1) throw_no_steps(steps);
    if (!moves.empty()) {
      check_size(ConstVectorView<std::uint8_t>(moves.data(), static_cast<Index>(moves.size())),
                 rows(), "MarginalDelta::integrated: moves");
    }
    std::vector<double> result(static_cast<std::size_t>(rows()));
    for (Index step = 0; step < steps; ++step) {
      const double t = (static_cast<double>(step) + 0.5) / static_cast<double>(steps);
      std::vector<double> shares(result.size(), t);
      for (std::size_t i = 0; i < moves.size(); ++i) shares[i] = moves[i] == 1 ? t : 0.0;
      const std::vector<double> slopes = slopes_at(at(k), shares);
      for (std::size_t i = 0; i < result.size(); ++i) {
        if (shares[i] > 0) result[i] += slopes[i] / static_cast<double>(steps);
      }
    }
    return result;
  }

  /// δ of the given rows, each replaced alone, in their order: copies of their sequences, patched
  /// at one row each, run together through the layers above; positions from the row on are scored
  /// again. Adds to `work` what that took. Throws ShapeError ("shape/patched-row").
  std::vector<double> exact(Index k, std::span<const Index> patched, PatchWork& work) {
    std::vector<double> result(patched.size());
    for (const Index row : patched) {
      if (row < 0 || row >= rows()) throw_no_row(row);
    }
    detail::PatchedCopies copies;
    for (std::size_t p = 0; p < patched.size(); ++p) {
      const AttentionSpan& span = span_of(patched[p]);
      const Index full = static_cast<Index>(copies.tokens.size()) + span.queries;
      if (!copies.tokens.empty() && full > patch_rows_) run(at(k), copies, result, work);
      append(patched[p], p, span, copies);
      count_naive(span, work);
    }
    if (!copies.tokens.empty()) run(at(k), copies, result, work);
    return result;
  }

  /// NLL of the scored positions by the model as it is.
  const std::vector<double>& losses() {
    if (losses_.empty()) {
      losses_ = model_.token_losses(backend_, final_stream_.view(), scored_, workspace_);
    }
    return losses_;
  }

 private:
  struct Site {
    LayerStandIn<B> stand_in{};
    matrix_t<B> stream{};  // after the layer
    matrix_t<B> change{};  // f̂(x) − y
    std::vector<double> first_order{};
    std::vector<double> output_norms{};
    std::vector<double> change_norms{};
    std::vector<double> stream_norms{};
  };

  /// The pass that begin() runs, seen from the layers that have a stand-in.
  struct Watcher {
    MarginalDelta& own;

    void on_residual(Index layer, const_matrix_view_t<B> r) {
      if (layer == own.model_.layers()) own.copy(r, own.final_stream_);
      own.each_site(layer - 1, [&](Site& site) {
        own.copy(r, site.stream);
        site.stream_norms = own.norms(r);
      });
    }
    void on_mlp_input(Index layer, const_matrix_view_t<B> x) {
      own.each_site(layer, [&](Site& site) {
        const RowContext<B> rows{
            layer, own.batch_->tokens(), own.batch_->positions(), own.batch_->offsets(), {}};
        const typename Workspace<B>::Frame frame(own.workspace_);
        site.stand_in.policy->forward(own.backend_, x, rows, site.change.view(), own.workspace_);
      });
    }
    void on_mlp_output(Index layer, const_matrix_view_t<B> y) {
      own.each_site(layer, [&](Site& site) {
        ops::subtract<B>(own.backend_, site.change.view(), y, site.change.view());
        site.output_norms = own.norms(y);
        site.change_norms = own.norms(site.change.view());
      });
    }
    void on_mlp_output_gradient(Index layer, const_matrix_view_t<B> d) {
      own.each_site(layer, [&](Site& site) {
        site.first_order =
            detail::row_products<B>(own.backend_, d, site.change.view(), own.workspace_);
      });
    }
  };

  Site& at(Index k) { return sites_[static_cast<std::size_t>(k)]; }
  const Site& at(Index k) const { return sites_[static_cast<std::size_t>(k)]; }

  template <class F>
  void each_site(Index layer, F&& f) {
    for (Site& site : sites_) {
      if (site.stand_in.layer == layer) f(site);
    }
  }

  void prepare(matrix_t<B>& memory) const {
    if (memory.rows() == rows()) return;
    memory = make_matrix(backend_, rows(), model_.config().width);
  }
  void copy(const_matrix_view_t<B> from, matrix_t<B>& to) const {
    using T = scalar_t<B>;
    backend_.for_each_row(from.rows, kernels::CopyRow<T, T>{from, to.view()});
  }

  std::vector<double> norms(const_matrix_view_t<B> x) {
    const typename Workspace<B>::Frame frame(workspace_);
    const VectorView<double> found = workspace_.template vector<double>(x.rows);
    backend_.for_each_row(x.rows, kernels::NormRow<scalar_t<B>>{x, 1.0, found});
    return detail::host_copy(backend_, found);
  }

  template <class T>
  VectorView<T> upload(const std::vector<T>& values) {
    const VectorView<T> memory = workspace_.template vector<T>(static_cast<Index>(values.size()));
    backend_.copy_from_host(values.data(), memory.size, memory.data);
    return memory;
  }

  // Rows `source` of the stream after the layer, each moved by its share of its change.
  matrix_view_t<B> moved(const Site& site, const std::vector<TokenId>& source,
                         const std::vector<double>& shares) {
    const Index count = static_cast<Index>(source.size());
    const matrix_view_t<B> y = workspace_.matrix(count, model_.config().width);
    const VectorView<TokenId> from = upload(source);
    const VectorView<double> by = upload(shares);
    backend_.for_each_row(
        count, kernels::MovedRow<scalar_t<B>>{site.stream.view(), site.change.view(), from, by, y});
    backend_.synchronize();
    return y;
  }
  matrix_view_t<B> moved(const Site& site, const std::vector<double>& shares) {
    std::vector<TokenId> own(shares.size());
    std::iota(own.begin(), own.end(), TokenId{0});
    return moved(site, own, shares);
  }

  // dL/dt of every row's own share at these shares.
  std::vector<double> slopes_at(const Site& site, const std::vector<double>& shares) {
    const typename Workspace<B>::Frame frame(workspace_);
    const matrix_view_t<B> stream = moved(site, shares);
    return first_order_from(backend_, model_, site.stand_in.layer, *batch_,
                            const_matrix_view_t<B>(stream),
                            const_matrix_view_t<B>(site.change.view()), scored_, workspace_);
  }

  const AttentionSpan& span_of(Index row) const {
    const std::span<const Index> offsets = batch_->offsets();
    const auto next = std::upper_bound(offsets.begin(), offsets.end(), row);
    return batch_->spans()[static_cast<std::size_t>(next - offsets.begin() - 1)];
  }

  // One more copy of the row's sequence.
  void append(Index row, std::size_t patch, const AttentionSpan& span,
              detail::PatchedCopies& copies) {
    const Index begin = static_cast<Index>(copies.tokens.size());
    for (Index i = 0; i < span.queries; ++i) {
      const Index from = span.query_begin + i;
      copies.tokens.push_back(batch_->host_tokens()[static_cast<std::size_t>(from)]);
      copies.source.push_back(static_cast<TokenId>(from));
      copies.share.push_back(from == row ? 1.0 : 0.0);
    }
    copies.offsets.push_back(static_cast<Index>(copies.tokens.size()));
    for (std::size_t s = 0; s < scored_.rows.size(); ++s) {
      const Index own = scored_.rows[s];
      if (own < row || own >= span.query_begin + span.queries) continue;
      copies.scored.rows.push_back(static_cast<TokenId>(begin + own - span.query_begin));
      copies.scored.targets.push_back(scored_.targets[s]);
      copies.baseline.push_back(losses()[s]);
      copies.patch_of.push_back(patch);
    }
  }

  void run(const Site& site, detail::PatchedCopies& copies, std::vector<double>& result,
           PatchWork& work) {
    const typename Workspace<B>::Frame frame(workspace_);
    const PackedBatch<B> packed(backend_, copies.tokens, copies.offsets);
    const matrix_view_t<B> stream = moved(site, copies.source, copies.share);
    model_.forward_from(backend_, site.stand_in.layer + 1, packed, stream, workspace_);
    const std::vector<double> losses =
        model_.token_losses(backend_, stream, copies.scored, workspace_);
    for (std::size_t s = 0; s < losses.size(); ++s) {
      result[copies.patch_of[s]] += losses[s] - copies.baseline[s];
    }
    const Index blocks = model_.layers() - site.stand_in.layer - 1;
    work.patches += packed.sequences();
    work.passes += 1;
    work.block_rows += static_cast<double>(packed.rows() * blocks);
    work.scored_rows += static_cast<double>(losses.size());
    copies = {};
  }

  void count_naive(const AttentionSpan& span, PatchWork& work) const {
    work.naive_block_rows += static_cast<double>(span.queries * model_.layers());
    const Index end = span.query_begin + span.queries;
    work.naive_scored_rows +=
        static_cast<double>(std::count_if(scored_.rows.begin(), scored_.rows.end(), [&](Index row) {
          return row >= span.query_begin && row < end;
        }));
  }

  [[noreturn]] void throw_no_layer(Index layer) const {
    throw ShapeError({.id = "shape/layer",
                      .where = "MarginalDelta",
                      .what = "the model has no such layer",
                      .expected = "0 to " + std::to_string(model_.layers() - 1),
                      .found = std::to_string(layer),
                      .mend = "count layers from 0"});
  }
  [[noreturn]] void throw_no_row(Index row) const {
    throw ShapeError({.id = "shape/patched-row",
                      .where = "MarginalDelta::exact",
                      .what = "the batch has no such row",
                      .expected = "0 to " + std::to_string(rows() - 1),
                      .found = std::to_string(row),
                      .mend = "name rows of the batch that begin() was given"});
  }
  [[noreturn]] static void throw_no_steps(Index steps) {
    throw ProtocolError({.id = "residual/steps",
                         .where = "MarginalDelta::integrated",
                         .what = "a path needs steps",
                         .expected = "at least 1",
                         .found = std::to_string(steps),
                         .mend = "use 4 to 16; each is a forward and a backward pass"});
  }

  B& backend_;
  const AnyTransformer<B>& model_;
  Workspace<B>& workspace_;
  Index patch_rows_;
  detail::NoParameters no_parameters_{};
  Gradients<B> none_;
  const PackedBatch<B>* batch_ = nullptr;
  ScoredPositions scored_{};
  double loss_ = 0;
  std::vector<double> losses_{};
  matrix_t<B> final_stream_{};
  std::vector<Site> sites_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
