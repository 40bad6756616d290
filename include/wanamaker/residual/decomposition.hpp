// The residual stream taken apart, exactly: token + position + every attention output + every MLP
// output, and what each of them contributes to the input of an MLP.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/nn/any_transformer.hpp"
#include "wanamaker/residual/frozen_norm.hpp"
#include "wanamaker/residual/parts.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What a ResidualDecomposition keeps besides the parts.
struct ResidualDecompositionOptions {
  bool heads = false;  ///< keep the heads of each attention, for head_output
};

/// An observer that keeps the summands of one batch's residual stream. `begin(batch)`, then pass it
/// to `forward` while the batch lives; what it holds then stays until the next `begin`. Parts are
/// in the order in which a model adds them, so the stream that enters block ℓ is the sum of the
/// first `stream_parts(ℓ)` of them, and what the norm before the MLP reads that of the first
/// `mlp_parts(ℓ)`: summed in this order in the model's arithmetic they give the stream bit for bit.
/// Seen through that norm with its scale held fixed, the parts' contributions and the norm's bias
/// add up to the MLP's input. Elhage et al. 2021, "A mathematical framework for transformer
/// circuits".
///
/// Memory: (2L + 2)·T·d scalars for a batch of T positions (and L·T·heads·head_width with heads),
/// whatever the text's length. Backend and model must outlive it.
template <Backend B>
class ResidualDecomposition {
 public:
  using Options = ResidualDecompositionOptions;

  /// `model`: an AnyTransformer or a Transformer of a family.
  template <class Model>
  ResidualDecomposition(B& backend, const Model& model, Options options = {})
      : backend_(&backend), options_(options), width_(model.config().width) {
    if constexpr (requires { model.visit([](const auto&) {}); }) {
      model.visit([this](const auto& m) { this->describe(m); });
    } else {
      describe(model);
    }
    parts_.resize(list_.size());
  }

  /// Forgets what it holds; the next forward pass must be over this batch, from layer 0.
  void begin(const PackedBatch<B>& batch) {
    batch_ = &batch;
    rows_ = batch.rows();
    next_layer_ = 0;
    collected_ = 0;
  }

  void on_residual(Index layer, const_matrix_view_t<B> r) {
    check_order(layer, r.rows);
    if (layer == 0) keep_embeddings();
    if (layer == layers()) return;
    reserve(stream_);
    ops::copy(*backend_, r, view(stream_));
  }
  void on_attention_heads(Index layer, const_matrix_view_t<B> h) {
    check_order(layer, h.rows);
    if (!options_.heads) return;
    LayerParts& own = at(layer);
    if (own.heads.rows() < rows_) own.heads = make_matrix(*backend_, rows_, h.cols);
    ops::copy(*backend_, h, own.heads.view().middle_rows(0, rows_));
  }
  void on_attention_output(Index layer, const_matrix_view_t<B> a) {
    check_order(layer, a.rows);
    keep(a);
    const matrix_view_t<B> residual = view(stream_);
    reserve(carry_);
    ops::add<B>(*backend_, residual, a, view(carry_));
    LayerParts& own = at(layer);
    if (own.scale.size() < rows_) own.scale = backend_->template allocate<double>(rows_);
    own.norm.scales(*backend_, own.reads_attention ? view(carry_) : residual,
                    {own.scale.data(), rows_});
  }
  void on_mlp_output(Index layer, const_matrix_view_t<B> y) {
    check_order(layer, y.rows);
    keep(y);
    ++next_layer_;
  }

  Index rows() const { return rows_; }
  Index width() const { return width_; }
  Index layers() const { return static_cast<Index>(at_.size()); }
  /// All parts, in the order of their sum.
  std::span<const ResidualPart> parts() const { return list_; }
  /// How many of the parts, from the first, add up to the stream that enters block `layer`; with
  /// layer = L to the stream that leaves the last. Throws ShapeError for another.
  Index stream_parts(Index layer) const {
    check_layer(layer, layers());
    return embeddings() + 2 * layer;
  }
  /// How many of them add up to what the norm before the layer's MLP reads.
  Index mlp_parts(Index layer) const {
    check_layer(layer, layers() - 1);
    return stream_parts(layer) + (at(layer).reads_attention ? 1 : 0);
  }
  /// Parts [0, mlp_parts(layer)), for groups of them.
  std::span<const ResidualPart> parts_before_mlp(Index layer) const {
    return parts().first(static_cast<std::size_t>(mlp_parts(layer)));
  }

  /// One part [T × d], in the units of the stream. Valid until the next `begin`. Throws ShapeError
  /// before the forward pass has come to it.
  const_matrix_view_t<B> part(Index number) const {
    check_collected(number);
    return parts_[static_cast<std::size_t>(number)].view().middle_rows(0, rows_);
  }
  /// y ← Σ of the numbered parts, in their order [T × d].
  void sum(std::span<const Index> numbers, matrix_view_t<B> y) const {
    check_shape(y, rows_, width_, "ResidualDecomposition::sum: y");
    if (numbers.empty()) {
      backend_->for_each_row(rows_, kernels::FillRow<scalar_t<B>>{scalar_t<B>(0), y});
      return;
    }
    ops::copy(*backend_, part(numbers.front()), y);
    for (const Index number : numbers.subspan(1)) ops::add<B>(*backend_, y, part(number), y);
  }
  /// y ← the sum of the first `count` parts [T × d].
  void sum_first(Index count, matrix_view_t<B> y) const {
    std::vector<Index> numbers(static_cast<std::size_t>(count));
    std::iota(numbers.begin(), numbers.end(), Index{0});
    sum(numbers, y);
  }

  /// y ← what c [T × d], a part or any other summand of the stream, contributes to the input of the
  /// layer's MLP, the norm's scale at each position held fixed; y may be c.
  void contribution(Index layer, const_matrix_view_t<B> c, matrix_view_t<B> y) const {
    at(layer).norm.contribution(*backend_, c, scale(layer), y);
  }
  /// The same for the sum of the numbered parts.
  void contribution(Index layer, std::span<const Index> numbers, matrix_view_t<B> y) const {
    sum(numbers, y);
    contribution(layer, y, y);
  }
  /// The norm's own term of the MLP's input, the same at every position [d]; empty for a
  /// root-mean-square norm.
  ConstVectorView<scalar_t<B>> norm_bias(Index layer) const { return at(layer).norm.bias; }
  /// 1/√(variance + ε) of every position [T] in the norm before the layer's MLP.
  ConstVectorView<double> scale(Index layer) const {
    check_collected(attention_part(layer));
    return {at(layer).scale.data(), rows_};
  }

  Index heads() const { return shape_.heads; }
  /// y ← what one head adds to the stream [T × d]: its mixture of values through its rows of the
  /// output projection. Over all heads these and `attention_bias` add up to the part. Throws
  /// ShapeError for a head that there is not, or where heads were not kept.
  void head_output(Index layer, Index head, matrix_view_t<B> y) const {
    check_head(layer, head);
    check_shape(y, rows_, width_, "ResidualDecomposition::head_output: y");
    const LayerParts& own = at(layer);
    const Index first = head * shape_.head_width;
    Operand<storage_t<B>> projection = own.output->factor();
    projection.matrix = projection.is_transposed
                            ? projection.matrix.middle_cols(first, shape_.head_width)
                            : projection.matrix.middle_rows(first, shape_.head_width);
    const const_matrix_view_t<B> mixed =
        own.heads.view().middle_rows(0, rows_).middle_cols(first, shape_.head_width);
    backend_->gemm(plain(mixed), projection, scalar_t<B>(1), scalar_t<B>(0), y);
  }
  /// The bias of the attention's output projection, a term of its own [d]; empty where there is
  /// none.
  ConstVectorView<scalar_t<B>> attention_bias(Index layer) const {
    const Linear<B>& output = *at(layer).output;
    return output.has_bias() ? output.bias().vector() : ConstVectorView<scalar_t<B>>{};
  }

  /// The number of a layer's attention output among the parts; its MLP's is the next.
  Index attention_part(Index layer) const {
    check_layer(layer, layers() - 1);
    return embeddings() + 2 * layer;
  }

 private:
  // What is known of a layer, and what a pass leaves of it.
  struct LayerParts {
    FrozenNorm<B> norm{};
    bool reads_attention = false;
    const Linear<B>* output = nullptr;
    buffer_t<B, double> scale{};
    matrix_t<B> heads{};
  };

  template <class Model>
  void describe(const Model& model) {
    embedding_ = model.embedding().view();
    position_table_ = model.position_table().view();
    has_positions_ = !model.position_table().empty();
    list_.push_back({PartKind::token});
    if (has_positions_) list_.push_back({PartKind::position});
    for (Index layer = 0; layer < model.layers(); ++layer) {
      describe_block(model.block(layer));
      list_.push_back({PartKind::attention, layer});
      list_.push_back({PartKind::mlp, layer});
    }
  }

  template <class Block>
  void describe_block(const Block& block) {
    at_.push_back({.norm = frozen_norm(block.mlp_norm()),
                   .reads_attention = block.topology().reads_carry(),
                   .output = &block.attention().output()});
    shape_ = block.attention().shape();
  }

  Index embeddings() const { return has_positions_ ? 2 : 1; }
  LayerParts& at(Index layer) { return at_[static_cast<std::size_t>(layer)]; }
  const LayerParts& at(Index layer) const {
    check_layer(layer, layers() - 1);
    return at_[static_cast<std::size_t>(layer)];
  }
  // The model has checked ids and positions by now.
  void keep_embeddings() {
    collected_ = embeddings();
    reserve(parts_[0]);
    ops::gather_rows(*backend_, embedding_, batch_->tokens(), view(parts_[0]));
    if (!has_positions_) return;
    reserve(parts_[1]);
    ops::gather_rows(*backend_, position_table_, batch_->positions(), view(parts_[1]));
  }
  void reserve(matrix_t<B>& matrix) {
    if (matrix.rows() < rows_) matrix = make_matrix(*backend_, rows_, width_);
  }
  matrix_view_t<B> view(matrix_t<B>& matrix) const { return matrix.view().middle_rows(0, rows_); }
  // The next part in order.
  void keep(const_matrix_view_t<B> values) {
    matrix_t<B>& own = parts_[static_cast<std::size_t>(collected_)];
    reserve(own);
    ops::copy(*backend_, values, view(own));
    ++collected_;
  }

  void check_order(Index layer, Index rows) const {
    if (layer == next_layer_ && rows == rows_) return;
    throw ShapeError(
        {.id = "shape/observer-order",
         .where = "ResidualDecomposition",
         .what = "a forward pass that it was not prepared for",
         .expected = "layer " + std::to_string(next_layer_) + " of a batch of " +
                     std::to_string(rows_) + " positions",
         .found = "layer " + std::to_string(layer) + ", " + std::to_string(rows) + " positions",
         .mend = "call begin(batch) before each forward pass over that batch"});
  }
  void check_layer(Index layer, Index last) const {
    if (layer >= 0 && layer <= last) return;
    throw ShapeError({.id = "shape/layer",
                      .where = "ResidualDecomposition",
                      .what = "a layer that the model does not have",
                      .expected = "0 to " + std::to_string(last),
                      .found = std::to_string(layer),
                      .mend = "choose among the model's layers"});
  }
  void check_collected(Index number) const {
    if (number >= 0 && number < collected_) return;
    throw ShapeError({.id = "shape/residual-part",
                      .where = "ResidualDecomposition",
                      .what = "a part that was not collected",
                      .expected = "a number below " + std::to_string(collected_),
                      .found = std::to_string(number),
                      .mend = "call begin(batch), then pass the decomposition to forward"});
  }
  void check_head(Index layer, Index head) const {
    check_collected(attention_part(layer));
    if (options_.heads && head >= 0 && head < heads()) return;
    throw ShapeError({.id = "shape/head",
                      .where = "ResidualDecomposition::head_output",
                      .what = options_.heads ? "no such head" : "heads were not kept",
                      .expected = "0 to " + std::to_string(heads() - 1) + ", with heads = true",
                      .found = std::to_string(head),
                      .mend = "make the decomposition with {.heads = true}"});
  }

  B* backend_;
  Options options_;
  Index width_;
  ConstMatrixView<storage_t<B>> embedding_{};
  ConstMatrixView<storage_t<B>> position_table_{};
  bool has_positions_ = false;
  AttentionShape shape_{};
  std::vector<ResidualPart> list_;
  std::vector<matrix_t<B>> parts_;
  std::vector<LayerParts> at_;
  matrix_t<B> stream_{};  // that entered the current block
  matrix_t<B> carry_{};
  const PackedBatch<B>* batch_ = nullptr;
  Index rows_ = 0;
  Index next_layer_ = -1;  // -1: not begun
  Index collected_ = 0;    // parts of this batch so far
};

}  // namespace wanamaker::inline WANAMAKER_ABI
