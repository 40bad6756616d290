// README keeps its promises to a newcomer, every snippet is one that tests/docs/CMakeLists.txt
// compiles, and docs/errors.md lists exactly the errors that the library throws.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "docs/pages.hpp"
#include "testing.hpp"

namespace {

namespace fs = std::filesystem;
using namespace wanamaker_test;

bool is_id(const std::string& text) {
  const std::size_t slash = text.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < text.size() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-/") == std::string::npos &&
         text.find('/', slash + 1) == std::string::npos;
}

/// The pieces of `text` between pairs of `quote` that look like ids.
void add_ids(const std::string& text, char quote, std::set<std::string>& ids) {
  for (std::size_t open = text.find(quote); open != std::string::npos;) {
    const std::size_t close = text.find(quote, open + 1);
    if (close == std::string::npos) return;
    const std::string piece = text.substr(open + 1, close - open - 1);
    if (is_id(piece)) ids.insert(piece);
    open = text.find(quote, close + 1);
  }
}

/// Ids in the code: any string literal of the form "area/name", comments, includes and the names
/// of file schemas ("wanamaker/1") aside.
std::set<std::string> ids_in_code() {
  std::set<std::string> ids;
  for (const char* folder : {"include", "examples/study"}) {
    for (const auto& entry : fs::recursive_directory_iterator(source_dir / folder)) {
      if (!entry.is_regular_file()) continue;
      for (const std::string& line : lines_of(entry.path())) {
        if (line.find("#include") != std::string::npos) continue;
        if (line.find("\"wanamaker/") != std::string::npos) continue;
        add_ids(line.substr(0, line.find("//")), '"', ids);
      }
    }
  }
  return ids;
}

/// Ids that docs/errors.md lists: the first word in backticks of a table row or heading.
std::set<std::string> ids_in_catalogue() {
  std::set<std::string> ids;
  for (const std::string& line : lines_of(source_dir / "docs" / "errors.md")) {
    const std::size_t open = line.find('`');
    if (open == std::string::npos || line.find_first_not_of("|#*- ") != open) continue;
    add_ids(line.substr(open, line.find('`', open + 1) - open + 1), '`', ids);
  }
  return ids;
}

std::string missing_from(const std::set<std::string>& some, const std::set<std::string>& others) {
  std::string missing;
  for (const std::string& id : some) {
    if (others.count(id) == 0) missing += id + " ";
  }
  return missing;
}

}  // namespace

TEST_CASE("README begins with the two commands and a short complete program") {
  const std::vector<Snippet> snippets = page_of(source_dir / "README.md").snippets;
  REQUIRE(!snippets.empty());
  CHECK(snippets.front().contains("cmake/bootstrap.sh study"));
  CHECK(snippets.front().contains("cmake/bootstrap.sh test"));
  const auto program = std::find_if(snippets.begin(), snippets.end(),
                                    [](const Snippet& s) { return s.contains("int main("); });
  REQUIRE(program != snippets.end());
  CHECK(program->lines.size() <= 15);
  CHECK(program->first_line <= 30);
}

TEST_CASE("README has the quickstart as it is, and names every example; each is short") {
  const std::vector<std::string> lines = lines_of(source_dir / "README.md");
  const std::vector<std::string> program = lines_of(source_dir / "examples/quickstart.cpp");
  CHECK(std::search(lines.begin(), lines.end(), program.begin(), program.end()) != lines.end());
  std::size_t examples = 0;
  for (const auto& entry : fs::directory_iterator(source_dir / "examples")) {
    if (!entry.is_regular_file()) continue;
    const std::string link = "(examples/" + entry.path().filename().string() + ")";
    CAPTURE(link);
    CHECK(std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(link) != std::string::npos;
    }));
    // Those that bring a binding or a backend of their own take more.
    const std::string kind = entry.path().extension().string();
    CHECK(lines_of(entry.path()).size() <= (kind == ".py" ? 85u : kind == ".cu" ? 150u : 60u));
    ++examples;
  }
  CHECK(examples >= 7);
}

TEST_CASE("every C++ snippet is fenced so that it is compiled") {
  for (const fs::path& page : pages()) {
    for (const Snippet& snippet : page_of(page).snippets) {
      CAPTURE(page.string());
      CAPTURE(snippet.first_line);
      CAPTURE(snippet.fence);
      // Those of CMake are configured by docs/embedding_by_cmake.
      const bool configured = snippet.fence == "```cmake" && page.filename() == "embedding.md";
      const bool compiled = snippet.fence.rfind("```cpp", 0) == 0 || configured;
      const bool looks_like_code = snippet.contains("#include") || snippet.contains("wanamaker::");
      CHECK((compiled || !looks_like_code));
      CHECK(snippet.fence.find("```c++") == std::string::npos);
      CHECK(snippet.fence.find("```C++") == std::string::npos);
    }
  }
}

TEST_CASE("docs/errors.md lists exactly the errors that are thrown") {
  CHECK(ids_in_code().size() > 10);
  CHECK(missing_from(ids_in_code(), ids_in_catalogue()) == "");
  CHECK(missing_from(ids_in_catalogue(), ids_in_code()) == "");
}

TEST_CASE("ids are recognised") {
  std::set<std::string> ids;
  add_ids(R"(f({.id = "shape/mismatch", .what = "a/b c", .mend = "see A/b"}, "x/y-2");)", '"', ids);
  CHECK(ids == std::set<std::string>{"shape/mismatch", "x/y-2"});
}
