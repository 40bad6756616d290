// The model run once with its activations watched.
#pragma once

#include <cstddef>
#include <string>

#include "wanamaker/core/progress.hpp"
#include "wanamaker/nn/any_transformer.hpp"
#include "wanamaker/nn/finite_observer.hpp"
#include "wanamaker/study/windows.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Runs the model as it is on every batch of the set. Throws NumericalError
/// (`numeric/non-finite-activation`) where an activation is NaN or infinite, naming the first one;
/// Cancelled; what Transformer::embed throws.
template <class B>
void check_finite_activations(B& backend, const AnyTransformer<B>& model, const EvaluationSet& set,
                              Workspace<B>& workspace, const Progress& progress = {}) {
  const auto batches = static_cast<Index>(set.batches.size());
  for (Index b = 0; b < batches; ++b) {
    progress("check-finite", b, batches);
    const EvaluationBatch& batch = set.batches[static_cast<std::size_t>(b)];
    const typename Workspace<B>::Frame frame(workspace);
    const PackedBatch<B> packed(backend, batch.tokens, batch.offsets);
    const matrix_view_t<B> residual = workspace.matrix(packed.rows(), model.config().width);
    model.forward(backend, packed, residual, workspace,
                  FiniteObserver<B>(backend, "batch " + std::to_string(b)));
  }
  progress("check-finite", batches, batches);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
