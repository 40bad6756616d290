// What tests spend their time on. Builds with a sanitizer compile all else with -O0, in less than
// half of the time, and the sources here with -O1; their objects are linked first, so that of the
// weak functions which others have, too, the linker keeps the copies from here. Nothing calls
// these.
#pragma once

#include "wanamaker/nn/any_transformer.hpp"
#include "wanamaker/nn/backward/transformer.hpp"
#include "wanamaker/surrogate/co_moments.hpp"
#include "wanamaker/surrogate/ridge.hpp"
#include "wanamaker/train/model_shape.hpp"

namespace wanamaker_test {

template <class B>
void use_model(B& backend, const wanamaker::PackedBatch<B>& batch,
               const wanamaker::Gradients<B>& gradients, wanamaker::Workspace<B>& workspace) {
  const auto model = wanamaker::make_model(backend, wanamaker::ModelConfig{});
  const auto scored = wanamaker::all_next_tokens(batch);
  wanamaker::loss_and_gradients(model, backend, batch, scored, gradients, workspace);
  const auto residual = workspace.matrix(batch.rows(), model.config().width);
  model.embed(backend, batch, residual);
  model.forward_from(backend, 0, batch, residual, workspace);
  model.token_losses(backend, residual, scored, workspace);
  wanamaker::CoMoments moments(residual.cols, residual.cols);
  moments.add<B>(backend, residual, residual, workspace);
  wanamaker::RidgeSurrogate::fit(moments);
}

}  // namespace wanamaker_test

#define WANAMAKER_USE_MODEL(B)                                    \
  template void wanamaker_test::use_model(                        \
      wanamaker::B&, const wanamaker::PackedBatch<wanamaker::B>&, \
      const wanamaker::Gradients<wanamaker::B>&, wanamaker::Workspace<wanamaker::B>&)
