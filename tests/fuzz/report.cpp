// A file of results, whatever it says, gives a report without markup of its own, or an error.
#include "fuzz/fuzzing.hpp"
#include "report/planted_results.hpp"
#include "wanamaker/report/study_report.hpp"

namespace {

using namespace wanamaker;
using namespace wanamaker_test;

bool is_command(const std::string& name) {
  return std::count(result_commands.begin(), result_commands.end(), name) == 1;
}

/// The first line of an input names the command whose file the rest is.
void read_results(std::string_view input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  const std::string command(input.substr(0, end));
  if (!is_command(command)) return;
  const std::filesystem::path file =
      fuzz_file(command + ".json", input.substr(std::min(end + 1, input.size())));
  ModelResults model;
  model.name = "m";
  const Json result = detail::read_result(file);
  std::filesystem::remove(file);
  model.results.emplace(command, result);
  const ReportDocument report = study_report({model});
  const std::string html = html_page(report);
  must_hold(html.find("<script") == html.npos && html.find("<img") == html.npos,
            "markup from a result file in the page");
  must_hold(!first_invalid_utf8(html) && !first_invalid_utf8(markdown_page(report)),
            "a page that is no UTF-8");
}

std::vector<std::string> report_seeds() {
  std::vector<std::string> seeds;
  for (const auto& [command, result] : planted_model(1).results) {
    seeds.push_back(command + "\n" + result.dump());
  }
  Json marked = planted_sweep({PlantedLayer{}});
  marked["model"]["name"] = "<script>alert(1)</script>&\"'<img>";
  seeds.push_back("sweep\n" + marked.dump());
  return seeds;
}

const FuzzRegistration report_target({.name = "report",
                                      .read = read_results,
                                      .seeds = report_seeds,
                                      .bounds = {.memory_factor = 256,
                                                 .memory_beside = std::size_t{16} << 20}});

}  // namespace
