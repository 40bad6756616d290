// Tokenizers on the WikiText test file: bytes of text per second on one thread, decoding, and load
// time.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "wanamaker/core/random.hpp"
#include "wanamaker/text/tokenizer.hpp"

namespace {

namespace fs = std::filesystem;
using wanamaker::TokenId;
using wanamaker::Tokenizer;

/// A path in the shared data, or nothing and a skipped benchmark.
std::optional<fs::path> shared_data(const std::string& part, benchmark::State& state) {
#ifdef WANAMAKER_SHARED_DATA
  const fs::path path = fs::path(WANAMAKER_SHARED_DATA) / part;
  if (fs::exists(path)) return path;
#endif
  state.SkipWithError(("shared data '" + part + "' is not here").c_str());
  return std::nullopt;
}

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void count_text(benchmark::State& state, const std::string& text) {
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}

void encode_wikitext(benchmark::State& state, const std::string& name) {
  const auto folder = shared_data("tokenizers/" + name, state);
  const auto path = shared_data("wikitext/wiki.test.raw", state);
  if (!folder || !path) return;
  const Tokenizer tokenizer = Tokenizer::from_folder(*folder);
  const std::string text = read_text(*path);
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.encode(text));
  count_text(state, text);
}

/// Words that no vocabulary has: all the work is merging.
void encode_random_letters(benchmark::State& state) {
  const auto folder = shared_data("tokenizers/gpt2", state);
  if (!folder) return;
  const Tokenizer tokenizer = Tokenizer::from_folder(*folder);
  wanamaker::RandomStream random(1);
  std::string text;
  for (std::int64_t i = 0; i < (1 << 18); ++i) {
    const bool ends = i % (state.range(0) + 1) == state.range(0);
    text += ends ? ' ' : static_cast<char>('a' + random.below(26));
  }
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.encode(text));
  count_text(state, text);
}

void decode_wikitext(benchmark::State& state) {
  const auto folder = shared_data("tokenizers/gpt2", state);
  const auto path = shared_data("wikitext/wiki.test.raw", state);
  if (!folder || !path) return;
  const Tokenizer tokenizer = Tokenizer::from_folder(*folder);
  const std::string text = read_text(*path);
  const std::vector<TokenId> ids = tokenizer.encode(text);
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.decode(ids));
  count_text(state, text);
}

void load_json(benchmark::State& state) {
  const auto folder = shared_data("tokenizers/gpt2", state);
  if (!folder) return;
  for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::from_folder(*folder));
}

BENCHMARK_CAPTURE(encode_wikitext, gpt2, "gpt2")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode_wikitext, neox, "neox")->Unit(benchmark::kMillisecond);
BENCHMARK(encode_random_letters)
    ->ArgName("letters")
    ->Arg(8)
    ->Arg(40)
    ->Arg(1000)
    ->Arg(1 << 18)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(decode_wikitext)->Unit(benchmark::kMillisecond);
BENCHMARK(load_json)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
