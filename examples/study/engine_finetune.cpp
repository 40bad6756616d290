#include "finetuning.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/study/finetune.hpp"

namespace study {

namespace {

using Backend = wanamaker::BlasBackend<float>;

class FloatModel final : public TunableModel {
 public:
  FloatModel(const std::filesystem::path& model, wanamaker::ExecutorRef executor)
      : executor_(executor),
        backend_(executor),
        model_(wanamaker::load_model(backend_, model)),
        workspace_(backend_) {}

  const wanamaker::ModelConfig& config() const override { return model_.config(); }
  std::string arithmetic() const override {
    return std::string("float, ") + wanamaker::BlasGemm::library();
  }

  wanamaker::FinetuneResult finetune(const FinetuneTask& task,
                                     const wanamaker::FinetuneCheckpoint& checkpoint) override {
    wanamaker::FinetuneInput<Backend> input{.backend = backend_,
                                            .model = model_,
                                            .corpus = task.corpus,
                                            .splits = task.splits,
                                            .workspace = workspace_,
                                            .other = task.other,
                                            .last_words = task.last_words,
                                            .rule = task.rule,
                                            .protocol = task.protocol,
                                            .options = task.options,
                                            .executor = executor_,
                                            .progress = task.progress};
    input.options.recipes.layers = layers_in_order(input, task.order);
    return wanamaker::run_finetune(input, plan(task.command, input.options.recipes), checkpoint);
  }

 private:
  static std::vector<wanamaker::Index> layers_in_order(
      const wanamaker::FinetuneInput<Backend>& input, LayerOrder order) {
    const std::vector<wanamaker::Index>& named = input.options.recipes.layers;
    const auto layers = wanamaker::chosen_layers(named, input.model.layers());
    if (order == LayerOrder::cost) return wanamaker::order_by_cost(input, layers);
    if (order == LayerOrder::middle || named.empty()) return wanamaker::middle_outwards(layers);
    return named;
  }

  static wanamaker::FinetunePlan plan(const std::string& command,
                                      const wanamaker::RecipeOptions& options) {
    if (command == "progressive") return wanamaker::progressive_plan(options);
    if (command == "two-phase") return wanamaker::two_phase_plan(options);
    return wanamaker::control_plan(options);
  }

  wanamaker::ExecutorRef executor_;
  Backend backend_;
  wanamaker::AnyTransformer<Backend> model_;
  wanamaker::Workspace<Backend> workspace_;
};

}  // namespace

std::unique_ptr<TunableModel> load_tunable_model(const std::filesystem::path& model,
                                                 wanamaker::ExecutorRef executor) {
  return std::make_unique<FloatModel>(model, executor);
}

}  // namespace study
