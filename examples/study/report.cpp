#include <iostream>

#include "commands.hpp"
#include "wanamaker/io/atomic_file.hpp"
#include "wanamaker/report/result_comparison.hpp"
#include "wanamaker/report/side_by_side.hpp"
#include "wanamaker/report/study_report.hpp"

namespace study {

void write_report(const std::filesystem::path& folder) {
  const auto models = wanamaker::read_result_folder(folder);
  const wanamaker::ReportDocument report = wanamaker::study_report(models);
  wanamaker::write_atomically(folder / "report.html", wanamaker::html_page(report));
  wanamaker::write_atomically(folder / "report.md", wanamaker::markdown_page(report));
  for (const std::string& sentence : wanamaker::overview_sentences(models)) {
    std::cout << "\n";
    for (const std::string& line : wanamaker::wrapped(wanamaker::terminal_text(sentence), 79)) {
      std::cout << line << "\n";
    }
  }
  std::cout << "\nAll of it with pictures is in " << (folder / "report.html").string()
            << " (open it in a browser) and report.md.\n";
}

void run_report(const Options& options) {
  write_report(options.out);
}

namespace {

void print_comparison(const wanamaker::ModelComparison& c) {
  const auto line = [](const char* side, const wanamaker::ComparedModel& model) {
    std::cout << side << ": " << wanamaker::terminal_text(model.name) << " in " << model.source
              << (model.is_published ? " (published)" : "") << "\n";
  };
  std::cout << "\n";
  line("A", c.a);
  line("B", c.b);
  for (const std::string& difference : c.differences) {
    std::cout << "NOT COMPARABLE: " << wanamaker::terminal_text(difference) << "\n";
  }
  std::cout << "\n" << wanamaker::terminal_text(wanamaker::comparison_table(c).aligned());
  std::cout << c.only_a << " figures are in A only, " << c.only_b << " in B only.\n";
}

}  // namespace

void run_compare(const Options& options) {
  const auto a = wanamaker::read_compared(options.compared.at(0));
  const auto b = wanamaker::read_compared(options.compared.at(1));
  const auto comparisons = wanamaker::compare_results(a, b, options.anyway);
  for (const wanamaker::ModelComparison& c : comparisons) print_comparison(c);
  make_folder(options.out);
  wanamaker::write_json(options.out / "compare.json", wanamaker::json_of(comparisons));
}

}  // namespace study
