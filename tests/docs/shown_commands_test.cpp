// Every `study …` that the documentation shows is a command of the program with options that it
// has, by docs/command-line.md, which a test holds to the program.
#include <cstddef>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "docs/pages.hpp"
#include "testing.hpp"

namespace {

using namespace wanamaker_test;

/// What `study COMMAND --help` prints, by command.
std::map<std::string, Snippet> helps() {
  const Page page = page_of(source_dir / "docs" / "command-line.md");
  const std::vector<std::string> headings = headings_of(page, 2);
  std::map<std::string, Snippet> found;
  for (std::size_t i = 0; i < headings.size() && i < page.snippets.size(); ++i) {
    found[headings[i].substr(headings[i].find(' ') + 1)] = page.snippets[i];
  }
  return found;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// What is wrong with a command line; empty where nothing is, or it is no command of the program.
std::string fault_of_command(const std::string& line, const std::map<std::string, Snippet>& helps) {
  const std::vector<std::string> words = words_of(line.substr(0, line.find(" #")));
  if (words.size() < 2 || words[0] != "study") return "";
  if (words[1].find_first_not_of("abcdefghijklmnopqrstuvwxyz-") != std::string::npos) return "";
  if (words[1][0] == '-') return "";
  const auto help = helps.find(words[1]);
  if (help == helps.end()) return "no command " + words[1];
  for (std::size_t i = 2; i < words.size(); ++i) {
    std::string option = words[i][0] == '[' ? words[i].substr(1) : words[i];
    option = option.substr(0, option.find_first_of("=]"));
    if (option.rfind("--", 0) != 0 || option == "--help") continue;
    if (!help->second.contains("  " + option + " ")) return words[1] + " has no " + option;
  }
  return "";
}

/// Lines of a page that may be commands: those of sh fences, indented ones, and code in the prose.
std::vector<std::string> shown_by(const Page& page) {
  std::vector<std::string> lines;
  for (const Snippet& snippet : page.snippets) {
    if (snippet.fence.rfind("```sh", 0) != 0) continue;
    lines.insert(lines.end(), snippet.lines.begin(), snippet.lines.end());
  }
  for (const std::string& line : page.prose) {
    if (line.rfind("    ", 0) == 0) lines.push_back(line);
    for (const std::string& span : code_spans_of(line)) lines.push_back(span);
  }
  return lines;
}

}  // namespace

TEST_CASE("every command that the documentation shows is one of the program's") {
  const std::map<std::string, Snippet> known = helps();
  REQUIRE(known.size() > 20);
  std::size_t seen = 0;
  for (const std::filesystem::path& path : pages()) {
    CAPTURE(path.string());
    for (const std::string& line : shown_by(page_of(path))) {
      CHECK(fault_of_command(line, known) == "");
      if (words_of(line).size() > 1 && words_of(line)[0] == "study") ++seen;
    }
  }
  CHECK(seen > 40);
}

TEST_CASE("commands that the program does not have are recognised") {
  const std::map<std::string, Snippet> known = helps();
  CHECK(fault_of_command("study sweep --layers 3 --ladder=quick  # a look", known) == "");
  CHECK(fault_of_command("study COMMAND --nonsense", known) == "");
  CHECK(fault_of_command("study sweeps --layers 3", known) == "no command sweeps");
  CHECK(fault_of_command("study report out --layers 3", known) == "report has no --layers");
  CHECK(fault_of_command("study perplexity --bo", known) == "perplexity has no --bo");
}
