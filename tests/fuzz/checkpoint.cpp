// A checkpoint of a training: all of it is taken, or nothing. A checksum that the fuzzer cannot
// know is put right, so that what lies behind it is reached.
#include "wanamaker/train/checkpoint.hpp"

#include "fuzz/fuzzing.hpp"
#include "train/train_testing.hpp"
#include "wanamaker/backend/reference.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;
using CheckpointBackend = ReferenceBackend<double>;

constexpr const char* settings = "settings";

/// Two parameters, one of them frozen.
struct SmallTraining {
  CheckpointBackend backend{};
  OwnedParameters<CheckpointBackend> parameters{backend};
  std::optional<AdamW::State<CheckpointBackend>> state{};
  LossCurve curve{};

  SmallTraining() {
    parameters.add("w", true, 2, 3, {1, 2, 3, 4, 5, 6});
    parameters.add("b", false, 1, 2, {7, 8}, true);
    state.emplace(backend, parameters.list);
  }
};

/// Puts the right checksum in the place of the one that is there, where there is one.
std::string with_right_digest(std::string bytes) {
  constexpr std::string_view key = "\"sha256\":\"";
  constexpr std::size_t digits = 64;
  const std::size_t at = bytes.find(key);
  if (at == bytes.npos || bytes.size() - at < key.size() + digits) return bytes;
  const std::filesystem::path path = fuzz_file("unsigned.safetensors", bytes);
  return bytes.replace(at + key.size(), digits, detail::digest_of(SafetensorsFile::open(path)));
}

void read_checkpoint(std::string_view input) {
  const std::filesystem::path path =
      fuzz_file("checkpoint.safetensors", with_right_digest(std::string(input)));
  SmallTraining training;
  const std::vector<double> before = training.parameters.values();
  const CheckpointFile file(path, settings);
  try {
    file.read(training.backend, training.parameters.list, *training.state, training.curve);
  } catch (const Error&) {
    must_hold(training.parameters.values() == before && training.curve.empty() &&
                  training.state->step() == 0,
              "part of a checkpoint was taken");
    return;
  }
  const auto steps = static_cast<std::size_t>(training.state->step());
  must_hold(training.curve.size() == steps, "another number of steps than the curve's");
}

std::vector<std::string> checkpoint_seeds() {
  SmallTraining training;
  const std::filesystem::path path = fuzz_file("seed.safetensors", "");
  std::vector<std::string> seeds;
  for (Index step = 0; step < 3; ++step) {
    save_checkpoint(path, settings, training.backend, training.parameters.list, *training.state,
                    training.curve);
    seeds.push_back(read_bytes(path));
    training.curve.push_back({step + 1, 100 * (step + 1), 2.5, 0.1, 1.0});
  }
  return seeds;
}

const FuzzRegistration checkpoint_target({.name = "checkpoint",
                                          .read = read_checkpoint,
                                          .seeds = checkpoint_seeds});

}  // namespace
