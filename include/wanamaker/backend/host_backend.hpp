// What the host backends share: kernels launched over the caller's executor with the widest vector
// instructions, products cut into tiles that depend on the shapes alone, so that results do not
// depend on the number of threads.
#pragma once

#include <algorithm>
#include <atomic>

#include "wanamaker/backend/activations.hpp"
#include "wanamaker/backend/backend.hpp"
#include "wanamaker/backend/gram.hpp"
#include "wanamaker/backend/host_attention.hpp"
#include "wanamaker/backend/host_attention_backward.hpp"
#include "wanamaker/backend/host_memory.hpp"
#include "wanamaker/backend/host_token_loss.hpp"
#include "wanamaker/backend/instruction_set.hpp"
#include "wanamaker/backend/row_stride.hpp"
#include "wanamaker/core/executor.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Launches kernels over the caller's executor. No template, so that all host backends of a program
/// share what is compiled for a kernel.
class HostLauncher : public HostMemory {
 public:
  /// Runs on the calling thread.
  HostLauncher() = default;
  /// Runs on the caller's executor, which must outlive the backend.
  explicit HostLauncher(ExecutorRef executor) : executor_(executor) {}

  const ExecutorRef& executor() const { return executor_; }

  template <class F>
  void for_each(Index n, F f) {
    constexpr Index chunk = 4096;
    executor_.run(blocks_of(n, chunk),
                  [&](Index c) { run_range(c * chunk, std::min(n, (c + 1) * chunk), f); });
  }

  template <class F>
  void for_each_row(Index rows, F f) {
    const Index chunk = 16;
    const auto row = [&f](Index i) { f(i, SerialRowTeam{}); };
    executor_.run(blocks_of(rows, chunk),
                  [&](Index c) { run_range(c * chunk, std::min(rows, (c + 1) * chunk), row); });
  }

 protected:
  /// How many lanes for_each_piece has: one at least, whatever an executor says of itself.
  Index lanes() const { return std::max<Index>(1, executor_.concurrency()); }

  /// f(piece, lane) for every piece; a lane does one piece after the other, so that it may have
  /// memory of its own.
  template <class F>
  void for_each_piece(Index pieces, F f) {
    std::atomic<Index> next{0};
    executor_.run(std::min(lanes(), pieces), [&](Index lane) {
      for (Index piece = next++; piece < pieces; piece = next++) f(piece, lane);
    });
  }

  // tile ← activation(tile + bias), the tile beginning at `column`.
  template <class S, class Activation>
  static void finish_tile(MatrixView<S> tile, ConstVectorView<S> bias, Index column,
                          Activation activation) {
    if (bias.empty() && std::is_same_v<Activation, Identity>) return;
    const S* b = bias.empty() ? nullptr : bias.data + column;
    run_range(0, tile.rows, [=](Index i) {
      S* row = tile.row(i);
      if (b == nullptr) {
        for (Index j = 0; j < tile.cols; ++j) row[j] = activation(row[j]);
      } else {
        for (Index j = 0; j < tile.cols; ++j) row[j] = activation(row[j] + b[j]);
      }
    });
  }

 private:
  ExecutorRef executor_{};
};

/// Base of EigenBackend and BlasBackend. `Gemm` has a static
/// `multiply(Operand<S> a, Operand<S> b, S alpha, S beta, MatrixView<S> c)`, serial, for S float
/// and double. One that needs memory may have `packed_size<S>(rows, cols, depth)`, in elements: it
/// is then given them as a last argument, and they stay for the next product. Weights stored as W ≠
/// S are widened to S in panels of columns just before they are used.
template <class S, class W, class Gemm>
class HostBackend : public HostLauncher {
 public:
  using HostLauncher::HostLauncher;

  /// C ← α·op(A)·op(B) + β·C; C is not read where β = 0. Throws ShapeError.
  void gemm(Operand<S> a, Operand<S> b, S alpha, S beta, MatrixView<S> c) {
    check_gemm_shapes(a, b, c, "HostBackend::gemm");
    for_each_panel(b, a.rows(), [&](Operand<S> panel, Index first) {
      gemm_tiles(a, panel, alpha, beta, c.middle_cols(first, panel.cols()),
                 [](MatrixView<S>, Index) {});
    });
  }

  /// The same for weights in their storage format.
  void gemm(Operand<S> a, Operand<W> b, S alpha, S beta,
            MatrixView<S> c) requires(!std::is_same_v<S, W>) {
    check_gemm_shapes(a, b, c, "HostBackend::gemm");
    for_each_copied_panel(b, [&](Operand<S> panel, Index first) {
      gemm_tiles(a, panel, alpha, beta, c.middle_cols(first, panel.cols()),
                 [](MatrixView<S>, Index) {});
    });
  }

  /// y ← activation(x·op(W) + bias), bias and activation applied to each tile while it is in cache.
  /// An empty bias adds nothing.
  template <class V, class Activation>
  void linear(ConstMatrixView<S> x, Operand<V> weight, ConstVectorView<S> bias,
              Activation activation, MatrixView<S> y) {
    check_gemm_shapes(plain(x), weight, y, "HostBackend::linear");
    for_each_panel(weight, x.rows, [&](Operand<S> panel, Index first) {
      gemm_tiles(plain(x), panel, S(1), S(0), y.middle_cols(first, panel.cols()),
                 [&](MatrixView<S> tile, Index column) {
                   finish_tile(tile, bias, first + column, activation);
                 });
    });
  }

  /// Independent products, one per piece of the executor.
  void gemm_batched(std::span<const GemmItem<S>> items, S alpha, S beta) {
    for (const GemmItem<S>& item : items) {
      check_gemm_shapes(item.a, item.b, item.c, "HostBackend::gemm_batched");
    }
    executor().run(static_cast<Index>(items.size()), [&](Index i) {
      const GemmItem<S>& item = items[static_cast<std::size_t>(i)];
      Gemm::multiply(item.a, item.b, alpha, beta, item.c);
    });
  }

  /// As ops::causal_attention; a head of a block of queries at a time.
  template <class Memory>
  void causal_attention(ConstMatrixView<S> q, ConstMatrixView<S> k, ConstMatrixView<S> v,
                        std::span<const AttentionSpan> spans, const AttentionShape& shape,
                        MatrixView<S> out, Memory& workspace) {
    const typename Memory::Frame frame(workspace);
    const std::vector<detail::QueryBlock> blocks = detail::query_blocks(spans);
    const Index room = detail::largest_piece(blocks, shape.head_width);
    const VectorView<S> memory = workspace.template vector<S>(room * lanes());
    for_each_piece(shape.heads * static_cast<Index>(blocks.size()), [&](Index piece, Index lane) {
      const detail::QueryBlock& block = blocks[static_cast<std::size_t>(piece / shape.heads)];
      detail::attend<Gemm>(q, k, v, out, shape, block, piece % shape.heads,
                           memory.data + lane * room);
    });
  }

  /// As ops::causal_attention_backward; a key head of a sequence at a time. Returns false, having
  /// done nothing, for heads that vectors do not fit into and for windows.
  template <class Gradients, class Memory>
  bool causal_attention_backward(ConstMatrixView<S> q, ConstMatrixView<S> k, ConstMatrixView<S> v,
                                 std::span<const AttentionSpan> spans, const AttentionShape& shape,
                                 const Gradients& gradients, Memory& workspace) {
    if (!detail::panels_fit<S>(shape)) return false;
    Index keys = 0;
    for (const AttentionSpan& span : spans) keys = std::max(keys, span.keys);
    const typename Memory::Frame frame(workspace);
    const Index room = (shape.head_width + 2 * keys) * detail::panel_width<S>();
    const VectorView<S> memory = workspace.template vector<S>(room * lanes());
    for_each_piece(
        shape.key_heads * static_cast<Index>(spans.size()), [&](Index piece, Index lane) {
          detail::attend_backward<S>(q, k, v, gradients,
                                     spans[static_cast<std::size_t>(piece / shape.key_heads)],
                                     shape, piece % shape.key_heads, memory.data + lane * room);
        });
    return true;
  }

  /// As ops::linear_token_loss; logits exist a tile for each thread at a time.
  template <class V, class Memory>
  void linear_token_loss(ConstMatrixView<S> x, Operand<V> weight, ConstVectorView<S> bias,
                         ConstVectorView<TokenId> targets, Index vocabulary, VectorView<double> nll,
                         Memory& workspace) {
    const typename Memory::Frame frame(workspace);
    const Index tiles = blocks_of(vocabulary, tile_cols);
    const auto by_tile = [&]<class T>(T) {
      return MatrixView<T>(workspace.template vector<T>(x.rows * tiles).data, x.rows, tiles);
    };
    const detail::TileSums<S> sums{by_tile(S()), by_tile(double()),
                                   workspace.template vector<S>(x.rows)};
    const VectorView<S> memory = workspace.template vector<S>(tile_rows * tile_cols * lanes());
    const auto reduce = [&](Operand<S> panel, Index first) {
      reduce_logits(x, panel, bias, targets, first, sums, memory);
    };
    for_each_panel(operand_cols(weight, 0, vocabulary), x.rows, reduce);
    for_each(x.rows, detail::TileLoss<S>{sums, nll});
  }

  /// C ← C + XᵀY in double; X [n × d], Y [n × e], C [d × e].
  void gram(ConstMatrixView<S> x, ConstMatrixView<S> y, MatrixView<double> c,
            GramPrecision precision) {
    check_gemm_shapes(transposed(x), plain(y), c, "HostBackend::gram");
    if (precision == GramPrecision::exact) {
      detail::add_gram<double>(executor(), x, y, 1.0, c);
    } else {
      detail::add_gram<S>(executor(), x, y, 1.0, c);
    }
  }

 protected:
  static constexpr Index tile_rows = 256;
  static constexpr Index tile_cols = 768;
  static constexpr Index panel_cols = tile_cols;  // or a multiple: TileSums counts tiles

  struct TileShape {
    Index rows;
    Index cols;
  };

  // Tiles of C, each with `epilogue(tile, first column)` after its product.
  template <class Epilogue>
  void gemm_tiles(Operand<S> a, Operand<S> b, S alpha, S beta, MatrixView<S> c,
                  const Epilogue& epilogue) {
    const TileShape most = tile_shape(c.rows, c.cols);
    const Index down = blocks_of(c.rows, most.rows);
    const Index room = packing_room(c, most, a.cols());
    this->for_each_piece(down * blocks_of(c.cols, most.cols), [&](Index t, Index lane) {
      const Index i = (t % down) * most.rows;
      const Index j = (t / down) * most.cols;
      const MatrixView<S> tile = c.middle_rows(i, std::min(most.rows, c.rows - i))
                                     .middle_cols(j, std::min(most.cols, c.cols - j));
      multiply_tile(operand_rows(a, i, tile.rows), operand_cols(b, j, tile.cols), alpha, beta, tile,
                    {packing_.data() + lane * room, room});
      epilogue(tile, j);
    });
  }

  // By the shape of C alone. What a tile multiplies is packed for it: large tiles, where there are
  // at least four, pack less; small products get small ones, so that a few threads have work. All
  // of a product are about equal.
  static TileShape tile_shape(Index rows, Index cols) {
    const auto even = [](Index n, Index most) {
      const Index share = blocks_of(n, std::max<Index>(1, blocks_of(n, most)));
      return std::max<Index>(16, blocks_of(share, 16) * 16);
    };
    if (blocks_of(rows, 512) * blocks_of(cols, 1024) >= 4)
      return {even(rows, 512), even(cols, 1024)};
    if (rows * cols <= tile_rows * tile_cols) {
      return {even(rows, tile_rows / 2), even(cols, tile_cols / 2)};
    }
    return {even(rows, tile_rows), even(cols, tile_cols)};
  }

  // What the product of any tile is packed into, for each lane; made here where there is less.
  Index packing_room([[maybe_unused]] MatrixView<S> c, [[maybe_unused]] TileShape most,
                     [[maybe_unused]] Index depth) {
    Index room = 0;
    if constexpr (requires { Gemm::template packed_size<S>(depth, depth, depth); }) {
      for (const Index rows : {std::min(most.rows, c.rows), c.rows % most.rows}) {
        for (const Index cols : {std::min(most.cols, c.cols), c.cols % most.cols}) {
          room = std::max(room, Gemm::template packed_size<S>(rows, cols, depth));
        }
      }
      room = blocks_of(room, 64) * 64;
      if (packing_.size() < room * lanes()) {
        packing_ = HostBuffer<S>::uninitialised(room * lanes());
      }
    }
    return room;
  }

  static void multiply_tile(Operand<S> a, Operand<S> b, S alpha, S beta, MatrixView<S> tile,
                            [[maybe_unused]] VectorView<S> packing) {
    if constexpr (requires { Gemm::multiply(a, b, alpha, beta, tile, packing); }) {
      Gemm::multiply(a, b, alpha, beta, tile, packing);
    } else {
      Gemm::multiply(a, b, alpha, beta, tile);
    }
  }

  // Tiles of x·panel + bias, whose first column is the head's column `first`, reduced to `sums`.
  void reduce_logits(ConstMatrixView<S> x, Operand<S> panel, ConstVectorView<S> bias,
                     ConstVectorView<TokenId> targets, Index first, const detail::TileSums<S>& sums,
                     VectorView<S> memory) {
    const Index down = blocks_of(x.rows, tile_rows);
    for_each_piece(down * blocks_of(panel.cols(), tile_cols), [&](Index piece, Index lane) {
      const Index i = piece % down * tile_rows;
      const Index j = piece / down * tile_cols;
      const Index rows = std::min(tile_rows, x.rows - i);
      const Index cols = std::min(tile_cols, panel.cols() - j);
      const MatrixView<S> logits(memory.data + lane * tile_rows * tile_cols, rows, cols);
      Gemm::multiply(plain(x.middle_rows(i, rows)), operand_cols(panel, j, cols), S(1), S(0),
                     logits);
      finish_tile(logits, bias, first + j, Identity{});
      run_range(
          0, rows,
          detail::TileSumRow<S>{logits, targets, i, first + j, (first + j) / tile_cols, sums});
    });
  }

 private:
  static Operand<S> operand_rows(Operand<S> a, Index first, Index count) {
    return {
        a.is_transposed ? a.matrix.middle_cols(first, count) : a.matrix.middle_rows(first, count),
        a.is_transposed};
  }
  template <class V>
  static Operand<V> operand_cols(Operand<V> b, Index first, Index count) {
    return {
        b.is_transposed ? b.matrix.middle_rows(first, count) : b.matrix.middle_cols(first, count),
        b.is_transposed};
  }

  // f(op(B) or columns of it, the first of them) for a product with `rows` rows: B as it is, or
  // panels that are copied where B is stored as another type or lies badly in cache, and the rows
  // pay for the copying.
  template <class V, class F>
  void for_each_panel(Operand<V> b, Index rows, F&& f) {
    if constexpr (std::is_same_v<S, V>) {
      const bool lies_badly = !b.is_transposed && detail::rows_share_sets<S>(b.matrix.stride);
      if (!lies_badly || rows < tile_rows) return f(b, Index{0});
    }
    for_each_copied_panel(b, f);
  }

  // Copies `panel_cols` columns of op(B) at a time, widened, into a buffer that stays for the next
  // call.
  template <class V, class F>
  void for_each_copied_panel(Operand<V> b, F&& f) {
    for (Index first = 0; first < b.cols(); first += panel_cols) {
      const Operand<V> source = operand_cols(b, first, std::min(panel_cols, b.cols() - first));
      const MatrixView<S> panel = panel_like(source.matrix);
      for_each_row(panel.rows, [=](Index i, const auto& team) {
        team.each(panel.cols, [=](Index j) { panel(i, j) = static_cast<S>(source.matrix(i, j)); });
      });
      f(Operand<S>{panel, b.is_transposed}, first);
    }
  }

  template <class V>
  MatrixView<S> panel_like(ConstMatrixView<V> source) {
    const Index stride = detail::padded_row_stride<S>(source.cols);
    if (panel_.size() < source.rows * stride) panel_ = HostBuffer<S>(source.rows * stride);
    return {panel_.data(), source.rows, source.cols, stride};
  }

  HostBuffer<S> panel_{};
  HostBuffer<S> packing_{};
};

}  // namespace wanamaker::inline WANAMAKER_ABI
