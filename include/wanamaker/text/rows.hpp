// The lines of a file with their line feeds: the rows that published procedures count in.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"
#include "wanamaker/text/text_source.hpp"

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

namespace detail {

/// Throws DataError: a document or line is longer than a reader may hold.
[[noreturn]] inline void refuse_large_document(const std::string& where, std::size_t largest) {
  throw DataError({.id = "corpus/document-too-large",
                   .where = where,
                   .what = "a document is too large to be held in memory",
                   .expected = "at most " + std::to_string(largest) + " bytes",
                   .mend = "cut it into several documents"});
}

}  // namespace detail

/// The same of a text that is read piece by piece; a row's text is valid during its call. Throws as
/// TextSource::next, and DataError for a line of more than `longest` bytes.
template <class Visit>
void for_each_row(TextSource& text, std::size_t longest, Visit&& visit) {
  Row row;
  std::string begun;  // a line whose end is not read yet
  const auto visit_row = [&](std::string_view line) {
    row.text = line;
    visit(static_cast<const Row&>(row));
    row.begin += line.size();
    ++row.number;
  };
  const auto take_piece = [&](const Row& piece) {
    const bool ends = piece.text.ends_with('\n');
    if (ends && begun.empty()) return visit_row(piece.text);
    if (begun.size() + piece.text.size() > longest) {
      detail::refuse_large_document(text.where() + ", line " + std::to_string(row.number + 1),
                                    longest);
    }
    begun.append(piece.text);
    if (!ends) return;
    visit_row(begun);
    begun.clear();
  };
  for (std::string_view piece = text.next(); !piece.empty(); piece = text.next()) {
    for_each_row(piece, take_piece);
  }
  if (!begun.empty()) visit_row(begun);
}

/// The lines of a text file (or of standard input, "-") in order, blank ones included, each with
/// its line feed; unpacked where the file is gzip or zstd. Throws FileError, FormatError, and
/// DataError for invalid UTF-8.
inline std::vector<std::string> read_rows(const std::filesystem::path& path) {
  TextSource text = open_text(path);
  std::vector<std::string> rows;
  for_each_row(text, std::string::npos, [&](const Row& row) { rows.emplace_back(row.text); });
  return rows;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
