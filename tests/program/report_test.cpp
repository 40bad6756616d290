// study report as a user runs it.
#include "report/planted_results.hpp"
#include "study_process.hpp"

TEST_CASE("study report writes both pages of a folder of results and says what was found") {
  const wanamaker_test::TemporaryFolder folder;
  const wanamaker::ModelResults model = wanamaker_test::planted_model(3);
  for (const auto& [command, json] : model.results) {
    wanamaker_test::write_bytes(folder / (command + ".json"), json.dump());
  }
  const wanamaker_test::Outcome outcome = wanamaker_test::run_study(
      "report " + wanamaker_test::quoted(folder.path()), folder / "printed");
  CHECK(outcome.code == 0);
  CHECK(outcome.errors.empty());
  const std::string printed = wanamaker_test::read_bytes(folder / "printed");
  CHECK(printed.find("a median of +1.00 %") != std::string::npos);
  CHECK(printed.find("report.html") != std::string::npos);
  CHECK(wanamaker_test::read_bytes(folder / "report.html").starts_with("<!DOCTYPE html>"));
  CHECK(wanamaker_test::read_bytes(folder / "report.md").starts_with("# "));
}

TEST_CASE("study report refuses folders without results, and results that are none") {
  const wanamaker_test::TemporaryFolder folder;
  const std::string run = "report " + wanamaker_test::quoted(folder.path());
  wanamaker_test::check_refused(wanamaker_test::run_study(run), {"report/no-results", "study all"});
  wanamaker_test::write_bytes(folder / "sweep.json", R"({"schema": "other/1"})");
  wanamaker_test::check_refused(wanamaker_test::run_study(run), {"report/schema", "sweep.json"});
  wanamaker_test::write_bytes(folder / "sweep.json",
                              R"({"schema": "wanamaker/1", "layers": [{"layer": "x"}]})");
  wanamaker_test::check_refused(wanamaker_test::run_study(run),
                                {"report/bad-value", "/layers/0/layer"});
}

TEST_CASE("study compare shows equal results, and refuses others unless asked") {
  const wanamaker_test::TemporaryFolder folder;
  wanamaker::Json sweep = wanamaker_test::planted_model(3).results.at("sweep");
  wanamaker_test::write_bytes(folder / "a.json", sweep.dump());
  sweep["protocol"]["window"] = 128;
  wanamaker_test::write_bytes(folder / "b.json", sweep.dump());
  const std::string a = wanamaker_test::quoted(folder / "a.json");
  const std::string b = wanamaker_test::quoted(folder / "b.json");
  const std::string out = " --out " + wanamaker_test::quoted(folder.path());
  CHECK(wanamaker_test::run_study("compare " + a + " " + a + out).code == 0);
  CHECK(std::filesystem::exists(folder / "compare.json"));
  wanamaker_test::check_refused(wanamaker_test::run_study("compare " + a + " " + b + out),
                                {"compare/protocols-differ", "window 256 against 128", "--anyway"});
  const std::filesystem::path printed = folder / "printed";
  CHECK(wanamaker_test::run_study("compare --anyway " + a + " " + b + out, printed).code == 0);
  CHECK(wanamaker_test::read_bytes(printed).find("NOT COMPARABLE") != std::string::npos);
}
