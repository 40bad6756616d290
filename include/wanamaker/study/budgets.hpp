// Models trained from scratch on the same tokens, each spending one budget in its own way, against
// the uniform model; and twins that differ in their residual topology.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "wanamaker/stats/quantiles.hpp"
#include "wanamaker/study/arm_run.hpp"
#include "wanamaker/study/budget_plans.hpp"
#include "wanamaker/study/finetune_comparison.hpp"
#include "wanamaker/study/hard_routing.hpp"
#include "wanamaker/study/linearised_layers.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What an experiment with models from scratch is given. Referenced objects must outlive the run.
template <class B>
struct BudgetInput {
  B& backend;
  const ModelConfig& config;  ///< of the uniform model
  const TokenizedCorpus& corpus;
  const Splits& splits;  ///< train and report are used, fit where layers are linearised
  Workspace<B>& workspace;
  WindowRule rule{};    ///< of evaluations
  Protocol protocol{};  ///< token_ids_hash is filled in
  BudgetOptions options{};
  /// Folder for the checkpoints of unfinished models; none: they are not kept.
  std::optional<std::filesystem::path> checkpoints{};
  /// Called with every model that was trained here, its gates still soft, to be read; may be empty.
  std::function<void(const BudgetArm& arm, std::uint64_t seed, AnyTransformer<B>& model)>
      on_model{};
  ExecutorRef executor{};
  Progress progress{};
};

namespace detail {

/// The stage at which a model from scratch is compared: after its gates were made hard.
inline std::string compared_stage(const MlpPlan& plan) {
  return has_kind(plan, MlpKind::gated) ? "hard" : "trained";
}

inline std::string linear_stage(Index layer) {
  return "linear-" + std::to_string(layer);
}

/// Trains one arm with one seed and evaluates it.
template <Backend B>
class ScratchRun {
 public:
  ScratchRun(const BudgetInput<B>& in, const EvaluationSet& unseen, const BudgetArm& arm,
             std::uint64_t seed, Progress progress)
      : in_(in),
        unseen_(unseen),
        arm_(arm),
        config_(in.config),
        progress_(std::move(progress)),
        run_{arm.name, seed, {}} {
    config_.parallel_residual = arm.parallel_residual;
    for (const LayerMlp& mlp : dense_plan(in.config)) {
      uniform_.push_back(planned_cost(in.config, mlp, 0).flops);
    }
  }

  ArmRun run(bool linearises) {
    AnyTransformer<B> model = make_model(in_.backend, config_, arm_.plan);
    train(model);
    if (in_.on_model) in_.on_model(arm_, run_.seed, model);
    if (has_kind(arm_.plan, MlpKind::gated)) add_soft_point(model);
    HardRouting<B> routing(in_.backend, model);
    const std::vector<double> losses = routing.losses(unseen_, in_.workspace, quiet(), arm_.name);
    add_point(compared_stage(arm_.plan), losses, routing.layers());
    if (linearises) add_linear_points(model);
    return std::move(run_);
  }

  /// Where this arm's unfinished state is kept.
  std::optional<std::filesystem::path> checkpoints() const {
    if (!in_.checkpoints) return std::nullopt;
    return *in_.checkpoints / (arm_.name + "-seed-" + std::to_string(run_.seed));
  }

 private:
  void train(AnyTransformer<B>& model) {
    PretrainOptions options = in_.options.training;
    options.seed = run_.seed;
    options.plan = arm_.plan;
    const std::optional<std::filesystem::path> folder = checkpoints();
    if (folder) std::filesystem::create_directories(*folder);
    const PretrainResult trained =
        run_pretrain(in_.backend, model, in_.corpus, in_.splits.train, options, folder, progress_);
    base_.steps = static_cast<Index>(trained.curve.size());
    base_.tokens = trained.tokens;
    base_.training_flops = static_cast<double>(base_.steps * options.training.accumulation) *
                           step_flops(WholeModel<B>(model), parameters<B>(model), options.window,
                                      options.sequences, options.recompute)
                               .total();
    add_losses(base_, trained.curve);
  }

  /// Both paths for every token, as in training.
  void add_soft_point(const AnyTransformer<B>& model) {
    FinetunePoint point = base_;
    point.stage = "soft";
    for (Index l = 0; l < config_.layers; ++l) {
      if (arm_.plan[static_cast<std::size_t>(l)].kind != MlpKind::gated) continue;
      point.layers.push_back({.layer = l, .form = LayerForm::soft_gate});
    }
    set_shares(point, mlp_flops_per_token(model));
    point.texts.push_back(losses_by_document(
        unseen_text, unseen_,
        run_losses(in_.backend, model, unseen_, in_.workspace, quiet(), arm_.name)));
    run_.points.push_back(std::move(point));
    base_.losses.clear();  // each training step is listed once
  }

  void add_point(std::string stage, const std::vector<double>& losses,
                 std::vector<LayerState> layers) {
    FinetunePoint point = base_;
    point.stage = std::move(stage);
    std::vector<double> routed(arm_.plan.size());
    for (const LayerState& state : layers) {
      routed[static_cast<std::size_t>(state.layer)] = *state.fraction_linear;
    }
    std::vector<double> flops;
    for (std::size_t l = 0; l < routed.size(); ++l) {
      flops.push_back(planned_cost(config_, arm_.plan[l], routed[l]).flops);
      point.fraction_linear += routed[l] / static_cast<double>(routed.size());
    }
    point.layers = std::move(layers);
    set_shares(point, flops);
    point.texts.push_back(losses_by_document(unseen_text, unseen_, losses));
    run_.points.push_back(std::move(point));
    base_.losses.clear();
  }

  /// "linear-L": layer L alone is the map that was fitted for it, and nothing is trained.
  void add_linear_points(const AnyTransformer<B>& model) {
    std::vector<Index> layers;
    for (Index l = 0; l < config_.layers; ++l) layers.push_back(l);
    for_each_linearised(
        LinearisedInput<B>{
            .backend = in_.backend,
            .model = model,
            .fit = make_evaluation_set(in_.corpus, in_.splits.fit.documents, in_.rule),
            .set = unseen_,
            .rho = in_.options.rho,
            .workspace = in_.workspace,
            .executor = in_.executor,
            .progress = quiet()},
        layers, [&](Index layer, const std::vector<double>& losses) {
          std::vector<double> flops = uniform_;
          flops[static_cast<std::size_t>(layer)] =
              planned_cost(config_, LayerMlp{MlpKind::affine, 0}, 0).flops;
          FinetunePoint point = base_;
          point.stage = linear_stage(layer);
          point.layers = {{.layer = layer, .form = LayerForm::affine, .fraction_linear = 1}};
          point.fraction_linear = 1.0 / static_cast<double>(config_.layers);
          set_shares(point, flops);
          point.texts.push_back(losses_by_document(unseen_text, unseen_, losses));
          run_.points.push_back(std::move(point));
        });
  }

  void set_shares(FinetunePoint& point, const std::vector<double>& flops) const {
    const FlopsShares shares = flops_shares(in_.config, unseen_, uniform_, flops);
    point.flops_fraction_mlp = shares.mlp;
    point.flops_fraction_total = shares.total;
  }

  /// Only asks whether to go on.
  Progress quiet() const {
    return {[this](std::string_view, Index, Index) {
      progress_.poll();
      return true;
    }};
  }

  const BudgetInput<B>& in_;
  const EvaluationSet& unseen_;
  const BudgetArm& arm_;
  ModelConfig config_;
  Progress progress_;
  ArmRun run_;
  std::vector<double> uniform_{};  ///< FLOPs of a token in the uniform model's MLPs
  FinetunePoint base_{};           ///< what all points have: training
};

/// What linearising one layer alone costs, in per cent of perplexity: the median over layers.
inline double median_linearising_percent(const std::vector<ArmRun>& runs, const std::string& arm,
                                         std::uint64_t seed, Index layers) {
  std::vector<double> percents;
  for (Index l = 0; l < layers; ++l) {
    const PairedSums sums =
        paired_sums(*text_at(point_of(runs, {arm, "trained"}, seed), unseen_text),
                    *text_at(point_of(runs, {arm, linear_stage(l)}, seed), unseen_text));
    percents.push_back(100 * std::expm1(delta_of(sums)));
  }
  return sorted_quantile(sorted_copy(percents), 0.5);
}

/// Treated against control, with seeds as units: a topology is trained once a seed.
inline TopologyFinding topology_finding(const std::vector<ArmRun>& runs, std::string treated,
                                        std::string control,
                                        const std::vector<std::uint64_t>& seeds, Index layers,
                                        double level) {
  TopologyFinding finding{.treated = std::move(treated), .control = std::move(control)};
  for (const std::uint64_t seed : seeds) {
    const double own = median_linearising_percent(runs, finding.treated, seed, layers);
    const double other = median_linearising_percent(runs, finding.control, seed, layers);
    finding.treated_percent.push_back(own);
    finding.control_percent.push_back(other);
    finding.difference_percent.push_back(own - other);
  }
  finding.interval = mean_interval(finding.difference_percent, level);
  if (finding.interval && finding.interval->high < 0) finding.verdict = ContrastVerdict::better;
  if (finding.interval && finding.interval->low > 0) finding.verdict = ContrastVerdict::worse;
  return finding;
}

template <Backend B>
class BudgetStudy {
 public:
  BudgetStudy(const BudgetInput<B>& in, const BudgetPlan& plan, const FinetuneCheckpoint& stored)
      : in_(in),
        plan_(plan),
        stored_(stored),
        unseen_(make_evaluation_set(in.corpus, in.splits.report.documents, in.rule)) {}

  BudgetResult run() {
    BudgetResult result = header();
    for (const std::uint64_t seed : in_.options.seeds) {
      for (const BudgetArm& arm : plan_.arms) result.runs.push_back(run_of(arm, seed));
    }
    compare(result);
    return result;
  }

 private:
  const BudgetArm& control() const { return plan_.arms.front(); }
  static PointName point_of_arm(const BudgetArm& arm) {
    return {arm.name, compared_stage(arm.plan)};
  }

  BudgetResult header() const {
    BudgetResult result{.command = plan_.command,
                        .protocol = in_.protocol,
                        .model = {in_.config.name, family_name(in_.config.family),
                                  in_.config.layers, in_.config.width, 0},
                        .options = in_.options};
    result.protocol.token_ids_hash = token_ids_hash(unseen_);
    result.train_documents = static_cast<Index>(in_.splits.train.documents.size());
    result.train_tokens = result.train_documents;  // separators
    for (const Index d : in_.splits.train.documents) {
      result.train_tokens += std::ssize(in_.corpus.documents[static_cast<std::size_t>(d)].ids);
    }
    result.texts = {{unseen_text, static_cast<Index>(unseen_.documents.size()), unseen_.scored(),
                     result.protocol.token_ids_hash}};
    const double shared = shared_parameters();
    for (const BudgetArm& arm : plan_.arms) result.arms.push_back(described(arm, shared));
    result.model.parameters = result.arms.front().parameters;
    return result;
  }

  /// `shared`: parameters of everything but MLPs.
  BudgetArmResult described(const BudgetArm& arm, double shared) const {
    const double routed = in_.options.routed;
    const PlannedCost target = planned_cost(in_.config, control().plan, routed);
    BudgetArmResult result{.arm = arm, .mlps = planned_cost(in_.config, arm.plan, routed)};
    result.parameters = shared + result.mlps.parameters;
    result.parameters_deviation_percent =
        deviation_percent(result.mlps.parameters, target.parameters);
    result.flops_deviation_percent = deviation_percent(result.mlps.flops, target.flops);
    return result;
  }

  /// Of everything but MLPs.
  double shared_parameters() const {
    const AnyTransformer<B> model = make_model(in_.backend, in_.config);
    double mlps = 0;
    for (Index l = 0; l < model.layers(); ++l) mlps += model.mlp(l).cost(1).parameters;
    return model.parameters() - mlps;
  }

  ArmRun run_of(const BudgetArm& arm, std::uint64_t seed) {
    ScratchRun<B> run(in_, unseen_, arm, seed, progress_of_all());
    ArmRun result =
        stored_or(stored_, ArmKey{arm.name, seed}, [&] { return run.run(plan_.linearises); });
    ++finished_;
    if (const auto folder = run.checkpoints()) {
      std::error_code ignored;
      std::filesystem::remove_all(*folder, ignored);
    }
    return result;
  }

  /// Steps of all models together, so that the time left is that of the whole experiment.
  Progress progress_of_all() const {
    const Index models = static_cast<Index>(plan_.arms.size() * in_.options.seeds.size());
    return {[this, models, before = finished_](std::string_view stage, Index done, Index total) {
      if (stage == "training") {
        in_.progress("training of " + std::to_string(models) + " models", before * total + done,
                     models * total);
      } else {
        in_.progress.poll();
      }
      return true;
    }};
  }

  void compare(BudgetResult& result) const {
    const FinetuneComparisons comparisons(
        result.runs, {in_.options.seeds, in_.options.margin_percent, in_.options.intervals},
        in_.executor);
    const PointName baseline = point_of_arm(control());
    for (std::size_t a = 1; a < plan_.arms.size(); ++a) {
      const BudgetArm& arm = plan_.arms[a];
      const PointName point = point_of_arm(arm);
      for (const ControlKind kind : kinds_of(arm, result.runs)) {
        result.comparisons.push_back(comparisons.compare({point, baseline, kind}, unseen_text));
      }
      result.verdicts.push_back(
          {point, claim_verdict(result.comparisons, point), comparisons.kept(point, baseline)});
    }
    if (plan_.linearises) add_linearised(comparisons, result);
  }

  /// A gate that was learned may have routed so little that the model is beyond its budget of
  /// FLOPs.
  std::vector<ControlKind> kinds_of(const BudgetArm& arm, const std::vector<ArmRun>& runs) const {
    std::vector<ControlKind> kinds;
    for (const BudgetKind kind : arm.budgets) {
      if (kind == BudgetKind::parameters) kinds.push_back(ControlKind::equal_parameters);
      if (kind == BudgetKind::flops && keeps_flops(arm, runs)) {
        kinds.push_back(ControlKind::equal_flops);
      }
    }
    if (kinds.empty()) kinds.push_back(ControlKind::other_budget);
    return kinds;
  }

  bool keeps_flops(const BudgetArm& arm, const std::vector<ArmRun>& runs) const {
    return mean_flops_fraction(runs, point_of_arm(arm), in_.options.seeds) <=
           1 + in_.options.tolerance_percent / 100;
  }

  /// Each layer's map against the same model with its MLP, and the topologies' medians.
  void add_linearised(const FinetuneComparisons& comparisons, BudgetResult& result) const {
    for (const BudgetArm& arm : plan_.arms) {
      for (Index l = 0; l < in_.config.layers; ++l) {
        result.comparisons.push_back(comparisons.compare(
            {{arm.name, linear_stage(l)}, point_of_arm(arm), ControlKind::full}, unseen_text));
      }
    }
    for (std::size_t a = 1; a < plan_.arms.size(); ++a) {
      result.topology.push_back(topology_finding(result.runs, plan_.arms[a].name, control().name,
                                                 in_.options.seeds, in_.config.layers,
                                                 in_.options.intervals.level));
    }
  }

  const BudgetInput<B>& in_;
  const BudgetPlan& plan_;
  const FinetuneCheckpoint& stored_;
  EvaluationSet unseen_;
  Index finished_ = 0;
};

}  // namespace detail

/// Trains every arm of the plan with every seed, from initial values that agree wherever two models
/// have the same parameter, on the same windows in the same order seed by seed, and compares each
/// with the plan's first arm on the report split. Learned gates are evaluated soft and hard, and
/// compared hard. Results do not depend on threads, nor on which parts were stored. Throws
/// ProtocolError ("finetune/seeds") and what run_pretrain and evaluations throw.
template <Backend B>
BudgetResult run_budgets(const BudgetInput<B>& input, const BudgetPlan& plan,
                         const FinetuneCheckpoint& checkpoint = {}) {
  detail::check_seeds(input.options.seeds);
  return detail::BudgetStudy<B>(input, plan, checkpoint).run();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
