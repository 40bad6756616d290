// Stored co-moments, from which an interrupted collection resumes: whatever is accepted is written
// as it was read.
#include "fuzz/fuzzing.hpp"
#include "wanamaker/surrogate/co_moments_file.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

void save_all(const std::filesystem::path& path, const SavedCoMoments& saved) {
  std::map<Index, std::reference_wrapper<const CoMoments>> layers;
  for (const auto& [layer, moments] : saved.layers) layers.emplace(layer, std::cref(moments));
  save_co_moments(path, saved.settings_hash, layers);
}

void read_co_moments(std::string_view input) {
  const SavedCoMoments saved = load_co_moments(fuzz_file("m.safetensors", input), "");
  const std::filesystem::path first = fuzz_file("first.safetensors", "");
  save_all(first, saved);
  const std::filesystem::path second = fuzz_file("second.safetensors", "");
  save_all(second, load_co_moments(first, saved.settings_hash));
  must_hold(read_bytes(first) == read_bytes(second), "other co-moments once written");
}

std::vector<std::string> co_moments_seeds() {
  const CoMoments moments(CoMomentState{.rows = 3,
                                        .weight = 3,
                                        .precision = GramPrecision::exact,
                                        .mean_x = {1, 2},
                                        .mean_y = {0.5},
                                        .xx = {2, 1, 1, 2},
                                        .xy = {1, 0.5},
                                        .yy = {1}});
  SavedCoMoments saved{"settings", {}};
  saved.layers.emplace(0, moments);
  saved.layers.emplace(12, moments);
  const std::filesystem::path path = fuzz_file("seed.safetensors", "");
  save_all(path, saved);
  return {read_bytes(path)};
}

const FuzzRegistration co_moments_target({.name = "co_moments",
                                          .read = read_co_moments,
                                          .seeds = co_moments_seeds});

}  // namespace
