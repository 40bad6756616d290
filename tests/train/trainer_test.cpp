// The loop of training: it learns, resumes bit by bit from any step, keeps whole checkpoints, and
// stops where a run goes wrong.
#include "wanamaker/train/trainer.hpp"

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "train/train_testing.hpp"
#include "wanamaker/backend/reference.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using B = ReferenceBackend<float>;

constexpr Index toy_steps = 20;

TrainerOptions toy_options(Index checkpoint_every = 1) {
  return {.steps = toy_steps,
          .optimiser = {.decay = 0.01},
          .schedule = {.peak = 0.1, .warm_up = 3, .steps = toy_steps},
          .accumulation = 2,
          .checkpoint_every = checkpoint_every};
}

/// A bigram model, its data, and a trainer of it.
struct ToyRun {
  B backend{};
  std::vector<TokenId> tokens = successor_tokens(7, 400);
  WindowSampler sampler{tokens, 5, 3, 21};
  OwnedParameters<B> owned = bigram_parameters(backend, 7);
  TrainerOptions options;
  Trainer<B> trainer;

  explicit ToyRun(TrainerOptions given = toy_options())
      : options(given), trainer(backend, owned.list, given) {}

  CheckpointFolder folder(const TemporaryFolder& in) const {
    return {in.path(), training_hash(options, sampler.hash())};
  }
  void run(const Progress& progress = {}) {
    trainer.run(
        sampler,
        [this](const TrainingBatch& batch) { return bigram_loss_and_gradients(owned.list, batch); },
        progress);
  }
};

/// Asks to stop once `steps` steps are done.
Progress stopping_at(Index steps) {
  return {[steps](std::string_view, Index done, Index) { return done < steps; }};
}

bool same_curve(const LossCurve& a, const LossCurve& b) {
  return loss_curve_csv(a) == loss_curve_csv(b);
}

struct WholeRun {
  std::vector<double> values;
  LossCurve curve;
};

WholeRun whole_run() {
  ToyRun toy;
  toy.run();
  return {toy.owned.values(), toy.trainer.curve()};
}

void flip_byte(const std::filesystem::path& path, std::size_t from_end) {
  std::string bytes = read_bytes(path);
  bytes[bytes.size() - from_end] = static_cast<char>(bytes[bytes.size() - from_end] ^ 1);
  write_bytes(path, bytes);
}

}  // namespace

TEST_CASE("a model learns, and the curve says what it saw") {
  TrainerOptions options = toy_options();
  std::vector<TrainingStep> seen;
  options.on_step = [&](const TrainingStep& step, const TrainingSpeed& speed) {
    CHECK(speed.tokens_per_second >= 0);
    CHECK(speed.seconds_left >= 0);
    seen.push_back(step);
  };
  ToyRun toy(options);
  Index last = -1;
  toy.run({[&](std::string_view stage, Index done, Index total) {
    CHECK(stage == "training");
    CHECK(done == last + 1);
    CHECK(total == toy_steps);
    last = done;
    return true;
  }});
  CHECK(last == toy_steps);
  const LossCurve& curve = toy.trainer.curve();
  REQUIRE(curve.size() == toy_steps);
  CHECK(same_curve(curve, seen));
  CHECK(curve.front().loss > 1.8);  // ln 7 = 1.95
  CHECK(curve.back().loss < curve.front().loss - 0.3);
  CHECK(curve.back().tokens == toy_steps * 2 * 3 * 5);
  CHECK(curve[1].learning_rate == toy.options.schedule.rate(1));
}

TEST_CASE("accumulated batches give the step of one batch that has them all") {
  ToyRun two;
  TrainerOptions options = toy_options();
  options.accumulation = 1;
  ToyRun one(options);
  one.trainer.run(
      [&](Index number) {
        TrainingBatch all = one.sampler(2 * number);
        const TrainingBatch more = one.sampler(2 * number + 1);
        for (std::size_t i = 0; i < more.tokens.size(); ++i) {
          all.scored.rows.push_back(static_cast<TokenId>(all.tokens.size()));
          all.scored.targets.push_back(more.scored.targets[i]);
          all.tokens.push_back(more.tokens[i]);
        }
        return all;
      },
      [&](const TrainingBatch& batch) { return bigram_loss_and_gradients(one.owned.list, batch); });
  two.run();
  // Float sums in another order, through 20 steps of at most 0.1.
  CHECK(all_close(two.owned.values(), one.owned.values(), 1e-4, 1e-4));
}

TEST_CASE("a run that is stopped after any step goes on byte for byte") {
  const WholeRun whole = whole_run();
  for (Index stop = 0; stop <= toy_steps; ++stop) {
    CAPTURE(stop);
    const TemporaryFolder folder;
    {
      ToyRun first(toy_options(100));
      first.trainer.resume(first.folder(folder));
      CHECK(error_id([&] { first.run(stopping_at(stop)); }) == "run/cancelled");
      CHECK(first.trainer.curve().size() == static_cast<std::size_t>(stop));
    }
    ToyRun second;
    const auto resumption = second.trainer.resume(second.folder(folder));
    REQUIRE(resumption.has_value());
    CHECK(resumption->step == stop);
    second.run();
    CHECK(second.owned.values() == whole.values);
    CHECK(same_curve(second.trainer.curve(), whole.curve));
  }
}

TEST_CASE("a crash inside any step loses the steps since the last checkpoint, and nothing else") {
  const WholeRun whole = whole_run();
  for (Index crash = 0; crash < toy_steps; ++crash) {
    CAPTURE(crash);
    const TemporaryFolder folder;
    {
      ToyRun first(toy_options(3));
      first.trainer.resume(first.folder(folder));
      Index batches = 0;
      const auto crashing = [&](const TrainingBatch& batch) {
        const double loss = bigram_loss_and_gradients(first.owned.list, batch);
        if (++batches == 2 * crash + 2) throw std::runtime_error("crash");
        return loss;
      };
      CHECK_THROWS_AS(first.trainer.run(first.sampler, crashing), std::runtime_error);
    }
    ToyRun second(toy_options(3));
    const auto resumption = second.trainer.resume(second.folder(folder));
    CHECK((resumption ? resumption->step : 0) == crash / 3 * 3);
    second.run();
    CHECK(second.owned.values() == whole.values);
    CHECK(same_curve(second.trainer.curve(), whole.curve));
  }
}

TEST_CASE("where the newest checkpoint is damaged, the one before it is read") {
  const WholeRun whole = whole_run();
  enum class Damage { cut, flipped, missing, empty };
  for (const Damage damage : {Damage::cut, Damage::flipped, Damage::missing, Damage::empty}) {
    CAPTURE(static_cast<int>(damage));
    const TemporaryFolder folder;
    ToyRun first(toy_options(4));
    const CheckpointFolder checkpoints = first.folder(folder);
    first.trainer.resume(checkpoints);
    CHECK(error_id([&] { first.run(stopping_at(10)); }) == "run/cancelled");
    if (damage == Damage::flipped) flip_byte(checkpoints.newest(), 9);
    if (damage == Damage::cut) {
      write_bytes(checkpoints.newest(), read_bytes(checkpoints.newest()).substr(0, 900));
    }
    if (damage == Damage::missing) std::filesystem::remove(checkpoints.newest());
    if (damage == Damage::empty) write_bytes(checkpoints.newest(), "");
    ToyRun second(toy_options(4));
    const auto resumption = second.trainer.resume(checkpoints);
    REQUIRE(resumption.has_value());
    CHECK(resumption->step == 8);
    CHECK(!resumption->fault.empty());
    CHECK(std::filesystem::exists(checkpoints.newest()));
    second.run();
    CHECK(second.owned.values() == whole.values);
  }
}

TEST_CASE("a kill that left both names to one checkpoint leaves no third after the next one") {
  const TemporaryFolder folder;
  ToyRun toy;
  const CheckpointFolder checkpoints = toy.folder(folder);
  AdamW::State<B> state(toy.backend, toy.owned.list);
  const auto save = [&] { checkpoints.save(toy.backend, toy.owned.list, state, LossCurve()); };
  save();
  std::filesystem::create_hard_link(checkpoints.newest(), checkpoints.previous());
  save();
  std::filesystem::remove(checkpoints.newest());
  std::filesystem::remove(checkpoints.previous());
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("every byte of a checkpoint counts") {
  const TemporaryFolder folder;
  ToyRun toy;
  const CheckpointFolder checkpoints = toy.folder(folder);
  toy.trainer.resume(checkpoints);
  CHECK(error_id([&] { toy.run(stopping_at(2)); }) == "run/cancelled");
  const std::string bytes = read_bytes(checkpoints.newest());
  const auto values = toy.owned.values();
  const std::filesystem::path damaged = folder / "damaged.safetensors";
  int refused = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 7) {
    std::string copy = bytes;
    copy[at] = static_cast<char>(copy[at] ^ 4);
    write_bytes(damaged, copy);
    AdamW::State<B> state(toy.backend, toy.owned.list);
    LossCurve curve;
    const std::string id = error_id([&] {
      CheckpointFile(damaged, training_hash(toy.options, toy.sampler.hash()))
          .read(toy.backend, toy.owned.list, state, curve);
    });
    CHECK(toy.owned.values() == values);
    CHECK(curve.empty());
    refused += id.empty() ? 0 : 1;
  }
  CHECK(refused == static_cast<int>((bytes.size() + 6) / 7));
}

TEST_CASE("checkpoints of other runs and other models are refused") {
  const TemporaryFolder folder;
  ToyRun toy;
  toy.trainer.resume(toy.folder(folder));
  toy.run();
  const auto refusal = [&](TrainerOptions options) {
    ToyRun other(options);
    return error_id([&] { other.trainer.resume(other.folder(folder)); });
  };
  TrainerOptions options = toy_options();
  options.steps = 40;  // a longer run of the same settings goes on
  CHECK(refusal(options) == "");
  options.optimiser.beta2 = 0.9;
  CHECK(refusal(options) == "training/other-settings");
  ToyRun shaped;
  shaped.owned = OwnedParameters<B>(shaped.backend);
  shaped.owned.add("transformer.wte.weight", true, 7, 3, std::vector<double>(21));
  Trainer<B> other(shaped.backend, shaped.owned.list, shaped.options);
  CHECK(error_id([&] { other.resume(shaped.folder(folder)); }) == "training/checkpoint");
  using Double = ReferenceBackend<double>;
  Double precise;
  OwnedParameters<Double> parameters = bigram_parameters(precise, 7);
  Trainer<Double> in_double(precise, parameters.list, toy.options);
  CHECK(error_id([&] { in_double.resume(toy.folder(folder)); }) == "training/checkpoint");
}

TEST_CASE("frozen parameters stay, have no moments, and are kept in checkpoints") {
  const TemporaryFolder folder;
  ToyRun toy;
  toy.owned.list[1].frozen = true;
  toy.owned.list[1].gradient = {};
  Trainer<B> trainer(toy.backend, toy.owned.list, toy.options);
  trainer.resume(toy.folder(folder));
  const std::vector<double> before = toy.owned.values();
  trainer.run(toy.sampler, [&](const TrainingBatch& batch) {
    return bigram_loss_and_gradients(toy.owned.list, batch);
  });
  const std::vector<double> after = toy.owned.values();
  CHECK(std::equal(before.end() - 7, before.end(), after.end() - 7));
  CHECK(!std::equal(before.begin(), before.end() - 7, after.begin()));
  const SafetensorsFile file = SafetensorsFile::open(toy.folder(folder).newest());
  CHECK(file.contains("value.transformer.h.0.mlp.c_fc.bias"));
  CHECK(!file.contains("first.transformer.h.0.mlp.c_fc.bias"));
}

TEST_CASE("a loss or gradient that is not finite stops the run before the step, and says where") {
  const TemporaryFolder folder;
  ToyRun toy;
  toy.trainer.resume(toy.folder(folder));
  Index batches = 0;
  const auto poisoned = [&](const TrainingBatch& batch) {
    const double loss = bigram_loss_and_gradients(toy.owned.list, batch);
    if (++batches == 13) {
      toy.owned.list[1].gradient(0, 2) = std::numeric_limits<float>::quiet_NaN();
    }
    return loss;
  };
  std::string message;
  try {
    toy.trainer.run(toy.sampler, poisoned);
  } catch (const NumericalError& error) {
    message = error.what();
    CHECK(error.id() == "training/non-finite");
  }
  CHECK(message.find("step 7, mlp of layer 0 (transformer.h.0.mlp.c_fc.bias)") != message.npos);
  CHECK(message.find("checkpoint.safetensors, step 6") != message.npos);
  CHECK(toy.trainer.curve().size() == 6);
  ToyRun second;
  CHECK(second.trainer.resume(second.folder(folder))->step == 6);
  second.run();
  CHECK(second.owned.values() == whole_run().values);
}

TEST_CASE("a rising loss stops the run; a falling or a level one does not") {
  const auto steps_until_stop = [](auto loss_of_step) {
    TrainerOptions options = toy_options();
    options.steps = 60;
    options.rising_window = 5;
    options.largest_rise = 0.5;
    options.accumulation = 1;
    ToyRun toy(options);
    const std::string id = error_id([&] {
      Index step = 0;
      toy.trainer.run(toy.sampler, [&](const TrainingBatch& batch) {
        bigram_loss_and_gradients(toy.owned.list, batch);
        return loss_of_step(step++);
      });
    });
    CHECK((id.empty() || id == "training/rising-loss"));
    return static_cast<int>(toy.trainer.curve().size());
  };
  CHECK(steps_until_stop([](Index) { return 2.0; }) == 60);
  CHECK(steps_until_stop([](Index s) { return 3.0 - 0.04 * static_cast<double>(s); }) == 60);
  // One spike of 2.4 lifts a mean of 5 by 0.48; one of 2.6 by 0.52.
  CHECK(steps_until_stop([](Index s) { return s == 20 ? 4.4 : 2.0; }) == 60);
  CHECK(steps_until_stop([](Index s) { return s == 20 ? 4.6 : 2.0; }) == 20);
  // 0.12 a step from step 11 on: the mean of 5 is 0.12 · (s − 12) up, 0.60 at s = 17.
  const auto creeping = [](Index s) {
    return 2.0 + 0.12 * static_cast<double>(s > 10 ? s - 10 : 0);
  };
  CHECK(steps_until_stop(creeping) == 17);
}

TEST_CASE("impossible settings are refused") {
  const auto refused = [](auto change) {
    TrainerOptions options = toy_options();
    change(options);
    return error_id([&] { ToyRun{options}; });
  };
  CHECK(refused([](TrainerOptions&) {}) == "");
  CHECK(refused([](TrainerOptions& o) { o.accumulation = 0; }) == "training/options");
  CHECK(refused([](TrainerOptions& o) { o.checkpoint_every = 0; }) == "training/options");
  CHECK(refused([](TrainerOptions& o) { o.largest_norm = NAN; }) == "training/options");
  CHECK(refused([](TrainerOptions& o) { o.optimiser.beta1 = 1; }) == "training/optimiser");
  CHECK(refused([](TrainerOptions& o) { o.schedule.floor = -1; }) == "training/schedule");
}
