// The rules of the source tree: which folder may include which, and what every header has.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "testing.hpp"

namespace {

namespace fs = std::filesystem;

const fs::path source_dir = WANAMAKER_SOURCE_DIR;
const fs::path include_dir = source_dir / "include" / "wanamaker";

// A folder includes only folders to its left.
constexpr std::array layers = {"core",  "backend",   "nn",     "io",         "text",
                               "stats", "surrogate", "gate",   "embed",      "residual",
                               "train", "study",     "report", "distributed"};
// What a user runs on their own types; it may include any layer, and no layer includes it.
constexpr const char* testing_folder = "testing";

std::ptrdiff_t layer_index(const std::string& folder) {
  return std::find(layers.begin(), layers.end(), folder) - layers.begin();
}

bool is_layer(const std::string& folder) {
  return layer_index(folder) < static_cast<std::ptrdiff_t>(layers.size());
}

bool is_header(const fs::path& path) {
  return path.extension() == ".hpp" || path.extension() == ".cuh";
}

std::vector<fs::path> public_headers() {
  std::vector<fs::path> headers;
  for (const auto& entry : fs::recursive_directory_iterator(include_dir)) {
    if (entry.is_regular_file()) headers.push_back(entry.path());
  }
  std::sort(headers.begin(), headers.end());
  return headers;
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// What the header includes, without the brackets or quotes.
std::vector<std::string> includes_of(const fs::path& header) {
  std::vector<std::string> names;
  for (const std::string& line : lines_of(header)) {
    const std::size_t directive = line.find_first_not_of(" #");
    const std::size_t open = line.find_first_of("<\"");
    if (line.find('#') == std::string::npos || open == std::string::npos) continue;
    if (line.compare(directive, 7, "include") != 0) continue;
    names.push_back(line.substr(open + 1, line.find_first_of(">\"", open + 1) - open - 1));
  }
  return names;
}

bool contains(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

bool is_wrapper(const fs::path& path) {
  return path.parent_path().filename() == "third_party";
}

bool is_standard(const std::string& included) {
  return included.find_first_of("/.") == std::string::npos;
}

/// The folder below include/wanamaker; for an umbrella header wanamaker/x.hpp it is x.
std::string layer_of(const fs::path& relative_to_wanamaker) {
  return relative_to_wanamaker.begin()->stem().string();
}

/// Empty if a header in `from` may include `included`, otherwise what is wrong.
std::string fault_of_include(const std::string& from, const std::string& included) {
  const std::string prefix = "wanamaker/";
  if (included.rfind(prefix, 0) != 0) return "";
  const std::string to = layer_of(included.substr(prefix.size()));
  if (from == testing_folder) return is_layer(to) || to == from ? "" : "unknown folder " + to;
  if (!is_layer(to)) return "unknown folder " + to;
  return layer_index(to) <= layer_index(from) ? "" : to + " is to the right of " + from;
}

}  // namespace

TEST_CASE("a folder includes only folders to its left") {
  for (const fs::path& header : public_headers()) {
    const std::string from = layer_of(fs::relative(header, include_dir));
    CAPTURE(header.string());
    CHECK_MESSAGE((is_layer(from) || from == testing_folder), "unknown folder ", from);
    for (const std::string& included : includes_of(header)) {
      CHECK(fault_of_include(from, included) == "");
    }
  }
}

TEST_CASE("the rule of folders is not vacuous") {
  CHECK(public_headers().size() >= 8);
  CHECK(fault_of_include("nn", "wanamaker/core/error.hpp") == "");
  CHECK(fault_of_include("nn", "wanamaker/core.hpp") == "");
  CHECK(fault_of_include("nn", "vector") == "");
  CHECK(fault_of_include("testing", "wanamaker/distributed/x.hpp") == "");
  CHECK(fault_of_include("nn", "wanamaker/io/json.hpp") == "io is to the right of nn");
  CHECK(fault_of_include("core", "wanamaker/util/x.hpp") == "unknown folder util");
  CHECK(fault_of_include("study", "wanamaker/testing/laws.hpp") == "unknown folder testing");
}

TEST_CASE("every header begins with a comment and has #pragma once") {
  for (const fs::path& header : public_headers()) {
    CAPTURE(header.string());
    CHECK(is_header(header));
    const std::vector<std::string> lines = lines_of(header);
    REQUIRE(!lines.empty());
    CHECK(lines.front().rfind("// ", 0) == 0);
    CHECK(contains(lines, "#pragma once"));
  }
}

TEST_CASE("core includes only the standard library, and of that no streams") {
  const std::set<std::string> banned = {"iostream", "sstream", "fstream", "iomanip", "regex"};
  for (const fs::path& header : public_headers()) {
    if (layer_of(fs::relative(header, include_dir)) != "core" || is_wrapper(header)) continue;
    CAPTURE(header.string());
    for (const std::string& included : includes_of(header)) {
      CHECK(banned.count(included) == 0);
      const bool ours = included.rfind("wanamaker/core/", 0) == 0 && !is_wrapper(included);
      CHECK_MESSAGE((ours || is_standard(included)), included);
    }
  }
}

TEST_CASE("third-party headers are included in muted wrappers only") {
  const auto starts_with = [](const std::string& name, const char* prefix) {
    return name.rfind(prefix, 0) == 0;
  };
  for (const fs::path& header : public_headers()) {
    if (is_wrapper(header)) {
      CHECK(contains(lines_of(header), "#pragma GCC diagnostic push"));
      CHECK(contains(lines_of(header), "#pragma GCC diagnostic pop"));
      continue;
    }
    CAPTURE(header.string());
    for (const std::string& included : includes_of(header)) {
      for (const char* prefix :
           {"Eigen/", "unsupported/", "nlohmann/", "xtensor", "xtl/", "pcre2", "utf8proc", "cblas",
            "dnnl", "oneapi/", "CLI/", "cuda", "cublas"}) {
        CHECK_MESSAGE(!starts_with(included, prefix), included);
      }
    }
  }
}

TEST_CASE("core.hpp includes every header of core but those that are dear to compile") {
  const std::vector<std::string> included = includes_of(include_dir / "core.hpp");
  for (const auto& entry : fs::directory_iterator(include_dir / "core")) {
    if (!entry.is_regular_file()) continue;
    const std::string name = "wanamaker/core/" + entry.path().filename().string();
    if (name == "wanamaker/core/thread_pool.hpp" || name == "wanamaker/core/progress.hpp") continue;
    CHECK_MESSAGE(contains(included, name), name);
  }
}
