// The lines of a file with their line feeds: the rows that published procedures count in.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "wanamaker/core/index.hpp"
#include "wanamaker/io/mapped_file.hpp"
#include "wanamaker/text/utf8.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// One line of a text.
struct Row {
  std::string_view text{};  ///< with its line feed, which the last line may lack
  Index number = 0;         ///< from 0
  std::size_t begin = 0;    ///< byte offset in the text

  /// The line without its line feed.
  std::string_view line() const {
    return text.ends_with('\n') ? text.substr(0, text.size() - 1) : text;
  }
};

/// Calls `visit(row)` for each line. Only U+000A ends a line; the rows joined are the text.
template <class Visit>
void for_each_row(std::string_view text, Visit&& visit) {
  Row row;
  while (row.begin < text.size()) {
    const std::size_t feed = text.find('\n', row.begin);
    const std::size_t end = feed == std::string_view::npos ? text.size() : feed + 1;
    row.text = text.substr(row.begin, end - row.begin);
    visit(static_cast<const Row&>(row));
    row.begin = end;
    ++row.number;
  }
}

/// The lines of a text file in order, blank ones included, each with its line feed. Throws
/// FileError, and DataError for invalid UTF-8.
inline std::vector<std::string> read_rows(const std::filesystem::path& path) {
  const MappedFile file(path);
  check_utf8(file.text(), path.string());
  std::vector<std::string> rows;
  for_each_row(file.text(), [&](const Row& row) { rows.emplace_back(row.text); });
  return rows;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
