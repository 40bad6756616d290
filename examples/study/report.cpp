#include <iostream>

#include "commands.hpp"
#include "wanamaker/io/atomic_file.hpp"
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

}  // namespace study
