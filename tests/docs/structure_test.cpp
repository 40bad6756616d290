// The documentation has its fixed order: the index, the sections of pages of one kind, links that
// lead somewhere; README shows commands that are run.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "docs/pages.hpp"
#include "testing.hpp"

namespace {

namespace fs = std::filesystem;
using namespace wanamaker_test;

using Names = std::vector<std::string>;

// The order in which the index lists the pages of docs/.
const Names page_order = {"getting-started.md",
                          "ideas/block.md",
                          "ideas/ridge.md",
                          "ideas/gate.md",
                          "ideas/decomposition.md",
                          "ideas/marginal-delta.md",
                          "policies/backend.md",
                          "policies/mlp.md",
                          "policies/gate.md",
                          "policies/surrogate.md",
                          "policies/observer.md",
                          "protocol.md",
                          "statistics.md",
                          "command-line.md",
                          "results.md",
                          "report.md",
                          "errors.md",
                          "configuration.md",
                          "concurrency.md",
                          "pitfalls.md",
                          "faq.md",
                          "benchmarks.md",
                          "surrogates.md",
                          "gates.md",
                          "residual.md",
                          "routing-decision.md",
                          "training.md",
                          "optimise.md",
                          "scale.md",
                          "generation.md",
                          "formats.md",
                          "security.md",
                          "published-models.md",
                          "embedding.md",
                          "design.md",
                          "changelog.md"};

const Names idea_sections = {"Formula", "Naive code", "Production code", "What is cached and why"};
const Names policy_sections = {"Requirements", "Laws", "Smallest example", "Who implements it"};

struct Link {
  std::string path;    ///< as written, without its anchor
  std::string anchor;  ///< without #
};

/// The line without what stands between backticks.
std::string without_code(const std::string& line) {
  std::string rest;
  bool inside = false;
  for (const char c : line) {
    if (c == '`') inside = !inside;
    if (!inside && c != '`') rest += c;
  }
  return rest;
}

/// Relative links [text](path#anchor) of the prose.
std::vector<Link> links_of(const Names& prose) {
  std::vector<Link> links;
  for (const std::string& raw : prose) {
    const std::string line = without_code(raw);
    for (std::size_t at = line.find("]("); at != std::string::npos; at = line.find("](", at + 1)) {
      const std::string target = line.substr(at + 2, line.find(')', at) - at - 2);
      if (target.find("://") != std::string::npos) continue;
      const std::size_t hash = target.find('#');
      links.push_back({target.substr(0, hash),
                       hash == std::string::npos ? std::string() : target.substr(hash + 1)});
    }
  }
  return links;
}

/// The anchor that a heading gets where Markdown is shown: small letters, hyphens for spaces, no
/// punctuation. Three-byte characters of UTF-8 that begin with E2 are dashes, quotes and signs.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (std::size_t i = 0; i < heading.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(heading[i]);
    if (c == 0xE2) {
      i += 2;
    } else if (c >= 0x80 || std::isalnum(c) != 0 || c == '-' || c == '_') {
      anchor += c < 0x80 ? static_cast<char>(std::tolower(c)) : heading[i];
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

std::set<std::string> anchors_of(const fs::path& path) {
  const Page page = page_of(path);
  std::set<std::string> anchors;
  for (std::size_t level = 1; level <= 4; ++level) {
    for (const std::string& heading : headings_of(page, level)) anchors.insert(anchor_of(heading));
  }
  return anchors;
}

/// What is wrong with a link of a page; empty where nothing is.
std::string fault_of_link(const fs::path& page, const Link& link) {
  const fs::path target = link.path.empty() ? page : page.parent_path() / link.path;
  if (!fs::exists(target)) return link.path + " does not exist";
  if (link.anchor.empty()) return "";
  return anchors_of(target).count(link.anchor) == 1 ? "" : link.path + " has no #" + link.anchor;
}

Names first_of(Names names, std::size_t n) {
  names.resize(std::min(n, names.size()));
  return names;
}

/// Commands of README: the lines of its sh fences, and what it says in backticks that begins with a
/// path of a script.
std::set<std::string> readme_commands() {
  const Page page = page_of(source_dir / "README.md");
  std::set<std::string> commands;
  for (const Snippet& snippet : page.snippets) {
    if (snippet.fence.rfind("```sh", 0) != 0) continue;
    for (const std::string& line : snippet.lines) {
      const std::string command = line.substr(0, line.find(" #"));
      commands.insert(command.substr(0, command.find_last_not_of(' ') + 1));
    }
  }
  for (const std::string& line : page.prose) {
    for (const std::string& span : code_spans_of(line)) {
      if (span.rfind("cmake/", 0) == 0) commands.insert(span);
    }
  }
  return commands;
}

// Where each of them is run; study-real, which needs a network, by hand: what it brings is then
// tested.
const std::map<std::string, std::string> run_by = {
    {"cmake/bootstrap.sh study", "tests/docs/CMakeLists.txt: docs/first_report"},
    {"cmake/bootstrap.sh test", ".ci/run: bootstrap.sh\" test"},
    {"cmake/bootstrap.sh study-real", "tests/program/real_model_test.cpp: study-real"}};

std::set<std::string> keys_of(const std::map<std::string, std::string>& map) {
  std::set<std::string> keys;
  for (const auto& [key, value] : map) keys.insert(key);
  return keys;
}

/// Commands of README's table: the first cells of its rows.
std::set<std::string> commands_in_table() {
  std::set<std::string> commands;
  for (const std::string& line : page_of(source_dir / "README.md").prose) {
    if (line.rfind("| `", 0) != 0) continue;
    for (const std::string& name : code_spans_of(line.substr(0, line.find(" | ")))) {
      commands.insert(name);
    }
  }
  return commands;
}

/// Names of classes that stand at the beginning of a line outside of namespaces for details.
std::set<std::string> public_classes(const Names& lines) {
  std::set<std::string> names;
  bool in_details = false;
  for (const std::string& line : lines) {
    if (line.rfind("namespace wanamaker::inline WANAMAKER_ABI::detail", 0) == 0) return {};
    if (line.rfind("namespace detail {", 0) == 0) in_details = true;
    if (line == "}  // namespace detail") in_details = false;
    const bool declares = line.rfind("class ", 0) == 0 && !line.ends_with(';');
    if (declares && !in_details) names.insert(line.substr(6, line.find_first_of(" :{", 6) - 6));
  }
  return names;
}

}  // namespace

TEST_CASE("the page on concurrency says of every public class how threads may use it") {
  std::set<std::string> headers, page;
  for (const auto& entry : fs::recursive_directory_iterator(source_dir / "include")) {
    if (entry.path().extension() != ".hpp") continue;
    headers.merge(public_classes(lines_of(entry.path())));
  }
  CHECK(headers.size() > 100);
  for (const std::string& line : page_of(source_dir / "docs" / "concurrency.md").prose) {
    if (line.rfind("| ", 0) != 0) continue;
    for (const std::string& name : code_spans_of(line)) {
      CAPTURE(name);
      CHECK((page.insert(name).second && headers.count(name) == 1));
    }
  }
  for (const std::string& name : headers) {
    CAPTURE(name);
    CHECK(page.count(name) == 1);
  }
}

TEST_CASE("the index lists every page of docs/ in the fixed order") {
  Names listed;
  for (const Link& link : links_of(page_of(source_dir / "docs" / "README.md").prose)) {
    if (link.path.ends_with(".md")) listed.push_back(link.path);
  }
  CHECK(listed == page_order);
  std::set<std::string> files;
  for (const fs::path& page : pages()) {
    if (page.filename() == "README.md") continue;
    files.insert(fs::relative(page, source_dir / "docs").string());
  }
  CHECK(files == std::set<std::string>(page_order.begin(), page_order.end()));
}

TEST_CASE("pages of one kind have their sections in one order") {
  std::size_t ideas = 0, policies = 0;
  for (const std::string& name : page_order) {
    const bool is_idea = name.rfind("ideas/", 0) == 0;
    const bool is_policy = name.rfind("policies/", 0) == 0;
    if (!is_idea && !is_policy) continue;
    ++(is_idea ? ideas : policies);
    CAPTURE(name);
    const Names sections = headings_of(page_of(source_dir / "docs" / name), 2);
    if (is_idea) CHECK(sections == idea_sections);
    if (is_policy) CHECK(first_of(sections, policy_sections.size()) == policy_sections);
  }
  CHECK(ideas == 5);
  CHECK(policies == 5);
}

TEST_CASE("every page begins with one title") {
  for (const fs::path& page : pages()) {
    CAPTURE(page.string());
    CHECK(headings_of(page_of(page), 1).size() == 1);
    CHECK(lines_of(page).front().rfind("# ", 0) == 0);
  }
}

TEST_CASE("relative links and their anchors lead somewhere") {
  std::size_t seen = 0, anchored = 0;
  std::vector<fs::path> all = pages();
  all.push_back(source_dir / "bench" / "README.md");
  for (const fs::path& page : all) {
    CAPTURE(page.string());
    for (const Link& link : links_of(page_of(page).prose)) {
      ++seen;
      if (!link.anchor.empty()) ++anchored;
      CHECK(fault_of_link(page, link) == "");
    }
  }
  CHECK(seen > 100);
  CHECK(anchored > 20);
}

TEST_CASE("dead links are recognised") {
  const fs::path page = source_dir / "docs" / "statistics.md";
  const auto faults = [&](const std::string& line) {
    std::string all;
    for (const Link& link : links_of({line})) all += fault_of_link(page, link) + ";";
    return all;
  };
  CHECK(faults("[a](gates.md), [b](policies/gate.md#laws) and `[c](nowhere.md)`") == ";;");
  CHECK(faults("[a](nowhere.md)") == "nowhere.md does not exist;");
  CHECK(faults("[a](gates.md#nothing)") == "gates.md has no #nothing;");
  CHECK(faults("[a](#a-gates-score) [b](https://example.org/x)") == ";");
  CHECK(anchor_of("Bootstrap over documents: 40 documents and more") ==
        "bootstrap-over-documents-40-documents-and-more");
  CHECK(anchor_of("Marginal δ – what’s `it`?") == "marginal-δ--whats-it");
}

TEST_CASE("every command that README shows is run by a test, or is part of one") {
  CHECK(readme_commands() == keys_of(run_by));
  for (const auto& entry : run_by) {
    CAPTURE(entry.first);
    const std::size_t colon = entry.second.find(": ");
    const std::string text = read_bytes(source_dir / entry.second.substr(0, colon));
    CHECK(text.find(entry.second.substr(colon + 2)) != std::string::npos);
  }
}

TEST_CASE("README and the command-line reference have the same commands") {
  std::set<std::string> sections;
  for (const std::string& heading :
       headings_of(page_of(source_dir / "docs" / "command-line.md"), 2)) {
    if (heading != "study") sections.insert(heading.substr(heading.find(' ') + 1));
  }
  CHECK(sections.size() > 20);
  CHECK(commands_in_table() == sections);
}
