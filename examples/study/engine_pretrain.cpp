#include "pretraining.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/io/model_writer.hpp"
#include "wanamaker/study/budgets.hpp"

namespace study {

namespace {

using TrainingBackend = wanamaker::BlasBackend<float>;
using TrainedModel = wanamaker::AnyTransformer<TrainingBackend>;

// A model by a plan, where files can have it, in float16 as all that are written here.
void write_planned(const std::filesystem::path& folder, TrainingBackend& backend,
                   TrainedModel& model, const wanamaker::MlpPlan& plan) {
  if (!wanamaker::is_stock(plan)) return;
  std::filesystem::create_directories(folder);
  auto stock = wanamaker::stock_model(backend, model, plan, wanamaker::StockScale::for_half);
  constexpr bool as_float16 = true;
  wanamaker::write_model(folder, backend, stock.model, stock.config, as_float16);
}

}  // namespace

wanamaker::PretrainResult pretrain(const PretrainTask& task, wanamaker::ExecutorRef executor) {
  TrainingBackend backend(executor);
  const wanamaker::MlpPlan& plan = task.options.plan;
  TrainedModel model = wanamaker::make_model(backend, task.config, plan);
  wanamaker::PretrainResult result = wanamaker::run_pretrain(
      backend, model, task.corpus, task.train, task.options, task.checkpoints, task.progress);
  if (plan.empty()) {
    wanamaker::write_model(task.model, backend, model);
    return result;
  }
  write_planned(task.model, backend, model, plan);
  wanamaker::measure_held_out(backend, model, task.corpus, task.held_out, task.protocol, result,
                              task.progress);
  return result;
}

std::string training_arithmetic() {
  return std::string("float, ") + wanamaker::BlasGemm::library();
}

wanamaker::BudgetResult compare_budgets(const BudgetTask& task, wanamaker::ExecutorRef executor,
                                        const wanamaker::FinetuneCheckpoint& checkpoint) {
  TrainingBackend backend(executor);
  wanamaker::Workspace<TrainingBackend> workspace(backend);
  wanamaker::BudgetInput<TrainingBackend> input{.backend = backend,
                                                .config = task.config,
                                                .corpus = task.corpus,
                                                .splits = task.splits,
                                                .workspace = workspace,
                                                .rule = task.rule,
                                                .protocol = task.protocol,
                                                .options = task.options,
                                                .checkpoints = task.checkpoints,
                                                .executor = executor,
                                                .progress = task.progress};
  if (!task.models.empty()) {
    input.on_model = [&](const wanamaker::BudgetArm& arm, std::uint64_t seed, TrainedModel& model) {
      write_planned(task.models / (arm.name + "-seed-" + std::to_string(seed)), backend, model,
                    arm.plan);
    };
  }
  return wanamaker::run_budgets(input, task.plan, checkpoint);
}

}  // namespace study
