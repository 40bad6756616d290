// The loop of training: gradients of a batch, clipping, a step of the optimiser, a point of the
// loss curve, now and then a checkpoint. What the loss is of is the caller's.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "wanamaker/backend/workspace.hpp"
#include "wanamaker/core/error.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/core/progress.hpp"
#include "wanamaker/nn/parameters.hpp"
#include "wanamaker/train/adamw.hpp"
#include "wanamaker/train/batches.hpp"
#include "wanamaker/train/checkpoint.hpp"
#include "wanamaker/train/gradient_norm.hpp"
#include "wanamaker/train/loss_curve.hpp"
#include "wanamaker/train/parameter_selection.hpp"
#include "wanamaker/train/schedule.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// How fast a run is. No part of any result.
struct TrainingSpeed {
  double tokens_per_second = 0;  ///< since run() was called
  double seconds_left = 0;       ///< at that speed
};

/// How long to train, by which rule, and what is kept on the way.
struct TrainerOptions {
  Index steps = 1000;  ///< in all, those before a resumption included
  AdamW optimiser{};
  LearningRateSchedule schedule{};
  double largest_norm = 1.0;     ///< gradients are clipped to this norm, all together; 0: not
  Index accumulation = 1;        ///< batches whose gradients make one step
  Index rising_window = 50;      ///< see RisingLoss
  double largest_rise = 1.0;     ///< nats; infinite: a rising loss does not stop the run
  Index checkpoint_every = 100;  ///< steps
  /// Called after every step.
  std::function<void(const TrainingStep&, const TrainingSpeed&)> on_step{};
};

/// SHA-256 of everything that the parameters after a given step depend on, besides the model:
/// optimiser, schedule, clipping, accumulation, and the caller's hash of the data
/// (WindowSampler::hash). The number of steps is no part: a run may be made longer.
inline std::string training_hash(const TrainerOptions& options, std::string_view data_hash) {
  Sha256 hash;
  const auto add = [&hash](double value) {
    hash.update_number(std::bit_cast<std::uint64_t>(value));
  };
  const AdamW& rule = options.optimiser;
  for (const double value : {rule.beta1, rule.beta2, rule.epsilon, rule.decay}) add(value);
  const LearningRateSchedule& schedule = options.schedule;
  for (const double value : {schedule.peak, schedule.floor, options.largest_norm}) add(value);
  for (const Index value : {static_cast<Index>(schedule.shape), schedule.warm_up, schedule.steps,
                            options.accumulation}) {
    hash.update_number(static_cast<std::uint64_t>(value));
  }
  return hash.update_field(data_hash).hex();
}

/// Trains the parameters of a list. The list's views must hold while the trainer lives.
template <Backend B>
class Trainer {
 public:
  /// Throws DataError for impossible settings.
  Trainer(B& backend, ParameterList<B> parameters, TrainerOptions options)
      : backend_(&backend),
        parameters_(std::move(parameters)),
        options_(std::move(options)),
        state_(backend, parameters_),
        workspace_(backend),
        is_rising_(options_.rising_window, options_.largest_rise) {
    check_optimiser(options_.optimiser);
    check_schedule(options_.schedule);
    check_counts();
  }

  const ParameterList<B>& parameters() const { return parameters_; }
  /// Of all steps, those before a resumption included.
  const LossCurve& curve() const { return curve_; }

  /// Keeps checkpoints there from now on, and goes on from what is there already. Throws as
  /// CheckpointFolder::load.
  std::optional<Resumption> resume(CheckpointFolder folder) {
    folder_ = std::move(folder);
    const auto resumption = folder_->load(*backend_, parameters_, state_, curve_);
    if (resumption) kept_step_ = resumption->step;
    for (std::size_t steps = 1; steps <= curve_.size(); ++steps) is_rising_(curve_, steps);
    return resumption;
  }

  /// Trains until `steps` are done and keeps the last state. `batches(n)` is batch n = 0, 1, …, a
  /// function of n; `loss_and_gradients(batch)` adds the gradient of a batch's mean loss to the
  /// parameters' gradients and returns the loss in nats per scored token. Stage of the progress:
  /// "training", in steps. Throws NumericalError, before the step is taken, where loss or gradients
  /// are not finite or the loss rises; Cancelled, after the state was kept; and what the two
  /// functions throw.
  template <std::invocable<Index> Batches, class LossAndGradients>
  requires std::invocable<LossAndGradients&, const TrainingBatch&>
  const LossCurve& run(Batches&& batches, LossAndGradients&& loss_and_gradients,
                       const Progress& progress = {}) {
    start_ = Clock::now();
    first_tokens_ = tokens();
    first_step_ = step();
    try {
      while (step() < options_.steps) {
        progress("training", step(), options_.steps);
        take_step(batches, loss_and_gradients);
        if (step() % options_.checkpoint_every == 0) keep();
      }
      progress("training", step(), options_.steps);
    } catch (const Cancelled&) {
      keep();
      throw;
    }
    keep();
    return curve_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Index step() const { return static_cast<Index>(curve_.size()); }
  Index tokens() const { return curve_.empty() ? 0 : curve_.back().tokens; }

  template <class Batches, class LossAndGradients>
  void take_step(Batches& batches, LossAndGradients& loss_and_gradients) {
    clear_gradients(*backend_, parameters_);
    TrainingStep now{.step = step() + 1, .tokens = tokens()};
    for (Index i = 0; i < options_.accumulation; ++i) {
      const TrainingBatch batch = batches(step() * options_.accumulation + i);
      now.loss += loss_and_gradients(batch);
      now.tokens += static_cast<Index>(batch.scored.targets.size());
    }
    const double share = 1.0 / static_cast<double>(options_.accumulation);
    now.loss *= share;
    const GradientNorms norms = gradient_norms(*backend_, parameters_, workspace_, share);
    now.gradient_norm = norms.total;
    now.learning_rate = options_.schedule.rate(step());
    check_finite(now, norms);
    curve_.push_back(now);
    if (is_rising_(curve_, curve_.size())) refuse_rise(norms);
    const double clipping = clipping_factor(norms.total, options_.largest_norm);
    state_.update(*backend_, parameters_, options_.optimiser, now.learning_rate, share * clipping);
    if (options_.on_step) options_.on_step(now, speed());
  }

  TrainingSpeed speed() const {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (!(seconds > 0)) return {};
    const auto done = static_cast<double>(step() - first_step_);
    return {static_cast<double>(tokens() - first_tokens_) / seconds,
            seconds / done * static_cast<double>(options_.steps - step())};
  }

  /// Writes a checkpoint unless this state was written last.
  void keep() {
    if (!folder_ || step() == kept_step_) return;
    folder_->save(*backend_, parameters_, state_, curve_);
    kept_step_ = step();
  }

  std::string last_checkpoint() const {
    if (!folder_ || kept_step_ < 0) return "no checkpoint was kept";
    return "the last good checkpoint is " + folder_->newest().string() + ", step " +
           std::to_string(kept_step_);
  }

  std::string place(Index step, std::size_t parameter) const {
    if (parameter == parameters_.size()) return "training, step " + std::to_string(step);
    const std::string& name = parameters_[parameter].name;
    return "training, step " + std::to_string(step) + ", " + parameter_group_text(name) + " (" +
           name + ")";
  }

  void check_finite(const TrainingStep& now, const GradientNorms& norms) const {
    if (std::isfinite(now.loss) && std::isfinite(now.gradient_norm)) return;
    const auto bad = std::find_if(norms.of_parameters.begin(), norms.of_parameters.end(),
                                  [](double norm) { return !std::isfinite(norm); });
    throw NumericalError(
        {.id = "training/non-finite",
         .where = place(now.step, static_cast<std::size_t>(bad - norms.of_parameters.begin())),
         .what = "loss or gradient is not finite",
         .found = "loss " + std::to_string(now.loss) + ", norm of the gradient " +
                  std::to_string(now.gradient_norm),
         .mend = "lower the learning rate or lengthen the warm-up; " + last_checkpoint()});
  }

  [[noreturn]] void refuse_rise(const GradientNorms& norms) {
    const Index step = curve_.back().step;
    const double mean =
        mean_loss(curve_, curve_.size(), static_cast<std::size_t>(options_.rising_window));
    curve_.pop_back();
    const auto largest = std::max_element(norms.of_parameters.begin(), norms.of_parameters.end());
    throw NumericalError(
        {.id = "training/rising-loss",
         .where = place(step, static_cast<std::size_t>(largest - norms.of_parameters.begin())),
         .what = "the loss rises; the group with the largest gradient is named",
         .expected = "a mean over " + std::to_string(options_.rising_window) +
                     " steps of at most " + std::to_string(options_.largest_rise) +
                     " nats above the least before",
         .found = std::to_string(mean),
         .mend = "lower the learning rate or lengthen the warm-up; " + last_checkpoint()});
  }

  void check_counts() const {
    const bool fits = options_.steps >= 0 && options_.accumulation >= 1 &&
                      options_.checkpoint_every >= 1 && options_.rising_window >= 1 &&
                      options_.largest_rise >= 0 && options_.largest_norm >= 0;
    if (fits) return;
    throw DataError({.id = "training/options",
                     .where = "TrainerOptions",
                     .what = "impossible settings",
                     .expected =
                         "steps, norm and rise of at least 0; accumulation, checkpoint_every "
                         "and rising_window of at least 1",
                     .mend = "correct the settings of the training"});
  }

  B* backend_;
  ParameterList<B> parameters_;
  TrainerOptions options_;
  AdamW::State<B> state_;
  Workspace<B> workspace_;
  RisingLoss is_rising_;
  LossCurve curve_;
  std::optional<CheckpointFolder> folder_;
  Index kept_step_ = -1;
  Clock::time_point start_{};
  Index first_tokens_ = 0;
  Index first_step_ = 0;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
