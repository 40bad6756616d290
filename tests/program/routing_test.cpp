// The experiments on the routing decision, run as a user runs them.
#include <filesystem>
#include <string>

#include "program/study_process.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/io/json.hpp"

namespace {

namespace fs = std::filesystem;
using namespace wanamaker_test;

#ifdef WANAMAKER_STUDY

const std::string few_tokens =
    " --quiet --threads 1 --fit-tokens 1000 --gate-tokens 800 --select-tokens 400 --report-tokens "
    "600"
    " --truncate 60 --rho 1e-3 --layers 4 ";

std::string on_small_model(const std::string& command, const fs::path& out,
                           const std::vector<fs::path>& texts) {
  const fs::path model = fs::path(WANAMAKER_EXAMPLES_DATA) / "models/books-gpt2";
  std::string line = command + few_tokens + "--model " + quoted(model) + " --out " + quoted(out);
  for (const fs::path& text : texts) line += " --text " + quoted(text);
  return line;
}

fs::path embedded(const char* text) {
  return fs::path(WANAMAKER_EXAMPLES_DATA) / text;
}

/// Documents of ids that follow no rule.
fs::path write_ready_ids(const fs::path& file) {
  wanamaker::RandomStream random(11);
  std::string lines;
  for (int document = 0; document < 60; ++document) {
    lines += "{\"ids\": [";
    for (int i = 0; i < 60; ++i) {
      lines += (i > 0 ? "," : "") + std::to_string(1 + random.below(400));
    }
    lines += "]}\n";
  }
  write_bytes(file, lines);
  return file;
}

#endif

}  // namespace

TEST_CASE("transfer takes each text as a corpus, and halves of the only one") {
#ifdef WANAMAKER_STUDY
  const TemporaryFolder folder;
  const fs::path one = folder / "one", two = folder / "two", shown = folder / "shown";
  const std::string few = " --resamples 100";
  REQUIRE(run_study(on_small_model("transfer", one, {embedded("narrative.txt")}) + few).code == 0);
  const wanamaker::Json alone = wanamaker::parse_json_file(one / "transfer.json");
  CHECK(alone.at("corpora") == wanamaker::Json{"narrative"});
  CHECK(alone.at("layers").at(0).at("pairs").size() == 2);

  REQUIRE(run_study(on_small_model("transfer", two,
                                   {embedded("narrative.txt"), embedded("technical.txt")}) +
                        few,
                    shown)
              .code == 0);
  const wanamaker::Json both = wanamaker::parse_json_file(two / "transfer.json");
  CHECK(both.at("corpora") == wanamaker::Json{"narrative", "technical"});
  CHECK(both.at("layers").at(0).at("pairs").size() == 6);
  const std::string text = read_bytes(shown);
  CHECK(text.find("technical") != std::string::npos);
  CHECK(text.find("told from unrelated ones") != std::string::npos);
  CHECK(read_bytes(two / "transfer.svg").starts_with("<svg"));
#else
  MESSAGE("skipped: the study program is not built");
#endif
}

TEST_CASE("ready ids have no spellings, and the experiments do without") {
#ifdef WANAMAKER_STUDY
  const TemporaryFolder folder;
  const fs::path ids = write_ready_ids(folder / "ids.jsonl");
  const Outcome clusters =
      run_study(on_small_model("clusters", folder / "out", {ids}) + " --clusters 4");
  INFO(clusters.errors);
  REQUIRE(clusters.code == 0);
  CHECK(read_bytes(folder / "out/clusters.csv").find(",#") != std::string::npos);
  const Outcome features = run_study(on_small_model("features", folder / "out", {ids}) +
                                     " --folds 3 --rounds 3 --resamples 100");
  INFO(features.errors);
  REQUIRE(features.code == 0);
  const wanamaker::Json layer =
      wanamaker::parse_json_file(folder / "out/features.json").at("layers").at(0);
  CHECK(layer.at("features").dump().find("input/log-frequency") != std::string::npos);
  CHECK(layer.at("features").dump().find("function-word") == std::string::npos);
#else
  MESSAGE("skipped: the study program is not built");
#endif
}

TEST_CASE("a text to read: colours stay away from files, and the page is written") {
#ifdef WANAMAKER_STUDY
  const TemporaryFolder folder;
  const fs::path out = folder / "out", shown = folder / "shown";
  const Outcome outcome = run_study(
      on_small_model("forensics", out, {embedded("narrative.txt")}) + " --positions 30", shown);
  INFO(outcome.errors);
  REQUIRE(outcome.code == 0);
  const std::string text = read_bytes(shown);
  CHECK(text.find('\x1b') == text.npos);
  CHECK(text.find("layer 4: ") != text.npos);
  CHECK(read_bytes(out / "forensics.html").starts_with("<!DOCTYPE html>"));
  const wanamaker::Json result = wanamaker::parse_json_file(out / "forensics.json");
  CHECK(result.at("passages").at(0).at("tokens").size() == 30);
  CHECK(result.at("layers").at(0).at("direction").size() == 192);
#else
  MESSAGE("skipped: the study program is not built");
#endif
}

TEST_CASE("what cannot be measured is refused in one line") {
#ifdef WANAMAKER_STUDY
  const TemporaryFolder folder;
  const fs::path out = folder / "out";
  check_refused(
      run_study(on_small_model("clusters", out, {embedded("narrative.txt")}) + " --clusters 5000"),
      {"stats/clusters"});
  check_refused(
      run_study(on_small_model("features", out, {embedded("narrative.txt")}) + " --folds 1"),
      {"stats/folds"});
  CHECK(run_study("probe --backend reference").code == 2);
#else
  MESSAGE("skipped: the study program is not built");
#endif
}
