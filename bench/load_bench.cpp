// From a model folder (safetensors in F32, F16 and BF16, read from the page cache) to a model in
// memory: bytes of weights file per second, beside copying as many bytes within memory. The model
// has GPT-2's widths, four layers and random weights.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/core/half.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/io/safetensors_writer.hpp"

namespace {

namespace fs = std::filesystem;
using namespace wanamaker;

constexpr Index width = 768;
constexpr Index vocabulary = 8192;
constexpr Index positions = 1024;
constexpr Index layers = 4;

template <class T>
struct RandomTensors {
  std::list<std::vector<T>> values;  // the tensors point into them
  std::vector<TensorToWrite> tensors;
  RandomStream random{1};

  void add(const std::string& name, const Shape& shape) {
    std::vector<T> own(static_cast<std::size_t>(element_count(shape).value()));
    for (T& value : own) value = T(static_cast<float>(0.04 * (random.uniform() - 0.5)));
    values.push_back(std::move(own));
    tensors.push_back(tensor_to_write<T>(name, values.back(), shape));
  }
  void add_linear(const std::string& name, Index inputs, Index outputs) {
    add(name + ".weight", {inputs, outputs});
    add(name + ".bias", {outputs});
  }
  void add_norm(const std::string& name) {
    add(name + ".weight", {width});
    add(name + ".bias", {width});
  }
};

template <class T>
void write_model(const fs::path& folder) {
  RandomTensors<T> model;
  model.add("wte.weight", {vocabulary, width});
  model.add("wpe.weight", {positions, width});
  model.add_norm("ln_f");
  for (Index l = 0; l < layers; ++l) {
    const std::string at = "h." + std::to_string(l) + ".";
    model.add_norm(at + "ln_1");
    model.add_norm(at + "ln_2");
    model.add_linear(at + "attn.c_attn", width, 3 * width);
    model.add_linear(at + "attn.c_proj", width, width);
    model.add_linear(at + "mlp.c_fc", width, 4 * width);
    model.add_linear(at + "mlp.c_proj", 4 * width, width);
  }
  write_safetensors(folder / "model.safetensors", model.tensors);
  std::ofstream(folder / "config.json")
      << R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 4, )"
      << R"("n_positions": 1024, "vocab_size": 8192, "activation_function": "gelu_new"})";
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "wanamaker-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Weights stored as T, computed with in float.
template <class T>
void load(benchmark::State& state) {
  const TemporaryFolder folder;
  write_model<T>(folder.path());
  EigenBackend<float> backend;
  for (auto _ : state) benchmark::DoNotOptimize(load_model(backend, folder.path()));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(fs::file_size(
                                                   folder.path() / "model.safetensors")));
}

void copy_in_memory(benchmark::State& state) {
  const std::vector<char> from(std::size_t{144} << 20, 'x');
  for (auto _ : state) {
    std::vector<char> to(from.begin(), from.end());
    benchmark::DoNotOptimize(to.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(from.size()));
}

BENCHMARK(load<float>)->Unit(benchmark::kMillisecond);
BENCHMARK(load<half>)->Unit(benchmark::kMillisecond);
BENCHMARK(load<bfloat16>)->Unit(benchmark::kMillisecond);
BENCHMARK(copy_in_memory)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
