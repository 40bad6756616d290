#include "pretraining.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/io/model_writer.hpp"
#include "wanamaker/train/model_shape.hpp"

namespace study {

wanamaker::PretrainResult pretrain(const PretrainTask& task, wanamaker::ExecutorRef executor) {
  wanamaker::BlasBackend<float> backend(executor);
  auto model = wanamaker::make_model(backend, task.config);
  wanamaker::PretrainResult result = wanamaker::run_pretrain(
      backend, model, task.corpus, task.train, task.options, task.checkpoints, task.progress);
  wanamaker::write_model(task.model, backend, model);
  return result;
}

}  // namespace study
