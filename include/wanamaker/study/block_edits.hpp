// A model with some blocks changed, the model itself left as it is: other policies in the places of
// MLPs, blocks left out, or runs of blocks that one map of the residual stream stands for.
#pragma once

#include <map>

#include "wanamaker/study/mlp_overrides.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What is changed, block by block. Policies live elsewhere and must outlive this.
template <class B>
class BlockEdits {
 public:
  /// The model as it is.
  BlockEdits() = default;

  /// What stands in the MLPs' places of blocks that are run.
  MlpOverrides<B>& mlps() { return mlps_; }
  const MlpOverrides<B>& mlps() const { return mlps_; }

  /// The block is not run: r ← r, or r ← r + map(r) where a map of the stream is given.
  void leave_out(Index layer, const AnyMlp<B>* map = nullptr) { left_out_[layer] = map; }

  bool runs(Index layer) const { return left_out_.count(layer) == 0; }
  /// The map of the stream in a block's place; null where there is none.
  const AnyMlp<B>* map_at(Index layer) const {
    const auto found = left_out_.find(layer);
    return found == left_out_.end() ? nullptr : found->second;
  }
  /// Blocks before `layer` that are run: where its keys and values are in a cache that has the
  /// blocks that run and no others.
  Index runs_before(Index layer) const {
    Index count = layer;
    for (const auto& [left_out, map] : left_out_) count -= left_out < layer ? 1 : 0;
    return count;
  }

 private:
  MlpOverrides<B> mlps_{};
  std::map<Index, const AnyMlp<B>*> left_out_{};
};

/// Runs the blocks [first, end) over residual [T × d] as the edits have them. A batch that goes on
/// from a cache has one of `runs_before(layers)` layers.
template <class B>
void forward_blocks(B& backend, const AnyTransformer<B>& model, const BlockEdits<B>& edits,
                    Index first, Index end, const PackedBatch<B>& batch, matrix_view_t<B> residual,
                    Workspace<B>& workspace) {
  Index place = edits.runs_before(first);
  for (Index l = first; l < end; ++l) {
    if (edits.runs(l)) {
      const AnyMlp<B>& policy = edits.mlps().mlp(model, l);
      model.visit([&](const auto& m) {
        m.block(l).forward_with(policy, backend, place, batch, residual, workspace);
      });
      ++place;
    } else if (const AnyMlp<B>* map = edits.map_at(l)) {
      const typename Workspace<B>::Frame frame(workspace);
      const matrix_view_t<B> change = workspace.matrix(residual.rows, residual.cols);
      map->forward(backend, residual, RowContext<B>{}, change, workspace);
      ops::add<B>(backend, residual, change, residual);
    }
  }
}

/// Numbers that the changed model has.
template <class B>
double parameters_of(const AnyTransformer<B>& model, const BlockEdits<B>& edits) {
  double total = model.parameters();
  for (Index l = 0; l < model.layers(); ++l) {
    if (!edits.runs(l)) {
      total -= model.visit([&](const auto& m) { return m.block(l).parameters(); });
      if (const AnyMlp<B>* map = edits.map_at(l)) total += map->cost(1).parameters;
    } else if (const AnyMlp<B>* policy = edits.mlps().at(l)) {
      total += policy->cost(1).parameters - model.mlp(l).cost(1).parameters;
    }
  }
  return total;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
