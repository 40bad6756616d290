#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "finetuning.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/study/export_arm.hpp"
#include "wanamaker/study/finetune.hpp"
#include "wanamaker/study/optimise.hpp"

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
    const wanamaker::FinetunePlan own_plan = plan(task.command, input.options.recipes);
    if (task.folder_of) write_treated(input, own_plan.treated, task.folder_of);
    return wanamaker::run_finetune(input, own_plan, checkpoint);
  }

  wanamaker::OptimiseResult optimise(const OptimiseTask& task) override {
    const LayerTask& layers = task.layers;
    wanamaker::OptimiseInput<Backend> input{
        {backend_, model_, layers.corpus, layers.splits, workspace_, layers.rule, layers.protocol,
         layers.options, executor_, layers.progress},
        task.options,
        task.other};
    std::optional<wanamaker::ExportedModel> exported;
    input.on_model = [&](wanamaker::AnyTransformer<Backend>& chosen) {
      exported = written(chosen, layers.corpus, task.folder_of());
    };
    wanamaker::OptimiseResult result = wanamaker::run_optimise(input);
    result.exported = exported;
    return result;
  }

 private:
  // Has the run write the models that claims are made about, of the first seed.
  void write_treated(wanamaker::FinetuneInput<Backend>& input,
                     std::vector<wanamaker::PointName> treated,
                     std::function<std::filesystem::path(const std::string&)> folder_of) {
    const auto ids = checked_ids(input.corpus);
    input.on_point = [this, ids, treated = std::move(treated), folder_of = std::move(folder_of),
                      first = input.options.seeds.front()](
                         const std::string& arm, std::uint64_t seed,
                         const wanamaker::FinetunePoint& point, wanamaker::ArmModel<Backend>& own) {
      const wanamaker::PointName name{arm, point.stage};
      if (seed != first || std::find(treated.begin(), treated.end(), name) == treated.end()) return;
      wanamaker::export_arm(backend_, own, ids, folder_of(arm), workspace_);
    };
  }

  // Nothing for a model whose MLPs are too narrow to act as maps.
  std::optional<wanamaker::ExportedModel> written(wanamaker::AnyTransformer<Backend>& chosen,
                                                  const wanamaker::TokenizedCorpus& corpus,
                                                  const std::filesystem::path& folder) {
    try {
      const double difference =
          wanamaker::export_optimised(backend_, chosen, checked_ids(corpus), folder, workspace_);
      return wanamaker::ExportedModel{wanamaker::has_gated_layers(folder), difference};
    } catch (const wanamaker::ShapeError& error) {
      if (error.id() != "shape/stock-hidden") throw;
      return std::nullopt;
    }
  }

  std::vector<wanamaker::TokenId> checked_ids(const wanamaker::TokenizedCorpus& corpus) const {
    constexpr wanamaker::Index most_ids = 64;
    return wanamaker::ids_to_check(corpus, std::min(most_ids, model_.config().positions));
  }

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
