// The pages of the documentation as lines, fences and headings.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace wanamaker_test {

inline const std::filesystem::path source_dir = WANAMAKER_SOURCE_DIR;

inline std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// README.md and everything in docs/.
inline std::vector<std::filesystem::path> pages() {
  std::vector<std::filesystem::path> found = {source_dir / "README.md"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir / "docs")) {
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  }
  return found;
}

struct Snippet {
  std::size_t first_line = 0;  ///< of the file, counted from 1
  std::string fence;           ///< the opening line
  std::vector<std::string> lines;

  bool contains(const std::string& text) const {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
};

/// A page's fenced parts, and its other lines.
struct Page {
  std::vector<Snippet> snippets;
  std::vector<std::string> prose;
};

inline bool is_fence(const std::string& line) {
  const std::size_t start = line.find_first_not_of(" \t>");
  return start != std::string::npos &&
         (line.compare(start, 3, "```") == 0 || line.compare(start, 3, "~~~") == 0);
}

inline Page page_of(const std::filesystem::path& path) {
  const std::vector<std::string> lines = lines_of(path);
  Page page;
  bool inside = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (is_fence(lines[i])) {
      if (!inside) page.snippets.push_back({i + 2, lines[i], {}});
      inside = !inside;
    } else {
      (inside ? page.snippets.back().lines : page.prose).push_back(lines[i]);
    }
  }
  return page;
}

/// The texts of a page's headings of one level: 2 for "## …".
inline std::vector<std::string> headings_of(const Page& page, std::size_t level) {
  const std::string mark = std::string(level, '#') + " ";
  std::vector<std::string> headings;
  for (const std::string& line : page.prose) {
    if (line.rfind(mark, 0) == 0) headings.push_back(line.substr(mark.size()));
  }
  return headings;
}

/// What stands between backticks in a line.
inline std::vector<std::string> code_spans_of(const std::string& line) {
  std::vector<std::string> spans;
  for (std::size_t open = line.find('`'); open != std::string::npos;) {
    const std::size_t close = line.find('`', open + 1);
    if (close == std::string::npos) break;
    spans.push_back(line.substr(open + 1, close - open - 1));
    open = line.find('`', close + 1);
  }
  return spans;
}

}  // namespace wanamaker_test
