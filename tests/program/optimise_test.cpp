// `study optimise` as a user runs it, on a small model that comes with the program.
#include <filesystem>
#include <string>

#include "program/study_process.hpp"
#include "report/json_schema.hpp"
#include "wanamaker/io/json.hpp"

namespace {

namespace fs = std::filesystem;
using namespace wanamaker_test;

#ifdef WANAMAKER_STUDY

std::string optimise_command(const fs::path& out, const std::string& more) {
  const fs::path data = WANAMAKER_EXAMPLES_DATA;
  return "optimise --quiet --threads 1 --model " + quoted(data / "models" / "books-gpt2") +
         " --text " + quoted(data / "narrative.txt") + " --out " + quoted(out) +
         " --fit-tokens 600 --gate-tokens 300 --select-tokens 300 --report-tokens 300 "
         "--truncate 40 --window 40 --rho 1e-3 --rank 16 --resamples 100 --layers 3-4 " +
         more;
}

wanamaker::Json valid_result(const fs::path& path) {
  const wanamaker::Json result = wanamaker::parse_json_file(path);
  const JsonSchema schema(
      wanamaker::parse_json_file(std::string(WANAMAKER_SOURCE_DIR) + "/docs/results.schema.json"));
  CHECK(schema.fault(result) == "");
  return result;
}

// What a run must give again, byte for byte.
void check_same_files(const fs::path& a, const fs::path& b) {
  for (const char* name : {"optimise.json", "optimise.csv", "optimise.svg"}) {
    CAPTURE(std::string(name));
    CHECK(read_bytes(a / name) == read_bytes(b / name));
    CHECK_FALSE(read_bytes(a / name).empty());
  }
}

#endif

}  // namespace

TEST_CASE("a search by recorded costs is repeated byte for byte, and what it chose is verified") {
#ifdef WANAMAKER_STUDY
  const TemporaryFolder folder;
  const fs::path costs = folder / "costs.json";
  // Gates are cheapest here, whatever this machine says.
  write_bytes(costs,
              R"({"for": "decode", "batch": 1, "layers": 6, "width": 192, "tokens": 1,
                  "repetitions": 1, "parts": {"rest": 5, "block": 9, "mlp": 6, "affine": 7,
                  "rank-16": 8, "gate-0.5": 2}})");
  const std::string options = "--shares 0.5 --max-loss 30% --beyond 1 --costs " + quoted(costs);
  const Outcome first = run_study(optimise_command(folder / "a", options), folder / "printed");
  INFO(first.errors);
  REQUIRE(first.code == 0);
  const wanamaker::Json result = valid_result(folder / "a/optimise.json");
  const wanamaker::Json& path = result.at("paths").at(0);
  CHECK(path.at("name") == "policies");
  REQUIRE(path.at("chosen").is_number());
  CHECK(path.at("points").at(0).at("cost") == 5 + 6 * 9 - 4);
  CHECK(result.at("exported").at("has_gates") == true);
  CHECK(read_bytes(folder / "printed").starts_with("books-gpt2, decode, batch 1: "));
  CHECK(run_study("verify --threads 1 " + quoted(folder / "a/model")).code == 0);
  // The table that was used is in the times file, from which the run can be repeated.
  const std::string again =
      "--shares 0.5 --max-loss 30 --beyond 1 --costs " + quoted(folder / "a/optimise.times.json");
  REQUIRE(run_study(optimise_command(folder / "b", again)).code == 0);
  check_same_files(folder / "a", folder / "b");
#endif
}

TEST_CASE("parameters are counted, the chosen model heals, and stock runtimes load it") {
#ifdef WANAMAKER_STUDY
  const TemporaryFolder folder;
  const Outcome outcome =
      run_study(optimise_command(folder / "out",
                                 "--for parameters --max-loss 1000 --beyond 0 --heal-tokens 1100"),
                folder / "printed");
  INFO(outcome.errors);
  REQUIRE(outcome.code == 0);
  const wanamaker::Json result = valid_result(folder / "out/optimise.json");
  REQUIRE(result.at("paths").at(0).at("chosen").is_number());
  CHECK(result.at("exported").at("has_gates") == false);
  CHECK(result.at("healed").at("steps") == 2);  // of 4 windows of 128 tokens
  CHECK(read_bytes(folder / "printed").find("Healed on 1024 tokens") != std::string::npos);
  CHECK(run_study("verify --threads 1 " + quoted(folder / "out/model")).code == 0);
#endif
}

TEST_CASE("a search that cannot be is refused") {
#ifdef WANAMAKER_STUDY
  const TemporaryFolder folder;
  const auto code_of = [&](const std::string& more) {
    return run_study(optimise_command(folder / "out", more)).code;
  };
  CHECK(code_of("--for speed") == 2);
  CHECK(code_of("--bacth 2") == 2);
  CHECK(code_of("--batch 0") == 2);
  check_refused(run_study(optimise_command(folder / "out", "--shares 0.5,1")),
                {"optimise/options"});
  const fs::path costs = folder / "costs.json";
  write_bytes(costs, R"({"costs": {"for": "sleep"}})");
  check_refused(run_study(optimise_command(folder / "out", "--costs " + quoted(costs))),
                {"costs.json", "result/bad-value"});
  write_bytes(costs, R"({"for": "prefill", "batch": 1, "layers": 6, "width": 192, "tokens": 1,
                         "repetitions": 1, "parts": {}})");
  check_refused(run_study(optimise_command(folder / "out", "--costs " + quoted(costs))),
                {"optimise/other-costs"});
  CHECK_FALSE(fs::exists(folder / "out/optimise.json"));
#endif
}
